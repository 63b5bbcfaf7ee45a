//! The second completion: the end of a clone and the request of the mapped queue.
//!
//! Takes the place of `complete.rs` for requests of a mapped queue that its driver, here
//! device-mapper, has completed; it calls that path where the request ends. The clone is freed
//! first. Kernel: dm_softirq_done(), dm_done(), dm_end_request(), dm_requeue_original_request() in
//! drivers/md/dm-rq.c, multipath_end_io() in dm-mpath.c (6.1.192; dm.c of 4.5).

use super::map::{delay, free_bios, leave, rules};
use super::single::SqQueue;
use super::wait::wake_up;
use crate::call::{Call, RunHow, SingleEndHow, WaitQueue};
use crate::dm::Ending;
use crate::elevator::queue_lock;
use crate::env::Cpu;
use crate::names::labels;
use crate::queue::{BlkMq, LockKind, Mapped, RequestQueue};
use crate::request::{QueueId, RequestId, Status};
use crate::rules::{EndRun, InFlight, IoData, StoppedLook};
use crate::step::{Cx, Next};
use crate::time::Duration;

labels! {
    pub enum At in "map-end" {
        /// Was there a clone, and did it succeed? Then the selector counts it no longer.
        Enter,
        /// Under m->lock: its path fails; is it tried again?
        Fail,
        /// The clone's bios are gone: free it.
        Free,
        /// There is no clone any more.
        Freed,
        /// The target's data of the I/O are freed, too (4.5).
        NoData,
        /// The request has ended, or is on the requeue list.
        Ended,
        /// The device does not count it any more (4.20). Does it count anything?
        Fewer,
        /// The waiters for that were woken. What does the end run (4.5)?
        Told,
        /// A queue of the single-queue kind, unless it is stopped; under its lock (4.12).
        RunLater,
        /// The queue was run.
        NotPending,
        /// dm_put().
        Put,
    }
}

/// Second completion of a request of a mapped queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MapEnd {
    pub(super) at: At,
    pub(super) queue: QueueId,
    rq: RequestId,
    ending: Ending,
    /// It ends, and there was a clone: up to 4.5 that runs the queue.
    runs: bool,
}

impl MapEnd {
    /// dm_softirq_done().
    pub(super) fn new(queue: QueueId, rq: RequestId) -> MapEnd {
        MapEnd {
            at: At::Enter,
            queue,
            rq,
            ending: Ending::Requeue,
            runs: false,
        }
    }

