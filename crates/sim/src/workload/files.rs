//! The file of a thread's next I/O, and the position in it.
//!
//! After fio's filesetup.c and io_u.c (get_next_file, get_next_file_rr, get_next_file_rand). Every
//! file has its own positions, as every file of fio has its own random map and last position.

use super::length::Lengths;
use super::place::{Places, Step};
use super::random;
use super::skew::{Ranks, word};
use super::zones::Zones;
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
    zones: Option<Zones>,
    all: Vec<File>,
    /// The current file.
    current: usize,
    /// I/Os that it still gets.
    left: u64,
    /// Files that are done.
    done: usize,
    choice: Rng,
    ranks: Option<Ranks>,
    /// I/Os until the next new position.
    until_new: u32,
    sequential: Rng,
    /// `choice` and `sequential` of the first round.
    rngs_first: (Rng, Rng),
}

#[derive(Clone, Debug)]
struct File {
    disk: DiskId,
    places: Places,
    /// It has no further position in this round.
    done: bool,
}

impl Files {
    /// The files of a thread, at their beginning. Panics if it has none.
    pub(super) fn new(plan: &ThreadPlan) -> Files {
        assert!(!plan.files.is_empty(), "{} has no file", plan.name);
        let numbers = 0..plan.files.len();
        let files: Vec<File> = numbers
            .map(|number| File {
                disk: plan.files[number].disk,
                places: Places::new(plan, number),
                done: false,
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
        let sequential = random(plan, "sequential");
        Files {
            rngs_first: (choice.clone(), sequential.clone()),
            service: plan.file_service,
            is_random: plan.order != Order::Sequential,
            new_every: plan.new_every,
            sequencer: plan.sequencer,
            random_percent: plan.random_percent,
            zones: plan.zones.map(Zones::of),
            // The first one comes after the last.
            current: files.len() - 1,
            left: 0,
            done: 0,
            all: files,
            choice,
            ranks,
            // fio begins with a new position.
            until_new: 1,
            sequential,
        }
    }

    /// Disk, place and length of an I/O of the current file in this direction. `None`: the file is
    /// done.
    pub(super) fn next(
        &mut self,
        direction: usize,
        lengths: &mut Lengths,
    ) -> Option<(DiskId, Sector, Sectors)> {
        let step = self.step(direction);
        let file = &mut self.all[self.current];
        if let Some(zones) = &mut self.zones {
            zones.enter(&mut file.places, direction);
        }
        let place = file.places.next(direction, step, lengths);
        if let Some((sector, sectors)) = place {
            if let Some(zones) = &mut self.zones {
                zones.done_sectors += u64::from(sectors.0);
            }
            return Some((file.disk, sector, sectors));
        }
        self.left = 0;
        if matches!(self.service, FileService::Skewed(_)) {
            file.places.start_over(false);
        } else {
            file.done = true;
            self.done += 1;
        }
        None
    }

    /// The next I/O of the current file is the write of a trimmed block.
    pub(super) fn is_trimmed(&self) -> bool {
        self.all[self.current].places.is_trimmed()
    }

    /// All files are done (fio_files_done()).
    pub(super) fn are_done(&self) -> bool {
        self.done == self.all.len()
    }

    /// A new round: all files are opened again (clear_io_state()).
    pub(super) fn start_over(&mut self, alike: bool) {
        for file in &mut self.all {
            file.done = false;
            file.places.start_over(alike);
        }
        if let Some(zones) = &mut self.zones {
            zones.done_sectors = 0;
        }
        self.done = 0;
        self.left = 0;
        if alike {
            (self.choice, self.sequential) = self.rngs_first.clone();
        }
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

    /// Goes to the file of the next I/O or fsync(2): its disk. `None`: all are done.
    pub(super) fn turn(&mut self) -> Option<DiskId> {
        if self.are_done() {
            return None;
        }
        if self.left == 0 && self.all.len() > 1 {
            self.choose();
            while self.all[self.current].done {
                self.choose();
            }
        }
        self.left = self.left.saturating_sub(1);
        Some(self.all[self.current].disk)
    }

    /// The file after this one.
    fn choose(&mut self) {
        let count = self.all.len();
        (self.current, self.left) = match self.service {
            FileService::RoundRobin(ios) => ((self.current + 1) % count, u64::from(ios)),
            FileService::Random(ios) => {
                let drawn = self.choice.below(count as u64) as usize;
                (drawn, u64::from(ios))
            }
            FileService::Skewed(_) => {
                let ranks = self.ranks.as_ref().expect("made with the service");
                let drawn = ranks.next(&mut self.choice) >> RANKS_PER_FILE;
                (drawn as usize, 1)
            }
            FileService::Sequential => ((self.current + 1) % count, u64::MAX),
        };
    }
}

#[cfg(test)]
mod tests;
