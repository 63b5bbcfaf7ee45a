//! Clones of a job that take turns: each writes its piece out after the clone before it.
//!
//! dump(8): its slaves read at any time, but write to the tape in order, each after a signal of the
//! one before it (dump/tape.c, doslave()); the time of writing is not modelled.

use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::cpu::Mode;
use super::cpus::Cpus;
use super::task::TaskId;
use super::tasks::Tasks;
use crate::cost::Step;
use crate::plan::Plan;

#[derive(Debug, Default)]
struct Ring {
    /// By number of the clone; `None`: it has ended.
    members: Vec<Option<TaskId>>,
    turn: usize,
    /// Start of the current turn.
    since: SimTime,
}

#[derive(Debug)]
pub(super) struct Rings {
    of_job: Vec<Ring>,
}

impl Rings {
    /// The rings of a plan, whose threads are the first tasks.
    pub(super) fn new(plan: &Plan) -> Rings {
        let mut of_job: Vec<Ring> = Vec::new();
        for (task, thread) in (0..).map(TaskId).zip(&plan.threads) {
            let job = usize::from(thread.job);
            of_job.resize_with(of_job.len().max(job + 1), Ring::default);
            of_job[job].members.push(Some(task));
        }
        Rings { of_job }
    }

    /// Since when it is the turn of a clone, or `None`.
    pub(super) fn turn_since(&self, job: u16, clone: u16) -> Option<SimTime> {
        let ring = &self.of_job[usize::from(job)];
        (ring.turn == usize::from(clone)).then_some(ring.since)
    }

    /// The current clone passes the turn to the next one with a signal.
    pub(super) fn pass(&mut self, cpus: &mut Cpus, tasks: &mut Tasks, id: CpuId, job: u16) {
        let ring = &mut self.of_job[usize::from(job)];
        let count = ring.members.len();
        let after = (1..=count).map(|step| (ring.turn + step) % count);
        let Some(next) = after.into_iter().find(|&next| ring.members[next].is_some()) else {
            return;
        };
        cpus.charge_as(id, Step::Syscall, Mode::System);
        cpus.charge_as(id, Step::Wake, Mode::System);
        (ring.turn, ring.since) = (next, cpus.at(id));
        if let Some(task) = ring.members[next] {
            tasks.wake(cpus, task, id, SimTime::ZERO);
        }
    }

    /// A clone ends: the turn skips it.
    pub(super) fn leave(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        id: CpuId,
        (job, clone): (u16, u16),
    ) {
        let ring = &mut self.of_job[usize::from(job)];
        ring.members[usize::from(clone)] = None;
        if ring.turn == usize::from(clone) {
            self.pass(cpus, tasks, id, job);
        }
    }
}
