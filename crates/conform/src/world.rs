//! The block layer of a capture, and the actors that run its paths: tasks, workers, completions.
//!
//! An actor is a stack of frames that continues when an event of the capture requires it, and stops
//! at the place of the next event: before a decision of the scheduler (where the capture has
//! those), at an offer to the device, after a trace point. `hypothesis.rs` assigns events to
//! actors. A stopped actor holds no lock. Read next: `world/walk.rs`.

mod build;
mod timers;
mod walk;

use std::collections::VecDeque;
use std::rc::Rc;

use blkmq::drive::{Stack, drive};
use blkmq::env::{Answer, Cpu, TracePoint};
use blkmq::path::label::Submit;
use blkmq::path::{Frame, Next};
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, HctxId, Place, Plugged, QueueId, RequestId, RequestPool};
use blkmq::rules::QueueLimits;
use blkmq::sbitmap::SbWord;
use blkmq::time::{Jiffies, SimTime};
use blkmq::waiter::WaiterId;

use super::hypothesis::{Cut, TICKS_BEFORE};
use super::scheduler_event::SchedulerEvent;
use super::ticks::Ticks;
pub(super) use build::Size;
pub(super) use timers::Armed;
use timers::Timers;
use walk::Walk;
pub(super) use walk::{Goal, Labels};

/// How the capture goes on for an actor, as far as a choice of its paths depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hint {
    /// Decisions of the scheduler are not recorded: the model chooses.
    Free,
    /// The scheduler of this queue is asked next.
    Asks(QueueId),
    Else,
    /// A run finds nothing: another actor took the requests.
    Nothing,
}

/// The reason why an actor has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    Idle,
    /// There is a trace point that no event has matched yet.
    AtTracePoint,
    /// The scheduler's dispatch hook comes next, under its lock.
    BeforeDecision,
    /// The driver's queue_rq() comes next, with this request.
    BeforeQueueRq(RequestId),
    /// It sleeps until a tag is free.
    WaitsForTag,
    /// The next step belongs to a later event.
    AwaitsEvent,
}

#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) cpu: Cpu,
    pub(super) stack: Stack,
    /// The request of its path before it continues.
    wants: Next,
    pub(super) stop: Stop,
    /// Trace points that no event has matched yet, each with its queue.
    pub(super) shown: VecDeque<TracePoint>,
    pub(super) hint: Hint,
    /// How the bio that it submits is cut.
    pub(super) cut: Option<Cut>,
}

#[derive(Clone, Debug)]
pub(super) struct Outside {
    /// Runs that are pending, queue by queue and hctx by hctx.
    pub(super) run_work: Vec<Vec<bool>>,
    /// Ticks a second.
    pub(super) hz: u32,
    /// Tick at which one that is delayed will be.
    pub(super) run_due: Vec<Vec<Option<Jiffies>>>,
    /// Requests that runs may still pick before they find nothing.
    pub(super) picks: u32,
    /// A requeue list is to be worked off, queue by queue.
    pub(super) requeue_work: Vec<bool>,
    /// Budgets in use, queue by queue.
    pub(super) budgets: Vec<u32>,
    /// Most of them; none: the driver has no budgets.
    pub(super) budgets_max: Vec<Option<u32>>,
    pub(super) timers: Timers,
    /// Scheduler events that no event of the capture has matched yet, with the time.
    pub(super) reported: Vec<(QueueId, SimTime, SchedulerEvent)>,
    /// Lines of logs that have not been compared yet, with the time.
    pub(super) said: Vec<(QueueId, SimTime, String)>,
    /// Those written without the scheduler's lock, with the actor.
    pub(super) said_unlocked: Vec<(QueueId, usize, String)>,
    /// Their prefix, queue by queue.
    pub(super) unlocked: Vec<Option<&'static str>>,
    /// Requests that the capture showed with the device while a path has them still to offer.
    pub(super) ahead: Vec<(QueueId, RequestId)>,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) mq: BlkMq,
    pub(super) actors: Vec<Actor>,
    pub(super) outside: Outside,
    /// Decisions of the scheduler are recorded.
    pub(super) calls: bool,
    labels: Rc<Labels>,
    /// Ticks, where a log shows them.
    pub(super) ticks: Option<Rc<Ticks>>,
}

impl Actor {
    fn new(number: usize) -> Actor {
        let mut cpu = Cpu::new(CpuId(0));
        cpu.owner = number as u32;
        cpu.task = WaiterId(number as u32);
        cpu.tracing = true;
        cpu.probing = true;
        Actor {
            cpu,
            stack: Stack::default(),
            wants: Next::Step,
            stop: Stop::Idle,
            shown: VecDeque::new(),
            hint: Hint::Free,
            cut: None,
        }
    }

    /// The split, if it submits a bio.
    fn cuts(&self) -> Option<Cut> {
        let submits = matches!(self.stack.frames().first(), Some(Frame::Submit(_)));
        self.cut.filter(|_| submits)
    }

