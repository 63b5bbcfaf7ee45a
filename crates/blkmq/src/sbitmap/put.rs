//! Freeing a bit and waking its waiters. Kernel: sbitmap_queue_clear(), sbitmap_queue_wake_up(),
//! __sbitmap_queue_wake_up() (6.1.192, 6.12.117).

mod counted;

use counted::Counted;

use super::Sbitmap;
use crate::env::{Cpu, Effect, mb};
use crate::names::stages;
use crate::request::CpuId;
use crate::rules::{FreedBits, WakeScan};
use crate::time::Duration;
use crate::waiter::Waiter;

stages! {
/// Position of a free.
pub enum At in "tag-put" {
    /// Set the bit in `cleared`, or clear it in its word (`Rules::freed_bits`).
    Clear,
    /// Are there waiters?
    Active,
    /// Count the freed tags.
    Add,
    /// How many wake-ups are promised?
    Promised,
    /// Is a whole batch due?
    Due,
    /// Promise one more batch.
    Promise,
    /// Which queue is next?
    Index,
    /// Does wait queue `queue` have entries?
    Peek,
    /// Under the lock of wait queue `queue`: wake.
    Wake,
    /// Store the next queue.
    Store,
    /// Before v6.2 (`countdown.rs`): is the queue's count above zero (v6.1)?
    Above,
    /// The index was further back: store the queue that was found.
    Point,
    /// Count down.
    Down,
    /// Has the queue entries left (v6.1-rc)?
    Left,
    /// Read the count (4acb83417cad and later).
    Read,
    /// Take one, unless the count was changed.
    Take,
    /// Store the batch, unless the count was changed (before v6.1).
    Reset,
    /// Under the lock of the queue: wake.
    WakeCounted,
    /// Read the index.
    Ahead,
    /// Move it on, unless it was moved.
    Advance,
    /// Store the batch (v6.1).
    Refill,
    /// After all of that: count the request out of those with tags (v6.1, sets that queues share).
    Uncount,
}
}

/// A free of one bit, or only the waking for bits freed otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Put {
    at: At,
    bit: u32,
    owner: CpuId,
    count: u32,
    pub(super) promised: i32,
    pub(super) queue: u32,
    pub(super) looked: u32,
    left: u32,
    /// Exclusive waiters woken in the current queue, while its lock is held.
    woken: u32,
    /// When the request is no longer counted among those with tags (sets that queues share).
    counted: Counted,
    what: What,
}

impl Default for Put {
    /// Nothing is freed.
    fn default() -> Put {
        Put::wake(0)
    }
}

/// The kind of a free.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum What {
    /// A bit that its owner frees.
    Bit,
    /// Wake-ups for bits that are free already.
    Wake,
    /// The same for a batch.
    Batch,
    /// One of each wait queue, whether bits are free or not (sbitmap_queue_wake_all).
    WakeAll,
}

/// The effect of the wake-up on an entry of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// A task that runs: it is passed over.
    AlreadyRunning,
    /// It leaves the wait queue: a task wakes up, an hctx is run.
    Dequeued,
    /// An hctx that leaves the wait queue, and needs no run.
    Idle,
}

/// Outcome of one step of a free.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PutStep {
    Step,
    /// Needs the lock of this wait queue.
    Lock(u32),
    Done,
}

impl Put {
    /// Frees `bit`, which CPU `owner` allocated.
    pub fn one(bit: u32, owner: CpuId) -> Put {
        Put {
            at: At::Clear,
            bit,
            owner,
            count: 1,
            promised: 0,
            queue: 0,
            looked: 0,
            left: 0,
            woken: 0,
            counted: Counted::Before,
            what: What::Bit,
        }
    }

    /// Only the waking for `count` bits that are free already (sbitmap_queue_wake_up).
    pub fn wake(count: u32) -> Put {
        Put {
            at: At::Active,
            count,
            counted: Counted::No,
            what: What::Wake,
            ..Put::one(0, CpuId(0))
        }
    }

