//! The report of a miss.

use blkmq::request::RequestId;

use super::Records;
use crate::hypothesis::Hypotheses;
use crate::judge::Judge;

impl Records<'_> {
    /// The D of the kernel and the request that the model would have dispatched instead.
    pub(super) fn report(&self, index: usize, judge: &mut Judge) {
        let event = &self.stream.events[index];
        let queue = self.stream.queue[index];
        let (mut state, from) = self.checkpoints.before(index);
        for event in from..index {
            if self.step(&mut state, event).is_err() {
                return;
            }
        }
        let mut text = Hypotheses::show(&state, queue);
        let q = state.world.mq.queue(queue);
        for (number, hctx) in q.hctxs.iter().enumerate() {
            let waiting = hctx.dispatch.inspect(|list| *list);
            let waiting: Vec<RequestId> = q.with_pool(|pool| waiting.iter(pool).collect());
            let names: Vec<String> = waiting
                .iter()
                .map(|&rq| Hypotheses::range(&state, queue, rq))
                .collect();
            let names = names.join(", ");
            text.push_str(&format!(
                "  hctx {number}: dispatch [{names}] restart={} busy={}\n",
                u8::from(hctx.restart.peek()),
                hctx.dispatch_busy.peek()
            ));
        }
        let offered = self.hypotheses.would_offer(&mut state, index);
        let by_model = offered.map_or("nothing".to_owned(), |rq| {
            Hypotheses::range(&state, queue, rq)
        });
        judge.miss(event.time, event.range(), by_model, text);
    }
}
