//! Positions of a stream in one of its files: sequential, random, or random without repetition.
//!
//! Random positions are multiples of the smallest block of their direction, counted from the start
//! of the region; no I/O extends over its end. After fio 3.33 io_u.c get_next_block(),
//! get_next_seq_offset(), get_next_rand_offset(); draws with shares are in `choice.rs`.

use super::choice::Choice;
use super::length::Lengths;
use super::permutation::Permutation;
use super::random;
use crate::plan::{BlockSize, FilePlan, Order, ThreadPlan};
use crate::rng::Rng;
use blkmq::request::{Sector, Sectors};

/// Kind of the next position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A new one, by the order of the stream.
    New,
    /// After the last one of its direction.
    Onward,
    /// That of the last one of its direction.
    Again,
}

/// Positions of one stream in one file.
#[derive(Clone, Debug)]
pub(super) struct Places {
    // Settings.
    order: Order,
    first_sector: u64,
    region_sectors: u64,
    /// Left out between two sequential I/Os.
    gap_sectors: i64,
    /// At the end of the region, an I/O after the last one goes to the start, not to a random
    /// position.
    turns_back: bool,
    /// Smallest block of reads, writes, trims.
    unit_sectors: [u64; 3],
    /// Which pass of `passes` reads, writes and trims take part in.
    pass_of: [usize; 3],

    // State.
    rng: Rng,
    choice: Choice,
    /// The last read, write, trim, as offsets.
    last: [Extent; 3],
    passes: [Pass; 3],
}

#[derive(Clone, Copy, Default, Debug)]
struct Extent {
    start: u64,
    end: u64,
}

/// A pass over all blocks, each once.
#[derive(Clone, Debug)]
struct Pass {
    permutation: Permutation,
    next: u64,
}

impl Places {
    /// Positions of a thread in its file of this number. Panics if a block of a used direction
    /// does not fit in its region.
    pub(super) fn new(plan: &ThreadPlan, number: usize) -> Places {
        let file = &plan.files[number];
        let stream = |purpose: &str| match number {
            0 => random(plan, purpose),
            other => random(plan, &format!("{purpose}/file{other}")),
        };
        let mut rng = stream("offset");
        let unit_sectors = units(plan, file);
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
        let blocks = unit_sectors.map(|unit| (file.region_sectors / unit).max(1));
        let passes = blocks.map(|blocks| Pass {
            permutation: Permutation::new(blocks, &mut rng),
            next: 0,
        });
        Places {
            order: plan.order,
            first_sector: file.first_sector,
            region_sectors: file.region_sectors,
            gap_sectors: plan.gap_sectors,
            // Without an end in bytes: time_based.
            turns_back: plan.io_bytes == u64::MAX,
            unit_sectors,
            pass_of: [0, write_pass, trim_pass],
            rng,
            choice: Choice::new(&plan.distribution, blocks, unit_sectors, stream("choice")),
            last: [Extent::default(); 3],
            passes,
        }
    }

    /// The next place in this direction (0 reads, 1 writes, 2 trims), and how long it is.
    pub(super) fn next(
        &mut self,
        direction: usize,
        step: Step,
        lengths: &mut Lengths,
    ) -> (Sector, Sectors) {
        let start = match step {
            Step::Again => self.last[direction].start,
            Step::Onward => self.onward(direction),
            Step::New if self.order == Order::Sequential => self.sequential(direction),
            Step::New => self.anywhere(direction),
        };
        let sectors = lengths.draw(direction, self.region_sectors - start);
        let end = start + u64::from(sectors.0);
        self.last[direction] = Extent { start, end };
        (Sector(self.first_sector + start), sectors)
    }

    /// After the last one, with the gap between; from the start where no block fits, and backwards
    /// from the end.
    fn sequential(&self, direction: usize) -> u64 {
        let region = self.region_sectors - self.region_sectors % self.unit_sectors[direction];
        let end = self.last[direction].end;
        let gap = if end == 0 { 0 } else { self.gap_sectors };
        let next = end.checked_add_signed(gap);
        let fits = |start: &u64| self.fits(direction, *start);
        // fio leaves the gap out after the last block, too.
        let backwards = || region.checked_add_signed(gap).filter(|_| gap < 0);
        next.filter(fits)
            .or_else(|| backwards().filter(fits))
            .unwrap_or(0)
    }

    /// After the last one. At the end of the region fio turns back if it is time_based, else it
    /// takes a new position.
    fn onward(&mut self, direction: usize) -> u64 {
        let end = self.last[direction].end;
        if self.fits(direction, end) {
            end
        } else if self.turns_back {
            0
        } else {
            self.anywhere(direction)
        }
    }

    fn anywhere(&mut self, direction: usize) -> u64 {
        let unit = self.unit_sectors[direction];
        let blocks = self.region_sectors / unit;
        if self.order == Order::RandomOnce {
            return self.once(direction) * unit;
        }
        match self.choice.block(direction) {
            Some(block) => block * unit,
            None => self.rng.below(blocks) * unit,
        }
    }

    fn fits(&self, direction: usize, start: u64) -> bool {
        start + self.unit_sectors[direction] <= self.region_sectors
    }

    /// A block that this pass has not had. fio draws any block and, if its bitmap has it already,
    /// takes the next free one: its late draws cluster, these stay even. Of a longer I/O fio marks
    /// every block, and cuts it where it meets a marked one; here only the first is marked.
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

/// Smallest blocks of reads, writes and trims.
fn units(plan: &ThreadPlan, file: &FilePlan) -> [u64; 3] {
    let blocks = [plan.block.read, plan.block.write, plan.block.trim];
    let mix = plan.mix;
    let used = [mix.read_percent, mix.write_percent, mix.trim_percent].map(|p| p > 0);
    let units = blocks.map(|block: BlockSize| u64::from(block.min_sectors.max(1)));
    for (unit, used) in units.iter().zip(used) {
        let fits = *unit <= file.region_sectors;
        assert!(fits || !used, "the region of {} holds no block", plan.name);
    }
    units
}

#[cfg(test)]
mod tests;
