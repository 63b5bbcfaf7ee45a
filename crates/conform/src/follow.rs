//! The driver that follows a capture: each event chooses who takes which step of the real paths.
//!
//! The capture decides when a bio comes, on which CPU, by which task, and when a request completes.
//! The model decides merges, insertion and which request is dispatched. An event that the paths
//! cannot show is a difference: its effect is imposed, and the comparison goes on from there.
//! Read next: `calls.rs` for decisions of the scheduler, `follow/impose.rs`.

mod arrive;
mod cut;
mod device;
mod impose;
mod issue;
mod tells;
mod timers;
mod unseen;

pub(super) use cut::Cut;
pub(super) use issue::Found;

use std::collections::BTreeMap;

use blkmq::env::{TraceAction, TracePoint};
use blkmq::path::{Frame, RunPath};
use blkmq::request::{HctxId, IoPrio, Op, QueueId, RequestId};
use blkmq::time::{Duration, Jiffies, SimTime};

use super::event::{Event, Kind};
use super::kernel::Kernel;
use super::log::Sides;
use super::setup::Setup;
use super::stream::Stream;
use super::world::{Goal, Hint, Size, Stop, World};

/// Added to ticks, so that none is before tick 0: only differences count.
const TICKS_BEFORE: Jiffies = Jiffies(1 << 20);
/// Stops of one actor for one event, at most.
const STOPS_MOST: usize = 256;

/// Requests with the device of one start, with sectors that have completed.
type Issued = Vec<(RequestId, u32)>;

/// What changes from event to event.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) world: World,
    pub(super) kernels: Vec<Kernel>,
    /// By device and start; flushes by the greatest number.
    pub(super) issued: BTreeMap<(QueueId, u64), Issued>,
    /// Requests that reached the scheduler's insertion, by CPU: address, priority, tick.
    pub(super) arriving: BTreeMap<u16, (u64, IoPrio, Jiffies)>,
    /// Levels of requests that ended on a CPU which has traced nothing since: the count may come
    /// later than the trace.
    pub(super) late: BTreeMap<u16, usize>,
    /// Levels of requests whose end the scheduler is told next, by CPU.
    pub(super) finishing: BTreeMap<u16, usize>,
    /// The clock is read so many nanoseconds beside the record.
    pub(super) reads_beside: i64,
    /// Of a D whose request waits for its turn: its task has begun no run of its own.
    pub(super) not_begun: bool,
    /// A run that shows nowhere has found something to do.
    pub(super) ran_unseen: bool,
    /// By task: it waits for a tag where the model has had one.
    pub(super) denied: Vec<bool>,
    /// Latest tick seen.
    pub(super) now: Jiffies,
    /// Requests that the scheduler gave out and no path holds.
    pub(super) loose: Vec<(QueueId, RequestId)>,
    /// Requests that have completed while a path has them still to offer.
    pub(super) ended_ahead: Vec<(QueueId, RequestId)>,
    /// Requests that have completed before their D.
    pub(super) early: Vec<(QueueId, RequestId)>,
    /// What could not be shown, by kind.
    pub(super) notes: Vec<&'static str>,
    /// Devices whose two sides may hold different requests.
    pub(super) differs: Vec<bool>,
    /// Logs of schedulers, device by device.
    pub(super) sides: Vec<Sides>,
    /// By task: when it has read the clock first in its plug, where that is kept.
    pub(super) plugged: Vec<Option<SimTime>>,
}

impl State {
    /// The kernel's line that the next one of the model is to be compared with.
    pub(super) fn coming(&self, queue: QueueId) -> usize {
        let fresh = self.world.outside.said.iter();
        let fresh = fresh.filter(|&&(of, ..)| of == queue).count();
        self.sides[queue.index()].coming() + fresh
    }
}

/// What stays.
#[derive(Debug)]
pub(super) struct Follow<'a> {
    pub(super) stream: &'a Stream,
    pub(super) setups: &'a [Setup],
    /// Decisions of the scheduler are recorded.
    pub(super) calls: bool,
    /// A scheduler measures how long requests take.
    measures: bool,
}

