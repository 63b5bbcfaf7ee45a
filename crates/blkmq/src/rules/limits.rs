//! Limits of a queue, and what a kernel makes of them.
//!
//! Kernel: include/linux/blkdev.h, block/blk-merge.c (6.1.192, 6.12.117).

use super::{DiscardMerge, Rules};
use crate::request::{Op, PAGE_SECTORS};

/// Limits of a queue that merging and splitting obey (queue_limits).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct QueueLimits {
    /// Largest request, sectors (max_sectors_kb * 2).
    pub max_sectors: u32,
    /// Most segments of a request.
    pub max_segments: u16,
    /// A request may not cross a multiple of this many sectors, but for discards; 0: no limit.
    pub chunk_sectors: u32,
    /// Largest discard, sectors; 0: no discard.
    pub max_discard_sectors: u32,
    /// Discards that are split begin and end at multiples of this many sectors; 0: anywhere.
    pub discard_granularity: u32,
    /// Ranges in one discard; more than one lets discards merge without adjacency.
    pub max_discard_segments: u16,
    /// A volatile write cache: flushes have an effect.
    pub write_cache: bool,
    /// The device takes FUA writes itself.
    pub fua: bool,
    /// The rules' `prios_merge`.
    pub prios_merge: bool,
    /// The rules' `cgroups_merge`.
    pub cgroups_merge: bool,
    /// Likewise.
    pub discard_merge: DiscardMerge,
}

impl QueueLimits {
    /// Requests up to 1280 KiB in 128 segments, no discard, no volatile cache.
    pub const PLAIN: QueueLimits = QueueLimits {
        max_sectors: 2560,
        max_segments: 128,
        chunk_sectors: 0,
        max_discard_sectors: 0,
        discard_granularity: 0,
        max_discard_segments: 1,
        write_cache: false,
        fua: false,
        prios_merge: false,
        cgroups_merge: false,
        discard_merge: DiscardMerge::AsRanges,
    };

    /// With what is of the kernel, not of the drive.
    pub fn of_kernel(self, rules: &Rules) -> QueueLimits {
        QueueLimits {
            prios_merge: rules.prios_merge,
            cgroups_merge: rules.cgroups_merge,
            discard_merge: rules.discard_merge,
            ..self
        }
    }

    /// Largest discard of whole granules, sectors. A bio counts bytes in 32 bits
    /// (bio_discard_limit()).
    pub(crate) fn discard_sectors(&self) -> u32 {
        let granule = self.discard_granularity.max(1);
        let most = self.max_discard_sectors.min(u32::MAX >> 9);
        most - most % granule
    }

    /// Most bios that a bio of so many sectors can become by splitting, itself included.
    pub fn parts_max(&self, op: Op, sectors: u32) -> u32 {
        if op == Op::Discard {
            // The first part may be shorter, up to the first granule that is whole.
            let lost = u32::from(self.discard_granularity > 1);
            let most = self.discard_sectors();
            return match most {
                0 => 1,
                most => sectors.div_ceil(most).max(1) + lost,
            };
        }
        // A part may begin in the middle of a page.
        let whole = self.max_sectors.is_multiple_of(PAGE_SECTORS) && self.chunk_sectors == 0;
        let lost = if whole { 0 } else { PAGE_SECTORS - 1 };
        let pages = u32::from(self.max_segments) * PAGE_SECTORS;
        let most = self.max_sectors.min(pages.saturating_sub(lost).max(1));
        let parts = if most == 0 { 1 } else { sectors.div_ceil(most) };
        match self.chunk_sectors {
            0 => parts.max(1),
            chunk => parts + sectors.div_ceil(chunk) + 1,
        }
    }
}

/// queue/nomerges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NoMerges {
    /// 0: all merges are tried.
    #[default]
    All,
    /// 1: no hash and no tree look-up.
    Simple,
    /// 2: none, and no size-triggered plug flush.
    Never,
}
