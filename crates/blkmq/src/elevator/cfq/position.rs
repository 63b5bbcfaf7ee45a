//! Positions: queues of one level by the sector of their next request, and which of them cooperate.
//!
//! A position is recorded when a request is inserted and when the queue enters a tree. A dispatch
//! or a merge of requests changes it only then, so that a tree may be out of order meanwhile.
//! Kernel: cfq_prio_tree_add(), cfqq_close(), cfq_close_cooperator() in block/cfq-iosched.c (2.6.32
//! to 4.20).

use super::learn::FAR;
use super::queue::Class;
use super::{Cfq, QId};
use crate::elevator::pos_tree::{closest, look_up};
use crate::request::{RequestPool, Sector};
use crate::rules::{Candidate, Current, Seeks};

impl Cfq {
    /// Sorts a queue by its next request (cfq_prio_tree_add()).
    pub(super) fn position_add(&mut self, pool: &RequestPool, q: QId) {
        self.position_remove(q);
        let queue = &self.queues[q];
        let Some(next) = queue.next_rq.filter(|_| queue.class != Class::Idle) else {
            return;
        };
        let level = queue.org_level;
        let tree = &mut self.pos_trees[usize::from(level)];
        let looked = look_up(tree, &self.queues, pool, pool[next].sector);
        if looked.found.is_none() {
            tree.link(&mut self.queues, q.0, (looked.last, looked.side));
            self.queues[q].position_tree = Some(level);
        }
    }

    pub(super) fn position_remove(&mut self, q: QId) {
        if let Some(level) = self.queues[q].position_tree.take() {
            let tree = &mut self.pos_trees[usize::from(level)];
            tree.erase(&mut self.queues, q.0);
        }
    }

    /// The distance from the head at which a request is close, in the search for cooperators or for
    /// a preemption (cfq_rq_close()).
    fn close_distance(&self, cur: QId, preempts: bool) -> u64 {
        let mean = match self.rules.seeks {
            Seeks::MeanOfProcess => {
                let of = self
                    .active_process
                    .map(|p| self.processes[p.0 as usize].seeks);
                of.unwrap_or_default()
            }
            Seeks::MeanOfQueue => self.queues[cur].seeks,
            Seeks::History => return FAR,
        };
        let capped = self.rules.seeks == Seeks::MeanOfQueue && !preempts;
        match mean.is_valid() {
            false => FAR,
            true if capped => mean.mean.min(FAR),
            true => mean.mean,
        }
    }

    /// The sector is close to the head.
    pub(super) fn is_close(&self, cur: QId, sector: Sector, preempts: bool) -> bool {
        sector.0.abs_diff(self.last_position) <= self.close_distance(cur, preempts)
    }

    /// cfqq_close().
    fn find_close(&mut self, pool: &RequestPool, cur: QId) -> Option<QId> {
        let level = usize::from(self.queues[cur].org_level);
        if self.pos_trees[level].is_empty() {
            return None;
        }
        let sector = Sector(self.last_position);
        let looked = look_up(&mut self.pos_trees[level], &self.queues, pool, sector);
        let close = |other| self.is_close(cur, other, false);
        closest(&self.queues, pool, sector, looked, close).map(QId)
    }

    /// A queue that works where the active one did, and is served instead (cfq_close_cooperator()).
    /// With a mere probe the queue is not marked.
    pub(super) fn close_cooperator(
        &mut self,
        pool: &RequestPool,
        cur: QId,
        probe: bool,
    ) -> Option<QId> {
        if !self.may_look(cur) {
            return None;
        }
        let found = self.find_close(pool, cur)?;
        if !self.may_cooperate(cur, found) {
            return None;
        }
        if !probe && !self.rules.merge.marks_shared() {
            self.tie_of(found).coop = true;
        }
        Some(found)
    }

    fn may_look(&self, cur: QId) -> bool {
        let queue = &self.queues[cur];
        let steady = queue.flags.sync && !self.is_seeky(cur, None);
        match self.rules.merge.current {
            Current::AnyServed => self.active_process.is_some(),
            Current::Any => true,
            Current::SyncNotSeeky => steady,
            Current::SyncNotSeekyInCompany => {
                let idle = self.rules.idle_class_alone && queue.class == Class::Idle;
                !idle && steady && self.groups[queue.group].queues != 1
            }
        }
    }

    fn may_cooperate(&self, cur: QId, found: QId) -> bool {
        let (own, other) = (&self.queues[cur], &self.queues[found]);
        let tie = self.hold_true(self.ties.tie(found));
        let steady = other.flags.sync && !self.is_seeky(found, None);
        let real_time = |class| class == Class::RealTime;
        match self.rules.merge.candidate {
            Candidate::NotJumped => !tie.coop,
            Candidate::SyncNotJumped => other.flags.sync && !tie.coop,
            Candidate::SyncNotSeeky => steady,
            Candidate::SyncNotSeekyAlike => {
                steady && own.group == other.group && real_time(own.class) == real_time(other.class)
            }
        }
    }
}
