//! A Fibre Channel host: queues and units as an adapter's driver requests them from the SCSI
//! mid-layer (drivers/scsi/qla2xxx/qla_os.c: sg_tablesize, max_sectors; MAX_Q_DEPTH), service as
//! modelled.

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{Driver, Result, Setup};
use crate::parameter::{Parameter, number};
use sim::plan::{DeviceKind, DevicePlan, FcPlan, OpLatency};

#[rustfmt::skip]
pub(super) const PARAMETERS: &[Parameter] = &[
    number("add_host", 1..=1024, "hosts", 1, "hosts, each with tags and a link of its own"),
    number("max_luns", 1..=1024, "units", 1,
        "logical units of a host, each a disk: sda, sdb ...; at most 1024 in all"),
    number("can_queue", 1..=10_240, "commands", CAN_QUEUE,
        "commands of a host, shared by its units and hardware queues"),
    number("cmd_per_lun", 1..=10_240, "commands", 0,
        "commands of a logical unit (device/queue_depth), at most can_queue")
            .or("32, as qla2xxx has it, or can_queue if that is less"),
    number("nr_queues", 1..=65_535, "queues", 1,
        "hardware queues, at most the number of CPUs, each with an interrupt; several share \
         one tag map (host_tagset)"),
    number("latency_ns", 1..=LATENCY_MAX, "ns", LATENCY,
        "time of a read from the end of its wait for the link to the answer; the default is an \
         assumption"),
    number("write_latency_ns", 1..=LATENCY_MAX, "ns", 0, "the same of a write").or("latency_ns"),
    number("trim_latency_ns", 1..=LATENCY_MAX, "ns", 0, "the same of a discard").or("latency_ns"),
    number("flush_latency_ns", 1..=LATENCY_MAX, "ns", 0, "the same of a flush").or("latency_ns"),
    number("jitter_percent", 0..=100, "percent", 0, "spread of these times up and down"),
    number("read_mbps", 0..=u32::MAX as u64, "MiB/s", LINK_MBPS,
        "rate of the link to the host; 0: no limit. 16GFC"),
    number("write_mbps", 0..=u32::MAX as u64, "MiB/s", LINK_MBPS, "rate of the link from the host"),
    number("size_gb", 1..=1 << 20, "GB (10^9 bytes)", 1000, "size"),
];

/// Commands of an adapter of 16 Gbit/s.
const CAN_QUEUE: u64 = 2000;
/// Depth of a unit with qla2xxx.
const CMD_PER_LUN: u32 = 32;
/// SG_ALL.
const MAX_SEGMENTS: u16 = 128;
/// max_sectors of qla2xxx.
const MAX_HW_SECTORS: u32 = 0xffff;
/// 16GFC in one direction, MiB/s: 1600 MB/s.
const LINK_MBPS: u64 = 1525;
/// Longest plausible service time, ns.
const LATENCY_MAX: u64 = 60_000_000_000;
/// Service time, ns: no value is published.
const LATENCY: u64 = 200_000;

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    if setup.device.has("poll_queues") {
        return setup.error("poll_queues", "such a host polls nothing");
    }
    let queues = setup.get("nr_queues");
    setup.within("nr_queues", queues, 1, setup.machine.cpus.into())?;
    let fc = model(setup)?;
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::Fc(fc),
            name: setup.name.clone(),
            sectors: setup.get("size_gb") * 1_000_000_000 / 4096 * 8,
            block_sectors: 1,
            default_queues: queues as u16,
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
            service_times: Vec::new(),
        },
        limits: QueueLimits {
            max_sectors: MAX_HW_SECTORS.min(setup.rules.default_max_sectors),
            max_segments: MAX_SEGMENTS,
            chunk_sectors: 0,
            max_discard_sectors: 0,
            discard_granularity: 1,
            max_discard_segments: 1,
            write_cache: false,
            fua: false,
            ..QueueLimits::PLAIN
        },
        max_hw_sectors: MAX_HW_SECTORS,
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

fn model(setup: &Setup<'_>) -> Result<FcPlan> {
    let d = setup.device;
    let can_queue = setup.count("can_queue");
    let lun_depth = d.number("cmd_per_lun");
    let lun_depth = lun_depth.unwrap_or(u64::from(CMD_PER_LUN.min(can_queue)));
    setup.within("cmd_per_lun", lun_depth, 1, can_queue.into())?;
    let read = setup.get("latency_ns");
    let or_read = |name| Duration(d.number(name).unwrap_or(read));
    Ok(FcPlan {
        can_queue,
        lun_depth: lun_depth as u32,
        latency: OpLatency {
            read: Duration(read),
            write: or_read("write_latency_ns"),
            trim: or_read("trim_latency_ns"),
            flush: or_read("flush_latency_ns"),
        },
        jitter_percent: setup.get("jitter_percent") as u8,
        read_mbps: setup.count("read_mbps"),
        write_mbps: setup.count("write_mbps"),
    })
}
