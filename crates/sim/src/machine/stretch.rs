//! A stretch: labels of one level of one CPU, one after another, with the locks between them.
//!
//! Everything here works on one CPU's state, so it is borrowed once. What concerns others - events,
//! devices, tasks - ends the stretch and is done by `step.rs`. With `blkmq::drive`, the loop
//! itself, this is where a run spends its time.

use core::hint::cold_path;
use core::ops::ControlFlow;

use blkmq::drive::{Context, Driver, Flow, Follower, Offer, Stack, drive};
use blkmq::env::{Answer, Cpu, Misses, Slab, Solo, SoloSlab};
use blkmq::path::{Frame, Label, Next};
use blkmq::queue::{BlkMq, LockId, LockKind};
use blkmq::request::{CpuId, HctxId, QueueId, RequestId, RequestPool};
use blkmq::time::SimTime;

use super::RUN_AHEAD;
use super::arbiter::{Contender, OWNERS, TakeOver};
use super::cpu::{CpuState, Held, HeldLock, Level, LevelState, Wait};
use super::cpus::{Core, Cpus};
use super::event::{Event, class};
use crate::cost::{CostModel, Step};

/// Why a stretch ended. What a path asks for is about the queue that it works on. A tag and one
/// number, to be returned in registers: docs/decisions/0006.
pub(super) enum Stop {
    /// Others are due first: it goes on when its time comes.
    Later,
    /// It spins: a grant or an interrupt lets it go on.
    Waits,
    /// An interrupt is to be taken.
    Interrupt,
    /// No frame is left: the level itself decides what comes next.
    Turn,
    /// The last label left effects.
    Effects,
    /// queue_rq, with others to follow.
    Offer(RequestId),
    /// The same with `bd.last`.
    OfferLast(RequestId),
    /// get_budget.
    Budget,
    /// put_budget of this token.
    PutBudget(u32),
    /// commit_rqs of this hctx.
    Commit(HctxId),
    /// The task sleeps until it is woken for a tag.
    Park,
    /// synchronize_rcu().
    Grace,
    /// The queue's scheduler is exchanged for this further one.
    Exchange(usize),
}

impl Cpus {
    /// What the running level does until something must wait, is others' to give, or is to be
    /// decided between frames.
    #[inline]
    pub(super) fn run(&mut self, mq: &BlkMq<Solo>, id: CpuId) -> Stop {
        let (cpu, core) = self.split(id);
        if cpu.between_frames() {
            pause(cpu, core)
        } else {
            stretch(cpu, core, mq)
        }
    }

    /// The running level, between frames, lets a lock go that it was granted.
    pub(super) fn unlock(&mut self, mq: &BlkMq<Solo>, id: CpuId, release: impl FnOnce(&mut Cpu)) {
        let (cpu, core) = self.split(id);
        cpu.env.owner = owner(id, cpu.level);
        cpu.env.begin_label();
        release(&mut cpu.env);
        let (work, misses) = cpu.env.meter.take();
        let price = work + misses.alone();
        core.spent.step(Step::LockFree, price);
        let mode = cpu.kernel_mode();
        cpu.spend(price, mode);
        let level = cpu.level as usize;
        let HeldLock { lock, slot, since } = cpu.levels[level].held.take_free(mq);
        cpu.irq_off -= u32::from(lock.masks_irq());
        let (at, slot) = (cpu.at(), slot as usize);
        let held = at.since(since);
        let unlocks = cpu.env.at_ps - misses.stores;
        if let Some(due) = core.arbiter.release(slot, id, at, unlocks, held) {
            let due = due.max(core.now);
            core.events
                .push(due, class::GRANT, Event::Grant(slot as u64));
        }
    }