    /// The same after a batch of which `last` was the last bit (sbitmap_queue_clear_batch): the
    /// next hint of the CPU that frees the batch.
    pub fn wake_batch(count: u32, last: u32) -> Put {
        Put {
            bit: last,
            what: What::Batch,
            ..Put::wake(count)
        }
    }

    /// One of each wait queue (sbitmap_queue_wake_all).
    pub fn wake_all() -> Put {
        Put {
            at: At::Index,
            what: What::WakeAll,
            ..Put::wake(0)
        }
    }

    /// The bit, while it is still taken.
    pub fn owned_bit(&self) -> Option<u32> {
        (self.at == At::Clear).then_some(self.bit)
    }

    pub fn stage(&self) -> At {
        self.at
    }

    /// One step. `out` decides, under the lock, about each entry: a task that runs already keeps
    /// its entry (autoremove_wake_function()) and is not counted, and the next entry is tried.
    #[expect(clippy::inline_always, reason = "one caller, four times per I/O")]
    #[inline(always)]
    pub fn step(
        &mut self,
        map: &Sbitmap,
        scan: WakeScan,
        cpu: &mut Cpu,
        out: impl FnMut(&mut Cpu, Waiter) -> Woken,
    ) -> PutStep {
        let step = self.advance(map, scan, cpu, out);
        // After the wake-ups: a woken task searches from the old hint.
        match (step, self.what) {
            (PutStep::Done, What::Bit) => map.hint_freed(self.owner, self.bit),
            (PutStep::Done, What::Batch) => map.hint_freed(cpu.id, self.bit),
            _ => {}
        }
        step
    }

    #[expect(clippy::inline_always, reason = "one caller, four times per I/O")]
    #[inline(always)]
    fn advance(
        &mut self,
        map: &Sbitmap,
        scan: WakeScan,
        cpu: &mut Cpu,
        out: impl FnMut(&mut Cpu, Waiter) -> Woken,
    ) -> PutStep {
        match self.at {
            At::Clear => self.clear(map, cpu),
            At::Active => {
                // Read once: a batch that changes meanwhile belongs to another free.
                self.left = map.wake_batch.get();
                if map.ws_active.read(cpu) == 0 {
                    return PutStep::Done;
                }
                self.to(match scan {
                    WakeScan::Countdown(_) => At::Index,
                    _ => At::Add,
                })
            }
            At::Add => {
                map.completion_cnt.add(cpu, self.count as i32);
                self.to(At::Promised)
            }
            At::Promised => {
                self.promised = map.wakeup_cnt.read(cpu);
                self.to(At::Due)
            }
            At::Due => {
                let completed = map.completion_cnt.read(cpu);
                if completed.wrapping_sub(self.promised) < self.left as i32 {
                    return PutStep::Done;
                }
                self.to(At::Promise)
            }
            At::Promise => {
                let next = self.promised.wrapping_add(self.left as i32);
                let won = map.wakeup_cnt.compare_exchange(cpu, self.promised, next);
                self.promised = 0;
                self.to(if won { At::Index } else { At::Promised })
            }
            At::Index => {
                if self.what == What::WakeAll {
                    mb(cpu);
                    self.left = 1;
                }
                self.queue = map.wake_index.read(cpu) as u32;
                self.to(At::Peek)
            }
            At::Peek => {
                if !map.wait[self.queue as usize].active.test(cpu) {
                    return self.next_queue(map, scan, 0);
                }
                if let (WakeScan::Countdown(form), false) = (scan, self.what == What::WakeAll) {
                    return self.found(form);
                }
                self.at = At::Wake;
                PutStep::Lock(self.queue)
            }
            At::Wake => self.wake_one_queue(map, scan, cpu, out),
            At::Store => {
                map.wake_index.write(cpu, self.queue as i32);
                PutStep::Done
            }
            counting => match scan {
                WakeScan::Countdown(form) => self.count_down(counting, form, map, cpu, out),
                _ => unreachable!("{counting:?} counts down"),
            },
        }
    }

