//! The end of an I/O, as its thread hears of it.
//!
//! Kernel: io_uring/rw.c io_complete_rw(), fs/aio.c aio_complete(), block/fops.c (v6.1).

use blkmq::path::Frame;
use blkmq::request::{CpuId, Status};
use blkmq::time::SimTime;

use super::bio;
use crate::cost::Step;
use crate::machine::cpus::Cpus;
use crate::machine::layer::Layer;
use crate::machine::lines::OuterLines;
use crate::machine::task::{Program, State, TaskId};
use crate::machine::tasks::Tasks;
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
        let Program::Fio(fio) = &self[task].program else {
            unreachable!("only fio threads own I/Os")
        };
        if status == Status::Again {
            let at = cpus.at(id);
            let worker = fio
                .worker
                .expect("only io_uring asks not to wait, and it has a worker");
            if let Program::IoWorker(io_worker) = &mut self[worker].program {
                io_worker.queue.give(at, slot);
            }
            cpus.charge(id, Step::Wake);
            self.wake(cpus, worker, id, SimTime::ZERO);
            return;
        }
        let step = match fio.plan.engine {
            Engine::IoUring => Step::UringComplete,
            Engine::Libaio => Step::AioComplete,
            Engine::Sync => Step::SyncComplete,
        };
        let thread = fio.thread;
        cpus.charge(id, step);
        lines.touch_ended_io(cpus, id, thread, slot, step);
        let at = cpus.at(id);
        let Program::Fio(fio) = &mut self[task].program else {
            unreachable!("checked above")
        };
        let io = &mut fio.slots[slot as usize];
        io.status = status;
        io.completed = at;
        fio.note_done(at, slot);
        if fio.waiting_for > 0
            && let Some(from) = fio.done_from(fio.waiting_for)
            && self[task].state == State::Sleeping
        {
            cpus.charge(id, Step::Wake);
            self.wake(cpus, task, id, from);
        }
    }

    /// Submits an I/O of a thread from another task, where it may block.
    pub(in crate::machine) fn submit_slot(
        &self,
        cpus: &mut Cpus,
        layer: &Layer,
        id: CpuId,
        owner: TaskId,
        slot: u32,
    ) {
        let Program::Fio(fio) = &self[owner].program else {
            unreachable!("only fio threads own I/Os")
        };
        let path = bio::add(layer, id, fio, owner, slot, false);
        cpus.push(id, Frame::Submit(path));
    }
}