    /// The first in line gets the lock. The CPU, if it goes on with it.
    pub(super) fn grant_first(&mut self, mq: &BlkMq<Solo>, slot: usize) -> Option<CpuId> {
        let now = self.core.now;
        let who = self.core.arbiter.grant_first(slot, now)?;
        if self.core.follower.is_some() {
            self.note_grant(mq, who);
        }
        let (id, level) = cpu_of(who);
        let (cpu, core) = self.split(id);
        let Wait::Spin(lock) = cpu.levels[level].wait else {
            unreachable!("only a spinning level stands in line")
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
            TakeOver::At { at, .. } => {
                cpu.count_spin(at);
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

/// Labels of the running level until one asks for something that must wait or is others' to
/// give, or the CPU has run ahead far enough that others may be due.
#[inline]
fn stretch(cpu: &mut CpuState, core: &mut Core, mq: &BlkMq<Solo>) -> Stop {
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
    let mut lane = Lane {
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
    };
    let stop = lane.run(Context { cpu: env, stack });
    let (spent, spun) = (env.at_ps - began, lane.spun);
    cpu.count(spent - spun, mode);
    cpu.spun(spun);
    stop
}

/// What a stretch without labels comes to.
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
    /// The first in line takes over a lock that was granted to it.
    fn take_over(
        &mut self,
        mq: &BlkMq<Solo>,
        (lock, slot): (LockId, usize),
        (cpu, stack): (CpuId, &Stack),
        at: u64,
    ) -> TakeOver {
        let Core {
            arbiter, polling, ..
        } = self;
        let taken = mq.with_word(lock, |word| arbiter.take_over(slot, word, polling, at));
        if let Some(watch) = &mut arbiter.watch
            && let TakeOver::At { at, waited } = taken
        {
            cold_path();
            let caller = stack.last().map(Frame::label);
            watch.granted(slot, (cpu, caller), waited, SimTime(at / 1000));
        }
        taken
    }
}

/// The number of no lock.
const NO_LOCK: u32 = u32::MAX;

/// A limit that stops behind each label.
const STOP: u64 = 0;

/// Who owns a lock or stands in line for it: differs for each level of each CPU.
pub(super) fn owner(id: CpuId, level: Level) -> Contender {
    u32::from(id.0) * OWNERS + level as u32
}

/// CPU and level of an owner.
pub(super) fn cpu_of(owner: Contender) -> (CpuId, usize) {
    (CpuId((owner / OWNERS) as u16), (owner % OWNERS) as usize)
}

/// The same as those who follow a run count: three levels a CPU.
pub(super) fn context(owner: Contender) -> usize {
    (owner / OWNERS * 3 + owner % OWNERS) as usize
}

/// A CPU on its way through labels: what the loop needs of it, and of everything else.
struct Lane<'a> {
    /// Labels of one path follow each other up to this time: `ahead`, or `STOP`. Picoseconds.
    limit: u64,
    /// From this time on, others may be due. Picoseconds.
    ahead: u64,
    level: Level,
    wait: &'a mut Wait,
    /// Locks held before the label.
    locks: u32,
    /// The other thread of the core works too.
    shared: bool,
    /// An interrupt waits to be taken as soon as none is masked.
    cut: bool,
    /// The number of the lock that the last label asked for, if it is taken; else `NO_LOCK`.
    taken: u32,
    /// Time in which a lock that was granted during an interrupt came over. Picoseconds.
    spun: u64,
    irq_off: &'a mut u32,
    held: &'a mut Held,
    core: &'a mut Core,
    mq: &'a BlkMq<Solo>,
    /// That of the queue whose path runs.
    pool: &'a SoloSlab<RequestPool>,
}

impl Lane<'_> {
    #[inline]
    fn run(&mut self, at: Context<'_>) -> Stop {
        let wanted = match *self.wait {
            Wait::None => Next::Step,
            Wait::Wants(next) => {
                *self.wait = Wait::None;
                next
            }
            wait => match self.pick_up(wait, at.cpu, at.stack) {
                Some(stop) => return stop,
                None => Next::Step,
            },
        };
        drive(self, self.mq, at, wanted)
    }

    /// Goes on from what the level waited for. `None`: nothing any more.
    #[inline]
    fn pick_up(&mut self, wait: Wait, env: &mut Cpu, stack: &Stack) -> Option<Stop> {
        match wait {
            Wait::None | Wait::Wants(_) => return None,
            Wait::Ask(lock) => return self.ask(lock, env),
            Wait::Spin(_) | Wait::Try(_) | Wait::Due if self.cut && *self.irq_off == 0 => {
                return Some(Stop::Interrupt);
            }
            Wait::Spin(_) => return Some(Stop::Waits),
            Wait::Try(lock) if self.tries(lock, env) => {}
            Wait::Due if self.in_time(env) => {}
            Wait::Try(_) | Wait::Due => return Some(Stop::Later),
            Wait::Got(lock) => {
                let slot = self.mq.lock_slot(lock);
                let caller = (env.id, stack);
                match self
                    .core
                    .take_over(self.mq, (lock, slot), caller, env.at_ps)
                {
                    TakeOver::Free => self.acquire(lock, slot, Step::LockFree, env),
                    TakeOver::At { at, .. } => {
                        self.spun += at - env.at_ps;
                        env.at_ps = at;
                        self.acquire(lock, slot, Step::LockHandoff, env);
                    }
                }
            }
        }
        *self.wait = Wait::None;
        None
    }

    /// Asks for a lock when its time has come. `None`: it was granted at once.
    fn ask(&mut self, lock: LockId, env: &mut Cpu) -> Option<Stop> {
        *self.wait = Wait::Ask(lock);
        if env.at_ps >= self.ahead && !self.may_go_on(env) {
            return Some(Stop::Later);
        }
        if self.cut && *self.irq_off == 0 {
            return Some(Stop::Interrupt);
        }
        // The frame's own try may have told just now that it is taken.
        if self.taken == NO_LOCK && self.grants(lock, env) {
            *self.wait = Wait::None;
            if self.core.follower.is_some() {
                self.note_lock(lock, env, true);
            }
            return None;
        }
        let slot = match core::mem::replace(&mut self.taken, NO_LOCK) {
            NO_LOCK => self.mq.lock_slot(lock),
            slot => slot as usize,
        };
        *self.wait = Wait::Spin(lock);
        self.stand_in_line(lock, slot, env);
        Some(Stop::Waits)
    }

    /// A lock was taken at once, or tried in vain.
    #[cold]
    fn note_lock(&mut self, lock: LockId, env: &Cpu, taken: bool) {
        let context = context(env.owner);
        if let Some(follower) = &mut self.core.follower {
            match taken {
                true => follower.granted(self.mq, context, lock),
                false => follower.contended(self.mq, context, lock),
            }
        }
    }

    /// The limit is reached: goes on if nothing is due before, and the clock moves on with it.
    fn may_go_on(&mut self, env: &Cpu) -> bool {
        let at = env.now();
        let core = &mut *self.core;
        if core.events.next_time() <= at {
            return false;
        }
        core.now = at.max(core.now);
        self.ahead = (core.now + RUN_AHEAD).0 * 1000;
        self.limit = self.ahead;
        true
    }

    fn stand_in_line(&mut self, lock: LockId, slot: usize, env: &Cpu) {
        if lock.masks_irq() {
            *self.irq_off += 1;
        }
        let who = owner(env.id, self.level);
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
    #[inline]
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

    /// The label released a lock: it is free as of the CPU's time, `stores` behind the store that
    /// says so. Kept out of what every label goes through.
    #[inline(never)]
    fn release(&mut self, env: &Cpu, stores: u64) {
        self.locks -= 1;
        let HeldLock { lock, slot, since } = self.held.take_free(self.mq);
        if lock.masks_irq() {
            *self.irq_off -= 1;
        }
        let at = env.now();
        let (slot, held) = (slot as usize, at.since(since));
        let unlocks = env.at_ps - stores;
        if let Some(due) = self.core.arbiter.release(slot, env.id, at, unlocks, held) {
            self.grant_at(due, slot);
        }
    }
}

impl Driver for Lane<'_> {
    type Env = Solo;
    type Stop = Stop;

    #[inline]
    fn turn(&mut self, at: Context<'_>) -> Flow<Self> {
        if at.cpu.at_ps >= self.ahead && !self.may_go_on(at.cpu) {
            return ControlFlow::Break(Stop::Later);
        }
        if self.cut && *self.irq_off == 0 {
            return ControlFlow::Break(Stop::Interrupt);
        }
        if self.mq.queues.len() > 1
            && let Some(frame) = at.stack.last()
        {
            self.pool = &self.mq.queue(frame.queue()).pool;
        }
        ControlFlow::Continue(())
    }

    #[inline]
    fn ends(&mut self, _cpu: &mut Cpu) -> Stop {
        Stop::Turn
    }

    #[inline]
    fn over(&mut self, frame: &Frame, cpu: &Cpu) {
        if let Some(watch) = &mut self.core.arbiter.watch {
            cold_path();
            watch.over(frame, cpu.owner);
        }
    }

    #[expect(clippy::inline_always, reason = "a call a label, measured")]
    #[inline(always)]
    fn after(&mut self, label: Label, cpu: &mut Cpu) {
        let work = self.core.costs.label(label) + cpu.meter.take_work();
        let mut ps = if self.shared {
            self.core.costs.shared(work)
        } else {
            work
        };
        let mut stores = 0;
        let others = self.pool.held(cpu.id).lines.take();
        if let Some(misses) = both(cpu.meter.take_misses(), others, cpu) {
            // Waiting for a cache line takes as long beside a busy sibling as alone.
            ps += misses.alone();
            stores = misses.stores;
        }
        cpu.at_ps += ps;
        self.core.spent.label(label, ps);
        while self.locks > cpu.locks_held() {
            self.release(cpu, stores);
        }
    }

    #[inline]
    fn goes_on(&mut self, cpu: &mut Cpu) -> bool {
        cpu.at_ps < self.limit
    }

    #[inline]
    fn left(&mut self, next: Next, _cpu: &mut Cpu) -> Flow<Self> {
        *self.wait = Wait::Wants(next);
        ControlFlow::Break(Stop::Effects)
    }

    fn grants(&mut self, lock: LockId, cpu: &mut Cpu) -> bool {
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

    fn tries(&mut self, lock: LockId, cpu: &mut Cpu) -> bool {
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
        if self.core.follower.is_some() {
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

    fn granted(&mut self, lock: LockId, cpu: &Cpu) {
        self.note_lock(lock, cpu, true);
    }

    #[inline]
    fn lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        match self.ask(lock, at.cpu) {
            None => ControlFlow::Continue(()),
            Some(stop) => ControlFlow::Break(stop),
        }
    }

    #[inline]
    fn try_lock(&mut self, lock: LockId, at: Context<'_>) -> Flow<Self> {
        if self.tries(lock, at.cpu) {
            return ControlFlow::Continue(());
        }
        *self.wait = Wait::Try(lock);
        ControlFlow::Break(Stop::Later)
    }

    #[inline]
    fn due(&mut self, cpu: &mut Cpu) -> Flow<Self> {
        if self.in_time(cpu) {
            return ControlFlow::Continue(());
        }
        *self.wait = Wait::Due;
        ControlFlow::Break(Stop::Later)
    }

    #[inline]
    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        if let Some(watch) = &mut self.core.arbiter.watch {
            cold_path();
            watch.offers(at.stack.last(), at.cpu.owner);
        }
        ControlFlow::Break(match offer.last {
            false => Stop::Offer(offer.rq),
            true => Stop::OfferLast(offer.rq),
        })
    }

    #[inline]
    fn budget(&mut self, _queue: QueueId, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Stop::Budget)
    }

    #[inline]
    fn put_budget(&mut self, _queue: QueueId, token: u32, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Stop::PutBudget(token))
    }

