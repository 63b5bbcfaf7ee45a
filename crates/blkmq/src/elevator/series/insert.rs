//! Insertion: under the lock, as in every kernel; or with the January 2024 series into buckets
//! while another CPU inserts, or onto side lists.
//!
//! The bucket schemes differ in the signal of a filled bucket to the inserter ([`BucketSignal`]).
//! All that were posted lose requests: a CPU reads DD_INSERTING, the inserter takes its last look,
//! the CPU fills its bucket and leaves it to an inserter that will not look again. `tests/loom.rs`
//! and `explore` show it; [`BucketSignal::MarkAfter`] does not. Every access to a bit, a bucket or
//! a lock is a label, also those under the scheduler's lock, which does not guard them.

use super::shared::{BUCKETS, INSERTING, WithSeries};
use crate::elevator::locked;
use crate::elevator::{InsertAt, OwnedByInsert, Scheduler};
use crate::env::{Answer, Cpu, mb};
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::queue::RequestQueue;
use crate::request::Place;
use crate::rules::{BucketSignal, Insertion, Series};
use crate::step::{Next, Sub, free_request, set_places};

labels! {
    pub enum At in "series-insert" {
        /// Buckets or side lists?
        Enter,
        /// Under insert_lock: append to a side list.
        Append,
        /// insert_seq on entry: counted (proof of concept) or read (v1).
        Note,
        /// Was the scheduler's lock free?
        Tried,
        /// Does another CPU insert?
        Busy,
        /// v1: count before the filling.
        Count,
        /// v2: is DD_BUCKETS set already?
        Marked,
        /// Set DD_BUCKETS (v2: before the filling; ours: after it).
        Mark,
        /// Under the bucket's lock: fill it.
        Fill,
        /// v1: count after the filling; did no other CPU count?
        Recount,
        /// Does the other CPU still insert?
        Still,
        /// Under the scheduler's lock: say so.
        Begin,
        /// Insert the list.
        Insert,
        /// Was a bucket filled meanwhile?
        Filled,
        /// The same, and take the mark down.
        Claim,
        /// Has this bucket requests?
        Look,
        /// Under its lock, too: take them.
        Collect,
        /// Inserting ends.
        End,
        /// Was a bucket filled while it ended?
        Again,
        /// Release the scheduler's lock.
        Unlock,
        /// Proof of concept, v1: inserting ends here.
        LateEnd,
        /// Free what was absorbed.
        Absorbed,
    }
}

/// Insertion of a list of requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum InsertPath {
    /// Under the lock.
    Stock(locked::InsertPath),
    Series(SeriesInsert),
}

impl InsertPath {
    pub(crate) fn label(self) -> Option<Label> {
        match self {
            InsertPath::Stock(path) => path.label(),
            InsertPath::Series(path) => Some(path.at.label()),
        }
    }

    /// The requests that it holds at this label.
    pub(crate) fn owned(self) -> OwnedByInsert {
        match self {
            InsertPath::Stock(path) => path.owned(),
            InsertPath::Series(path) => OwnedByInsert {
                list: path.list,
                seq: path.seq,
                bucket: path.bucket % FILLED,
                filled: path.bucket == FILLED,
            },
        }
    }
}

/// Arguments of the labels of an insertion into buckets.
struct On<'a, P: Scheduler + 'static> {
    shared: &'a WithSeries<P>,
    q: &'a RequestQueue,
    signal: BucketSignal,
}

impl<P: Scheduler> Clone for On<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Scheduler> Copy for On<'_, P> {}

/// No bucket: the list went to one, but its inserter may have finished. Buckets first.
const FILLED: u16 = u16::MAX;
const _: () = assert!(Series::BUCKETS_MAX < FILLED);

/// Insertion of a list by the series. It is part of every frame, since two schedulers have it: 32
/// bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SeriesInsert {
    at: At,
    head: bool,
    list: QueueList,
    absorbed: QueueList,
    /// insert_seq as this path read it.
    seq: i32,
    /// Its own bucket while it is filled, then the one that is checked; or [`FILLED`].
    bucket: u16,
}

