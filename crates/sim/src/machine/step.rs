//! Running a CPU: stretches of labels, steps of programs, interrupts and what paths ask for, until
//! it must wait or others are due first.
//!
//! Read next: `stretch.rs`, the loop that everything spends its time in.

use blkmq::env::Answer;
use blkmq::request::{CpuId, HctxId};
use blkmq::time::SimTime;

use super::cpu::{Irq, IrqStage, Level, Mode, Wait};
use super::fio::FioTask;
use super::stretch::Stop;
use super::task::{Program, TaskId, Turn};
use super::{Event, Of, RUN_AHEAD, Simulator, class};
use crate::cost::Step;
use crate::recorder::SpanKind;

/// Turns of one CPU before the run is looked at from outside.
const TURNS: u32 = 4096;
/// Steps of a fio thread in one turn.
const FIO_TURNS: u32 = 64;

impl Simulator {
    /// Runs `cpu` as far as it gets at this point of the run.
    pub(super) fn run_cpu(&mut self, id: CpuId) {
        let now = self.core.now;
        let cpu = self.cpu_mut(id);
        cpu.count_spin(now);
        cpu.catch_up(now);
        self.go_on(id);
    }

    /// The same for a CPU whose time is right.
    pub(super) fn go_on(&mut self, id: CpuId) {
        let shared = self.sibling_runs(id);
        let cpu = self.cpu_mut(id);
        cpu.shared = shared;
        cpu.scheduled = false;
        for _ in 0..TURNS {
            self.turns += 1;
            let stop = if self.cpu(id).between_frames() {
                self.pause(id)
            } else {
                self.stretch(id)
            };
            match stop {
                Stop::Later => break,
                Stop::Waits => return,
                Stop::Interrupt => self.take_interrupt(id),
                Stop::Turn => {
                    if !self.turn(id) {
                        return;
                    }
                }
                Stop::Effects => self.effects(id),
                Stop::Offer(rq) => self.submit(id, rq, false),
                Stop::OfferLast(rq) => self.submit(id, rq, true),
                Stop::Budget => self.get_budget(id),
                Stop::PutBudget(token) => self.put_budget(id, token),
                Stop::Commit(hctx) => self.commit(id, hctx),
                Stop::Park => self.sleep_current(id),
                Stop::Grace => self.grace(id),
                Stop::Exchange(to) => self.exchange(id, to),
            }
        }
        // Whoever watches the run gets a look, even if no other CPU is ever due.
        self.schedule(id);
    }

    /// What the last label left for the machine to do.
    fn effects(&mut self, id: CpuId) {
        let env = &self.cpu(id).env;
        let (traced, acts) = (!env.trace.is_empty(), !env.outbox.is_empty());
        if traced {
            self.note_trace(id);
        }
        if acts {
            self.drain_outbox(id);
        }
    }

    /// Goes on when its time comes.
    #[inline(never)]
    pub(super) fn schedule(&mut self, id: CpuId) {
        let at = self.cpu(id).at().max(self.core.now);
        let cpu = self.cpu_mut(id);
        if cpu.scheduled {
            return;
        }
        cpu.scheduled = true;
        cpu.generation = cpu.generation.wrapping_add(1);
        let generation = cpu.generation;
        self.core
            .events
            .push(at, class::CPU, Event::Step(Of::cpu(id, generation)));
    }

    /// An interrupt has come: an idle or spinning CPU takes it now, a busy one at its next label.
    pub(super) fn notice(&mut self, id: CpuId) {
        let (now, exit) = (self.core.now, self.core.costs.step(Step::IdleExit));
        let cpu = self.cpu_mut(id);
        if cpu.is_idle() {
            cpu.leave_idle(now);
            // The hardware's time: no instruction runs in it, so it counts as idle.
            cpu.wake_up(exit);
            self.run_cpu(id);
            return;
        }
        let spins = matches!(cpu.level_state().wait, Wait::Spin(..));
        if spins && cpu.irq_off == 0 && !cpu.scheduled {
            self.run_cpu(id);
        }
    }

    /// Between labels: enters a pending interrupt or, behind it, the softirq.
    #[inline(never)]
    fn take_interrupt(&mut self, id: CpuId) {
        let cpu = self.cpu_mut(id);
        let ipi = core::mem::take(&mut cpu.ipi);
        let vector = if ipi { None } else { cpu.irqs.pop_front() };
        cpu.interrupted = !cpu.irqs.is_empty();
        if !ipi && vector.is_none() {
            return;
        }
        let now = self.core.now;
        let cpu = self.cpu_mut(id);
        cpu.count_spin(now);
        cpu.set_irq(match vector {
            Some(Irq::Device(device, vector)) => IrqStage::Look(device, vector),
            Some(Irq::Timer(queue, timer)) => IrqStage::Timer(queue, timer),
            None => IrqStage::Leave,
        });
        self.span_begins(id, SpanKind::Irq);
        self.charge_as(id, Step::Irq, Mode::Irq);
    }

