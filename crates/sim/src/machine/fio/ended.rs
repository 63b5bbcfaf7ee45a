//! The end of an I/O, as its thread sees it.
//!
//! Kernel: io_uring/rw.c io_complete_rw(), fs/aio.c aio_complete(), block/fops.c (v6.1).

use blkmq::request::{CpuId, Op, Status};
use blkmq::time::SimTime;

use super::{Place, bio};
use crate::cost::Step;
use crate::machine::cpu::Mode;
use crate::machine::cpus::Cpus;
use crate::machine::layer::Layer;
use crate::machine::lines::OuterLines;
use crate::machine::task::{Program, State, TaskId};
use crate::machine::tasks::Tasks;
use crate::machine::work::IoWorker;
use crate::plan::Engine;

impl Tasks {
    /// The block layer has ended an I/O.
    pub(in crate::machine) fn io_done(
        &mut self,
        cpus: &mut Cpus,
        lines: &OuterLines,
        id: CpuId,
        owner: u32,
        status: Status,
    ) {
        let (task, slot) = (TaskId(owner >> 16), owner & 0xffff);
        let Program::Fio(Some(fio)) = &self[task].program else {
            unreachable!("only fio threads own I/Os")
        };
        if status == Status::Again {
            let worker = fio
                .worker
                .expect("only io_uring asks not to wait, and it has a worker");
            if let Program::Fio(Some(fio)) = &mut self[task].program {
                fio.polled.ended(slot);
            }
            self.give_to_worker(cpus, worker, id, slot);
            return;
        }
        let op = fio.slots[slot as usize].io.op;
        let step = match fio.plan.engine {
            _ if fio.is_call(op) || op == Op::Flush => Step::SyncComplete,
            Engine::IoUring => Step::UringComplete,
            Engine::Libaio => Step::AioComplete,
            Engine::Sync => Step::SyncComplete,
            Engine::Null | Engine::PosixAio => unreachable!("it has no I/O in the kernel"),
        };
        let (row, worker) = (fio.row, fio.worker);
        cpus.charge(id, step);
        lines.touch_ended_io(cpus, id, row, slot, step);
        let at = cpus.at(id);
        let Program::Fio(Some(fio)) = &mut self[task].program else {
            unreachable!("checked above")
        };
        let io = &mut fio.slots[slot as usize];
        io.status = status;
        io.completed = at;
        if fio.note_call(slot, at) {
            if self[task].state == State::Sleeping {
                cpus.charge(id, Step::Wake);
                self.wake(cpus, task, id, SimTime::ZERO);
            }
        } else if let Some(worker) = worker.filter(|_| op == Op::Flush) {
            // The worker sleeps in blkdev_issue_flush().
            if let Program::IoWorker(worker) = &mut self[worker].program {
                worker.ended.give(at, slot);
            }
            cpus.charge(id, Step::Wake);
            self.wake(cpus, worker, id, SimTime::ZERO);
        } else {
            self.post(cpus, id, task, slot);
        }
    }

    /// Makes a completion of io_uring or libaio visible to its thread.
    pub(in crate::machine) fn post(&mut self, cpus: &mut Cpus, id: CpuId, task: TaskId, slot: u32) {
        let at = cpus.at(id);
        let Program::Fio(Some(fio)) = &mut self[task].program else {
            unreachable!("only fio threads own I/Os")
        };
        fio.note_done(at, slot);
        if fio.plan.polled {
            fio.polled.ended(slot);
        }
        if fio.waiting_for > 0
            && let Some(from) = fio.done_from(fio.waiting_for)
            && self[task].state == State::Sleeping
        {
            cpus.charge(id, Step::Wake);
            self.wake(cpus, task, id, from);
        }
    }

    /// Leaves an I/O to io_uring's worker of its thread.
    pub(in crate::machine) fn give_to_worker(
        &mut self,
        cpus: &mut Cpus,
        worker: TaskId,
        id: CpuId,
        slot: u32,
    ) {
        let at = cpus.at(id);
        if let Program::IoWorker(worker) = &mut self[worker].program {
            worker.queue.give(at, slot);
        }
        cpus.charge(id, Step::Wake);
        self.wake(cpus, worker, id, SimTime::ZERO);
    }

    /// Gives it to the first free one of so many workers (io_wqe_activate_free_worker()); without
    /// one, the worker that is done first takes it.
    pub(in crate::machine) fn give_to_workers(
        &mut self,
        cpus: &mut Cpus,
        (first, count): (TaskId, u32),
        id: CpuId,
        slot: u32,
    ) {
        let mut all = (first.0..first.0 + count).map(TaskId);
        if let Some(free) = all.find(|&worker| self[worker].state == State::Sleeping) {
            let at = cpus.at(id);
            if let Program::IoWorker(first) = &mut self[first].program {
                first.queue.give(at, slot);
            }
            cpus.charge(id, Step::Wake);
            self.wake(cpus, free, id, SimTime::ZERO);
        } else if let Program::IoWorker(first) = &mut self[first].program {
            first.queue.give(cpus.at(id), slot);
        }
    }

    /// The driver has started a polled I/O: its thread polls there from now on.
    pub(in crate::machine) fn polled_io_started(&mut self, owner: u32, place: Place) {
        let (task, slot) = (TaskId(owner >> 16), owner & 0xffff);
        if let Program::Fio(Some(fio)) = &mut self[task].program {
            fio.polled.started(slot, place);
        }
    }

    /// Row of lines and slot of an I/O, if a thread owns it.
    pub(in crate::machine) fn io_of(&self, owner: u32) -> Option<(usize, u32)> {
        let (task, slot) = (TaskId(owner >> 16), owner & 0xffff);
        match &self[task].program {
            Program::Fio(Some(fio)) if !fio.reads_pages(owner) => Some((fio.row, slot)),
            _ => None,
        }
    }

    /// Number of the thread that owns a bio, for an I/O or for pages.
    pub(in crate::machine) fn thread_of(&self, owner: u32) -> Option<usize> {
        match &self[TaskId(owner >> 16)].program {
            Program::Fio(Some(fio)) => Some(fio.thread),
            _ => None,
        }
    }

    /// The bio of this owner reads pages for a thread.
    pub(in crate::machine) fn reads_pages(&self, owner: u32) -> bool {
        match &self[TaskId(owner >> 16)].program {
            Program::Fio(Some(fio)) => fio.reads_pages(owner),
            _ => false,
        }
    }

    /// Submits an I/O of a thread from another task, where it may block.
    pub(in crate::machine) fn submit_slot(
        &self,
        cpus: &mut Cpus,
        layer: &Layer,
        id: CpuId,
        worker: &mut IoWorker,
        slot: u32,
    ) {
        let owner = worker.owner;
        let Program::Fio(Some(fio)) = &self[owner].program else {
            unreachable!("only fio threads own I/Os")
        };
        let io = fio.slots[slot as usize].io;
        // Of what the thread handed over, nothing was done before.
        match fio.slots[slot as usize].forced {
            true => fio.charge_issue(cpus, id, Engine::IoUring, io.op),
            false => cpus.charge_as(id, Step::UringIssue, Mode::System),
        }
        let queue = layer.numbers.queue_of(io.disk);
        let rules = &layer.mq.queue(queue).settings.rules;
        worker.own_plug.start(cpus, id, rules, io.op);
        let path = bio::add(layer, id, fio, owner, slot, false);
        cpus.submit(id, path);
    }
}
