//! Pages of files: where they lie on disks, the tasks that wait for them, and the end of their
//! reads.
//!
//! The reader: `buffered.rs`. The state of a page: `page_cache.rs`. Kernel: mm/filemap.c,
//! fs/mpage.c mpage_end_io() and mpage_read_end_io() (2.6.32.2, 6.12.117).
//!
//! Deviation(D23): all tasks that wait for a page are woken when its read ends, not one after the
//! other.

use core::ops::{Index, IndexMut};

use blkmq::request::{CpuId, Sector, Sectors, Status};
use blkmq::time::SimTime;

use super::cpus::Cpus;
use super::task::TaskId;
use super::tasks::Tasks;
use crate::cost::Step;
use crate::page_cache::{PAGE_SECTORS, PageCache};
use crate::plan::{DiskId, DiskPlan, Plan};
use crate::readahead::RawBios;

/// Mark in a bio's owner: the bio reads pages.
pub(super) const PAGES: u32 = 0xffff;

/// Most pages of one bio (BIO_MAX_PAGES).
const BIO_PAGES_MAX: u64 = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MappingId(pub(super) u16);

/// The pages of a file or block device (struct address_space).
#[derive(Debug)]
pub(super) struct Mapping {
    // Settings.
    pub(super) disk: DiskId,
    first: Sector,
    sectors: u64,
    /// Most pages of one bio of the block device as a file.
    raw_pages: u64,
    /// The same for a file in a file system (mpage_readpages()).
    run_pages: u64,

    // State.
    pub(super) cache: PageCache,
    waiters: Vec<(u64, TaskId)>,
}

#[derive(Debug)]
pub(super) struct Mappings {
    all: Vec<Mapping>,
}

impl Index<MappingId> for Mappings {
    type Output = Mapping;

    fn index(&self, id: MappingId) -> &Mapping {
        &self.all[usize::from(id.0)]
    }
}

impl IndexMut<MappingId> for Mappings {
    fn index_mut(&mut self, id: MappingId) -> &mut Mapping {
        &mut self.all[usize::from(id.0)]
    }
}

impl Mappings {
    /// One mapping for each disk that a thread reads through the page cache.
    pub(super) fn new(plan: &Plan) -> Mappings {
        let mut all = Vec::new();
        for (number, disk) in (0..).map(DiskId).zip(&plan.disks) {
            let readers = plan.threads.iter().filter(|thread| {
                thread.buffered.is_some() && thread.files.iter().any(|file| file.disk == number)
            });
            let readers = readers.count();
            if readers > 0 {
                all.push(Mapping::of_disk(number, disk, plan.cache_pages, readers));
            }
        }
        Mappings { all }
    }

    pub(super) fn of_disk(&self, disk: DiskId) -> MappingId {
        let place = self.all.iter().position(|mapping| mapping.disk == disk);
        MappingId(place.expect("a disk that is read through the page cache has one") as u16)
    }

    /// A bio that read pages has ended on `id`.
    pub(super) fn end_read(
        &mut self,
        cpus: &mut Cpus,
        tasks: &mut Tasks,
        id: CpuId,
        bio: (DiskId, Sector, Sectors),
        status: Status,
    ) {
        let (disk, sector, sectors) = bio;
        let mapping = self.of_disk(disk);
        let mapping = &mut self[mapping];
        let first = (sector.0 - mapping.first.0) / PAGE_SECTORS;
        let pages = u64::from(sectors.0).div_ceil(PAGE_SECTORS);
        for page in first..first + pages {
            cpus.charge(id, Step::PageEnd);
            let at = cpus.at(id);
            mapping.cache.end_read(page, at, status == Status::Ok);
            while let Some(task) = mapping.take_waiter(page) {
                cpus.charge(id, Step::Wake);
                tasks.wake(cpus, task, id, SimTime::ZERO);
            }
        }
    }
}

impl Mapping {
    fn of_disk(disk: DiskId, plan: &DiskPlan, room: usize, readers: usize) -> Mapping {
        let rules = plan.queue.read_ahead_rules();
        let limits = &plan.queue.limits;
        let of_queue = u64::from(limits.max_sectors) / PAGE_SECTORS;
        let most = of_queue
            .min(u64::from(limits.max_segments))
            .min(BIO_PAGES_MAX);
        let sectors = plan.device.sectors;
        let pages = sectors.div_ceil(PAGE_SECTORS);
        Mapping {
            disk,
            first: Sector(0),
            sectors,
            run_pages: most.max(1),
            raw_pages: match rules.raw_bios {
                RawBios::EachPage => 1,
                RawBios::EachRun => most.max(1),
            },
            cache: PageCache::new(pages, room.min(pages as usize)),
            waiters: Vec::with_capacity(readers),
        }
    }

    /// Most pages of one bio.
    pub(super) fn bio_pages(&self, file_system: bool) -> u64 {
        match file_system {
            true => self.run_pages,
            false => self.raw_pages,
        }
    }

    /// Where pages lie, the last one cut at the end of the file.
    pub(super) fn place(&self, page: u64, pages: u64) -> (Sector, Sectors) {
        let from = page * PAGE_SECTORS;
        let sectors = (pages * PAGE_SECTORS).min(self.sectors - from);
        (Sector(self.first.0 + from), Sectors(sectors as u32))
    }

    /// A task waits for the read of a page.
    pub(super) fn wait(&mut self, page: u64, task: TaskId) {
        match self.waiters.iter_mut().find(|(_, other)| *other == task) {
            // Woken by another event, it has looked and waits again.
            Some(waiter) => waiter.0 = page,
            None => self.waiters.push((page, task)),
        }
    }

    /// Removes the first task that waits for a page.
    fn take_waiter(&mut self, page: u64) -> Option<TaskId> {
        let place = self.waiters.iter().position(|&(of, _)| of == page)?;
        Some(self.waiters.remove(place).1)
    }
}
