//! Running a CPU: one label or one step of a program after another, until it must wait or others
//! are due first.

use blkmq::env::{Answer, Slab};
use blkmq::path::Next;
use blkmq::queue::{LockId, LockKind};
use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::cpu::{IrqStage, Level, Mode, Wait};
use super::task::{Program, Turn};
use super::{Event, RUN_AHEAD, Simulator, class};
use crate::device::Device;

/// Turns of one CPU before the run is looked at from outside.
const TURNS: u32 = 4096;

impl Simulator {
    /// Runs `cpu` as far as it gets at this point of the run.
    pub(super) fn run_cpu(&mut self, id: CpuId) {
        self.count_spin(id);
        let now = self.now;
        let cpu = self.cpu_mut(id);
        cpu.scheduled = false;
        cpu.catch_up(now);
        for _ in 0..TURNS {
            let cpu = &mut self.cpus[usize::from(id.0)];
            let level = cpu.level() as usize;
            let wait = cpu.levels[level].wait;
            let at = cpu.at();
            if at > self.now {
                let asks = matches!(wait, Wait::Ask(lock) if is_exact(lock));
                let others_first = self.events.peek_time().is_some_and(|next| next <= at);
                if !others_first {
                    self.now = at;
                } else if asks || at.since(self.now) >= RUN_AHEAD {
                    self.schedule(id);
                    return;
                }
            }
            if self.cpus[usize::from(id.0)].interrupted && self.take_interrupt(id) {
                continue;
            }
            match wait {
                Wait::Ask(lock) => {
                    if self.ask(id, lock) {
                        continue;
                    }
                    return;
                }
                Wait::Spin(..) => return,
                Wait::Got(lock) => {
                    self.acquire(id, lock, self.costs.cycles.lock_handoff);
                    continue;
                }
                Wait::None => {}
            }
            if !self.cpus[usize::from(id.0)].levels[level].stack.is_empty() {
                self.step_frame(id);
            } else if !self.turn(id) {
                return;
            }
        }
        // Whoever watches the run gets a look, even if no other CPU is ever due.
        self.schedule(id);
    }

    /// Goes on when its time comes.
    pub(super) fn schedule(&mut self, id: CpuId) {
        let at = self.cpu(id).at().max(self.now);
        let cpu = self.cpu_mut(id);
        if cpu.scheduled {
            return;
        }
        cpu.scheduled = true;
        cpu.generation = cpu.generation.wrapping_add(1);
        let generation = cpu.generation;
        self.events
            .push(at, class::CPU, Event::Step(id, generation));
    }

    /// An interrupt has come: an idle or spinning CPU takes it now, a busy one at its next label.
    pub(super) fn notice(&mut self, id: CpuId) {
        let now = self.now;
        let exit = self.costs.ps(self.costs.cycles.idle_exit);
        let cpu = self.cpu_mut(id);
        if cpu.is_idle() {
            cpu.leave_idle(now);
            cpu.spend(exit, Mode::System);
            self.run_cpu(id);
            return;
        }
        let spins = matches!(cpu.level_state().wait, Wait::Spin(..));
        if spins && cpu.irq_off == 0 && !cpu.scheduled {
            self.run_cpu(id);
        }
    }

    /// Between labels: enters a pending interrupt or, behind it, the softirq.
    fn take_interrupt(&mut self, id: CpuId) -> bool {
        let cpu = self.cpu_mut(id);
        if cpu.level() == Level::Hardirq || cpu.irq_off > 0 {
            return false;
        }
        let ipi = core::mem::take(&mut cpu.ipi);
        let vector = if ipi { None } else { cpu.irqs.pop_front() };
        cpu.interrupted = !cpu.irqs.is_empty();
        if !ipi && vector.is_none() {
            return false;
        }
        self.count_spin(id);
        let price = self.costs.ps(self.costs.cycles.irq);
        let cpu = self.cpu_mut(id);
        cpu.irq = vector.map_or(IrqStage::Exit, IrqStage::Look);
        cpu.spend(price, Mode::Irq);
        true
    }

    /// Spinning time up to the present of the CPU, before something interrupts it.
    pub(super) fn count_spin(&mut self, id: CpuId) {
        let now = self.now;
        let cpu = self.cpu_mut(id);
        if let Wait::Spin(..) = cpu.level_state().wait {
            let from = cpu.at();
            let until = now.max(from);
            let spun = until.since(from).0 * 1000;
            cpu.spin_ps += spun;
            if cpu.level() == Level::Task {
                cpu.task_spin_ps += spun;
            }
            cpu.catch_up(until);
        }
    }

    /// Between frames: what the running level does next. False if nothing is left to do.
    fn turn(&mut self, id: CpuId) -> bool {
        match self.cpu(id).level() {
            Level::Hardirq => self.irq_turn(id),
            Level::Softirq => self.softirq_turn(id),
            Level::Task => return self.task_turn(id),
        }
        true
    }

