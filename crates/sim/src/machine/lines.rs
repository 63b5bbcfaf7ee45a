//! Cache lines outside the block layer: those of an I/O, of its ring and of a drive's queues.
//!
//! An I/O that ends on another CPU than its task's moves its io_kiocb and bio there and back, and
//! the ring's list of finished work; a request that a foreign CPU submits to a drive moves the lock
//! of the submission queue and the line with both queues' positions, and reads the bio whose data
//! it maps. Kernel: io_uring/io_uring.c io_req_local_work_add(), drivers/nvme/host/pci.c struct
//! nvme_queue, nvme_map_data() (6.12.117).

use blkmq::env::Line;
use blkmq::request::{CpuId, HctxId, QueueId};

use super::cpus::Cpus;
use crate::cost::Step;
use crate::device::Pair;
use crate::plan::Plan;

/// Lines of a row, which is that of a thread with this iodepth, or of a worker of one.
pub(super) fn lines_of(iodepth: u32) -> usize {
    1 + iodepth as usize
}

/// Lines by row, I/O and hctx. A row is known by its first line; those of threads come first.
#[derive(Clone, Debug)]
pub(super) struct OuterLines {
    /// By row: the head of its list of finished work, then one line for each I/O: io_kiocb and bio,
    /// which move together.
    lines: Vec<Line>,
    /// Lines of each queue's hctxs.
    queues: Vec<Vec<QueueLines>>,
}

#[derive(Clone, Debug, Default)]
struct QueueLines {
    /// sq_lock.
    lock: Line,
    /// sq_tail and cq_head.
    positions: Line,
}

impl OuterLines {
    pub(super) fn new(plan: &Plan, hctxs: &[usize]) -> OuterLines {
        let threads = plan.threads.iter().map(|thread| lines_of(thread.iodepth));
        let hired = plan.hired() as usize * lines_of(1);
        OuterLines {
            lines: vec![Line::default(); threads.sum::<usize>() + hired],
            queues: hctxs
                .iter()
                .map(|&count| vec![QueueLines::default(); count])
                .collect(),
        }
    }

    fn ring(&self, row: usize) -> &Line {
        &self.lines[row]
    }

    fn io(&self, row: usize, slot: u32) -> &Line {
        &self.lines[row + 1 + slot as usize]
    }
}

impl OuterLines {
    /// The task begins an I/O or reaps it.
    pub(super) fn touch_io(&self, cpus: &mut Cpus, id: CpuId, row: usize, slot: u32, step: Step) {
        let near = &cpus[id].env.meter.tariff.near;
        let miss = self.io(row, slot).update(id, near);
        cpus.wait_for_lines(id, step, miss);
    }

    /// A driver reads the bio of an I/O.
    pub(super) fn read_io(&self, cpus: &mut Cpus, id: CpuId, row: usize, slot: u32, step: Step) {
        let near = &cpus[id].env.meter.tariff.near;
        let miss = self.io(row, slot).read(id, near);
        cpus.wait_for_lines(id, step, miss);
    }

    /// An I/O goes onto the list of finished work, or comes off it.
    pub(super) fn touch_ended_io(
        &self,
        cpus: &mut Cpus,
        id: CpuId,
        row: usize,
        slot: u32,
        step: Step,
    ) {
        self.touch_io(cpus, id, row, slot, step);
        let near = &cpus[id].env.meter.tariff.near;
        let miss = self.ring(row).write(id, near);
        cpus.wait_for_lines(id, step, miss);
    }

    /// The driver puts a command into the submission queue of an hctx.
    pub(super) fn touch_submission_queue(
        &self,
        cpus: &mut Cpus,
        id: CpuId,
        queue: QueueId,
        hctx: HctxId,
        pair: Pair,
    ) {
        let near = &cpus[id].env.meter.tariff.near;
        let lines = &self.queues[queue.index()][usize::from(hctx.0)];
        let lock = lines.lock.write(id, near);
        let position = lines.positions.update(id, near);
        cpus.wait_for_lines(id, pair.submission, lock + position);
    }

    /// The driver has found the end of a request in the completion queue of an hctx.
    pub(super) fn touch_completion_queue(
        &self,
        cpus: &mut Cpus,
        id: CpuId,
        queue: QueueId,
        hctx: HctxId,
        pair: Pair,
    ) {
        let near = &cpus[id].env.meter.tariff.near;
        let lines = &self.queues[queue.index()][usize::from(hctx.0)];
        let miss = lines.positions.update(id, near);
        cpus.wait_for_lines(id, pair.completion, miss);
    }
}
