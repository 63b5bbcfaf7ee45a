//! Running a CPU: bursts of labels, steps of programs, interrupts and requests of paths, until it
//! must wait or others are due first.
//!
//! Read next: `burst.rs`, the loop that takes most of the time.

use blkmq::env::Answer;
use blkmq::request::{CpuId, HctxId, QueueId};

use super::burst::Stop;
use super::cpu::{Level, Mode, Wait};
use super::fio::{FioTask, On};
use super::ksoftirqd::Ksoftirqd;
use super::task::{Program, TaskId, Turn};
use super::{RUN_AHEAD, Simulator, change};
use crate::cost::Step;
use crate::device::Device;

/// Turns of one CPU before the run is observed from outside.
const TURNS: u32 = 4096;
/// Steps of a fio thread in one turn of its CPU.
const FIO_TURNS: u32 = 64;

impl Simulator {
    /// Runs a CPU, whose time is right, as far as it can go at this point of the run.
    pub(super) fn go_on(&mut self, id: CpuId) {
        let shared = self.cpus.sibling_runs(id);
        let cpu = &mut self.cpus[id];
        cpu.shared = shared;
        cpu.scheduled = false;
        for _ in 0..TURNS {
            self.turns += 1;
            match self.cpus.run(&self.layer.mq, id, &mut self.recorder) {
                Stop::Later => break,
                Stop::Waits => return,
                Stop::Interrupt => self.cpus.take_interrupt(id),
                Stop::Turn => {
                    if !self.turn(id) {
                        return;
                    }
                }
                Stop::Effects => self.drain_outbox(id),
                Stop::Offer(rq) => self.submit(id, rq, false),
                Stop::OfferLast(rq) => self.submit(id, rq, true),
                Stop::Budget => self.get_budget(id),
                Stop::PutBudget(token) => self.put_budget(id, token),
                Stop::AskBusy(queue) => self.ask_busy(id, queue),
                Stop::Commit(hctx) => self.commit(id, hctx),
                Stop::Park => self.tasks.sleep_current(&mut self.cpus, id),
                Stop::Grace => change::grace(&mut self.cpus, &mut self.tasks, id),
                Stop::Exchange(to) => {
                    let (layer, timers) = (&mut self.layer, &mut self.timers);
                    let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
                    let said = &mut self.recorder.explanations;
                    let exchanged = change::exchange(cpus, tasks, layer, timers, (id, to), said);
                    if let (Some(queue), Some(readings)) = (exchanged, &mut self.recorder.readings)
                    {
                        let info = self.layer.mq.queue(queue).settings.scheduler.info();
                        readings.scheduler_is(queue, info, self.cpus.at(id));
                    }
                }
            }
        }
        // The observer of the run gets a turn, even if no other CPU is ever due.
        self.cpus.schedule(id);
    }

    /// An interrupt has come: an idle or spinning CPU takes it now, a busy one at its next label.
    pub(super) fn notice(&mut self, id: CpuId) {
        let (now, exit) = (
            self.cpus.core.now,
            self.cpus.core.costs.step(Step::IdleExit),
        );
        let cpu = &mut self.cpus[id];
        if cpu.is_idle() {
            cpu.leave_idle(now);
            // The hardware's time: no instruction runs in it, so it counts as idle.
            cpu.wake_up(exit);
            self.cpus.catch_up(id);
            self.go_on(id);
            return;
        }
        let spins = matches!(cpu.level_state().wait, Wait::Spin(..));
        if spins && cpu.irq_off == 0 && !cpu.scheduled {
            self.cpus.catch_up(id);
            self.go_on(id);
        }
    }

    /// Between frames: the next step of the running level. False if there is none.
    #[inline(never)]
    fn turn(&mut self, id: CpuId) -> bool {
        match self.cpus[id].level {
            Level::Hardirq => self.irq_turn(id),
            Level::Softirq => self.softirq_turn(id),
            Level::Task => return self.task_turn(id),
        }
        true
    }

    fn task_turn(&mut self, id: CpuId) -> bool {
        if self.cpus[id].ksoftirqd != Ksoftirqd::Sleeps && self.ksoftirqd_turn(id) {
            return true;
        }
        let Some(task) = self.cpus[id].current else {
            if self.tasks.switch_in(&mut self.cpus, id) {
                return true;
            }
            self.cpus.await_ready(id);
            self.cpus[id].go_idle();
            return false;
        };
        if self.tasks.should_yield(&self.cpus, id) {
            self.tasks.yield_current(&mut self.cpus, id);
            return true;
        }
        if self.tasks[task].exits.is_some() {
            self.tasks.exit_current(&mut self.cpus, &self.layer.mq, id);
            return true;
        }
        let turn = match &mut self.tasks[task].program {
            Program::Fio(thread) => {
                let mut fio = thread.take().expect("a thread takes one turn at a time");
                let turn = self.fio_turns(id, task, &mut fio);
                let Program::Fio(thread) = &mut self.tasks[task].program else {
                    unreachable!("a task's program does not change")
                };
                debug_assert!(thread.is_none(), "it was taken for its turn");
                // Nothing is there to be dropped.
                core::mem::forget(thread.replace(fio));
                turn
            }
            _ => self.other_turn(id, task),
        };
        match turn {
            Turn::Again => {}
            Turn::Sleep => self.tasks.sleep_current(&mut self.cpus, id),
            Turn::Pause(until) => self.tasks.pause_current(&mut self.cpus, id, until),
            Turn::Exit => self.tasks.exit_current(&mut self.cpus, &self.layer.mq, id),
        }
        true
    }

