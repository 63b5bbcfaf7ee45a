//! Where the I/Os of a stream go in one of its files: in order, anywhere, or anywhere but once.
//!
//! Positions are multiples of the smallest block of their direction, counted from the start of
//! the region; nothing reaches behind its end.

use super::permutation::Permutation;
use crate::plan::{BlockSize, FilePlan, Order, ThreadPlan};
use crate::rng::Rng;
use blkmq::request::{Sector, Sectors};

/// Positions of one stream in one file.
#[derive(Clone, Debug)]
pub(super) struct Places {
    // Settings.
    order: Order,
    first_sector: u64,
    region_sectors: u64,
    /// Smallest block of reads, writes, trims.
    unit_sectors: [u64; 3],
    /// Which pass of `passes` reads, writes and trims take part in.
    pass_of: [usize; 3],

    // State.
    rng: Rng,
    /// Sequential: offset of the next read, write, trim.
    offsets: [u64; 3],
    passes: [Pass; 3],
}

/// A pass over all blocks, each once.
#[derive(Clone, Debug)]
struct Pass {
    permutation: Permutation,
    next: u64,
}

impl Places {
    /// Positions of a thread in `file`. Panics if a block of a used direction does not fit in its
    /// region.
    pub(super) fn new(plan: &ThreadPlan, file: &FilePlan, mut rng: Rng) -> Places {
        let blocks = [plan.block.read, plan.block.write, plan.block.trim];
        let mix = plan.mix;
        let used = [mix.read_percent, mix.write_percent, mix.trim_percent].map(|p| p > 0);
        let unit_sectors = blocks.map(|block: BlockSize| u64::from(block.min_sectors.max(1)));
        for (unit, used) in unit_sectors.iter().zip(used) {
            let fits = *unit <= file.region_sectors;
            assert!(fits || !used, "the region of {} holds no block", plan.name);
        }
        // Directions with blocks of one size share a pass, as fio's one map of a file does.
        let same = |a: usize, b: usize| unit_sectors[a] == unit_sectors[b];
        let write_pass = usize::from(!same(0, 1));
        let trim_pass = if same(0, 2) {
            0
        } else if same(1, 2) {
            write_pass
        } else {
            2
        };
        let passes = unit_sectors.map(|unit| Pass {
            permutation: Permutation::new((file.region_sectors / unit).max(1), &mut rng),
            next: 0,
        });
        Places {
            order: plan.order,
            first_sector: file.first_sector,
            region_sectors: file.region_sectors,
            unit_sectors,
            pass_of: [0, write_pass, trim_pass],
            rng,
            offsets: [0; 3],
            passes,
        }
    }

    /// The next place in this direction (0 reads, 1 writes, 2 trims), and what of `sectors` fits
    /// there: a length that would reach behind the region is cut to whole blocks.
    pub(super) fn next(&mut self, direction: usize, sectors: Sectors) -> (Sector, Sectors) {
        let unit = self.unit_sectors[direction];
        let blocks = self.region_sectors / unit;
        let offset = match self.order {
            Order::Sequential => self.sequential(direction, u64::from(sectors.0)),
            Order::RandomOnce => self.once(direction) * unit,
            Order::Random => self.rng.below(blocks) * unit,
        };
        let room = blocks * unit - offset;
        let fitting = u64::from(sectors.0).min(room) as u32;
        (Sector(self.first_sector + offset), Sectors(fitting))
    }

    /// Behind the last one; from the start where it does not fit.
    fn sequential(&mut self, direction: usize, sectors: u64) -> u64 {
        let next = &mut self.offsets[direction];
        let fits = *next + sectors <= self.region_sectors;
        let offset = if fits { *next } else { 0 };
        *next = offset + sectors;
        offset
    }

    /// A block that this pass has not had. fio draws any block and, where its bitmap has it
    /// already, takes the next free one: its late draws cluster, ours stay even. Of a longer I/O
    /// fio marks every block, we only the first.
    fn once(&mut self, direction: usize) -> u64 {
        let pass = &mut self.passes[self.pass_of[direction]];
        if pass.next == pass.permutation.len() {
            pass.permutation.renew(&mut self.rng);
            pass.next = 0;
        }
        let block = pass.permutation.at(pass.next);
        pass.next += 1;
        block
    }
}
