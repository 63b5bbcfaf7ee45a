//! Requests through both levels of a mapped device: which clone below belongs to which above.

use blkmq::env::Solo;
use blkmq::queue::RequestQueue;
use blkmq::request::{Place, QueueId, RequestId};

use super::{Below, View};

impl View<'_> {
    /// What there is below of a request of `queue`; nothing to tell of one that is not with a
    /// mapped device, or is about to be offered to one.
    pub(super) fn below(&self, queue: QueueId, rq: RequestId, place: Place) -> Option<Below> {
        let mapped = self.layer.mq.queue(queue).mapped.as_ref()?;
        let tio = mapped.with_state(|state| state.tios[rq.0 as usize]);
        if let (Some(clone), Some(way)) = (tio.clone, tio.mapped) {
            let lower = self.layer.mq.queue(mapped.queue_of(way.path));
            return Some(Below::Clone(Box::new(self.request(lower, clone))));
        }
        if self.mappers.has(queue, rq) {
            return Some(Below::Unmapped);
        }
        (place == Place::Device).then_some(Below::Nothing)
    }

    /// A request that is told as the clone of one above.
    pub(super) fn is_clone(&self, queue: &RequestQueue<Solo>, rq: RequestId) -> bool {
        let Some(clones) = &queue.clones else {
            return false;
        };
        let above = self.layer.mq.queue(clones.above);
        let mapped = above.mapped.as_ref().expect("the queue above is mapped");
        let of = clones.original(rq);
        mapped.with_state(|state| state.tios[of.0 as usize].clone == Some(rq))
    }
}
