//! A stretch: labels of one level of one CPU, one after another, with the locks between them.
//!
//! Everything here works on one CPU's state, so it is borrowed once. What concerns others - events,
//! devices, tasks - ends the stretch and is done by `step.rs`. This is the simulator's hot loop.

use blkmq::env::{Answer, Cpu, Slab, Solo, SoloSlab};
use blkmq::path::{Label, Next, Toll};
use blkmq::queue::{BlkMq, LockId, LockKind};
use blkmq::request::{CpuId, RequestPool};
use blkmq::time::SimTime;

use super::cpu::{CpuState, Held, HeldLock, Level, LevelState, Stack, Wait};
use super::{Core, Event, RUN_AHEAD, Simulator, class};
use crate::binding::Binding;
use crate::cost::{CostModel, Step};

/// Why a stretch ended.
pub(super) enum Stop {
    /// Others are due first: it goes on when its time comes.
    Later,
    /// It spins: a grant or an interrupt lets it go on.
    Waits,
    /// An interrupt is to be taken.
    Interrupt,
    /// No frame is left: the level itself decides what comes next.
    Turn,
    /// The last label left effects, or asks for something of the machine: this comes next.
    Effects(Next),
}

impl Simulator {
    /// Labels of the running level until one asks for something that must wait, or the CPU has
    /// run ahead far enough that others may be due.
    pub(super) fn stretch(&mut self, id: CpuId) -> Stop {
        let now = self.core.now;
        let cpu = &mut self.cpus[usize::from(id.0)];
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
        env.owner = owner(id, level);
        env.need_resched = resched;
        let mut lane = Lane {
            limit: (now + RUN_AHEAD).0 * 1000,
            locks: env.locks_held(),
            shared: cpu.shared,
            cut: cpu.interrupted && level != Level::Hardirq,
            taken: NO_LOCK,
            irq_off,
            held,
            core: &mut self.core,
            mq: &self.mq,
            pool: &self.mq.queues[0].pool,
        };
        let stop = lane.run(env, stack, wait, level);
        let spent = env.at_ps - began;
        cpu.count(spent, mode);
        stop
    }

    /// What a stretch without labels comes to.
    pub(super) fn pause(&mut self, id: CpuId) -> Stop {
        let cpu = &self.cpus[usize::from(id.0)];
        let at = cpu.at();
        if at >= self.core.now + RUN_AHEAD {
            if self.core.events.next_time() <= at {
                return Stop::Later;
            }
            self.core.now = at;
        }
        if cpu.interrupted && cpu.level != Level::Hardirq && cpu.irq_off == 0 {
            return Stop::Interrupt;
        }
        Stop::Turn
    }

    /// The first in line gets the lock.
    pub(super) fn grant_first(&mut self, slot: usize) {
        let now = self.core.now;
        let Some(grant) = self.core.arbiter.grant_first(slot, now) else {
            return;
        };
        if self.core.binding.is_some() {
            self.note_grant(grant.who);
        }
        let id = CpuId((grant.who / 3) as u16);
        let level = (grant.who % 3) as usize;
        let cpu = &mut self.cpus[usize::from(id.0)];
        let Wait::Spin(lock) = cpu.levels[level].wait else {
            unreachable!("only a spinning level stands in line")
        };
        if cpu.level as usize != level {
            cpu.irq_off -= u32::from(lock.masks_irq());
            cpu.levels[level].wait = Wait::Got(lock);
            return;
        }
        cpu.count_spin(now);
        let step = if grant.waited.is_some() {
            Step::LockHandoff
        } else {
            Step::LockFree
        };
        let since = cpu.at();
        cpu.env.owner = owner(id, cpu.level);
        let price = acquire(&self.mq, &self.core.costs, lock, step, &mut cpu.env);
        self.core.spent.step(step, price);
        let mode = cpu.kernel_mode();
        cpu.spend(price, mode);
        let slot = slot as u32;
        cpu.levels[level].held.add(HeldLock { lock, slot, since });
        cpu.levels[level].wait = Wait::None;
        self.go_on(id);
    }
}

/// The number of no lock.
const NO_LOCK: u32 = u32::MAX;

/// Who owns a lock: differs for each level of each CPU.
fn owner(id: CpuId, level: Level) -> u32 {
    u32::from(id.0) * 4 + level as u32
}

/// A CPU on its way through labels: what the loop needs of it, and of everything else.
pub(super) struct Lane<'a> {
    /// From this time on, others may be due. Picoseconds.
    pub(super) limit: u64,
    /// Locks held before the label.
    locks: u32,
    /// The other thread of the core works too.
    shared: bool,
    /// An interrupt waits to be taken as soon as none is masked.
    cut: bool,
    /// The number of the lock that the last label asked for, if it is taken; else `NO_LOCK`.
    taken: u32,
    irq_off: &'a mut u32,
    held: &'a mut Held,
    core: &'a mut Core,
    pub(super) mq: &'a BlkMq<Solo>,
    /// That of the queue whose path runs.
    pool: &'a SoloSlab<RequestPool>,
}

