//! The process that writes to queue/scheduler while a run goes on, and what its path asks the
//! machine for.
//!
//! One write after another, in order of time. Not here: what a write does (`path/switch.rs` of
//! blkmq).

use blkmq::env::Answer;
use blkmq::path::{Frame, Next, SwitchPath};
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use super::cpu::Wait;
use super::task::{Program, TaskId, Turn};
use super::{Simulator, timer};

/// The process.
#[derive(Clone, Debug, Default)]
pub(super) struct Writer {
    /// Number of its next write, or of the one under way.
    next: usize,
    /// A write is under way.
    writes: bool,
}

impl Simulator {
    /// The process sleeps until its first write.
    pub(super) fn start_changes(&mut self) {
        let Some(task) = self.writer() else { return };
        let first = SimTime(self.plan.changes[0].at.0).max(self.cpus.core.now);
        self.tasks.sleep_until(&mut self.cpus, task, first);
    }

    fn writer(&self) -> Option<TaskId> {
        let mut tasks = self.tasks.iter();
        tasks
            .find(|(_, task)| matches!(task.program, Program::Writer(_)))
            .map(|(id, _)| id)
    }

    /// The next write, when its time has come.
    pub(super) fn writer_turn(&mut self, id: CpuId, writer: &mut Writer) -> Turn {
        let now = self.cpus.at(id);
        if core::mem::take(&mut writer.writes) {
            self.recorder.changes[writer.next].ended = Some(now);
            writer.next += 1;
        }
        let Some(change) = self.plan.changes.get(writer.next) else {
            return Turn::Exit;
        };
        let due = SimTime(change.at.0);
        if now < due {
            return Turn::Pause(due);
        }
        writer.writes = true;
        self.recorder.changes[writer.next].begun = Some(now);
        let path = SwitchPath::new(self.layer.numbers.queue_of(change.disk), change.to);
        self.cpus.push(id, Frame::Switch(path));
        Turn::Again
    }

    /// synchronize_rcu(): the task sleeps to the next tick. Runs that begin meanwhile find the
    /// queue quiesced.
    pub(super) fn grace(&mut self, id: CpuId) {
        let queue = self.cpus.asking(id);
        if !self.reads_scheduler(queue) {
            self.cpus[id].env.answer = Answer::GoOn;
        }
        self.pause_to_tick(id);
    }

    /// elevator_exit() and blk_mq_init_sched(). Timers of the old scheduler are over first: what
    /// runs for them is waited for.
    pub(super) fn exchange(&mut self, id: CpuId, to: usize) {
        let queue = self.cpus.asking(id);
        if self.reads_scheduler(queue) {
            self.cpus[id].level_state().wait = Wait::Wants(Next::Exchange(to as u32));
            self.pause_to_tick(id);
            return;
        }
        self.timers.shut_down(queue);
        self.layer.exchange(queue, to);
    }

    fn pause_to_tick(&mut self, id: CpuId) {
        let until = self.cpus.tick_after(self.cpus.at(id), Duration(1));
        self.tasks.pause_current(&mut self.cpus, id, until);
    }

    /// Somebody is where the scheduler of this queue must stay what it is.
    fn reads_scheduler(&self, queue: QueueId) -> bool {
        let running = self.cpus.iter().flat_map(|cpu| &cpu.levels);
        let others = self
            .tasks
            .iter()
            .filter_map(|(_, task)| task.context.as_ref());
        let mut frames = running.chain(others).flat_map(|level| level.stack.frames());
        frames.any(|frame| frame.queue() == queue && frame.reads_scheduler())
            || timer::comes(&self.cpus, queue)
    }
}
