//! D: the actor that dispatches the request to the driver.

use blkmq::env::{Answer, TraceAction};
use blkmq::path::{Frame, PlugPath, RequeuePath, RunPath, Unplug};
use blkmq::request::{HctxId, Op, Place, QueueId, RequestId};

use super::device::{is_of, key};
use super::{Hypotheses, Hypothesis, Role, STOPS_MOST, counts};
use crate::event::{Event, Kind};
use crate::stream::Return;
use crate::world::{Goal, Stop};

/// Where the model has the request of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The event's task dispatches it.
    ByTask,
    /// Another actor on its CPU does.
    ByCpu,
    /// The scheduler has dispatched it: another CPU is about to issue it, or it waits for its turn.
    Dispatched,
    /// It is still queued: the model dispatches another one, or none.
    Queued,
    /// The model has no such request.
    Missing,
}

/// The way by which a task dispatches a request that it was not about to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// It waited for a tag, was woken, and runs the queue before it looks again.
    Woken,
    Plug,
    /// It works off the requeue list.
    Requeue,
    Run(HctxId),
}

impl Hypotheses<'_> {
    /// D: the driver gets this request. Without recorded calls it shows a decision.
    pub(super) fn issued(&self, state: &mut Hypothesis, index: usize) -> Option<Found> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let found = self.issue(state, index);
        let known = state.kernels[queue.index()].issue(event, !self.calls);
        if self.calls {
            return None;
        }
        if !known && found == Found::Missing {
            self.stand_in(state, index);
        }
        self.end_early(state, index);
        Some(found)
    }

    fn issue(&self, state: &mut Hypothesis, index: usize) -> Found {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.at(state, index);
        let task = self.acting(state, task);
        if !self.calls
            && let Some(found) = self.hand_over_standing(state, index)
        {
            return found;
        }
        self.worked_off_list(state, index);
        let waits = !self.calls && self.stream.while_waiting[index];
        let before = (waits || state.no_run_yet).then(|| state.world.clone());
        if self.offers(state, task, index) {
            self.hand_over(state, task, index);
            return Found::ByTask;
        }
        if let Some(before) = before {
            // The model has a tag where the kernel had none: another actor runs the queue.
            let after = core::mem::replace(&mut state.world, before);
            let runner = self.actor(Role::Runner(self.stream.task[index]));
            if waits && runner != task {
                let asleep = state.world.clone();
                if self.offers(state, runner, index) {
                    self.hand_over(state, runner, index);
                    return Found::ByTask;
                }
                state.world = asleep;
            }
            // It waits for its turn: nothing that the task began led to it.
            if state.no_run_yet
                && !self.comes_back(index)
                && Self::waits(state, queue, event)
                && self.take_anyway(state, queue, event).is_some()
            {
                return Found::Dispatched;
            }
            state.world = after;
        }
        if let Some(found) = self.hand_over_standing(state, index) {
            return found;
        }
        if !self.calls && self.comes_back(index) && Self::waits(state, queue, event) {
            return Found::Dispatched;
        }
        let found = match self.take_anyway(state, queue, event) {
            Some((_, Place::Elevator | Place::Ctx)) => Found::Queued,
            Some(_) => Found::Dispatched,
            None => Found::Missing,
        };
        self.go_on(state, index);
        found
    }

    /// The request that the task of a D would dispatch.
    pub(crate) fn would_offer(&self, state: &mut Hypothesis, index: usize) -> Option<RequestId> {
        let task = self.at(state, index);
        let task = self.acting(state, task);
        self.offers(state, task, index);
        match state.world.actors[task].stop {
            Stop::BeforeQueueRq(rq) => Some(rq),
            _ => None,
        }
    }

    /// An actor has stopped at the offer of the request of this D.
    fn hand_over_standing(&self, state: &mut Hypothesis, index: usize) -> Option<Found> {
        let own = self.acting(state, self.stream.task[index]);
        let holder = self.standing(state, index)?;
        let here = state.world.actors[holder].cpu.id.0 == self.stream.events[index].cpu;
        self.hand_over(state, holder, index);
        Some(match (holder == own, here) {
            (true, _) => Found::ByTask,
            // Tasks of one CPU take turns, and the trace shows their actions.
            (false, true) if holder >= self.stream.tasks => Found::ByCpu,
            (false, _) => Found::Dispatched,
        })
    }

    /// The actor that has stopped at the offer of the request of a D, or of an R without one: the
    /// event's own task first.
    fn standing(&self, state: &Hypothesis, index: usize) -> Option<usize> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let own = self.acting(state, self.stream.task[index]);
        let fits = |&number: &usize| {
            let actor = &state.world.actors[number];
            let of = actor.stack.last().map(Frame::queue);
            let is = |rq| of == Some(queue) && Self::is(state, queue, rq, event);
            matches!(actor.stop, Stop::BeforeQueueRq(rq) if is(rq))
        };
        let holders = core::iter::once(own).chain(0..state.world.actors.len());
        holders.into_iter().find(fits)
    }

    fn hand_over(&self, state: &mut Hypothesis, actor: usize, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let Stop::BeforeQueueRq(rq) = state.world.actors[actor].stop else {
            unreachable!("it offers the request");
        };
        let back = self.comes_back(index);
        let op = Self::op(state, queue, rq);
        if back {
            state.world.accept(actor, Answer::Resource);
        } else {
            state
                .issued
                .entry(key(queue, op, event.sector.0))
                .or_default()
                .push((rq, 0));
            state.world.accept(actor, Answer::Ok);
        }
        if !self.calls {
            self.go_on_after(state, actor, index);
        } else if actor == self.acting(state, self.stream.task[index]) {
            self.go_on(state, index);
        } else {
            state.world.go(actor, Goal::Run);
        }
    }

    /// BLK_STS_RESOURCE: R follows D at once. Not if the driver has put the request on the requeue
    /// list by itself: then it has answered BLK_STS_OK.
    fn comes_back(&self, index: usize) -> bool {
        let sector = self.stream.events[index].sector;
        self.stream.next[index].is_some_and(|next| {
            let event = &self.stream.events[next];
            let returns = self.stream.returns[next] == Return::Started;
            event.kind == Kind::Requeue && event.sector == sector && returns
        })
    }

    /// R of a request that the driver had refused before it started it. False: no actor would offer
    /// it.
    pub(super) fn refuse(&self, state: &mut Hypothesis, index: usize) -> bool {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let before = state.world.clone();
        let task = self.acting(state, self.stream.task[index]);
        let actor = match self.offers(state, task, index) {
            true => Some(task),
            false => {
                state.world = before;
                self.standing(state, index)
            }
        };
        let Some(actor) = actor else { return false };
        state.kernels[queue.index()].issue(event, true);
        state.world.accept(actor, Answer::Resource);
        self.shows(state, actor, index, TraceAction::Requeue);
        match self.calls {
            false => self.go_on_after(state, actor, index),
            true => self.go_on(state, index),
        }
        true
    }

    /// The request of a D is on a dispatch list, or belongs to a path.
    fn waits(state: &Hypothesis, queue: QueueId, event: &Event) -> bool {
        state.world.mq.queue(queue).with_pool(|pool| {
            let waits = |place| matches!(place, Place::Dispatch | Place::Path);
            let mut all = pool.iter();
            all.any(|(_, r)| waits(r.place) && is_of(r, event))
        })
    }

    fn op(state: &Hypothesis, queue: QueueId, rq: RequestId) -> Op {
        state.world.mq.queue(queue).with_pool(|pool| pool[rq].op)
    }

    /// The request is that of the event.
    pub(crate) fn is(state: &Hypothesis, queue: QueueId, rq: RequestId, event: &Event) -> bool {
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| {
            let r = &pool[rq];
            r.op == Op::Flush && event.op == Op::Flush || is_of(r, event)
        })
    }

    /// The task reaches the offer of the request of this D.
    fn offers(&self, state: &mut Hypothesis, task: usize, index: usize) -> bool {
        if let Some(found) = self.goes_to_offer(state, task, index) {
            return found;
        }
        // The task is idle, or waits: the D shows its next step.
        let ways = self.ways(state, task, index);
        if let [only] = ways[..] {
            return self.takes_way(state, task, index, only);
        }
        let before = state.world.clone();
        let mut first = None;
        for way in ways {
            if self.takes_way(state, task, index, way) {
                return true;
            }
            let failed = core::mem::replace(&mut state.world, before.clone());
            first.get_or_insert(failed);
        }
        state.world = first.unwrap_or(before);
        false
    }

    /// Runs it until it offers a request: true if that is the request of the D. None: it has
    /// no path in progress, or waits.
    fn goes_to_offer(&self, state: &mut Hypothesis, task: usize, index: usize) -> Option<bool> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        for _ in 0..STOPS_MOST {
            match state.world.actors[task].stop {
                Stop::BeforeQueueRq(rq) => {
                    let of = state.world.actors[task].stack.last().map(Frame::queue);
                    return Some(of == Some(queue) && Self::is(state, queue, rq, event));
                }
                Stop::BeforeDecision => return Some(false),
                Stop::AtTracePoint if !state.world.actors[task].shown.is_empty() => {
                    let shown = &mut state.world.actors[task].shown;
                    shown.retain(|point| !counts(point.action));
                    if !shown.is_empty() {
                        return Some(false);
                    }
                }
                Stop::Idle | Stop::WaitsForTag => return None,
                Stop::AtTracePoint | Stop::AwaitsEvent => {}
            }
            state.world.go(task, Goal::UntilTracePoint);
        }
        Some(false)
    }

    /// Calls of a task that can dispatch a request, likeliest first.
    fn ways(&self, state: &Hypothesis, task: usize, index: usize) -> Vec<Way> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let actor = &state.world.actors[task];
        let mut ways = Vec::new();
        if actor.stop == Stop::WaitsForTag {
            ways.push(Way::Woken);
        }
        let plugged = actor.cpu.plug.list.iter(&state.world.mq);
        if plugged.into_iter().any(|entry| entry.queue == queue) {
            ways.push(Way::Plug);
        }
        if state.world.outside.requeue_work[queue.index()] {
            ways.push(Way::Requeue);
        }
        let own = state.world.hctx_of(queue, event.cpu);
        ways.push(Way::Run(own));
        let hctxs = state.world.mq.queue(queue).hctxs.len() as u16;
        let others = (0..hctxs).map(HctxId).filter(|&hctx| hctx != own);
        ways.extend(others.map(Way::Run));
        ways
    }

    /// Goes one way, to the offer of a D's request if it leads there.
    fn takes_way(&self, state: &mut Hypothesis, task: usize, index: usize, way: Way) -> bool {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        match way {
            Way::Woken => {
                state.world.go(task, Goal::UntilTracePoint);
                return self.goes_to_offer(state, task, index) == Some(true);
            }
            Way::Plug => {
                let path = PlugPath::new(queue, Unplug::Finish);
                state.world.begin(task, Frame::Plug(path));
            }
            Way::Requeue => {
                state.world.outside.requeue_work[queue.index()] = false;
                let path = RequeuePath::new(queue);
                state.world.actors[task].cpu.kworker = event.pid.cast_signed();
                state.world.begin(task, Frame::Requeue(path));
            }
            Way::Run(_) => {}
        }
        let hctx = match way {
            Way::Run(hctx) => hctx,
            _ => match self.goes_to_offer(state, task, index) {
                Some(found) => return found,
                None => state.world.hctx_of(queue, event.cpu),
            },
        };
        // A run may move a request to a list without a tag, and be repeated.
        for _ in 0..if self.calls { 1 } else { 2 } {
            state.world.outside.take_work(queue, hctx);
            let run = RunPath::work(queue, hctx);
            state.world.begin(task, Frame::Run(run));
            if let Some(found) = self.goes_to_offer(state, task, index) {
                return found;
            }
        }
        false
    }
}
