//! Payloads of the block and kyber events, and of the probes that our captures set.
//!
//! An event not listed here keeps its name and text. A listed one must have its kernel's shape.
//! Kernel: include/trace/events/block.h, include/trace/events/kyber.h (6.1, 6.12).

use std::fmt;

use super::fields::{Fields, Parsed};

/// Device number as block events print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major, self.minor)
    }
}

/// An ioprio value: class, hint, level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoPriority {
    /// 0 none, 1 real time, 2 best effort, 3 idle.
    pub class: u8,
    /// Hint (command duration limits), 0 for none.
    pub hint: u16,
    /// 0 highest to 7 lowest.
    pub level: u8,
}

impl IoPriority {
    /// Takes the kernel's 16-bit value apart: 3 bits class, 10 bits hint, 3 bits level.
    pub fn from_raw(raw: u16) -> IoPriority {
        IoPriority {
            class: (raw >> 13) as u8,
            hint: (raw >> 3) & 0x3ff,
            level: (raw & 7) as u8,
        }
    }

    /// `be,0,4`, as the block events of 6.12 print it. A class beyond those four is invalid, or a
    /// number to it: none.
    pub(crate) fn from_text(text: &str) -> Option<IoPriority> {
        let mut parts = text.split(',');
        let class = match parts.next()? {
            "none" => 0,
            "rt" => 1,
            "be" => 2,
            "idle" => 3,
            "invalid" => 0,
            number if number.starts_with("0x") => 0,
            _ => return None,
        };
        let hint = parts.next()?.parse().ok()?;
        let level = parts.next()?.parse().ok().filter(|level| *level < 8)?;
        parts
            .next()
            .is_none()
            .then_some(IoPriority { class, hint, level })
    }
}

/// A bio: `block_bio_queue`, `block_getrq`, `block_bio_backmerge`, `block_bio_frontmerge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockBio {
    pub device: DeviceNumber,
    /// Operation and flags, e.g. `WS`, `RA`, `FWS`.
    pub rwbs: String,
    pub sector: u64,
    /// Length, sectors.
    pub sectors: u32,
    pub task: String,
}

/// A request before completion: `block_rq_insert`, `block_rq_issue`, `block_rq_merge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    pub device: DeviceNumber,
    pub rwbs: String,
    /// Length, bytes.
    pub bytes: u32,
    /// Command of a passthrough request, empty otherwise.
    pub command: String,
    pub sector: u64,
    /// Length, sectors.
    pub sectors: u32,
    /// ioprio, printed since 6.12.
    pub priority: Option<IoPriority>,
    /// Task that was running.
    pub task: String,
}

/// A request that came back: `block_rq_complete`, `block_rq_requeue`, `block_rq_error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDone {
    pub device: DeviceNumber,
    pub rwbs: String,
    /// Command of a passthrough request, empty otherwise.
    pub command: String,
    pub sector: u64,
    /// Length that completed, sectors.
    pub sectors: u32,
    /// ioprio, printed since 6.12.
    pub priority: Option<IoPriority>,
    /// 0, or a negative errno.
    pub error: i32,
}

/// A bio or request moved from a partition or stacked device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remap {
    pub device: DeviceNumber,
    pub rwbs: String,
    /// First sector there.
    pub sector: u64,
    /// Length, sectors.
    pub sectors: u32,
    pub old_device: DeviceNumber,
    /// First sector there.
    pub old_sector: u64,
}

/// `kyber_latency`: a histogram bucket that decided on a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KyberLatency {
    pub device: DeviceNumber,
    /// Domain: READ, WRITE, DISCARD, OTHER.
    pub domain: String,
    /// `total` or `I/O`.
    pub kind: String,
    pub percentile: u8,
    /// Bucket, in units of a quarter of the target (`denominator`).
    pub numerator: u8,
    /// Buckets that make up the target.
    pub denominator: u8,
    /// Samples in the window.
    pub samples: u32,
}

/// `cgroup_attach_task`: a process moves to another cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupAttach {
    /// Number of its hierarchy; 0: version 2.
    pub root: u32,
    pub id: u64,
    /// Groups above it.
    pub level: u32,
    /// With a slash in front.
    pub path: String,
    /// The process that moves, by its first thread.
    pub pid: u32,
    /// Name of that thread.
    pub task: String,
}

