//! Tag sets: the driver tags of a device and the map of CPUs to hardware contexts.
//!
//! Scheduler tags belong to a queue (`queue.rs`). Kernel: block/blk-mq-tag.c, block/blk-mq.c,
//! block/blk-mq-cpumap.c, lib/group_cpus.c (6.1.192, 6.12.117).

mod cpumap;

use core::ops::Range;

pub use cpumap::{CpuTopology, map_queues};

use crate::env::{Count, Lock, value};
use crate::request::{CpuId, HctxId, Op};
use crate::rules::{CpuMap, Rules};
use crate::sbitmap::Sbitmap;

/// Type of a hardware context.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HctxType {
    /// HCTX_TYPE_DEFAULT.
    Default,
    /// HCTX_TYPE_READ.
    Read,
    /// HCTX_TYPE_POLL.
    Poll,
}

impl HctxType {
    /// The type that an operation asks for (blk_mq_get_hctx_type).
    pub fn of(op: Op, polled: bool) -> HctxType {
        if polled {
            HctxType::Poll
        } else if op == Op::Read {
            HctxType::Read
        } else {
            HctxType::Default
        }
    }
}

/// The numbers of hctxs of each type that a driver requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HctxCounts {
    /// Default (and, without read queues, all interrupt-driven I/O).
    pub default: u16,
    /// Reads only; 0: reads use the default ones.
    pub read: u16,
    /// Polled; 0: polled I/O uses the default ones.
    pub poll: u16,
}

impl HctxCounts {
    pub fn total(self) -> u16 {
        self.default + self.read + self.poll
    }
}

/// Driver tags and CPU maps (blk_mq_tag_set).
#[derive(Debug)]
pub struct TagSet {
    pub queue_depth: u32,
    pub counts: HctxCounts,
    /// hctx of each CPU, by type.
    pub map: [Vec<HctxId>; 3],
    /// Driver tags, one map per hctx, or one in all with `hctx_shared`.
    pub driver: Vec<Sbitmap>,
    /// BLK_MQ_F_TAG_HCTX_SHARED: all hctxs use one map.
    pub hctx_shared: bool,
    /// Numbers of its queues.
    pub queues: Range<usize>,
    queue_shared: bool,
    /// tags->lock of each map.
    pub locks: Vec<Lock<()>>,
    /// Queues that use each map (active_queues).
    pub active_queues: Vec<Count>,
    /// Marked hctxs of each map (R2').
    pub restarts: Vec<Count>,
}

value!(TagSet { queue_depth, counts, map, hctx_shared, queues, queue_shared;
    driver, locks, active_queues, restarts });

/// The configuration of a tag set.
#[derive(Clone, Debug)]
pub struct TagSetConfig {
    /// Tags of each hctx, at least 1.
    pub queue_depth: u32,
    pub counts: HctxCounts,
    /// One map for all hctxs (scsi host_tagset, null_blk shared_tag_bitmap).
    pub hctx_shared: bool,
    /// Interrupt vectors, spread over the CPUs, decide the maps of default and read queues
    /// (blk_mq_pci_map_queues).
    pub vectors: bool,
    /// Most tasks that can wait at once.
    pub waiters: usize,
    /// The numbers of tasks are below this one.
    pub tasks: usize,
    /// Wait queues of each map, 1 to 8; kernels have 8 (SBQ_WAIT_QUEUES).
    pub wait_queues: usize,
}

impl TagSetConfig {
    /// So many hctxs of the default type, each with so many tags; room for eight tasks.
    pub const fn plain(hctxs: u16, queue_depth: u32) -> TagSetConfig {
        TagSetConfig {
            queue_depth,
            counts: HctxCounts {
                default: hctxs,
                read: 0,
                poll: 0,
            },
            hctx_shared: false,
            vectors: false,
            waiters: 8,
            tasks: 8,
            wait_queues: 8,
        }
    }
}

