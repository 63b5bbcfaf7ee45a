//! Runs that are followed as schedules of `specs/Restart` or `specs/Dispatch`, and the hooks that
//! tell what happens.
//!
//! Off by default: a hook is then one look at an `Option`, and none is in the loop of labels.

use blkmq::env::Cpu;
use blkmq::path::{Next, Toll};
use blkmq::queue::{LockId, LockKind};
use blkmq::request::{CpuId, QueueId};
use blkmq::schedule::Schedule;

use super::Simulator;
use super::arbiter::Contender;
use super::cpu::{Level, Stack, Wait};
use super::stretch::Lane;
use crate::binding::{Binding, Who, Wrong};

impl Simulator {
    /// Follows the run as a schedule of `specs/Restart` or `specs/Dispatch`, whichever the plan is
    /// of, with a defect made on purpose if one is given. To be called before the run. An error:
    /// the plan is of neither.
    pub fn follow_schedule(&mut self, wrong: Option<Wrong>) -> Result<(), String> {
        self.core.binding = Some(Box::new(Binding::new(&self.plan, wrong)?));
        Ok(())
    }

    /// The run so far as a schedule. `stalled`: how it ended. An error: something happened that
    /// the specification has not. Panics if the run was not followed.
    pub fn take_schedule(&mut self, stalled: bool) -> Result<Schedule, String> {
        let binding = self.core.binding.take();
        let mut binding = binding.expect("the run is followed");
        binding.schedule(&self.mq, &self.plan, stalled)
    }

    /// A work item is to run.
    pub(super) fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        if let Some(binding) = &mut self.core.binding {
            binding.item(queue, delayed);
        }
    }

    /// A work item begins on a CPU.
    pub(super) fn item_begins(&mut self, id: CpuId, queue: QueueId) {
        if let Some(binding) = &mut self.core.binding {
            binding.work_begins(&self.mq, lane(id, Level::Task), queue);
        }
    }

    /// The first in line gets the lock that it spins for, though it may be interrupted.
    #[cold]
    pub(super) fn note_grant(&mut self, who: Contender) {
        let level = &self.cpus[who as usize / 3].levels[who as usize % 3];
        if let (Some(binding), Wait::Spin(lock)) = (&mut self.core.binding, level.wait)
            && lock.kind() == LockKind::Elevator
        {
            binding.granted(&self.mq, who as usize);
        }
    }
}

/// A limit that stops behind the label. One loop drives all runs: with a second one the compiler
/// would make calls of what is inlined into the first.
const STOP: u64 = 0;

/// Number of a level of a CPU.
fn lane(id: CpuId, level: Level) -> usize {
    usize::from(id.0) * 3 + level as usize
}

impl Lane<'_> {
    /// `Frame::drive` of the top frame with a look behind each label.
    #[cold]
    pub(super) fn drive_bound(&mut self, stack: &mut Stack, env: &mut Cpu, level: Level) -> Next {
        let who = Who {
            lane: lane(env.id, level),
            depth: stack.depth() - 1,
        };
        let frame = stack.top().expect("a frame is to be driven");
        let mq = self.mq;
        loop {
            let was = *frame;
            if let Some(binding) = self.binding() {
                binding.settle(mq);
            }
            let limit = core::mem::replace(&mut self.limit, STOP);
            let mut next = frame.drive(mq, env, self);
            self.limit = limit;
            if let Some(binding) = self.binding() {
                next = binding.note(mq, who, (&was, frame), next, env);
            }
            if !env.is_quiet() || env.at_ps >= limit {
                return next;
            }
            match next {
                Next::Step => {}
                Next::Lock(lock) if self.lock(lock, env) => self.note_lock(lock, env, true),
                Next::TryLock(lock) if self.try_lock(lock, env) => {}
                Next::InTime if self.in_time(env) => {}
                next => return next,
            }
        }
    }

    /// A lock was taken at once, or tried in vain.
    #[cold]
    pub(super) fn note_lock(&mut self, lock: LockId, env: &Cpu, taken: bool) {
        let mq = self.mq;
        // As `owner` has it.
        let lane = (env.owner / 4 * 3 + env.owner % 4) as usize;
        if let (Some(binding), LockKind::Elevator) = (self.binding(), lock.kind()) {
            match taken {
                true => binding.granted(mq, lane),
                false => binding.contended(mq, lane),
            }
        }
    }
}