    /// Nothing is under way, and nothing is left to be shown: its path was given up.
    pub(super) fn is_lost(&self) -> bool {
        self.stack.is_empty() && self.shown.is_empty()
    }

    /// Clears the request of its path.
    pub(super) fn forget_wish(&mut self) {
        self.wants = Next::Step;
        self.stop = Stop::AwaitsEvent;
        self.cpu.answer = Answer::None;
    }
}

impl World {
    /// The actor goes to this CPU at this time.
    pub(super) fn place(&mut self, actor: usize, cpu: u16, at: SimTime, hint: Hint) {
        let actor = &mut self.actors[actor];
        actor.cpu.id = CpuId(cpu);
        actor.cpu.at_ps = at.0.saturating_mul(1000);
        if let Some(ticks) = &self.ticks {
            let time = SimTime(at.since(Self::time_of(TICKS_BEFORE, self.outside.hz)).0);
            let tick = TICKS_BEFORE + ticks.at(time);
            actor.cpu.replay_tick(tick, self.outside.hz);
        }
        actor.hint = hint;
    }

    /// A path begins on top of the actor's stack.
    pub(super) fn begin(&mut self, actor: usize, frame: Frame) {
        let actor = &mut self.actors[actor];
        debug_assert_eq!(
            actor.wants,
            Next::Step,
            "a path begins where another has stopped"
        );
        actor.stack.push(frame);
        if actor.stop == Stop::Idle {
            actor.stop = Stop::AwaitsEvent;
        }
    }

    /// Runs an actor to its next stop.
    pub(super) fn go(&mut self, number: usize, goal: Goal) -> Stop {
        self.go_on(number, goal, false)
    }

    /// The scheduler decides for an actor that has stopped before that.
    pub(super) fn decide(&mut self, number: usize, goal: Goal) -> Stop {
        debug_assert_eq!(self.actors[number].stop, Stop::BeforeDecision);
        self.go_on(number, goal, true)
    }

    fn go_on(&mut self, number: usize, goal: Goal, decides: bool) -> Stop {
        let actor = &mut self.actors[number];
        let stopped = match actor.stop {
            _ if actor.stack.is_empty() => !actor.shown.is_empty(),
            Stop::BeforeDecision => !decides,
            Stop::BeforeQueueRq(_) => true,
            Stop::AtTracePoint => !actor.shown.is_empty(),
            _ => false,
        };
        if stopped || actor.stack.is_empty() && actor.shown.is_empty() {
            if !stopped {
                actor.stop = Stop::Idle;
            }
            return actor.stop;
        }
        let cut = actor.cuts();
        let uncut = cut.map(|cut| self.limit(cut.queue, cut.limits));
        let actor = &mut self.actors[number];
        let wants = core::mem::replace(&mut actor.wants, Next::Step);
        let said = self.outside.lines_said();
        let mut walk = Walk {
            mq: &self.mq,
            outside: &mut self.outside,
            labels: &self.labels,
            goal,
            hint: actor.hint,
            decides,
            shown: &mut actor.shown,
            wants: &mut actor.wants,
            calls: self.calls,
            waits: self.calls || decides || matches!(actor.hint, Hint::Asks(_)),
            lever: None,
            now: actor.cpu.now(),
            cpu: actor.cpu.id.0,
            decided: false,
            said,
        };
        let at = blkmq::drive::Context {
            cpu: &mut actor.cpu,
            stack: &mut actor.stack,
        };
        let stop = drive(&mut walk, &self.mq, at, wants);
        actor.stop = stop;
        if let Some((cut, uncut)) = cut.zip(uncut) {
            self.limit(cut.queue, uncut);
        }
        stop
    }

    /// A queue has other limits: those until now.
    fn limit(&mut self, queue: QueueId, limits: QueueLimits) -> QueueLimits {
        let now = &mut self.mq.queues[queue.index()].settings.limits;
        core::mem::replace(now, limits)
    }

    /// The device takes the offer of an actor. Trace D is not kept: the event has it.
    pub(super) fn accept(&mut self, number: usize, answer: Answer) {
        let actor = &mut self.actors[number];
        let Stop::BeforeQueueRq(rq) = actor.stop else {
            unreachable!("an offer is accepted");
        };
        let queue = actor.stack.last().map_or(QueueId(0), Frame::queue);
        actor.cpu.begin_label();
        if answer == Answer::Ok {
            self.mq.start_request(queue, rq, &mut actor.cpu);
            actor.cpu.take_trace(&mut String::new(), |_| ());
        } else {
            let held = self.mq.queue(queue).with_pool(|pool| pool[rq].budget);
            if held.is_some() {
                self.outside.put_budget(queue);
            }
        }
        actor.cpu.answer = answer;
        actor.wants = Next::Step;
        actor.stop = Stop::AwaitsEvent;
    }

