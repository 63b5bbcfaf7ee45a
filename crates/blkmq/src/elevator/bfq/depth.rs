//! Depth limits: how many scheduler tags a kind of operation, and a process, may have.
//!
//! Kernel: bfq_limit_depth(), bfqq_request_over_limit(), bfq_update_depths() in
//! block/bfq-iosched.c (6.1.192, 6.12.117).

use super::ids::QId;
use super::{Bfq, DIVISION};
use crate::elevator::scheduler::Wanted;
use crate::request::Op;
use crate::rules::DepthLimit;

/// Classes of one level count as so many of the next one (IOPRIO_BE_NR).
const CLASS_FACTOR: u64 = 8;

/// Share of asynchronous operations and of synchronous writes, in sixteenths: without queues under
/// weight raising, and with some.
const SIXTEENTHS: [[u32; 2]; 2] = [[8, 12], [3, 6]];
/// The same of queue/async_depth, in twelfths (v7.0).
const TWELFTHS: [[u32; 2]; 2] = [[8, 12], [3, 6]];

impl Bfq {
    /// The limit of an operation; none if it is unlimited.
    fn kind_limit(&self, wanted: Wanted, of: u32) -> Option<u32> {
        let sync = wanted.is_sync();
        if sync && matches!(wanted.op, Op::Read | Op::Flush) {
            return None;
        }
        let (wr, sync) = (usize::from(self.wr_busy_queues != 0), usize::from(sync));
        let limit = match self.settings.async_depth {
            Some([_, seen]) => seen * TWELFTHS[wr][sync] / 12,
            None => of * SIXTEENTHS[wr][sync] / 16,
        };
        Some(limit.max(1))
    }

    /// The limit of an operation whose process has no queue of its kind.
    pub(super) fn depth_of_kind(&self, wanted: Wanted) -> Option<u32> {
        match self.rules.depth_limit {
            DepthLimit::TotalAndShare => {
                let limit = self.kind_limit(wanted, self.settings.nr_requests);
                limit.filter(|&limit| limit < wanted.map.nr_requests)
            }
            _ => self.kind_limit(wanted, 1 << wanted.map.shift),
        }
    }

    /// bfq_limit_depth().
    pub(super) fn depth(&mut self, wanted: Wanted) -> Option<u32> {
        self.charge(5);
        let (shift, nr_requests) = (wanted.map.shift, wanted.map.nr_requests);
        let (shown, depth) = match self.rules.depth_limit {
            DepthLimit::Words => {
                let depth = self.kind_limit(wanted, 1 << shift)?;
                (depth, Some(depth))
            }
            DepthLimit::WordsAndShare => {
                let mut depth = self.kind_limit(wanted, 1 << shift);
                let limit = depth.map_or(nr_requests, |depth| (nr_requests * depth) >> shift);
                if self.is_over_limit(wanted, limit) {
                    depth = Some(1);
                }
                (depth.unwrap_or(0), depth)
            }
            DepthLimit::TotalAndShare => {
                let limit = self.kind_limit(wanted, self.settings.nr_requests);
                let mut limit = limit.unwrap_or(nr_requests);
                if self.is_over_limit(wanted, limit) {
                    limit = 1;
                }
                (limit, (limit < nr_requests).then_some(limit))
            }
        };
        trace_device_msg!(self, "{}", self.depth_message(wanted, shown));
        depth
    }

    pub(super) fn depth_message(&self, wanted: Wanted, shown: u32) -> String {
        let (busy, sync) = (self.wr_busy_queues, u8::from(wanted.is_sync()));
        format!("[bfq_limit_depth] wr_busy {busy} sync {sync} depth {shown}")
    }

    /// The limit that the message shows if the process has no queue of this kind; none if there is
    /// no message.
    pub(super) fn shown_limit(&self, wanted: Wanted) -> Option<u32> {
        let map = wanted.map;
        match self.rules.depth_limit {
            DepthLimit::Words => self.kind_limit(wanted, 1 << map.shift),
            DepthLimit::WordsAndShare => Some(self.kind_limit(wanted, 1 << map.shift).unwrap_or(0)),
            DepthLimit::TotalAndShare => {
                let limit = self.kind_limit(wanted, self.settings.nr_requests);
                Some(limit.unwrap_or(map.nr_requests))
            }
        }
    }

    /// The process has a queue of this kind, so its share is checked under the lock.
    pub(super) fn looks_at_share(&self, wanted: Wanted) -> bool {
        let sync = wanted.is_sync();
        let mut actuators = 0..self.actuators() as u8;
        self.rules.depth_limit != DepthLimit::Words
            && actuators.any(|at| self.slot(wanted.io_context, sync, at).is_some())
    }

    fn is_over_limit(&mut self, wanted: Wanted, limit: u32) -> bool {
        let sync = wanted.is_sync();
        (0..self.actuators() as u8).any(|actuator| {
            let q = self.slot(wanted.io_context, sync, actuator);
            q.is_some_and(|q| self.has_its_share(q, limit))
        })
    }

    /// The queue, or a group above it, has as many requests as its weight allows
    /// (bfqq_request_over_limit()).
    fn has_its_share(&mut self, q: QId, limit: u32) -> bool {
        let e = self.entities.of(q);
        if !self.entities.path(e).all(|e| self.entities[e].on_st) {
            return false;
        }
        let mut limit = u64::from(limit);
        for level in (0..self.entities.path(e).count()).rev() {
            self.charge(4 + DIVISION);
            let at = self
                .entities
                .path(e)
                .nth(level)
                .expect("it is that far below");
            let entity = &self.entities[at];
            let trees = &self.groups[entity.group.index()].trees;
            let wsum = match level {
                0 => {
                    let classes = &trees[..usize::from(self.queues[q].class)];
                    let fold = |sum, tree: &super::service_tree::ServiceTree| {
                        sum * CLASS_FACTOR + tree.wsum
                    };
                    classes.iter().fold(0, fold)
                }
                // Groups are of class BE.
                _ => trees[1].wsum,
            };
            if wsum == 0 {
                continue;
            }
            limit = (limit * u64::from(entity.weight) + wsum / 2) / wsum;
            let allocated = entity.allocated;
            if i64::from(allocated) >= limit.cast_signed() {
                trace_msg!(
                    self,
                    q,
                    "too many requests: allocated {allocated} limit {limit} level {level}"
                );
                return true;
            }
        }
        false
    }
}
