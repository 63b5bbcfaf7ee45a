//! null_blk: drivers/block/null_blk/main.c (v6.1, v6.12).

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{Driver, Result, SAFE_MAX, Setup};
use crate::parameter::{Parameter, number, switch};
use sim::plan::{DeviceKind, DevicePlan, IrqMode, NullBlkPlan};

#[rustfmt::skip]
pub(super) const PARAMETERS: &[Parameter] = &[
    number("submit_queues", 0..=65_535, "queues", 1,
        "hardware queues; the module clamps them to 1 to the number of CPUs"),
    number("poll_queues", 0..=65_535, "queues", 1,
        "hardware queues for polled I/O, added to submit_queues, at most the number of CPUs; \
         the default is 0 on the single-queue path"),
    number("irqmode", 0..=2, "", 1, "completion: 0 inside queue_rq, 1 by softirq, 2 by timer"),
    number("completion_nsec", 1..=1_000_000_000_000, "ns", 10_000,
        "time of a command with irqmode=2"),
    number("jitter_percent", 0..=100, "percent", 0,
        "spread of the time of a command up and down, with irqmode=2; not a module parameter"),
    number("hw_queue_depth", 1..=10_240, "tags", 64, "tags of each hardware queue"),
    number("gb", 1..=1 << 20, "GiB", 250, "size"),
    Parameter::block("bs"),
    number("max_sectors", 0..=1 << 20, "sectors", 0,
        "largest request, at least 8; 0: 255, the block layer's default"),
    switch("shared_tag_bitmap", "one tag map for all hardware queues"),
    switch("no_sched", "no scheduler"),
    switch("blocking", "queue_rq may sleep; implied by memory_backed"),
    switch("memory_backed", "keeps data, under a lock of the device"),
    switch("discard", "discards; needs memory_backed"),
    number("cache_size", 0..=1 << 31, "MiB", 0, "volatile cache; needs memory_backed"),
    switch("fua", "FUA with cache_size; a parameter since v6.12, always on before").or("1"),
    number("mbps", 0..=40_960, "MiB/s", 0, "bandwidth limit; 0: none"),
    number("queue_mode", 0..=2, "", 2,
        "only 2, multi-queue, is modelled; 1 on the single-queue path").or("2"),
    number("nr_devices", 1..=1024, "devices", 1, "such devices: nullb0, nullb1 ..."),
    switch("shared_tags", "one tag set for all devices that have it, also of several tables"),
];

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    let block_sectors = setup.count("bs") / 512;
    // Queues of the single-queue kind have none.
    let poll_queues = match setup.rules.single_queue {
        Some(_) => setup.device.number("poll_queues").unwrap_or(0),
        None => setup.get("poll_queues"),
    };
    setup.within("poll_queues", poll_queues, 0, setup.machine.cpus.into())?;
    let (max_hw_sectors, max_sectors) = max_sectors(setup, block_sectors)?;
    let write_cache = setup.on("cache_size");
    let fua = setup.device.number("fua");
    if fua.is_some() && !setup.rules.null_blk_fua {
        let what = format!("null_blk of {} has no such parameter", setup.rules.name);
        return setup.error("fua", what);
    }
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::NullBlk(model(setup)?),
            name: setup.name.clone(),
            sectors: setup.get("gb") << 21,
            block_sectors,
            default_queues: (setup.get("submit_queues") as u16).clamp(1, setup.machine.cpus),
            read_queues: 0,
            poll_queues: poll_queues as u16,
            queue_depth: setup.count("hw_queue_depth"),
            hctx_shared: setup.on("shared_tag_bitmap"),
            budget: 0,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            fault: setup.fault,
            service_times: Vec::new(),
        },
        limits: QueueLimits {
            max_sectors,
            max_segments: 128,
            chunk_sectors: 0,
            max_discard_sectors: if setup.on("discard") {
                u32::MAX >> 9
            } else {
                0
            },
            discard_granularity: block_sectors,
            max_discard_segments: 1,
            write_cache,
            fua: write_cache && fua != Some(0),
            ..QueueLimits::PLAIN
        },
        max_hw_sectors,
        io_timeout: Duration::from_secs(5),
        no_sched: setup.on("no_sched"),
    })
}

/// How it completes commands; refuses parameters of the module that are not modelled.
fn model(setup: &Setup<'_>) -> Result<NullBlkPlan> {
    let d = setup.device;
    let (mode, kind) = match setup.rules.single_queue {
        None => (2, "multi-queue"),
        Some(_) => (1, "its request mode"),
    };
    if d.number("queue_mode").unwrap_or(mode) != mode {
        let what = format!("only {mode} ({kind}) is modelled with {}", setup.rules.name);
        return setup.error("queue_mode", what);
    }
    let irqmode = match setup.get("irqmode") {
        0 => IrqMode::None,
        1 => IrqMode::Softirq,
        _ => IrqMode::Timer,
    };
    let mut timed = ["completion_nsec", "jitter_percent"].into_iter();
    if let Some(parameter) = timed.find(|name| d.number(name).is_some())
        && irqmode != IrqMode::Timer
    {
        return setup.error(parameter, "has a meaning with irqmode=2 only");
    }
    let memory_backed = setup.on("memory_backed");
    for parameter in ["discard", "cache_size"] {
        if setup.on(parameter) && !memory_backed {
            return setup.error(parameter, "needs memory_backed=1");
        }
    }
    Ok(NullBlkPlan {
        irqmode,
        completion: Duration(setup.get("completion_nsec")),
        jitter_percent: setup.get("jitter_percent") as u8,
        blocking: setup.on("blocking") || memory_backed,
        memory_backed,
        mbps: setup.count("mbps"),
    })
}

/// max_hw_sectors and max_sectors. If written, both are whole blocks of at least a page.
fn max_sectors(setup: &Setup<'_>, block_sectors: u32) -> Result<(u32, u32)> {
    let whole = |sectors: u32| sectors - sectors % block_sectors;
    match setup.count("max_sectors") {
        0 => Ok((SAFE_MAX, whole(SAFE_MAX))),
        given => {
            setup.within("max_sectors", u64::from(given), 8, 1 << 20)?;
            Ok((
                whole(given),
                whole(given.min(setup.rules.default_max_sectors)),
            ))
        }
    }
}
