use super::*;
use crate::recorder::JobStats;
use crate::rng::Rng;

/// Reads of one job, with one thread that starts at `from`.
struct Reads {
    job: JobStats,
    now: u64,
}

impl Reads {
    fn new(from: u64) -> Reads {
        let mut job = JobStats::new("reader", false);
        job.starts(SimTime(from));
        Reads { job, now: from }
    }

    /// One ends after so long, with this latency.
    fn end(&mut self, after: u64, latency: u64) {
        self.now += after;
        let io = crate::recorder::IoRecord {
            thread: 0,
            disk: crate::plan::DiskId(0),
            op: blkmq::request::Op::Read,
            sector: blkmq::request::Sector(0),
            sectors: blkmq::request::Sectors(8),
            at: SimTime(self.now),
            latency: Duration(latency),
            prepared: Duration::ZERO,
            slat: None,
            status: blkmq::request::Status::Ok,
            counts: true,
            closes: false,
        };
        self.job.add(0, &io);
    }

    fn finish(&mut self) -> Result<Steady<'_>, TooShort> {
        self.job.advance(SimTime(self.now));
        self.job.steady(0, SimTime(self.now))
    }

    fn percentile(&mut self, place: usize) -> Result<(u64, u64), TooShort> {
        self.finish()?;
        let steady = self.job.steady(0, SimTime(self.now))?;
        self.job.percentile(0, &steady, place)
    }
}

#[test]
fn a_longer_run_has_longer_batches_and_not_more() {
    let mut reads = Reads::new(500);
    for _ in 0..100_000 {
        reads.end(1000, 7000);
    }
    let steady = reads.finish().unwrap();
    // 100 ms in 256 at most: 2^19 ns each.
    assert_eq!(steady.length, Duration(1 << 19));
    assert_eq!(steady.marks.len(), 191);
    assert_eq!(steady.warm_up, Duration::ZERO);
    let iops = steady.iops().unwrap();
    assert!((iops.mean - 1e6).abs() < 1e3 && iops.half < 1e3, "{iops:?}");
    let bandwidth = steady.bandwidth().unwrap();
    assert!((bandwidth.mean / iops.mean - 4096.0).abs() < 1.0);
    let latency = steady.latency().unwrap();
    assert_eq!((latency.mean, latency.half), (7000.0, 0.0));
    let marks = &reads.job.batches.marks;
    assert_eq!(marks[0].capacity(), BATCHES_MAX + 1);
    assert_eq!(marks[1].capacity(), 0, "no write, no memory");
}

#[test]
fn a_short_run_or_a_pause_of_the_job_has_no_batches() {
    let mut reads = Reads::new(0);
    for _ in 0..30 {
        reads.end(4096, 10);
    }
    assert_eq!(reads.finish().unwrap_err(), TooShort::Batches);
    // Its measured time begins with the last thread's, which starts in the middle.
    let mut reads = Reads::new(0);
    for count in 0..2000 {
        if count == 1900 {
            reads.job.starts(SimTime(reads.now + 1));
        }
        reads.end(100, 10);
    }
    assert_eq!(reads.finish().unwrap_err(), TooShort::Batches);
}

#[test]
fn the_beginning_is_left_out_if_latencies_alone_differ() {
    let mut reads = Reads::new(0);
    let mut rng = Rng::stream(1, "latencies");
    for count in 0..100_000_u64 {
        let slow = 50_000_u64.saturating_sub(5 * count);
        reads.end(1000, 10_000 + slow + rng.below(2000));
    }
    let steady = reads.finish().unwrap();
    assert!(
        steady.warm_up >= Duration::from_millis(9),
        "{:?}",
        steady.warm_up
    );
    assert!(
        steady.warm_up <= Duration::from_millis(20),
        "{:?}",
        steady.warm_up
    );
    let latency = steady.latency().unwrap();
    assert!(
        (latency.mean - 11_000.0).abs() < latency.half,
        "{latency:?}"
    );
}

#[test]
fn the_beginning_is_left_out_if_throughput_alone_differs() {
    let mut reads = Reads::new(0);
    // With seven at a time, batches have the same sum of latencies.
    for count in 0..100_000 {
        let period = if count < 5_000 { 3000 } else { 1000 };
        reads.end(period, 7 * period);
    }
    let steady = reads.finish().unwrap();
    let from = steady.warm_up.0;
    assert!((14_000_000..20_000_000).contains(&from), "{from}");
    let iops = steady.iops().unwrap();
    assert!((iops.mean - 1e6).abs() <= iops.half.max(2e3), "{iops:?}");
}

