//! All CPUs, and what they share: clock and events, locks, prices.
//!
//! Knows no task's program, no device and no queue: only CPUs and signals between CPUs. Observers:
//! `bound.rs`, `watch.rs`. Kernel: kernel/softirq.c, kernel/smp.c.

use core::ops::{Index, IndexMut};

use blkmq::drive::Follower;
use blkmq::path::Frame;
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use super::arbiter::{Arbiter, OWNERS};
use super::cpu::{CpuState, Ended, Irq, IrqStage, Level, Mode, Wait};
use super::event::{Event, Of, class};
use super::ksoftirqd::Ksoftirqd;
use super::qspinlock::Polling;
use crate::cost::{CostModel, Spent, Step};
use crate::event_queue::EventQueue;
use crate::plan::{DiskPlan, Plan};
use crate::profile::{MachineProfile, Steal};
use crate::recorder::{SpanKind, Usage};
use crate::rng::{Rng, Runs};

/// Parts that every burst of labels uses.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) now: SimTime,
    pub(super) events: EventQueue<Event>,
    pub(super) arbiter: Arbiter,
    pub(super) costs: CostModel,
    /// Prices of spinning for a lock.
    pub(super) polling: Polling,
    pub(super) spent: Spent,
    pub(super) follower: Option<Box<dyn Follower>>,
}

#[derive(Debug)]
pub(super) struct Cpus {
    pub(super) core: Core,
    states: Vec<CpuState>,
    /// CONFIG_HZ.
    hz: u32,
    /// Steal time after completions and after submissions.
    steal: [Bursts; 2],
}

/// Entries in lists of CPUs that have room at the beginning.
const ROOM: usize = 1 << 18;

/// Steal times that are drawn together.
const RUN: u32 = 16;

/// Times of a list, drawn in runs.
#[derive(Debug)]
struct Bursts {
    ns: Vec<u64>,
    place: u32,
    left: u32,
    runs: Runs,
}

impl Bursts {
    fn new(ns: &[u64], random: Rng) -> Bursts {
        Bursts {
            ns: ns.to_vec(),
            place: 0,
            left: 0,
            runs: Runs::new(ns.len() as u32, RUN, random),
        }
    }

    /// Zero of an empty list.
    fn draw(&mut self) -> u64 {
        if self.left == 0 {
            let Some(run) = self.runs.draw() else {
                return 0;
            };
            (self.place, self.left) = run;
        }
        let ns = self.ns[self.place as usize];
        (self.place, self.left) = (self.place + 1, self.left - 1);
        ns
    }
}

impl Index<CpuId> for Cpus {
    type Output = CpuState;

    #[inline]
    fn index(&self, id: CpuId) -> &CpuState {
        &self.states[usize::from(id.0)]
    }
}

impl IndexMut<CpuId> for Cpus {
    #[inline]
    fn index_mut(&mut self, id: CpuId) -> &mut CpuState {
        &mut self.states[usize::from(id.0)]
    }
}

