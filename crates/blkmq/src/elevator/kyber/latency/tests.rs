use super::*;

fn data() -> QueueData {
    QueueData {
        hz: 250,
        targets: [2_000_000, 10_000_000, 5_000_000_000],
        async_depth: 48,
        buckets: Histograms::default(),
        timeouts: Default::default(),
        p99: Default::default(),
    }
}

fn fill(data: &mut QueueData, domain: Domain, kind: Kind, bucket: usize, count: u32) {
    for _ in 0..count {
        data.buckets.add(domain, kind, bucket);
    }
}

#[test]
fn a_bucket_ends_with_its_last_nanosecond() {
    let bucket = |ns| bucket_of(Duration(ns), 2_000_000);
    assert_eq!((bucket(0), bucket(1), bucket(500_000)), (0, 0, 0));
    assert_eq!((bucket(500_001), bucket(2_000_000)), (1, 3));
    assert_eq!((bucket(2_000_001), bucket(u64::MAX)), (4, 7));
    // A target below 4 ns has buckets of 1 ns.
    assert_eq!(bucket_of(Duration(3), 0), 2);
    assert_eq!(bucket_of(Duration(3), 3), 2);
}

#[test]
fn few_samples_wait_for_a_second() {
    let mut data = data();
    fill(&mut data, Domain::Read, Kind::Io, 7, 499);
    assert!(!data.congested(Jiffies(1000), |_| panic!("too few")));
    assert!(!data.congested(Jiffies(1249), |_| panic!("too early")));
    let mut reported = Vec::new();
    assert!(data.congested(Jiffies(1250), |found| reported.push(found)));
    assert_eq!((reported[0].bucket, reported[0].samples), (7, 499));
    // The samples were cleared.
    assert!(!data.congested(Jiffies(5000), |_| panic!("none")));
}

#[test]
fn both_kinds_share_one_timeout() {
    let mut data = data();
    let now = Jiffies(1000);
    fill(&mut data, Domain::Read, Kind::Io, 0, 500);
    fill(&mut data, Domain::Read, Kind::Total, 0, 499);
    assert!(!data.congested(now, |_| {}));
    // The evaluation of the first has cleared it: for the second another second begins.
    let depth = data.wanted_depth(Domain::Read, (true, 256), now, |_| panic!("too few"));
    assert_eq!(depth, None);
    assert_eq!(data.timeouts[0], Jiffies(1250));
}

#[test]
fn depth_is_scaled_by_the_bucket() {
    let scaled = |bucket, depth, bad| {
        let mut data = data();
        fill(&mut data, Domain::Write, Kind::Total, bucket, 500);
        data.wanted_depth(Domain::Write, (bad, depth), Jiffies(1), |_| {})
    };
    let by_bucket: Vec<_> = (0..8).map(|bucket| scaled(bucket, 32, true)).collect();
    let wanted = [8, 16, 24, 32, 40, 48, 56, 64].map(Some);
    assert_eq!(by_bucket, wanted);
    // Without congestion it only grows, and never above the first depth.
    assert_eq!(scaled(3, 32, false), None);
    assert_eq!(scaled(7, 32, false), Some(64));
    assert_eq!(scaled(7, 100, false), Some(128));
    // One token stays one in buckets 4 to 6: the shift rounds down.
    assert_eq!((scaled(0, 1, true), scaled(6, 1, true)), (Some(1), Some(1)));
}

#[test]
fn what_is_remembered_is_used_once() {
    let mut data = data();
    fill(&mut data, Domain::Read, Kind::Total, 0, 500);
    let now = Jiffies(1);
    assert_eq!(
        data.wanted_depth(Domain::Read, (false, 256), now, |_| {}),
        None
    );
    assert_eq!(
        data.wanted_depth(Domain::Read, (true, 256), now, |_| {}),
        Some(64)
    );
    assert_eq!(
        data.wanted_depth(Domain::Read, (true, 64), now, |_| {}),
        None
    );
}