    /// No tag of the scheduler is free any more, until `show_tags` restores these: by map and word,
    /// bits and which of them are freed but not merged yet.
    pub(super) fn hide_tags(&mut self, queue: QueueId) -> Vec<[u64; 2]> {
        let cpu = &mut self.actors[0].cpu;
        let maps = self.mq.queue(queue).sched.iter();
        let words = maps.flat_map(|map| {
            let all = |index| u64::MAX >> (64 - map.bits_of(index));
            let words = map.words.iter().enumerate();
            words.map(move |(index, word)| (word, all(index)))
        });
        let hide = |(word, all): (&SbWord, u64)| {
            cpu.begin_label();
            let cleared = word.cleared.swap(cpu, 0);
            cpu.begin_label();
            [all & !word.word.fetch_or(cpu, all), cleared]
        };
        let hidden = words.map(hide).collect();
        cpu.begin_label();
        hidden
    }

    pub(super) fn show_tags(&mut self, queue: QueueId, hidden: &[[u64; 2]]) {
        let cpu = &mut self.actors[0].cpu;
        let words = self.mq.queue(queue).sched.iter().flat_map(|map| &map.words);
        for (word, [free, cleared]) in words.zip(hidden) {
            cpu.begin_label();
            word.word.fetch_and(cpu, !free);
            cpu.begin_label();
            word.cleared.fetch_or(cpu, *cleared);
        }
        cpu.begin_label();
    }

    /// A task that waits for a tag looks again, within its limit or for any. False: it does not
    /// wait, or for another reason.
    pub(super) fn look_again(&mut self, number: usize, limited: bool) -> bool {
        let actor = &mut self.actors[number];
        let asleep = actor.stack.last().is_some_and(|frame| {
            let sleeps = frame.label() == Submit::WaitFinish.label();
            sleeps && self.mq.queue(frame.queue()).has_elevator()
        });
        let looks = actor.stop == Stop::WaitsForTag && asleep;
        if looks {
            actor.cpu.answer = Answer::LookAgain { limited };
            actor.stop = Stop::AwaitsEvent;
        }
        looks
    }

    /// The next steps of an actor do not happen: its paths are dropped.
    pub(super) fn drop_paths(&mut self, number: usize) {
        let actor = &mut self.actors[number];
        actor.stack = Stack::default();
        actor.shown.clear();
        actor.wants = Next::Step;
        actor.stop = Stop::Idle;
        actor.cpu.answer = Answer::None;
    }

    /// Its plug holds nothing any more: the requests that it held.
    pub(super) fn empty_plug(&mut self, number: usize) -> Vec<Plugged> {
        let plug = core::mem::take(&mut self.actors[number].cpu.plug);
        let requests: Vec<_> = plug.list.iter(&self.mq).collect();
        for &Plugged { queue, rq } in &requests {
            let place = |pool: &mut RequestPool| pool[rq].place = Place::Path;
            self.mq.queue(queue).with_pool(place);
        }
        requests
    }

    /// Its offers are refused until it stops elsewhere, or has offered nothing more: the kernel did
    /// not dispatch them here. They wait on dispatch lists.
    pub(super) fn refuse(&mut self, number: usize, goal: Goal) -> Stop {
        let mut stop = self.actors[number].stop;
        while let Stop::BeforeQueueRq(_) = stop {
            self.accept(number, Answer::DevResource);
            stop = self.go(number, goal);
            let actor = &mut self.actors[number];
            actor
                .shown
                .retain(|point| point.action != blkmq::env::TraceAction::Requeue);
            if stop == Stop::AtTracePoint && actor.shown.is_empty() {
                actor.stop = Stop::AwaitsEvent;
                stop = self.go(number, goal);
            }
        }
        stop
    }

    /// The hctx that a CPU submits to.
    pub(super) fn hctx_of(&self, queue: QueueId, cpu: u16) -> HctxId {
        let set = self.mq.set_of(queue);
        set.map[0]
            .get(usize::from(cpu))
            .copied()
            .unwrap_or(HctxId(0))
    }

    /// The time of the beginning of a tick.
    pub(super) fn time_of(at: Jiffies, hz: u32) -> SimTime {
        SimTime(at.0.saturating_mul(1_000_000_000 / u64::from(hz)))
    }
}

impl Outside {
    /// A run begins: it is pending no more. False: there is no such hctx.
    pub(super) fn take_work(&mut self, queue: QueueId, hctx: HctxId) -> bool {
        let number = usize::from(hctx.0);
        let Some(pending) = self.run_work[queue.index()].get_mut(number) else {
            return false;
        };
        *pending = false;
        self.run_due[queue.index()][number] = None;
        true
    }

    fn lines_said(&self) -> usize {
        self.said.len() + self.said_unlocked.len()
    }

    fn put_budget(&mut self, queue: QueueId) {
        let used = &mut self.budgets[queue.index()];
        *used = used.saturating_sub(1);
    }

    /// A request has come back from the device: so has its budget.
    pub(super) fn take_back(&mut self, mq: &BlkMq, queue: QueueId, rq: RequestId) {
        let held = mq.queue(queue).with_pool(|pool| pool[rq].budget.take());
        if held.is_some() {
            self.put_budget(queue);
        }
    }
}
