//! The device's side: R and C; D is in `issue.rs`.

use blkmq::elevator::completed_level;
use blkmq::env::{TraceAction, TracePoint};
use blkmq::path::{CompletePath, Frame, RequeuePath, RequeueRequest};
use blkmq::request::{Op, Place, QueueId, Request, RequestId, Status};

use super::{Hypotheses, Hypothesis, Role, STOPS_MOST, matches};
use crate::event::Event;
use crate::stream::Return;
use crate::world::{Actor, Goal, Stop};

/// Key of flushes among the requests in flight: they have no address.
const FLUSHES: u64 = u64::MAX;

/// Where a request is found that is with the device.
pub(super) fn key(queue: QueueId, op: Op, sector: u64) -> (QueueId, u64) {
    match op {
        Op::Flush => (queue, FLUSHES),
        _ => (queue, sector),
    }
}

/// A request is of the direction, start and length of an event.
pub(super) fn is_of(r: &Request, event: &Event) -> bool {
    r.op.direction() == event.op.direction()
        && (r.sector, r.sectors) == (event.sector, event.sectors)
}

impl Hypotheses<'_> {
    /// R: the driver gave a request back.
    pub(super) fn requeue(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.at(state, index);
        let shown = &state.world.actors[task].shown;
        let at_once = shown
            .iter()
            .any(|p| p.action == TraceAction::Requeue && matches(p, event));
        if !at_once && self.stream.returns[index] == Return::Refused {
            if Self::is_known(state, queue, event) && !self.refuse(state, index) {
                Self::note(
                    state,
                    "a request came back that the model would not have offered",
                );
            }
            return;
        }
        // A request that no path has offered went to the device all the same, and comes back from
        // there.
        let taken = state
            .issued
            .contains_key(&key(queue, event.op, event.sector.0));
        if at_once || !taken && state.world.actors[task].stop == Stop::AwaitsEvent {
            if self.shows(state, task, index, TraceAction::Requeue) {
                self.go_on(state, index);
            }
            return;
        }
        // The actor that offered it for another one.
        let is = |p: &TracePoint| {
            p.action == TraceAction::Requeue && p.queue == queue && matches(p, event)
        };
        let actors = &state.world.actors;
        let refused = |actor: &Actor| actor.shown.iter().any(is);
        if let Some(other) = actors.iter().position(refused).filter(|_| !self.calls) {
            state.world.actors[other].shown.retain(|point| !is(point));
            state.world.go(other, Goal::Run);
            return;
        }
        let Some(rq) = Self::take_issued(state, queue, event) else {
            return;
        };
        let ahead = &mut state.world.outside.ahead;
        if let Some(at) = ahead.iter().position(|&known| known == (queue, rq)) {
            // A path has still to offer it.
            ahead.remove(at);
            return;
        }
        let scratch = self.actor(Role::Forced);
        state.world.outside.take_back(&state.world.mq, queue, rq);
        let time = self.time(state, queue, event);
        state
            .world
            .place(scratch, event.cpu, time, crate::world::Hint::Free);
        if self.calls && self.stream.returns[index] != Return::Listed {
            self.leave_over(state, queue, rq);
            return;
        }
        let path = RequeueRequest::taken(queue, rq, false);
        state.world.begin(scratch, Frame::RequeueRequest(path));
        Self::run_out(state, scratch);
        if self.calls || self.stream.returns[index] == Return::Listed {
            return;
        }
        if core::mem::take(&mut state.world.outside.requeue_work[queue.index()]) {
            let path = RequeuePath::new(queue);
            state.world.begin(scratch, Frame::Requeue(path));
            Self::run_out(state, scratch);
        }
    }

    /// The model has the request of an R, and not with the device.
    fn is_known(state: &Hypothesis, queue: QueueId, event: &Event) -> bool {
        let away = |place| matches!(place, Place::Free | Place::Device | Place::Completing);
        let waits = |r: &Request| !away(r.place) && is_of(r, event);
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| pool.iter().any(|(_, r)| waits(r)))
    }

    fn take_issued(state: &mut Hypothesis, queue: QueueId, event: &Event) -> Option<RequestId> {
        let place = key(queue, event.op, event.sector.0);
        let issued = state.issued.get_mut(&place)?;
        let (rq, _) = issued.first().copied()?;
        issued.remove(0);
        if issued.is_empty() {
            state.issued.remove(&place);
        }
        Some(rq)
    }

    /// C: a request, or a part of it, has left the device.
    pub(super) fn complete(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let irq = self.actor(Role::Interrupt(event.cpu));
        // The end of a flush sequence, which no device sees, or a bio that must not wait.
        let is = |point: &blkmq::env::TracePoint| {
            point.action == TraceAction::Complete && point.queue == queue && matches(point, event)
        };
        for actor in [irq, self.stream.task[index]] {
            let shown = &mut state.world.actors[actor].shown;
            if let Some(at) = shown.iter().position(is) {
                shown.remove(at);
                Self::run_out(state, irq);
                state.kernels[queue.index()].end_bare(event);
                return;
            }
        }
        let Some((rq, whole)) = Self::completing(state, queue, event) else {
            if !state.kernels[queue.index()].end_bare(event) && !self.calls {
                Self::complete_early(state, queue, event);
            }
            return;
        };
        if !whole {
            return;
        }
        self.end(state, index, rq);
    }

    /// C of a request whose D is still to come: the trace contradicts itself.
    fn complete_early(state: &mut Hypothesis, queue: QueueId, event: &Event) {
        let q = state.world.mq.queue(queue);
        let early = q.with_pool(|pool| {
            let waits = |place| {
                matches!(
                    place,
                    Place::Elevator | Place::Dispatch | Place::Path | Place::Ctx
                )
            };
            let is = |r: &Request| waits(r.place) && is_of(r, event);
            pool.iter().find(|(_, r)| is(r)).map(|(rq, _)| rq)
        });
        if let Some(rq) = early
            && !state.completed_before_issue.contains(&(queue, rq))
        {
            Self::note(state, "a request completed before the driver had it");
            state.completed_before_issue.push((queue, rq));
        }
    }

    /// After a D: its request has completed already.
    pub(crate) fn end_early(&self, state: &mut Hypothesis, index: usize) {
        let queue = self.stream.queue[index];
        let with_device = |&(of, rq): &(QueueId, RequestId)| {
            of == queue && Self::place(state, queue, rq) == Place::Device
        };
        let Some(at) = state.completed_before_issue.iter().position(with_device) else {
            return;
        };
        let (_, rq) = state.completed_before_issue.remove(at);
        for (_, issued) in state.issued.iter_mut().filter(|(key, _)| key.0 == queue) {
            issued.retain(|&(other, _)| other != rq);
        }
        state.issued.retain(|_, issued| !issued.is_empty());
        self.end(state, index, rq);
    }

    fn end(&self, state: &mut Hypothesis, index: usize, rq: RequestId) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let irq = self.actor(Role::Interrupt(event.cpu));
        Self::run_out(state, irq);
        let q = state.world.mq.queue(queue);
        let place = q.with_pool(|pool| pool[rq].place);
        if state.world.outside.ahead.contains(&(queue, rq)) {
            state.completed_while_queued.push((queue, rq));
            return;
        }
        if place != Place::Device {
            return;
        }
        if !self.calls && self.setups[queue.index()].budget.is_some() {
            Self::run_again(state, queue, rq);
        }
        let q = state.world.mq.queue(queue);
        let counted = q.elevator.completed().is_some();
        let level = q.with_pool(|pool| completed_level(pool[rq].elv_priv));
        let level = level.filter(|_| counted);
        state.world.outside.take_back(&state.world.mq, queue, rq);
        let time = self.time(state, queue, event);
        state
            .world
            .place(irq, event.cpu, time, crate::world::Hint::Free);
        let status = Status::Ok;
        let path = CompletePath::end(queue, rq, status);
        state.world.begin(irq, Frame::Complete(path));
        if let Some(level) = level {
            match self.stream.finish_follows[index] {
                true => state.finishing.insert(event.cpu, level),
                false => state.late.insert(event.cpu, level),
            };
        }
        if self.stream.finish_follows[index] {
            let stop = state.world.go(irq, Goal::BeforeFinish);
            if stop == Stop::AtTracePoint {
                state.world.actors[irq].shown.clear();
                state.world.go(irq, Goal::BeforeFinish);
            }
        } else {
            state.world.go(irq, Goal::UntilTracePoint);
            state.world.actors[irq].shown.pop_front();
            Self::go_irq(state, irq);
        }
    }

    /// scsi_run_queue_async(): the mid-layer runs its queues after each command.
    fn run_again(state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        let q = state.world.mq.queue(queue);
        let own = q.with_pool(|pool| pool[rq].hctx);
        let pending = &mut state.world.outside.run_work[queue.index()];
        for (number, hctx) in q.hctxs.iter().enumerate() {
            pending[number] |= number == usize::from(own.0) || hctx.dispatch_pending.peek();
        }
    }

    /// Requests that were offered only after they had completed end now.
    pub(super) fn end_offered(&self, state: &mut Hypothesis) {
        let ahead = &state.world.outside.ahead;
        let is_offered = |ended: &(QueueId, RequestId)| !ahead.contains(ended);
        let Some(at) = state.completed_while_queued.iter().position(is_offered) else {
            return;
        };
        let (queue, rq) = state.completed_while_queued.remove(at);
        let scratch = self.actor(Role::Forced);
        state
            .world
            .mq
            .queue(queue)
            .with_pool(|pool| pool[rq].place = Place::Device);
        state.world.outside.take_back(&state.world.mq, queue, rq);
        let path = CompletePath::end(queue, rq, Status::Ok);
        state.world.begin(scratch, Frame::Complete(path));
        Self::run_out(state, scratch);
    }

    /// The completion in progress continues, up to the end of flush sequences, which the trace
    /// shows.
    pub(super) fn go_irq(state: &mut Hypothesis, irq: usize) {
        for _ in 0..STOPS_MOST {
            if Self::pass(state, irq) != Stop::AwaitsEvent {
                return;
            }
        }
    }

    /// Runs an actor to its end through all its trace points.
    pub(super) fn run_out(state: &mut Hypothesis, actor: usize) {
        for _ in 0..STOPS_MOST {
            match Self::pass(state, actor) {
                Stop::Idle => return,
                Stop::AtTracePoint => state.world.actors[actor].shown.clear(),
                Stop::WaitsForTag => break,
                _ => {}
            }
        }
        state.world.drop_paths(actor);
    }

    /// The request that a C is about, and whether all of it has completed.
    fn completing(
        state: &mut Hypothesis,
        queue: QueueId,
        event: &Event,
    ) -> Option<(RequestId, bool)> {
        let pool = |rq: RequestId| {
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| (pool[rq].op, pool[rq].sectors.0))
        };
        let elsewhere = |rq: RequestId| {
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| pool[rq].hctx) != state.world.hctx_of(queue, event.cpu)
        };
        let place = key(queue, event.op, event.sector.0);
        if let Some(issued) = state.issued.get(&place) {
            let fits = |&at: &usize| {
                let (rq, done) = issued[at];
                let (op, sectors) = pool(rq);
                let flush = op == Op::Flush && event.op == Op::Flush;
                flush || op.direction() == event.op.direction() && event.sectors.0 <= sectors - done
            };
            // Each hctx has a flush of its own, and completes its requests on its CPUs.
            let fitting = (0..issued.len()).filter(fits);
            let at = fitting.min_by_key(|&at| elsewhere(issued[at].0))?;
            let (rq, done) = issued[at];
            let (op, sectors) = pool(rq);
            let left = sectors - done.min(sectors) - event.sectors.0.min(sectors - done);
            let issued = state.issued.get_mut(&place).expect("it was just found");
            issued.remove(at);
            if issued.is_empty() {
                state.issued.remove(&place);
            }
            if left == 0 || op == Op::Flush {
                return Some((rq, true));
            }
            // The rest starts later.
            let rest = event.sector.end(event.sectors).0;
            let done = sectors - left;
            state
                .issued
                .entry((queue, rest))
                .or_default()
                .push((rq, done));
            return Some((rq, false));
        }
        None
    }
}

#[cfg(test)]
mod tests;