    #[inline]
    fn commit(&mut self, _queue: QueueId, hctx: HctxId, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Stop::Commit(hctx))
    }

    #[inline]
    fn park(&mut self, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Stop::Park)
    }

    fn grace(&mut self, _queue: QueueId, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Stop::Grace)
    }

    fn exchange(&mut self, _queue: QueueId, to: usize, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Stop::Exchange(to))
    }

    #[inline]
    fn follower(&mut self) -> Option<&mut (dyn Follower<Solo> + 'static)> {
        self.core.follower.as_deref_mut()
    }

    fn context(&self, cpu: &Cpu) -> usize {
        context(cpu.owner)
    }

    fn one_by_one(&mut self, only: bool) {
        self.limit = if only { STOP } else { self.ahead };
    }
}

/// What words and requests have missed in one label.
#[inline]
fn both(words: Option<Misses>, requests: Option<Misses>, cpu: &Cpu) -> Option<Misses> {
    match (words, requests) {
        (Some(words), Some(requests)) => Some(words.with(requests, cpu.meter.tariff.overlap)),
        (Some(alone), None) | (None, Some(alone)) => Some(alone),
        (None, None) => None,
    }
}

/// A lock is the CPU's from now on. Picoseconds that this takes.
fn acquire(mq: &BlkMq<Solo>, costs: &CostModel, lock: LockId, step: Step, env: &mut Cpu) -> u64 {
    mq.acquire(lock, env);
    let (work, misses) = env.meter.take();
    costs.step(step) + work + misses.alone()
}

/// Locks that everybody wants: asked for in exact order of time. The others are held for so short
/// that a CPU may take them while it runs ahead, if they are free.
fn is_exact(lock: LockId) -> bool {
    matches!(lock.kind(), LockKind::Elevator | LockKind::Dispatch)
}
