//! A hook: the work of a scheduler under its lock when a request ends or is requeued, a task exits,
//! or its timer expires.

use super::{Locked, Scheduler, now};
use crate::call::Hook;
use crate::elevator::After;
use crate::env::Cpu;
use crate::names::Label;
use crate::queue::RequestQueue;
use crate::step::{Next, Sub};

/// A hook in progress: one section, which the caller names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct HookPath {
    asked: bool,
}

impl HookPath {
    /// The caller names the only label.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn label(self) -> Option<Label> {
        None
    }
}

impl<P: Scheduler + 'static> Locked<P> {
    pub(crate) fn hook(
        &self,
        path: &mut HookPath,
        hook: Hook,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<After> {
        if !core::mem::replace(&mut path.asked, true) {
            return Sub::Wait(Next::Lock(self.lock(q)));
        }
        let now = now(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        let mut policy = self.policy.held(cpu);
        let after = match hook {
            Hook::Completed(rq) => policy.completed(&mut pool, rq, now),
            Hook::Requeued(rq) => policy.requeued(&mut pool, rq, now),
            Hook::Finished(rq) => policy.finished(&mut pool, rq, now),
            Hook::Exits(io_context) => policy.exits(&mut pool, io_context, now),
            Hook::Timer(timer) => policy.timer(&mut pool, timer, now),
        };
        drop(policy);
        drop(pool);
        self.settle_all(q, cpu);
        self.policy.release(cpu);
        Sub::Done(after)
    }
}
