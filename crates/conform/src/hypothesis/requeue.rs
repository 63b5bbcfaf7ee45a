//! The requeue list, which a worker inserts from.
//!
//! Not here: how requests come to it (`device.rs`).

use blkmq::path::{Call, Frame, Inserts, RequeuePath, RequeueRequest};
use blkmq::request::{Place, QueueId, Request, RequestId};

use super::device::is_of;
use super::{Hypotheses, Hypothesis, Role};
use crate::event::Kind;
use crate::stream::Return;
use crate::world::{Goal, Stop};

impl Hypotheses<'_> {
    /// I of a request that is on the requeue list: the task is a worker, which splices the list.
    /// Requests that came after that, and are none of the worker's next I's, are taken off the list
    /// and [listed again](Self::list_again) when the worker has finished.
    pub(super) fn works_off_list(&self, state: &mut Hypothesis, index: usize) -> Vec<RequestId> {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let task = self.stream.task[index];
        if self.stream.returns[index] != Return::Listed {
            return Vec::new();
        }
        let listed = |r: &Request| r.place == Place::Requeue && is_of(r, event);
        let q = state.world.mq.queue(queue);
        let listed = q.with_pool(|pool| pool.iter().any(|(_, r)| listed(r)));
        if !listed || !Self::finish(state, task) {
            return Vec::new();
        }
        state.world.outside.requeue_work[queue.index()] = false;
        let late = self.take_late(state, index);
        let path = RequeuePath::new(queue);
        state.world.actors[task].cpu.kworker = event.pid.cast_signed();
        state.world.begin(task, Frame::Requeue(path));
        late
    }

    /// D of a request that is on the requeue list, by a task that is busy and thus no worker: the
    /// worker, of which no record shows anything, has inserted it, and not begun a run yet.
    pub(super) fn worked_off_list(&self, state: &mut Hypothesis, index: usize) {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let task = self.acting(state, self.stream.task[index]);
        let pending = state.world.outside.requeue_work[queue.index()];
        if !pending || state.world.actors[task].stop == Stop::Idle {
            return;
        }
        let q = state.world.mq.queue(queue);
        let listed = |(rq, r): (RequestId, &Request)| (r.place == Place::Requeue).then_some(rq);
        let listed: Vec<RequestId> = q.with_pool(|pool| pool.iter().filter_map(listed).collect());
        if !listed.iter().any(|&rq| Self::is(state, queue, rq, event)) {
            return;
        }
        let before = state.world.clone();
        let scratch = self.actor(Role::Forced);
        state.world.outside.requeue_work[queue.index()] = false;
        let path = RequeuePath::new(queue);
        state.world.begin(scratch, Frame::Requeue(path));
        state.world.go(scratch, Goal::BeforeRun);
        // Another insertion would have a record.
        if !state.world.actors[scratch].shown.is_empty() {
            state.world = before;
            return;
        }
        state.world.drop_paths(scratch);
        let q = state.world.mq.queue(queue);
        let runs = &mut state.world.outside.run_work[queue.index()];
        for (pending, hctx) in runs.iter_mut().zip(&q.hctxs) {
            *pending |= hctx.dispatch_pending.peek();
        }
    }

    /// The driver has refused a request that no run of the model had offered it. No worker inserts
    /// it again, so it is where a run leaves such a request: on the dispatch list.
    pub(super) fn leave_over(&self, state: &mut Hypothesis, queue: QueueId, rq: RequestId) {
        let scratch = self.actor(Role::Forced);
        let work = state.world.outside.requeue_work[queue.index()];
        let path = RequeueRequest::refused(queue, rq);
        state.world.begin(scratch, Frame::RequeueRequest(path));
        Self::run_out(state, scratch);
        state.world.outside.requeue_work[queue.index()] = work;
        let q = state.world.mq.queue(queue);
        q.requeue.adjust(|lists| {
            q.with_pool(|pool| {
                lists.requeue.remove(pool, rq);
                pool[rq].place = Place::Path;
            });
        });
        let insert = Inserts::left_over(queue, rq);
        state
            .world
            .begin(scratch, Frame::from(Call::Insert(insert)));
        Self::run_out(state, scratch);
    }

    /// Takes requests off the requeue list whose I is none of those of the worker of this one: they
    /// follow each other, as it inserts all before it runs the queues.
    fn take_late(&self, state: &Hypothesis, index: usize) -> Vec<RequestId> {
        let (queue, task) = (self.stream.queue[index], self.stream.task[index]);
        let after = index..self.stream.events.len();
        let mut own = after.filter(|&other| self.stream.task[other] == task);
        let mut taken = Vec::new();
        while let Some(other) = own.next()
            && self.stream.queue[other] == queue
            && self.stream.events[other].kind == Kind::Insert
            && self.stream.returns[other] == Return::Listed
        {
            taken.push(&self.stream.events[other]);
        }
        let mut late = Vec::new();
        let q = state.world.mq.queue(queue);
        q.requeue.adjust(|lists| {
            q.with_pool(|pool| {
                let mut all = core::mem::take(&mut lists.requeue);
                while let Some(rq) = all.pop_front(pool) {
                    let shown = taken.iter().position(|event| is_of(&pool[rq], event));
                    match shown {
                        // A request that goes to the dispatch list shows no I.
                        None if !pool[rq].dontprep => late.push(rq),
                        _ => lists.requeue.push_back(pool, rq),
                    }
                    shown.map(|at| taken.remove(at));
                }
            });
        });
        late
    }

    /// They are on the requeue list again, and its work is pending.
    pub(super) fn list_again(state: &mut Hypothesis, queue: QueueId, late: Vec<RequestId>) {
        let q = state.world.mq.queue(queue);
        state.world.outside.requeue_work[queue.index()] |= !late.is_empty();
        q.requeue.adjust(|lists| {
            q.with_pool(|pool| {
                for rq in late {
                    lists.requeue.push_back(pool, rq);
                }
            });
        });
    }
}
