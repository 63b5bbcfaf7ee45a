//! Hypotheses about how a kernel came from each event of a capture to the next one. A hypothesis is
//! a state of the real paths; each event chooses the actor that takes a step of them.
//!
//! The capture decides when a bio comes, on which CPU, by which task, and when a request completes.
//! The model decides merges, insertion and which request is dispatched. An event that the paths
//! cannot show is a difference: its effect is imposed, and the comparison goes on from there.
//! Where a decision does not follow, the search (`hypothesis/search.rs`) goes back to an earlier
//! hypothesis for another one, from which it does.
//! Read next: `search.rs`, `actors.rs`, `arrive.rs`, `issue.rs` and `forced.rs` beside it.

mod actors;
mod arrive;
mod ask;
mod candidates;
mod checkpoints;
mod clock;
mod cut;
mod decision;
mod device;
mod forced;
mod issue;
mod log;
mod miss;
mod plan;
mod plug;
mod requeue;
mod run;
mod scheduler_events;
mod search;
mod state;
mod tag;
mod timers;
mod unseen;

pub(super) use actors::Role;
pub(super) use clock::TICKS_BEFORE;
pub(super) use cut::Cut;
pub(super) use log::BEFORE_LINE;
pub(super) use search::Search;
pub(super) use state::Hypothesis;

use std::collections::BTreeMap;

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{Op, QueueId, RequestId};
use blkmq::time::SimTime;

use super::event::{Event, Kind};
use super::kernel::{self, Kernel};
use super::lines::Sides;
use super::setup::Setup;
use super::stream::Stream;
use super::world::{Goal, Size, Stop, World};
use issue::Found;

/// Stops of one actor for one event, at most.
const STOPS_MOST: usize = 256;

/// All that hypotheses have in common.
#[derive(Debug)]
pub(super) struct Hypotheses<'a> {
    pub(super) stream: &'a Stream,
    pub(super) setups: &'a [Setup],
    /// Decisions of the scheduler are recorded.
    pub(super) calls: bool,
    /// A scheduler measures how long requests take.
    measures: bool,
}

