//! The device's side: D, R and C.

use blkmq::elevator::completed_level;
use blkmq::env::{Answer, Bit, TraceAction, TracePoint};
use blkmq::path::{CompletePath, Frame, PlugPath, RequeuePath, RequeueRequest, Unplug};
use blkmq::request::{HctxId, Op, Place, QueueId, RequestId, Status};

use super::{Follow, STOPS_MOST, State, counts, matches};
use crate::event::{Event, Kind};
use crate::world::{Actor, Goal, Stop};

/// Key of flushes among what is with the device: they have no address.
const FLUSHES: u64 = u64::MAX;

/// How the request of a D was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The task that hands it over was about to.
    Offered,
    /// Another one of this CPU was.
    Elsewhere,
    /// Another CPU was, or it waits for its turn: the scheduler has given it out.
    Chosen,
    /// The model had it, and would have handed over something else.
    Taken,
    /// The model has no such request.
    Unknown,
}

/// How a task comes to hand over a request that it was not about to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// It waited for a tag, was woken, and runs the queue before it looks again.
    Woken,
    /// It lets go of its plug.
    Plug,
    /// It works off the requeue list.
    Requeue,
    /// It runs this hctx.
    Run(HctxId),
}

/// Where a request is found that is with the device.
pub(super) fn key(queue: QueueId, op: Op, sector: u64) -> (QueueId, u64) {
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
        if !self.calls
            && let Some(found) = self.hand_over_standing(state, index)
        {
            return found;
        }
        let waits = !self.calls && self.stream.while_waiting[index];
        let before = (waits || state.not_begun).then(|| state.world.clone());
        if self.offers(state, task, index) {
            self.hand_over(state, task, index);
            return Found::Offered;
        }
        if let Some(before) = before {
            // The model has a tag where the kernel had none: somebody else runs the queue.
            let after = core::mem::replace(&mut state.world, before);
            let runner = self.runner(self.stream.task[index]);
            if waits && runner != task {
                let asleep = state.world.clone();
                if self.offers(state, runner, index) {
                    self.hand_over(state, runner, index);
                    return Found::Offered;
                }
                state.world = asleep;
            }
            // It waits for its turn: whatever the task began led elsewhere, and was not begun.
            if state.not_begun
                && !self.comes_back(index)
                && Self::waits(state, queue, event)
                && self.take_anyway(state, queue, event).is_some()
            {
                return Found::Chosen;
            }
            state.world = after;
        }
        if let Some(found) = self.hand_over_standing(state, index) {
            return found;
        }
        if !self.calls && self.comes_back(index) && Self::waits(state, queue, event) {
            return Found::Chosen;
        }
        let found = match self.take_anyway(state, queue, event) {
            Some((_, Place::Elevator | Place::Ctx)) => Found::Taken,
            Some(_) => Found::Chosen,
            None => Found::Unknown,
        };
        self.go_on(state, index);
        found
    }

    /// What the task of a D would hand over.
    pub(crate) fn would_offer(&self, state: &mut State, index: usize) -> Option<RequestId> {
        let task = self.at(state, index);
        let task = self.acting(state, task);
        self.offers(state, task, index);
        match state.world.actors[task].stop {
            Stop::Offer(rq) => Some(rq),
            _ => None,
        }
    }

    /// Somebody stands where he offers the request of this D.
    fn hand_over_standing(&self, state: &mut State, index: usize) -> Option<Found> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let own = self.acting(state, self.stream.task[index]);
        let fits = |&number: &usize| {
            let actor = &state.world.actors[number];
            let of = actor.stack.last().map(Frame::queue);
            let is = |rq| of == Some(queue) && Self::is(state, queue, rq, event);
            matches!(actor.stop, Stop::Offer(rq) if is(rq))
        };
        let holders = core::iter::once(own).chain(0..state.world.actors.len());
        let holder = holders.into_iter().find(fits)?;
        let here = state.world.actors[holder].cpu.id.0 == event.cpu;
        self.hand_over(state, holder, index);
        Some(match (holder == own, here) {
            (true, _) => Found::Offered,
            // Tasks of one CPU take turns, and show in the trace what they do.
            (false, true) if holder >= self.stream.tasks => Found::Elsewhere,
            (false, _) => Found::Chosen,
        })
    }

    fn hand_over(&self, state: &mut State, actor: usize, index: usize) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let Stop::Offer(rq) = state.world.actors[actor].stop else {
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
            self.go_on_behind(state, actor, index);
        } else if actor == self.acting(state, self.stream.task[index]) {
            self.go_on(state, index);
        } else {
            state.world.go(actor, Goal::Run);
        }
    }

    /// BLK_STS_RESOURCE: R follows D at once.
    fn comes_back(&self, index: usize) -> bool {
        let sector = self.stream.events[index].sector;
        self.stream.next[index].is_some_and(|next| {
            let next = &self.stream.events[next];
            next.kind == Kind::Requeue && next.sector == sector
        })
    }

    /// The request of a D is on a dispatch list, or in the hands of a path.
    fn waits(state: &State, queue: QueueId, event: &Event) -> bool {
        state.world.mq.queue(queue).with_pool(|pool| {
            let waits = |place| matches!(place, Place::Dispatch | Place::Path);
            let mut all = pool.iter();
            all.any(|(_, r)| {
                waits(r.place)
                    && r.op.direction() == event.op.direction()
                    && (r.sector, r.sectors) == (event.sector, event.sectors)
            })
        })
    }

    fn op(state: &State, queue: QueueId, rq: RequestId) -> Op {
        state.world.mq.queue(queue).with_pool(|pool| pool[rq].op)
    }

    /// The request is that of the event.
    pub(crate) fn is(state: &State, queue: QueueId, rq: RequestId, event: &Event) -> bool {
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
        if let Some(found) = self.goes_to_offer(state, task, index) {
            return found;
        }
        // Nothing is under way, or it waits: what it does next the D tells.
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

    /// It goes on until it offers something, which is the request of the D or not. None: it has
    /// nothing under way, or waits.
    fn goes_to_offer(&self, state: &mut State, task: usize, index: usize) -> Option<bool> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        for _ in 0..STOPS_MOST {
            match state.world.actors[task].stop {
                Stop::Offer(rq) => {
                    let of = state.world.actors[task].stack.last().map(Frame::queue);
                    return Some(of == Some(queue) && Self::is(state, queue, rq, event));
                }
                Stop::Pick => return Some(false),
                Stop::Shown if !state.world.actors[task].shown.is_empty() => {
                    let shown = &mut state.world.actors[task].shown;
                    shown.retain(|point| !counts(point.action));
                    if !shown.is_empty() {
                        return Some(false);
                    }
                }
                Stop::Idle | Stop::Parked => return None,
                Stop::Shown | Stop::Later => {}
            }
            state.world.go(task, Goal::Show);
        }
        Some(false)
    }

    /// What a task can have begun that hands over a request, likeliest first.
    fn ways(&self, state: &State, task: usize, index: usize) -> Vec<Way> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let actor = &state.world.actors[task];
        let mut ways = Vec::new();
        if actor.stop == Stop::Parked {
            ways.push(Way::Woken);
        }
        if !actor.cpu.plug.list.is_empty() && actor.cpu.plug.queue == queue {
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
    fn takes_way(&self, state: &mut State, task: usize, index: usize, way: Way) -> bool {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        match way {
            Way::Woken => {
                state.world.go(task, Goal::Show);
                return self.goes_to_offer(state, task, index) == Some(true);
            }
            Way::Plug => {
                let path = PlugPath::unplug(queue, Unplug::Finish);
                state.world.begin(task, Frame::Plug(path));
            }
            Way::Requeue => {
                state.world.outside.requeue_work[queue.index()] = false;
                let path = RequeuePath::new(queue);
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
            let run = blkmq::path::RunPath::work(queue, hctx);
            state.world.begin(task, Frame::Run(run));
            if let Some(found) = self.goes_to_offer(state, task, index) {
                return found;
            }
        }
        false
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
        // Who offered it for another one.
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
            // A path has it still to offer.
            ahead.remove(at);
            return;
        }
        let scratch = self.scratch();
        state.world.outside.take_back(&state.world.mq, queue, rq);
        let time = self.time(state, event);
        state
            .world
            .place(scratch, event.cpu, time, crate::world::Hint::Free);
        let path = RequeueRequest::new(queue, rq, false);
        state.world.begin(scratch, Frame::RequeueRequest(path));
        Self::run_out(state, scratch);
        if !self.calls && core::mem::take(&mut state.world.outside.requeue_work[queue.index()]) {
            let path = RequeuePath::new(queue);
            state.world.begin(scratch, Frame::Requeue(path));
            Self::run_out(state, scratch);
        }
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
    fn complete_early(state: &mut State, queue: QueueId, event: &Event) {
        let q = state.world.mq.queue(queue);
        let early = q.with_pool(|pool| {
            let waits = |place| {
                matches!(
                    place,
                    Place::Elevator | Place::Dispatch | Place::Path | Place::Ctx
                )
            };
            let is = |r: &blkmq::request::Request| {
                waits(r.place)
                    && r.op.direction() == event.op.direction()
                    && (r.sector, r.sectors) == (event.sector, event.sectors)
            };
            pool.iter().find(|(_, r)| is(r)).map(|(rq, _)| rq)
        });
        if let Some(rq) = early
            && !state.early.contains(&(queue, rq))
        {
            Self::note(state, "a request completed before the driver had it");
            state.early.push((queue, rq));
        }
    }

    /// Behind a D: its request has completed already.
    pub(crate) fn end_early(&self, state: &mut State, index: usize) {
        let queue = self.stream.queue[index];
        let with_device = |&(of, rq): &(QueueId, RequestId)| {
            of == queue && Self::place(state, queue, rq) == Place::Device
        };
        let Some(at) = state.early.iter().position(with_device) else {
            return;
        };
        let (_, rq) = state.early.remove(at);
        for (_, issued) in state.issued.iter_mut().filter(|(key, _)| key.0 == queue) {
            issued.retain(|&(other, _)| other != rq);
        }
        state.issued.retain(|_, issued| !issued.is_empty());
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
        if !self.calls && self.setups[queue.index()].budget.is_some() {
            Self::run_again(state, queue, rq);
        }
        let q = state.world.mq.queue(queue);
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

    /// scsi_run_queue_async(): the mid-layer runs its queues after each command.
    fn run_again(state: &mut State, queue: QueueId, rq: RequestId) {
        let q = state.world.mq.queue(queue);
        let own = q.with_pool(|pool| pool[rq].hctx);
        let pending = &mut state.world.outside.run_work[queue.index()];
        for (number, hctx) in q.hctxs.iter().enumerate() {
            pending[number] |= number == usize::from(own.0) || hctx.dispatch_pending.peek();
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
