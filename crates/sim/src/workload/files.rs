//! Which file of a thread the next I/O goes to, and where in it.
//!
//! After fio's filesetup.c and io_u.c (get_next_file, get_next_file_rr, get_next_file_rand). Every
//! file has its own positions, as every file of fio has its own random map and last position.

use super::place::Places;
use super::random;
use crate::plan::{DiskId, FileService, ThreadPlan};
use crate::rng::Rng;
use blkmq::request::{Sector, Sectors};

/// The files of one stream.
#[derive(Clone, Debug)]
pub(super) struct Files {
    // Settings.
    service: FileService,

    // State.
    all: Vec<File>,
    /// The file in turn.
    current: usize,
    /// I/Os that it still gets, or sectors with `FileService::Sequential`.
    left: u64,
    choice: Rng,
}

#[derive(Clone, Debug)]
struct File {
    disk: DiskId,
    region_sectors: u64,
    places: Places,
}

impl Files {
    /// Those of a thread, from the beginning. Panics if it has none.
    pub(super) fn new(plan: &ThreadPlan) -> Files {
        assert!(!plan.files.is_empty(), "{} has no file", plan.name);
        let files = plan.files.iter().enumerate().map(|(index, file)| {
            let offset = match index {
                0 => random(plan, "offset"),
                other => random(plan, &format!("offset/file{other}")),
            };
            File {
                disk: file.disk,
                region_sectors: file.region_sectors,
                places: Places::new(plan, file, offset),
            }
        });
        let files: Vec<File> = files.collect();
        Files {
            service: plan.file_service,
            // The first one comes after the last.
            current: files.len() - 1,
            left: 0,
            all: files,
            choice: random(plan, "file"),
        }
    }

    /// Disk and place of the next I/O in this direction (0 reads, 1 writes, 2 trims), and what of
    /// `sectors` fits there.
    pub(super) fn next(&mut self, direction: usize, sectors: Sectors) -> (DiskId, Sector, Sectors) {
        let sequential = self.service == FileService::Sequential;
        let file = self.turn();
        let (sector, sectors) = file.places.next(direction, sectors);
        let disk = file.disk;
        let used = if sequential { u64::from(sectors.0) } else { 1 };
        self.left = self.left.saturating_sub(used);
        (disk, sector, sectors)
    }

    /// Disk of an fsync(2): that of the file in turn.
    pub(super) fn flushed(&mut self) -> DiskId {
        let disk = self.turn().disk;
        if self.service != FileService::Sequential {
            self.left = self.left.saturating_sub(1);
        }
        disk
    }

    /// The file in turn, the next one if the last has had its share.
    fn turn(&mut self) -> &mut File {
        if self.all.len() == 1 {
            return &mut self.all[0];
        }
        if self.left == 0 {
            let count = self.all.len();
            self.current = match self.service {
                FileService::RoundRobin(_) | FileService::Sequential => (self.current + 1) % count,
                FileService::Random(_) => self.choice.below(count as u64) as usize,
            };
            self.left = match self.service {
                FileService::RoundRobin(ios) | FileService::Random(ios) => u64::from(ios),
                FileService::Sequential => self.all[self.current].region_sectors,
            };
        }
        &mut self.all[self.current]
    }
}

#[cfg(test)]
mod tests;
