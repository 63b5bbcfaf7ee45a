//! The file of a thread's next I/O, and the position in it.
//!
//! After fio's filesetup.c and io_u.c (get_next_file, get_next_file_rr, get_next_file_rand). Every
//! file has its own positions, as every file of fio has its own random map and last position.

use super::length::Lengths;
use super::place::{Places, Step};
use super::random;
use super::skew::{Ranks, word};
use crate::plan::{DiskId, FileService, Order, PerDirection, Sequencer, ThreadPlan};
use crate::rng::Rng;
use blkmq::request::{Sector, Sectors};

/// Ranks of a skewed choice for each file (FIO_FSERVICE_SHIFT).
const RANKS_PER_FILE: u32 = 10;

/// The files of one stream.
#[derive(Clone, Debug)]
pub(super) struct Files {
    // Settings.
    service: FileService,
    is_random: bool,
    /// I/Os from one new position to the next (ddir_seq_nr).
    new_every: u32,
    sequencer: Sequencer,
    random_percent: PerDirection<u8>,

    // State.
    all: Vec<File>,
    /// The current file.
    current: usize,
    /// I/Os that it still gets, or sectors with `FileService::Sequential`.
    left: u64,
    choice: Rng,
    ranks: Option<Ranks>,
    /// I/Os until the next new position.
    until_new: u32,
    sequential: Rng,
}

#[derive(Clone, Debug)]
struct File {
    disk: DiskId,
    region_sectors: u64,
    places: Places,
}

impl Files {
    /// The files of a thread, at their beginning. Panics if it has none.
    pub(super) fn new(plan: &ThreadPlan) -> Files {
        assert!(!plan.files.is_empty(), "{} has no file", plan.name);
        let numbers = 0..plan.files.len();
        let files: Vec<File> = numbers
            .map(|number| File {
                disk: plan.files[number].disk,
                region_sectors: plan.files[number].region_sectors,
                places: Places::new(plan, number),
            })
            .collect();
        let mut choice = random(plan, "file");
        let ranks = match plan.file_service {
            FileService::Skewed(skew) => {
                let ranks = (files.len() as u64) << RANKS_PER_FILE;
                Some(Ranks::new(skew, ranks, false, word(&mut choice)))
            }
            _ => None,
        };
        Files {
            service: plan.file_service,
            is_random: plan.order != Order::Sequential,
            new_every: plan.new_every,
            sequencer: plan.sequencer,
            random_percent: plan.random_percent,
            // The first one comes after the last.
            current: files.len() - 1,
            left: 0,
            all: files,
            choice,
            ranks,
            // fio begins with a new position.
            until_new: 1,
            sequential: random(plan, "sequential"),
        }
    }

    /// Disk, place and length of the next I/O in this direction (0 reads, 1 writes, 2 trims).
    pub(super) fn next(
        &mut self,
        direction: usize,
        lengths: &mut Lengths,
    ) -> (DiskId, Sector, Sectors) {
        let sequential = self.service == FileService::Sequential;
        let step = self.step(direction);
        let file = self.turn();
        let (sector, sectors) = file.places.next(direction, step, lengths);
        let disk = file.disk;
        let used = if sequential { u64::from(sectors.0) } else { 1 };
        self.left = self.left.saturating_sub(used);
        (disk, sector, sectors)
    }

    /// Kind of its position (get_next_offset(), should_do_random()).
    fn step(&mut self, direction: usize) -> Step {
        self.until_new -= 1;
        if self.until_new > 0 {
            return match self.sequencer {
                Sequencer::Sequential => Step::Onward,
                Sequencer::Identical => Step::Again,
            };
        }
        self.until_new = self.new_every;
        let percents = &self.random_percent;
        let percent = u64::from([percents.read, percents.write, percents.trim][direction]);
        if self.is_random && percent < 100 && self.sequential.below(100) >= percent {
            return Step::Onward;
        }
        Step::New
    }

    /// Disk of an fsync(2): that of the current file.
    pub(super) fn flushed(&mut self) -> DiskId {
        let disk = self.turn().disk;
        if self.service != FileService::Sequential {
            self.left = self.left.saturating_sub(1);
        }
        disk
    }

    /// The current file, or the next one if that has had its share.
    fn turn(&mut self) -> &mut File {
        if self.all.len() == 1 {
            return &mut self.all[0];
        }
        if self.left == 0 {
            let count = self.all.len();
            self.current = match self.service {
                FileService::RoundRobin(_) | FileService::Sequential => (self.current + 1) % count,
                FileService::Random(_) => self.choice.below(count as u64) as usize,
                FileService::Skewed(_) => {
                    let ranks = self.ranks.as_ref().expect("made with the service");
                    (ranks.next(&mut self.choice) >> RANKS_PER_FILE) as usize
                }
            };
            self.left = match self.service {
                FileService::RoundRobin(ios) | FileService::Random(ios) => u64::from(ios),
                FileService::Skewed(_) => 1,
                FileService::Sequential => self.all[self.current].region_sectors,
            };
        }
        &mut self.all[self.current]
    }
}

#[cfg(test)]
mod tests;