/// A request as seen by a probe on a scheduler's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbedRequest {
    /// Address of the request: its identity while it lives.
    pub rq: u64,
    /// First sector.
    pub sector: u64,
    /// Length, bytes.
    pub bytes: u32,
    pub priority: IoPriority,
    /// cmd_flags, operation in the low 8 bits.
    pub cmd_flags: u32,
    /// Scheduler tag, -1 for none.
    pub internal_tag: i32,
    /// Tick at the probe.
    pub jiffies: u64,
}

/// Probes of our captures on functions of schedulers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `ins`: a request reaches the scheduler's insertion.
    Insert(ProbedRequest),
    /// `dde`, `kybere`: the scheduler's dispatch function is entered.
    DispatchEntry {
        /// Tick at the probe.
        jiffies: u64,
        /// The hardware queue that is dispatched; absent in older captures.
        hctx: Option<u16>,
    },
    /// `dd`: dd_dispatch_request() returns a request, or nothing.
    DeadlineReturn {
        /// Request, first sector and deadline in ticks.
        chosen: Option<(u64, u64, u64)>,
        /// Tick at the probe.
        jiffies: u64,
    },
    /// `bfq` and `kyber`: their dispatch function returns a request, or nothing.
    DispatchReturn {
        request: Option<ProbedRequest>,
        /// Tick at the probe.
        jiffies: u64,
    },
    /// `ddfin`, `bfqfin`, `kyfin`: the finish_request hook of the scheduler.
    Finish {
        /// Address of the request.
        rq: u64,
        /// `ddfin`: tick at the probe; the others: scheduler tag.
        detail: u64,
    },
}

/// Content of one line of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `block_bio_queue` (Q).
    BioQueue(BlockBio),
    /// `block_getrq` (G).
    GetRequest(BlockBio),
    /// `block_bio_backmerge` (M).
    BioBackMerge(BlockBio),
    /// `block_bio_frontmerge` (F).
    BioFrontMerge(BlockBio),
    /// `block_rq_merge` (M of a whole request).
    RequestMerge(BlockRequest),
    /// `block_rq_insert` (I).
    RequestInsert(BlockRequest),
    /// `block_rq_issue` (D).
    RequestIssue(BlockRequest),
    /// `block_rq_complete` (C).
    RequestComplete(BlockDone),
    /// `block_rq_requeue` (R).
    RequestRequeue(BlockDone),
    /// `block_rq_error`: part of a request failed (6.1 and later; C follows).
    RequestError(BlockDone),
    /// `block_plug` (P): name of the task.
    Plug(String),
    /// `block_unplug` (U).
    Unplug { task: String, count: u32 },
    /// `block_split` (X).
    Split {
        device: DeviceNumber,
        rwbs: String,
        sector: u64,
        /// Where the rest begins.
        new_sector: u64,
        /// Task that issued it.
        task: String,
    },
    /// `block_bio_remap` (A).
    BioRemap(Remap),
    /// `block_rq_remap` (A): of a request, as old multipath devices have them.
    RequestRemap { moved: Remap, bios: u32 },
    /// `block_bio_complete` (C): a bio that is no part of a request, or of a request that ended.
    BioComplete(BlockDone),
    /// `kyber_latency`.
    KyberLatency(KyberLatency),
    /// `kyber_adjust`: a domain's depth changed.
    KyberAdjust {
        device: DeviceNumber,
        /// Domain: READ, WRITE, DISCARD, OTHER.
        domain: String,
        depth: u32,
    },
    /// `kyber_throttled`: a domain ran out of tokens.
    KyberThrottled {
        device: DeviceNumber,
        domain: String,
    },
    /// `cgroup_attach_task`.
    CgroupAttach(CgroupAttach),
    /// One of the probes of our captures.
    Probe(Probe),
    /// Any other event, as printed.
    Other(String),
}

