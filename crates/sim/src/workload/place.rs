//! Positions of a stream in one of its files: sequential, random, or random without repetition.
//!
//! Random positions are multiples of the smallest block of their direction, or of blockalign,
//! counted from the start of the region; no I/O extends over its end, as if the region were all of
//! the file. After fio 3.33 io_u.c get_next_block(), get_next_seq_offset(), get_next_rand_offset(),
//! mark_random_map(); draws with shares are in `choice.rs`.

use super::choice::Choice;
use super::length::Lengths;
use super::map::Map;
use super::permutation::Permutation;
use super::{TRIM, WRITE, random};
use crate::plan::{BlockSize, FilePlan, FileService, Order, ThreadPlan};
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
    /// Where random positions are: the region, or a zone.
    zone_sectors: u64,
    /// The same with a last sector that is in it only in part.
    reach_sectors: u64,
    /// Left out between two sequential I/Os.
    gap_sectors: i64,
    /// At the end of the region, a sequential I/O goes to the start (time_based, one file).
    turns_back: bool,
    /// A pass follows on another (time_based, file_service_type=zipf ...).
    passes_repeat: bool,
    /// Smallest block of reads, writes, trims.
    unit_sectors: [u64; 3],
    /// Which pass of `passes` reads, writes and trims take part in.
    pass_of: [usize; 3],
    /// A write goes where the trim before it went (trimwrite).
    trims_then_writes: bool,

    // State.
    /// Where its zone begins, from the start of the region; 0 without zones.
    zone: u64,
    rng: Rng,
    /// `rng` of the first round.
    rng_first: Rng,
    choice: Choice,
    /// The last read, write, trim, as offsets.
    last: [Extent; 3],
    /// The block that was trimmed last is not written yet.
    trimmed: bool,
    passes: [Pass; 3],
    /// Instead of the passes.
    map: Option<Map>,
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
        let rng_first = rng.clone();
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
        let zone_sectors = match plan.zones {
            Some(zones) => zones.range_sectors,
            None => file.region_sectors,
        };
        let blocks = unit_sectors.map(|unit| (zone_sectors / unit).max(1));
        let passes = blocks.map(|blocks| Pass {
            permutation: Permutation::new(blocks, &mut rng),
            next: 0,
        });
        let time_based = plan.io_bytes == u64::MAX;
        let is_skewed = matches!(plan.file_service, FileService::Skewed(_));
        // Its blocks are the smallest of all directions (rw_min_bs).
        let [read, write, trim] = unit_sectors;
        let map_blocks = zone_sectors / read.min(write).min(trim);
        Places {
            order: plan.order,
            first_sector: file.first_sector,
            region_sectors: file.region_sectors,
            zone_sectors,
            reach_sectors: file.region_sectors + u64::from(file.has_rest),
            gap_sectors: plan.gap_sectors,
            turns_back: time_based && plan.files.len() == 1,
            passes_repeat: time_based || is_skewed,
            unit_sectors,
            pass_of: [0, write_pass, trim_pass],
            trims_then_writes: plan.mix.trims_then_writes(),
            zone: 0,
            rng,
            rng_first,
            choice: Choice::new(&plan.distribution, blocks, unit_sectors, stream("choice")),
            last: [Extent::default(); 3],
            trimmed: false,
            passes,
            map: plan.keeps_map.then(|| Map::new(map_blocks)),
        }
    }

    /// The next I/O in this file is the write of a trimmed block.
    pub(super) fn is_trimmed(&self) -> bool {
        self.trimmed
    }

    /// The next place in this direction, and how long it is. `None`: the file is done.
    pub(super) fn next(
        &mut self,
        direction: usize,
        step: Step,
        lengths: &mut Lengths,
    ) -> Option<(Sector, Sectors)> {
        if self.trimmed {
            self.trimmed = false;
            self.last[WRITE] = self.last[TRIM];
            return Some(self.placed(TRIM));
        }
        // From the start of the zone, then from that of the region.
        let (start, marks) = match step {
            Step::Again => (self.last[direction].start - self.zone, false),
            Step::Onward => {
                let onward = self.onward(direction);
                let start = onward.or_else(|| self.anywhere(direction));
                (start?, false)
            }
            Step::New if self.order == Order::Sequential => (self.onward(direction)?, false),
            Step::New => (self.anywhere(direction)?, true),
        };
        if start >= self.reach_sectors || self.zone + start >= self.reach_sectors {
            return None;
        }
        let (block, start) = (start, self.zone + start);
        let room = self.region_sectors.saturating_sub(start);
        let mut sectors = u64::from(lengths.draw(direction, room)?.0);
        if marks && let Some(map) = &mut self.map {
            let unit = self.unit_sectors[direction];
            let marked = map.mark(block / unit, sectors.div_ceil(unit));
            sectors = sectors.min(marked * unit);
        }
        let end = start + sectors;
        self.last[direction] = Extent { start, end };
        self.trimmed = self.trims_then_writes;
        Some(self.placed(direction))
    }

    /// The last I/O of a direction.
    fn placed(&self, direction: usize) -> (Sector, Sectors) {
        let Extent { start, end } = self.last[direction];
        let sectors = Sectors((end - start) as u32);
        (Sector(self.first_sector + start), sectors)
    }

    /// A new round begins: the file is opened again.
    pub(super) fn start_over(&mut self, alike: bool) {
        if alike {
            self.rng = self.rng_first.clone();
        }
        self.zone = 0;
        self.trimmed = false;
        self.reset_all();
    }

    /// fio_file_reset().
    pub(super) fn reset_all(&mut self) {
        self.reset();
        for pass in &mut self.passes {
            pass.permutation.renew(&mut self.rng);
            pass.next = 0;
        }
    }

    /// fio_file_reset(), but for the passes.
    fn reset(&mut self) {
        let start = self.zone;
        self.last = [Extent { start, end: start }; 3];
        if let Some(map) = &mut self.map {
            map.clear();
        }
    }

    /// The zone so many sectors after this one, or the first one.
    pub(super) fn next_zone(&mut self, sectors: u64, direction: usize) {
        self.zone += sectors;
        if self.zone >= self.reach_sectors {
            self.zone = 0;
        }
        self.last[direction].end = self.zone;
    }

    /// After the last I/O of the zone comes its first one.
    pub(super) fn stay_in_zone(&mut self, direction: usize) {
        if self.last[direction].end >= self.zone + self.zone_sectors {
            self.last[direction].end = self.zone;
        }
    }

    /// After the last one, with the gap between. `None`: the last one ended at the end.
    ///
    /// fio's arithmetic, with its mixture of positions in the file and in the region: a start after
    /// 0 makes a gap over the end the end.
    fn onward(&mut self, direction: usize) -> Option<u64> {
        let (reach, gap) = (self.reach_sectors, self.gap_sectors);
        let first = self.first_sector + self.zone;
        let mut end = self.last[direction].end;
        if end >= reach {
            if !self.turns_back {
                return None;
            }
            end = self.zone;
        }
        end -= self.zone;
        if gap == 0 {
            return Some(end);
        }
        if end == 0 && gap < 0 && first != 0 {
            end = reach.wrapping_sub(first);
        }
        if end == 0 {
            return Some(0);
        }
        let next = end.wrapping_add_signed(gap);
        Some(if next < self.first_sector + reach {
            next
        } else if gap > 0 {
            first
        } else {
            reach.wrapping_add_signed(gap)
        })
    }

    /// `None`: every block is done.
    fn anywhere(&mut self, direction: usize) -> Option<u64> {
        let unit = self.unit_sectors[direction];
        let blocks = self.zone_sectors / unit;
        let block = match self.order {
            Order::RandomOnce if self.map.is_some() => self.free(blocks)?,
            Order::RandomOnce => self.once(direction)?,
            Order::Sequential | Order::Random => match self.choice.block(direction) {
                Some(block) => block,
                None => self.rng.below(blocks),
            },
        };
        Some(block * unit)
    }

    /// Any block, or the next one after it that is not done.
    fn free(&mut self, blocks: u64) -> Option<u64> {
        let drawn = self.rng.below(blocks);
        let map = self.map.as_ref().expect("there is a map");
        if let Some(free) = map.free(drawn) {
            return Some(free);
        }
        if !self.passes_repeat {
            return None;
        }
        self.reset();
        Some(self.rng.below(blocks))
    }

    /// A block that this pass has not had. fio draws any block and, if its map has it already,
    /// takes the next free one: its late draws cluster, these stay even.
    fn once(&mut self, direction: usize) -> Option<u64> {
        let pass = &self.passes[self.pass_of[direction]];
        if pass.next == pass.permutation.len() {
            if !self.passes_repeat {
                return None;
            }
            self.reset();
            let pass = &mut self.passes[self.pass_of[direction]];
            pass.permutation.renew(&mut self.rng);
            pass.next = 0;
        }
        let pass = &mut self.passes[self.pass_of[direction]];
        let block = pass.permutation.at(pass.next);
        pass.next += 1;
        Some(block)
    }
}

/// What positions of reads, writes and trims are multiples of.
fn units(plan: &ThreadPlan, file: &FilePlan) -> [u64; 3] {
    let blocks = [
        (plan.block.read, plan.align_sectors.read),
        (plan.block.write, plan.align_sectors.write),
        (plan.block.trim, plan.align_sectors.trim),
    ];
    let mix = plan.mix;
    let used = [mix.read_percent, mix.write_percent, mix.trim_percent].map(|p| p > 0);
    let units = blocks.map(|(block, align): (BlockSize, u32)| match align {
        0 => u64::from(block.min_sectors.max(1)),
        align => u64::from(align),
    });
    for (unit, used) in units.iter().zip(used) {
        let fits = *unit <= file.region_sectors;
        assert!(fits || !used, "the region of {} holds no block", plan.name);
    }
    units
}

#[cfg(test)]
mod tests;
