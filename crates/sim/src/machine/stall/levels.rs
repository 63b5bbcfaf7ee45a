//! Requests through both levels of a mapped device: the clone below each request above.

use blkmq::queue::RequestQueue;
use blkmq::request::{BioId, Place, QueueId, RequestId};

use super::{Below, Carried, View};

impl View<'_> {
    /// The state below of a request of `queue`; `None` if it is not with a mapped device, or is
    /// about to be offered to one.
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

    /// Bios of the bio-based device above whose clones a request carries; `None` elsewhere.
    pub(super) fn carries(&self, queue: &RequestQueue, rq: RequestId) -> Option<Carried> {
        let above = queue.bios_of?;
        let owners: Vec<BioId> = queue.with_pool(|pool| {
            let clones = pool.bios_of(rq);
            clones.map(|clone| BioId(pool.bio(clone).owner)).collect()
        });
        let bios: Vec<(u64, u32)> = self.layer.mq.queue(above).with_pool(|pool| {
            let own = owners.into_iter().map(|bio| pool.bio(bio));
            own.map(|bio| (bio.sector.0, bio.sectors.0)).collect()
        });
        (!bios.is_empty()).then(|| Carried {
            device: self.layer.name(above).unwrap_or_default().to_owned(),
            bios,
        })
    }

    /// A request that is reported as the clone of one above.
    pub(super) fn is_clone(&self, queue: &RequestQueue, rq: RequestId) -> bool {
        let Some(clones) = &queue.clones else {
            return false;
        };
        let above = self.layer.mq.queue(clones.above);
        let mapped = above.mapped.as_ref().expect("the queue above is mapped");
        let of = clones.original(rq);
        mapped.with_state(|state| state.tios[of.0 as usize].clone == Some(rq))
    }
}