/// Types a payload by the event's name.
pub(crate) fn parse(name: &str, payload: &str) -> Parsed<Event> {
    let mut f = Fields::new(payload);
    let event = match name {
        "block_bio_queue" => Event::BioQueue(bio(&mut f)?),
        "block_getrq" => Event::GetRequest(bio(&mut f)?),
        "block_bio_backmerge" => Event::BioBackMerge(bio(&mut f)?),
        "block_bio_frontmerge" => Event::BioFrontMerge(bio(&mut f)?),
        "block_rq_merge" => Event::RequestMerge(request(&mut f)?),
        "block_rq_insert" => Event::RequestInsert(request(&mut f)?),
        "block_rq_issue" => Event::RequestIssue(request(&mut f)?),
        "block_rq_complete" => Event::RequestComplete(done(&mut f)?),
        "block_rq_requeue" => Event::RequestRequeue(done(&mut f)?),
        "block_rq_error" => Event::RequestError(done(&mut f)?),
        "block_plug" => Event::Plug(f.bracket("comm")?.to_string()),
        "block_unplug" => Event::Unplug {
            task: f.bracket_then("comm")?.to_string(),
            count: f.number("nr_rq")?,
        },
        "block_split" => split(&mut f)?,
        "block_bio_remap" => Event::BioRemap(remap(&mut f)?),
        "block_rq_remap" => Event::RequestRemap {
            moved: remap(&mut f)?,
            bios: f.number("nr_bios")?,
        },
        "block_bio_complete" => Event::BioComplete(bio_done(&mut f)?),
        "kyber_latency" => Event::KyberLatency(kyber_latency(&mut f)?),
        "kyber_adjust" => Event::KyberAdjust {
            device: f.device()?,
            domain: f.word("domain", "a domain")?.to_string(),
            depth: f.number("depth")?,
        },
        "kyber_throttled" => Event::KyberThrottled {
            device: f.device()?,
            domain: f.word("domain", "a domain")?.to_string(),
        },
        "cgroup_attach_task" => Event::CgroupAttach(CgroupAttach {
            root: f.keyed_u32("dst_root")?,
            id: f.keyed("dst_id")?,
            level: f.keyed_u32("dst_level")?,
            path: f.text("dst_path", " pid=")?.to_string(),
            pid: f.keyed_u32("pid")?,
            task: f.text("comm", "")?.to_string(),
        }),
        "ins" | "dde" | "kybere" | "dd" | "bfq" | "kyber" | "ddfin" | "bfqfin" | "kyfin" => {
            Event::Probe(probe(name, &mut f)?)
        }
        _ => return Ok(Event::Other(payload.to_string())),
    };
    f.end()?;
    Ok(event)
}

fn bio(f: &mut Fields<'_>) -> Parsed<BlockBio> {
    let device = f.device()?;
    let rwbs = f.word("rwbs", "operation and flags")?.to_string();
    let sector = f.number("sector")?;
    f.literal("+")?;
    let sectors = f.number("nr_sector")?;
    let task = f.bracket("comm")?.to_string();
    Ok(BlockBio {
        device,
        rwbs,
        sector,
        sectors,
        task,
    })
}

fn request(f: &mut Fields<'_>) -> Parsed<BlockRequest> {
    let device = f.device()?;
    let rwbs = f.word("rwbs", "operation and flags")?.to_string();
    let bytes = f.number("bytes")?;
    let command = f.parenthesis()?.to_string();
    let sector = f.number("sector")?;
    f.literal("+")?;
    let sectors = f.number("nr_sector")?;
    let priority = f.priority()?;
    let task = f.bracket("comm")?.to_string();
    Ok(BlockRequest {
        device,
        rwbs,
        bytes,
        command,
        sector,
        sectors,
        priority,
        task,
    })
}

fn done(f: &mut Fields<'_>) -> Parsed<BlockDone> {
    let device = f.device()?;
    let rwbs = f.word("rwbs", "operation and flags")?.to_string();
    let command = f.parenthesis()?.to_string();
    let sector = f.number("sector")?;
    f.literal("+")?;
    let sectors = f.number("nr_sector")?;
    let priority = f.priority()?;
    let error = errno(f)?;
    Ok(BlockDone {
        device,
        rwbs,
        command,
        sector,
        sectors,
        priority,
        error,
    })
}

/// As a request's, without a command and a priority.
fn bio_done(f: &mut Fields<'_>) -> Parsed<BlockDone> {
    let device = f.device()?;
    let rwbs = f.word("rwbs", "operation and flags")?.to_string();
    let sector = f.number("sector")?;
    f.literal("+")?;
    let sectors = f.number("nr_sector")?;
    Ok(BlockDone {
        device,
        rwbs,
        command: String::new(),
        sector,
        sectors,
        priority: None,
        error: errno(f)?,
    })
}