    pub(super) fn about_to_end(self) -> Option<RequestId> {
        (self.at == At::Enter).then_some(self.rq)
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let m = cx.q.mapped.as_ref().expect("the queue is mapped");
        match self.at {
            At::Enter => self.enter(cx, m),
            At::Fail => {
                self.ask_target(cx.mq, m, cx.cpu);
                let path = m.state.held(cx.cpu.id).tios[self.rq.0 as usize].mapped;
                let path = path.expect("a clone has a path").path;
                m.fields.write(cx.cpu);
                m.accounts[path.index()].write(cx.cpu);
                leave(self.queue, &mut m.state.held(cx.cpu.id).target, cx.cpu);
                m.lock.release(cx.cpu);
                self.to(At::Free)
            }
            At::Free => self.free(cx, m),
            At::Freed => match rules(cx.q).io_data {
                IoData::Mempool => self.to(At::NoData),
                IoData::InRequest => self.end(cx),
            },
            At::NoData => self.end(cx),
            At::Ended => match rules(cx.q).in_flight {
                InFlight::Counted => {
                    m.pending.add(cx.cpu, -1);
                    self.to(At::Fewer)
                }
                InFlight::Tags => self.put(m, cx.cpu),
            },
            At::Fewer => match m.pending.read(cx.cpu) {
                0 => {
                    self.at = At::Told;
                    wake_up(cx.cpu, self.queue, WaitQueue::InFlight)
                }
                _ => self.not_pending(cx),
            },
            At::Told => self.not_pending(cx),
            At::RunLater => {
                let own = SqQueue::of(cx.mq, self.queue);
                own.run_later(cx.cpu);
                if stopped_look(cx.q) == StoppedLook::Locked {
                    own.unlock(cx.cpu);
                }
                self.to(At::NotPending)
            }
            At::NotPending => self.put(m, cx.cpu),
            At::Put => Next::Done,
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let held = matches!(self.at, At::Fail | At::Free);
        if held {
            let m = mq.queue(self.queue).mapped.as_ref();
            let m = m.expect("the queue is mapped");
            let tio = m.state.held(cpu.id).tios[self.rq.0 as usize];
            assert!(tio.clone.is_some(), "{:?} without a clone", self.at);
        }
    }

    pub(super) fn check_over(&self) {
        assert_eq!(self.at, At::Put, "it is not over");
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn enter(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let tio = m.state.held(cx.cpu.id).tios[self.rq.0 as usize];
        let Some(mapped) = tio.mapped else {
            // It was killed before a path was chosen.
            self.ending = Ending::Done(tio.status);
            return self.end(cx);
        };
        if tio.status != Status::Ok {
            self.at = At::Fail;
            return cx.lock(LockKind::Target, 0);
        }
        m.accounts[mapped.path.index()].write(cx.cpu);
        self.ask_target(cx.mq, m, cx.cpu);
        self.to(At::Free)
    }

    /// multipath_end_io().
    fn ask_target(&mut self, mq: &BlkMq, m: &Mapped, cpu: &Cpu) {
        let mut state = m.state.held(cpu.id);
        let tio = state.tios[self.rq.0 as usize];
        let mapped = tio.mapped.expect("a clone has a path");
        let clone = tio.clone.expect("it was issued");
        let lower = mq.queue(m.queue_of(mapped.path));
        let started = lower.pool.held(cpu.id)[clone].io_start_time;
        self.ending = state.target.end(mapped, tio.status, started, cpu.now());
    }

    /// free_rq_clone().
    fn free(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        // dm_end_request(); a request that was killed unmapped runs nothing.
        self.runs = matches!(self.ending, Ending::Done(_)) && rules(cx.q).end_run == EndRun::Hctxs;
        // The clone, with its path, is dropped.
        let tio = &mut m.state.held(cx.cpu.id).tios[self.rq.0 as usize];
        let clone = tio.clone.take().expect("it was issued");
        let mapped = tio.mapped.take().expect("a clone has a path");
        let queue = m.queue_of(mapped.path);
        free_bios(&mut cx.mq.queue(queue).pool.held(cx.cpu.id), clone);
        self.at = At::Freed;
        cx.call(Call::Free { queue, rq: clone })
    }

    /// The request ends, or is tried again.
    fn end(&mut self, cx: &mut Cx<'_>) -> Next {
        self.at = At::Ended;
        let (queue, rq) = (self.queue, self.rq);
        let single = cx.q.single.is_some();
        let again = |after| match single {
            true => Call::SingleEnd {
                queue,
                rq,
                how: SingleEndHow::Requeued,
            },
            false => Call::GiveBack { queue, rq, after },
        };
        let ending = core::mem::replace(&mut self.ending, Ending::Requeue);
        let path = match ending {
            Ending::Done(status) => match single {
                true => Call::SingleEnd {
                    queue,
                    rq,
                    how: SingleEndHow::Completed(status),
                },
                false => Call::End { queue, rq, status },
            },
            Ending::Requeue => again(Duration::ZERO),
            Ending::DelayRequeue => again(delay(cx.q)),
        };
        self.rq = RequestId(0);
        cx.call(path)
    }

    /// rq_completed() in 4.5, and in later kernels for a single-queue one: kblockd runs the mapped
    /// queue if requests wait in it.
    fn not_pending(&mut self, cx: &mut Cx<'_>) -> Next {
        self.at = At::NotPending;
        let queue = self.queue;
        if !core::mem::take(&mut self.runs) {
            return Next::Step;
        }
        if cx.q.single.is_some() {
            self.at = At::RunLater;
            return match stopped_look(cx.q) {
                StoppedLook::Bare => Next::Step,
                StoppedLook::Locked => Next::Lock(queue_lock(queue)),
            };
        }
        let how = RunHow::Background;
        cx.call(Call::RunQueues { queue, how })
    }

    fn put(&mut self, m: &Mapped, cpu: &mut Cpu) -> Next {
        m.holders.add(cpu, -1);
        self.to(At::Put)
    }
}

/// How the end of a request of a single-queue one checks whether that is stopped.
fn stopped_look(q: &RequestQueue) -> StoppedLook {
    let old = rules(q).old_top.expect("its kernel has such a queue");
    old.stopped_look
}