impl<P: Scheduler + 'static> WithSeries<P> {
    pub(crate) fn start_insert(
        &self,
        q: &RequestQueue,
        list: QueueList,
        head: bool,
    ) -> (InsertPath, Next) {
        if q.settings.rules.series.insertion == Insertion::UnderLock {
            let (path, next) = self.locked.start_insert(q, list, head);
            return (InsertPath::Stock(path), next);
        }
        let path = SeriesInsert {
            at: At::Enter,
            head,
            list,
            absorbed: QueueList::new(),
            seq: 0,
            bucket: 0,
        };
        (InsertPath::Series(path), Next::Step)
    }

    pub(crate) fn insert(
        &self,
        path: &mut InsertPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<bool> {
        let next = match path {
            InsertPath::Stock(path) => return self.locked.insert(path, q, cpu),
            InsertPath::Series(path) => path.step(self, q, cpu),
        };
        match next {
            Next::Done => Sub::Done(true),
            next => Sub::Wait(next),
        }
    }
}

impl SeriesInsert {
    fn step<P: Scheduler>(
        &mut self,
        shared: &WithSeries<P>,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Next {
        match q.settings.rules.series.insertion {
            Insertion::UnderLock => unreachable!("kernels insert under the lock at once"),
            Insertion::SideLists => self.side(shared, q, cpu),
            Insertion::Buckets(signal) => match self.at {
                At::Begin
                | At::Insert
                | At::Filled
                | At::Claim
                | At::Look
                | At::Collect
                | At::End
                | At::Again
                | At::Unlock => self.inserter(On { shared, q, signal }, cpu),
                _ => self.bucketer(On { shared, q, signal }, cpu),
            },
        }
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    /// The next label accesses a word that decides the path of other CPUs.
    fn in_time(&mut self, at: At) -> Next {
        self.at = at;
        Next::InTime
    }

    /// v3.
    fn side<P: Scheduler>(
        &mut self,
        shared: &WithSeries<P>,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Next {
        if self.at == At::Enter {
            self.at = At::Append;
            return shared.insert_lock(q);
        }
        let mut list = core::mem::take(&mut self.list);
        set_places(q, cpu, list, Place::Side);
        let mut pool = q.pool.held(cpu.id);
        let mut lists = shared.inserted.held(cpu);
        let side = if self.head {
            &mut lists.at_head
        } else {
            &mut lists.at_tail
        };
        side.splice_back(&mut pool, &mut list);
        drop(lists);
        drop(pool);
        shared.inserted_pending.mirror(cpu, true);
        shared.inserted.release(cpu);
        Next::Done
    }

    /// Until the requests are in a bucket, or this path has the scheduler's lock.
    fn bucketer<P: Scheduler>(&mut self, on: On<'_, P>, cpu: &mut Cpu) -> Next {
        let On { shared, q, signal } = on;
        match self.at {
            At::Enter => match signal {
                BucketSignal::CountAtEntry | BucketSignal::CountAround => self.in_time(At::Note),
                BucketSignal::MarkBefore | BucketSignal::MarkAfter => self.try_lock(shared, q),
            },
            At::Note => {
                self.seq = match signal {
                    BucketSignal::CountAtEntry => shared.insert_seq.add_return(cpu, 1),
                    _ => shared.insert_seq.read(cpu),
                };
                self.try_lock(shared, q)
            }
            At::Tried => match core::mem::take(&mut cpu.answer) {
                Answer::Locked => self.in_time(At::Begin),
                _ => self.in_time(At::Busy),
            },
            At::Busy if shared.run_state.load(cpu) & INSERTING == 0 => self.want_lock(shared, q),
            At::Busy => match signal {
                BucketSignal::CountAround => self.in_time(At::Count),
                BucketSignal::MarkBefore => self.in_time(At::Marked),
                BucketSignal::CountAtEntry | BucketSignal::MarkAfter => {
                    self.want_bucket(shared, q, cpu)
                }
            },
            At::Count => {
                self.seq = shared.insert_seq.add_return(cpu, 1);
                self.want_bucket(shared, q, cpu)
            }
            At::Marked if shared.run_state.load(cpu) & BUCKETS == 0 => self.in_time(At::Mark),
            At::Marked => self.want_bucket(shared, q, cpu),
            At::Mark if signal == BucketSignal::MarkBefore => {
                shared.run_state.fetch_or(cpu, BUCKETS);
                self.want_bucket(shared, q, cpu)
            }
            At::Mark => {
                // The list before the mark: the CPU that clears the mark finds the list. No barrier
                // is needed between mark and look, or between the inserter's end and its last look:
                // all are accesses to one word, and those are coherent.
                mb(cpu);
                shared.run_state.fetch_or(cpu, BUCKETS);
                self.in_time(At::Still)
            }
            At::Fill => self.fill(on, cpu),
            At::Recount => {
                let seq = shared.insert_seq.add_return(cpu, 1);
                if seq == self.seq.wrapping_add(1) {
                    return Next::Done;
                }
                self.want_lock(shared, q)
            }
            At::Still => self.still(on, cpu),
            At::LateEnd => {
                shared.run_state.fetch_and(cpu, !INSERTING);
                self.to(At::Absorbed)
            }
            At::Absorbed => match self.absorbed.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => free_request(cpu, q.id, gone),
                None => Next::Done,
            },
            at => unreachable!("{at:?} is the inserter's, or of the side lists"),
        }
    }

    fn try_lock<P: Scheduler>(&mut self, shared: &WithSeries<P>, q: &RequestQueue) -> Next {
        self.at = At::Tried;
        Next::TryLock(shared.locked.lock(q))
    }

    fn want_lock<P: Scheduler>(&mut self, shared: &WithSeries<P>, q: &RequestQueue) -> Next {
        self.at = At::Begin;
        Next::Lock(shared.locked.lock(q))
    }

    fn want_bucket<P: Scheduler>(
        &mut self,
        shared: &WithSeries<P>,
        q: &RequestQueue,
        cpu: &Cpu,
    ) -> Next {
        self.bucket = shared.bucket_of(cpu.id) as u16;
        self.at = At::Fill;
        shared.bucket_lock(q, self.bucket)
    }

    fn fill<P: Scheduler>(&mut self, on: On<'_, P>, cpu: &mut Cpu) -> Next {
        let On { shared, q, signal } = on;
        let bucket = &shared.buckets[usize::from(core::mem::take(&mut self.bucket))];
        let mut list = core::mem::take(&mut self.list);
        set_places(q, cpu, list, Place::Side);
        let mut pool = q.pool.held(cpu.id);
        bucket.list.held(cpu).splice_back(&mut pool, &mut list);
        drop(pool);
        bucket.pending.mirror(cpu, true);
        bucket.list.release(cpu);
        self.in_time(match signal {
            BucketSignal::CountAround => At::Recount,
            BucketSignal::CountAtEntry | BucketSignal::MarkBefore => At::Still,
            BucketSignal::MarkAfter => At::Mark,
        })
    }

    /// True if the inserter that was seen before the filling still inserts.
    fn still<P: Scheduler>(&mut self, on: On<'_, P>, cpu: &mut Cpu) -> Next {
        let On { shared, q, signal } = on;
        if shared.run_state.load(cpu) & INSERTING != 0 {
            return Next::Done;
        }
        // The proof of concept would find nothing new in insert_seq; v2 relies on its mark.
        if signal == BucketSignal::CountAtEntry {
            self.bucket = FILLED;
        }
        self.want_lock(shared, q)
    }
}

impl SeriesInsert {
    /// Under the scheduler's lock.
    fn inserter<P: Scheduler>(&mut self, on: On<'_, P>, cpu: &mut Cpu) -> Next {
        let On { shared, q, signal } = on;
        match self.at {
            At::Begin => {
                shared.run_state.fetch_or(cpu, INSERTING);
                if self.bucket == FILLED {
                    self.bucket = 0;
                    return self.to(At::Look);
                }
                self.insert_next()
            }
            At::Insert => {
                let at = InsertAt::by_flag(self.head);
                let (list, absorbed) = (&mut self.list, &mut self.absorbed);
                shared.locked.insert_whole(q, list, at, absorbed, cpu);
                self.in_time(At::Filled)
            }
            At::Filled => self.look_for_mark(shared, signal, cpu),
            At::Claim => match shared.run_state.test_and_clear(cpu, BUCKETS) {
                true => self.to(At::Look),
                false => self.in_time(At::End),
            },
            At::Look => {
                let index = usize::from(self.bucket);
                shared.buckets[index].list.glance(cpu);
                if shared.buckets[index].pending.test(cpu) {
                    self.at = At::Collect;
                    return shared.bucket_lock(q, self.bucket);
                }
                self.next_bucket(shared, signal)
            }
            At::Collect => {
                let bucket = &shared.buckets[usize::from(self.bucket)];
                let mut found = core::mem::take(&mut *bucket.list.held(cpu));
                bucket.pending.mirror(cpu, false);
                set_places(q, cpu, found, Place::Path);
                self.list.splice_back(&mut q.pool.held(cpu.id), &mut found);
                bucket.list.release(cpu);
                self.next_bucket(shared, signal)
            }
            At::End => {
                shared.run_state.fetch_and(cpu, !INSERTING);
                self.in_time(At::Again)
            }
            At::Again => match shared.run_state.load(cpu) & BUCKETS != 0 {
                true => self.in_time(At::Begin),
                false => self.to(At::Unlock),
            },
            At::Unlock => {
                shared.locked.policy.release(cpu);
                match signal {
                    BucketSignal::CountAtEntry | BucketSignal::CountAround => {
                        self.in_time(At::LateEnd)
                    }
                    BucketSignal::MarkBefore | BucketSignal::MarkAfter => self.to(At::Absorbed),
                }
            }
            at => unreachable!("{at:?} needs no lock"),
        }
    }

    /// The list, if there is one, then the next check.
    fn insert_next(&mut self) -> Next {
        if self.list.is_empty() {
            return self.in_time(At::Filled);
        }
        self.to(At::Insert)
    }

    /// True if a CPU has filled a bucket since the last check.
    fn look_for_mark<P: Scheduler>(
        &mut self,
        shared: &WithSeries<P>,
        signal: BucketSignal,
        cpu: &mut Cpu,
    ) -> Next {
        let seq = match signal {
            BucketSignal::MarkBefore | BucketSignal::MarkAfter => {
                return match shared.run_state.load(cpu) & BUCKETS != 0 {
                    true => self.in_time(At::Claim),
                    false => self.in_time(At::End),
                };
            }
            BucketSignal::CountAtEntry => shared.insert_seq.read(cpu),
            // Its own count is not news.
            BucketSignal::CountAround => shared.insert_seq.add_return(cpu, 1).wrapping_sub(1),
        };
        let news = seq != self.seq;
        self.seq = match signal {
            BucketSignal::CountAround => seq.wrapping_add(1),
            _ => seq,
        };
        if news {
            return self.to(At::Look);
        }
        self.seq = 0;
        self.to(At::Unlock)
    }

    fn next_bucket<P: Scheduler>(&mut self, shared: &WithSeries<P>, signal: BucketSignal) -> Next {
        self.bucket += 1;
        if usize::from(self.bucket) < shared.buckets.len() {
            return self.to(At::Look);
        }
        self.bucket = 0;
        let by_mark = matches!(signal, BucketSignal::MarkBefore | BucketSignal::MarkAfter);
        if by_mark && self.list.is_empty() {
            return self.in_time(At::End);
        }
        self.insert_next()
    }
}
