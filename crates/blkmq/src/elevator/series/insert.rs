//! Insertion: under the lock, as in every kernel; or with the January 2024 series into buckets
//! while another CPU inserts, or onto side lists.
//!
//! The bucket schemes differ in the signal of a filled bucket to the inserter ([`BucketSignal`]).
//! All that were posted lose requests: a CPU reads DD_INSERTING, the inserter takes its last look,
//! the CPU fills its bucket and leaves it to an inserter that will not look again. `tests/loom.rs`
//! and `explore` show it; [`BucketSignal::MarkAfter`] does not. Every access to a bit, a bucket or
//! a lock is a label, also those under the scheduler's lock, which does not guard them. Kernel:
//! dd_insert_requests() in block/mq-deadline.c, as posted.

use super::shared::{BUCKETS, INSERTING, Series};
use crate::elevator::{InsertAt, locked};
use crate::env::{Answer, mb};
use crate::list::QueueList;
use crate::request::Place;
use crate::rules::{BucketSignal, Insertion};
use crate::step::{Cx, Next, labels};
use steps::steps;

/// dd_insert_requests(). True as for `locked::insert_requests()`.
#[steps]
pub(crate) fn insert_requests(cx: &mut Cx<'_>, list: QueueList, head: bool) -> bool {
    if cx.rules().series.insertion == Insertion::UnderLock {
        return sub!(locked::insert_requests(list, head));
    }
    /// Buckets or side lists?
    at!(Enter);
    if cx.rules().series.insertion == Insertion::SideLists {
        /// Under insert_lock: append to a side list.
        lock!(Append, Series::of(cx).insert_lock(cx.q));
        append(cx, list, head);
    } else {
        sub!(insert_with_buckets(list, head));
    }
    true
}

/// dd_insert_requests() of the proof of concept, v1, v2, and v2 repaired. `seq`: insert_seq as this
/// path read it, which specs/Dispatch keeps as long.
#[steps(keep(seq))]
pub(crate) fn insert_with_buckets(cx: &mut Cx<'_>, mut list: QueueList, head: bool) {
    let mut seq: i32 = 0;
    if counts(cx) {
        /// insert_seq on entry: counted (proof of concept) or read (v1).
        ask!(Note, Next::InTime);
        seq = match signal(cx) {
            BucketSignal::CountAtEntry => Series::of(cx).insert_seq.add_return(cx.cpu, 1),
            _ => Series::of(cx).insert_seq.read(cx.cpu),
        };
    }
    // The list went to a bucket, but its inserter may have finished: buckets first.
    let mut filled: bool = false;
    /// Was the scheduler's lock free?
    if let Answer::Locked = ask!(Tried, Next::TryLock(cx.q.elevator.lock(cx.q))) {
        ask!(Begin, Next::InTime);
    } else {
        /// Does another CPU insert?
        ask!(Busy, Next::InTime);
        if has(cx, INSERTING) {
            if signal(cx) == BucketSignal::CountAround {
                /// v1: count before the filling.
                ask!(Count, Next::InTime);
                seq = Series::of(cx).insert_seq.add_return(cx.cpu, 1);
            } else if signal(cx) == BucketSignal::MarkBefore {
                /// v2: is DD_BUCKETS set already?
                ask!(Marked, Next::InTime);
                if !has(cx, BUCKETS) {
                    /// Set DD_BUCKETS (v2: before the filling; ours: after it).
                    ask!(Mark, Next::InTime);
                    Series::of(cx).run_state.fetch_or(cx.cpu, BUCKETS);
                }
            }
            let bucket: u16 = Series::of(cx).bucket_of(cx.cpu.id) as u16;
            /// Under the bucket's lock: fill it.
            lock!(Fill, Series::of(cx).bucket_lock(cx.q, bucket));
            fill(cx, bucket, &mut list);
            if signal(cx) == BucketSignal::CountAround {
                /// v1: count after the filling; did no other CPU count?
                ask!(Recount, Next::InTime);
                let now = Series::of(cx).insert_seq.add_return(cx.cpu, 1);
                if now == seq.wrapping_add(1) {
                    return;
                }
            } else {
                if signal(cx) == BucketSignal::MarkAfter {
                    ask!(Mark, Next::InTime);
                    // The list before the mark: the CPU that clears the mark finds the list. No
                    // barrier is needed between mark and look, or between the inserter's end and
                    // its last look: all are accesses to one word, and those are coherent.
                    mb(cx.cpu);
                    Series::of(cx).run_state.fetch_or(cx.cpu, BUCKETS);
                }
                /// Does the other CPU still insert?
                ask!(Still, Next::InTime);
                if has(cx, INSERTING) {
                    return;
                }
                // The proof of concept would find nothing new in insert_seq; v2 relies on its mark.
                filled = signal(cx) == BucketSignal::CountAtEntry;
            }
        }
        /// Under the scheduler's lock: say so.
        lock!(Begin, locked::lock(cx));
    }
    let mut absorbed: QueueList = QueueList::new();
    loop {
        Series::of(cx).run_state.fetch_or(cx.cpu, INSERTING);
        loop {
            let mut looks: bool = filled;
            if !filled {
                if !list.is_empty() {
                    /// Insert the list.
                    at!(Insert);
                    locked::insert_whole(cx, &mut list, InsertAt::by_flag(head), &mut absorbed);
                }
                /// Was a bucket filled meanwhile?
                ask!(Filled, Next::InTime);
                if counts(cx) {
                    looks = has_news(cx, &mut seq);
                } else if has(cx, BUCKETS) {
                    /// The same, and take the mark down.
                    ask!(Claim, Next::InTime);
                    looks = Series::of(cx).run_state.test_and_clear(cx.cpu, BUCKETS);
                }
            }
            filled = false;
            if !looks {
                break;
            }
            let mut bucket: u16 = 0;
            while usize::from(bucket) < Series::of(cx).buckets.len() {
                /// Has this bucket requests?
                at!(Look);
                if Series::of(cx).sees_work(bucket, cx.cpu) {
                    /// Under its lock, too: take them.
                    lock!(Collect, Series::of(cx).bucket_lock(cx.q, bucket));
                    collect(cx, bucket, &mut list);
                }
                bucket += 1;
            }
            if list.is_empty() && !counts(cx) {
                break;
            }
        }
        if counts(cx) {
            break;
        }
        /// Inserting ends.
        ask!(End, Next::InTime);
        Series::of(cx).run_state.fetch_and(cx.cpu, !INSERTING);
        /// Was a bucket filled while it ended?
        ask!(Again, Next::InTime);
        if !has(cx, BUCKETS) {
            break;
        }
        ask!(Begin, Next::InTime);
    }
    seq = 0;
    /// Release the scheduler's lock.
    at!(Unlock);
    cx.q.elevator.unlock(cx.cpu);
    if counts(cx) {
        /// Proof of concept, v1: inserting ends here.
        ask!(LateEnd, Next::InTime);
        Series::of(cx).run_state.fetch_and(cx.cpu, !INSERTING);
    }
    /// Free what was absorbed.
    at!(Absorbed);
    while let Some(gone) = absorbed.pop_front(&mut cx.pool()) {
        ask!(Absorbed, cx.free(gone));
    }
}

