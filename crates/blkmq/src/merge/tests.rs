//! Merging as plug and software queues use it. For schedulers see `tests/scripts/*/merge`.

use super::{BioTry, Side, try_bio_merge, try_bio_merge_list, try_request_merge};
use crate::list::QueueList;
use crate::request::{Bio, BioId, Op, Place, RequestId, RequestPool, Sector, Sectors};
use crate::rules::{DiscardMerge, QueueLimits};
use crate::time::SimTime;

const LIMITS: QueueLimits = QueueLimits {
    max_sectors: 64,
    max_segments: 4,
    chunk_sectors: 0,
    discard_granularity: 0,
    max_discard_sectors: 128,
    max_discard_segments: 1,
    write_cache: false,
    fua: false,
    prios_merge: false,
    cgroups_merge: false,
    discard_merge: DiscardMerge::AsRanges,
};

/// A pool whose requests 0.. are writes of eight sectors at these places.
fn pool_of(sectors: &[u64]) -> RequestPool {
    let mut pool = RequestPool::new(sectors.len(), 64);
    for (slot, &sector) in sectors.iter().enumerate() {
        let bio = add_bio(&mut pool, Op::Write, sector, 8);
        pool.bio_to_request(RequestId(slot as u32), bio);
        pool[RequestId(slot as u32)].place = Place::Ctx;
    }
    pool
}

fn add_bio(pool: &mut RequestPool, op: Op, sector: u64, sectors: u32) -> BioId {
    let (sector, sectors) = (Sector(sector), Sectors(sectors));
    let bio = Bio {
        op,
        sector,
        sectors,
        segments: 1,
        ..Bio::default()
    };
    pool.add_bio(bio).expect("room for a bio")
}

fn offer(pool: &mut RequestPool, rq: u32, op: Op, sector: u64, sectors: u32) -> BioTry {
    let bio = add_bio(pool, op, sector, sectors);
    try_bio_merge(pool, RequestId(rq), bio, &LIMITS)
}

#[test]
fn a_bio_joins_at_either_end() {
    let mut pool = pool_of(&[100]);
    assert_eq!(
        offer(&mut pool, 0, Op::Write, 108, 4),
        BioTry::Merged(Side::Back)
    );
    assert_eq!(
        offer(&mut pool, 0, Op::Write, 96, 4),
        BioTry::Merged(Side::Front)
    );
    let rq = &pool[RequestId(0)];
    assert_eq!(
        (rq.sector, rq.sectors, rq.segments),
        (Sector(96), Sectors(16), 3)
    );
    let starts: Vec<u64> = pool
        .bios_of(RequestId(0))
        .map(|bio| pool.bio(bio).sector.0)
        .collect();
    assert_eq!(starts, [96, 100, 108]);
}

#[test]
fn what_is_not_eligible_leaves_the_request_alone() {
    let mut pool = pool_of(&[100]);
    assert_eq!(offer(&mut pool, 0, Op::Read, 108, 8), BioTry::NotEligible);
    assert_eq!(offer(&mut pool, 0, Op::Write, 109, 8), BioTry::NotEligible);
    assert!(!pool[RequestId(0)].flags.nomerge);
    pool[RequestId(0)].started = true;
    assert_eq!(offer(&mut pool, 0, Op::Write, 108, 8), BioTry::NotEligible);
}

#[test]
fn too_large_fails_and_marks_the_request() {
    let mut pool = pool_of(&[100]);
    assert_eq!(offer(&mut pool, 0, Op::Write, 108, 57), BioTry::Failed);
    assert!(pool[RequestId(0)].flags.nomerge);
    assert_eq!(offer(&mut pool, 0, Op::Write, 108, 8), BioTry::NotEligible);
}

/// A ctx list of these writes, oldest first.
fn list_of(pool: &mut RequestPool) -> QueueList {
    let mut list = QueueList::new();
    for slot in 0..pool.len() {
        list.push_back(pool, RequestId(slot as u32));
    }
    list
}

#[test]
fn a_list_is_searched_from_its_newest_request() {
    // Both end at 108; the newer takes the bio.
    let mut pool = pool_of(&[100, 100, 300]);
    let list = list_of(&mut pool);
    let bio = add_bio(&mut pool, Op::Write, 108, 8);
    let found = try_bio_merge_list(&mut pool, &list, bio, &LIMITS);
    assert_eq!(found, Some((RequestId(1), Side::Back)));
}

