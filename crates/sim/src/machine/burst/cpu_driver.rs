//! The loop of a burst: the simulator's answers to `blkmq::drive` between labels.

use core::hint::cold_path;
use core::ops::ControlFlow;

use blkmq::drive::{Context, Driver, Flow, Follower, Offer, Stack, drive, path_by_path};
use blkmq::env::{Answer, Cpu, Slab};
use blkmq::path::{Frame, Label, Next};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{HctxId, QueueId, RequestPool};
use blkmq::time::SimTime;

use super::super::RUN_AHEAD;
use super::super::arbiter::TakeOver;
use super::super::cpu::{Held, HeldLock, Level, Wait};
use super::super::cpus::Core;
use super::super::event::{Event, class};
use super::super::task::TaskId;
use super::{Stop, acquire, both, context, is_exact, owner};
use crate::cost::Step;
use crate::recorder::Recorder;

/// The number of no lock.
pub(super) const NO_LOCK: u32 = u32::MAX;

/// A limit that stops after each label.
const STOP: u64 = 0;

/// A CPU that executes labels, with the parts of the machine that the loop needs.
pub(super) struct CpuDriver<'a> {
    /// Labels of one path follow each other up to this time: `ahead`, or `STOP`. Picoseconds.
    pub(super) limit: u64,
    /// From this time on, others may be due. Picoseconds.
    pub(super) ahead: u64,
    pub(super) level: Level,
    pub(super) wait: &'a mut Wait,
    /// Locks held before the label.
    pub(super) locks: u32,
    /// The sibling works too.
    pub(super) shared: bool,
    /// An interrupt is to be taken as soon as none is masked.
    pub(super) cut: bool,
    /// The number of the lock that the last label asked for, if that is taken; else `NO_LOCK`.
    pub(super) taken: u32,
    /// Time of the hand-off of a lock that was granted during an interrupt. Picoseconds.
    pub(super) spun: u64,
    pub(super) irq_off: &'a mut u32,
    pub(super) held: &'a mut Held,
    pub(super) core: &'a mut Core,
    pub(super) mq: &'a BlkMq,
    /// The pool of the queue whose path runs.
    pub(super) pool: &'a Slab<RequestPool>,
    pub(super) task: Option<TaskId>,
    pub(super) recorder: &'a mut Recorder,
}

impl CpuDriver<'_> {
    #[inline]
    pub(super) fn run(&mut self, at: Context<'_>) -> Stop {
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

    /// Continues after the wait of the level. `None`: it has to wait no longer.
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
                    TakeOver::At { at_ps, .. } => {
                        self.spun += at_ps - env.at_ps;
                        env.at_ps = at_ps;
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
        // The frame's own try may have found just now that it is taken.
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

    /// A lock was taken at once, or a try has failed.
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

    /// The limit is reached: continues if nothing is due before, and the clock moves on with it.
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

    /// The label released a lock: it is free as of the CPU's time, `stores` after the store that
    /// unlocks it. Kept out of the code that every label goes through.
    #[inline(never)]
    fn release(&mut self, env: &Cpu, stores: u64) {
        self.locks -= 1;
        let HeldLock { lock, slot, since } = self.held.take_free(self.mq);
        if lock.masks_irq() {
            *self.irq_off -= 1;
        }
        let at = env.now();
        let (slot, held) = (slot as usize, at.since(since));
        let unlocks_ps = env.at_ps - stores;
        if let Some(due) = self
            .core
            .arbiter
            .release(slot, env.id, at, unlocks_ps, held)
        {
            self.grant_at(due, slot);
        }
    }
}

impl Driver for CpuDriver<'_> {
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

    #[inline]
    fn labels(&mut self, frame: &mut Frame, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        path_by_path(self, frame, mq, cpu)
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
            // Waiting for a cache line takes as long beside a busy sibling as without.
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
    fn maps(&mut self, at: &Context<'_>) {
        if let Some(watch) = &mut self.core.arbiter.watch {
            cold_path();
            watch.offers(at.stack.last(), at.cpu.owner);
        }
    }

    #[inline]
    fn offer(&mut self, offer: Offer, at: Context<'_>) -> Flow<Self> {
        self.maps(&at);
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

    fn ask_busy(&mut self, queue: QueueId, _cpu: &mut Cpu) -> Flow<Self> {
        ControlFlow::Break(Stop::AskBusy(queue))
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
    fn follower(&mut self) -> Option<&mut (dyn Follower + 'static)> {
        self.core.follower.as_deref_mut()
    }

    fn context(&self, cpu: &Cpu) -> usize {
        context(cpu.owner)
    }

    /// The loop goes on with the trace points taken: whether they are recorded changes no run. A
    /// follower sees them first.
    #[cold]
    fn leaves(&mut self, cpu: &mut Cpu) -> bool {
        if self.limit != STOP && !cpu.trace.is_empty() {
            self.core.hand_over_trace(cpu, self.task, self.recorder);
        }
        !cpu.is_quiet()
    }

    fn one_by_one(&mut self, only: bool) {
        self.limit = if only { STOP } else { self.ahead };
    }
}
