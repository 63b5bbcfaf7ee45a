//! Suspend and resume of a mapped device: `dmsetup suspend`, `dmsetup resume`.
//!
//! Callers hold md->suspend_lock, which is not modelled: one at a time. The kernel cancels pending
//! runs of queues that it stops; here they run and find the queue stopped. A mapped queue of the
//! single-queue kind is stopped under its lock, under which its driver's function counts the
//! requests that it starts: after that no request is mapped except those that its thread has
//! already. A bio-based device stops no queue: new bios wait for the resume, and bios in flight are
//! waited for. Not here: the effect on the target (`dm/multipath/fail.rs`); the table does not
//! change. Kernel: __dm_suspend(), __dm_resume(), dm_wait_for_completion() in drivers/md/dm.c,
//! dm_stop_queue(), dm_start_queue() in dm-rq.c, multipath_postsuspend() in dm-mpath.c (4.12, 4.20,
//! 6.1.192; dm.c of 4.5 and 4.6), blk_mq_quiesce_queue() in block/blk-mq.c (4.12, 6.1.192),
//! blk_stop_queue(), blk_start_queue() in block/blk-core.c (4.5, 4.12).

use super::single::SqQueue;
use crate::call::{BioWork, Call, Event, RunBy, RunHow, ToTarget, Wait};
use crate::elevator::queue_lock;
use crate::env::{Answer, Cpu, Effect};
use crate::names::labels;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, QueueId};
use crate::rules::{InFlight, Suspension};
use crate::step::{Cx, Next, lock};
use crate::time::Duration;

labels! {
    pub enum At in "suspend" {
        /// Call the target (presuspend).
        Presuspend,
        /// Stop the next hctx (4.12), or ask for the lock; a bio-based device: new bios wait.
        Stop,
        /// Under the lock of a single-queue one: the driver's function is called no more.
        StopSingle,
        /// Wait until the device's thread has mapped its requests.
        Flush,
        /// Under queue_lock: no run begins any more (4.20).
        Quiesce,
        /// Wait for the current runs (synchronize_rcu, 4.12).
        Grace,
        /// Have they ended?
        Settled,
        /// Wait until the device counts nothing in flight (4.20, or bios).
        Drain,
        /// Has any tag a request that was started (6.1)? Then check again later.
        Tags,
        /// The device is suspended: call the target.
        Suspended,
        /// Wait for activations of paths, and allow no more (postsuspend).
        NoActivations,
        /// Are there any?
        Activations,
        /// None is in progress: they may begin again.
        Activated,
        /// Call the target (resume).
        Resume,
        /// Start the next hctx (4.12), or ask for the lock.
        Start,
        /// Under the lock of a single-queue one: the driver's function is called.
        StartSingle,
        /// The driver's function was called, still under the lock.
        Started,
        /// Under queue_lock: runs may begin again (4.20).
        Unquiesce,
        /// Run all hctxs, in the background.
        Run,
        /// The requeue list is kicked (4.12).
        Kick,
        /// The end.
        Over,
    }
}

/// How long it sleeps between two checks of the tags.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SuspendPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    noflush: bool,
    /// The hctx that is stopped or started next.
    hctx: HctxId,
}

impl SuspendPath {
    /// dm_suspend(): without flush, held I/O stays where it is.
    pub fn new(queue: QueueId, noflush: bool) -> SuspendPath {
        SuspendPath {
            at: At::Presuspend,
            queue,
            noflush,
            hctx: HctxId(0),
        }
    }

    /// dm_resume() of a device that is suspended.
    pub fn resume(queue: QueueId) -> SuspendPath {
        SuspendPath {
            at: At::Resume,
            ..SuspendPath::new(queue, false)
        }
    }

    /// It waits until all I/O in flight has ended.
    pub fn drains(&self) -> bool {
        matches!(self.at, At::Tags | At::Suspended)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let mapped = mq.queue(self.queue).mapped.is_some();
        assert!(mapped, "queue {} has a target", self.queue);
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check_over(&self) {
        assert_eq!(self.at, At::Over, "it is not over");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Presuspend => {
                let noflush = self.noflush;
                self.at = At::Stop;
                self.send(ToTarget::Suspend { noflush }, cx.cpu)
            }
            At::Stop => self.stop(cx),
            At::StopSingle => {
                let own = SqQueue::of(cx.mq, self.queue);
                own.single.stopped.mirror(cx.cpu, true);
                own.unlock(cx.cpu);
                self.to(At::Flush)
            }
            At::Flush => {
                let (queue, waiter) = (self.queue, cx.cpu.task);
                cx.cpu.outbox.push(Effect::FlushMapper { queue, waiter });
                self.at = At::Drain;
                Next::Park
            }
            At::Quiesce => {
                cx.q.quiesce(cx.cpu);
                cx.q.queue_lock.release(cx.cpu);
                self.to(At::Grace)
            }
            At::Grace => {
                self.at = At::Settled;
                Next::Grace
            }
            At::Settled => match core::mem::take(&mut cx.cpu.answer) {
                Answer::GoOn => self.stopped(cx.q),
                _ => Next::Grace,
            },
            At::Drain => {
                self.at = At::Suspended;
                self.wait(Event::NothingInFlight, cx.cpu)
            }
            At::Tags => match in_flight(cx.q) {
                false => self.to(At::Suspended),
                true => {
                    let (waiter, after) = (cx.cpu.task, LOOK_AGAIN);
                    cx.cpu.outbox.push(Effect::WakeLater { waiter, after });
                    Next::Park
                }
            },
            At::Suspended => {
                self.at = At::NoActivations;
                self.send(ToTarget::Suspended, cx.cpu)
            }
            At::NoActivations => {
                self.at = At::Activations;
                self.send(ToTarget::StopActivations, cx.cpu)
            }
            At::Activations => match core::mem::take(&mut cx.cpu.answer) {
                Answer::GoOn => {
                    self.at = At::Activated;
                    self.wait(Event::NothingActivated, cx.cpu)
                }
                _ => self.to(At::Over),
            },
            At::Activated => {
                self.at = At::Over;
                self.send(ToTarget::AllowActivations, cx.cpu)
            }
            _ => self.go_on(cx),
        }
    }