#[test]
fn only_eight_requests_of_a_list_are_looked_at() {
    let mut pool = pool_of(&[100, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700]);
    let list = list_of(&mut pool);
    let bio = add_bio(&mut pool, Op::Write, 108, 8);
    assert_eq!(try_bio_merge_list(&mut pool, &list, bio, &LIMITS), None);
    let bio = add_bio(&mut pool, Op::Write, 1008, 8);
    let found = try_bio_merge_list(&mut pool, &list, bio, &LIMITS);
    assert_eq!(found, Some((RequestId(1), Side::Back)));
}

#[test]
fn a_failure_ends_the_search_of_a_list() {
    // The newer of two requests at 100 is full; the older would do.
    let mut pool = pool_of(&[100, 100]);
    pool[RequestId(1)].segments = LIMITS.max_segments;
    let list = list_of(&mut pool);
    let bio = add_bio(&mut pool, Op::Write, 108, 8);
    assert_eq!(try_bio_merge_list(&mut pool, &list, bio, &LIMITS), None);
    // It is marked now and does not block other merges.
    let found = try_bio_merge_list(&mut pool, &list, bio, &LIMITS);
    assert_eq!(found, Some((RequestId(0), Side::Back)));
}

#[test]
fn requests_join_and_keep_the_earlier_start() {
    let mut pool = pool_of(&[100, 108]);
    pool[RequestId(0)].start_time = SimTime(20);
    pool[RequestId(1)].start_time = SimTime(10);
    assert!(try_request_merge(
        &mut pool,
        RequestId(0),
        RequestId(1),
        &LIMITS
    ));
    let rq = &pool[RequestId(0)];
    assert_eq!(
        (rq.sectors, rq.segments, rq.start_time),
        (Sectors(16), 2, SimTime(10))
    );
    let gone = &pool[RequestId(1)];
    assert_eq!(
        (gone.bio_first, gone.sector, gone.sectors),
        (None, Sector(108), Sectors(8))
    );
}

#[test]
fn requests_join_in_order_only_and_mark_nothing() {
    let mut pool = pool_of(&[100, 108]);
    assert!(!try_request_merge(
        &mut pool,
        RequestId(1),
        RequestId(0),
        &LIMITS
    ));
    pool[RequestId(1)].segments = LIMITS.max_segments;
    assert!(!try_request_merge(
        &mut pool,
        RequestId(0),
        RequestId(1),
        &LIMITS
    ));
    assert!(!pool[RequestId(0)].flags.nomerge);
    assert!(!pool[RequestId(1)].flags.nomerge);
}

#[test]
fn discards_of_several_ranges_join_beyond_the_limit_as_in_the_kernel() {
    // Only the ranges of the first are held against the limit: 3 + 3 pass with 4 allowed.
    let limits = QueueLimits {
        max_discard_segments: 4,
        ..LIMITS
    };
    let mut pool = RequestPool::new(2, 8);
    for slot in 0..2 {
        let bio = add_bio(&mut pool, Op::Discard, 1000 * u64::from(slot), 8);
        pool.bio_to_request(RequestId(slot), bio);
        pool[RequestId(slot)].segments = 3;
    }
    assert!(try_request_merge(
        &mut pool,
        RequestId(0),
        RequestId(1),
        &limits
    ));
    assert_eq!(pool[RequestId(0)].segments, 6);
}

#[test]
fn cgroups_and_metadata_merge_only_with_their_own_kind() {
    let before_v5_18 = QueueLimits {
        cgroups_merge: true,
        ..LIMITS
    };
    let ranges = QueueLimits {
        max_discard_segments: 4,
        ..LIMITS
    };
    let kinds = [(0, false), (1, false), (0, true), (1, true)];
    for (a, b) in kinds.into_iter().flat_map(|a| kinds.map(|b| (a, b))) {
        for (op, limits, mixes) in [
            (Op::Write, LIMITS, false),
            (Op::Write, before_v5_18, true),
            (Op::Discard, ranges, true),
        ] {
            let mut pool = RequestPool::new(2, 3);
            let [first, second, before] = [(100, a), (108, b), (92, b)].map(|(sector, of)| {
                let bio = add_bio(&mut pool, op, sector, 8);
                (pool.bio_mut(bio).group, pool.bio_mut(bio).flags.meta) = of;
                bio
            });
            pool.bio_to_request(RequestId(0), first);
            pool.bio_to_request(RequestId(1), second);
            let joined = try_request_merge(&mut pool, RequestId(0), RequestId(1), &limits);
            assert_eq!(joined, mixes || a == b);
            // Of bios ranges are asked, too.
            let found = try_bio_merge(&mut pool, RequestId(0), before, &limits);
            let joined = matches!(found, BioTry::Merged(_));
            assert_eq!(joined, limits.cgroups_merge || a == b);
        }
    }
}
