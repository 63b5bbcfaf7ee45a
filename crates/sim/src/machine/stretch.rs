//! A stretch: labels of one level of one CPU, one after another, with the locks between them.
//!
//! Everything here works on one CPU's state, so it is borrowed once. What concerns others - events,
//! devices, tasks - ends the stretch and is done by `step.rs`. This is the simulator's hot loop.

use blkmq::env::{Answer, Cpu, Slab, Solo, SoloSlab};
use blkmq::path::{Label, Next, Toll};
use blkmq::queue::{BlkMq, LockId, LockKind};
use blkmq::request::{CpuId, RequestPool};
use blkmq::time::SimTime;

use super::arbiter::Arbiter;
use super::cpu::{CpuState, Held, HeldLock, Level, LevelState, Stack, Wait};
use super::{Event, RUN_AHEAD, Simulator, class};
use crate::cost::{CostModel, Spent, Step};
use crate::event_queue::EventQueue;

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
    /// The last label left effects, or asks for something of the machine.
    Effects {
        /// Number of the queue that the frame works on.
        queue: u8,
        /// What the frame wants next.
        next: Next,
    },
}

impl Simulator {
    /// Labels of the running level until one asks for something that must wait, or the CPU has
    /// run ahead far enough that others may be due.
    pub(super) fn stretch(&mut self, id: CpuId) -> Stop {
        let cpu = &mut self.cpus[usize::from(id.0)];
        let level = cpu.level();
        let mode = cpu.kernel_mode();
        let began = cpu.at_ps;
        let cut = cpu.interrupted && level != Level::Hardirq;
        let CpuState {
            env,
            levels,
            irq_off,
            ..
        } = cpu;
        let LevelState { stack, wait, held } = &mut levels[level as usize];
        env.owner = u32::from(id.0) * 4 + level as u32;
        env.need_resched = !cpu.runqueue.is_empty() && began / 1000 >= cpu.slice_end.0;
        let mut lane = Lane {
            at_ps: began,
            limit: (self.now + RUN_AHEAD).0 * 1000,
            locks: env.locks_held(),
            shared: cpu.shared,
            steps: 0,
            irq_off,
            held,
            now: &mut self.now,
            events: &mut self.events,
            arbiter: &mut self.arbiter,
            mq: &self.mq,
            pool: &self.mq.queue(0).pool,
            costs: &self.costs,
            spent: &mut self.spent,
        };
        let stop = lane.run(env, stack, wait, level, cut);
        self.steps += lane.steps;
        let at_ps = lane.at_ps;
        cpu.count(at_ps - began, mode);
        cpu.at_ps = at_ps;
        stop
    }

    /// The first in line gets the lock.
    pub(super) fn grant_first(&mut self, slot: usize) {
        let Some(grant) = self.arbiter.grant_first(slot, self.now) else {
            return;
        };
        let id = CpuId((grant.who / 3) as u16);
        let level = (grant.who % 3) as usize;
        let cpu = &mut self.cpus[usize::from(id.0)];
        let Wait::Spin(lock) = cpu.levels[level].wait else {
            unreachable!("only a spinning level stands in line")
        };
        if lock.masks_irq() {
            cpu.irq_off -= 1;
        }
        if cpu.level() as usize != level {
            cpu.levels[level].wait = Wait::Got(lock);
            return;
        }
        cpu.count_spin(self.now);
        let step = if grant.waited.is_some() {
            Step::LockHandoff
        } else {
            Step::LockFree
        };
        let cpu = &mut self.cpus[usize::from(id.0)];
        let since = cpu.at();
        cpu.env.owner = u32::from(id.0) * 4 + level as u32;
        let price = acquire(&self.mq, &self.costs, lock, step, &mut cpu.env);
        self.spent.step(step, price);
        let mode = cpu.kernel_mode();
        cpu.spend(price, mode);
        cpu.irq_off += u32::from(lock.masks_irq());
        cpu.levels[level].held.add(HeldLock {
            lock,
            slot: slot as u32,
            since,
        });
        cpu.levels[level].wait = Wait::None;
        self.run_cpu(id);
    }
}