impl Lane<'_> {
    #[inline(never)]
    fn run(&mut self, env: &mut Cpu, stack: &mut Stack, wait: &mut Wait, level: Level) -> Stop {
        if let Some(stop) = self.pick_up(env, wait, level) {
            return stop;
        }
        loop {
            if env.at_ps >= self.limit && !self.may_go_on(env) {
                return Stop::Later;
            }
            if self.cut && *self.irq_off == 0 {
                return Stop::Interrupt;
            }
            let Some(frame) = stack.top() else {
                return Stop::Turn;
            };
            if self.mq.queues.len() > 1 {
                self.pool = &self.mq.queue(frame.queue()).pool;
            }
            env.begin_label();
            let next = match self.core.binding.is_some() {
                false => frame.drive(self.mq, env, self),
                true => self.drive_bound(stack, env, level),
            };
            if !env.is_quiet() {
                return Stop::Effects(next);
            }
            match next {
                Next::Step => {}
                Next::Done => stack.pop(),
                Next::Call => stack.push_called(env),
                Next::Lock(lock) => {
                    if let Some(stop) = self.ask(lock, env, wait, level) {
                        return stop;
                    }
                }
                Next::TryLock(lock) => {
                    if !self.try_lock(lock, env) {
                        *wait = Wait::Try(lock);
                        return Stop::Later;
                    }
                }
                Next::InTime => {
                    if !self.in_time(env) {
                        *wait = Wait::Due;
                        return Stop::Later;
                    }
                }
                next => return Stop::Effects(next),
            }
        }
    }

    /// Goes on from what the level waited for. `None`: nothing any more.
    #[inline]
    fn pick_up(&mut self, env: &mut Cpu, wait: &mut Wait, level: Level) -> Option<Stop> {
        match *wait {
            Wait::None => return None,
            Wait::Ask(lock) => return self.ask(lock, env, wait, level),
            Wait::Spin(_) | Wait::Try(_) | Wait::Due if self.cut && *self.irq_off == 0 => {
                return Some(Stop::Interrupt);
            }
            Wait::Spin(_) => return Some(Stop::Waits),
            Wait::Try(lock) if self.try_lock(lock, env) => {}
            Wait::Due if self.in_time(env) => {}
            Wait::Try(_) | Wait::Due => return Some(Stop::Later),
            Wait::Got(lock) => {
                let slot = self.mq.lock_slot(lock);
                self.acquire(lock, slot, Step::LockHandoff, env);
            }
        }
        *wait = Wait::None;
        None
    }

    /// Asks for a lock when its time has come. `None`: it was granted at once.
    fn ask(&mut self, lock: LockId, env: &mut Cpu, wait: &mut Wait, level: Level) -> Option<Stop> {
        *wait = Wait::Ask(lock);
        if env.at_ps >= self.limit && !self.may_go_on(env) {
            return Some(Stop::Later);
        }
        if self.cut && *self.irq_off == 0 {
            return Some(Stop::Interrupt);
        }
        // The frame's own try may have told just now that it is taken.
        if self.taken == NO_LOCK && self.lock(lock, env) {
            *wait = Wait::None;
            if self.core.binding.is_some() {
                self.note_lock(lock, env, true);
            }
            return None;
        }
        let slot = match core::mem::replace(&mut self.taken, NO_LOCK) {
            NO_LOCK => self.mq.lock_slot(lock),
            slot => slot as usize,
        };
        *wait = Wait::Spin(lock);
        self.stand_in_line(lock, slot, env, level);
        Some(Stop::Waits)
    }

    /// What follows the run as a schedule.
    pub(super) fn binding(&mut self) -> Option<&mut Binding> {
        self.core.binding.as_deref_mut()
    }

    /// The limit is reached: goes on if nothing is due before, and the clock moves on with it.
    fn may_go_on(&mut self, env: &Cpu) -> bool {
        let at = env.now();
        let core = &mut *self.core;
        if core.events.next_time() <= at {
            return false;
        }
        core.now = at.max(core.now);
        self.limit = (core.now + RUN_AHEAD).0 * 1000;
        true
    }

    fn stand_in_line(&mut self, lock: LockId, slot: usize, env: &Cpu, level: Level) {
        if lock.masks_irq() {
            *self.irq_off += 1;
        }
        let who = u32::from(env.id.0) * 3 + level as u32;
        if let Some(due) = self.core.arbiter.queue(slot, who, env.now()) {
            self.grant_at(due, slot);
        }
    }

    fn grant_at(&mut self, due: SimTime, slot: usize) {
        let due = due.max(self.core.now);
        self.core
            .events
            .push(due, class::GRANT, Event::Grant(slot as u64));
    }

    /// The grant takes effect: the lock is the running level's from now on.
    fn acquire(&mut self, lock: LockId, slot: usize, step: Step, env: &mut Cpu) {
        let since = env.now();
        let price = acquire(self.mq, &self.core.costs, lock, step, env);
        self.core.spent.step(step, price);
        env.at_ps += price;
        self.held.add(HeldLock {
            lock,
            slot: slot as u32,
            since,
        });
        if lock.masks_irq() {
            *self.irq_off += 1;
        }
        self.locks = env.locks_held();
    }

    /// The label released a lock: it is free as of the CPU's time. Kept out of what every label
    /// goes through.
    #[inline(never)]
    fn release(&mut self, env: &Cpu) {
        self.locks -= 1;
        let HeldLock { lock, slot, since } = self.held.take_free(self.mq);
        if lock.masks_irq() {
            *self.irq_off -= 1;
        }
        let at = env.now();
        let (slot, held) = (slot as usize, at.since(since));
        if let Some(due) = self.core.arbiter.release(slot, env.id, at, held) {
            self.grant_at(due, slot);
        }
    }
}

