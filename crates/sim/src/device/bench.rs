//! A test bench for devices: the least block layer that can drive a device, with checks.
//!
//! Strict where a block layer may be: a refused request is offered again only after a completion, a
//! restart or the 3 ms of RESOURCE, so that a forgotten restart is a stall. Handlers and pollers
//! look step by step, with other events in between.

use super::{Action, Actions, Command, Device, DeviceSetup, EndedBy, Found, Verdict, make};
use crate::plan::{
    BusyKind, DeviceId, DeviceKind, DevicePlan, FaultPlan, FcPlan, IrqMode, Jitter, NullBlkPlan,
    NvmePlan, OpLatency, Ratio, ScsiDebugPlan,
};
use crate::rng::Rng;
use blkmq::request::{CpuId, HctxId, Op, OpFlags, RequestId, Sector, Sectors, Status};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};
use std::collections::{BTreeMap, VecDeque};

/// Between two looks of a poller that finds completions.
const POLL_GAP_MIN: Duration = Duration(60);

/// A poller whose gap has grown to this gives up.
const POLL_GAP_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    pub(super) at: SimTime,
    pub(super) hctx: u16,
    pub(super) op: Op,
    pub(super) sectors: u32,
}

/// An I/O that has ended, by its index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    pub(super) io: usize,
    pub(super) issued: SimTime,
    pub(super) at: SimTime,
    pub(super) status: Status,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrival(usize),
    Timer(u64),
    Handler(u32),
    Poll(u16),
    Ended(u32),
    RunAll,
    Run(u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Slot {
    Free,
    InDevice(usize, SimTime),
    Reported(usize, SimTime),
}

/// The reason that a completion does not run an hctx.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    No,
    /// Refused: a completion on it (SCHED_RESTART) looks again.
    Restart,
    /// No budget: only the driver looks again.
    Budget,
}

pub(super) struct Bench {
    pub(super) device: Box<dyn Device>,
    pub(super) now: SimTime,
    /// Actions that the device requested, in order: (time, action).
    pub(super) actions: Vec<(SimTime, Action)>,
    pub(super) ended: Vec<Ended>,
    pub(super) refusals: u32,
    pub(super) interrupts: u32,
    pub(super) in_flight_max: u32,
    /// Mutants of the block layer, to show that a run notices them. This one never sets `last`.
    pub(super) mute: bool,
    pub(super) forgets: fn(&Action) -> bool,
    /// A handler takes one completion and leaves.
    pub(super) takes_one: bool,
    /// Has each interrupt's CPU serve it late, ns.
    pub(super) late_ns: u64,
    ios: Vec<Io>,
    out: Actions,
    events: BTreeMap<(SimTime, u64), Event>,
    sequence: u64,
    slots: Vec<Slot>,
    free: Vec<Vec<u32>>,
    backlog: Vec<VecDeque<usize>>,
    /// Slot of the oldest of each backlog, once it has been offered.
    offered: Vec<Option<u32>>,
    wait: Vec<Wait>,
    stopped: bool,
    /// Until the next look of each hctx's poller; 0: there is none.
    poll_gap: Vec<Duration>,
    budgeted: bool,
    polled_first: u16,
    in_device: u32,
    rng: Rng,
}

impl Bench {
    /// A bench for the device of this plan.
    pub(super) fn new(plan: &DevicePlan, rules: &Rules, seed: u64) -> Bench {
        let hctxs = plan.default_queues + plan.read_queues + plan.poll_queues;
        let requests = plan.queue_depth * u32::from(hctxs);
        let vector_cpus: Vec<CpuId> = (0..hctxs).map(CpuId).collect();
        let device = make(&DeviceSetup {
            plan,
            rules,
            io_timeout: Duration::from_secs(5),
            seed,
            device: DeviceId(0),
            vector_cpus: &vector_cpus,
            requests,
            units: 1,
        });
        let slots_of = |hctx: u16| {
            let first = u32::from(hctx) * plan.queue_depth;
            (first..first + plan.queue_depth).rev().collect()
        };
        Bench {
            device,
            now: SimTime::ZERO,
            actions: Vec::new(),
            ended: Vec::new(),
            refusals: 0,
            interrupts: 0,
            in_flight_max: 0,
            mute: false,
            forgets: |_| false,
            takes_one: false,
            late_ns: 0,
            ios: Vec::new(),
            out: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            slots: vec![Slot::Free; requests as usize],
            free: (0..hctxs).map(slots_of).collect(),
            backlog: vec![VecDeque::new(); usize::from(hctxs)],
            offered: vec![None; usize::from(hctxs)],
            wait: vec![Wait::No; usize::from(hctxs)],
            stopped: false,
            poll_gap: vec![Duration::ZERO; usize::from(hctxs)],
            budgeted: plan.budget > 0,
            polled_first: plan.default_queues + plan.read_queues,
            in_device: 0,
            rng: Rng::stream(seed, "bench"),
        }
    }

