//! The process that writes to queue/scheduler or a file of queue/iosched/ during a run, and the
//! requests of its path to the machine.
//!
//! One write after another, in order of time. A write to queue/iosched/ takes no time, and no lock
//! from another CPU. Not here: the exchange of schedulers (`path/switch.rs` of blkmq).

use blkmq::env::Answer;
use blkmq::path::{Frame, Next, SwitchPath};
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use super::cpu::Wait;
use super::cpus::Cpus;
use super::layer::Layer;
use super::task::{Program, Task, Turn};
use super::tasks::Tasks;
use super::timer::{self, Timers};
use crate::plan::{ChangePlan, ChangeTo};
use crate::recorder::ChangeTimes;

#[derive(Clone, Debug, Default)]
pub(super) struct Writer {
    /// Number of its next write, or of the one in progress.
    next: usize,
    /// A write is in progress.
    writes: bool,
}

impl Writer {
    /// The next write, when it is due. `times` records when writes began and ended.
    pub(super) fn turn(
        &mut self,
        cpus: &mut Cpus,
        layer: &Layer,
        changes: &[ChangePlan],
        times: &mut [ChangeTimes],
        id: CpuId,
    ) -> Turn {
        let now = cpus.at(id);
        if core::mem::take(&mut self.writes) {
            times[self.next].ended = Some(now);
            self.next += 1;
        }
        let Some(change) = changes.get(self.next) else {
            return Turn::Exit;
        };
        let due = SimTime(change.at.0);
        if now < due {
            return Turn::Pause(due);
        }
        self.writes = true;
        times[self.next].begun = Some(now);
        let queue = layer.numbers.queue_of(change.disk);
        match change.to {
            ChangeTo::Scheduler(to) => {
                cpus.push(id, Frame::Switch(SwitchPath::new(queue, to)));
            }
            ChangeTo::Attribute(name, value) => {
                let (q, env) = (layer.mq.queue(queue), &mut cpus[id].env);
                let stored = q.elevator.store(q, name, &value.to_string(), env);
                stored.expect("the plan has tried the write");
            }
        }
        Turn::Again
    }
}

pub(super) fn start(cpus: &mut Cpus, tasks: &Tasks, changes: &[ChangePlan]) {
    let writes = |task: &Task| matches!(task.program, Program::Writer(_));
    let writer = tasks.iter().find(|(_, task)| writes(task));
    if let (Some((writer, _)), Some(change)) = (writer, changes.first()) {
        let first = SimTime(change.at.0).max(cpus.core.now);
        tasks.sleep_until(cpus, writer, first);
    }
}

/// synchronize_rcu(): the task sleeps to the next tick. Runs that begin meanwhile find the queue
/// quiesced.
pub(super) fn grace(cpus: &mut Cpus, tasks: &mut Tasks, id: CpuId) {
    let queue = cpus.asking(id);
    if !any(cpus, tasks, queue, Frame::holds_up_grace) {
        cpus[id].env.answer = Answer::GoOn;
    }
    pause_to_tick(cpus, tasks, id);
}

/// elevator_exit() and blk_mq_init_sched(). Timers of the old scheduler end first: the task waits
/// for their functions. Returns the queue whose scheduler was removed.
pub(super) fn exchange(
    cpus: &mut Cpus,
    tasks: &mut Tasks,
    layer: &mut Layer,
    timers: &mut Timers,
    (id, to): (CpuId, usize),
    explanations: &mut Vec<String>,
) -> Option<QueueId> {
    let queue = cpus.asking(id);
    if reads_scheduler(cpus, tasks, queue) {
        cpus[id].level_state().wait = Wait::Wants(Next::Exchange(to as u32));
        pause_to_tick(cpus, tasks, id);
        return None;
    }
    timers.shut_down(queue);
    layer.explain(queue, explanations);
    layer.exchange(queue, to);
    Some(queue)
}

fn pause_to_tick(cpus: &mut Cpus, tasks: &mut Tasks, id: CpuId) {
    let until = cpus.tick_after(cpus.at(id), Duration(1));
    tasks.pause_current(cpus, id, until);
}

/// A path is at a point where the scheduler of this queue must not change.
fn reads_scheduler(cpus: &Cpus, tasks: &Tasks, queue: QueueId) -> bool {
    any(cpus, tasks, queue, Frame::reads_scheduler) || timer::comes(cpus, queue)
}

/// Some path of this queue satisfies `is`, on any CPU or in any task.
fn any(cpus: &Cpus, tasks: &Tasks, queue: QueueId, is: fn(&Frame) -> bool) -> bool {
    let running = cpus.iter().flat_map(|cpu| &cpu.levels);
    let others = tasks.iter().filter_map(|(_, task)| task.context.as_ref());
    let mut frames = running.chain(others).flat_map(|level| level.stack.frames());
    frames.any(|frame| frame.queue() == queue && is(frame))
}
