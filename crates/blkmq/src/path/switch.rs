//! A write to queue/scheduler of a live queue: freeze, drain, quiesce, exchange, and back.
//!
//! The exchange itself is in `queue/exchange.rs`. One writer at a time: q->sysfs_lock is not
//! modelled. Kernel: queue_attr_store() in block/blk-sysfs.c, elevator_switch(), elevator_disable()
//! in block/elevator.c, blk_mq_freeze_queue(), blk_mq_quiesce_queue() in block/blk-mq.c (6.1.192,
//! 6.12.117).

use super::wait::wake_all;
use crate::call::{Call, Event, RunHow};
use crate::env::Answer;
use crate::queue::LockKind;
use crate::rules::AttributeStore;
use crate::step::{Cx, Next, labels};
use steps::steps;

pub use queue_attr_store::State as SwitchPath;

/// queue_attr_store() of number `to` among `RequestQueue::further`.
#[steps(path)]
pub fn queue_attr_store(cx: &mut Cx<'_>, to: u8) {
    /// Is that another scheduler? (v6.12: freeze first, then check.)
    at!(Store);
    if cx.rules().attribute_store == AttributeStore::Frozen {
        sub!(freeze_queue());
    }
    if cx.q.settings.scheduler != cx.q.further[usize::from(to)].kind() {
        sub!(elevator_switch(to));
    }
    if cx.rules().attribute_store == AttributeStore::Frozen {
        at!(Unfreeze);
        sub!(unfreeze_queue());
    }
}

/// elevator_switch(), elevator_disable().
#[steps]
fn elevator_switch(cx: &mut Cx<'_>, to: u8) {
    sub!(freeze_queue());
    /// Under queue_lock: runs of hardware queues do not begin.
    lock!(Quiesce, cx.lock(LockKind::Queue, 0));
    cx.q.quiesce(cx.cpu);
    cx.q.queue_lock.release(cx.cpu);
    /// Wait for the current runs (synchronize_rcu).
    at!(Grace);
    loop {
        /// Have they ended? Then the scheduler is exchanged.
        let answer = ask!(Settled, Next::Grace);
        if answer == Answer::GoOn {
            break;
        }
    }
    /// The new scheduler is there.
    at!(Exchanged, Next::Exchange(u32::from(to)));
    /// Under queue_lock: runs may begin again.
    lock!(Unquiesce, cx.lock(LockKind::Queue, 0));
    let runs = cx.q.unquiesce(cx.cpu);
    cx.q.queue_lock.release(cx.cpu);
    if runs {
        /// Run all hctxs, in the background.
        at!(Restart);
        let (queue, how) = (cx.q.id, RunHow::Background);
        call!(Unfreeze, Call::RunQueues { queue, how });
    } else {
        /// Bios may enter again.
        at!(Unfreeze);
    }
    sub!(unfreeze_queue());
}

/// blk_mq_freeze_queue(): of a frozen queue it only counts.
#[steps]
fn freeze_queue(cx: &mut Cx<'_>) {
    /// New bios wait from now on.
    at!(Freeze);
    if cx.pool().usage.freeze() {
        /// Run all hctxs: waiting requests are dispatched and end.
        at!(Run);
        let (queue, how) = (cx.q.id, RunHow::Here);
        /// Wait until the last user has left.
        call!(Drain, Call::RunQueues { queue, how });
        let (queue, event) = (cx.q.id, Event::LastLeft);
        /// The queue has no user.
        call!(Drained, Call::Wait { queue, event });
    }
}

/// blk_mq_unfreeze_queue(): its label is the caller's.
#[steps]
fn unfreeze_queue(cx: &mut Cx<'_>) {
    if cx.pool().usage.unfreeze() {
        /// The waiters were woken.
        at!(Thawed, wake_all(cx.cpu, cx.q.id));
    }
}

labels! {
    pub enum At in "switch" of queue_attr_store freeze_queue elevator_switch unfreeze_queue
}
