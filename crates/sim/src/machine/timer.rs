//! Timers of schedulers: armed and cancelled by what their labels leave, expired by the clock.
//!
//! A timer belongs to the CPU that armed it last, and interrupts it. Not here: what it does
//! (`elevator/hook.rs` of blkmq); delays of work items (`work.rs`). Kernel: kernel/time/timer.c,
//! hrtimer.c.

use blkmq::elevator::{Hook, SchedulerKind, SchedulerSettings, TimerContext};
use blkmq::path::{Frame, HookFrame};
use blkmq::queue::BlkMq;
use blkmq::request::{CpuId, QueueId};
use blkmq::time::Duration;

use super::cpu::{CpuState, Irq, IrqStage};
use super::{Event, Of, Simulator, class};

/// A timer.
#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    /// Moves when it is armed or cancelled: older events are void.
    generation: u32,
    armed: bool,
    cpu: CpuId,
}

/// Timers of all queues.
#[derive(Clone, Debug)]
pub(super) struct Timers(Vec<Vec<Timer>>);

impl Timers {
    /// None armed.
    pub(super) fn new<E: blkmq::env::Env>(mq: &BlkMq<E>) -> Timers {
        let of = |queue: &blkmq::queue::RequestQueue<E>| {
            let further = queue.further.iter().map(SchedulerSettings::kind);
            let kinds = core::iter::once(queue.settings.scheduler).chain(further);
            let facts = kinds.filter_map(SchedulerKind::facts);
            vec![Timer::default(); facts.map(|facts| facts.timers.len()).max().unwrap_or(0)]
        };
        Timers(mq.queues.iter().map(of).collect())
    }

    /// No timer of this queue's scheduler expires any more.
    pub(super) fn shut_down(&mut self, queue: QueueId) {
        for timer in &mut self.0[queue.index()] {
            timer.armed = false;
        }
    }

    fn of(&mut self, queue: QueueId, timer: u8) -> &mut Timer {
        &mut self.0[queue.index()][usize::from(timer)]
    }
}

impl Simulator {
    /// A label on this CPU has armed a timer.
    pub(super) fn arm(&mut self, id: CpuId, queue: QueueId, timer: u8, after: Duration) {
        let at = self.at(id);
        let due = match self.timer_context(queue, timer) {
            TimerContext::Softirq => self.tick_after(at, after),
            TimerContext::Hardirq => at + after,
        };
        let of = self.timers.of(queue, timer);
        of.generation = of.generation.wrapping_add(1);
        of.armed = true;
        of.cpu = id;
        let whom = Of::part(queue.0, u16::from(timer), of.generation);
        self.core
            .events
            .push(due, class::TIMER, Event::Elevator(whom));
    }

    /// A label has cancelled it.
    pub(super) fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.timers.of(queue, timer).armed = false;
    }

    fn timer_context(&self, queue: QueueId, timer: u8) -> TimerContext {
        let facts = self.mq.queue(queue).settings.scheduler.facts();
        let facts = facts.expect("a scheduler has armed it");
        facts.timers[usize::from(timer)].context
    }

    /// Its time has come: unless it was armed anew or cancelled, it interrupts its CPU.
    pub(super) fn timer_due(&mut self, queue: QueueId, timer: u8, generation: u32) {
        let of = self.timers.of(queue, timer);
        if !of.armed || of.generation != generation {
            return;
        }
        of.armed = false;
        let id = of.cpu;
        let cpu = self.cpu_mut(id);
        cpu.irqs.push_back(Irq::Timer(queue, timer));
        cpu.interrupted = true;
        self.notice(id);
    }

    /// An interrupt of a timer of this queue's scheduler is on its way.
    pub(super) fn timer_interrupts(&self, queue: QueueId) -> bool {
        let of_queue = |irq: &Irq| matches!(irq, Irq::Timer(of, _) if *of == queue);
        let comes = |cpu: &CpuState| {
            let taken = matches!(cpu.irq(), IrqStage::Timer(of, _) if of == queue);
            taken || cpu.irqs.iter().any(of_queue)
        };
        self.cpus.iter().any(comes)
    }

    /// In the hard interrupt: the timer's function, or the softirq that will call it.
    pub(super) fn timer_interrupt(&mut self, id: CpuId, queue: QueueId, timer: u8) {
        self.cpu_mut(id).set_irq(IrqStage::Leave);
        match self.timer_context(queue, timer) {
            TimerContext::Hardirq => self.timer_expires(id, queue, timer),
            TimerContext::Softirq => {
                let cpu = self.cpu_mut(id);
                cpu.softirq_timers.push_back((queue, timer));
            }
        }
    }

    /// The timer's function begins, at the level that runs.
    pub(super) fn timer_expires(&mut self, id: CpuId, queue: QueueId, timer: u8) {
        let path = HookFrame::new(queue, Hook::Timer(timer));
        let level = self.cpu_mut(id).level_state();
        level.stack.push(Frame::Hook(path));
    }
}
