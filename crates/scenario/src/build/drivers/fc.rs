//! A Fibre Channel host: queues and units as an adapter's driver gives them to the SCSI mid-layer
//! (drivers/scsi/qla2xxx/qla_os.c: sg_tablesize, max_sectors; MAX_Q_DEPTH), service as our model
//! has it.

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{DEFAULT_CAP, Driver, Result, Setup};
use crate::ScenarioError;
use sim::plan::{DeviceKind, DevicePlan, FcPlan, OpLatency};

pub(super) const PARAMETERS: &[&str] = &[
    "add_host",
    "max_luns",
    "can_queue",
    "cmd_per_lun",
    "nr_queues",
    "latency_ns",
    "write_latency_ns",
    "trim_latency_ns",
    "flush_latency_ns",
    "jitter_percent",
    "read_mbps",
    "write_mbps",
    "size_gb",
];

/// What an adapter of 16 Gbit/s takes at a time.
const CAN_QUEUE: u32 = 2000;
/// BLK_MQ_MAX_DEPTH.
const CAN_QUEUE_MAX: u32 = 10_240;
/// What qla2xxx gives a unit.
const CMD_PER_LUN: u32 = 32;
/// SG_ALL.
const MAX_SEGMENTS: u16 = 128;
/// What qla2xxx says.
const MAX_HW_SECTORS: u32 = 0xffff;
/// 16GFC in one direction, MiB/s: 1600 MB/s.
const LINK_MBPS: u32 = 1525;
/// Longest service time that is believed, ns.
const LATENCY_MAX: u64 = 60_000_000_000;
/// Service time, ns: nobody has published one.
const LATENCY: u64 = 200_000;

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    let d = setup.device;
    if d.poll_queues.is_some_and(|queues| queues > 0) {
        return setup.error("poll_queues", "such a host polls nothing");
    }
    let queues = d.nr_queues.unwrap_or(1);
    setup.within("nr_queues", queues.into(), 1, setup.machine.cpus.into())?;
    let size_gb = d.size_gb.unwrap_or(1000);
    setup.within("size_gb", size_gb, 1, 1 << 20)?;
    let fc = model(setup)?;
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::Fc(fc),
            name: setup.name.clone(),
            sectors: size_gb * 1_000_000_000 / 4096 * 8,
            block_sectors: 1,
            default_queues: queues,
            read_queues: 0,
            poll_queues: 0,
            queue_depth: fc.can_queue,
            // host_tagset: all hardware queues draw from can_queue tags.
            hctx_shared: queues > 1,
            budget: fc.lun_depth,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            fault: setup.fault,
        },
        limits: QueueLimits {
            max_sectors: MAX_HW_SECTORS.min(DEFAULT_CAP),
            max_segments: MAX_SEGMENTS,
            chunk_sectors: 0,
            max_discard_sectors: 0,
            discard_granularity: 1,
            max_discard_segments: 1,
            write_cache: false,
            fua: false,
        },
        max_hw_sectors: MAX_HW_SECTORS,
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

fn model(setup: &Setup<'_>) -> Result<FcPlan> {
    let d = setup.device;
    let can_queue = d.can_queue.unwrap_or(CAN_QUEUE);
    setup.within("can_queue", can_queue.into(), 1, CAN_QUEUE_MAX.into())?;
    let lun_depth = d.cmd_per_lun.unwrap_or(CMD_PER_LUN.min(can_queue));
    setup.within("cmd_per_lun", lun_depth.into(), 1, can_queue.into())?;
    let latency = |parameter: &str, written: Option<u64>, usual: u64| {
        let latency = written.unwrap_or(usual);
        setup.within(parameter, latency, 1, LATENCY_MAX)?;
        Ok::<_, ScenarioError>(Duration(latency))
    };
    let read = latency("latency_ns", d.latency_ns, LATENCY)?;
    let jitter_percent = d.jitter_percent.unwrap_or(0);
    setup.within("jitter_percent", jitter_percent.into(), 0, 100)?;
    Ok(FcPlan {
        can_queue,
        lun_depth,
        latency: OpLatency {
            read,
            write: latency("write_latency_ns", d.write_latency_ns, read.0)?,
            trim: latency("trim_latency_ns", d.trim_latency_ns, read.0)?,
            flush: latency("flush_latency_ns", d.flush_latency_ns, read.0)?,
        },
        jitter_percent,
        read_mbps: d.read_mbps.unwrap_or(LINK_MBPS),
        write_mbps: d.write_mbps.unwrap_or(LINK_MBPS),
    })
}
