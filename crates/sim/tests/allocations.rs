//! Devices and streams allocate when they are made, and nothing per command after that.

extern crate blksim_sim as sim;

use blkmq::request::{CpuId, HctxId, Op, OpFlags, RequestId, Sector, Sectors};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};
use core::cmp::Reverse;
use sim::device::{Action, Actions, Command, Device, DeviceSetup, Verdict, make};
use sim::plan::{
    DeviceId, DeviceKind, DevicePlan, FaultPlan, FcPlan, IrqMode, Jitter, NullBlkPlan, NvmePlan,
    OpLatency, Ratio, ScsiDebugPlan,
};
use std::collections::BinaryHeap;

const DEPTH: u32 = 32;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Timer(u64),
    Interrupt(u32),
}

/// Keeps `DEPTH` reads in a device, one hctx, no scheduler.
struct Loop {
    device: Box<dyn Device>,
    budgeted: bool,
    polled: bool,
    now: SimTime,
    out: Actions,
    events: BinaryHeap<Reverse<(SimTime, u64, Event)>>,
    order: u64,
    free: Vec<u32>,
    completed: u64,
}

impl Loop {
    fn new(plan: &DevicePlan) -> Loop {
        let hctxs = plan.default_queues + plan.poll_queues;
        let vector_cpus = vec![CpuId(0); usize::from(hctxs)];
        Loop {
            device: make(&DeviceSetup {
                plan,
                rules: &Rules::v6_12(),
                io_timeout: Duration::from_micros(500),
                seed: 1,
                device: DeviceId(0),
                vector_cpus: &vector_cpus,
                requests: DEPTH,
                units: 1,
            }),
            budgeted: plan.budget > 0,
            polled: plan.poll_queues > 0,
            now: SimTime::ZERO,
            out: Actions::with_capacity(256),
            events: BinaryHeap::with_capacity(1024),
            order: 0,
            free: (0..DEPTH).collect(),
            completed: 0,
        }
    }

    fn hctx(&self) -> HctxId {
        HctxId(u16::from(self.polled))
    }

    fn run(&mut self, commands: u64) {
        let end = self.completed + commands;
        while self.completed < end {
            self.issue();
            if self.polled {
                self.poll();
            }
            if let Some(Reverse((at, _, event))) = self.events.pop() {
                self.now = self.now.max(at);
                match event {
                    Event::Timer(mark) => self.device.timer(mark, self.now, &mut self.out),
                    Event::Interrupt(vector) => self.handle(vector),
                }
                self.act();
            } else {
                self.now = self.now + Duration(1000);
            }
        }
    }

    fn issue(&mut self) {
        for _ in 0..self.free.len() {
            let mut budget = None;
            if self.budgeted {
                budget = self.device.get_budget(0, self.now, &mut self.out);
                if budget.is_none() {
                    break;
                }
            }
            let slot = self.free.pop().expect("counted");
            let command = Command {
                unit: 0,
                rq: RequestId(slot),
                hctx: self.hctx(),
                cpu: CpuId(0),
                op: Op::Read,
                flags: OpFlags::default(),
                sector: Sector(0),
                sectors: Sectors(8),
                polled: self.polled,
                last: self.free.is_empty(),
                of_plug: false,
                budget,
                since_start: Duration::ZERO,
            };
            let reply = self.device.queue_rq(&command, self.now, &mut self.out);
            if reply.verdict != Verdict::Accepted {
                self.free.push(slot);
                break;
            }
        }
        let hctx = self.hctx();
        self.device
            .commit_rqs(hctx, CpuId(0), self.now, &mut self.out);
        self.act();
    }

    fn handle(&mut self, vector: u32) {
        while let Some(found) = self.device.interrupt(vector, self.now, &mut self.out) {
            self.end(found.rq);
        }
    }

    fn poll(&mut self) {
        let hctx = self.hctx();
        while let Some(found) = self.device.poll(hctx, self.now, &mut self.out) {
            self.end(found.rq);
        }
        self.act();
    }

