//! A hook: the work of a scheduler under its lock when a request ends or is requeued, a task exits,
//! or its timer expires.

use super::{Locked, Ops as _, Scheduler, lock, now};
use crate::call::Hook;
use crate::elevator::After;
use crate::elevator::scheduler::CalledOn;
use crate::env::Cpu;
use crate::queue::RequestQueue;
use crate::step::Cx;
use steps::steps;

/// bfq_finish_requeue_request(), bfq_idle_slice_timer() and their like: one section, which the
/// caller names.
#[steps]
pub(crate) fn call_hook(cx: &mut Cx<'_>, hook: Hook) -> After {
    if let Hook::Requeued(rq) | Hook::Finished(rq) = hook
        && !cx.q.elevator.ends(&cx.pool()[rq])
    {
        return After::Nothing;
    }
    lock!(_, lock(cx));
    cx.q.elevator.hook(cx, hook)
}

/// bfq_schedule_dispatch() is called under the lock.
pub(crate) fn runs_under_lock(q: &RequestQueue, hook: Hook) -> bool {
    let unlocks = q.settings.rules.fair_queueing.timer_unlocks;
    q.single.is_none() && !(unlocks && matches!(hook, Hook::Timer(_)))
}

impl<P: Scheduler + 'static> Locked<P> {
    /// Under the lock, up to the release. If the hardware queues are to be run under it, the caller
    /// runs them and releases it ([`runs_under_lock`]).
    pub(super) fn hook_section(&self, q: &RequestQueue, hook: Hook, cpu: &mut Cpu) -> After {
        let now = now(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        let on = CalledOn::by(cpu.id);
        let mut policy = self.policy.held(cpu);
        policy.called_on(on);
        let after = match hook {
            Hook::Completed(rq) => policy.completed(&mut pool, rq, now),
            Hook::Requeued(rq) => policy.requeued(&mut pool, rq, now),
            Hook::Finished(rq) => policy.finished(&mut pool, rq, now),
            Hook::Exits(io_context) => policy.exits(&mut pool, io_context, now),
            Hook::Timer(timer) => policy.timer(&mut pool, timer, now),
        };
        drop(policy);
        drop(pool);
        self.settle(q, cpu);
        if after != After::RunQueues || !runs_under_lock(q, hook) {
            self.policy.release(cpu);
        }
        after
    }
}
