//! Queue: the requests of one process, or of several whose queues were merged.
//!
//! References are counted as in the kernel, get by get and put by put. Not here: when a queue is
//! busy (`busy.rs`), the queues of a process (`process.rs`). Kernel: struct bfq_queue in
//! block/bfq-iosched.h (6.1.192, 6.12.117).

use core::ops::{Index, IndexMut};

use super::ids::QId;
use super::process::ProcessId;
use crate::elevator::pos_tree::Placed;
use crate::list::QueueList;
use crate::rbtree::{RbNode, RbNodes};
use crate::request::{RequestId, RequestPool, Sector};
use crate::sort::SortTree;

/// Classes as the kernel numbers them.
pub(super) const RT: u8 = 1;
pub(super) const BE: u8 = 2;
pub(super) const IDLE: u8 = 3;

/// enum bfqq_state_flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "bits of one word in the kernel, each under its name"
)]
pub(super) struct Flags {
    pub(super) just_created: bool,
    pub(super) busy: bool,
    pub(super) wait_request: bool,
    pub(super) non_blocking_wait_rq: bool,
    pub(super) fifo_expire: bool,
    pub(super) has_short_ttime: bool,
    pub(super) sync: bool,
    pub(super) io_bound: bool,
    pub(super) in_large_burst: bool,
    pub(super) softrt_update: bool,
    pub(super) coop: bool,
    pub(super) split_coop: bool,
}

/// Think time, ns (struct bfq_ttime).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ThinkTimes {
    pub(super) last_end_request: u64,
    pub(super) total: u64,
    pub(super) samples: u64,
    pub(super) mean: u64,
}

/// State of weight raising that is saved. Times are ticks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct WeightRaising {
    /// The factor of the weight; 1: no weight raising.
    pub(super) coeff: u32,
    pub(super) cur_max_time: i64,
    /// Start of the period, or its end if the period is over.
    pub(super) last_start_finish: i64,
    pub(super) start_at_switch_to_srt: i64,
    /// Sectors served during weight raising.
    pub(super) service: u64,
}

/// Fields named `..._ns` are times of the clock, others are ticks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queue {
    /// A unique address, for the log.
    pub(super) address: u64,
    pub(super) references: i32,
    /// The part of the references that processes hold whose queues will be merged into it later
    /// (stable_ref).
    pub(super) stable_references: i32,
    /// References of replaced plans, kept for ever (v5.13).
    pub(super) lost_references: i32,
    /// The part of stable_references that belongs to replaced candidates, kept for ever as well.
    pub(super) lost_candidates: i32,
    pub(super) class: u8,
    pub(super) level: u8,
    pub(super) new_class: u8,
    pub(super) new_level: u8,
    pub(super) flags: Flags,
    pub(super) pid: i32,
    pub(super) owner: Option<ProcessId>,
    /// Which drive arm its requests are for.
    pub(super) actuator: u8,
    /// The queue that its processes change to (`new_bfqq`).
    pub(super) new: Option<QId>,
    pub(super) next_rq: Option<RequestId>,
    pub(super) sort: SortTree,
    pub(super) fifo: QueueList,
    /// Queued requests: asynchronous, synchronous.
    pub(super) queued: [u32; 2],
    pub(super) meta_pending: u32,
    pub(super) dispatched: i32,
    pub(super) max_budget: i32,
    /// End of the slot; while the queue is idle with nothing in flight: the start of that time.
    pub(super) budget_timeout: i64,
    /// Weight under which the queue counts among the active ones.
    pub(super) counted_weight: Option<u32>,
    pub(super) pos: RbNode,
    pub(super) last_request_pos: u64,
    pub(super) seek_history: u32,
    pub(super) ttime: ThinkTimes,
    pub(super) io_start_ns: u64,
    pub(super) idle_total_ns: u64,
    /// Quick arrivals in a row (v5.11).
    pub(super) requests_within_timer: u32,
    pub(super) wr: WeightRaising,
    pub(super) soft_rt_next_start: i64,
    pub(super) last_idle_backlogged: i64,
    pub(super) service_from_backlogged: u64,
    pub(super) split_time: i64,
    pub(super) first_io_time: i64,
    pub(super) creation_time: i64,
    pub(super) inject_limit: u32,
    pub(super) last_serv_time_ns: u64,
    pub(super) decrease_time: i64,
    pub(super) in_burst_list: bool,
    pub(super) waker: Option<QId>,
    pub(super) tentative_waker: Option<QId>,
    pub(super) waker_detections: u32,
    pub(super) waker_detection_started_ns: u64,
    /// Whether the queue is in the list of its waker.
    pub(super) in_woken_list: bool,
    pub(super) woken: Vec<QId>,
    /// The part of its ideal share below one sector, which is shown later.
    pub(super) share_rest: u64,
}

impl Queue {
    /// More than 19 of the last 32 requests were seeks (BFQQ_SEEKY).
    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > 19
    }

    /// All of the last 32 requests were seeks (BFQQ_TOTALLY_SEEKY).
    #[inline]
    pub(super) fn is_totally_seeky(&self) -> bool {
        self.seek_history == u32::MAX
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.sort.is_empty()
    }

    #[inline]
    pub(super) fn is_wr(&self) -> bool {
        self.wr.coeff > 1
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queues {
    list: Vec<Queue>,
    free: Vec<QId>,
    addresses: u64,
    /// Slots are not used again, so that a stale number names no other queue.
    pub(super) once: bool,
}

impl Queues {
    pub(super) fn allocate(&mut self) -> QId {
        let q = self.free.pop().unwrap_or_else(|| {
            self.list.push(Queue::default());
            QId(self.list.len() as u32 - 1)
        });
        self.addresses += 1;
        self[q].address = self.addresses;
        q
    }

    pub(super) fn free(&mut self, q: QId) {
        let woken = core::mem::take(&mut self[q].woken);
        self[q] = Queue {
            woken,
            ..Queue::default()
        };
        if !self.once {
            self.free.push(q);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (QId, &Queue)> {
        let all = self.list.iter().enumerate();
        all.map(|(at, queue)| (QId(at as u32), queue))
            .filter(|(_, queue)| queue.references > 0)
    }
}

impl Index<QId> for Queues {
    type Output = Queue;
    #[inline]
    fn index(&self, q: QId) -> &Queue {
        &self.list[q.0 as usize]
    }
}

impl IndexMut<QId> for Queues {
    #[inline]
    fn index_mut(&mut self, q: QId) -> &mut Queue {
        &mut self.list[q.0 as usize]
    }
}

impl RbNodes for Queues {
    #[inline]
    fn node(&self, at: u32) -> &RbNode {
        &self.list[at as usize].pos
    }

    #[inline]
    fn node_mut(&mut self, at: u32) -> &mut RbNode {
        &mut self.list[at as usize].pos
    }
}

impl Placed for Queues {
    #[inline]
    fn sector(&self, pool: &RequestPool, at: u32) -> Sector {
        let next = self.list[at as usize].next_rq;
        pool[next.expect("a queue with a position has a next request")].sector
    }
}

pub(super) fn unlist(list: &mut Vec<QId>, q: QId) {
    let at = list.iter().rposition(|&other| other == q);
    list.remove(at.expect("a queue is on the list that it leaves"));
}