impl TagSet {
    /// Free tags of the `queues` for the CPUs of `topology`. `hint` draws first allocation hints.
    pub fn new(
        config: &TagSetConfig,
        topology: &CpuTopology,
        rules: &Rules,
        queues: Range<usize>,
        hint: &mut dyn FnMut() -> u32,
    ) -> TagSet {
        let counts = config.counts;
        let maps = if config.hctx_shared {
            1
        } else {
            counts.total()
        };
        let cpus = topology.cpus();
        let shallow = rules.shallow_depth;
        // Hctxs that share a map are in its wait queues, too.
        let sharers = match config.hctx_shared {
            true => usize::from(counts.total()) * queues.len(),
            false if queues.len() > 1 => queues.len(),
            false => 0,
        };
        let waiters = config.waiters + sharers;
        let mut one = || {
            let depth = config.queue_depth;
            let mut map = Sbitmap::new(depth, cpus, shallow, None, waiters, &mut *hint);
            map.keep_wait_queues(config.wait_queues);
            map.follow(rules);
            map
        };
        let interrupts = match config.vectors {
            true => CpuMap::Grouped,
            false => rules.cpu_map,
        };
        let default = map_queues(topology, counts.default, 0, interrupts);
        let of_type = |count: u16, first: u16, rule: CpuMap| match count {
            0 => default.clone(),
            count => map_queues(topology, count, first, rule),
        };
        let read = of_type(counts.read, counts.default, interrupts);
        let poll = of_type(counts.poll, counts.default + counts.read, rules.cpu_map);
        TagSet {
            queue_depth: config.queue_depth,
            counts,
            driver: (0..maps).map(|_| one()).collect(),
            map: [default, read, poll],
            hctx_shared: config.hctx_shared,
            queue_shared: queues.len() > 1,
            queues,
            locks: (0..maps).map(|_| Lock::new(())).collect(),
            active_queues: (0..maps).map(|_| Count::new(0)).collect(),
            restarts: (0..maps).map(|_| Count::new(0)).collect(),
        }
    }

    /// BLK_MQ_F_TAG_QUEUE_SHARED: several queues use it.
    #[inline]
    pub fn queue_shared(&self) -> bool {
        self.queue_shared
    }

    /// Freed tags may belong to another hctx: an hctx without one joins a wait queue.
    pub fn waits_for_any(&self) -> bool {
        self.hctx_shared || self.queue_shared
    }

    pub fn driver_of(&self, hctx: HctxId) -> &Sbitmap {
        &self.driver[self.driver_index(hctx)]
    }

    /// Index of the map that `hctx` uses.
    pub fn driver_index(&self, hctx: HctxId) -> usize {
        if self.hctx_shared {
            0
        } else {
            usize::from(hctx.0)
        }
    }

    /// The hctx that an operation of `cpu` goes to (blk_mq_map_queue).
    pub fn hctx_for(&self, cpu: CpuId, op: Op, polled: bool) -> HctxId {
        self.map[HctxType::of(op, polled) as usize][usize::from(cpu.0)]
    }

    /// Of each hctx the CPUs that map to it and the type by which they do. An hctx serves its own
    /// type, and the default ones also types that have none.
    pub(crate) fn ctxs_of_hctxs(&self) -> Vec<Vec<(CpuId, u8)>> {
        let mut all = vec![Vec::new(); usize::from(self.counts.total())];
        for (kind, map) in (0..).zip(&self.map) {
            for (cpu, &hctx) in (0..).map(CpuId).zip(map) {
                if self.kind_of(hctx) as u8 == kind {
                    all[usize::from(hctx.0)].push((cpu, kind));
                }
            }
        }
        all
    }

    pub fn kind_of(&self, hctx: HctxId) -> HctxType {
        if hctx.0 < self.counts.default {
            HctxType::Default
        } else if hctx.0 < self.counts.default + self.counts.read {
            HctxType::Read
        } else {
            HctxType::Poll
        }
    }

    /// Waiting entries of all maps, for reports.
    pub fn waiting_count(&self) -> usize {
        let of_map = |map: &Sbitmap| {
            map.wait
                .iter()
                .map(|ws| ws.queue.inspect(|q| q.entries.len()))
                .sum::<usize>()
        };
        self.driver.iter().map(of_map).sum()
    }
}

#[cfg(test)]
mod tests;
