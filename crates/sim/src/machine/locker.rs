//! A thread that takes a lock, holds it, lets it go, and thinks: again and again.
//!
//! The lock is hctx->lock of the first queue, which nothing else uses in such a run: asked for,
//! granted, handed over and released as every lock of the machine is (`stretch.rs`, `arbiter.rs`).
//! After lock_torture_writer() (kernel/locking/locktorture.c, v6.12).

use blkmq::env::{Lock as _, Solo};
use blkmq::queue::{BlkMq, LockId, LockKind};
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use super::cpu::{Mode, Wait};
use super::cpus::Cpus;
use super::task::{Program, TaskId, Turn};
use super::tasks::Tasks;
use crate::plan::{LockerPlan, Plan};
use crate::rng::Rng;

/// What it is called in reports.
pub(super) const NAME: &str = "spin lock";

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct Locker {
    // Settings.
    plan: LockerPlan,

    // State.
    /// It has asked for the lock; when it goes on, it has it.
    asked: bool,
    holds: Rng,
    count_from: SimTime,
    end_at: SimTime,
    /// Unlocks in the measured time.
    pub(super) operations: u64,
}

/// The lock.
fn lock() -> LockId {
    LockId::new(QueueId(0), LockKind::Dispatch, 0)
}

impl Locker {
    pub(super) fn new(plan: &LockerPlan, seed: u64) -> Locker {
        let stream = format!("hold/locker{}.{}", plan.group, plan.clone);
        Locker {
            plan: plan.clone(),
            asked: false,
            holds: Rng::stream(seed, &stream),
            count_from: SimTime::ZERO,
            end_at: SimTime::NEVER,
            operations: 0,
        }
    }

    /// Asks for the lock, or lets it go. Apart, as no thread that does I/O comes here.
    #[cold]
    pub(super) fn turn(&mut self, cpus: &mut Cpus, mq: &BlkMq<Solo>, id: CpuId) -> Turn {
        if self.asked {
            self.asked = false;
            let hold = self.hold();
            spend(cpus, id, hold);
            let queue = mq.queue(lock().queue());
            let hctx = lock().index() as usize;
            cpus.unlock(mq, id, |env| queue.hctxs[hctx].dispatch.release(env));
            let at = cpus.at(id);
            self.operations += u64::from(at >= self.count_from && at <= self.end_at);
            return Turn::Again;
        }
        spend(cpus, id, self.plan.think);
        if cpus.at(id) >= self.end_at {
            return Turn::Exit;
        }
        cpus[id].level_state().wait = Wait::Ask(lock());
        self.asked = true;
        Turn::Again
    }

    fn hold(&mut self) -> Duration {
        let every = self.plan.long_hold_every;
        if every > 0 && self.holds.chance(1, every) {
            self.plan.long_hold
        } else {
            self.plan.hold
        }
    }
}

/// Time that is given: as long beside a busy sibling as alone.
fn spend(cpus: &mut Cpus, id: CpuId, time: Duration) {
    cpus[id].spend(time.0 * 1000, Mode::System);
}

/// All threads begin. From when on all of them count.
pub(super) fn start(cpus: &mut Cpus, tasks: &mut Tasks) -> SimTime {
    let now = cpus.core.now;
    let mut measure_from = now;
    let lockers = tasks.iter().filter_map(|(id, task)| match task.program {
        Program::Locker(_) => Some(id),
        _ => None,
    });
    let lockers: Vec<TaskId> = lockers.collect();
    for id in lockers {
        let Program::Locker(locker) = &mut tasks[id].program else {
            continue;
        };
        locker.count_from = now + locker.plan.ramp_time;
        locker.end_at = locker.count_from + locker.plan.runtime;
        measure_from = measure_from.max(locker.count_from);
        tasks.sleep_until(cpus, id, now);
        tasks.running += 1;
    }
    measure_from
}

/// Operations of each thread, in the order of the plan.
pub(super) fn operations(tasks: &Tasks, plan: &Plan) -> Vec<u64> {
    let mut all = Vec::with_capacity(plan.lockers.len());
    for (_, task) in tasks.iter() {
        if let Program::Locker(locker) = &task.program {
            all.push(locker.operations);
        }
    }
    all
}