impl Cpus {
    /// All idle at time zero, with `locks` locks and room for so many requests in flight.
    pub(super) fn new(plan: &Plan, profile: &MachineProfile, locks: usize) -> Result<Cpus, String> {
        let cpus = plan.machine.cpus;
        let costs = CostModel::new(profile, cpus)?;
        // A request in flight has a bio, or is the flush request of its hctx.
        let of_queue = |disk: &DiskPlan| {
            let room = disk.capacity;
            room.requests
                .min(room.bios.saturating_add(room.hctxs.into()))
        };
        let room = plan.queues().map(of_queue).sum::<u32>() as usize + 16;
        // Lists grow where that is not enough. On small machines it is.
        let room_a_cpu = (ROOM / usize::from(cpus)).min(4096);
        let mut states: Vec<CpuState> = (0..cpus)
            .map(CpuId)
            .map(|cpu| {
                CpuState::new(
                    cpu,
                    profile.topology.sibling(cpu, cpus),
                    room.min(room_a_cpu),
                )
            })
            .collect();
        for (cpu, state) in states.iter_mut().enumerate() {
            state.env.random = Rng::stream(plan.seed, &format!("cpu{cpu}")).next_u64() | 1;
            state.env.meter.tariff = costs.tariff(CpuId(cpu as u16));
        }
        let none = Steal::default();
        let steal = profile.steal.as_ref().unwrap_or(&none);
        let random = |of: &str| Rng::stream(plan.seed, &format!("steal/{of}"));
        let steal = [
            Bursts::new(&steal.completion_ns, random("completion")),
            Bursts::new(&steal.submission_ns, random("submission")),
        ];
        Ok(Cpus {
            core: Core {
                now: SimTime::ZERO,
                events: EventQueue::with_capacity(room + 4 * usize::from(cpus) + 64),
                arbiter: Arbiter::new(locks, usize::from(cpus) * OWNERS as usize),
                polling: Polling::new(&costs),
                costs,
                spent: Spent::default(),
                follower: None,
            },
            states,
            hz: plan.machine.hz,
            steal,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, CpuState> {
        self.states.iter()
    }

    pub(super) fn iter_mut(&mut self) -> core::slice::IterMut<'_, CpuState> {
        self.states.iter_mut()
    }

    #[inline]
    pub(super) fn split(&mut self, id: CpuId) -> (&mut CpuState, &mut Core) {
        (&mut self.states[usize::from(id.0)], &mut self.core)
    }

    /// A CPU's time: the machine's, or later.
    #[inline]
    pub(super) fn at(&self, id: CpuId) -> SimTime {
        self[id].at().max(self.core.now)
    }

    /// A CPU runs now: it has spun or idled until the present.
    #[inline]
    pub(super) fn catch_up(&mut self, id: CpuId) {
        let (cpu, core) = self.split(id);
        cpu.count_spin(core.now.0 * 1000);
        cpu.catch_up(core.now);
    }

    /// Timers end on a tick: the first one at least `delay` in ticks from the current one.
    pub(super) fn tick_after(&self, at: SimTime, delay: Duration) -> SimTime {
        at.tick_after(delay, self.hz)
    }

    /// The same before v4.8: at the tick that makes jiffies reach the time, which is up to a tick
    /// early.
    pub(super) fn tick_of(&self, at: SimTime, delay: Duration) -> SimTime {
        let length = 1_000_000_000 / u64::from(self.hz);
        SimTime((at.0 / length + delay.0.div_ceil(length)) * length)
    }

    /// When the function of a timer of the timer wheel runs.
    pub(super) fn wheel_after(&self, at: SimTime, delay: Duration) -> SimTime {
        at.wheel_after(delay, self.hz)
    }

    /// Charges a step of the kernel, in the mode of the running level.
    pub(super) fn charge(&mut self, id: CpuId, step: Step) {
        let mode = self[id].kernel_mode();
        self.charge_as(id, step, mode);
    }

    /// Charges a step, longer while the sibling runs too.
    pub(super) fn charge_as(&mut self, id: CpuId, step: Step, mode: Mode) {
        self.charge_all(id, &[step], mode);
    }

    /// Charges several steps, one after the other.
    #[inline]
    pub(super) fn charge_all(&mut self, id: CpuId, steps: &[Step], mode: Mode) {
        let (cpu, core) = self.split(id);
        let mut all = 0;
        for &step in steps {
            let ps = core.costs.step_beside(step, cpu.shared);
            core.spent.step(step, ps);
            all += ps;
        }
        cpu.spend(all, mode);
    }

    /// Charges a step that waits for cache lines: as long beside a busy sibling as without.
    pub(super) fn wait_for_lines(&mut self, id: CpuId, step: Step, ps: u64) {
        if ps > 0 {
            let cpu = &mut self[id];
            let mode = cpu.kernel_mode();
            cpu.spend(ps, mode);
            self.core.spent.waited(step, ps);
        }
    }

    /// A path begins, at the level that runs.
    pub(super) fn push(&mut self, id: CpuId, frame: Frame) {
        self[id].level_state().stack.push(frame);
    }

    /// A bio is submitted; the CPU may lose time to its hypervisor before that goes on.
    pub(super) fn submit(&mut self, id: CpuId, frame: Frame) {
        let ns = self.steal[1].draw();
        self[id].spend(ns * 1000, Mode::System);
        self.push(id, frame);
    }

    /// A request has ended; the CPU may lose time to its hypervisor.
    pub(super) fn steal_after_completion(&mut self, id: CpuId) {
        let ns = self.steal[0].draw();
        self[id].spend(ns * 1000, Mode::Irq);
    }

    /// The queue of the path that makes a request. A path works on one queue.
    pub(super) fn asking(&mut self, id: CpuId) -> QueueId {
        self[id].level_state().stack.asking()
    }

    /// Goes on when its time comes.
    #[inline(never)]
    pub(super) fn schedule(&mut self, id: CpuId) {
        let at = self.at(id);
        let cpu = &mut self[id];
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

    /// The other thread of the core does real work: it neither idles nor spins.
    pub(super) fn sibling_runs(&self, id: CpuId) -> bool {
        let Some(sibling) = self[id].sibling else {
            return false;
        };
        let other = &self[sibling];
        let spins = matches!(other.levels[other.level as usize].wait, Wait::Spin(..));
        !(other.is_idle() || spins)
    }

    /// An interrupt from another CPU reaches `to`, the latency after `at`.
    pub(super) fn send_ipi(&mut self, to: CpuId, at: SimTime, class: u8) {
        let at = at + self.core.costs.delay(Step::IpiLatency);
        self.core.events.push(at, class, Event::Ipi(Of::cpu(to, 0)));
    }

    /// Between labels: enters a pending interrupt or, if there is none, the softirq.
    #[inline(never)]
    pub(super) fn take_interrupt(&mut self, id: CpuId) {
        let now = self.core.now;
        let cpu = &mut self[id];
        let ipi = core::mem::take(&mut cpu.ipi);
        let vector = if ipi { None } else { cpu.irqs.pop_front() };
        cpu.interrupted = !cpu.irqs.is_empty();
        if !ipi && vector.is_none() {
            return;
        }
        cpu.count_spin(now.0 * 1000);
        cpu.set_irq(match vector {
            Some(Irq::Device(device, vector)) => IrqStage::Look(device, vector),
            Some(Irq::Timer(queue, timer)) => IrqStage::Timer(queue, timer),
            Some(Irq::Runs(path)) => IrqStage::Runs(path),
            None => IrqStage::Leave,
        });
        self.span_begins(id, SpanKind::Irq);
        self.charge_as(id, Step::Irq, Mode::Irq);
    }

    pub(super) fn enter_softirq(&mut self, id: CpuId) {
        self[id].set_softirq(true);
        self[id].softirq_tick = SimTime::NEVER;
        self.span_begins(id, SpanKind::Softirq);
        self.charge_as(id, Step::Softirq, Mode::Softirq);
    }

    /// The handler of a hard interrupt returns; the softirq follows, if it is raised.
    pub(super) fn leave_irq(&mut self, id: CpuId) {
        self[id].set_irq(IrqStage::None);
        self.span_ends(id, SpanKind::Irq);
        if self[id].softirq_raised() && !self[id].in_softirq() {
            self.enter_softirq(id);
        }
    }

    /// The softirq has nothing left that it may take by now.
    ///
    /// Later entries of its list were put there by CPUs that are ahead: they found the list empty,
    /// so the first of them has sent an interrupt.
    pub(super) fn leave_softirq(&mut self, id: CpuId) {
        self[id].set_softirq(false);
        self.span_ends(id, SpanKind::Softirq);
        let list = &mut self[id].softirq_list;
        let Some(given) = list.next_time() else {
            return;
        };
        let first = list.first_mut().expect("it was given at some time");
        if !core::mem::replace(&mut first.announced, true) {
            self.send_ipi(id, given, class::INTERRUPT);
        }
    }

    /// Puts a completion on a CPU's softirq list.
    pub(super) fn raise_softirq(&mut self, from: CpuId, to: CpuId, ended: Ended) {
        let at = self.at(from);
        let target = &mut self[to];
        let first = target.softirq_list.give(at, ended);
        if !first {
            return;
        }
        if from == to && !target.is_idle() {
            if target.level == Level::Task && target.ksoftirqd == Ksoftirqd::Sleeps {
                target.ksoftirqd = Ksoftirqd::Woken;
            }
            return;
        }
        if let Some(ended) = target.softirq_list.first_mut() {
            ended.announced = true;
        }
        if from != to {
            self.charge(from, Step::IpiSend);
        }
        let at = self.at(from);
        self.send_ipi(to, at, class::INTERRUPT);
    }

    /// Before a CPU goes idle: tasks of its run queue were woken by CPUs that are ahead, and an
    /// interrupt will come for the first of them.
    pub(super) fn await_ready(&mut self, id: CpuId) {
        let woken = self[id].runqueue.iter().map(|ready| ready.at).min();
        if let Some(woken) = woken {
            self.send_ipi(id, woken, class::CPU);
        }
    }

    /// The ramp is over: earlier statistics are dropped.
    pub(super) fn begin_measuring(&mut self) {
        let now = self.core.now;
        for cpu in &mut self.states {
            cpu.account_idle(now);
            cpu.reset_usage();
        }
        self.core.arbiter.reset_stats();
        self.core.spent.clear();
        self.window_opens();
    }

    /// Time by mode of each CPU since measuring began, up to the present.
    pub(super) fn usage(&mut self) -> Vec<Usage> {
        let now = self.core.now;
        for cpu in &mut self.states {
            cpu.account_idle(now);
        }
        self.states.iter().map(CpuState::usage).collect()
    }
}
