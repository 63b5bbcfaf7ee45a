//! Lengths of the I/Os of a stream.
//!
//! After fio 3.33 io_u.c get_next_buflen(): a length that does not fit is drawn again.

use crate::plan::{BlockSize, PerDirection, SizeShare, ThreadPlan};
use crate::rng::Rng;
use blkmq::request::Sectors;

/// Lengths by direction: 0 reads, 1 writes, 2 trims.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    ranges: [BlockSize; 3],
    splits: [Split; 3],
    rng: Rng,
    /// `rng` of the first round.
    rng_first: Rng,
}

/// Sizes with shares, or a range in equal steps.
#[derive(Clone, Debug)]
struct Split {
    sectors: Vec<u32>,
    /// The size of each percent.
    of_percent: Vec<u8>,
}

impl Lengths {
    pub(super) fn new(plan: &ThreadPlan, rng: Rng) -> Lengths {
        Lengths {
            ranges: in_order(&plan.block),
            splits: in_order(&plan.splits).map(|sizes| Split::new(&sizes)),
            rng_first: rng.clone(),
            rng,
        }
    }

    /// The same lengths again.
    pub(super) fn start_over(&mut self) {
        self.rng = self.rng_first.clone();
    }

    /// One of a direction that is not longer than `room`; `None` if the smallest is longer.
    pub(super) fn draw(&mut self, direction: usize, room: u64) -> Option<Sectors> {
        let BlockSize {
            min_sectors,
            max_sectors,
        } = self.ranges[direction];
        let fits = |sectors: u32| u64::from(sectors) <= room;
        if !fits(min_sectors) {
            return None;
        }
        if min_sectors == max_sectors {
            return Some(Sectors(min_sectors));
        }
        let steps = max_sectors / min_sectors;
        let split = &self.splits[direction];
        loop {
            if !split.sectors.is_empty() {
                // One that does not fit leaves its share to the next.
                let drawn = usize::from(split.of_percent[self.rng.below(100) as usize]);
                let mut others = split.sectors[drawn..].iter();
                if let Some(&sectors) = others.find(|sectors| fits(**sectors)) {
                    return Some(Sectors(sectors));
                }
                continue;
            }
            let step = if max_sectors.is_multiple_of(min_sectors) {
                1 + self.rng.below(u64::from(steps)) as u32
            } else {
                1 + self.rng.below(u64::from(max_sectors)) as u32 / min_sectors
            };
            // fio takes the largest size for what is above.
            let sectors = (step * min_sectors).min(max_sectors);
            if fits(sectors) {
                return Some(Sectors(sectors));
            }
        }
    }
}

impl Split {
    fn new(sizes: &[SizeShare]) -> Split {
        let mut of_percent = Vec::new();
        for (index, size) in sizes.iter().enumerate() {
            of_percent.extend((0..size.percent).map(|_| index as u8));
        }
        // The last one takes what the shares leave.
        of_percent.resize(100, sizes.len().saturating_sub(1) as u8);
        Split {
            sectors: sizes.iter().map(|size| size.sectors).collect(),
            of_percent,
        }
    }
}

fn in_order<T: Clone>(values: &PerDirection<T>) -> [T; 3] {
    [
        values.read.clone(),
        values.write.clone(),
        values.trim.clone(),
    ]
}

#[cfg(test)]
mod tests;
