//! Steps of a context: labels until one has touched something shared, or until the context must
//! wait.

use core::ops::ControlFlow;

use super::mapped::Brought;
use super::{ABOVE, Context, Fixed, Outside, Pending, Phase, Ran, Role, Slot, World};
use blkmq::dm::PathId;
use blkmq::drive::{self, Driver, Flow, Kick, Machine, Offer, attempt, carry_out, drive};
use blkmq::env::{Answer, Cpu};
use blkmq::path::label::{Submit, Target, Wait};
use blkmq::path::{BioWork, Call, Label, Next};
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{BioId, CpuId, HctxId, Place, QueueId, RequestId, Status};
use blkmq::time::Duration;
use blkmq::waiter::WaiterId;

/// The state that a context uses in a step, besides its stack and its CPU.
pub(super) struct Steps<'a> {
    pub(super) fixed: &'a Fixed,
    pub(super) mq: &'a BlkMq,
    pub(super) outside: &'a mut Outside,
    /// The other contexts: those before this one, and those after it.
    others: (&'a mut [Context], &'a mut [Context]),
    role: Role,
    cpu: CpuId,
    phase: &'a mut Phase,
    woken: &'a mut bool,
    followed: &'a mut bool,
    /// The way that the wanted operation takes, until it is done.
    way: Option<u8>,
    /// The labels that ran.
    log: &'a mut Vec<Ran>,
    /// The context had a lock before the label.
    locked: bool,
    /// A label touched something that other contexts change or see.
    shared: bool,
    /// A request of a mapped queue whose second completion runs in this context.
    ends_here: Option<RequestId>,
    /// An event of a target is being handled.
    brought: Option<Brought>,
}

impl World {
    /// Steps a context from the operation that it waits for, which takes this way. True if labels
    /// ran.
    pub(super) fn advance(
        &mut self,
        fixed: &Fixed,
        index: usize,
        wanted: Next,
        way: Option<u8>,
        log: &mut Vec<Ran>,
    ) -> bool {
        let (before, rest) = self.contexts.split_at_mut(index);
        let (this, behind) = rest.split_first_mut().expect("the context is there");
        let mut steps = Steps {
            fixed,
            mq: &self.mq,
            outside: &mut self.outside,
            others: (before, behind),
            role: this.role,
            cpu: this.cpu.id,
            phase: &mut this.phase,
            woken: &mut this.woken,
            followed: &mut this.followed,
            way,
            log,
            locked: false,
            shared: false,
            ends_here: None,
            brought: None,
        };
        let (cpu, stack) = (&mut this.cpu, &mut this.stack);
        drive(&mut steps, &self.mq, drive::Context { cpu, stack }, wanted);
        !log.is_empty()
    }

    /// Makes any use of a request that was freed a panic.
    pub(super) fn poison_free_slots(&self) {
        for queue in &self.mq.queues {
            queue.with_pool(|pool| {
                for slot in 0..pool.len() as u32 {
                    if pool[RequestId(slot)].place == Place::Free {
                        pool[RequestId(slot)].hctx = HctxId(u16::MAX);
                        pool[RequestId(slot)].ctx = CpuId(u16::MAX);
                    }
                }
            });
        }
    }
}

impl Outside {
    /// mod_delayed_work(): a later call replaces an earlier one, whichever is due sooner.
    pub(super) fn kick(&mut self, fixed: &Fixed, place: usize, when: Pending) {
        if when == Pending::Later && !fixed.config.delayed_runs {
            return;
        }
        self.run_work[place] = when;
    }
}

impl Steps<'_> {
    /// Stops the context in this phase.
    fn stop(&mut self, phase: Phase) -> ControlFlow<()> {
        *self.phase = phase;
        ControlFlow::Break(())
    }

    /// A step of the context ends after the label that ran.
    fn ends_step(&self) -> bool {
        self.shared || self.fixed.config.every_label
    }
}

