//! Prints events as the kernel does: the inverse of `ftrace.rs`.
//!
//! Kernel: TP_printk() in include/trace/events/block.h, trace_print_lat_fmt() and its callers in
//! kernel/trace/trace_output.c (6.1, 6.12). Of a probe's place only the functions are right, not
//! the offsets in them.

use std::fmt;

use super::Record;
use super::event::{
    BlockBio, BlockDone, BlockRequest, Event, IoPriority, KyberLatency, Probe, ProbedRequest, Remap,
};

/// The lines above the events.
pub const HEADER: &str = "\
# tracer: nop
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

/// Probes by name, and the functions they are in.
const SITES: [(&str, &str); 9] = [
    ("ins", "blk_mq_sched_try_insert_merge+0x0/0x40"),
    ("dde", "dd_dispatch_request+0x0/0x100"),
    (
        "dd",
        "blk_mq_do_dispatch_sched+0x116/0x3c0 <- dd_dispatch_request",
    ),
    ("ddfin", "dd_finish_request+0x0/0x50"),
    ("kybere", "kyber_dispatch_request+0x0/0x100"),
    (
        "kyber",
        "blk_mq_do_dispatch_sched+0x116/0x3c0 <- kyber_dispatch_request",
    ),
    ("kyfin", "kyber_finish_request+0x0/0x50"),
    (
        "bfq",
        "blk_mq_do_dispatch_sched+0x116/0x3c0 <- bfq_dispatch_request",
    ),
    ("bfqfin", "bfq_finish_requeue_request+0x0/0x50"),
];

impl fmt::Display for Record {
    /// A line without its end. Times are cut to microseconds, as the kernel's are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.at.0 / 1000;
        write!(
            f,
            "{:>16}-{:<7} [{:03}] {:5} {:>5}.{:06}: {}: ",
            self.task,
            self.pid,
            self.cpu,
            self.context,
            micros / 1_000_000,
            micros % 1_000_000,
            self.name
        )?;
        match &self.event {
            Event::Probe(seen) => probe(f, &self.name, seen),
            event => write!(f, "{event}"),
        }
    }
}

impl fmt::Display for Event {
    /// The payload. That of a probe needs the probe's name: see [`Record`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::BioQueue(b)
            | Event::GetRequest(b)
            | Event::BioBackMerge(b)
            | Event::BioFrontMerge(b) => bio(f, b),
            Event::RequestMerge(r) | Event::RequestInsert(r) | Event::RequestIssue(r) => {
                request(f, r)
            }
            Event::RequestComplete(d) | Event::RequestRequeue(d) | Event::RequestError(d) => {
                done(f, d)
            }
            Event::Plug(task) => write!(f, "[{task}]"),
            Event::Unplug { task, count } => write!(f, "[{task}] {count}"),
            Event::Split {
                device,
                rwbs,
                sector,
                new_sector,
                task,
            } => write!(f, "{device} {rwbs} {sector} / {new_sector} [{task}]"),
            Event::BioRemap(r) => remap(f, r),
            Event::RequestRemap { moved, bios } => {
                remap(f, moved)?;
                write!(f, " {bios}")
            }
            Event::BioComplete(d) => {
                write!(f, "{} {} {} + {} ", d.device, d.rwbs, d.sector, d.sectors)?;
                write!(f, "[{}]", d.error)
            }
            Event::KyberLatency(l) => kyber_latency(f, l),
            Event::KyberAdjust {
                device,
                domain,
                depth,
            } => write!(f, "{device} {domain} {depth}"),
            Event::KyberThrottled { device, domain } => write!(f, "{device} {domain}"),
            Event::CgroupAttach(to) => {
                let (root, id, level) = (to.root, to.id, to.level);
                write!(f, "dst_root={root} dst_id={id} dst_level={level} ")?;
                write!(f, "dst_path={} pid={} comm={}", to.path, to.pid, to.task)
            }
            Event::Probe(seen) => probe(f, "", seen),
            Event::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = ["none", "rt", "be", "idle"].get(usize::from(self.class));
        let (class, hint, level) = (class.unwrap_or(&"invalid"), self.hint, self.level);
        write!(f, "{class},{hint},{level}")
    }
}