    /// Issues all I/Os and drains; the error lists the I/Os that did not end.
    pub(super) fn run(&mut self, ios: &[Io]) -> Result<(), String> {
        self.ios = ios.to_vec();
        for (index, io) in ios.iter().enumerate() {
            self.schedule(io.at, Event::Arrival(index));
        }
        while let Some(((at, _), event)) = self.events.pop_first() {
            assert!(at >= self.now, "time goes forward");
            self.now = at;
            self.handle(event);
        }
        let left = self.ios.len() - self.ended.len();
        if left > 0 {
            return Err(format!("{left} left; {}", self.device.describe()));
        }
        assert_eq!(self.device.in_flight(), 0, "{}", self.device.describe());
        Ok(())
    }

    fn schedule(&mut self, at: SimTime, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn after(&mut self, ns: u64, event: Event) {
        self.schedule(self.now + Duration(ns), event);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival(io) => {
                let hctx = self.ios[io].hctx;
                self.backlog[usize::from(hctx)].push_back(io);
                self.run_hctx(hctx);
            }
            Event::Timer(mark) => {
                self.device.timer(mark, self.now, &mut self.out);
                self.act();
            }
            Event::Handler(vector) => {
                let found = self.device.interrupt(vector, self.now, &mut self.out);
                if let Some(found) = found {
                    self.found(found);
                    if !self.takes_one {
                        self.after(70, Event::Handler(vector));
                    }
                }
                self.act();
            }
            Event::Poll(hctx) => self.poll(hctx),
            Event::Ended(slot) => self.finish(slot),
            Event::RunAll => self.run_all(),
            Event::Run(hctx) => self.run_hctx(hctx),
        }
        self.in_flight_max = self.in_flight_max.max(self.device.in_flight());
        assert_eq!(self.device.in_flight(), self.in_device, "in flight");
    }

    /// One look of the poller: again soon while it finds completions, else at growing gaps.
    fn poll(&mut self, hctx: u16) {
        let gap = &mut self.poll_gap[usize::from(hctx)];
        *gap = Duration(gap.0 * 2);
        if let Some(found) = self.device.poll(HctxId(hctx), self.now, &mut self.out) {
            *gap = POLL_GAP_MIN;
            self.found(found);
        }
        self.act();
        let gap = self.poll_gap[usize::from(hctx)];
        if gap < POLL_GAP_MAX {
            self.after(gap.0, Event::Poll(hctx));
        } else {
            self.poll_gap[usize::from(hctx)] = Duration::ZERO;
        }
    }

    fn start_polling(&mut self, hctx: u16) {
        let gap = &mut self.poll_gap[usize::from(hctx)];
        if core::mem::replace(gap, POLL_GAP_MIN) == Duration::ZERO {
            self.after(100, Event::Poll(hctx));
        }
    }

    fn run_all(&mut self) {
        for hctx in 0..self.free.len() {
            self.run_hctx(u16::try_from(hctx).expect("few hctxs"));
        }
    }

    /// A dispatch run: offers requests until one is refused.
    fn run_hctx(&mut self, hctx: u16) {
        let index = usize::from(hctx);
        let mut unannounced = false;
        while !self.stopped && self.can_offer(index) {
            let mut budget = None;
            if self.budgeted {
                budget = self.device.get_budget(0, self.now, &mut self.out);
                self.act();
                if budget.is_none() {
                    self.wait[index] = Wait::Budget;
                    break;
                }
            }
            let verdict = self.offer(hctx, budget);
            self.wait[index] = Wait::No;
            match verdict {
                (Verdict::Accepted | Verdict::Requeued { .. }, last) => unannounced = !last,
                (Verdict::DevResource, _) => {
                    self.wait[index] = Wait::Restart;
                    break;
                }
                (Verdict::Resource, _) => {
                    self.wait[index] = Wait::Restart;
                    self.after(3_000_000, Event::Run(hctx));
                    break;
                }
                (Verdict::Error(status), _) => panic!("refused for good: {status:?}"),
            }
        }
        if unannounced && !self.mute {
            self.device
                .commit_rqs(HctxId(hctx), CpuId(hctx), self.now, &mut self.out);
            self.act();
        }
    }

