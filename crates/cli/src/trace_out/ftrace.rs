//! `ftrace.txt` of a simulated run: block events, and probes on the scheduler's functions.
//!
//! Maps trace points to events; `trace::ftrace` writes the text. One file for all disks of a run.
//! Kernel: include/trace/events/block.h (v6.12); probes as tools/lib.sh of the captures sets them.

use blkmq::elevator::{Probes, SchedulerKind, TokenEvents};
use blkmq::env::{Probe, TraceAction, TracePoint};
use blkmq::request::{IoClass, IoPrio, Op, RequestId};
use blkmq::time::Jiffies;
use sim::plan::Plan;
use trace::blktrace::Device;
use trace::ftrace::{
    self, BlockBio, BlockDone, BlockRequest, DeviceNumber, Event, IoPriority, KyberLatency,
    ProbedRequest, Record,
};

/// Where the requests of the first disk seem to lie, and how large they are.
const REQUESTS_AT: u64 = 0xffff_8880_0a00_0000;
const REQUEST_BYTES: u64 = 0x180;
/// Room for the requests of a disk.
const DISK_BYTES: u64 = 0x100_0000;

/// Probes of a scheduler that has any.
pub(super) fn probes_of(scheduler: SchedulerKind) -> Option<&'static Probes> {
    scheduler.info().map(|info| &info.probes)
}

/// Properties of a disk's events that the points do not have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) device: Device,
    pub(super) queue: u8,
    /// None: nothing is probed.
    pub(super) probes: Option<&'static Probes>,
    /// The kernel prints priorities of requests (6.12).
    pub(super) priorities: bool,
    pub(super) hz: u32,
}

/// For each queue, with the numbers of their devices.
pub(super) fn shown(plan: &Plan, devices: &[Device]) -> Vec<Shown> {
    let disks = (0..).zip(plan.queues().zip(devices));
    let shown = disks.map(|(queue, (disk, &device))| Shown {
        device,
        queue,
        probes: probes_of(disk.queue.scheduler.kind()),
        priorities: disk.queue.rules.traced_priorities,
        hz: plan.machine.hz,
    });
    shown.collect()
}

/// Name and payload of a point, run by a task of this name.
pub(super) fn event(
    shown: &Shown,
    point: &TracePoint,
    task: &str,
) -> Option<(&'static str, Event)> {
    let task = || task.to_owned();
    Some(match point.action {
        TraceAction::Queue => (
            "block_bio_queue",
            Event::BioQueue(bio(shown, point, task())),
        ),
        TraceAction::GetRq => ("block_getrq", Event::GetRequest(bio(shown, point, task()))),
        TraceAction::BackMerge if point.of_request => {
            let request = request(shown, point, task());
            ("block_rq_merge", Event::RequestMerge(request))
        }
        TraceAction::BackMerge => {
            let bio = bio(shown, point, task());
            ("block_bio_backmerge", Event::BioBackMerge(bio))
        }
        TraceAction::FrontMerge => {
            let bio = bio(shown, point, task());
            ("block_bio_frontmerge", Event::BioFrontMerge(bio))
        }
        TraceAction::Insert => {
            let request = request(shown, point, task());
            ("block_rq_insert", Event::RequestInsert(request))
        }
        TraceAction::Issue => {
            let request = request(shown, point, task());
            ("block_rq_issue", Event::RequestIssue(request))
        }
        TraceAction::Requeue => (
            "block_rq_requeue",
            Event::RequestRequeue(done(shown, point)),
        ),
        // A bio that ends without a request has an event of its own, which captures do not take.
        TraceAction::Complete if !point.of_request => return None,
        // Not a block event: only blktrace has it.
        TraceAction::Message(_) => return None,
        // There is one, which captures do not take.
        TraceAction::Remap => return None,
        TraceAction::Complete => (
            "block_rq_complete",
            Event::RequestComplete(done(shown, point)),
        ),
        TraceAction::Plug => ("block_plug", Event::Plug(task())),
        TraceAction::Unplug | TraceAction::UnplugTimer => {
            let (task, count) = (task(), point.payload as u32);
            ("block_unplug", Event::Unplug { task, count })
        }
        TraceAction::Split => {
            let split = Event::Split {
                device: number(shown.device),
                rwbs: rwbs(point),
                sector: point.sector.0,
                new_sector: point.payload,
                task: task(),
            };
            ("block_split", split)
        }
        TraceAction::Probe(probe) => return probed(shown, point, probe),
    })
}

fn probed(shown: &Shown, point: &TracePoint, probe: Probe) -> Option<(&'static str, Event)> {
    let names = shown.probes?;
    let (name, probe) = match probe {
        Probe::Throttled { .. } | Probe::Percentile(_) | Probe::Depth { .. } => {
            return token_event(shown, names.events.as_ref()?, probe);
        }
        // No kernel has this event.
        Probe::Reading(_) => return None,
        Probe::Arrive { rq, tag, tick } => {
            let request = ProbedRequest {
                jiffies: jiffies(shown, tick),
                ..probed_request(shown, point, rq, tag)
            };
            (names.insert, ftrace::Probe::Insert(request))
        }
        Probe::Ask { hctx, tick } => {
            let entry = ftrace::Probe::DispatchEntry {
                jiffies: jiffies(shown, tick),
                hctx: Some(hctx.0),
            };
            (names.dispatch_entry, entry)
        }
        Probe::Answer { rq, tag, tick, .. } if !names.deadlines => {
            let jiffies = jiffies(shown, tick);
            let request = rq.map(|rq| ProbedRequest {
                jiffies,
                ..probed_request(shown, point, rq, tag)
            });
            (
                names.dispatch_return,
                ftrace::Probe::DispatchReturn { request, jiffies },
            )
        }
        Probe::Answer {
            rq, deadline, tick, ..
        } => {
            let deadline = jiffies(shown, deadline);
            let chosen = rq.map(|rq| (address(shown, rq), point.sector.0, deadline));
            let jiffies = jiffies(shown, tick);
            (
                names.dispatch_return,
                ftrace::Probe::DeadlineReturn { chosen, jiffies },
            )
        }
        Probe::Finish { rq, tag, tick } => {
            let detail = match names.deadlines {
                true => jiffies(shown, tick),
                false => tag.map_or(0, u64::from),
            };
            let rq = address(shown, rq);
            (names.finish, ftrace::Probe::Finish { rq, detail })
        }
    };
    Some((name, Event::Probe(probe)))
}

