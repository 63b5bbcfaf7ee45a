//! A dispatch call: the policy picks under the scheduler's lock.
//!
//! With tokens: `token.rs`. Kernel: dd_dispatch_request() in block/mq-deadline.c and its
//! counterparts in other schedulers (6.1.192, 6.12.117).

use super::token::Tokens;
use super::{Locked, Scheduler, set_timer};
use crate::elevator::scheduler::{DispatchTime, LEVELS};
use crate::env::Cpu;
use crate::names::Label;
use crate::queue::RequestQueue;
use crate::request::{HctxId, Place, RequestId, RequestPool};
use crate::step::{Next, Sub, jiffies};
use crate::time::Jiffies;

/// Counts of finished requests by level.
type Completed = [u32; LEVELS];

/// The time of a dispatch call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Asked(Jiffies);

impl Asked {
    /// Before the lock: dd_dispatch_request() reads the clock there.
    pub(crate) fn now(q: &RequestQueue, cpu: &mut Cpu) -> Asked {
        Asked(jiffies(q, cpu))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct DispatchPath {
    pub(super) asked: Asked,
    pub(super) tokens: Tokens,
}

impl DispatchPath {
    /// The caller names the only label.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn label(self) -> Option<Label> {
        None
    }

    /// The label that picks a request also returns it.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn picked(self) -> Option<RequestId> {
        None
    }
}

impl<P: Scheduler + 'static> Locked<P> {
    pub(crate) fn start_dispatch(
        &self,
        q: &RequestQueue,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> (DispatchPath, Next) {
        let path = DispatchPath {
            asked: Asked::now(q, cpu),
            tokens: Tokens::of(self.info, hctx),
        };
        (path, Next::Lock(self.lock(q)))
    }

    pub(crate) fn dispatch(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<Option<RequestId>> {
        if !self.info.tokens.is_empty() {
            return self.dispatch_by_token(path, q, cpu);
        }
        let picked = self.pick(&mut path.asked, q, cpu);
        self.policy.release(cpu);
        Sub::Done(picked)
    }

    /// Under the lock, which is kept.
    pub(crate) fn pick(
        &self,
        asked: &mut Asked,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Option<RequestId> {
        self.picks(asked, q, cpu, |policy, pool, time, completed| {
            policy.dispatch(pool, time, completed)
        })
    }

    #[inline]
    pub(super) fn picks(
        &self,
        asked: &mut Asked,
        q: &RequestQueue,
        cpu: &mut Cpu,
        pick: impl FnOnce(&mut P, &mut RequestPool, DispatchTime, Completed) -> Option<RequestId>,
    ) -> Option<RequestId> {
        let now = self.now_of_task(q, cpu);
        let time = DispatchTime {
            entered: core::mem::take(asked).0,
            locked: now.tick,
            time: now.time,
            kept: now.kept,
        };
        let completed = core::array::from_fn(|level| self.completed[level].read(cpu) as u32);
        let mut pool = q.pool.held(cpu.id);
        let mut policy = self.policy.held(cpu);
        let picked = pick(&mut policy, &mut pool, time, completed);
        let (more, charge) = (policy.has_work(), policy.take_charge());
        let ask = policy.take_timer();
        drop(policy);
        if let Some(rq) = picked {
            assert_eq!(pool[rq].place, Place::Path, "{rq:?} was not let go");
        }
        drop(pool);
        self.emit_log(q, cpu);
        self.read(q, cpu);
        self.charge(charge, cpu);
        if !more && self.work.peek() {
            self.work.mirror(cpu, false);
        }
        set_timer(ask, q, cpu);
        picked
    }
}