impl<'a> Follow<'a> {
    pub(super) fn new(stream: &'a Stream, setups: &'a [Setup], calls: bool) -> Follow<'a> {
        Follow {
            stream,
            setups,
            calls,
            measures: setups.iter().any(Setup::measures) || !stream.logs.is_empty(),
        }
    }

    /// Everything idle.
    pub(super) fn first(&self) -> State {
        let size = Size {
            // Tasks, completions of each CPU, one for what is imposed, runs of tasks that wait, one
            // for runs that show nowhere, decisions that show later, one for timers.
            actors: self.timers() + 1,
            bios: bios_at_once(&self.stream.events),
        };
        let mut world = World::new(self.setups, self.calls, size);
        let behind = self.behind_tick();
        world.outside.timers.run_behind_tick(behind);
        State {
            world,
            kernels: vec![Kernel::default(); self.setups.len()],
            issued: BTreeMap::new(),
            arriving: BTreeMap::new(),
            late: BTreeMap::new(),
            finishing: BTreeMap::new(),
            reads_beside: 0,
            not_begun: false,
            ran_unseen: false,
            denied: vec![false; self.stream.tasks],
            now: self.stream.first_tick,
            loose: Vec::new(),
            ended_ahead: Vec::new(),
            early: Vec::new(),
            notes: Vec::new(),
            differs: vec![false; self.setups.len()],
            sides: vec![Sides::default(); self.setups.len()],
            plugged: vec![None; self.stream.tasks],
        }
    }

    /// How soon behind its tick a timer of a scheduler runs.
    pub(super) fn behind_tick(&self) -> Duration {
        self.stream.behind_tick(self.setups[0].hz)
    }

    /// Who completes requests on a CPU.
    fn irq(&self, cpu: u16) -> usize {
        self.stream.tasks + usize::from(cpu)
    }

    /// Who imposes.
    pub(super) fn scratch(&self) -> usize {
        self.stream.tasks + self.stream.cpus
    }

    /// Who runs hardware queues for a task that is in the middle of something else.
    fn runner(&self, task: usize) -> usize {
        self.scratch() + 1 + task
    }

    /// Who runs hardware queues unseen.
    fn worker(&self) -> usize {
        2 * self.stream.tasks + self.stream.cpus + 1
    }

    /// Who holds what was decided ahead.
    fn ahead(&self) -> core::ops::Range<usize> {
        let first = self.worker() + 1;
        first..first + 2 * self.stream.cpus
    }

    /// Who runs functions of timers.
    fn timers(&self) -> usize {
        self.ahead().end
    }

    /// Who hands over requests for a task: itself, or its runner while that has something to do.
    pub(super) fn acting(&self, state: &State, task: usize) -> usize {
        let runner = self.runner(task);
        match state.world.actors[runner].is_lost() {
            true => task,
            false => runner,
        }
    }

    /// The runner begins a run of this hctx.
    pub(super) fn begin_aside(&self, state: &mut State, task: usize, queue: QueueId, hctx: HctxId) {
        let runner = self.runner(task);
        let cpu = &state.world.actors[task].cpu;
        let (cpu, now, hint) = (cpu.id.0, cpu.now(), state.world.actors[task].hint);
        state.world.place(runner, cpu, now, hint);
        Self::begin_run(state, runner, queue, hctx);
    }

    /// The tick of an event as the model counts it.
    pub(super) fn time(&self, state: &State, queue: QueueId, event: &Event) -> SimTime {
        let hz = self.setups[0].hz;
        if self.measures {
            // Its latencies are of the records' clock; so are ticks.
            return match event.kind {
                // An interrupt: the tick is that of its beginning.
                Kind::Complete { .. } => self.measured(event.time),
                _ => self.time_of_section(state, queue, (event.time, event.cpu)),
            };
        }
        match (self.calls, event.kind) {
            (true, Kind::Arrive { at, .. } | Kind::Ask { at, .. } | Kind::Answer { at, .. }) => {
                self.time_of(at)
            }
            (true, _) => self.time_of(state.now),
            (false, _) => {
                let read = SimTime(event.time.0.saturating_add_signed(state.reads_beside));
                World::time_of(TICKS_BEFORE + read.jiffies(hz), hz)
            }
        }
    }

    /// When a call whose answer this is decided, if it read this tick.
    pub(super) fn decides_at(&self, state: &State, index: usize, tick: Jiffies) -> SimTime {
        let answer = &self.stream.events[index];
        let (time, cpu) = (answer.time, answer.cpu);
        match self.measures {
            true => self.time_of_section(state, self.stream.queue[index], (time, cpu)),
            false => self.time_of(tick),
        }
    }

    /// A time of the records as the model counts it.
    pub(super) fn measured(&self, time: SimTime) -> SimTime {
        World::time_of(TICKS_BEFORE, self.setups[0].hz) + Duration(time.0)
    }

    /// The beginning of a tick that a probe read.
    pub(super) fn time_of(&self, tick: Jiffies) -> SimTime {
        let since = Jiffies(tick.0.saturating_sub(self.stream.first_tick.0));
        World::time_of(TICKS_BEFORE + since, self.setups[0].hz)
    }

    /// What a task does behind event `index`.
    pub(super) fn hint(&self, index: usize) -> Hint {
        if !self.calls {
            return Hint::Free;
        }
        match self.stream.next[index] {
            Some(next) if matches!(self.stream.events[next].kind, Kind::Ask { .. }) => {
                Hint::Asks(self.stream.queue[next])
            }
            _ => Hint::Else,
        }
    }

    /// Puts the task of an event where the event is.
    pub(super) fn at(&self, state: &mut State, index: usize) -> usize {
        let event = &self.stream.events[index];
        let task = self.stream.task[index];
        let time = self.time(state, self.stream.queue[index], event);
        // Until the event itself is shown the task was on its way to it.
        let hint = match (self.calls, event.kind) {
            (false, _) => Hint::Free,
            (true, Kind::Ask { .. }) => Hint::Asks(self.stream.queue[index]),
            (true, _) => Hint::Else,
        };
        state.world.place(task, event.cpu, time, hint);
        let runner = self.runner(task);
        state.world.place(runner, event.cpu, time, hint);
        for actor in [task, runner] {
            state.world.actors[actor].cpu.ktime = state.plugged[task];
        }
        let hands_over = matches!(
            event.kind,
            Kind::Ask { .. } | Kind::Answer { .. } | Kind::Issue | Kind::Requeue
        );
        if !hands_over && !state.world.actors[runner].is_lost() {
            Self::run_out(state, runner);
        }
        task
    }

    /// Behind an event: runs go on to where the next event stands.
    pub(super) fn go_on(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let task = self.stream.task[index];
        let time = self.time(state, self.stream.queue[index], event);
        let acting = self.acting(state, task);
        state.world.place(acting, event.cpu, time, self.hint(index));
        state.world.go(acting, Goal::Run);
    }

    /// Lets an actor go on until it shows this event, and takes that off. False if it shows
    /// something else, or nothing.
    pub(super) fn shows(
        &self,
        state: &mut State,
        actor: usize,
        index: usize,
        action: TraceAction,
    ) -> bool {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        for _ in 0..STOPS_MOST {
            let shown = &mut state.world.actors[actor].shown;
            let is = |point: &TracePoint| {
                point.action == action
                    && (counts(action) || point.queue == queue && matches(point, event))
            };
            if let Some(at) = shown.iter().position(is) {
                shown.remove(at);
                return true;
            }
            shown.retain(|point| !counts(point.action));
            if !shown.is_empty() {
                return false;
            }
            match state.world.go(actor, Goal::Show) {
                Stop::Shown | Stop::Later => {}
                Stop::Offer(_) => {
                    state.world.refuse(actor, Goal::Show);
                }
                Stop::Pick => Self::leave_run(state, actor),
                // A task that waits for a tag may be woken for nothing.
                Stop::Parked if state.world.go(actor, Goal::Show) != Stop::Parked => {}
                Stop::Parked | Stop::Idle => return false,
            }
        }
        false
    }

    /// The run that an actor is in ends here: the kernel asked for nothing more. What it has picked
    /// is in nobody's hands.
    pub(super) fn leave_run(state: &mut State, actor: usize) {
        let world = &mut state.world;
        while let Some(frame) = world.actors[actor].stack.pop() {
            if let Frame::Run(run) = frame {
                let queue = frame.queue();
                world.mq.queue(queue).with_pool(|pool| {
                    for mut list in [run.in_hand().list, run.passed()] {
                        while let Some(rq) = list.pop_front(pool) {
                            state.loose.push((queue, rq));
                        }
                    }
                });
                break;
            }
        }
        world.actors[actor].forget_wish();
    }

    /// The request that the run of an actor has picked last.
    pub(super) fn in_hand(state: &State, actor: usize) -> Option<RequestId> {
        match state.world.actors[actor].stack.last() {
            Some(Frame::Run(run)) => run.picked_in_hand(),
            _ => None,
        }
    }

    /// All that the run of an actor has picked: with several hctxs it sorts that once nothing more
    /// comes, and another one is the last.
    pub(super) fn held_by_run(state: &State, actor: usize) -> Vec<RequestId> {
        let Some(&frame @ Frame::Run(run)) = state.world.actors[actor].stack.last() else {
            return Vec::new();
        };
        let q = state.world.mq.queue(frame.queue());
        q.with_pool(|pool| {
            let lists = [run.in_hand().list, run.passed()];
            lists.iter().flat_map(|list| list.iter(pool)).collect()
        })
    }

    /// Everything that an actor has begun comes to its end, unseen.
    pub(super) fn finish(state: &mut State, actor: usize) -> bool {
        for _ in 0..STOPS_MOST {
            let shown = &mut state.world.actors[actor].shown;
            shown.retain(|point| !counts(point.action) && point.action != TraceAction::Requeue);
            if !shown.is_empty() {
                return false;
            }
            match state.world.go(actor, Goal::Show) {
                Stop::Idle => return true,
                Stop::Shown | Stop::Later => {}
                Stop::Offer(_) => {
                    state.world.refuse(actor, Goal::Show);
                }
                Stop::Pick => Self::leave_run(state, actor),
                Stop::Parked => return false,
            }
        }
        false
    }

    /// Takes one event that is no decision of the scheduler.
    pub(super) fn take(&self, state: &mut State, index: usize) -> Result<(), String> {
        let event = &self.stream.events[index];
        match event.kind {
            Kind::Queue => self.queue(state, index),
            Kind::Get => self.get(state, index),
            Kind::Split { .. } => self.split(state, index),
            Kind::BioMerge { front } => self.bio_merge(state, index, front)?,
            Kind::Plug => self.plug(state, index),
            Kind::Unplug { sleeps, .. } => self.unplug(state, index, sleeps),
            Kind::Arrive { rq, .. } => {
                let ioprio = event.ioprio.unwrap_or_default();
                state.arriving.insert(event.cpu, (rq, ioprio, state.now));
            }
            Kind::Insert => self.insert(state, index),
            Kind::RequestMerge => self.request_merge(state, index)?,
            Kind::Requeue => self.requeue(state, index),
            Kind::Complete { .. } => self.complete(state, index),
            Kind::Finish { .. } => {
                let irq = self.irq(event.cpu);
                Self::finish_irq(state, irq);
                if let Some(level) = state.finishing.remove(&event.cpu) {
                    state.late.insert(event.cpu, level);
                }
            }
            Kind::Exit => self.exit(state, index),
            Kind::Issue | Kind::Ask { .. } | Kind::Answer { .. } | Kind::Told(_) => {}
            Kind::Line(_) => self.line(state, index),
        }
        Ok(())
    }

    /// Before an event: time, and completions that its CPU has behind it.
    pub(super) fn before(&self, state: &mut State, index: usize) -> Result<(), String> {
        let event = &self.stream.events[index];
        event.check()?;
        if let Kind::Arrive { at, .. } | Kind::Ask { at, .. } | Kind::Answer { at, .. } = event.kind
        {
            state.now = state.now.max(at);
        }
        self.expire_timers(state, index);
        state.late.remove(&event.cpu);
        self.end_offered(state);
        let irq = self.irq(event.cpu);
        match event.kind {
            Kind::Finish { .. } => {}
            // It may be the end of a flush sequence that is shown.
            Kind::Complete { .. } => Self::finish_irq(state, irq),
            _ => Self::run_out(state, irq),
        }
        Ok(())
    }

    /// Both queues: the kernel's as the trace tells it, and the model's.
    pub(super) fn show(state: &State, queue: QueueId) -> String {
        let mut text = String::from("kernel's queue:\n");
        text.push_str(&state.kernels[queue.index()].show());
        text.push_str("model's queue:\n");
        let q = state.world.mq.queue(queue);
        for line in q.elevator.show(q).lines() {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    /// A run of this hctx begins.
    pub(super) fn begin_run(state: &mut State, actor: usize, queue: QueueId, hctx: HctxId) {
        if state.world.outside.take_work(queue, hctx) {
            let path = RunPath::work(queue, hctx);
            state.world.begin(actor, Frame::Run(path));
        }
    }
}

/// A trace point that has no address.
fn counts(action: TraceAction) -> bool {
    matches!(
        action,
        TraceAction::Plug | TraceAction::Unplug | TraceAction::UnplugTimer
    )
}

/// Direction, start and length.
fn matches(point: &TracePoint, event: &Event) -> bool {
    let flush = point.op == Op::Flush && event.op == Op::Flush;
    flush
        || point.op.direction() == event.op.direction()
            && point.sector == event.sector
            && point.sectors == event.sectors
}

/// Bios that are alive at once, from above: the sectors that were submitted and have not
/// completed, over the length of the shortest bio.
fn bios_at_once(events: &[Event]) -> usize {
    let queued = |e: &&Event| matches!(e.kind, Kind::Queue | Kind::Get);
    let all = events.iter().filter(queued).count() + 64;
    let shortest = events
        .iter()
        .filter(|e| e.kind == Kind::Queue && e.sectors.0 > 0)
        .map(|e| u64::from(e.sectors.0))
        .min();
    let (mut waiting, mut most) = (0_u64, 0_u64);
    let mut more = 0;
    for event in events {
        let sectors = u64::from(event.sectors.0);
        match event.kind {
            Kind::Queue if sectors == 0 => more += 1,
            Kind::Queue => waiting += sectors,
            Kind::Complete { .. } => waiting = waiting.saturating_sub(sectors),
            Kind::Split { .. } => more += 1,
            _ => {}
        }
        most = most.max(waiting);
    }
    all.min((2 * most / shortest.unwrap_or(1)) as usize + more + 256)
}