/// A CPU on its way through labels: what the loop needs of it, and of everything else.
struct Lane<'a> {
    /// The CPU's time, picoseconds.
    at_ps: u64,
    /// From this time on, others may be due.
    limit: u64,
    /// Locks held before the label.
    locks: u32,
    /// The other thread of the core works too.
    shared: bool,
    /// Labels so far.
    steps: u64,
    irq_off: &'a mut u32,
    held: &'a mut Held,
    now: &'a mut SimTime,
    events: &'a mut EventQueue<Event>,
    arbiter: &'a mut Arbiter,
    mq: &'a BlkMq<Solo>,
    pool: &'a SoloSlab<RequestPool>,
    costs: &'a CostModel,
    spent: &'a mut Spent,
}

impl Lane<'_> {
    /// `cut`: an interrupt waits to be taken as soon as none is masked.
    fn run(
        &mut self,
        env: &mut Cpu,
        stack: &mut Stack,
        wait: &mut Wait,
        level: Level,
        cut: bool,
    ) -> Stop {
        if let Some(stop) = self.pick_up(env, wait, level, cut) {
            return stop;
        }
        loop {
            if self.at_ps >= self.limit && !self.may_go_on() {
                return Stop::Later;
            }
            if cut && *self.irq_off == 0 {
                return Stop::Interrupt;
            }
            let Some(frame) = stack.top() else {
                return Stop::Turn;
            };
            env.now = SimTime(self.at_ps / 1000);
            env.begin_label();
            let next = frame.drive(self.mq, env, self);
            if !env.is_quiet() {
                let queue = frame.queue();
                return Stop::Effects { queue, next };
            }
            match next {
                Next::Step => {}
                Next::Done => stack.pop(),
                Next::Call => stack.push(env.take_call().into()),
                Next::Lock(lock) => {
                    if let Some(stop) = self.ask(lock, env, wait, level, cut) {
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
                    if !self.in_time() {
                        *wait = Wait::Due;
                        return Stop::Later;
                    }
                }
                next => {
                    let queue = frame.queue();
                    return Stop::Effects { queue, next };
                }
            }
        }
    }

    /// Goes on from what the level waited for. `None`: nothing any more.
    #[inline]
    fn pick_up(&mut self, env: &mut Cpu, wait: &mut Wait, level: Level, cut: bool) -> Option<Stop> {
        match *wait {
            Wait::None => return None,
            Wait::Ask(lock) => return self.ask(lock, env, wait, level, cut),
            Wait::Spin(_) | Wait::Try(_) | Wait::Due if cut && *self.irq_off == 0 => {
                return Some(Stop::Interrupt);
            }
            Wait::Spin(_) => return Some(Stop::Waits),
            Wait::Try(lock) if self.try_lock(lock, env) => {}
            Wait::Due if self.in_time() => {}
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
    fn ask(
        &mut self,
        lock: LockId,
        env: &mut Cpu,
        wait: &mut Wait,
        level: Level,
        cut: bool,
    ) -> Option<Stop> {
        *wait = Wait::Ask(lock);
        if self.at_ps >= self.limit && !self.may_go_on() {
            return Some(Stop::Later);
        }
        if cut && *self.irq_off == 0 {
            return Some(Stop::Interrupt);
        }
        if !self.lock(lock, env) {
            *wait = Wait::Spin(lock);
            self.stand_in_line(lock, env.id, level);
            return Some(Stop::Waits);
        }
        *wait = Wait::None;
        None
    }

    /// The limit is reached: goes on if nothing is due before, and the clock moves on with it.
    fn may_go_on(&mut self) -> bool {
        let at = SimTime(self.at_ps / 1000);
        if self.events.next_time() <= at {
            return false;
        }
        *self.now = at.max(*self.now);
        self.limit = (*self.now + RUN_AHEAD).0 * 1000;
        true
    }

    fn stand_in_line(&mut self, lock: LockId, id: CpuId, level: Level) {
        if lock.masks_irq() {
            *self.irq_off += 1;
        }
        let slot = self.mq.lock_slot(lock);
        let who = u32::from(id.0) * 3 + level as u32;
        let at = SimTime(self.at_ps / 1000);
        if let Some(due) = self.arbiter.queue(slot, who, at) {
            self.grant_at(due, slot);
        }
    }

    fn grant_at(&mut self, due: SimTime, slot: usize) {
        let due = due.max(*self.now);
        self.events
            .push(due, class::GRANT, Event::Grant(slot as u32));
    }

    /// The grant takes effect: the lock is the running level's from now on.
    fn acquire(&mut self, lock: LockId, slot: usize, step: Step, env: &mut Cpu) {
        let since = SimTime(self.at_ps / 1000);
        let price = acquire(self.mq, self.costs, lock, step, env);
        self.spent.step(step, price);
        self.at_ps += price;
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

    /// The label released locks: they are free as of the CPU's time.
    fn release(&mut self, env: &Cpu) {
        let released = self.locks - env.locks_held();
        self.locks = env.locks_held();
        let at = SimTime(self.at_ps / 1000);
        for _ in 0..released {
            let HeldLock { lock, slot, since } = self.held.take_free(self.mq);
            if lock.masks_irq() {
                *self.irq_off -= 1;
            }
            let (slot, held) = (slot as usize, at.since(since));
            if let Some(due) = self.arbiter.release(slot, env.id, at, held) {
                self.grant_at(due, slot);
            }
        }
    }
}

impl Toll for Lane<'_> {
    #[inline]
    fn after(&mut self, label: Label, cpu: &mut Cpu) -> bool {
        self.steps += 1;
        let moved = self.pool.held(cpu.id).take_moved();
        let price = self.costs.label(label) + cpu.meter.take() + moved;
        let ps = if self.shared {
            self.costs.shared(price)
        } else {
            price
        };
        self.at_ps += ps;
        self.spent.label(label, ps);
        if cpu.locks_held() != self.locks {
            self.release(cpu);
        }
        if !cpu.is_quiet() {
            // Trace points carry the time at which the label began.
            return false;
        }
        cpu.now = SimTime(self.at_ps / 1000);
        cpu.begin_label();
        self.at_ps < self.limit
    }

    fn lock(&mut self, lock: LockId, cpu: &mut Cpu) -> bool {
        let slot = self.mq.lock_slot(lock);
        let at = SimTime(self.at_ps / 1000);
        if !self.arbiter.is_free(slot, at) {
            return false;
        }
        if is_exact(lock) && !self.in_time() {
            return false;
        }
        self.arbiter.take(slot);
        self.acquire(lock, slot, Step::LockFree, cpu);
        cpu.now = SimTime(self.at_ps / 1000);
        true
    }

    fn try_lock(&mut self, lock: LockId, cpu: &mut Cpu) -> bool {
        if !self.in_time() {
            return false;
        }
        let slot = self.mq.lock_slot(lock);
        let at = SimTime(self.at_ps / 1000);
        cpu.begin_label();
        if self.arbiter.try_take(slot, at) {
            self.acquire(lock, slot, Step::LockFree, cpu);
            cpu.answer = Answer::Locked;
        } else {
            self.mq.try_in_vain(lock, cpu);
            let price = cpu.meter.take();
            self.spent.step(Step::LockFree, price);
            self.at_ps += price;
            cpu.answer = Answer::Contended;
        }
        cpu.now = SimTime(self.at_ps / 1000);
        cpu.begin_label();
        true
    }

    fn in_time(&mut self) -> bool {
        let at = SimTime(self.at_ps / 1000);
        if at > *self.now {
            if self.events.next_time() <= at {
                return false;
            }
            *self.now = at;
        }
        true
    }
}

/// A lock is the CPU's from now on. Picoseconds that this takes.
fn acquire(mq: &BlkMq<Solo>, costs: &CostModel, lock: LockId, step: Step, env: &mut Cpu) -> u64 {
    mq.acquire(lock, env);
    costs.step(step) + env.meter.take()
}

/// Locks that everybody wants: asked for in exact order of time. The others are held for so short
/// that a CPU may take them while it runs ahead, if they are free.
fn is_exact(lock: LockId) -> bool {
    matches!(
        lock.kind(),
        LockKind::Elevator | LockKind::Dispatch | LockKind::Bucket | LockKind::Inserted
    )
}
