//! What a miss looks like.

use blkmq::env::{Bit, Count, Lock};
use blkmq::request::{QueueId, RequestId};

use super::Records;
use crate::follow::{Follow, State};
use crate::kernel::letter;
use crate::verdict::{Judge, show_request};

/// Direction, start and length of a request.
fn name(state: &State, queue: QueueId, rq: RequestId) -> String {
    let q = state.world.mq.queue(queue);
    q.with_pool(|pool| {
        let r = &pool[rq];
        format!("{} {}+{}", letter(r.op), r.sector.0, r.sectors.0)
    })
}

impl Records<'_> {
    /// The D of the kernel and what the model would have handed over instead.
    pub(super) fn report(&self, index: usize, judge: &mut Judge) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let (mut state, from) = self.kept.before(index);
        for event in from..index {
            if self.step(&mut state, event).is_err() {
                return;
            }
        }
        let mut text = Follow::show(&state, queue);
        let q = state.world.mq.queue(queue);
        for (number, hctx) in q.hctxs.iter().enumerate() {
            let waiting = hctx.dispatch.inspect(|list| *list);
            let waiting: Vec<RequestId> = q.with_pool(|pool| waiting.iter(pool).collect());
            let names: Vec<String> = waiting.iter().map(|&rq| name(&state, queue, rq)).collect();
            let names = names.join(", ");
            text.push_str(&format!(
                "  hctx {number}: dispatch [{names}] restart={} busy={}\n",
                u8::from(hctx.restart.peek()),
                hctx.dispatch_busy.peek()
            ));
        }
        let offered = self.follow.would_offer(&mut state, index);
        let by_model = offered.map_or("nothing".to_owned(), |rq| name(&state, queue, rq));
        judge.miss(event.time, show_request(event), by_model, text);
    }
}
