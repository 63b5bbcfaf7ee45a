//! Cooperation: does another queue work on the same region, so that both should be merged?
//!
//! Called for each bio and request of a queue. If no queue is close, a planned or due stable merge
//! decides (`plan.rs`, `stable_merge.rs`). Kernel: bfq_setup_cooperator(),
//! bfq_may_be_close_cooperator() in block/bfq-iosched.c (6.1.192, 6.12.117; 5.13).

use super::Bfq;
use super::ids::QId;
use super::position::is_close;
use super::process::ProcessId;
use super::queue::IDLE;
use crate::request::{RequestPool, Sector};

impl Bfq {
    /// The queue that requests of `q` go to from now on, if there is one; `sector` belongs to the
    /// current bio or request (bfq_setup_cooperator()).
    pub(super) fn setup_cooperator(
        &mut self,
        pool: &RequestPool,
        q: QId,
        sector: Sector,
        process: ProcessId,
    ) -> Option<QId> {
        self.charge(4);
        let planned = self.planned(q);
        if self.rules.chain_to_tail && planned.is_some() {
            return planned;
        }
        if !self.nonrot_with_queueing && self.stable_merge_is_due(q, process) {
            return self.setup_stable_merge(q, process, Bfq::idling_boosts);
        }
        if self.nonrot_with_queueing || self.too_late(q) {
            return None;
        }
        if planned.is_some() {
            return planned;
        }
        if self.busy_queues_total() == 1 {
            return None;
        }
        let group = self.entities[self.entities.of(q)].group;
        if let Some(s) = self.in_service.filter(|&s| s != q)
            && is_close(sector, Sector(self.in_serv_last_pos))
            && self.entities[self.entities.of(s)].group == group
            && self.may_cooperate(q, s)
            && let Some(new) = self.setup_merge(q, s)
        {
            return Some(new);
        }
        let close = self.find_close(pool, group.index(), sector);
        let close = close.filter(|&close| close != q && self.may_cooperate(q, close))?;
        self.setup_merge(q, close)
    }

    /// bfq_may_be_close_cooperator().
    fn may_cooperate(&self, q: QId, other: QId) -> bool {
        if self.too_late(other) {
            return false;
        }
        let (a, b) = (&self.queues[q], &self.queues[other]);
        a.class != IDLE
            && a.class == b.class
            && !a.is_seeky()
            && !b.is_seeky()
            && a.flags.sync
            && b.flags.sync
    }
}
