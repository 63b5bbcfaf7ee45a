//! Runs that leave no trace, where only records show them.
//!
//! A run that would dispatch is visible as a D record; the model waits for that record. A run that
//! would not dispatch happens where it was caused: it may still move a request out of the
//! scheduler, which then waits for a tag. Kernel: blk_mq_run_work_fn(),
//! blk_mq_delay_run_hw_queue().

use blkmq::path::{Frame, RunPath};
use blkmq::request::{HctxId, QueueId, RequestId};
use blkmq::time::SimTime;

use super::clock::TICKS_BEFORE;
use super::{Hypotheses, Hypothesis, Role};
use crate::event::Kind;
use crate::world::{Goal, Hint, Stop, World};

impl Hypotheses<'_> {
    /// Before an event: delayed runs whose tick has come.
    pub(crate) fn run_due(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let hz = self.setups[0].hz;
        let now = TICKS_BEFORE + event.time.jiffies(hz);
        for queue in 0..state.world.outside.run_due.len() {
            for hctx in 0..state.world.outside.run_due[queue].len() {
                let due = &mut state.world.outside.run_due[queue][hctx];
                let Some(at) = due.filter(|&at| at <= now) else {
                    continue;
                };
                *due = None;
                state.world.outside.run_work[queue][hctx] = true;
                let time = World::time_of(at, hz);
                self.run_pending(state, QueueId(queue as _), HctxId(hctx as u16), time);
            }
        }
    }

    /// After an event: runs that it caused and that no record shows. `later`: pending runs stay
    /// pending.
    pub(crate) fn run_unseen(&self, state: &mut Hypothesis, index: usize, later: bool) {
        self.run_of_task(state, index);
        if later {
            return;
        }
        let time = self.time(state, self.stream.queue[index], &self.stream.events[index]);
        let time = self.decided_after(index, time);
        for queue in 0..state.world.outside.run_work.len() {
            for hctx in 0..state.world.outside.run_work[queue].len() {
                if state.world.outside.run_work[queue][hctx] {
                    self.run_pending(state, QueueId(queue as _), HctxId(hctx as u16), time);
                }
            }
        }
    }

    /// The task of an event continues to its next offer to the driver.
    pub(crate) fn go_to_offer(&self, state: &mut Hypothesis, index: usize) {
        let task = self.acting(state, self.stream.task[index]);
        for _ in 0..super::STOPS_MOST {
            if !matches!(
                state.world.go(task, Goal::UntilTracePoint),
                Stop::AwaitsEvent
            ) {
                return;
            }
        }
    }

    /// A task that does not dispatch next: its run left no record.
    fn run_of_task(&self, state: &mut Hypothesis, index: usize) {
        let event = &self.stream.events[index];
        let puts = matches!(event.kind, Kind::Get | Kind::Insert | Kind::RequestMerge);
        let goes_on = |next: usize| {
            let kind = self.stream.events[next].kind;
            self.stream.offers(next) || matches!(kind, Kind::Insert | Kind::RequestMerge)
        };
        let offers = self.stream.offers(index);
        if !(puts || offers) || self.stream.next[index].is_some_and(goes_on) {
            return;
        }
        let task = self.stream.task[index];
        let actor = &state.world.actors[task];
        let under_way =
            matches!(actor.stop, Stop::AwaitsEvent | Stop::AtTracePoint) && actor.shown.is_empty();
        let runs = matches!(
            actor.stack.last(),
            Some(Frame::Insert(_) | Frame::Plug(_) | Frame::Issue(_) | Frame::Run(_))
        );
        if !under_way || !runs {
            return;
        }
        Self::shows_nothing(state, task, Goal::UntilTracePoint);
    }

    /// Run the actor to completion; drop the request if it would dispatch one (another CPU won the
    /// race).
    fn shows_nothing(state: &mut Hypothesis, actor: usize, goal: Goal) {
        if !Self::may_offer(state, actor, goal) {
            state.world.go(actor, goal);
            return;
        }
        let before = state.world.clone();
        if let Stop::BeforeQueueRq(_) = state.world.go(actor, goal) {
            state.world = before;
            state.world.actors[actor].hint = Hint::Nothing;
            state.world.go(actor, goal);
            state.world.actors[actor].hint = Hint::Free;
        }
    }

    /// There is a request that a run of this actor could dispatch.
    fn may_offer(state: &Hypothesis, actor: usize, goal: Goal) -> bool {
        let frames = state.world.actors[actor].stack.frames();
        let runs = matches!(frames.last(), Some(Frame::Run(_) | Frame::Flush(_)));
        if goal == Goal::Run && !runs {
            return false;
        }
        let holds = |frame: &Frame| match frame {
            Frame::Run(run) => !run.owned().list.is_empty() || !run.passed().is_empty(),
            _ => false,
        };
        let queued = |frame: &Frame| {
            let q = state.world.mq.queue(frame.queue());
            let mut hctxs = (0..).map(HctxId).zip(&q.hctxs);
            hctxs.any(|(number, hctx)| {
                q.elevator.has_queued(number)
                    || hctx.dispatch_pending.peek()
                    || hctx.ctx_map.iter().any(|word| word.peek() != 0)
            })
        };
        frames.iter().any(|frame| match frame {
            Frame::Run(_) => holds(frame) || queued(frame),
            Frame::Plug(plug) => !plug.is_last() || queued(frame),
            Frame::Issue(issue) => issue.begins() || queued(frame),
            Frame::Submit(_) => false,
            _ => true,
        })
    }

    /// After a D: its run continues. The task's next event shows whether there is more.
    pub(crate) fn go_on_after(&self, state: &mut Hypothesis, actor: usize, index: usize) {
        let next = self.stream.next[index].map(|next| self.stream.events[next].kind);
        if self.guesses() {
            let (event, hint) = (&self.stream.events[index], state.world.actors[actor].hint);
            let time = self.measured(event.time);
            state.world.place(actor, event.cpu, time, hint);
        }
        let own = actor == self.acting(state, self.stream.task[index]);
        let more = matches!(next, Some(Kind::Issue | Kind::Requeue));
        match own && !more {
            true => Self::shows_nothing(state, actor, Goal::Run),
            false => {
                state.world.go(actor, Goal::Run);
            }
        }
    }

    /// Before an event: an actor on this CPU decides, and its choice shows later. The request, if
    /// there was any.
    pub(crate) fn decide_ahead(
        &self,
        state: &mut Hypothesis,
        index: usize,
        (queue, cpu): (QueueId, u16),
    ) -> Option<RequestId> {
        let time = self.time(state, self.stream.queue[index], &self.stream.events[index]);
        let free = |&actor: &usize| state.world.actors[actor].is_lost();
        let actor = self.ahead().find(free)?;
        let hctx = state.world.hctx_of(queue, cpu);
        state.world.place(actor, cpu, time, Hint::Asks(queue));
        let run = RunPath::work(queue, hctx);
        state.world.begin(actor, Frame::Run(run));
        let stop = state.world.go(actor, Goal::UntilTracePoint);
        state.world.place(actor, cpu, time, Hint::Nothing);
        let mut chosen = None;
        if stop == Stop::BeforeDecision {
            state.world.decide(actor, Goal::UntilTracePoint);
            chosen = Self::owned(state, actor);
        }
        for _ in 0..super::STOPS_MOST {
            match state.world.go(actor, Goal::UntilTracePoint) {
                Stop::AtTracePoint => state.world.actors[actor].shown.clear(),
                Stop::AwaitsEvent => {}
                Stop::BeforeQueueRq(_) | Stop::Idle | Stop::WaitsForTag | Stop::BeforeDecision => {
                    break;
                }
            }
        }
        chosen
    }

    /// A run that is pending in kblockd.
    fn run_pending(&self, state: &mut Hypothesis, queue: QueueId, hctx: HctxId, time: SimTime) {
        let q = state.world.mq.queue(queue);
        let has_work = q.elevator.has_queued(hctx);
        let in_ctx = q.hctx(hctx).ctx_map.iter().any(|word| word.peek() != 0);
        if !has_work && !in_ctx && !q.hctx(hctx).dispatch_pending.peek() {
            state.world.outside.run_work[queue.index()][usize::from(hctx.0)] = false;
            return;
        }
        // One work item does not run twice at once.
        let runs = |frame: &Frame| {
            matches!(frame, Frame::Run(run) if run.hctx() == hctx) && frame.queue() == queue
        };
        let mut stacks = state.world.actors.iter().map(|actor| actor.stack.frames());
        if stacks.any(|frames| frames.iter().any(runs)) {
            return;
        }
        let before = state.world.clone();
        let cpu = self.setups[queue.index()].hctxs[usize::from(hctx.0)]
            .cpus
            .first();
        let worker = self.actor(Role::Unseen);
        state
            .world
            .place(worker, cpu.copied().unwrap_or(0), time, Hint::Free);
        state.world.outside.run_work[queue.index()][usize::from(hctx.0)] = false;
        state
            .world
            .begin(worker, Frame::Run(RunPath::work(queue, hctx)));
        if let Stop::BeforeQueueRq(_) = state.world.go(worker, Goal::UntilTracePoint) {
            state.world = before;
        } else {
            state.ran_unseen = true;
        }
    }
}