#[test]
fn batches_are_of_the_time_in_which_all_threads_run() {
    let mut reads = Reads::new(0);
    for _ in 0..20_000 {
        reads.end(500, 7000);
    }
    reads.job.starts(SimTime(reads.now));
    for _ in 0..20_000 {
        reads.end(1000, 7000);
    }
    // The first of both ends after a pause, whose batches count.
    let (from, end) = (reads.now - 20_000_000, reads.now + 300_000);
    reads.job.ends(SimTime(from)..SimTime(end), SimTime(end));
    for _ in 0..20_000 {
        reads.end(2000, 7000);
    }
    let steady = reads.finish().unwrap();
    assert_eq!(
        (steady.from, steady.length),
        (SimTime(from), Duration(1 << 17))
    );
    assert_eq!(steady.marks.len(), 20_300_000 / (1 << 17) + 1);
    let ios = steady.ios();
    assert!((19_999.0..=20_000.0).contains(&ios), "{ios}");
}

#[test]
fn few_ios_have_no_interval() {
    let mut reads = Reads::new(0);
    for _ in 0..50 {
        reads.end(1_000_000, 7000);
    }
    assert_eq!(reads.finish().unwrap_err(), TooShort::Ios);
    // Of a percentile: 8 above it.
    for seed in 0..10 {
        let mut rng = Rng::stream(seed, "few");
        let mut reads = Reads::new(0);
        for _ in 0..8000 {
            reads.end(1000, 10_000 + rng.below(10_000));
        }
        assert_eq!(PERCENTILES[14], 9990);
        assert_eq!(reads.percentile(14), Err(TooShort::Ios), "seed {seed}");
        assert!(reads.percentile(12).is_ok(), "seed {seed}");
    }
}

/// Latencies uniform from 10,000 to 20,000 ns have known percentiles.
#[test]
fn intervals_of_percentiles_hold_the_known_ones() {
    let (mut held, mut all, mut widest) = (0, 0, 0);
    for seed in 0..60 {
        let mut rng = Rng::stream(seed, "percentiles");
        let mut reads = Reads::new(0);
        for _ in 0..20_000 {
            reads.end(1000, 10_000 + rng.below(10_000));
        }
        for place in [2, 6, 10, 12] {
            let known = 10_000 + u64::from(PERCENTILES[place]);
            let Ok((low, high)) = reads.percentile(place) else {
                continue;
            };
            all += 1;
            // The histogram has three digits.
            held += u32::from(low <= known + 16 && known <= high + 16);
            widest = widest.max(high - low);
        }
        assert_eq!(
            reads.percentile(16),
            Err(TooShort::Ios),
            "two are above 99.99 %"
        );
    }
    assert!(all >= 220, "{all} of 240 have one");
    assert!(100 * held >= 92 * all, "{held} of {all}");
    assert!((100..500).contains(&widest), "{widest}");
}

#[test]
fn a_percentile_among_equal_latencies_is_known_exactly() {
    let mut rng = Rng::stream(1, "equal");
    let mut reads = Reads::new(0);
    for _ in 0..20_000 {
        let latency = if rng.below(10) < 3 { 1000 } else { 2000 };
        reads.end(1000, latency);
    }
    // 30 % are 1000: percentiles away from there are one of both.
    assert_eq!(reads.percentile(1), Ok((1000, 1000)));
    assert_eq!(reads.percentile(6), Ok((2000, 2000)));
    assert_eq!(reads.percentile(12), Ok((2000, 2000)));
    // Which one the 30 % is, is chance.
    assert_eq!(reads.percentile(4), Ok((1000, 2000)));
}

#[test]
fn limits_follow_latencies_that_move() {
    let mut held = 0;
    for seed in 0..10 {
        let mut reads = Reads::new(0);
        let mut rng = Rng::stream(seed, "moving");
        for count in 0..60_000_u64 {
            let base = if count < 2000 { 5000 } else { 50_000 };
            reads.end(1000, base + rng.below(1000));
        }
        // The median of all is 50,483.
        let found = reads.percentile(6);
        held += u32::from(
            found.is_ok_and(|(low, high)| low < 50_500 && 50_470 < high && high - low < 100),
        );
    }
    assert!(held >= 7, "{held} of 10");
}
