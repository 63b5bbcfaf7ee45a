//! Timers of schedulers: set and cancelled by effects of labels, expired by the clock.
//!
//! A timer belongs to the CPU that set it last, and interrupts it. Not here: its function
//! (`elevator/hook.rs` of blkmq); delays of work items (`work.rs`). Kernel: kernel/time/timer.c,
//! hrtimer.c.

use blkmq::elevator::{SchedulerKind, SchedulerSettings, TimerContext};
use blkmq::queue::{BlkMq, UNPLUG_TIMER};
use blkmq::request::{CpuId, QueueId};
use blkmq::time::Duration;

use super::cpu::{CpuState, Irq, IrqStage};
use super::cpus::Cpus;
use super::event::{Event, Of, class};

#[derive(Clone, Copy, Debug, Default)]
struct Timer {
    /// Moves when it is set or cancelled: older events are void.
    generation: u32,
    armed: bool,
    cpu: CpuId,
}

#[derive(Clone, Debug)]
pub(super) struct Timers(Vec<Vec<Timer>>);

impl Timers {
    pub(super) fn new(mq: &BlkMq) -> Timers {
        let of = |queue: &blkmq::queue::RequestQueue| {
            let further = queue.further.iter().map(SchedulerSettings::kind);
            let kinds = core::iter::once(queue.settings.scheduler).chain(further);
            let info = kinds.filter_map(SchedulerKind::info);
            let most = info.map(|info| info.timers.len()).max().unwrap_or(0);
            // The last one is the unplug timer.
            vec![Timer::default(); most + usize::from(queue.single.is_some())]
        };
        Timers(mq.queues.iter().map(of).collect())
    }

    /// No timer of this queue's scheduler expires any more.
    pub(super) fn shut_down(&mut self, queue: QueueId) {
        for timer in &mut self.0[queue.index()] {
            timer.armed = false;
        }
    }

    /// A label on this CPU has set a timer.
    pub(super) fn arm(
        &mut self,
        cpus: &mut Cpus,
        mq: &BlkMq,
        id: CpuId,
        queue: QueueId,
        timer: u8,
        after: Duration,
    ) {
        let at = cpus.at(id);
        let due = match context(mq, queue, timer) {
            TimerContext::Softirq if mq.queue(queue).single.is_some() => cpus.tick_of(at, after),
            TimerContext::Softirq => cpus.wheel_after(at, after),
            TimerContext::Hardirq => at + after,
        };
        let of = self.of(queue, timer);
        of.generation = of.generation.wrapping_add(1);
        of.armed = true;
        of.cpu = id;
        let whom = Of::part(queue.0, u16::from(timer), of.generation);
        cpus.core
            .events
            .push(due, class::TIMER, Event::Elevator(whom));
    }

    /// A label has cancelled it.
    pub(super) fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.of(queue, timer).armed = false;
    }

    /// It expires: the CPU that it interrupts, unless it was set again or cancelled.
    pub(super) fn due(&mut self, cpus: &mut Cpus, whom: Of) -> Option<CpuId> {
        let (queue, timer) = (QueueId(whom.part_of()), whom.whom() as u8);
        let of = self.of(queue, timer);
        if !of.armed || of.generation != whom.detail() {
            return None;
        }
        of.armed = false;
        let cpu = &mut cpus[of.cpu];
        cpu.irqs.push_back(Irq::Timer(queue, timer));
        cpu.interrupted = true;
        Some(of.cpu)
    }

    fn of(&mut self, queue: QueueId, timer: u8) -> &mut Timer {
        let timers = &mut self.0[queue.index()];
        match timer {
            UNPLUG_TIMER => timers.last_mut().expect("a queue that is plugged has one"),
            timer => &mut timers[usize::from(timer)],
        }
    }
}

fn context(mq: &BlkMq, queue: QueueId, timer: u8) -> TimerContext {
    if timer == UNPLUG_TIMER {
        return TimerContext::Softirq;
    }
    let info = mq.queue(queue).settings.scheduler.info();
    let info = info.expect("a scheduler has armed it");
    info.timers[usize::from(timer)].context
}

/// An interrupt of a timer of this queue's scheduler is pending, or the softirq's call.
pub(super) fn comes(cpus: &Cpus, queue: QueueId) -> bool {
    let of_queue = |irq: &Irq| matches!(irq, Irq::Timer(of, _) if *of == queue);
    let comes = |cpu: &CpuState| {
        let taken = matches!(cpu.irq(), IrqStage::Timer(of, _) if of == queue);
        let waits = cpu.softirq_timers.iter().any(|&(of, _)| of == queue);
        taken || waits || cpu.irqs.iter().any(of_queue)
    };
    cpus.iter().any(comes)
}

/// In the hard interrupt: the timer's function, or the softirq that will call it.
pub(super) fn interrupt(cpus: &mut Cpus, mq: &BlkMq, id: CpuId, queue: QueueId, timer: u8) {
    cpus[id].set_irq(IrqStage::Leave);
    match context(mq, queue, timer) {
        TimerContext::Hardirq => expire(cpus, mq, id, queue, timer),
        TimerContext::Softirq => cpus[id].softirq_timers.push_back((queue, timer)),
    }
}

/// The timer's function begins, at the level that runs.
pub(super) fn expire(cpus: &mut Cpus, mq: &BlkMq, id: CpuId, queue: QueueId, timer: u8) {
    cpus.push(id, mq.expires(queue, timer));
}
