//! Requests through both levels of a stacked device: which clone below belongs to which above.

use blkmq::env::Solo;
use blkmq::queue::RequestQueue;
use blkmq::request::{Place, QueueId, RequestId};

use super::super::numbers::Above;
use super::{Below, View, live_requests};

impl View<'_> {
    /// What there is below of a request of `queue`; nothing to tell of one that is not with a
    /// stacked device, or is about to be offered to one.
    pub(super) fn below(&self, queue: QueueId, rq: RequestId, place: Place) -> Option<Below> {
        let device = self.layer.numbers.device_of(queue);
        if !self.devices[device].stacked {
            return None;
        }
        let below = self.layer.numbers.below(device);
        let slot = self.layer.numbers.slot(queue, rq);
        let mut clones = below.iter().filter_map(|&lower| self.clone_in(lower, slot));
        let with_device = (place == Place::Device).then_some(Below::Nothing);
        clones.next().or(with_device)
    }

    /// The clone of a request above in this queue.
    fn clone_in(&self, lower: QueueId, above: RequestId) -> Option<Below> {
        let queue = self.layer.mq.queue(lower);
        let mut clones = live_requests(queue).into_iter();
        let clone = clones.find(|&id| request_above(queue, id) == Some(above))?;
        Some(Below::Clone(Box::new(self.request(queue, clone))))
    }

    /// A request that is told as the clone of one above.
    pub(super) fn is_clone(&self, queue: &RequestQueue<Solo>, rq: RequestId) -> bool {
        let of_jobs = self.layer.numbers.above(queue.id) == Above::Jobs;
        !of_jobs && request_above(queue, rq).is_some()
    }
}

/// The request above that a clone's bio belongs to, as its device knows it.
fn request_above(queue: &RequestQueue<Solo>, rq: RequestId) -> Option<RequestId> {
    queue.with_pool(|pool| {
        let bio = pool[rq].bio_first?;
        Some(RequestId(pool.bio(bio).owner))
    })
}