impl IoPriority {
    /// The kernel's 16-bit value.
    pub fn raw(self) -> u16 {
        u16::from(self.class) << 13 | self.hint << 3 | u16::from(self.level)
    }
}

fn bio(f: &mut fmt::Formatter<'_>, b: &BlockBio) -> fmt::Result {
    let BlockBio {
        device,
        rwbs,
        sector,
        sectors,
        task,
    } = b;
    write!(f, "{device} {rwbs} {sector} + {sectors} [{task}]")
}

fn request(f: &mut fmt::Formatter<'_>, r: &BlockRequest) -> fmt::Result {
    write!(f, "{} {} {} ({}) ", r.device, r.rwbs, r.bytes, r.command)?;
    write!(f, "{} + {} ", r.sector, r.sectors)?;
    if let Some(priority) = r.priority {
        write!(f, "{priority} ")?;
    }
    write!(f, "[{}]", r.task)
}

fn done(f: &mut fmt::Formatter<'_>, d: &BlockDone) -> fmt::Result {
    write!(f, "{} {} ({}) ", d.device, d.rwbs, d.command)?;
    write!(f, "{} + {} ", d.sector, d.sectors)?;
    if let Some(priority) = d.priority {
        write!(f, "{priority} ")?;
    }
    write!(f, "[{}]", d.error)
}

fn remap(f: &mut fmt::Formatter<'_>, r: &Remap) -> fmt::Result {
    write!(f, "{} {} {} + {} ", r.device, r.rwbs, r.sector, r.sectors)?;
    write!(f, "<- ({}) {}", r.old_device, r.old_sector)
}

fn kyber_latency(f: &mut fmt::Formatter<'_>, l: &KyberLatency) -> fmt::Result {
    write!(f, "{} {} {} ", l.device, l.domain, l.kind)?;
    write!(f, "p{} {}/{} ", l.percentile, l.numerator, l.denominator)?;
    write!(f, "samples={}", l.samples)
}

fn probe(f: &mut fmt::Formatter<'_>, name: &str, probe: &Probe) -> fmt::Result {
    let site = SITES.iter().find(|(known, _)| *known == name);
    write!(f, "({}) ", site.map_or("?", |(_, site)| *site))?;
    match probe {
        Probe::Insert(seen) => probed_request(f, seen),
        Probe::DispatchEntry { jiffies, hctx } => {
            write!(f, "j={jiffies}")?;
            hctx.map_or(Ok(()), |hctx| write!(f, " h={hctx}"))
        }
        Probe::DeadlineReturn { chosen, jiffies } => {
            let (rq, sector, deadline) = chosen.unwrap_or_default();
            write!(f, "rq=0x{rq:x} s={sector} ft={deadline} j={jiffies}")
        }
        Probe::DispatchReturn {
            request: Some(seen),
            ..
        } => probed_request(f, seen),
        Probe::DispatchReturn { jiffies, .. } => {
            write!(f, "rq=0x0 s=0 len=0 prio=0x0 fl=0x0 it=0 j={jiffies}")
        }
        Probe::Finish { rq, detail } => {
            let key = if name == "ddfin" { "j" } else { "it" };
            write!(f, "rq=0x{rq:x} {key}={}", *detail as i64)
        }
    }
}

fn probed_request(f: &mut fmt::Formatter<'_>, seen: &ProbedRequest) -> fmt::Result {
    write!(
        f,
        "rq=0x{:x} s={} len={} ",
        seen.rq, seen.sector, seen.bytes
    )?;
    write!(
        f,
        "prio=0x{:x} fl=0x{:x} ",
        seen.priority.raw(),
        seen.cmd_flags
    )?;
    write!(f, "it={} j={}", seen.internal_tag, seen.jiffies)
}
