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
use crate::call::{BioWork, Call, Event, RunBy, RunHow, ToTarget};
use crate::elevator::queue_lock;
use crate::env::{Answer, Effect};
use crate::queue::{LockKind, RequestQueue};
use crate::request::{HctxId, QueueId};
use crate::rules::{InFlight, Suspension};
use crate::step::{Cx, Next, labels};
use crate::time::Duration;
use steps::steps;

pub use suspend_or_resume::State as SuspendPath;

/// How long it sleeps between two checks of the tags.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// dm_suspend(), or dm_resume() of a device that is suspended.
#[steps(path)]
pub fn suspend_or_resume(cx: &mut Cx<'_>, what: Suspends) {
    match what {
        Suspends::Begin { noflush } => sub!(dm_suspend(noflush)),
        Suspends::End => sub!(dm_resume()),
    }
}

/// A call of `dmsetup`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Suspends {
    Begin {
        /// Held I/O stays where it is.
        noflush: bool,
    },
    #[default]
    End,
}

/// __dm_suspend(), then multipath_postsuspend().
#[steps]
fn dm_suspend(cx: &mut Cx<'_>, noflush: bool) {
    /// Call the target (presuspend).
    at!(Presuspend);
    /// Stop the next hctx (4.12), or ask for the lock; a bio-based device: new bios wait.
    call!(Stop, target(cx.q.id, ToTarget::Suspend { noflush }));
    sub!(stop_queue());
    // dm_wait_for_completion()
    if looks_at_tags(cx.q) {
        /// Has any tag a request that was started (6.1)? Then check again later.
        at!(Tags);
        while in_flight(cx.q) {
            let (waiter, after) = (cx.cpu.task, LOOK_AGAIN);
            cx.cpu.outbox.push(Effect::WakeLater { waiter, after });
            at!(Tags, Next::Park);
        }
        /// The device is suspended: call the target.
        at!(Suspended);
    } else {
        if cx.q.single.is_some() {
            /// Wait until the device's thread has mapped its requests.
            at!(Flush);
            let (queue, waiter) = (cx.q.id, cx.cpu.task);
            cx.cpu.outbox.push(Effect::FlushMapper { queue, waiter });
            at!(Drain, Next::Park);
        } else {
            /// Wait until the device counts nothing in flight (4.20, or bios).
            at!(Drain);
        }
        call!(Suspended, wait(cx.q.id, Event::NothingInFlight));
    }
    /// Wait for activations of paths, and allow no more (postsuspend).
    call!(NoActivations, target(cx.q.id, ToTarget::Suspended));
    let stops = target(cx.q.id, ToTarget::StopActivations);
    /// Are there any?
    let answer = ask!(Activations, cx.call(stops));
    if answer == Answer::GoOn {
        /// None is in progress: they may begin again.
        call!(Activated, wait(cx.q.id, Event::NothingActivated));
        call!(Over, target(cx.q.id, ToTarget::AllowActivations));
    } else {
        /// The end.
        at!(Over);
    }
}

/// dm_stop_queue(), and the wait for runs that have begun.
#[steps]
fn stop_queue(cx: &mut Cx<'_>) {
    if let Some(bios) = &cx.q.own_mapped().bios {
        bios.blocked.set(cx.cpu);
    } else if cx.q.single.is_some() {
        /// Under the lock of a single-queue one: the driver's function is called no more.
        lock!(StopSingle, Next::Lock(queue_lock(cx.q.id)));
        let own = SqQueue::of(cx.mq, cx.q.id);
        own.single.stopped.mirror(cx.cpu, true);
        own.unlock(cx.cpu);
        return;
    } else if suspension(cx.q) == Suspension::Quiesces {
        /// Under queue_lock: no run begins any more (4.20).
        lock!(Quiesce, cx.lock(LockKind::Queue, 0));
        cx.q.quiesce(cx.cpu);
        cx.q.queue_lock.release(cx.cpu);
    } else {
        // blk_mq_stop_hw_queues()
        let mut hctx: HctxId = HctxId(0);
        while usize::from(hctx.0) < cx.q.hctxs.len() {
            cx.mq.stop_hctx(cx.q.id, hctx, cx.cpu);
            hctx.0 += 1;
            at!(Stop);
        }
        if suspension(cx.q) == Suspension::Stops {
            return;
        }
    }
    /// Wait for the current runs (synchronize_rcu, 4.12).
    at!(Grace);
    loop {
        /// Have they ended?
        let answer = ask!(Settled, Next::Grace);
        if answer == Answer::GoOn {
            return;
        }
    }
}