    fn end(&mut self, rq: RequestId) {
        self.completed += 1;
        self.free.push(rq.0);
        self.device.ended(rq, self.now, &mut self.out);
    }

    fn act(&mut self) {
        let mut index = 0;
        while index < self.out.len() {
            match self.out[index] {
                Action::End { rq, .. } | Action::Complete { rq, .. } => self.end(rq),
                Action::Timer { after, mark } => self.push(after, Event::Timer(mark)),
                Action::Interrupt { after, vector, .. } => {
                    self.push(after, Event::Interrupt(vector));
                }
                Action::StopQueues | Action::StartQueues | Action::RunQueues { .. } => {}
            }
            index += 1;
        }
        self.out.clear();
    }

    fn push(&mut self, after: Duration, event: Event) {
        self.order += 1;
        self.events
            .push(Reverse((self.now + after, self.order, event)));
    }
}

fn plan(kind: DeviceKind) -> DevicePlan {
    DevicePlan {
        kind,
        name: String::from("dev"),
        sectors: 1 << 21,
        block_sectors: 1,
        default_queues: 1,
        read_queues: 0,
        poll_queues: 0,
        queue_depth: DEPTH,
        hctx_shared: false,
        budget: 0,
        rotational: false,
        rotational_when_chosen: false,
        access_ranges: Vec::new(),
        fault: FaultPlan::NONE,
        service_times: Vec::new(),
    }
}

fn kinds() -> Vec<DeviceKind> {
    let ten_us = Duration::from_micros(10);
    let null_blk = |irqmode| {
        DeviceKind::NullBlk(NullBlkPlan {
            irqmode,
            completion: ten_us,
            jitter_percent: 50,
            blocking: false,
            memory_backed: false,
            mbps: 0,
        })
    };
    let nvme = NvmePlan {
        latency: OpLatency {
            read: ten_us,
            write: ten_us,
            trim: ten_us,
            flush: ten_us,
        },
        jitter: Jitter::Percent(50),
        channels: 8,
        dies: 4,
        die_time: Duration::from_micros(5),
        iops_max: 700_000,
        mbps: 3_000,
        read_mbps: 2_000,
        write_mbps: 2_000,
        coalesce_count: 4,
        coalesce_time: Duration::from_micros(20),
        irq_delay: Duration(500),
        volatile_cache: false,
    };
    let scsi_debug = ScsiDebugPlan {
        delay: ten_us,
        sync_delay: ten_us,
        random: true,
        host_max_queue: 0,
        lun_depth: 20,
        max_queue: 20,
    };
    vec![
        null_blk(IrqMode::None),
        null_blk(IrqMode::Softirq),
        null_blk(IrqMode::Timer),
        DeviceKind::Nvme(nvme),
        DeviceKind::Nvme(NvmePlan {
            jitter: Jitter::Flash,
            ..nvme
        }),
        DeviceKind::ScsiDebug(scsi_debug),
        DeviceKind::Fc(FcPlan {
            can_queue: 20,
            lun_depth: 20,
            latency: nvme.latency,
            jitter_percent: 30,
            read_mbps: 2_000,
            write_mbps: 2_000,
        }),
    ]
}

#[test]
fn a_command_allocates_nothing() {
    let often = Ratio {
        numerator: 1,
        denominator: 20,
    };
    for kind in kinds() {
        for polled in [false, true] {
            for faulty in [false, true] {
                let mut plan = plan(kind.clone());
                plan.poll_queues = u16::from(polled);
                if matches!(kind, DeviceKind::ScsiDebug(_) | DeviceKind::Fc(_)) {
                    plan.budget = 20;
                }
                if polled && matches!(kind, DeviceKind::Fc(_)) {
                    continue;
                }
                if faulty {
                    plan.fault.busy = often;
                    plan.fault.error = often;
                    plan.fault.timeout = often;
                }
                let mut device = Loop::new(&plan);
                device.run(2_000);
                let info = allocation_counter::measure(|| device.run(20_000));
                assert_eq!(info.count_total, 0, "{plan:?}");
                assert!(device.completed >= 22_000);
            }
        }
    }
}
