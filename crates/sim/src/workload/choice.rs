//! The next block of a region with unequal shares.
//!
//! After fio 3.33: filesetup.c __init_rand_distribution(), io_u.c __get_next_rand_offset_zoned()
//! and its sibling for sizes in bytes, zone-dist.c. Read next: `skew.rs`.

use super::skew::{Ranks, word};
use crate::plan::{Distribution, Extent, Zone};
use crate::rng::Rng;

/// Blocks by direction: 0 reads, 1 writes, 2 trims.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    by_direction: [Blocks; 3],
    rng: Rng,
}

#[derive(Clone, Debug)]
enum Blocks {
    /// Equal shares: not drawn here.
    Alike,
    Skewed(Ranks),
    /// First block and number of blocks that each percent of the draws goes to.
    Zoned(Vec<(u64, u64)>),
}

impl Choice {
    /// Regions of so many blocks of so many sectors.
    pub(super) fn new(
        distribution: &Distribution,
        blocks: [u64; 3],
        unit_sectors: [u64; 3],
        mut rng: Rng,
    ) -> Choice {
        let by_direction = match distribution {
            Distribution::Uniform => [Blocks::Alike, Blocks::Alike, Blocks::Alike],
            Distribution::Skewed(skew) => {
                // One for all directions: blocks that are read often are written often.
                let anywhere = word(&mut rng);
                blocks.map(|blocks| Blocks::Skewed(Ranks::new(*skew, blocks, true, anywhere)))
            }
            Distribution::Zoned(zones) => [
                zoned(&zones.read, blocks[0], unit_sectors[0]),
                zoned(&zones.write, blocks[1], unit_sectors[1]),
                zoned(&zones.trim, blocks[2], unit_sectors[2]),
            ],
        };
        Choice { by_direction, rng }
    }

    /// The next block, or `None` if the shares are equal.
    pub(super) fn block(&mut self, direction: usize) -> Option<u64> {
        match &self.by_direction[direction] {
            Blocks::Alike => None,
            Blocks::Skewed(ranks) => Some(ranks.next(&mut self.rng)),
            Blocks::Zoned(of_percent) => {
                let (first, count) = of_percent[self.rng.below(100) as usize];
                Some(first + self.rng.below(count))
            }
        }
    }
}

/// Where each percent of the draws goes.
fn zoned(zones: &[Zone], blocks: u64, unit_sectors: u64) -> Blocks {
    if zones.is_empty() {
        return Blocks::Alike;
    }
    let mut of_percent = Vec::with_capacity(100);
    let (mut percent, mut bytes) = (0, 0);
    for zone in zones {
        let (first, end) = match zone.size {
            Extent::Percent(size) => {
                let before = percent;
                percent += u64::from(size);
                let first = before * blocks / 100;
                (first, first + blocks * u64::from(size) / 100)
            }
            Extent::Bytes(size) => {
                let before = bytes;
                bytes += size;
                let unit = unit_sectors * 512;
                (before / unit, bytes / unit)
            }
        };
        // A zone of less than a block begins with one.
        let count = (end - first).max(1);
        of_percent.extend((0..zone.percent).map(|_| (first, count)));
    }
    assert_eq!(of_percent.len(), 100, "shares of the zones");
    Blocks::Zoned(of_percent)
}

#[cfg(test)]
mod tests;