labels! {
    pub enum At in "series-insert" of insert_requests insert_with_buckets
}

/// The signal of a filled bucket.
fn signal(cx: &Cx<'_>) -> BucketSignal {
    match cx.rules().series.insertion {
        Insertion::Buckets(signal) => signal,
        other => unreachable!("{other:?} has no buckets"),
    }
}

/// The signal is a count, not a mark.
fn counts(cx: &Cx<'_>) -> bool {
    use BucketSignal::{CountAround, CountAtEntry};
    matches!(signal(cx), CountAtEntry | CountAround)
}

/// One bit of `run_state`.
fn has(cx: &mut Cx<'_>, bit: u64) -> bool {
    Series::of(cx).run_state.load(cx.cpu) & bit != 0
}

/// A CPU has counted since insert_seq was `seq`.
fn has_news(cx: &mut Cx<'_>, seq: &mut i32) -> bool {
    let count = &Series::of(cx).insert_seq;
    if signal(cx) == BucketSignal::CountAtEntry {
        let before = core::mem::replace(seq, count.read(cx.cpu));
        return *seq != before;
    }
    // Its own count is not news.
    let before = core::mem::replace(seq, count.add_return(cx.cpu, 1));
    seq.wrapping_sub(1) != before
}

/// Under insert_lock, which it releases: to a side list.
fn append(cx: &mut Cx<'_>, mut list: QueueList, head: bool) {
    let series = Series::of(cx);
    cx.set_places(list, Place::Side);
    let mut pool = cx.pool();
    let mut lists = series.inserted.held(cx.cpu);
    let side = if head {
        &mut lists.at_head
    } else {
        &mut lists.at_tail
    };
    side.splice_back(&mut pool, &mut list);
    drop(lists);
    drop(pool);
    series.inserted_pending.mirror(cx.cpu, true);
    series.inserted.release(cx.cpu);
}

/// Under the bucket's lock, which it releases.
fn fill(cx: &mut Cx<'_>, bucket: u16, list: &mut QueueList) {
    let bucket = &Series::of(cx).buckets[usize::from(bucket)];
    cx.set_places(*list, Place::Side);
    let mut pool = cx.pool();
    bucket.list.held(cx.cpu).splice_back(&mut pool, list);
    drop(pool);
    bucket.pending.mirror(cx.cpu, true);
    bucket.list.release(cx.cpu);
}

/// Under the bucket's lock, which it releases.
fn collect(cx: &mut Cx<'_>, bucket: u16, list: &mut QueueList) {
    let bucket = &Series::of(cx).buckets[usize::from(bucket)];
    let mut found = core::mem::take(&mut *bucket.list.held(cx.cpu));
    bucket.pending.mirror(cx.cpu, false);
    cx.set_places(found, Place::Path);
    list.splice_back(&mut cx.pool(), &mut found);
    bucket.list.release(cx.cpu);
}
