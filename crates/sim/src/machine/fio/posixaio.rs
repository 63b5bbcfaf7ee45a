//! Threads of glibc that read and write for a thread (posixaio): one for each file, as glibc gives
//! a file's I/Os to one thread at a time, in order.
//!
//! glibc 2.36: __aio_enqueue_request() and handle_fildes_io() in rt/aio_misc.c, aio_suspend(3).
//! fio 3.33 engines/posixaio.c.

use blkmq::time::SimTime;

use super::steps::On;
use super::{FioTask, Stage};
use crate::cost::Step;
use crate::machine::cpu::Mode;
use crate::machine::task::{Program, State, TaskId, Turn};

impl FioTask {
    /// It is a thread of glibc.
    pub(super) fn helps(&self) -> bool {
        self.hired.as_ref().is_some_and(|hired| hired.helps)
    }

    /// aio_read(3), aio_write(3) or aio_fsync(3): wakes the file's thread if that is idle.
    #[cold]
    pub(super) fn ask_for_help(&mut self, on: &mut On<'_>, slot: u32) -> Turn {
        let id = on.id;
        let at = on.cpus.at(id);
        let io = &mut self.slots[slot as usize];
        io.issued = at;
        let (disk, sector) = (io.io.disk, io.io.sector.0);
        // Several files may lie on a disk.
        let files = self.plan.files.iter();
        let file = files.clone().position(|file| {
            let upto = file.first_sector + file.region_sectors;
            file.disk == disk && (file.first_sector..upto).contains(&sector)
        });
        let file = file.or(files.clone().position(|file| file.disk == disk));
        let count = self.plan.workers(on.cpus.len() as u16);
        let number = file.expect("it is one of its files") as u32 % count;
        let first = self.worker.expect("glibc has a thread for a file");
        let helper = TaskId(first.0 + number);
        if let Program::Fio(Some(fio)) = &mut on.tasks[helper].program
            && let Some(hired) = &mut fio.hired
        {
            hired.asked.give(at, slot);
        }
        if on.tasks[helper].state == State::Sleeping {
            on.cpus.charge_as(id, Step::Syscall, Mode::System);
            on.cpus.charge_as(id, Step::Wake, Mode::System);
            on.tasks.wake(on.cpus, helper, id, SimTime::ZERO);
        }
        Turn::Again
    }

    /// A thread of glibc takes its next I/O: pread(2), pwrite(2) or fsync(2).
    pub(super) fn help(&mut self, on: &mut On<'_>) -> Turn {
        let hired = self.hired.as_mut().expect("it is a worker");
        let Some(slot) = hired.asked.take(on.cpus.at(on.id)) else {
            return hired.asked.next_time().map_or_else(
                || {
                    on.cpus.charge_as(on.id, Step::Syscall, Mode::System);
                    Turn::Sleep
                },
                Turn::Pause,
            );
        };
        hired.helping = slot;
        let Program::Fio(Some(thread)) = &on.tasks[hired.by].program else {
            unreachable!("its thread does not take a turn now")
        };
        let own = self.free.pop().expect("it has one I/O at a time");
        self.slots[own as usize].io = thread.slots[slot as usize].io;
        self.begin_call(on, own)
    }

    /// It has ended: the thread may take it, and is woken if it waits for it.
    #[cold]
    pub(super) fn helped(&mut self, on: &mut On<'_>, own: u32) -> Turn {
        let hired = self.hired.as_ref().expect("it is a worker");
        let (by, slot) = (hired.by, hired.helping);
        self.in_flight -= 1;
        self.free.push(own);
        let ended = self.slots[own as usize];
        if let Program::Fio(Some(thread)) = &mut on.tasks[by].program {
            let io = &mut thread.slots[slot as usize];
            (io.status, io.completed) = (ended.status, ended.completed);
        }
        on.tasks.post(on.cpus, on.id, by, slot);
        self.stage = Stage::Prepare;
        Turn::Again
    }
}
