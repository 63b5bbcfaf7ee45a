//! scsi_debug below the SCSI mid-layer: drivers/scsi/scsi_debug.c, drivers/scsi/scsi_lib.c
//! (v6.1, v6.12).

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{Driver, Result, Setup};
use crate::parameter::{Parameter, number, switch};
use sim::plan::{DeviceKind, DevicePlan, ScsiDebugPlan};

#[rustfmt::skip]
pub(super) const PARAMETERS: &[Parameter] = &[
    number("submit_queues", 0..=65_535, "queues", 1, "hardware queues, at most the number of CPUs"),
    number("poll_queues", 0..=65_535, "queues", 0,
        "hardware queues for polled I/O, taken out of submit_queues"),
    number("delay", 0..=10_000_000, "ticks", 1, "response time; 0 answers at once"),
    number("ndelay", 0..=999_999_999, "ns", 0, "response time; above 0 it overrides delay"),
    number("max_queue", 1..=CANQUEUE, "commands", CANQUEUE, "commands of each hardware queue"),
    number("host_max_queue", 0..=CANQUEUE, "commands", 0,
        "commands of the host, with one tag map for all hardware queues; 0: off"),
    number("dev_size_mb", 1..=1 << 24, "MiB", 8, "size"),
    Parameter::block("sector_size"),
    switch("random", "response times are drawn from 0 up to the response time"),
    switch("lbpu", "takes UNMAP: discards"),
    number("add_host", 1..=1024, "hosts", 1, "hosts, each with tags of its own"),
    number("num_tgts", 1..=1024, "targets", 1, "targets of each host"),
    number("max_luns", 1..=1024, "units", 1,
        "logical units of each target, each a disk: sda, sdb ...; at most 1024 in all"),
    number("cmd_per_lun", 1..=CANQUEUE, "commands", 0,
        "commands of a logical unit; not a module parameter, but the value of \
         device/queue_depth").or("max_queue, or host_max_queue; also the most"),
    number("opts", 0..=u32::MAX as u64, "bits", 0,
        "error injection; only 0 is modelled, see `[device.fault]`"),
    switch("wp", "write protection; only 0 is modelled"),
];

/// Most commands of a queue (SDEBUG_CANQUEUE), and the default.
const CANQUEUE: u64 = 192;
/// Optimal transfer length, sectors (opt_blks).
const OPTIMAL_SECTORS: u32 = 1024;

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    plain(setup)?;
    let host_max_queue = setup.count("host_max_queue");
    // The module makes them equal, with a warning, where both are set.
    let queue_depth = match host_max_queue {
        0 => setup.count("max_queue"),
        host => host,
    };
    let lun_depth = setup.device.number("cmd_per_lun");
    let lun_depth = lun_depth.unwrap_or(queue_depth.into());
    setup.within("cmd_per_lun", lun_depth, 1, queue_depth.into())?;
    let submit_queues = (setup.get("submit_queues") as u16).clamp(1, setup.machine.cpus);
    let poll_queues = poll_queues(setup, submit_queues)?;
    let block_sectors = setup.count("sector_size") / 512;
    let kind = ScsiDebugPlan {
        delay: delay(setup),
        sync_delay: sync_delay(setup),
        random: setup.on("random"),
        host_max_queue,
        lun_depth: lun_depth as u32,
        max_queue: queue_depth,
    };
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::ScsiDebug(kind),
            name: setup.name.clone(),
            sectors: setup.get("dev_size_mb") << 11,
            block_sectors,
            default_queues: submit_queues - poll_queues,
            read_queues: 0,
            poll_queues,
            queue_depth,
            hctx_shared: host_max_queue > 0,
            budget: lun_depth as u32,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            fault: setup.fault,
            service_times: Vec::new(),
        },
        limits: QueueLimits {
            max_sectors: match setup.rules.sd_optimal_length {
                true => OPTIMAL_SECTORS,
                false => setup.rules.default_max_sectors,
            },
            max_segments: 2048,
            chunk_sectors: 0,
            max_discard_sectors: if setup.on("lbpu") { u32::MAX >> 9 } else { 0 },
            discard_granularity: block_sectors,
            max_discard_segments: 1,
            write_cache: true,
            fua: true,
            ..QueueLimits::PLAIN
        },
        max_hw_sectors: u32::MAX >> 1,
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

/// Response time of a command: ndelay, or else delay in ticks.
fn delay(setup: &Setup<'_>) -> Duration {
    let tick = 1_000_000_000 / u64::from(setup.machine.hz);
    Duration(match setup.get("ndelay") {
        0 => setup.get("delay") * tick,
        ndelay => ndelay,
    })
}

/// Of a SYNCHRONIZE CACHE: a twentieth of a second, or of `delay` seconds where that is above one
/// tick, in whole ticks. As any other command if those are answered within 10 us
/// (scsi_debug_queuecommand()).
fn sync_delay(setup: &Setup<'_>) -> Duration {
    let ndelay = setup.get("ndelay");
    let ticks = if ndelay > 0 { 0 } else { setup.get("delay") };
    if ticks == 0 && ndelay <= 10_000 {
        return delay(setup);
    }
    let hz = u64::from(setup.machine.hz);
    let long = ticks.max(1) * hz / 20;
    Duration(long * (1_000_000_000 / hz))
}

/// The module's own fault injection is not modelled.
fn plain(setup: &Setup<'_>) -> Result<()> {
    if setup.on("opts") {
        return setup.error("opts", "only 0 is modelled");
    }
    if setup.on("wp") {
        return setup.error("wp", "a write-protected disk is not modelled");
    }
    Ok(())
}

/// The module takes poll queues out of submit_queues, none with one queue, and leaves at least one
/// for interrupts; it cuts a larger number to 1.
fn poll_queues(setup: &Setup<'_>, submit_queues: u16) -> Result<u16> {
    let wanted = setup.get("poll_queues") as u16;
    if wanted > 0 && wanted >= submit_queues {
        let what = format!("{wanted} of submit_queues={submit_queues} leave none for interrupts");
        return setup.error("poll_queues", what);
    }
    Ok(wanted)
}
