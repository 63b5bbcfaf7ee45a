//! scsi_debug below the SCSI mid-layer: drivers/scsi/scsi_debug.c, drivers/scsi/scsi_lib.c
//! (v6.1, v6.12).

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{Driver, Result, Setup};
use sim::plan::{DeviceKind, DevicePlan, ScsiDebugPlan};

pub(super) const PARAMETERS: &[&str] = &[
    "submit_queues",
    "poll_queues",
    "delay",
    "ndelay",
    "max_queue",
    "host_max_queue",
    "dev_size_mb",
    "sector_size",
    "random",
    "lbpu",
    "add_host",
    "num_tgts",
    "max_luns",
    "cmd_per_lun",
    "opts",
    "wp",
];

/// Most commands of a queue (SDEBUG_CANQUEUE), and the default.
const CANQUEUE: u32 = 192;
/// max_sectors of the disk, sectors: as captured from a running scsi_debug.
const MAX_SECTORS: u32 = 1024;

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    let d = setup.device;
    plain(setup)?;
    let (host_max_queue, queue_depth) = depths(setup)?;
    let lun_depth = d.cmd_per_lun.unwrap_or(queue_depth);
    setup.within("cmd_per_lun", lun_depth.into(), 1, queue_depth.into())?;
    let submit_queues = d.submit_queues.unwrap_or(1).clamp(1, setup.machine.cpus);
    let poll_queues = poll_queues(setup, submit_queues)?;
    let block_sectors = setup.block_sectors("sector_size", d.sector_size.unwrap_or(512))?;
    let size_mb = d.dev_size_mb.unwrap_or(8);
    setup.within("dev_size_mb", size_mb, 1, 1 << 24)?;
    let kind = ScsiDebugPlan {
        delay: delay(setup)?,
        sync_delay: sync_delay(setup)?,
        random: d.random.is_some_and(|switch| switch.0),
        host_max_queue,
        lun_depth,
        max_queue: queue_depth,
    };
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::ScsiDebug(kind),
            name: setup.name.clone(),
            sectors: size_mb << 11,
            block_sectors,
            default_queues: submit_queues - poll_queues,
            read_queues: 0,
            poll_queues,
            queue_depth,
            hctx_shared: host_max_queue > 0,
            budget: lun_depth,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            fault: setup.fault,
        },
        limits: QueueLimits {
            max_sectors: MAX_SECTORS,
            max_segments: 2048,
            chunk_sectors: 0,
            max_discard_sectors: if d.lbpu.is_some_and(|s| s.0) {
                u32::MAX >> 9
            } else {
                0
            },
            discard_granularity: block_sectors,
            max_discard_segments: 1,
            write_cache: true,
            fua: true,
        },
        max_hw_sectors: u32::MAX >> 1,
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

/// Commands of the host, 0 without a limit, and of a hardware queue.
fn depths(setup: &Setup<'_>) -> Result<(u32, u32)> {
    let d = setup.device;
    let host = d.host_max_queue.unwrap_or(0);
    setup.within("host_max_queue", host.into(), 0, CANQUEUE.into())?;
    let max_queue = d.max_queue.unwrap_or(CANQUEUE);
    setup.within("max_queue", max_queue.into(), 1, CANQUEUE.into())?;
    // The module makes them equal, with a warning, where both are set.
    Ok((host, if host > 0 { host } else { max_queue }))
}

/// Response time of a command: ndelay, or else delay in ticks.
fn delay(setup: &Setup<'_>) -> Result<Duration> {
    let d = setup.device;
    let ndelay = d.ndelay.unwrap_or(0);
    setup.within("ndelay", ndelay, 0, 999_999_999)?;
    let ticks = d.delay.unwrap_or(1);
    setup.within("delay", u64::from(ticks), 0, 10_000_000)?;
    let tick = 1_000_000_000 / u64::from(setup.machine.hz);
    Ok(Duration(if ndelay > 0 {
        ndelay
    } else {
        u64::from(ticks) * tick
    }))
}

/// Of a SYNCHRONIZE CACHE: a twentieth of a second, or of `delay` seconds where that is above one
/// tick, in whole ticks. As any other command where those are answered within 10 us
/// (scsi_debug_queuecommand()).
fn sync_delay(setup: &Setup<'_>) -> Result<Duration> {
    let d = setup.device;
    let ndelay = d.ndelay.unwrap_or(0);
    let ticks = if ndelay > 0 { 0 } else { d.delay.unwrap_or(1) };
    if ticks == 0 && ndelay <= 10_000 {
        return delay(setup);
    }
    let hz = u64::from(setup.machine.hz);
    let long = u64::from(ticks.max(1)) * hz / 20;
    Ok(Duration(long * (1_000_000_000 / hz)))
}

/// The module's own fault injection is not modelled.
fn plain(setup: &Setup<'_>) -> Result<()> {
    let d = setup.device;
    if d.opts.is_some_and(|bits| bits != 0) {
        return setup.error("opts", "only 0 is modelled");
    }
    if d.wp.is_some_and(|switch| switch.0) {
        return setup.error("wp", "a write-protected disk is not modelled");
    }
    Ok(())
}

/// The module gives poll queues out of submit_queues, none with one queue, and at least one for
/// interrupts; what is too much it trims to 1.
fn poll_queues(setup: &Setup<'_>, submit_queues: u16) -> Result<u16> {
    let wanted = setup.device.poll_queues.unwrap_or(0);
    if wanted > 0 && wanted >= submit_queues {
        let what = format!("{wanted} of submit_queues={submit_queues} leave none for interrupts");
        return setup.error("poll_queues", what);
    }
    Ok(wanted)
}
