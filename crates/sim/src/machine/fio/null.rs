//! The engine that ends I/Os itself: none of them reaches the kernel.
//!
//! With an iodepth of 1 an I/O has ended when the engine returns; otherwise all that were submitted
//! together have, and the engine is busy until fio has taken them. After fio 3.33 engines/null.c.

use blkmq::request::Status;
use blkmq::time::SimTime;

use super::steps::On;
use super::{FioTask, Stage};
use crate::machine::task::Turn;
use crate::plan::Engine;
use crate::recorder::Recorder;

impl FioTask {
    /// fio_null_queue() returns FIO_Q_BUSY.
    pub(super) fn engine_is_busy(&self) -> bool {
        self.plan.engine == Engine::Null && !self.done.is_empty()
    }

    /// Completions that fio takes at once: this engine hands out all.
    pub(super) fn takes_at_most(&self) -> u32 {
        match self.plan.engine {
            Engine::Null => u32::MAX,
            _ => self.plan.batch_complete_max.max(1),
        }
    }

    /// FIO_Q_COMPLETED.
    #[cold]
    pub(super) fn end_in_engine(&mut self, on: &mut On<'_>, slot: u32) -> Turn {
        let at = on.cpus.at(on.id);
        self.in_flight += 1;
        let io = &mut self.slots[slot as usize];
        (io.issued, io.completed, io.status) = (at, at, Status::Ok);
        if let Some(fio) = &mut on.recorder.fio {
            fio.begins(self.thread, at);
        }
        self.reap_one(on.cpus, on.lines, on.recorder, on.id, slot);
        self.stage = Stage::Prepare;
        Turn::Again
    }

    /// fio_null_commit().
    #[cold]
    pub(super) fn end_all_in_engine(&mut self, recorder: &mut Recorder, at: SimTime) -> Turn {
        let count = self.prepared.len() as u32;
        self.in_flight += count;
        if let Some(fio) = &mut recorder.fio
            && count > 0
        {
            fio.submits(self.thread, at, count, self.in_flight);
        }
        while let Some(slot) = self.prepared.pop_front() {
            let io = &mut self.slots[slot as usize];
            (io.issued, io.completed, io.status) = (at, at, Status::Ok);
            self.done.push_back((at, slot));
        }
        self.stage = Stage::Submitted;
        Turn::Again
    }
}