impl<'a> Hypotheses<'a> {
    pub(super) fn new(stream: &'a Stream, setups: &'a [Setup]) -> Hypotheses<'a> {
        Hypotheses {
            stream,
            setups,
            calls: stream.calls,
            measures: setups.iter().any(Setup::measures) || !stream.logs.is_empty(),
        }
    }

    pub(super) fn first(&self) -> Hypothesis {
        let size = Size {
            actors: self.actor(Role::Timers) + 1,
            bios: bios_at_once(&self.stream.events),
        };
        let mut world = World::new(self.setups, self.calls, size);
        let after = self.after_tick();
        world.outside.timers.run_after_tick(after);
        world.ticks.clone_from(&self.stream.ticks);
        Hypothesis {
            world,
            kernels: vec![Kernel::default(); self.setups.len()],
            issued: BTreeMap::new(),
            arriving: BTreeMap::new(),
            late: BTreeMap::new(),
            finishing: BTreeMap::new(),
            reads_beside: 0,
            no_run_yet: false,
            reads: None,
            forced: false,
            early: BTreeMap::new(),
            ran_unseen: false,
            tag_denied: vec![false; self.stream.tasks],
            now: self.stream.first_tick,
            unowned: Vec::new(),
            completed_while_queued: Vec::new(),
            completed_before_issue: Vec::new(),
            passed: SimTime::ZERO,
            notes: Vec::new(),
            differs: vec![false; self.setups.len()],
            sides: vec![Sides::default(); self.setups.len()],
            plugged: vec![None; self.stream.tasks],
            let_go: vec![false; self.stream.tasks],
        }
    }

    /// Takes one event. A task that waits for a tag finds one at its G and not before.
    fn take_without_tags(
        &self,
        state: &mut Hypothesis,
        index: usize,
    ) -> Result<Option<Found>, String> {
        if !self.stream.while_waiting[index] {
            return self.take(state, index);
        }
        let queue = self.stream.queue[index];
        if self.calls {
            self.deny(state, index);
        }
        let hidden = state.world.hide_tags(queue);
        let found = self.take(state, index);
        state.world.show_tags(queue, &hidden);
        found
    }

    /// Takes one event. Of a decision: how its request was found.
    fn take(&self, state: &mut Hypothesis, index: usize) -> Result<Option<Found>, String> {
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
                let irq = self.actor(Role::Interrupt(event.cpu));
                Self::go_irq(state, irq);
                if let Some(level) = state.finishing.remove(&event.cpu) {
                    state.late.insert(event.cpu, level);
                }
            }
            Kind::Exit => self.exit(state, index),
            Kind::Ask { hctx, .. } => self.ask(state, index, hctx),
            Kind::Answer { .. } => return Ok(Some(self.answer(state, index))),
            Kind::Issue => return Ok(self.issued(state, index)),
            Kind::SchedulerEvent(_) => {}
            Kind::Line(_) => self.line(state, index),
        }
        Ok(None)
    }

    /// Before an event: time, and completions that its CPU has finished.
    pub(crate) fn before(&self, state: &mut Hypothesis, index: usize) -> Result<(), String> {
        let event = &self.stream.events[index];
        event.check()?;
        if let Kind::Arrive { at, .. } | Kind::Ask { at, .. } | Kind::Answer { at, .. } = event.kind
        {
            state.now = state.now.max(at);
        }
        state.passed = match index.checked_sub(1) {
            Some(last) => self.stream.events[last].time,
            None => SimTime::ZERO,
        };
        self.expire_timers(state, index);
        state.late.remove(&event.cpu);
        self.end_offered(state);
        let irq = self.actor(Role::Interrupt(event.cpu));
        match event.kind {
            Kind::Finish { .. } => {}
            // It may be the end of a flush sequence that is shown.
            Kind::Complete { .. } => Self::go_irq(state, irq),
            _ => Self::run_out(state, irq),
        }
        Ok(())
    }

    /// Runs an actor until it shows this event, which is removed. False if it shows
    /// something else, or nothing.
    pub(super) fn shows(
        &self,
        state: &mut Hypothesis,
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
            match Self::pass(state, actor) {
                // A task that waits for a tag may be woken for nothing.
                Stop::WaitsForTag
                    if state.world.go(actor, Goal::UntilTracePoint) != Stop::WaitsForTag => {}
                Stop::WaitsForTag | Stop::Idle => return false,
                _ => {}
            }
        }
        false
    }

    /// Runs an actor to its next trace point. It dispatches nothing on the way: the driver refuses
    /// its requests, and a run ends before the scheduler's decision.
    fn pass(state: &mut Hypothesis, actor: usize) -> Stop {
        match state.world.go(actor, Goal::UntilTracePoint) {
            Stop::BeforeQueueRq(_) => {
                state.world.refuse(actor, Goal::UntilTracePoint);
                Stop::AwaitsEvent
            }
            Stop::BeforeDecision => {
                Self::leave_run(state, actor);
                Stop::AwaitsEvent
            }
            stop => stop,
        }
    }

    /// Runs an actor to the end of its work, without records.
    pub(super) fn finish(state: &mut Hypothesis, actor: usize) -> bool {
        for _ in 0..STOPS_MOST {
            let shown = &mut state.world.actors[actor].shown;
            shown.retain(|point| !counts(point.action) && point.action != TraceAction::Requeue);
            if !shown.is_empty() {
                return false;
            }
            match Self::pass(state, actor) {
                Stop::Idle => return true,
                Stop::WaitsForTag => return false,
                _ => {}
            }
        }
        false
    }

    /// Both queues: the kernel's by the trace, and the model's.
    pub(super) fn show(state: &Hypothesis, queue: QueueId) -> String {
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

    /// A request of the model as reports name it.
    pub(super) fn range(state: &Hypothesis, queue: QueueId, rq: RequestId) -> String {
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| kernel::range(pool[rq].op, pool[rq].sector, pool[rq].sectors))
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
