//! Requests, bios, limits and queues of blkmq in the types and numbers of the shim (`shim/call.h`,
//! `shim/block.h`).

use crate::call::{Config, HCTXS_MAX, Io, Limits, RANGES_MAX};
use blkmq::elevator::QueueShape;
use blkmq::merge::Merging;
use blkmq::queue::QueueSettings;
use blkmq::request::{Bio, IoClass, IoPrio, Op, OpFlags, Request};
use blkmq::rules::NoMerges;
use std::ffi::c_ulong;

impl Io {
    pub(crate) fn of_request(request: &Request) -> Io {
        Io {
            sector: request.sector.0,
            bytes: request.sectors.0 << 9,
            opf: opf(request.op, request.flags),
            ioprio: ioprio(request.ioprio),
            segments: request.segments,
            hctx: u32::from(request.hctx.0),
            task: request.io_context.0,
            group: u32::from(request.group),
            flush_seq: u32::from(request.flush_seq),
            bare: u32::from(!request.use_sched),
            ctx: u32::from(request.ctx.0),
            index: 0,
            start_ns: request.start_time.0,
            issue_ns: request.io_start_time.0,
        }
    }

    pub(crate) fn of_bio(bio: &Bio) -> Io {
        Io {
            sector: bio.sector.0,
            bytes: bio.sectors.0 << 9,
            opf: opf(bio.op, bio.flags),
            ioprio: ioprio(bio.ioprio),
            segments: bio.segments,
            task: bio.io_context.0,
            group: u32::from(bio.group),
            ..Io::default()
        }
    }
}

impl Limits {
    pub(crate) fn of(merging: Merging<'_>) -> Limits {
        Limits {
            max_sectors: merging.limits.max_sectors,
            max_segments: u32::from(merging.limits.max_segments),
            max_discard_segments: u32::from(merging.limits.max_discard_segments),
            max_discard_sectors: merging.limits.max_discard_sectors,
            chunk_sectors: merging.limits.chunk_sectors,
            nomerges: match merging.nomerges {
                NoMerges::All => 0,
                NoMerges::Simple => 1,
                NoMerges::Never => 2,
            },
        }
    }
}

/// Slots that a queue has room for; memory is taken when they are used.
const REQUESTS: u32 = 1 << 16;
const BIOS: u32 = 1 << 18;
/// Tasks without a name, besides those that the scenario names.
const TASKS: u32 = 1024;
/// Room for all but slots.
const BYTES: u64 = 8 << 20;

impl Config {
    /// A queue that no one knows yet.
    pub(crate) fn of_none() -> Config {
        Config {
            requests: REQUESTS,
            bios: BIOS,
            nr_requests: 256,
            hctxs: 1,
            cpus: 1,
            tasks: TASKS,
            groups: 1,
            rotational: 0,
            bytes: BYTES,
            nr_ctx: [1; HCTXS_MAX],
            ranges: 0,
            range: [[0; 2]; RANGES_MAX],
        }
    }

    pub(crate) fn of(queue: &QueueSettings, shape: &QueueShape) -> Config {
        let mut config = Config {
            nr_requests: queue.nr_requests,
            hctxs: shape.ctxs.len() as u32,
            cpus: shape.cpus as u32,
            tasks: queue.submitters.tasks.len() as u32 + TASKS,
            groups: queue.submitters.groups.len() as u32,
            rotational: u32::from(queue.rotational_when_chosen),
            ranges: queue.access_ranges.len() as c_ulong,
            ..Config::of_none()
        };
        for (count, &ctxs) in config.nr_ctx.iter_mut().zip(&shape.ctxs) {
            *count = ctxs as u32;
        }
        for (to, range) in config.range.iter_mut().zip(&queue.access_ranges) {
            *to = [range.start, range.end - range.start];
        }
        config
    }
}

/// The operation and flags of cmd_flags, as `shim/block.h` numbers them.
pub(crate) fn opf(op: Op, flags: OpFlags) -> u32 {
    let op = match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
        Op::WriteZeroes => 9,
    };
    let flags = [
        (flags.sync, 3),
        (flags.meta, 4),
        (flags.nomerge, 6),
        (flags.fua, 9),
        (flags.preflush, 10),
        (flags.rahead, 11),
        (flags.nowait, 13),
        (flags.polled, 14),
        (!flags.noidle, 7),
    ];
    let set = flags.iter().filter(|(set, _)| *set);
    op | set.fold(0, |bits, (_, bit)| bits | 1 << (8 + bit))
}

pub(crate) fn ioprio(prio: IoPrio) -> u16 {
    let class = match prio.class {
        IoClass::None => 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << 13 | u16::from(prio.level)
}