impl Toll for Lane<'_> {
    #[expect(clippy::inline_always, reason = "a call a label, measured")]
    #[inline(always)]
    fn after(&mut self, label: Label, cpu: &mut Cpu) -> bool {
        let (work, misses) = cpu.meter.take();
        let misses = misses.with(
            self.pool.held(cpu.id).lines.take(),
            cpu.meter.tariff.overlap,
        );
        let work = self.core.costs.label(label) + work;
        // Waiting for a cache line takes as long beside a busy sibling as alone.
        let ps = misses
            + if self.shared {
                self.core.costs.shared(work)
            } else {
                work
            };
        cpu.at_ps += ps;
        self.core.spent.label(label, ps);
        while self.locks > cpu.locks_held() {
            self.release(cpu);
        }
        if !cpu.is_quiet() {
            return false;
        }
        cpu.begin_label();
        cpu.at_ps < self.limit
    }

    fn lock(&mut self, lock: LockId, cpu: &mut Cpu) -> bool {
        let slot = self.mq.lock_slot(lock);
        if !self.core.arbiter.is_free(slot, cpu.now()) {
            self.taken = slot as u32;
            return false;
        }
        if is_exact(lock) && !self.in_time(cpu) {
            return false;
        }
        self.core.arbiter.take(slot);
        self.acquire(lock, slot, Step::LockFree, cpu);
        true
    }

    fn try_lock(&mut self, lock: LockId, cpu: &mut Cpu) -> bool {
        if !self.in_time(cpu) {
            return false;
        }
        let slot = self.mq.lock_slot(lock);
        cpu.begin_label();
        if self.core.arbiter.try_take(slot, cpu.now()) {
            self.acquire(lock, slot, Step::LockFree, cpu);
            cpu.answer = Answer::Locked;
        } else {
            self.mq.try_in_vain(lock, cpu);
            let (work, misses) = cpu.meter.take();
            let price = work + misses.alone();
            self.core.spent.step(Step::LockFree, price);
            cpu.at_ps += price;
            cpu.answer = Answer::Contended;
        }
        if self.core.binding.is_some() {
            self.note_lock(lock, cpu, cpu.answer == Answer::Locked);
        }
        cpu.begin_label();
        true
    }

    fn in_time(&mut self, cpu: &Cpu) -> bool {
        let at = cpu.now();
        let core = &mut *self.core;
        if at > core.now {
            if core.events.next_time() <= at {
                return false;
            }
            core.now = at;
        }
        true
    }
}

/// A lock is the CPU's from now on. Picoseconds that this takes.
fn acquire(mq: &BlkMq<Solo>, costs: &CostModel, lock: LockId, step: Step, env: &mut Cpu) -> u64 {
    mq.acquire(lock, env);
    let (work, misses) = env.meter.take();
    let line = misses.alone();
    // Who spins has a copy of the word: the unlock takes it away before the word comes back.
    let lines = if step == Step::LockHandoff {
        2 * line
    } else {
        line
    };
    costs.step(step) + work + lines
}

/// Locks that everybody wants: asked for in exact order of time. The others are held for so short
/// that a CPU may take them while it runs ahead, if they are free.
fn is_exact(lock: LockId) -> bool {
    matches!(
        lock.kind(),
        LockKind::Elevator | LockKind::Dispatch | LockKind::Bucket | LockKind::Inserted
    )
}
