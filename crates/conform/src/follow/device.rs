//! The device's side: D, R and C.

use blkmq::elevator::completed_level;
use blkmq::env::{Answer, TraceAction};
use blkmq::path::{CompletePath, Frame, PlugPath, RequeuePath, RequeueRequest, Unplug};
use blkmq::request::{HctxId, Op, Place, QueueId, RequestId, Status};

use super::{Follow, STOPS_MOST, State, counts, matches};
use crate::event::{Event, Kind};
use crate::world::{Goal, Stop};

/// Key of flushes among what is with the device: they have no address.
const FLUSHES: u64 = u64::MAX;

/// How the request of a D was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The task that hands it over was about to.
    Offered,
    /// Another one was.
    Elsewhere,
    /// The model had it, and would have handed over something else.
    Taken,
    /// The model has no such request.
    Unknown,
}

fn key(queue: QueueId, op: Op, sector: u64) -> (QueueId, u64) {
    match op {
        Op::Flush => (queue, FLUSHES),
        _ => (queue, sector),
    }
}

impl Follow<'_> {
    /// D: the driver gets this request.
    pub(crate) fn issue(&self, state: &mut State, index: usize) -> Found {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.at(state, index);
        let task = self.acting(state, task);
        if self.offers(state, task, index) {
            self.hand_over(state, task, index);
            return Found::Offered;
        }
        let fits = |number: usize| {
            let actor = &state.world.actors[number];
            let of = actor.stack.last().map(Frame::queue);
            let is = |rq| of == Some(queue) && Self::is(state, queue, rq, event);
            matches!(actor.stop, Stop::Offer(rq) if is(rq))
        };
        if let Some(other) = (0..state.world.actors.len()).find(|&number| fits(number)) {
            self.hand_over(state, other, index);
            return Found::Elsewhere;
        }
        let found = match self.take_anyway(state, queue, event) {
            Some(_) => Found::Taken,
            None => Found::Unknown,
        };
        self.go_on(state, index);
        found
    }

    fn hand_over(&self, state: &mut State, actor: usize, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let Stop::Offer(rq) = state.world.actors[actor].stop else {
            unreachable!("it offers the request");
        };
        // BLK_STS_RESOURCE: R follows D at once.
        let back = self.stream.next[index].is_some_and(|next| {
            let next = &self.stream.events[next];
            next.kind == Kind::Requeue && next.sector == event.sector
        });
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
        if actor == self.acting(state, self.stream.task[index]) {
            self.go_on(state, index);
        } else {
            state.world.go(actor, Goal::Run);
        }
    }

    fn op(state: &State, queue: QueueId, rq: RequestId) -> Op {
        state.world.mq.queue(queue).with_pool(|pool| pool[rq].op)
    }

    fn is(state: &State, queue: QueueId, rq: RequestId, event: &Event) -> bool {
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| {
            let r = &pool[rq];
            let flush = r.op == Op::Flush && event.op == Op::Flush;
            flush
                || r.op.direction() == event.op.direction()
                    && r.sector == event.sector
                    && r.sectors == event.sectors
        })
    }

    /// The task comes to the point where it offers the request of this D.
    fn offers(&self, state: &mut State, task: usize, index: usize) -> bool {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let mut tried = 0;
        for _ in 0..STOPS_MOST {
            let stop = state.world.actors[task].stop;
            match stop {
                Stop::Offer(rq) => {
                    let of = state.world.actors[task].stack.last().map(Frame::queue);
                    return of == Some(queue) && Self::is(state, queue, rq, event);
                }
                Stop::Pick => return false,
                Stop::Shown if !state.world.actors[task].shown.is_empty() => {
                    let shown = &mut state.world.actors[task].shown;
                    shown.retain(|point| !counts(point.action));
                    if !shown.is_empty() {
                        return false;
                    }
                }
                Stop::Idle | Stop::Parked => {
                    let Some(frame) = self.next_work(state, task, index, tried) else {
                        return false;
                    };
                    tried += 1;
                    state.world.begin(task, frame);
                }
                Stop::Shown | Stop::Later => {}
            }
            state.world.go(task, Goal::Show);
        }
        false
    }

    /// Nothing is under way: what a task that hands over a request has begun.
    fn next_work(
        &self,
        state: &mut State,
        task: usize,
        index: usize,
        tried: usize,
    ) -> Option<Frame> {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let q = queue.index();
        let plug = &state.world.actors[task].cpu.plug;
        if !plug.list.is_empty() && plug.queue == queue {
            return Some(Frame::Plug(PlugPath::unplug(queue, Unplug::Finish)));
        }
        if core::mem::take(&mut state.world.outside.requeue_work[q]) {
            return Some(Frame::Requeue(RequeuePath::new(queue)));
        }
        let own = state.world.hctx_of(queue, event.cpu);
        let hctxs = state.world.mq.queue(queue).hctxs.len();
        let mut order = vec![own];
        order.extend((0..hctxs as u16).map(HctxId).filter(|&hctx| hctx != own));
        let hctx = *order.get(tried)?;
        state.world.outside.run_work[q][usize::from(hctx.0)] = false;
        Some(Frame::Run(blkmq::path::RunPath::work(queue, hctx)))
    }

    /// R: the driver gave a request back.
    pub(super) fn requeue(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let task = self.at(state, index);
        let shown = &state.world.actors[task].shown;
        let at_once = shown
            .iter()
            .any(|p| p.action == TraceAction::Requeue && matches(p, event));
        if at_once || state.world.actors[task].stop == Stop::Later {
            if self.shows(state, task, index, TraceAction::Requeue) {
                self.go_on(state, index);
            }
            return;
        }
        let Some(rq) = Self::take_issued(state, queue, event) else {
            return;
        };
        let scratch = self.scratch();
        state.world.outside.take_back(&state.world.mq, queue, rq);
        let time = self.time(state, event);
        state
            .world
            .place(scratch, event.cpu, time, crate::world::Hint::Free);
        let path = RequeueRequest::new(queue, rq, false);
        state.world.begin(scratch, Frame::RequeueRequest(path));
        Self::run_out(state, scratch);
    }

    fn take_issued(state: &mut State, queue: QueueId, event: &Event) -> Option<RequestId> {
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
    pub(super) fn complete(&self, state: &mut State, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let irq = self.irq(event.cpu);
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
            state.kernels[queue.index()].end_bare(event);
            return;
        };
        if !whole {
            return;
        }
        self.end(state, index, rq);
    }

    fn end(&self, state: &mut State, index: usize, rq: RequestId) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let irq = self.irq(event.cpu);
        Self::run_out(state, irq);
        let q = state.world.mq.queue(queue);
        let place = q.with_pool(|pool| pool[rq].place);
        if state.world.outside.ahead.contains(&(queue, rq)) {
            state.ended_ahead.push((queue, rq));
            return;
        }
        if place != Place::Device {
            return;
        }
        let level = q.with_pool(|pool| completed_level(pool[rq].elv_priv));
        state.world.outside.take_back(&state.world.mq, queue, rq);
        let time = self.time(state, event);
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
            if stop == Stop::Shown {
                state.world.actors[irq].shown.clear();
                state.world.go(irq, Goal::BeforeFinish);
            }
        } else {
            state.world.go(irq, Goal::Show);
            state.world.actors[irq].shown.pop_front();
            Self::go_irq(state, irq);
        }
    }

    /// Requests that were offered only after they had completed end now.
    pub(super) fn end_offered(&self, state: &mut State) {
        let ahead = &state.world.outside.ahead;
        let is_offered = |ended: &(QueueId, RequestId)| !ahead.contains(ended);
        let Some(at) = state.ended_ahead.iter().position(is_offered) else {
            return;
        };
        let (queue, rq) = state.ended_ahead.remove(at);
        let scratch = self.scratch();
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

    /// What completes goes on, but for the end of flush sequences, which the trace shows.
    fn go_irq(state: &mut State, irq: usize) {
        for _ in 0..STOPS_MOST {
            match state.world.go(irq, Goal::Show) {
                Stop::Later => {}
                Stop::Offer(_) => {
                    state.world.refuse(irq, Goal::Show);
                }
                Stop::Pick => Self::leave_run(state, irq),
                Stop::Shown | Stop::Idle | Stop::Parked => return,
            }
        }
    }

    /// The completion that is under way on a CPU comes to its end.
    pub(super) fn finish_irq(state: &mut State, irq: usize) {
        Self::go_irq(state, irq);
    }

    /// An actor comes to its end whatever it shows.
    pub(super) fn run_out(state: &mut State, actor: usize) {
        for _ in 0..STOPS_MOST {
            match state.world.go(actor, Goal::Show) {
                Stop::Idle => return,
                Stop::Later => {}
                Stop::Shown => state.world.actors[actor].shown.clear(),
                Stop::Offer(_) => {
                    state.world.refuse(actor, Goal::Show);
                }
                Stop::Pick => Self::leave_run(state, actor),
                Stop::Parked => break,
            }
        }
        state.world.drop_paths(actor);
    }

    /// The request that a C is about, and whether all of it has completed.
    fn completing(state: &mut State, queue: QueueId, event: &Event) -> Option<(RequestId, bool)> {
        let pool = |rq: RequestId| {
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| (pool[rq].op, pool[rq].sectors.0))
        };
        let place = key(queue, event.op, event.sector.0);
        if let Some(issued) = state.issued.get(&place) {
            let fits = |&(rq, done): &(RequestId, u32)| {
                let (op, sectors) = pool(rq);
                let flush = op == Op::Flush && event.op == Op::Flush;
                flush || op.direction() == event.op.direction() && event.sectors.0 <= sectors - done
            };
            let at = issued.iter().position(fits)?;
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