    /// A turn of a task that is not a fio thread.
    fn other_turn(&mut self, id: CpuId, task: TaskId) -> Turn {
        let mut program = core::mem::replace(
            &mut self.tasks[task].program,
            Program::Kworker(super::work::Kworker::default()),
        );
        let turn = match &mut program {
            Program::Fio(_) => unreachable!("its turn is another one"),
            Program::Kworker(worker) => {
                let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
                let mq = (&self.layer.mq, &mut self.targets);
                self.work.turn(cpus, tasks, mq, id, worker)
            }
            Program::IoWorker(worker) => {
                worker.turn(&mut self.cpus, &mut self.tasks, &self.layer, id)
            }
            Program::Replay(process) => {
                let replay = self.replay.as_deref_mut();
                let replay = replay.expect("only a replay has captured processes");
                let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
                replay.turn(cpus, tasks, &self.layer.mq, (id, task), process)
            }
            Program::Writer(writer) => {
                let times = &mut self.recorder.changes;
                writer.turn(&mut self.cpus, &self.layer, &self.plan.changes, times, id)
            }
            Program::Dmsetup(dmsetup) => {
                let numbers = &self.layer.numbers;
                let times = &mut self.recorder.suspensions;
                dmsetup.turn(&mut self.cpus, numbers, times, id)
            }
            Program::Mapper(number) => {
                let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
                self.mappers.turn(cpus, tasks, id, *number)
            }
            Program::BioWorker(number) => self.bio_workers.turn(&mut self.cpus, id, *number),
        };
        self.tasks[task].program = program;
        turn
    }

    /// Steps of a fio thread, until one starts a path or the CPU has run ahead far enough.
    fn fio_turns(&mut self, id: CpuId, task: TaskId, fio: &mut FioTask) -> Turn {
        let (mut left, limit) = (FIO_TURNS, self.cpus.core.now + RUN_AHEAD);
        loop {
            if !fio.polls() {
                // It completes requests of other threads, too: nvme_complete_batch() ends all of
                // them.
                if !self.cpus[id].batch.is_empty() && self.end_batch(id) {
                    return Turn::Again;
                }
                let on = On {
                    id,
                    task,
                    cpus: &mut self.cpus,
                    tasks: &mut self.tasks,
                    layer: &self.layer,
                    lines: &self.outer,
                    mappings: &mut self.mappings,
                    rings: &mut self.rings,
                    servers: &mut self.servers,
                    flows: &mut self.flows,
                    recorder: &mut self.recorder,
                };
                if let Some(turn) = fio.turns(on, &mut left, limit) {
                    return turn;
                }
            }
            left -= 1;
            let turn = self.poll(id, fio);
            let again = matches!(turn, Turn::Again) && left > 0;
            if !again || !self.cpus[id].goes_on_between_frames(limit) {
                return turn;
            }
        }
    }

    /// One look at the hctx of an I/O (bio_poll()).
    fn poll(&mut self, id: CpuId, fio: &mut FioTask) -> Turn {
        debug_assert!(self.cpus[id].env.plug.is_empty(), "bio_poll() flushes it");
        let place = fio.polled.look();
        let first = self.layer.numbers.queue_of(fio.plan.files[0].disk);
        let device = place.map_or(first, |(queue, _)| queue);
        let device = self.layer.numbers.device_of(device);
        if let Some(step) = self.devices[device].charges.poll {
            self.cpus.charge_as(id, step, Mode::System);
        }
        let Some((queue, hctx)) = place else {
            fio.polled_in_vain(self.cpus.at(id));
            return Turn::Again;
        };
        let now = self.cpus.at(id);
        let found = self.with_device(device, Some(id), |device, _, out| {
            device.poll(hctx, now, out)
        });
        match found {
            Some(found) => {
                fio.polled.found((queue, hctx));
                self.end_found(device, id, found);
            }
            None => {
                fio.polled.found_nothing();
                if !self.end_batch(id) {
                    fio.polled_in_vain(self.cpus.at(id));
                }
            }
        }
        Turn::Again
    }

    #[inline(never)]
    fn get_budget(&mut self, id: CpuId) {
        let ends = self.layer.numbers.ends(self.cpus.asking(id));
        let ask =
            |device: &mut dyn Device, now, out: &mut _| device.get_budget(ends.unit, now, out);
        let token = self.with_device(ends.device, Some(id), ask);
        let answer = token.map_or(Answer::NoBudget, Answer::Budget);
        self.cpus[id].env.answer = answer;
    }

    #[inline(never)]
    fn put_budget(&mut self, id: CpuId, token: u32) {
        let device = self.layer.numbers.device_of(self.cpus.asking(id));
        self.with_device(device, Some(id), |device, _, _| device.put_budget(token));
    }

    #[inline(never)]
    fn ask_busy(&mut self, id: CpuId, queue: QueueId) {
        let ends = self.layer.numbers.ends(queue);
        let busy = self.devices[ends.device].device.is_busy(ends.unit);
        self.cpus[id].env.answer = if busy { Answer::Busy } else { Answer::GoOn };
    }

    #[inline(never)]
    fn commit(&mut self, id: CpuId, hctx: HctxId) {
        let device = self.layer.numbers.device_of(self.cpus.asking(id));
        if let Some(step) = self.devices[device].charges.commit {
            self.cpus.charge(id, step);
        }
        self.with_device(device, Some(id), |device, now, out| {
            device.commit_rqs(hctx, id, now, out);
        });
    }
}