    /// Labels of the resume.
    fn go_on(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Resume => {
                self.at = At::Start;
                self.send(ToTarget::Resume, cx.cpu)
            }
            At::Start => self.start(cx),
            At::StartSingle => {
                let own = SqQueue::of(cx.mq, self.queue);
                self.at = At::Started;
                if !own.single.stopped.peek() {
                    return Next::Step;
                }
                own.single.stopped.mirror(cx.cpu, false);
                let queue = self.queue;
                let by = RunBy::Holder;
                cx.call(Call::SingleRun { queue, by })
            }
            At::Started => {
                SqQueue::of(cx.mq, self.queue).unlock(cx.cpu);
                self.to(At::Over)
            }
            At::Unquiesce => {
                let runs = cx.q.unquiesce(cx.cpu);
                cx.q.queue_lock.release(cx.cpu);
                self.to(if runs { At::Run } else { At::Kick })
            }
            At::Run => {
                self.at = At::Kick;
                let (queue, how) = (self.queue, RunHow::Background);
                cx.call(Call::RunQueues { queue, how })
            }
            At::Kick => {
                let queue = self.queue;
                cx.cpu.outbox.push(Effect::KickRequeue { queue });
                self.to(At::Over)
            }
            At::Over => Next::Done,
            at => unreachable!("{at:?} is a label of a suspension"),
        }
    }

    /// blk_mq_stop_hw_queues(): one hctx a label.
    fn stop(&mut self, cx: &mut Cx<'_>) -> Next {
        if let Some(bios) = &cx.q.own_mapped().bios {
            bios.blocked.set(cx.cpu);
            return self.to(At::Grace);
        }
        if cx.q.single.is_some() {
            self.at = At::StopSingle;
            return Next::Lock(queue_lock(self.queue));
        }
        if suspension(cx.q) == Suspension::Quiesces {
            return self.want_queue_lock(At::Quiesce);
        }
        if let Some(hctx) = self.next_hctx(cx.q) {
            cx.mq.stop_hctx(self.queue, hctx, cx.cpu);
            return Next::Step;
        }
        match suspension(cx.q) {
            Suspension::Stops => self.stopped(cx.q),
            Suspension::StopsAndWaits | Suspension::Quiesces => self.to(At::Grace),
        }
    }

    /// No run begins any more: I/O in flight ends.
    fn stopped(&mut self, q: &RequestQueue) -> Next {
        let bios = q.own_mapped().bios.is_some();
        self.to(match q.settings.rules.device_mapper.requests.in_flight {
            InFlight::Tags if !bios => At::Tags,
            InFlight::Counted | InFlight::Tags => At::Drain,
        })
    }

    /// blk_mq_start_stopped_hw_queues(): one hctx a label.
    fn start(&mut self, cx: &mut Cx<'_>) -> Next {
        if let Some(bios) = &cx.q.own_mapped().bios {
            bios.blocked.clear(cx.cpu);
            let (queue, what) = (self.queue, BioWork::Deferred);
            cx.cpu.outbox.push(Effect::BioWork { queue, what });
            return self.to(At::Over);
        }
        if cx.q.single.is_some() {
            self.at = At::StartSingle;
            return Next::Lock(queue_lock(self.queue));
        }
        if suspension(cx.q) == Suspension::Quiesces {
            return self.want_queue_lock(At::Unquiesce);
        }
        let Some(hctx) = self.next_hctx(cx.q) else {
            return self.to(match suspension(cx.q) {
                Suspension::Stops => At::Over,
                Suspension::StopsAndWaits | Suspension::Quiesces => At::Kick,
            });
        };
        match cx.mq.start_hctx(self.queue, hctx, cx.cpu) {
            true => cx.run(hctx, true),
            false => Next::Step,
        }
    }

    fn next_hctx(&mut self, q: &RequestQueue) -> Option<HctxId> {
        let next = self.hctx;
        let left = usize::from(next.0) < q.hctxs.len();
        self.hctx = match left {
            true => HctxId(next.0 + 1),
            false => HctxId(0),
        };
        left.then_some(next)
    }

    fn send(self, what: ToTarget, cpu: &mut Cpu) -> Next {
        let queue = self.queue;
        Next::call(cpu, Call::Target { queue, what })
    }

    fn wait(self, event: Event, cpu: &mut Cpu) -> Next {
        let (queue, what) = (self.queue, Wait::For(event));
        Next::call(cpu, Call::Wait { queue, what })
    }

    fn want_queue_lock(&mut self, at: At) -> Next {
        self.at = at;
        lock(self.queue, LockKind::Queue, 0)
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }
}

fn suspension(q: &RequestQueue) -> Suspension {
    q.settings.rules.device_mapper.requests.suspension
}

/// blk_mq_queue_inflight().
fn in_flight(q: &RequestQueue) -> bool {
    q.with_pool(|pool| pool.iter().any(|(_, rq)| rq.is_started()))
}