impl Driver for Steps<'_> {
    /// The phase has the reason.
    type Stop = ();

    fn turn(&mut self, at: drive::Context<'_>) -> Flow<Self> {
        if let Some(brought) = self.brought.take() {
            brought.check(self.mq, self.outside);
        }
        if let Some(rq) = self.ends_here.take() {
            at.stack.push(self.mq.ends(ABOVE, rq, Status::Ok));
        }
        let Some(frame) = at.stack.last() else {
            return ControlFlow::Continue(());
        };
        let last = self.log.last().map(|ran| ran.label);
        if self.fixed.doubles(last, frame) {
            let again = *frame;
            at.stack.push(again);
        }
        let frame = at.stack.last().expect("there is one");
        let (label, stage) = (frame.label(), frame.stage());
        if self.fixed.gives_up_at(label) {
            at.stack.pop();
            at.cpu.answer = Answer::NoToken;
            return self.turn(at);
        }
        if !self.log.is_empty() && self.ends_step() {
            return self.stop(Phase::Ready);
        }
        // set_current_state() of prepare_to_wait(): wake-ups before it are forgotten.
        if label == Submit::WaitAdd.label() || label == Wait::LineUp.label() {
            *self.woken = false;
        }
        if label == Target::Locked.label() {
            self.brought = Some(Brought::new(self.mq));
        }
        self.locked = at.cpu.locks_held() > 0;
        at.cpu.take_accessed();
        self.log.push(Ran { label, stage });
        ControlFlow::Continue(())
    }

    fn ends(&mut self, cpu: &mut Cpu) {
        assert_eq!(cpu.locks_held(), 0, "a context ends with a lock");
        if self.role == Role::Manager {
            self.outside.paths.is_told(&mut cpu.answer);
        }
        *self.phase = match core::mem::take(self.followed) {
            true => Phase::Follows,
            false => Phase::Idle,
        };
    }

    fn after(&mut self, label: Label, cpu: &mut Cpu) {
        cpu.meter.take();
        let accessed = cpu.take_accessed();
        self.shared = self.locked || self.fixed.sees_others(label, accessed);
        self.fixed.break_something(self.mq, label, cpu);
    }

    fn left(&mut self, _next: Next, cpu: &mut Cpu) -> Flow<Self> {
        self.shared = true;
        carry_out(self, cpu);
        ControlFlow::Continue(())
    }

    fn lock(&mut self, lock: LockId, at: drive::Context<'_>) -> Flow<Self> {
        let granted = self.way.take().is_some();
        if !granted && (self.ends_step() || !self.mq.is_free(lock)) {
            return self.stop(Phase::Wants(lock));
        }
        self.mq.acquire(lock, at.cpu);
        ControlFlow::Continue(())
    }

    fn try_lock(&mut self, lock: LockId, at: drive::Context<'_>) -> Flow<Self> {
        if self.way.take().is_none() {
            return self.stop(Phase::Tries(lock));
        }
        attempt(self.mq, lock, at.cpu);
        at.cpu.meter.take();
        self.stop(Phase::Ready)
    }

    fn calls(&mut self, cpu: &mut Cpu) -> bool {
        if self.fixed.config.tags_alone {
            if let Some(Call::Issue { queue, rq }) = cpu.call {
                self.take(Slot { queue, rq }, cpu);
            }
            return false;
        }
        let last = self.log.last();
        !last.is_some_and(|ran| self.fixed.drops_call(ran.label))
    }

    /// The answer is a step of its own.
    fn offer(&mut self, offer: Offer, mut at: drive::Context<'_>) -> Flow<Self> {
        let Offer { queue, rq, .. } = offer;
        let slot = Slot { queue, rq };
        match self.way.take() {
            None => self.stop(Phase::Asks(slot)),
            Some(way) => {
                self.answer(slot, way, &mut at);
                self.stop(Phase::Ready)
            }
        }
    }

    fn budget(&mut self, _queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        if self.way.take().is_none() {
            return self.stop(Phase::Budget);
        }
        cpu.answer = self.outside.driver.get_budget();
        self.stop(Phase::Ready)
    }

    fn put_budget(&mut self, _queue: QueueId, _token: u32, _cpu: &mut Cpu) -> Flow<Self> {
        if self.way.take().is_none() {
            return self.stop(Phase::PutBudget);
        }
        self.outside.driver.budgets += 1;
        self.stop(Phase::Ready)
    }

    /// A step of its own, possible when no context is in a section.
    fn grace(&mut self, queue: QueueId, cpu: &mut Cpu) -> Flow<Self> {
        if self.way.take().is_none() {
            return self.stop(Phase::Grace(queue));
        }
        cpu.answer = Answer::GoOn;
        self.stop(Phase::Ready)
    }

    fn exchange(&mut self, queue: QueueId, to: usize, _cpu: &mut Cpu) -> Flow<Self> {
        self.stop(Phase::Exchange(queue, to as u8))
    }

    fn park(&mut self, cpu: &mut Cpu) -> Flow<Self> {
        let woken = core::mem::take(self.woken);
        match self.way.take() {
            Some(way) if self.fixed.config.migrates => cpu.id = CpuId(u16::from(way)),
            Some(_) if self.role == Role::Suspender => self.outside.paths.naps = false,
            Some(_) => {}
            None if woken => {}
            None => return self.stop(Phase::Parked),
        }
        ControlFlow::Continue(())
    }
}