    /// Between frames: what the running level does next. False if nothing is left to do.
    #[inline(never)]
    fn turn(&mut self, id: CpuId) -> bool {
        match self.cpu(id).level {
            Level::Hardirq => self.irq_turn(id),
            Level::Softirq => self.softirq_turn(id),
            Level::Task => return self.task_turn(id),
        }
        true
    }

    fn task_turn(&mut self, id: CpuId) -> bool {
        if self.cpu(id).softirq_raised() && self.cpu(id).current.is_none() {
            self.enter_softirq(id);
            return true;
        }
        let Some(task) = self.cpu(id).current else {
            if self.switch_in(id) {
                return true;
            }
            self.await_ready(id);
            self.cpu_mut(id).go_idle();
            return false;
        };
        if self.cpu(id).softirq_raised() {
            // Raised outside an interrupt: ksoftirqd gets the CPU.
            self.charge_as(id, Step::ContextSwitch, Mode::System);
            self.charge_as(id, Step::ContextSwitch, Mode::System);
            self.enter_softirq(id);
            return true;
        }
        if self.should_yield(id) {
            self.yield_current(id);
            return true;
        }
        if self.tasks[task.index()].exits.is_some() {
            self.exit_current(id);
            return true;
        }
        let mut program = core::mem::replace(
            &mut self.tasks[task.index()].program,
            Program::Kworker(super::work::Kworker::default()),
        );
        let turn = match &mut program {
            Program::Fio(fio) => self.fio_turns(id, task, fio),
            Program::Kworker(worker) => self.kworker_turn(id, worker),
            Program::IoWorker(worker) => self.io_worker_turn(id, worker),
            Program::Replay(process) => self.replay_turn(id, task, process),
            Program::Writer(writer) => self.writer_turn(id, writer),
        };
        self.tasks[task.index()].program = program;
        match turn {
            Turn::Again => {}
            Turn::Sleep => self.sleep_current(id),
            Turn::Pause(until) => self.pause_current(id, until),
            Turn::Exit => self.exit_current(id),
        }
        true
    }

    /// Steps of a fio thread, until one starts a path or the CPU has run ahead far enough.
    fn fio_turns(&mut self, id: CpuId, task: TaskId, fio: &mut FioTask) -> Turn {
        let limit = self.core.now + RUN_AHEAD;
        for _ in 0..FIO_TURNS {
            let turn = self.fio_turn(id, task, fio);
            let cpu = self.cpu(id);
            let quiet = cpu.levels[Level::Task as usize].stack.is_empty()
                && !cpu.interrupted
                && !cpu.softirq_raised();
            if !matches!(turn, Turn::Again) || !quiet || cpu.at() >= limit {
                return turn;
            }
        }
        Turn::Again
    }

    #[inline(never)]
    fn get_budget(&mut self, id: CpuId) {
        let (mut token, device) = (None, self.device_asked(id));
        self.with_device(device, Some(id), |device, now, out| {
            token = device.get_budget(now, out);
        });
        let answer = token.map_or(Answer::NoBudget, Answer::Budget);
        self.cpu_mut(id).env.answer = answer;
    }

    #[inline(never)]
    fn put_budget(&mut self, id: CpuId, token: u32) {
        let device = self.device_asked(id);
        self.with_device(device, Some(id), |device, _, _| device.put_budget(token));
    }

    #[inline(never)]
    fn commit(&mut self, id: CpuId, hctx: HctxId) {
        let device = self.device_asked(id);
        if let Some(step) = self.charges(device).commit {
            self.charge(id, step);
        }
        self.with_device(device, Some(id), |device, now, out| {
            device.commit_rqs(hctx, now, out);
        });
    }

    /// The kernel makes a step, in the mode of the running level.
    pub(super) fn charge(&mut self, id: CpuId, step: Step) {
        let mode = self.cpu(id).kernel_mode();
        self.charge_as(id, step, mode);
    }

    /// A step takes its time, longer while the sibling runs too.
    pub(super) fn charge_as(&mut self, id: CpuId, step: Step, mode: Mode) {
        self.charge_all(id, &[step], mode);
    }

    /// Several steps, one after the other.
    #[inline]
    pub(super) fn charge_all(&mut self, id: CpuId, steps: &[Step], mode: Mode) {
        let cpu = &mut self.cpus[usize::from(id.0)];
        let mut all = 0;
        for &step in steps {
            let ps = self.core.costs.step_beside(step, cpu.shared);
            self.core.spent.step(step, ps);
            all += ps;
        }
        cpu.spend(all, mode);
    }

    /// The other thread of the core does real work: it neither idles nor spins.
    pub(super) fn sibling_runs(&self, id: CpuId) -> bool {
        let Some(sibling) = self.siblings[usize::from(id.0)] else {
            return false;
        };
        let other = &self.cpus[usize::from(sibling.0)];
        let spins = matches!(other.levels[other.level as usize].wait, Wait::Spin(..));
        !(other.is_idle() || spins)
    }

    /// The machine's time for a CPU: its own, which is never behind.
    pub(super) fn at(&self, id: CpuId) -> SimTime {
        self.cpu(id).at().max(self.core.now)
    }
}