    fn task_turn(&mut self, id: CpuId) -> bool {
        if self.cpu(id).softirq_raised && self.cpu(id).current.is_none() {
            self.enter_softirq(id);
            return true;
        }
        let Some(task) = self.cpu(id).current else {
            if self.switch_in(id) {
                return true;
            }
            self.cpu_mut(id).go_idle();
            return false;
        };
        if self.cpu(id).softirq_raised {
            // Raised outside an interrupt: ksoftirqd gets the CPU.
            let switch = self.costs.ps(self.costs.cycles.context_switch);
            self.cpu_mut(id).spend(2 * switch, Mode::System);
            self.enter_softirq(id);
            return true;
        }
        if self.should_yield(id) {
            self.yield_current(id);
            return true;
        }
        let mut program = core::mem::replace(
            &mut self.tasks[task.index()].program,
            Program::Kworker(super::work::Kworker::default()),
        );
        let turn = match &mut program {
            Program::Fio(fio) => self.fio_turn(id, task, fio),
            Program::Kworker(worker) => self.kworker_turn(id, worker),
            Program::IoWorker(worker) => self.io_worker_turn(id, worker),
            Program::Replay(process) => self.replay_turn(id, task, process),
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

    /// Asks the arbiter for a lock at the present time. False if it has to wait.
    fn ask(&mut self, id: CpuId, lock: LockId) -> bool {
        let slot = self.mq.lock_slot(lock);
        let at = self.cpu(id).at();
        if at > self.now && !self.arbiter.is_free(slot, at) {
            // Not free after all: then the order of arrival matters.
            self.schedule(id);
            return false;
        }
        if self.arbiter.is_free(slot, at) {
            self.arbiter.take(slot);
            self.acquire(id, lock, self.costs.cycles.lock_free);
            return true;
        }
        let cpu = self.cpu_mut(id);
        let level = cpu.level();
        cpu.level_state().wait = Wait::Spin(lock, at);
        if lock.kind.irq_class().masks_irq() {
            cpu.irq_off += 1;
        }
        let who = u32::from(id.0) * 3 + level as u32;
        if self.arbiter.queue(slot, who) {
            let free_at = self.arbiter.locks[slot].free_at.max(self.now);
            self.events
                .push(free_at, class::GRANT, Event::Grant(slot as u32));
        }
        false
    }

    /// The first in line gets the lock.
    pub(super) fn grant_first(&mut self, slot: usize) {
        let Some(who) = self.arbiter.grant_first(slot) else {
            return;
        };
        let id = CpuId((who / 3) as u16);
        let level = (who % 3) as usize;
        let now = self.now;
        let cpu = self.cpu_mut(id);
        let Wait::Spin(lock, asked) = cpu.levels[level].wait else {
            unreachable!("only a spinning level stands in line")
        };
        self.arbiter.waited(slot, now.since(asked));
        let cpu = self.cpu_mut(id);
        if lock.kind.irq_class().masks_irq() {
            cpu.irq_off -= 1;
        }
        if cpu.level() as usize != level {
            cpu.levels[level].wait = Wait::Got(lock);
            return;
        }
        self.count_spin(id);
        self.acquire(id, lock, self.costs.cycles.lock_handoff);
        self.run_cpu(id);
    }

    /// The grant takes effect: the lock is this level's from now on.
    fn acquire(&mut self, id: CpuId, lock: LockId, cycles: u64) {
        let cpu = &mut self.cpus[usize::from(id.0)];
        let level = cpu.level() as usize;
        cpu.env.owner = u32::from(id.0) * 4 + level as u32;
        self.mq.acquire(lock, &mut cpu.env);
        let price = self.costs.ps(cycles) + self.costs.words(id, &mut cpu.env.meter);
        let mode = cpu.kernel_mode();
        let began = cpu.at();
        cpu.spend(price, mode);
        if lock.kind.irq_class().masks_irq() {
            cpu.irq_off += 1;
        }
        let state = &mut cpu.levels[level];
        state.wait = Wait::None;
        state.held[state.held_count] = Some((lock, began));
        state.held_count += 1;
    }

    /// Executes labels of the running level until one asks for something that must wait, or the
    /// CPU has run ahead far enough that others may be due.
    fn step_frame(&mut self, id: CpuId) {
        let shared = self.sibling_runs(id);
        let limit = (self.now + RUN_AHEAD).0 * 1000;
        let cpu = &mut self.cpus[usize::from(id.0)];
        let level = cpu.level() as usize;
        let mode = cpu.kernel_mode();
        cpu.env.owner = u32::from(id.0) * 4 + level as u32;
        cpu.env.need_resched = !cpu.runqueue.is_empty() && cpu.at() >= cpu.slice_end;
        loop {
            self.steps += 1;
            let cpu = &mut self.cpus[usize::from(id.0)];
            cpu.env.now = cpu.at();
            cpu.env.begin_label();
            let Some(frame) = cpu.levels[level].stack.top() else {
                return;
            };
            let (label, queue) = (frame.label(), frame.queue());
            let next = frame.step(&self.mq, &mut cpu.env);
            let mut pool = self.mq.queue(queue).pool.held(id);
            let price = self.costs.label(label, id, &mut cpu.env.meter, &mut pool);
            drop(pool);
            cpu.spend(
                if shared {
                    self.costs.shared(price)
                } else {
                    price
                },
                mode,
            );
            let (at, releases) = (cpu.at_ps, cpu.levels[level].held_count > 0);
            let (traced, acts) = (!cpu.env.trace.is_empty(), !cpu.env.outbox.is_empty());
            if releases {
                self.note_releases(id, level);
            }
            if traced {
                self.note_trace(id);
            }
            if acts {
                self.drain_outbox(id);
            }
            let stack = &mut self.cpus[usize::from(id.0)].levels[level].stack;
            match next {
                Next::Step => {}
                Next::Done => stack.pop(),
                Next::Call(call) => stack.push(call.into()),
                next => {
                    self.follow(id, queue, next);
                    return;
                }
            }
            if at >= limit {
                return;
            }
        }
    }

    /// Locks that the label released are free as of the CPU's time.
    fn note_releases(&mut self, id: CpuId, level: usize) {
        let cpu = &mut self.cpus[usize::from(id.0)];
        let at = cpu.at();
        let mut kept = 0;
        for index in 0..cpu.levels[level].held_count {
            let (lock, since) = cpu.levels[level].held[index].take().expect("counted");
            if !self.mq.is_free(lock) {
                cpu.levels[level].held[kept] = Some((lock, since));
                kept += 1;
                continue;
            }
            if lock.kind.irq_class().masks_irq() {
                cpu.irq_off -= 1;
            }
            let slot = self.mq.lock_slot(lock);
            if self.arbiter.release(slot, at, at.since(since)) {
                let due = at.max(self.now);
                self.events
                    .push(due, class::GRANT, Event::Grant(slot as u32));
            }
        }
        cpu.levels[level].held_count = kept;
    }

    /// Does what the path asks for.
    fn follow(&mut self, id: CpuId, queue: u8, next: Next) {
        match next {
            Next::Step | Next::Done | Next::Call(_) => unreachable!("done where it is stepped"),
            Next::Lock(lock) => self.cpu_mut(id).level_state().wait = Wait::Ask(lock),
            Next::Submit { rq, last } => self.submit(id, queue, rq, last),
            Next::Budget => {
                let mut token = None;
                self.with_device(Some(id), |device, now, out| {
                    token = device.get_budget(now, out);
                });
                let answer = token.map_or(Answer::NoBudget, Answer::Budget);
                self.cpu_mut(id).env.answer = answer;
            }
            Next::PutBudget(token) => {
                self.with_device(Some(id), |device, _, _| device.put_budget(token));
            }
            Next::Commit(hctx) => {
                let price = self.costs.ps(self.costs.cycles.nvme_doorbell);
                self.spend(id, price);
                self.with_device(Some(id), |device, now, out| {
                    device.commit_rqs(hctx, now, out);
                });
            }
            Next::Park => self.sleep_current(id),
        }
    }

    /// Spends kernel time in the mode of the running level.
    pub(super) fn spend(&mut self, id: CpuId, ps: u64) {
        let mode = self.cpu(id).kernel_mode();
        self.spend_as(id, ps, mode);
    }

    /// Spends time, longer while the sibling runs too.
    pub(super) fn spend_as(&mut self, id: CpuId, ps: u64, mode: Mode) {
        let ps = if self.sibling_runs(id) {
            self.costs.shared(ps)
        } else {
            ps
        };
        self.cpu_mut(id).spend(ps, mode);
    }

    /// The other thread of the core does real work: it neither idles nor spins.
    fn sibling_runs(&self, id: CpuId) -> bool {
        let Some(sibling) = self.siblings[usize::from(id.0)] else {
            return false;
        };
        let other = &self.cpus[usize::from(sibling.0)];
        !other.is_idle() && !matches!(other.levels[other.level() as usize].wait, Wait::Spin(..))
    }

    /// The machine's time for a CPU: its own, which is never behind.
    pub(super) fn at(&self, id: CpuId) -> SimTime {
        self.cpu(id).at().max(self.now)
    }
}

/// Locks that everybody wants: asked for in exact order of time. The others are held for so short
/// that a CPU may take them while it runs ahead, if they are free.
fn is_exact(lock: LockId) -> bool {
    matches!(lock.kind, LockKind::Elevator | LockKind::Dispatch)
}
