//! Reads of a thread through the page cache: open files, and the read(2) in progress.
//!
//! fio 3.33: file_invalidate_cache() and fadvise_hint in td_io_open_file(), loop_cache_invalidate()
//! in io_u.c. The kernel's part: `machine/buffered.rs`.

use blkmq::request::{IoClass, Sector};
use blkmq::time::SimTime;

use super::steps::On;
use super::{FioTask, Stage};
use crate::cost::Step;
use crate::machine::buffered::{BufferedRead, Goes, Reader};
use crate::machine::cpu::Mode;
use crate::machine::mappings::{MappingId, Mappings};
use crate::machine::task::Turn;
use crate::plan::{BufferedPlan, DEFAULT_PRIORITY, DiskId, DiskPlan, Engine, Order, ThreadPlan};
use crate::readahead::ReadAhead;

#[derive(Clone, Debug)]
struct OpenFile {
    disk: DiskId,
    read_ahead: ReadAhead,
    /// Where the last read began; `None`: it is not open yet.
    last: Option<Sector>,
}

/// A thread's state for reads through the page cache.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    // Settings.
    plan: BufferedPlan,
    /// Reads are sequential: one before the last means that the thread has started over.
    in_order: bool,

    // State.
    files: Vec<OpenFile>,
    /// The read(2) in progress: its file and its I/O.
    pub(super) read: Option<(usize, u32, BufferedRead)>,
}

impl Cached {
    /// `None` unless the thread reads through the page cache.
    pub(super) fn of(thread: &ThreadPlan, disks: &[DiskPlan]) -> Option<Box<Cached>> {
        let plan = thread.buffered?;
        let open = |disk: DiskId| {
            let queue = &disks[disk.index()].queue;
            let (rules, limits) = (queue.read_ahead_rules(), queue.read_ahead());
            OpenFile {
                disk,
                read_ahead: ReadAhead::new(rules, limits, plan.advice),
                last: None,
            }
        };
        Some(Box::new(Cached {
            plan,
            in_order: thread.order == Order::Sequential && thread.gap_sectors >= 0,
            files: thread.files.iter().map(|file| open(file.disk)).collect(),
            read: None,
        }))
    }

    /// The first file is open, in this state.
    pub(super) fn opened_with(&mut self, read_ahead: ReadAhead) {
        self.files[0].read_ahead = read_ahead;
    }

    /// The state of the first file.
    pub(super) fn state(&self) -> ReadAhead {
        self.files[0].read_ahead
    }

    /// The pages of a disk, and the most of them in a bio.
    pub(super) fn mapping(&self, mappings: &Mappings, disk: DiskId) -> (MappingId, u64) {
        let mapping = mappings.of_disk(disk);
        (mapping, mappings[mapping].bio_pages(self.plan.file_system))
    }

    /// The file on a disk, opened. True: its pages have to be dropped.
    fn open(&mut self, disk: DiskId, sector: Sector) -> (usize, bool) {
        let place = self.files.iter().position(|file| file.disk == disk);
        let place = place.expect("a thread reads its files");
        let last = self.files[place].last.replace(sector);
        let anew = last.is_none_or(|last| self.in_order && sector < last);
        (place, anew && self.plan.invalidates)
    }
}

impl FioTask {
    /// Into read(2), through the page cache.
    pub(super) fn begin_cached(&mut self, on: &mut On<'_>, slot: u32) -> Turn {
        let id = on.id;
        on.cpus.charge_as(id, Step::Syscall, Mode::System);
        on.cpus.charge_as(id, Step::FileLookup, Mode::System);
        self.in_flight += 1;
        self.slots[slot as usize].issued = on.cpus.at(id);
        self.note_call_begins(on);
        self.read_from_cache(on, slot)
    }

    /// An I/O of io_submit(2), which blocks in it: aio_read() ends it before it returns.
    #[cold]
    pub(super) fn issue_cached(&mut self, on: &mut On<'_>, slot: u32) -> Turn {
        on.cpus.charge_as(on.id, Step::AioIssue, Mode::System);
        on.cpus.charge_as(on.id, Step::FileLookup, Mode::System);
        self.read_from_cache(on, slot)
    }

    /// fio_libaio_queued(): an I/O counts as issued when io_submit(2) has returned.
    #[cold]
    pub(super) fn submitted_cached(&mut self, at: SimTime) {
        for &(_, slot) in &self.done {
            let io = &mut self.slots[slot as usize];
            if io.issued == SimTime::NEVER {
                io.issued = at;
            }
        }
    }

    fn read_from_cache(&mut self, on: &mut On<'_>, slot: u32) -> Turn {
        let io = self.slots[slot as usize].io;
        let plugged = on.cpus[on.id].env.plug.active;
        let cached = self.cached.as_mut().expect("it reads through the cache");
        let (file, drops) = cached.open(io.disk, io.sector);
        let (mapping, bio_pages) = cached.mapping(on.mappings, io.disk);
        if drops {
            on.mappings[mapping].cache.forget();
        }
        let from = io.sector.0 * 512;
        let upto = from + u64::from(io.sectors.0) * 512;
        cached.read = Some((
            file,
            slot,
            BufferedRead::new(mapping, from..upto, bio_pages).within(plugged),
        ));
        self.stage = Stage::Cached;
        Turn::Again
    }

    pub(super) fn read_cached(&mut self, on: &mut On<'_>) -> Turn {
        let cached = self.cached.as_mut().expect("it reads through the cache");
        let (file, slot, read) = cached.read.as_mut().expect("it is in a read");
        let slot = *slot;
        let prio = self.plan.priority;
        let mut reader = Reader {
            id: on.id,
            task: on.task,
            io_context: self.io_context,
            group: self.plan.group,
            priority: match prio.class {
                IoClass::None => DEFAULT_PRIORITY,
                _ => prio,
            },
            cpus: on.cpus,
            layer: on.layer,
            mappings: on.mappings,
        };
        match read.turn(&mut reader, &mut cached.files[*file].read_ahead) {
            Goes::On(turn) => turn,
            Goes::Over(status) if self.served.is_some() => self.piece_over(on, status),
            Goes::Over(status) => {
                cached.read = None;
                let at = on.cpus.at(on.id);
                let io = &mut self.slots[slot as usize];
                (io.status, io.completed) = (status, at);
                if self.plan.engine == Engine::Libaio {
                    io.issued = SimTime::NEVER;
                    on.cpus.charge_as(on.id, Step::AioComplete, Mode::System);
                    self.note_done(at, slot);
                    self.stage = Stage::Issue;
                    return Turn::Again;
                }
                self.reap_one(on.cpus, on.lines, on.recorder, on.id, slot);
                self.stage = self.after_call();
                Turn::Again
            }
        }
    }
}
