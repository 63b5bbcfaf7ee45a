//! limit_depth() of a scheduler with one lock: most answer without it, some take it.
//!
//! Kernel: bfqq_request_over_limit() in block/bfq-iosched.c is one that takes it (v6.1, v6.12).

use super::{Locked, Scheduler, now};
use crate::elevator::Wanted;
use crate::env::Cpu;
use crate::queue::{LockId, RequestQueue};

impl<P: Scheduler + 'static> Locked<P> {
    /// The depth limit of the policy for this allocation.
    pub(crate) fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        self.policy.inspect(|policy| policy.limit_depth(wanted))
    }

    /// The lock, if the limit of this allocation needs it.
    #[inline]
    pub(crate) fn limit_depth_lock(&self, q: &RequestQueue, wanted: Wanted) -> Option<LockId> {
        let locks = self
            .policy
            .inspect(|policy| policy.limits_under_lock(wanted));
        locks.then(|| self.lock(q))
    }

    /// Under the lock, up to the release.
    pub(crate) fn limit_depth_locked(
        &self,
        q: &RequestQueue,
        wanted: Wanted,
        cpu: &mut Cpu,
    ) -> Option<u32> {
        let now = now(q, cpu);
        let depth = self.policy.held(cpu).limit_depth_locked(wanted, now);
        self.emit_log(q, cpu);
        self.settle(q, cpu);
        self.policy.release(cpu);
        depth
    }
}