    fn can_offer(&self, hctx: usize) -> bool {
        let slot = self.offered[hctx].is_some() || !self.free[hctx].is_empty();
        slot && !self.backlog[hctx].is_empty()
    }

    /// Offers the oldest of the backlog; the device's answer, and the `last` it was offered with.
    fn offer(&mut self, hctx: u16, budget: Option<u32>) -> (Verdict, bool) {
        let index = usize::from(hctx);
        let io = *self.backlog[index].front().expect("checked by the caller");
        // A refused request keeps its slot.
        let slot = match self.offered[index] {
            Some(slot) => slot,
            None => self.free[index].pop().expect("checked by the caller"),
        };
        self.offered[index] = Some(slot);
        let polled = hctx >= self.polled_first;
        // Now and then `last` is not set though no request follows: commit_rqs must do.
        let more = self.backlog[index].len() > 1 || self.rng.chance(1, 4);
        let command = Command {
            rq: RequestId(slot),
            unit: 0,
            hctx: HctxId(hctx),
            cpu: CpuId(hctx),
            op: self.ios[io].op,
            flags: OpFlags::default(),
            sector: Sector(0),
            sectors: Sectors(self.ios[io].sectors),
            polled,
            last: !more && !self.mute,
            of_plug: false,
            budget,
            since_start: Duration::ZERO,
        };
        let reply = self.device.queue_rq(&command, self.now, &mut self.out);
        if reply.verdict == Verdict::Accepted {
            assert!(reply.started, "an accepted request was started");
            assert_eq!(self.slots[slot as usize], Slot::Free, "slot {slot}");
            self.slots[slot as usize] = Slot::InDevice(io, self.now);
            self.in_device += 1;
            self.offered[index] = None;
            self.backlog[index].pop_front();
            if polled {
                self.start_polling(hctx);
            }
        } else {
            self.refusals += 1;
        }
        self.act();
        (reply.verdict, command.last)
    }

    fn found(&mut self, found: Found) {
        let delay = match found.by {
            EndedBy::End => 0,
            EndedBy::Complete | EndedBy::Batch => self.rng.below(3_000),
        };
        self.report(found.rq, found.status, delay);
    }

    fn report(&mut self, rq: RequestId, status: Status, delay_ns: u64) {
        let Slot::InDevice(io, issued) = self.slots[rq.0 as usize] else {
            panic!("{rq:?} was reported while {:?}", self.slots[rq.0 as usize]);
        };
        self.slots[rq.0 as usize] = Slot::Reported(io, issued);
        self.in_device -= 1;
        self.ended.push(Ended {
            io,
            issued,
            at: self.now,
            status,
        });
        self.after(delay_ns, Event::Ended(rq.0));
    }

    fn finish(&mut self, slot: u32) {
        let Slot::Reported(io, _) = self.slots[slot as usize] else {
            panic!("slot {slot} ended while {:?}", self.slots[slot as usize]);
        };
        self.slots[slot as usize] = Slot::Free;
        let hctx = self.ios[io].hctx;
        self.free[usize::from(hctx)].push(slot);
        self.device.ended(RequestId(slot), self.now, &mut self.out);
        self.act();
        if self.wait[usize::from(hctx)] != Wait::Budget {
            self.run_hctx(hctx);
        }
    }

    /// Performs the actions that the device requested in the last call.
    fn act(&mut self) {
        let mut out = core::mem::take(&mut self.out);
        for action in out.drain(..) {
            self.actions.push((self.now, action));
            if (self.forgets)(&action) {
                continue;
            }
            match action {
                Action::End { rq, status } => self.report(rq, status, 0),
                Action::Complete { rq, status } => {
                    let delay_ns = self.rng.below(3_000);
                    self.report(rq, status, delay_ns);
                }
                Action::Timer { after, mark } => self.after(after.0, Event::Timer(mark)),
                Action::Interrupt { after, vector, .. } => {
                    self.interrupts += 1;
                    self.after(after.0 + self.late_ns, Event::Handler(vector));
                }
                Action::StopQueues => self.stopped = true,
                Action::StartQueues => {
                    if core::mem::take(&mut self.stopped) {
                        self.after(0, Event::RunAll);
                    }
                }
                Action::RunQueues { delay, .. } => self.after(delay.0, Event::RunAll),
            }
        }
        self.out = out;
    }
}

