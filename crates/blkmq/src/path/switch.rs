//! A write to queue/scheduler of a live queue: freeze, drain, quiesce, exchange, and back.
//!
//! The exchange itself is in `queue/exchange.rs`. One writer at a time: q->sysfs_lock is not
//! modelled. Kernel: queue_attr_store() in block/blk-sysfs.c, elevator_switch(), elevator_disable()
//! in block/elevator.c, blk_mq_freeze_queue(), blk_mq_quiesce_queue() in block/blk-mq.c (6.1.192,
//! 6.12.117).

use super::run_queues::call_run_queues;
use super::wait::wake_all;
use crate::call::{Call, Event, RunHow, Wait};
use crate::env::{Answer, Cpu};
use crate::names::labels;
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::QueueId;
use crate::rules::AttributeStore;
use crate::step::{Cx, Next, lock};

labels! {
    pub enum At in "switch" {
        /// Is that another scheduler? (v6.12: freeze first, then check.)
        Store,
        /// New bios wait from now on.
        Freeze,
        /// Run all hctxs: waiting requests are dispatched and end.
        Run,
        /// Wait until the last user has left.
        Drain,
        /// The queue has no user.
        Drained,
        /// Under queue_lock: runs of hardware queues do not begin.
        Quiesce,
        /// Wait for the current runs (synchronize_rcu).
        Grace,
        /// Have they ended? Then the scheduler is exchanged.
        Settled,
        /// The new scheduler is there.
        Exchanged,
        /// Under queue_lock: runs may begin again.
        Unquiesce,
        /// Run all hctxs, in the background.
        Restart,
        /// Bios may enter again.
        Unfreeze,
        /// The waiters were woken.
        Thawed,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwitchPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    /// Index among the queue's further schedulers.
    to: u8,
    /// The number of freezes.
    freezes: u8,
}

impl SwitchPath {
    /// To number `to` of `RequestQueue::further`.
    pub fn new(queue: QueueId, to: u8) -> SwitchPath {
        SwitchPath {
            at: At::Store,
            queue,
            to,
            freezes: 0,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        let without = matches!(at, At::Store | At::Freeze | At::Thawed);
        assert!(self.freezes > 0 || without, "{at:?} without a freeze");
        let usage = mq.queue(self.queue).pool.held(cpu.id).usage;
        assert!(usage.is_frozen() || self.freezes == 0, "{at:?}: it thawed");
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check_over(&self) {
        assert_eq!(self.freezes, 0, "the queue is frozen");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Store => match cx.rules().attribute_store {
                AttributeStore::Plain => self.compare(cx.q),
                AttributeStore::Frozen => self.step_to(At::Freeze),
            },
            At::Freeze => {
                self.freezes += 1;
                match cx.pool().usage.freeze() {
                    true => self.step_to(At::Run),
                    false => self.want_queue_lock(At::Quiesce),
                }
            }
            At::Run => self.run(At::Drain, RunHow::Here, cx.cpu),
            At::Drain => {
                self.at = At::Drained;
                let (queue, what) = (self.queue, Wait::For(Event::LastLeft));
                cx.call(Call::Wait { queue, what })
            }
            At::Drained => match cx.rules().attribute_store {
                AttributeStore::Plain => self.want_queue_lock(At::Quiesce),
                AttributeStore::Frozen => self.compare(cx.q),
            },
            At::Quiesce => {
                cx.q.quiesce(cx.cpu);
                cx.q.queue_lock.release(cx.cpu);
                self.step_to(At::Grace)
            }
            At::Grace => {
                self.at = At::Settled;
                Next::Grace
            }
            At::Settled => match core::mem::take(&mut cx.cpu.answer) {
                Answer::GoOn => {
                    self.at = At::Exchanged;
                    Next::Exchange(u32::from(self.to))
                }
                _ => Next::Grace,
            },
            At::Exchanged => self.want_queue_lock(At::Unquiesce),
            At::Unquiesce => {
                let runs = cx.q.unquiesce(cx.cpu);
                cx.q.queue_lock.release(cx.cpu);
                self.step_to(if runs { At::Restart } else { At::Unfreeze })
            }
            At::Restart => self.run(At::Unfreeze, RunHow::Background, cx.cpu),
            At::Unfreeze => {
                self.freezes -= 1;
                if !cx.pool().usage.unfreeze() {
                    return Next::Step;
                }
                self.at = At::Thawed;
                wake_all(cx.cpu, self.queue)
            }
            At::Thawed => Next::Done,
        }
    }

    /// Only a scheduler other than the current one is a change.
    fn compare(&mut self, q: &RequestQueue) -> Next {
        let same = q.settings.scheduler == q.further[usize::from(self.to)].kind();
        match (same, self.freezes) {
            (true, 0) => Next::Done,
            (true, _) => self.step_to(At::Unfreeze),
            (false, _) => self.step_to(At::Freeze),
        }
    }

    /// blk_mq_run_hw_queues().
    fn run(&mut self, next: At, how: RunHow, cpu: &mut Cpu) -> Next {
        self.at = next;
        call_run_queues(cpu, self.queue, how)
    }

    fn step_to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn want_queue_lock(&mut self, at: At) -> Next {
        self.at = at;
        lock(self.queue, LockKind::Queue, 0)
    }
}
