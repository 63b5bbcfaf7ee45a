//! Observers of a run, and the hooks that call them.
//!
//! None by default: a hook is then one look at an `Option`, and none is in the loop of labels.

use blkmq::drive::Follower;
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, QueueId};

use super::Simulator;
use super::arbiter::Contender;
use super::burst::{context, cpu_of, owner};
use super::cpu::{Level, Wait};
use super::cpus::Cpus;

impl Simulator {
    /// Attaches an observer. Contexts are levels of CPUs, three a CPU: task, softirq, interrupt. To
    /// be called before the run.
    pub fn follow(&mut self, follower: Box<dyn Follower>) {
        self.cpus.core.follower = Some(follower);
    }

    /// Detaches the observer. Panics if there is none.
    pub fn take_follower(&mut self) -> Box<dyn Follower> {
        self.cpus.core.follower.take().expect("the run is followed")
    }
}

impl Cpus {
    pub(super) fn item_queued(&mut self, queue: QueueId, delayed: bool) {
        if let Some(follower) = &mut self.core.follower {
            follower.item_queued(queue, delayed);
        }
    }

    /// A work item begins on a CPU.
    pub(super) fn item_begins(&mut self, mq: &BlkMq, id: CpuId, queue: QueueId) {
        if let Some(follower) = &mut self.core.follower {
            let context = context(owner(id, Level::Task));
            follower.item_begins(mq, context, queue);
        }
    }

    /// The first in the queue gets the lock that it spins for, though it may be interrupted.
    #[cold]
    pub(super) fn note_grant(&mut self, mq: &BlkMq, who: Contender) {
        let (id, level) = cpu_of(who);
        let (cpu, core) = self.split(id);
        if let (Some(follower), Wait::Spin(lock)) = (&mut core.follower, cpu.levels[level].wait) {
            follower.granted(mq, context(who), lock);
        }
    }
}