/// An event of a scheduler with tokens.
fn token_event(shown: &Shown, names: &TokenEvents, probe: Probe) -> Option<(&'static str, Event)> {
    let device = number(shown.device);
    Some(match probe {
        Probe::Throttled { group } => {
            let domain = group.to_owned();
            (names.throttled, Event::KyberThrottled { device, domain })
        }
        Probe::Depth { group, depth } => {
            let domain = group.to_owned();
            let event = Event::KyberAdjust {
                device,
                domain,
                depth,
            };
            (names.depth, event)
        }
        Probe::Percentile(found) => {
            let latency = KyberLatency {
                device,
                domain: found.group.to_owned(),
                kind: found.kind.to_owned(),
                percentile: found.percentile,
                numerator: found.numerator,
                denominator: found.denominator,
                samples: found.samples,
            };
            (names.percentile, Event::KyberLatency(latency))
        }
        _ => return None,
    })
}

/// The request that a probe shows.
fn probed_request(
    shown: &Shown,
    point: &TracePoint,
    rq: RequestId,
    tag: Option<u32>,
) -> ProbedRequest {
    ProbedRequest {
        rq: address(shown, rq),
        sector: point.sector.0,
        bytes: point.sectors.0 << 9,
        priority: priority(point.ioprio),
        cmd_flags: cmd_flags(point),
        internal_tag: tag.map_or(-1, |tag| tag as i32),
        jiffies: 0,
    }
}

fn number(device: Device) -> DeviceNumber {
    DeviceNumber {
        major: device.major(),
        minor: device.minor(),
    }
}

fn bio(shown: &Shown, point: &TracePoint, task: String) -> BlockBio {
    BlockBio {
        device: number(shown.device),
        rwbs: rwbs(point),
        sector: point.sector.0,
        sectors: point.sectors.0,
        task,
    }
}

fn request(shown: &Shown, point: &TracePoint, task: String) -> BlockRequest {
    BlockRequest {
        device: number(shown.device),
        rwbs: rwbs(point),
        bytes: point.sectors.0 << 9,
        command: String::new(),
        sector: point.sector.0,
        sectors: point.sectors.0,
        priority: shown.priorities.then(|| priority(point.ioprio)),
        task,
    }
}

fn done(shown: &Shown, point: &TracePoint) -> BlockDone {
    BlockDone {
        device: number(shown.device),
        rwbs: rwbs(point),
        command: String::new(),
        sector: point.sector.0,
        sectors: point.sectors.0,
        priority: shown.priorities.then(|| priority(point.ioprio)),
        error: -i32::from(point.status.errno()),
    }
}

/// blk_fill_rwbs().
fn rwbs(point: &TracePoint) -> String {
    let flags = point.flags;
    let mut text = String::new();
    if flags.preflush {
        text.push('F');
    }
    text.push_str(match point.op {
        Op::Read => "R",
        Op::Write => "W",
        Op::WriteZeroes => "N",
        Op::Discard => "D",
        Op::Flush => "F",
    });
    let switches = [
        (flags.fua, 'F'),
        (flags.rahead, 'A'),
        (flags.sync, 'S'),
        (flags.meta, 'M'),
    ];
    text.extend(
        switches
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, letter)| letter),
    );
    text
}

fn priority(prio: IoPrio) -> IoPriority {
    let class = match prio.class {
        IoClass::None => 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    IoPriority {
        class,
        hint: 0,
        level: prio.level,
    }
}

/// REQ_OP_* and the switches that the model has (include/linux/blk_types.h, v6.12).
fn cmd_flags(point: &TracePoint) -> u32 {
    let op = match point.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
        Op::WriteZeroes => 9,
    };
    let flags = point.flags;
    let switches = [
        (flags.sync, 11),
        (flags.meta, 12),
        (flags.fua, 17),
        (flags.preflush, 18),
        (flags.rahead, 19),
    ];
    let set = switches.iter().filter(|(on, _)| *on);
    set.fold(op, |all, (_, bit)| all | 1 << bit)
}

fn address(shown: &Shown, rq: RequestId) -> u64 {
    REQUESTS_AT + u64::from(shown.queue) * DISK_BYTES + u64::from(rq.0) * REQUEST_BYTES
}

/// The kernel's count begins five minutes before it overflows 32 bits (INITIAL_JIFFIES).
fn jiffies(shown: &Shown, tick: Jiffies) -> u64 {
    (1 << 32) - 300 * u64::from(shown.hz) + tick.0
}

/// A line; interrupts on an idle CPU are distinguished only by this.
pub(super) fn record(
    at: blkmq::time::SimTime,
    cpu: u16,
    (pid, task): (u32, &str),
    (name, event): (&'static str, Event),
) -> Record {
    Record {
        line: 0,
        task: task.to_owned(),
        pid,
        cpu,
        context: if pid == 0 { "d.h1." } else { "....." }.to_owned(),
        at,
        name: name.to_owned(),
        event,
    }
}
