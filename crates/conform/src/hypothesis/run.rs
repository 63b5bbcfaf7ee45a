//! Runs of a hardware queue, from outside: begin, end, and the requests in between.

use blkmq::path::{Frame, RunPath};
use blkmq::request::{HctxId, QueueId, RequestId};

use super::{Hypotheses, Hypothesis};

impl Hypotheses<'_> {
    /// A run of this hctx begins.
    pub(crate) fn begin_run(state: &mut Hypothesis, actor: usize, queue: QueueId, hctx: HctxId) {
        if state.world.outside.take_work(queue, hctx) {
            let path = RunPath::work(queue, hctx);
            state.world.begin(actor, Frame::Run(path));
        }
    }

    /// The run of an actor ends here: the kernel asked for nothing more. No path owns the requests
    /// that it has dequeued.
    pub(crate) fn leave_run(state: &mut Hypothesis, actor: usize) {
        let world = &mut state.world;
        while let Some(frame) = world.actors[actor].stack.pop() {
            if let Frame::Run(run) = frame {
                let queue = frame.queue();
                world.mq.queue(queue).with_pool(|pool| {
                    for mut list in [run.owned().list, run.passed()] {
                        while let Some(rq) = list.pop_front(pool) {
                            state.unowned.push((queue, rq));
                        }
                    }
                });
                break;
            }
        }
        world.actors[actor].forget_wish();
    }

    /// The request that the run of an actor has picked last.
    pub(crate) fn owned(state: &Hypothesis, actor: usize) -> Option<RequestId> {
        match state.world.actors[actor].stack.last() {
            Some(Frame::Run(run)) => run.owned_pick(),
            _ => None,
        }
    }

    /// All that the run of an actor has picked: with several hctxs it sorts that once nothing more
    /// comes, and another one is the last.
    pub(crate) fn held_by_run(state: &Hypothesis, actor: usize) -> Vec<RequestId> {
        let Some(&frame @ Frame::Run(run)) = state.world.actors[actor].stack.last() else {
            return Vec::new();
        };
        let q = state.world.mq.queue(frame.queue());
        q.with_pool(|pool| {
            let lists = [run.owned().list, run.passed()];
            lists.iter().flat_map(|list| list.iter(pool)).collect()
        })
    }
}