impl Machine for Steps<'_> {
    fn kick(&mut self, kick: Kick) {
        let last = self.log.last();
        if last.is_some_and(|ran| self.fixed.drops_kick(ran.label)) {
            return;
        }
        let place = self.fixed.config.place(kick.queue, kick.hctx);
        let pending = self.outside.run_work[place] != Pending::No;
        let when = match kick.delay == Duration::ZERO && !kick.unless_pending {
            true => Pending::Now,
            false => Pending::Later,
        };
        if !(kick.unless_pending && pending) {
            self.outside.kick(self.fixed, place, when);
        }
    }

    fn kick_requeue(&mut self, queue: QueueId) {
        let last = self.log.last();
        if !last.is_some_and(|ran| self.fixed.drops_requeue_kick(ran.label, false)) {
            self.outside.requeue_work[queue.index()] = Pending::Now;
        }
    }

    fn bio_end(&mut self, _queue: QueueId, bio: BioId, status: Status) {
        self.outside.ended += 1;
        if self.fixed.config.paths.is_some() {
            self.outside.paths.bio_ends(self.mq, bio, status);
        }
    }

    fn wake(&mut self, waiter: WaiterId) {
        if self.fixed.loses_wakes() {
            return;
        }
        let (number, (before, behind)) = (waiter.0 as usize, &mut self.others);
        let own = before.len();
        match number.checked_sub(own) {
            None => before[number].woken = true,
            Some(0) => *self.woken = true,
            Some(after) => behind[after - 1].woken = true,
        }
    }

    /// Only the suspending context waits by the clock.
    fn wake_later(&mut self, _waiter: WaiterId, _after: Duration) {
        self.outside.paths.naps = true;
    }

    fn time_out(&mut self, queue: QueueId, _after: Duration) {
        self.outside.timeouts |= self.fixed.config.timeouts & 1 << queue.0;
    }

    fn arm(&mut self, queue: QueueId, timer: u8, _after: Duration) {
        if self.fixed.loses_timers() {
            return;
        }
        self.outside.timers |= 1 << self.fixed.config.timer_place(queue, timer);
    }

    fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.outside.timers &= !(1 << self.fixed.config.timer_place(queue, timer));
    }

    /// In this context, or in the softirq of any completer.
    fn complete(&mut self, _queue: QueueId, rq: RequestId) {
        match self.fixed.ends_here(self.mq, rq, self.cpu) {
            true => self.ends_here = Some(rq),
            false => self.outside.paths.to_end.push(rq),
        }
    }

    fn kick_requeue_later(&mut self, queue: QueueId, _after: Duration) {
        let last = self.log.last();
        if !last.is_some_and(|ran| self.fixed.drops_requeue_kick(ran.label, true)) {
            self.outside.requeue_work[queue.index()] = Pending::Later;
        }
    }

    fn run_queue(&mut self, queue: QueueId) {
        let last = self.log.last();
        if last.is_some_and(|ran| self.fixed.drops_run(ran.label)) {
            return;
        }
        for hctx in 0..self.mq.queue(queue).hctxs.len() as u16 {
            let place = self.fixed.config.place(queue, HctxId(hctx));
            self.outside.kick(self.fixed, place, Pending::Now);
        }
    }

    fn activate(&mut self, _queue: QueueId, path: PathId, _after: Duration) {
        self.outside.paths.activate(path);
    }

    fn bio_work(&mut self, _queue: QueueId, what: BioWork) {
        let last = self.log.last();
        if !last.is_some_and(|ran| self.fixed.drops_bio_work(ran.label, what)) {
            self.outside.paths.set_work(what, true);
        }
    }

    fn path_timer(&mut self, _queue: QueueId, after: Option<Duration>) {
        self.outside.paths.set_timer(after.is_some());
    }
}