    fn clear(&mut self, map: &Sbitmap, cpu: &mut Cpu) -> PutStep {
        mb(cpu);
        let word = &map.words[map.word_of(self.bit)];
        let mask = map.mask_of(self.bit);
        let taken = word.word.peek() & mask != 0 || map.given_twice;
        debug_assert!(taken, "tag {} is nobody's", self.bit);
        let first = match map.freed_bits {
            FreedBits::Deferred => word.cleared.fetch_or(cpu, mask) & mask == 0,
            FreedBits::AtOnce => word.word.fetch_and(cpu, !mask) & mask != 0,
        };
        assert!(
            first || map.given_twice,
            "tag {} given back twice",
            self.bit
        );
        mb(cpu);
        self.to(At::Active)
    }

    pub(super) fn to(&mut self, at: At) -> PutStep {
        self.at = at;
        PutStep::Step
    }

    /// Wakes up to `left` exclusive waiters of the queue, and the others on the way.
    fn wake_one_queue(
        &mut self,
        map: &Sbitmap,
        scan: WakeScan,
        cpu: &mut Cpu,
        out: impl FnMut(&mut Cpu, Waiter) -> Woken,
    ) -> PutStep {
        let Some(woken) = self.wake_queue(map, cpu, out) else {
            return PutStep::Step;
        };
        if scan == WakeScan::OneQueue && self.what != What::WakeAll {
            self.queue = (self.queue + 1) % map.wait.len() as u32;
            return self.to(At::Store);
        }
        self.next_queue(map, scan, woken)
    }

    /// Under the lock of the queue: wakes up to `left`, and releases the lock. Returns the number
    /// of exclusive ones; `None`: as many as one label may, the lock is kept for more.
    pub(super) fn wake_queue(
        &mut self,
        map: &Sbitmap,
        cpu: &mut Cpu,
        mut out: impl FnMut(&mut Cpu, Waiter) -> Woken,
    ) -> Option<u32> {
        let state = &map.wait[self.queue as usize];
        let mut passed_over = 0;
        while self.woken < self.left {
            if cpu.outbox.is_full() {
                return None;
            }
            let Some(waiter) = state.entry(cpu, passed_over) else {
                break;
            };
            let woken = out(cpu, waiter);
            if woken == Woken::AlreadyRunning {
                passed_over += 1;
                continue;
            }
            state.edit(cpu, |entries| entries.remove(passed_over));
            match waiter {
                Waiter::Task(task) => {
                    // The task itself lowers ws_active when it runs (sbitmap_finish_wait).
                    self.woken += 1;
                    cpu.outbox.push(Effect::Wake(task));
                }
                Waiter::Hctx {
                    queue,
                    hctx,
                    exclusive,
                } => {
                    self.woken += u32::from(exclusive);
                    map.ws_active.add(cpu, -1);
                    debug_assert!(map.ws_active.peek() >= 0, "fewer waiters than were woken");
                    if woken == Woken::Dequeued {
                        cpu.outbox.push(Effect::Kick {
                            queue,
                            hctx,
                            delay: Duration::ZERO,
                        });
                    }
                }
            }
        }
        state.queue.release(cpu);
        Some(core::mem::take(&mut self.woken))
    }

    /// `woken` of the current queue: continue with the next one, or end.
    fn next_queue(&mut self, map: &Sbitmap, scan: WakeScan, woken: u32) -> PutStep {
        let queues = map.wait.len() as u32;
        self.looked += 1;
        self.queue = (self.queue + 1) % queues;
        if self.what == What::WakeAll {
            // Each queue has its own, and the index stays.
            return match self.looked < queues {
                true => self.to(At::Peek),
                false => PutStep::Done,
            };
        }
        self.left -= woken;
        let spent = match scan {
            WakeScan::FirstQueue => woken > 0,
            WakeScan::UntilSpent => self.left == 0,
            WakeScan::OneQueue | WakeScan::Countdown(_) => false,
        };
        if !spent && self.looked < queues {
            return self.to(At::Peek);
        }
        match scan {
            // There is no waiter any more.
            WakeScan::Countdown(_) => PutStep::Done,
            _ => self.to(At::Store),
        }
    }
}

#[cfg(test)]
mod tests;
