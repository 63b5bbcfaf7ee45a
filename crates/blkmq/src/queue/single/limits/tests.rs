//! Allocation of requests: congestion, batches, the last limit, and the woken task.

use super::*;

const ME: IoContextId = IoContextId(1);
const OTHER: IoContextId = IoContextId(2);

fn asks(io_context: IoContextId, now: u64) -> Asks {
    Asks {
        kind: Kind::Sync,
        io_context,
        now: Jiffies(now),
        hz: 250,
        must: false,
    }
}

fn take(limits: &mut RequestLimits, count: u32, asks: Asks) -> Vec<RequestId> {
    (0..count).filter_map(|_| limits.get(asks)).collect()
}

#[test]
fn thresholds_are_those_of_128_requests() {
    let mut limits = RequestLimits::new(128, 3);
    assert_eq!(take(&mut limits, 112, asks(ME, 0)).len(), 112);
    assert!(!limits.congested[1], "112 are allocated");
    let last = limits.get(asks(ME, 0)).expect("there is room");
    assert!(limits.congested[1], "the 113th was asked for");
    // It ends below 103.
    for slot in 0..10 {
        limits.freed(Kind::Sync, RequestId(slot));
    }
    assert_eq!((limits.count[1], limits.congested[1]), (103, true));
    limits.freed(Kind::Sync, last);
    assert_eq!((limits.count[1], limits.congested[1]), (102, false));
}

#[test]
fn who_gets_there_first_has_a_batch_and_others_wait() {
    let mut limits = RequestLimits::new(128, 3);
    assert_eq!(take(&mut limits, 127, asks(ME, 0)).len(), 127);
    assert!(limits.get(asks(ME, 0)).is_some(), "it becomes a batcher");
    assert!(limits.full[1]);
    assert_eq!(limits.get(asks(OTHER, 0)), None);
    // The request that made it full counts.
    assert_eq!(take(&mut limits, 100, asks(ME, 0)).len(), 31);
    // A task that the scheduler favours gets more, up to half of it again.
    let must = Asks {
        must: true,
        ..asks(OTHER, 0)
    };
    assert_eq!(take(&mut limits, 100, must).len(), 192 - 159);
    assert_eq!(limits.count, [0, 192]);
}

#[test]
fn a_batch_lasts_a_fiftieth_of_a_second_and_has_one_request_at_least() {
    let mut limits = RequestLimits::new(128, 3);
    take(&mut limits, 127, asks(OTHER, 0));
    assert!(limits.get(asks(ME, 0)).is_some());
    assert!(limits.get(asks(ME, 4)).is_some(), "20 ms are five ticks");
    assert_eq!(limits.get(asks(ME, 5)), None);
    limits.begin_batch(asks(OTHER, 5));
    assert!(limits.get(asks(OTHER, 500)).is_some(), "none was had of it");
    assert_eq!(limits.get(asks(OTHER, 500)), None);
}

#[test]
fn sleepers_are_woken_one_by_one_in_order_below_the_limit() {
    let mut limits = RequestLimits::new(4, 3);
    let mut had = take(&mut limits, 6, asks(ME, 0));
    assert_eq!(had.len(), 6, "half as many again");
    limits.wait(Kind::Sync, WaiterId(7));
    limits.wait(Kind::Sync, WaiterId(8));
    let mut free = |limits: &mut RequestLimits| {
        let rq = had.pop().expect("it has some");
        limits.freed(Kind::Sync, rq)
    };
    assert_eq!(free(&mut limits), None, "5 are left");
    assert_eq!(free(&mut limits), None, "4 are left");
    assert_eq!(free(&mut limits), Some(WaiterId(7)));
    assert!(!limits.full[1]);
    assert_eq!(free(&mut limits), Some(WaiterId(8)));
    assert_eq!(free(&mut limits), None);
}

#[test]
fn kinds_are_counted_apart_and_slots_are_not_shared() {
    let mut limits = RequestLimits::new(4, 3);
    let of_async = Asks {
        kind: Kind::Async,
        ..asks(ME, 0)
    };
    let mut all = take(&mut limits, 9, asks(ME, 0));
    all.extend(take(&mut limits, 9, of_async));
    assert_eq!(limits.count, [6, 6]);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 12, "each slot once");
    assert_eq!(super::super::slots_for(4), 12);
}

#[test]
#[should_panic(expected = "freed twice")]
fn a_request_is_freed_once() {
    let mut limits = RequestLimits::new(4, 3);
    let rq = limits.get(asks(ME, 0)).expect("there is room");
    limits.freed(Kind::Sync, rq);
    limits.freed(Kind::Sync, rq);
}
