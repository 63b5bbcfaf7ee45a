//! null_blk: drivers/block/null_blk/main.c (v6.1, v6.12).

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{DEFAULT_CAP, Driver, Result, SAFE_MAX, Setup};
use crate::device::Switch;
use sim::plan::{DeviceKind, DevicePlan, IrqMode, NullBlkPlan};

pub(super) const PARAMETERS: &[&str] = &[
    "submit_queues",
    "poll_queues",
    "irqmode",
    "completion_nsec",
    "jitter_percent",
    "hw_queue_depth",
    "gb",
    "bs",
    "max_sectors",
    "shared_tag_bitmap",
    "no_sched",
    "blocking",
    "memory_backed",
    "discard",
    "cache_size",
    "fua",
    "mbps",
    "queue_mode",
    "nr_devices",
    "shared_tags",
];

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    let d = setup.device;
    let queue_depth = d.hw_queue_depth.unwrap_or(64);
    setup.within("hw_queue_depth", u64::from(queue_depth), 1, 10_240)?;
    let gb = d.gb.unwrap_or(250);
    setup.within("gb", gb, 1, 1 << 20)?;
    let block_sectors = setup.block_sectors("bs", d.bs.unwrap_or(512))?;
    // Queues of the single-queue kind have none.
    let usual = u16::from(setup.rules.single_queue.is_none());
    let poll_queues = d.poll_queues.unwrap_or(usual);
    setup.within(
        "poll_queues",
        u64::from(poll_queues),
        0,
        u64::from(setup.machine.cpus),
    )?;
    let (max_hw_sectors, max_sectors) = max_sectors(setup, block_sectors)?;
    let write_cache = d.cache_size.unwrap_or(0) > 0;
    if d.fua.is_some() && !setup.rules.null_blk_fua {
        let what = format!("null_blk of {} has no such parameter", setup.rules.name);
        return setup.error("fua", what);
    }
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::NullBlk(model(setup)?),
            name: setup.name.clone(),
            sectors: gb << 21,
            block_sectors,
            // The module clamps it in silence.
            default_queues: d.submit_queues.unwrap_or(1).clamp(1, setup.machine.cpus),
            read_queues: 0,
            poll_queues,
            queue_depth,
            hctx_shared: on(d.shared_tag_bitmap),
            budget: 0,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            fault: setup.fault,
        },
        limits: QueueLimits {
            max_sectors,
            max_segments: 128,
            chunk_sectors: 0,
            max_discard_sectors: if on(d.discard) { u32::MAX >> 9 } else { 0 },
            discard_granularity: block_sectors,
            max_discard_segments: 1,
            write_cache,
            fua: write_cache && d.fua.is_none_or(|fua| fua.0),
        },
        max_hw_sectors,
        io_timeout: Duration::from_secs(5),
        no_sched: on(d.no_sched),
    })
}

/// How it completes commands; checks what of the module is not modelled.
fn model(setup: &Setup<'_>) -> Result<NullBlkPlan> {
    let d = setup.device;
    let (mode, kind) = match setup.rules.single_queue {
        None => (2, "multi-queue"),
        Some(_) => (1, "its request mode"),
    };
    if d.queue_mode.unwrap_or(mode) != mode {
        let what = format!("only {mode} ({kind}) is modelled with {}", setup.rules.name);
        return setup.error("queue_mode", what);
    }
    let irqmode = match d.irqmode.unwrap_or(1) {
        0 => IrqMode::None,
        1 => IrqMode::Softirq,
        2 => IrqMode::Timer,
        other => return setup.error("irqmode", format!("{other} is not 0 to 2")),
    };
    let timed = [
        ("completion_nsec", d.completion_nsec.is_some()),
        ("jitter_percent", d.jitter_percent.is_some()),
    ];
    if let Some((parameter, _)) = timed.iter().find(|(_, given)| *given)
        && irqmode != IrqMode::Timer
    {
        return setup.error(parameter, "has a meaning with irqmode=2 only");
    }
    let completion = d.completion_nsec.unwrap_or(10_000);
    setup.within("completion_nsec", completion, 1, 1_000_000_000_000)?;
    let jitter_percent = d.jitter_percent.unwrap_or(0);
    setup.within("jitter_percent", u64::from(jitter_percent), 0, 100)?;
    let mbps = d.mbps.unwrap_or(0);
    setup.within("mbps", u64::from(mbps), 0, 40_960)?;
    let memory_backed = on(d.memory_backed);
    for (parameter, wanted) in [
        ("discard", on(d.discard)),
        ("cache_size", d.cache_size.unwrap_or(0) > 0),
    ] {
        if wanted && !memory_backed {
            return setup.error(parameter, "needs memory_backed=1");
        }
    }
    Ok(NullBlkPlan {
        irqmode,
        completion: Duration(completion),
        jitter_percent,
        blocking: on(d.blocking) || memory_backed,
        memory_backed,
        mbps,
    })
}

fn on(switch: Option<Switch>) -> bool {
    switch.is_some_and(|switch| switch.0)
}

/// max_hw_sectors and max_sectors. Told, both are whole blocks of at least a page.
fn max_sectors(setup: &Setup<'_>, block_sectors: u32) -> Result<(u32, u32)> {
    let whole = |sectors: u32| sectors - sectors % block_sectors;
    match setup.device.max_sectors.unwrap_or(0) {
        0 => Ok((SAFE_MAX, whole(SAFE_MAX))),
        told => {
            setup.within("max_sectors", u64::from(told), 8, 1 << 20)?;
            Ok((whole(told), whole(told.min(DEFAULT_CAP))))
        }
    }
}
