//! A burst: labels of one level of one CPU, one after another, with the locks between them.
//!
//! All of this works on one CPU's state, so it is borrowed once. Work that concerns others -
//! events, devices, tasks - ends the burst and is done by `step.rs`. With `blkmq::drive`, the loop
//! itself, a run spends most of its time here.

use core::hint::cold_path;

use blkmq::drive::{Context, Stack};
use blkmq::env::{Cpu, Misses};
use blkmq::queue::{BlkMq, LockId, LockKind};
use blkmq::request::{CpuId, HctxId, QueueId, RequestId};
use blkmq::time::SimTime;

use super::RUN_AHEAD;
use super::arbiter::{Contender, OWNERS, TakeOver};
use super::cpu::{CpuState, HeldLock, Level, LevelState, Wait};
use super::cpus::{Core, Cpus};
use crate::cost::{CostModel, Step};
use crate::recorder::Recorder;
use cpu_driver::{CpuDriver, NO_LOCK};

mod cpu_driver;

/// Why a burst ended. A path's request is about the queue that it works on. A tag and one number,
/// to be returned in registers: docs/decisions/0002.
pub(super) enum Stop {
    /// Others are due first: it continues when its time comes.
    Later,
    /// It spins: a grant or an interrupt lets it continue.
    Waits,
    /// An interrupt is to be taken.
    Interrupt,
    /// No frame is left: the level itself decides what comes next.
    Turn,
    /// The last label left effects.
    Effects,
    Offer(RequestId),
    /// The same with `bd.last`.
    OfferLast(RequestId),
    Budget,
    PutBudget(u32),
    AskBusy(QueueId),
    Commit(HctxId),
    /// The task sleeps until it is woken for a tag.
    Park,
    Grace,
    /// The queue's scheduler is exchanged for this further one.
    Exchange(usize),
}

impl Cpus {
    /// Runs the level until it must wait, makes a request to the rest of the machine, or is between
    /// frames.
    #[inline]
    pub(super) fn run(&mut self, mq: &BlkMq, id: CpuId, recorder: &mut Recorder) -> Stop {
        let (cpu, core) = self.split(id);
        if cpu.between_frames() {
            pause(cpu, core)
        } else {
            burst(cpu, core, mq, recorder)
        }
    }

    /// The first waiter gets the lock. Returns the CPU, if it continues with the lock.
    pub(super) fn grant_first(&mut self, mq: &BlkMq, slot: usize) -> Option<CpuId> {
        let now = self.core.now;
        let who = self.core.arbiter.grant_first(slot, now)?;
        if self.core.follower.is_some() {
            self.note_grant(mq, who);
        }
        let (id, level) = cpu_of(who);
        let (cpu, core) = self.split(id);
        let Wait::Spin(lock) = cpu.levels[level].wait else {
            unreachable!("only a spinning level waits")
        };
        if cpu.level as usize != level {
            cpu.irq_off -= u32::from(lock.masks_irq());
            cpu.levels[level].wait = Wait::Got(lock);
            return None;
        }
        let caller = (id, &cpu.levels[level].stack);
        let step = match core.take_over(mq, (lock, slot), caller, now.0 * 1000) {
            TakeOver::Free => {
                cpu.count_spin(now.0 * 1000);
                Step::LockFree
            }
            TakeOver::At { at_ps, .. } => {
                cpu.count_spin(at_ps);
                Step::LockHandoff
            }
        };
        let since = cpu.at();
        cpu.env.owner = owner(id, cpu.level);
        let price = acquire(mq, &core.costs, lock, step, &mut cpu.env);
        core.spent.step(step, price);
        let mode = cpu.kernel_mode();
        cpu.spend(price, mode);
        let slot = slot as u32;
        cpu.levels[level].held.add(HeldLock { lock, slot, since });
        cpu.levels[level].wait = Wait::None;
        Some(id)
    }
}

