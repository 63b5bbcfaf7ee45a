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
use super::task::{TaskId, Turn};
use super::{Event, Of, Simulator, class};

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
        let first = SimTime(self.plan.changes[0].at.0).max(self.core.now);
        let generation = self.tasks[task.index()].generation;
        let whom = Event::Resume(Of::new(task.0, generation));
        self.core.events.push(first, class::CPU, whom);
    }

    fn writer(&self) -> Option<TaskId> {
        let writes =
            |task: &super::task::Task| matches!(task.program, super::task::Program::Writer(_));
        let index = self.tasks.iter().position(writes)?;
        Some(TaskId(index as u32))
    }

    /// The next write, when its time has come.
    pub(super) fn writer_turn(&mut self, id: CpuId, writer: &mut Writer) -> Turn {
        let now = self.at(id);
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
        let path = SwitchPath::new(self.numbers.queue_of(change.disk), change.to);
        self.cpu_mut(id)
            .level_state()
            .stack
            .push(Frame::Switch(path));
        Turn::Again
    }

    /// synchronize_rcu(): the task sleeps to the next tick. Runs that begin meanwhile find the
    /// queue quiesced.
    pub(super) fn grace(&mut self, id: CpuId) {
        let queue = self.asking(id);
        if !self.reads_scheduler(queue) {
            self.cpu_mut(id).env.answer = Answer::GoOn;
        }
        self.pause_to_tick(id);
    }

    /// elevator_exit() and blk_mq_init_sched(). Timers of the old scheduler are over first: what
    /// runs for them is waited for.
    pub(super) fn exchange(&mut self, id: CpuId, to: usize) {
        let queue = self.asking(id);
        if self.reads_scheduler(queue) {
            self.cpu_mut(id).level_state().wait = Wait::Wants(Next::Exchange(to as u32));
            self.pause_to_tick(id);
            return;
        }
        self.timers.shut_down(queue);
        let hints = &mut self.hints;
        let mut hint = || hints.next_u64() as u32;
        self.mq.exchange(queue, to, &mut hint);
    }

    fn pause_to_tick(&mut self, id: CpuId) {
        let until = self.tick_after(self.at(id), Duration(1));
        self.pause_current(id, until);
    }

    /// Somebody is where the scheduler of this queue must stay what it is.
    fn reads_scheduler(&self, queue: QueueId) -> bool {
        let running = self.cpus.iter().flat_map(|cpu| &cpu.levels);
        let others = self.tasks.iter().filter_map(|task| task.context.as_ref());
        let mut frames = running.chain(others).flat_map(|level| level.stack.frames());
        let waits = |&(of, _): &(QueueId, u8)| of == queue;
        frames.any(|frame| frame.queue() == queue && frame.reads_scheduler())
            || self
                .cpus
                .iter()
                .any(|cpu| cpu.softirq_timers.iter().any(waits))
            || self.timer_interrupts(queue)
    }
}