fn errno(f: &mut Fields<'_>) -> Parsed<i32> {
    let here = *f;
    let error = f.bracket("error")?.parse();
    error.or_else(|_| here.bad("error", "[errno]"))
}

fn split(f: &mut Fields<'_>) -> Parsed<Event> {
    let device = f.device()?;
    let rwbs = f.word("rwbs", "operation and flags")?.to_string();
    let sector = f.number("sector")?;
    f.literal("/")?;
    let new_sector = f.number("new_sector")?;
    let task = f.bracket("comm")?.to_string();
    Ok(Event::Split {
        device,
        rwbs,
        sector,
        new_sector,
        task,
    })
}

fn remap(f: &mut Fields<'_>) -> Parsed<Remap> {
    let device = f.device()?;
    let rwbs = f.word("rwbs", "operation and flags")?.to_string();
    let sector = f.number("sector")?;
    f.literal("+")?;
    let sectors = f.number("nr_sector")?;
    f.literal("<-")?;
    let old_device = f.old_device()?;
    let old_sector = f.number("old_sector")?;
    Ok(Remap {
        device,
        rwbs,
        sector,
        sectors,
        old_device,
        old_sector,
    })
}

fn kyber_latency(f: &mut Fields<'_>) -> Parsed<KyberLatency> {
    let device = f.device()?;
    let domain = f.word("domain", "a domain")?.to_string();
    let kind = f.word("type", "total or I/O")?.to_string();
    let here = *f;
    let percentile = f.word("percentile", "pNN")?;
    let percentile = percentile.strip_prefix('p').and_then(|p| p.parse().ok());
    let here_fraction = *f;
    let fraction = f
        .word("numerator", "numerator/denominator")?
        .split_once('/');
    let fraction = fraction.and_then(|(n, d)| Some((n.parse().ok()?, d.parse().ok()?)));
    let Some(percentile) = percentile else {
        return here.bad("percentile", "pNN");
    };
    let Some((numerator, denominator)) = fraction else {
        return here_fraction.bad("numerator", "numerator/denominator");
    };
    let samples = f.keyed("samples")? as u32;
    Ok(KyberLatency {
        device,
        domain,
        kind,
        percentile,
        numerator,
        denominator,
        samples,
    })
}

fn probe(name: &str, f: &mut Fields<'_>) -> Parsed<Probe> {
    f.probe_site()?;
    Ok(match name {
        "dde" | "kybere" => Probe::DispatchEntry {
            jiffies: f.keyed("j")?,
            hctx: match f.is_empty() {
                true => None,
                false => Some(f.keyed("h")? as u16),
            },
        },
        "dd" => {
            let chosen = (f.keyed("rq")?, f.keyed("s")?, f.keyed("ft")?);
            // Through a null pointer the other fields show the memory at address zero.
            Probe::DeadlineReturn {
                chosen: (chosen.0 != 0).then_some(chosen),
                jiffies: f.keyed("j")?,
            }
        }
        "ins" => Probe::Insert(probed_request(f)?),
        "bfq" | "kyber" => {
            let request = probed_request(f)?;
            Probe::DispatchReturn {
                request: (request.rq != 0).then_some(request),
                jiffies: request.jiffies,
            }
        }
        "ddfin" => {
            let rq = f.keyed("rq")?;
            let detail = f.keyed("j")?;
            Probe::Finish { rq, detail }
        }
        _ => {
            let rq = f.keyed("rq")?;
            let detail = f.keyed("it")?;
            Probe::Finish { rq, detail }
        }
    })
}

fn probed_request(f: &mut Fields<'_>) -> Parsed<ProbedRequest> {
    Ok(ProbedRequest {
        rq: f.keyed("rq")?,
        sector: f.keyed("s")?,
        bytes: f.keyed("len")? as u32,
        priority: IoPriority::from_raw(f.keyed("prio")? as u16),
        cmd_flags: f.keyed("fl")? as u32,
        internal_tag: f.keyed("it")? as i32,
        jiffies: f.keyed("j")?,
    })
}