/// __dm_resume(), dm_start_queue().
#[steps]
fn dm_resume(cx: &mut Cx<'_>) {
    /// Call the target (resume).
    at!(Resume);
    /// Start the next hctx (4.12), or ask for the lock.
    call!(Start, target(cx.q.id, ToTarget::Resume));
    if let Some(bios) = &cx.q.own_mapped().bios {
        bios.blocked.clear(cx.cpu);
        let (queue, what) = (cx.q.id, BioWork::Deferred);
        cx.cpu.outbox.push(Effect::BioWork { queue, what });
        at!(Over);
        return;
    }
    if cx.q.single.is_some() {
        /// Under the lock of a single-queue one: the driver's function is called.
        lock!(StartSingle, Next::Lock(queue_lock(cx.q.id)));
        let single = cx.q.single.as_ref().expect("of the single-queue kind");
        if single.stopped.peek() {
            single.stopped.mirror(cx.cpu, false);
            let (queue, by) = (cx.q.id, RunBy::Holder);
            call!(Started, Call::SingleRun { queue, by });
        } else {
            /// The driver's function was called, still under the lock.
            at!(Started);
        }
        SqQueue::of(cx.mq, cx.q.id).unlock(cx.cpu);
        at!(Over);
        return;
    }
    if suspension(cx.q) == Suspension::Quiesces {
        /// Under queue_lock: runs may begin again (4.20).
        lock!(Unquiesce, cx.lock(LockKind::Queue, 0));
        let runs = cx.q.unquiesce(cx.cpu);
        cx.q.queue_lock.release(cx.cpu);
        if runs {
            /// Run all hctxs, in the background.
            at!(Run);
            let (queue, how) = (cx.q.id, RunHow::Background);
            call!(Kick, Call::RunQueues { queue, how });
        } else {
            at!(Kick);
        }
    } else {
        // blk_mq_start_stopped_hw_queues()
        let mut hctx: HctxId = HctxId(0);
        while usize::from(hctx.0) < cx.q.hctxs.len() {
            let mut next = Next::Step;
            if cx.mq.start_hctx(cx.q.id, hctx, cx.cpu) {
                next = cx.run(hctx, true);
            }
            hctx.0 += 1;
            at!(Start, next);
        }
        if suspension(cx.q) == Suspension::Stops {
            at!(Over);
            return;
        }
        /// The requeue list is kicked (4.12).
        at!(Kick);
    }
    let queue = cx.q.id;
    cx.cpu.outbox.push(Effect::KickRequeue { queue });
    at!(Over);
}

labels! {
    pub enum At in "suspend" of suspend_or_resume dm_suspend stop_queue dm_resume
}

impl SuspendPath {
    /// It waits until all I/O in flight has ended.
    pub fn drains(&self) -> bool {
        [At::Tags.label(), At::Suspended.label()].contains(&self.label)
    }
}

fn target(queue: QueueId, what: ToTarget) -> Call {
    Call::Target { queue, what }
}

fn wait(queue: QueueId, event: Event) -> Call {
    Call::Wait { queue, event }
}

/// A queue of requests whose tags show what is in flight: the device does not count it (6.1).
fn looks_at_tags(q: &RequestQueue) -> bool {
    let counts = q.own_mapped().bios.is_some() || q.single.is_some();
    let in_flight = q.settings.rules.device_mapper.requests.in_flight;
    in_flight == InFlight::Tags && !counts
}

fn suspension(q: &RequestQueue) -> Suspension {
    q.settings.rules.device_mapper.requests.suspension
}

/// blk_mq_queue_inflight().
fn in_flight(q: &RequestQueue) -> bool {
    q.with_pool(|pool| pool.iter().any(|(_, rq)| rq.is_started()))
}