/// `count` reads of 4 KiB on hctx 0 at time zero.
pub(super) fn reads(count: usize) -> Vec<Io> {
    let io = Io {
        at: SimTime::ZERO,
        hctx: 0,
        op: Op::Read,
        sectors: 8,
    };
    vec![io; count]
}

/// Random I/Os on `hctxs` queues, `gap_ns` apart on average.
pub(super) fn random_ios(seed: u64, count: usize, hctxs: u16, gap_ns: u64) -> Vec<Io> {
    let mut rng = Rng::stream(seed, "ios");
    let mut at = SimTime::ZERO;
    let ops = [Op::Read, Op::Write, Op::Discard, Op::Flush, Op::WriteZeroes];
    let draw = |_| {
        at = at + Duration(rng.exponential(gap_ns));
        let op = ops[rng.below(5) as usize];
        let sectors = if op == Op::Flush {
            0
        } else {
            1 + rng.below(64) as u32
        };
        Io {
            at,
            hctx: rng.below(u64::from(hctxs)) as u16,
            op,
            sectors,
        }
    };
    (0..count).map(draw).collect()
}

/// A plan with one DEFAULT queue of 64 tags.
pub(crate) fn plan(kind: DeviceKind) -> DevicePlan {
    DevicePlan {
        kind,
        name: String::from("dev"),
        sectors: 1 << 21,
        block_sectors: 1,
        default_queues: 1,
        read_queues: 0,
        poll_queues: 0,
        queue_depth: 64,
        hctx_shared: false,
        budget: 0,
        rotational: false,
        rotational_when_chosen: false,
        service_times: Vec::new(),
        access_ranges: Vec::new(),
        fault: FaultPlan {
            busy: Ratio::NEVER,
            busy_kind: BusyKind::Resource,
            error: Ratio::NEVER,
            timeout: Ratio::NEVER,
            requeue: Ratio::NEVER,
            lost_completion: Ratio::NEVER,
            after_commands: 0,
            outages: false,
        },
    }
}

/// null_blk of this irqmode, 10 us.
pub(crate) fn null_blk(irqmode: IrqMode) -> NullBlkPlan {
    NullBlkPlan {
        irqmode,
        completion: Duration::from_micros(10),
        jitter_percent: 0,
        blocking: false,
        memory_backed: false,
        mbps: 0,
    }
}

/// A drive of 10 us, without jitter and limits.
pub(crate) fn nvme(channels: u32) -> NvmePlan {
    let ten_us = Duration::from_micros(10);
    NvmePlan {
        latency: OpLatency {
            read: ten_us,
            write: ten_us,
            trim: ten_us,
            flush: ten_us,
        },
        jitter: Jitter::Percent(0),
        channels,
        dies: 0,
        die_time: Duration::ZERO,
        iops_max: 0,
        mbps: 0,
        read_mbps: 0,
        write_mbps: 0,
        coalesce_count: 1,
        coalesce_time: Duration::ZERO,
        irq_delay: Duration::ZERO,
        volatile_cache: false,
    }
}

/// scsi_debug of 10 us and this depth of the unit.
pub(super) fn scsi_debug(lun_depth: u32) -> DevicePlan {
    let mut plan = plan(DeviceKind::ScsiDebug(ScsiDebugPlan {
        delay: Duration::from_micros(10),
        sync_delay: Duration::from_micros(10),
        random: false,
        host_max_queue: 0,
        lun_depth,
        max_queue: lun_depth,
    }));
    plan.budget = lun_depth;
    plan
}

/// A Fibre Channel host of 10 us and this depth of the unit, with a link without limit.
pub(super) fn fc(lun_depth: u32) -> DevicePlan {
    let time = Duration::from_micros(10);
    let mut plan = plan(DeviceKind::Fc(FcPlan {
        can_queue: lun_depth,
        lun_depth,
        latency: OpLatency {
            read: time,
            write: time,
            trim: time,
            flush: time,
        },
        jitter_percent: 0,
        read_mbps: 0,
        write_mbps: 0,
    }));
    plan.budget = lun_depth;
    plan
}
