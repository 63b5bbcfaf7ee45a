//! Actions of the kernel that the paths would not take: their effect on the scheduler is imposed.

use blkmq::elevator::Override;
use blkmq::env::{Cpu, TraceAction};
use blkmq::path::{Call, Frame, SubmitPath};
use blkmq::queue::{LockId, LockKind, RequestQueue};
use blkmq::request::{
    Bio, BioId, CpuId, Place, Plugged, QueueId, RequestId, RequestPool, Sector, Sectors, Status,
};
use blkmq::rules::NoMerges;

use super::device::is_of;
use super::{Hypotheses, Hypothesis, Role};
use crate::event::Event;
use crate::kernel::Entry;
use crate::world::{Goal, Hint, Stop};

impl Hypotheses<'_> {
    /// Something that decides nothing by itself.
    pub(super) fn note(state: &mut Hypothesis, what: &'static str) {
        state.notes.push(what);
    }

    /// A task does something that its path would not: the path is dropped.
    pub(super) fn lose(&self, state: &mut Hypothesis, index: usize, what: &'static str) {
        Self::note(state, what);
        let task = self.stream.task[index];
        for actor in [task, self.actor(Role::Runner(task))] {
            let runs = |frame: &Frame| matches!(frame, Frame::Run(_));
            while state.world.actors[actor].stack.frames().iter().any(runs) {
                Self::leave_run(state, actor);
            }
            state.world.drop_paths(actor);
        }
        for Plugged { queue, rq } in state.world.empty_plug(task) {
            self.free(state, queue, rq);
        }
        state.differs[self.stream.queue[index].index()] = true;
    }

    /// A request that the model's scheduler holds, of this direction, start and length.
    pub(super) fn held(state: &Hypothesis, queue: QueueId, entry: &Entry) -> Option<RequestId> {
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| {
            let is = |r: &blkmq::request::Request| {
                r.place == Place::Elevator
                    && r.op.direction() == entry.op.direction()
                    && r.sector == entry.sector
                    && r.sectors == entry.sectors
            };
            pool.iter().find(|(_, r)| is(r)).map(|(rq, _)| rq)
        })
    }

    fn apply_override(&self, state: &mut Hypothesis, queue: QueueId, with: Override) {
        let scratch = self.actor(Role::Forced);
        let world = &mut state.world;
        let cpu = &mut world.actors[scratch].cpu;
        let q = world.mq.queue(queue);
        q.elevator.apply_override(q, with, cpu);
    }

    /// A bio joined this request: so it does in the model.
    pub(super) fn grow(
        &self,
        state: &mut Hypothesis,
        queue: QueueId,
        before: &Entry,
        event: &Event,
        front: bool,
    ) {
        let Some(rq) = Self::held(state, queue, before) else {
            return;
        };
        let start = if front { event.sector } else { before.sector };
        let range: (Sector, Sectors) = (start, Sectors(before.sectors.0 + event.sectors.0));
        self.apply_override(state, queue, Override::Resize(rq, range.0, range.1));
    }

    /// The kernel's scheduler holds this request: the model's gets it, outside of any path.
    pub(super) fn put_in(
        &self,
        state: &mut Hypothesis,
        queue: QueueId,
        entry: &Entry,
        event: &Event,
    ) {
        if !state.world.mq.queue(queue).has_elevator() {
            return;
        }
        let scratch = self.actor(Role::Forced);
        let time = self.time(state, queue, event);
        state.world.place(scratch, entry.cpu, time, Hint::Else);
        let mut bio = Bio::default();
        bio.op = entry.op;
        bio.sector = entry.sector;
        bio.sectors = entry.sectors;
        bio.flags = entry.flags;
        (bio.flags.preflush, bio.flags.fua) = (false, false);
        bio.segments = 1;
        bio.ioprio = entry.ioprio;
        let q = state.world.mq.queue(queue);
        let Some(bio) = q.with_pool(|pool| pool.add_bio(bio)) else {
            return;
        };
        let settings = &mut state.world.mq.queues[queue.index()].settings;
        let before = (settings.nomerges, settings.limits);
        settings.nomerges = NoMerges::Never;
        settings.limits.max_sectors = u32::MAX;
        settings.limits.max_discard_sectors = u32::MAX;
        settings.limits.chunk_sectors = 0;
        let submit = SubmitPath::new(queue, bio);
        state.world.begin(scratch, Frame::Submit(submit));
        for _ in 0..super::STOPS_MOST {
            let stop = state.world.go(scratch, Goal::UntilTracePoint);
            let shown = &mut state.world.actors[scratch].shown;
            let inserted = shown
                .iter()
                .any(|point| point.action == TraceAction::Insert);
            shown.clear();
            if inserted || !matches!(stop, Stop::AtTracePoint | Stop::AwaitsEvent) {
                break;
            }
        }
        state.world.drop_paths(scratch);
        let settings = &mut state.world.mq.queues[queue.index()].settings;
        (settings.nomerges, settings.limits) = before;
    }

    /// The model's scheduler removes a request that the kernel's does not have.
    fn take_out(&self, state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        self.apply_override(state, queue, Override::Remove(rq));
        self.free(state, queue, rq);
    }

    /// A request that no path and no list holds is free again, with its tags.
    fn free(&self, state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| {
            for bio in pool.bios_of(rq).collect::<Vec<_>>() {
                end_bio(pool, bio);
            }
            pool[rq].bio_first = None;
            pool[rq].bio_last = None;
            pool[rq].bio_count = 0;
        });
        let scratch = self.actor(Role::Forced);
        state
            .world
            .place(scratch, 0, blkmq::time::SimTime::ZERO, Hint::Else);
        state
            .world
            .begin(scratch, Frame::from(Call::Free { queue, rq }));
        Self::run_out(state, scratch);
    }

    /// After a difference the model continues with the requests of the kernel's scheduler.
    pub(crate) fn resync(&self, state: &mut Hypothesis, queue: QueueId, event: &Event) {
        if !core::mem::take(&mut state.differs[queue.index()]) {
            return;
        }
        if !state.world.mq.queue(queue).has_elevator() {
            return;
        }
        let mut missing: Vec<Entry> = state.kernels[queue.index()].queued().cloned().collect();
        let held: Vec<(RequestId, u64, u32, bool, bool)> = {
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| {
                // Without calls the trace has not shown the dispatched requests yet.
                let held = pool.iter().filter(|(_, r)| match r.place {
                    Place::Elevator => true,
                    Place::Path | Place::Dispatch | Place::Requeue => !self.calls,
                    _ => false,
                });
                let shape = |(rq, r): (RequestId, &blkmq::request::Request)| {
                    let write = r.op.direction() == blkmq::request::Direction::Write;
                    let in_scheduler = r.place == Place::Elevator;
                    (rq, r.sector.0, r.sectors.0, write, in_scheduler)
                };
                held.map(shape).collect()
            })
        };
        for (rq, start, length, write, in_scheduler) in held {
            let is = |e: &Entry| {
                let writes = e.op.direction() == blkmq::request::Direction::Write;
                e.sector.0 == start && e.sectors.0 == length && writes == write
            };
            match missing.iter().position(is) {
                Some(at) => {
                    missing.remove(at);
                }
                None if in_scheduler => self.take_out(state, queue, rq),
                None => {}
            }
        }
        for entry in &missing {
            self.put_in(state, queue, entry, event);
        }
    }

    /// The kernel chose this request: so does the model's scheduler.
    pub(crate) fn force_dispatch(&self, state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        self.apply_override(state, queue, Override::Dispatch(rq));
        state.unowned.push((queue, rq));
    }

    /// The kernel's scheduler chose the request of this D, and the model's has it still.
    pub(crate) fn decide_instead(&self, state: &mut Hypothesis, issue: usize) {
        let (event, queue) = (&self.stream.events[issue], self.stream.queue[issue]);
        if let Some(rq) = Self::queued_at(state, queue, event) {
            self.force_dispatch(state, queue, rq);
        }
    }

    /// Where the model has a request.
    pub(crate) fn place(state: &Hypothesis, queue: QueueId, rq: RequestId) -> Place {
        state.world.mq.queue(queue).with_pool(|pool| pool[rq].place)
    }

    pub(crate) fn start(state: &Hypothesis, queue: QueueId, rq: RequestId) -> Sector {
        state
            .world
            .mq
            .queue(queue)
            .with_pool(|pool| pool[rq].sector)
    }

    /// No request in the trace has the range of a D: it takes the place of the one that the model
    /// would dispatch.
    pub(crate) fn stand_in(&self, state: &mut Hypothesis, index: usize) {
        let queue = self.stream.queue[index];
        let task = self.acting(state, self.stream.task[index]);
        let actor = &state.world.actors[task];
        let Stop::BeforeQueueRq(rq) = actor.stop else {
            return;
        };
        if actor.stack.last().map(Frame::queue) != Some(queue) {
            return;
        }
        let q = state.world.mq.queue(queue);
        let mut event = self.stream.events[index].clone();
        q.with_pool(|pool| {
            (event.op, event.sector, event.sectors) =
                (pool[rq].op, pool[rq].sector, pool[rq].sectors);
        });
        state.kernels[queue.index()].issue(&event, true);
        let key = super::device::key(queue, event.op, event.sector.0);
        state.issued.entry(key).or_default().push((rq, 0));
        state.world.accept(task, blkmq::env::Answer::Ok);
        state.world.go(task, Goal::Run);
    }

    /// A request of the model that is of this start, in the scheduler.
    pub(crate) fn queued_at(
        state: &Hypothesis,
        queue: QueueId,
        event: &Event,
    ) -> Option<RequestId> {
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| {
            let is = |r: &blkmq::request::Request| {
                r.place == Place::Elevator && r.sector == event.sector
            };
            pool.iter().find(|(_, r)| is(r)).map(|(rq, _)| rq)
        })
    }

    /// The driver has a request that no path has offered it: the model's copy leaves its place.
    pub(super) fn take_anyway(
        &self,
        state: &mut Hypothesis,
        queue: QueueId,
        event: &Event,
    ) -> Option<(RequestId, Place)> {
        let candidates: Vec<(RequestId, Place)> = {
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| {
                let all = pool.iter().filter(|(_, r)| is_of(r, event));
                all.map(|(rq, r)| (rq, r.place)).collect()
            })
        };
        let usable = |place: Place| {
            matches!(
                place,
                Place::Elevator | Place::Dispatch | Place::Path | Place::Ctx
            )
        };
        let &(rq, known) = candidates.iter().find(|&&(_, place)| usable(place))?;
        let place = match known {
            Place::Path => Self::put_back(state, queue, rq),
            place => place,
        };
        match place {
            Place::Elevator => {
                self.force_dispatch(state, queue, rq);
                state.unowned.pop();
            }
            Place::Dispatch => self.leave_dispatch(state, queue, rq),
            Place::Ctx => self.leave_ctx(state, queue, rq),
            _ => match state
                .unowned
                .iter()
                .position(|&unowned| unowned == (queue, rq))
            {
                Some(at) => {
                    state.unowned.remove(at);
                }
                // A path has still to offer it.
                None => state.world.outside.ahead.push((queue, rq)),
            },
        }
        let now = self.time(state, queue, event);
        let q = state.world.mq.queue(queue);
        q.with_pool(|pool| {
            pool[rq].place = Place::Device;
            pool[rq].in_flight = true;
            pool[rq].io_start_time = now;
        });
        let key = super::device::key(queue, event.op, event.sector.0);
        state.issued.entry(key).or_default().push((rq, 0));
        Some((rq, known))
    }

    /// The path that inserts the request, whose insertion the capture does not have, continues
    /// until it is there.
    fn bring(state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        let place =
            |state: &Hypothesis| state.world.mq.queue(queue).with_pool(|pool| pool[rq].place);
        let brings = |frame: &Frame| {
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| match frame {
                Frame::Submit(path) => pool.bios_of(rq).any(|bio| bio == path.bio()),
                Frame::Requeue(path) => {
                    let mut lists = path.owned().into_iter();
                    lists.any(|list| list.iter(pool).any(|it| it == rq))
                }
                frame => {
                    let listed = frame.owned_by_insert();
                    let listed = listed.is_some_and(|hand| hand.list.iter(pool).any(|it| it == rq));
                    listed || frame.inserts() == Some(rq)
                }
            })
        };
        let here = |frame: &&Frame| frame.queue() == queue;
        let holds = |actor: &crate::world::Actor| {
            let frames = actor.stack.frames();
            frames.iter().filter(here).any(brings)
        };
        let Some(number) = state.world.actors.iter().position(holds) else {
            return;
        };
        for _ in 0..super::STOPS_MOST {
            let stop = state.world.actors[number].stop;
            if place(state) != Place::Path
                || !matches!(stop, Stop::AtTracePoint | Stop::AwaitsEvent)
            {
                break;
            }
            state.world.go(number, Goal::UntilTracePoint);
            let shown = &mut state.world.actors[number].shown;
            shown.retain(|point| point.action != TraceAction::Insert);
        }
    }

    /// A run that owns the request offers something else: it is refused, so that the remainder goes
    /// to the dispatch list. Returns the place of the request then.
    fn put_back(state: &mut Hypothesis, queue: QueueId, rq: RequestId) -> Place {
        Self::bring(state, queue, rq);
        let holds = |actor: &crate::world::Actor| {
            let Some(Frame::Run(run)) = actor.stack.last() else {
                return false;
            };
            let of = actor.stack.last().map(Frame::queue);
            if !matches!(actor.stop, Stop::BeforeQueueRq(_)) || of != Some(queue) {
                return false;
            }
            let list = run.owned().list;
            let q = state.world.mq.queue(queue);
            q.with_pool(|pool| list.iter(pool).any(|other| other == rq))
        };
        if let Some(holder) = state.world.actors.iter().position(holds) {
            state.world.refuse(holder, Goal::Run);
        }
        state.world.mq.queue(queue).with_pool(|pool| pool[rq].place)
    }

    fn leave_dispatch(&self, state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        let scratch = self.actor(Role::Forced);
        let world = &mut state.world;
        let cpu = &mut world.actors[scratch].cpu;
        let q = world.mq.queue(queue);
        for (number, hctx) in q.hctxs.iter().enumerate() {
            let lock = LockId::new(queue, LockKind::Dispatch, number as u32);
            cpu.begin_label();
            world.mq.acquire(lock, cpu);
            let mut list = hctx.dispatch.held(cpu);
            let left = q.with_pool(|pool| {
                if list.iter(pool).any(|other| other == rq) {
                    list.remove(pool, rq);
                }
                !list.is_empty()
            });
            drop(list);
            cpu.begin_label();
            if left != hctx.dispatch_pending.peek() {
                hctx.dispatch_pending.mirror(cpu, left);
            }
            hctx.dispatch.release(cpu);
        }
    }

    fn leave_ctx(&self, state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        let scratch = self.actor(Role::Forced);
        let world = &mut state.world;
        let cpu = &mut world.actors[scratch].cpu;
        let q = world.mq.queue(queue);
        for (number, ctx) in q.ctxs.iter().enumerate() {
            let lock = LockId::new(queue, LockKind::Ctx, number as u32);
            cpu.begin_label();
            world.mq.acquire(lock, cpu);
            let mut lists = ctx.lists.held(cpu);
            let mut emptied = None;
            q.with_pool(|pool| {
                for (kind, list) in lists.iter_mut().enumerate() {
                    if list.iter(pool).any(|other| other == rq) {
                        list.remove(pool, rq);
                        emptied = list.is_empty().then_some(kind);
                    }
                }
            });
            drop(lists);
            if let Some(kind) = emptied {
                unmark(q, number, kind, cpu);
            }
            ctx.lists.release(cpu);
        }
    }
}

/// Under ctx->lock: the list of this kind is empty (sbitmap_clear_bit of the hctx's ctx_map).
fn unmark(q: &RequestQueue, ctx: usize, kind: usize, cpu: &mut Cpu) {
    for hctx in &q.hctxs {
        let of = |&(id, of): &(CpuId, _)| usize::from(id.0) == ctx && usize::from(of) == kind;
        if let Some(bit) = hctx.ctxs.iter().position(of) {
            let (word, mask) = hctx.ctx_word(bit as u32);
            word.fetch_and(cpu, !mask);
            q.ctxs[ctx].pending[kind].clear(cpu);
        }
    }
}

/// A bio ends that no path of the model ends. A bio with parts in flight ends with the last of
/// them.
pub(super) fn end_bio(pool: &mut RequestPool, bio: BioId) {
    if let Some((whole, _)) = pool.end_piece(bio, Status::Ok) {
        pool.free_bio(whole);
    }
}
