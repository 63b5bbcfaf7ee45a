//! ksoftirqd, which runs a softirq that was raised outside an interrupt.
//!
//! It goes before fio, as it sleeps more, and after a worker of kblockd, whose nice is -20
//! (WQ_HIGHPRI): it gets the CPU when the worker sleeps. A tick or another interrupt that comes
//! before runs the softirq; the ksoftirqd that was woken then finds nothing to do. Kernel:
//! wakeup_softirqd(), run_ksoftirqd() and irq_exit() in kernel/softirq.c, kernel/sched/fair.c
//! (4.5). Read next: `tasks.rs`, the other users of the CPU.

use blkmq::request::CpuId;
use blkmq::time::{Duration, SimTime};

use super::Simulator;
use super::cpu::Mode;
use super::cpus::Cpus;
use super::task::TaskId;
use super::tasks::Tasks;
use crate::cost::Step;
use crate::recorder::SwitchTo;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ksoftirqd {
    #[default]
    Sleeps,
    /// A task has raised a softirq.
    Woken,
    /// It has the CPU; it has preempted the running task, if there is one.
    Runs,
}

impl Simulator {
    /// A turn of a ksoftirqd that does not sleep. False if it waits for a worker.
    #[inline(never)]
    pub(super) fn ksoftirqd_turn(&mut self, id: CpuId) -> bool {
        let cpu = &self.cpus[id];
        let (raised, current) = (cpu.softirq_raised(), cpu.current);
        if cpu.ksoftirqd == Ksoftirqd::Woken {
            if current.is_some_and(|task| self.tasks[task].worker) {
                let ticks = raised && after_worker(&mut self.cpus, id);
                if ticks {
                    self.cpus.enter_softirq(id);
                }
                return ticks;
            }
            self.cpus[id].ksoftirqd = Ksoftirqd::Runs;
            self.cpus.charge_as(id, Step::ContextSwitch, Mode::System);
            self.cpus.count_switch(id, SwitchTo::Ksoftirqd);
        } else if !raised {
            goes_to_sleep(&mut self.cpus, &mut self.tasks, id, current);
            return true;
        }
        if raised {
            self.cpus.enter_softirq(id);
        }
        true
    }
}

impl Cpus {
    /// The current task leaves its CPU, to the idle task if no other is ready: __schedule() runs
    /// once more then when a task is ready again.
    pub(super) fn leave_to_idle(&mut self, cpu: CpuId) {
        if self[cpu].first_ready().is_none() && self[cpu].ksoftirqd == Ksoftirqd::Sleeps {
            self.charge_as(cpu, Step::ContextSwitch, Mode::System);
            self.count_switch(cpu, SwitchTo::Idle);
        }
    }
}

/// A softirq waits for a worker or the next tick. True if the tick has come.
fn after_worker(cpus: &mut Cpus, id: CpuId) -> bool {
    let (at, tick) = (cpus.at(id), cpus[id].softirq_tick);
    if tick == SimTime::NEVER {
        cpus[id].softirq_tick = cpus.tick_after(at, Duration(1));
    }
    at >= tick
}

/// ksoftirqd has nothing left: the CPU returns to its task, unless another goes first.
fn goes_to_sleep(cpus: &mut Cpus, tasks: &mut Tasks, id: CpuId, current: Option<TaskId>) {
    cpus[id].ksoftirqd = Ksoftirqd::Sleeps;
    match current {
        Some(_) if tasks.should_yield(cpus, id) => tasks.yield_current(cpus, id),
        Some(task) => {
            tasks[task].usage.switches += 1;
            cpus.charge_as(id, Step::ContextSwitch, Mode::System);
            cpus.count_switch(id, tasks[task].kind());
        }
        None => cpus.leave_to_idle(id),
    }
}

#[cfg(test)]
mod tests;