/// Labels of the running level until one must wait or makes a request to the rest of the machine,
/// or the CPU has run ahead so far that others may be due.
#[inline]
fn burst(cpu: &mut CpuState, core: &mut Core, mq: &BlkMq, recorder: &mut Recorder) -> Stop {
    let now = core.now;
    let level = cpu.level;
    let mode = cpu.kernel_mode();
    let resched = !cpu.runqueue.is_empty() && cpu.at() >= cpu.slice_end;
    let CpuState {
        env,
        levels,
        irq_off,
        ..
    } = cpu;
    let LevelState { stack, wait, held } = &mut levels[level as usize];
    let began = env.at_ps;
    env.owner = owner(env.id, level);
    env.need_resched = resched;
    let limit = (now + RUN_AHEAD).0 * 1000;
    let mut cpu_driver = CpuDriver {
        limit,
        ahead: limit,
        level,
        wait,
        locks: env.locks_held(),
        shared: cpu.shared,
        cut: cpu.interrupted && level != Level::Hardirq,
        taken: NO_LOCK,
        spun: 0,
        irq_off,
        held,
        core,
        mq,
        pool: &mq.queues[0].pool,
        task: cpu.current,
        recorder,
    };
    let stop = cpu_driver.run(Context { cpu: env, stack });
    let (spent, spun) = (env.at_ps - began, cpu_driver.spun);
    cpu.count(spent - spun, mode);
    cpu.spun(spun);
    stop
}

/// Result of a burst without labels.
#[inline]
fn pause(cpu: &CpuState, core: &mut Core) -> Stop {
    let at = cpu.at();
    if at >= core.now + RUN_AHEAD {
        if core.events.next_time() <= at {
            return Stop::Later;
        }
        core.now = at;
    }
    if cpu.interrupted && cpu.level != Level::Hardirq && cpu.irq_off == 0 {
        return Stop::Interrupt;
    }
    Stop::Turn
}

impl Core {
    /// The first waiter takes over a lock that was granted to it.
    fn take_over(
        &mut self,
        mq: &BlkMq,
        (lock, slot): (LockId, usize),
        (cpu, stack): (CpuId, &Stack),
        at_ps: u64,
    ) -> TakeOver {
        let Core {
            arbiter, polling, ..
        } = self;
        let taken = arbiter.take_over(slot, mq.spin_lock(lock).word(), polling, at_ps);
        if let Some(watch) = &mut arbiter.watch
            && let TakeOver::At { at_ps, waited } = taken
        {
            cold_path();
            let caller = stack.last().expect("a path asked for it").label();
            watch.granted(slot, (cpu, caller), waited, SimTime(at_ps / 1000));
        }
        taken
    }
}

/// The number of a lock's owner or waiter: differs for each level of each CPU.
pub(super) fn owner(id: CpuId, level: Level) -> Contender {
    u32::from(id.0) * OWNERS + level as u32
}

/// CPU and level of an owner.
pub(super) fn cpu_of(owner: Contender) -> (CpuId, usize) {
    (CpuId((owner / OWNERS) as u16), (owner % OWNERS) as usize)
}

/// The same as observers count: three levels a CPU.
pub(super) fn context(owner: Contender) -> usize {
    (owner / OWNERS * 3 + owner % OWNERS) as usize
}

/// The CPU takes a lock. Returns the time of that, picoseconds.
fn acquire(mq: &BlkMq, costs: &CostModel, lock: LockId, step: Step, env: &mut Cpu) -> u64 {
    mq.acquire(lock, env);
    let (work, misses) = env.meter.take();
    costs.step(step) + work + misses.alone()
}

/// Cache misses of words and requests in one label.
#[inline]
fn both(words: Option<Misses>, requests: Option<Misses>, cpu: &Cpu) -> Option<Misses> {
    match (words, requests) {
        (Some(words), Some(requests)) => Some(words.with(requests, cpu.meter.tariff.overlap)),
        (Some(alone), None) | (None, Some(alone)) => Some(alone),
        (None, None) => None,
    }
}

/// Locks that are contended: requested in exact order of time. The others are held for so short
/// that a CPU may take them while it runs ahead, if they are free.
fn is_exact(lock: LockId) -> bool {
    matches!(lock.kind(), LockKind::Elevator | LockKind::Dispatch)
}
