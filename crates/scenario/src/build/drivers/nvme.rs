//! An NVMe drive: queues as drivers/nvme/host/pci.c asks for them (v6.1, v6.12), service as our
//! model has it.

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{DEFAULT_CAP, Driver, Result, Setup};
use sim::plan::{DeviceKind, DevicePlan, NvmePlan, OpLatency};

pub(super) const PARAMETERS: &[&str] = &[
    "io_queue_depth",
    "write_queues",
    "poll_queues",
    "nr_queues",
    "latency_ns",
    "write_latency_ns",
    "trim_latency_ns",
    "flush_latency_ns",
    "jitter_percent",
    "channels",
    "dies",
    "die_ns",
    "iops_max",
    "mbps",
    "read_mbps",
    "write_mbps",
    "coalesce_threshold",
    "coalesce_time",
    "irq_delay_ns",
    "volatile_cache",
    "size_gb",
    "mdts_kb",
    "count",
];

/// Samsung 980 Pro of 1 TB, data sheet: sequential reads at 7000 MB/s, in MiB/s.
const READ_MBPS: u32 = 6675;
/// The same of sequential writes, 5000 MB/s.
const WRITE_MBPS: u32 = 4768;
/// Longest service time that is believed, ns.
const LATENCY_MAX: u64 = 60_000_000_000;

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    let d = setup.device;
    let io_queue_depth = d.io_queue_depth.unwrap_or(1024);
    setup.within("io_queue_depth", u64::from(io_queue_depth), 2, 4095)?;
    let size_gb = d.size_gb.unwrap_or(1000);
    setup.within("size_gb", size_gb, 1, 1 << 20)?;
    let (default_queues, read_queues, poll_queues) = queues(setup)?;
    let write_cache = d.volatile_cache.is_some_and(|switch| switch.0);
    let hw_kb = match d.mdts_kb.unwrap_or(0) {
        0 => setup.rules.nvme_max_kb,
        told => {
            setup.within("mdts_kb", u64::from(told), 4, 1 << 20)?;
            told.min(setup.rules.nvme_max_kb)
        }
    };
    let max_hw_sectors = hw_kb * 2;
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::Nvme(model(setup, write_cache)?),
            name: setup.name.clone(),
            sectors: (size_gb * 1_000_000_000 / 512) & !7,
            block_sectors: 1,
            default_queues,
            read_queues,
            poll_queues,
            // One slot stays empty, so that full and empty differ.
            queue_depth: io_queue_depth - 1,
            hctx_shared: false,
            budget: 0,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            fault: setup.fault,
        },
        limits: QueueLimits {
            max_sectors: max_hw_sectors.min(DEFAULT_CAP),
            max_segments: (max_hw_sectors / 8 + 1).min(u32::from(setup.rules.nvme_max_segments))
                as u16,
            chunk_sectors: 0,
            max_discard_sectors: u32::MAX,
            discard_granularity: 1,
            max_discard_segments: 256,
            write_cache,
            fua: write_cache,
        },
        max_hw_sectors,
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

/// Default, read and poll queues: nvme_setup_irqs() and nvme_calc_irq_sets(), one vector for each
/// queue that is not polled.
fn queues(setup: &Setup<'_>) -> Result<(u16, u16, u16)> {
    let d = setup.device;
    let cpus = setup.machine.cpus;
    let (write, poll) = (d.write_queues.unwrap_or(0), d.poll_queues.unwrap_or(0));
    setup.within("write_queues", u64::from(write), 0, u64::from(cpus))?;
    setup.within("poll_queues", u64::from(poll), 0, u64::from(cpus))?;
    let asked = cpus + write + poll;
    let got = match d.nr_queues {
        None => asked,
        Some(offered) => {
            setup.within("nr_queues", u64::from(offered), 1, 65_535)?;
            asked.min(offered)
        }
    };
    let poll = poll.min(got - 1);
    let vectors = got - poll;
    let read = if vectors == 1 || write == 0 {
        0
    } else if write >= vectors {
        1
    } else {
        vectors - write
    };
    // A map has at most one queue a CPU; vectors beyond that stay unused.
    Ok(((vectors - read).min(cpus), read.min(cpus), poll))
}

fn model(setup: &Setup<'_>, volatile_cache: bool) -> Result<NvmePlan> {
    let d = setup.device;
    let read = d.latency_ns.unwrap_or(60_000);
    let write = d
        .write_latency_ns
        .unwrap_or(if d.latency_ns.is_some() { read } else { 20_000 });
    let trim = d.trim_latency_ns.unwrap_or(read);
    let flush = d.flush_latency_ns.unwrap_or(read);
    for (parameter, time) in [
        ("latency_ns", read),
        ("write_latency_ns", write),
        ("trim_latency_ns", trim),
        ("flush_latency_ns", flush),
    ] {
        setup.within(parameter, time, 1, LATENCY_MAX)?;
    }
    let jitter_percent = d.jitter_percent.unwrap_or(0);
    setup.within("jitter_percent", u64::from(jitter_percent), 0, 100)?;
    let channels = d.channels.unwrap_or(47);
    setup.within("channels", u64::from(channels), 1, 65_536)?;
    let (dies, die_time) = dies(setup, read)?;
    let coalesce_count = d.coalesce_threshold.unwrap_or(1);
    setup.within("coalesce_threshold", u64::from(coalesce_count), 1, 256)?;
    let coalesce_time = d.coalesce_time.unwrap_or(0);
    setup.within("coalesce_time", u64::from(coalesce_time), 0, 255)?;
    if coalesce_count > 1 && coalesce_time == 0 {
        let what = "needs coalesce_time: without it a last completion would wait for ever";
        return setup.error("coalesce_threshold", what);
    }
    let irq_delay = d.irq_delay_ns.unwrap_or(0);
    setup.within("irq_delay_ns", irq_delay, 0, LATENCY_MAX)?;
    // Who limits both together describes another drive.
    let by_data_sheet = |mbps| if d.mbps.is_some() { 0 } else { mbps };
    Ok(NvmePlan {
        latency: OpLatency {
            read: Duration(read),
            write: Duration(write),
            trim: Duration(trim),
            flush: Duration(flush),
        },
        jitter_percent,
        channels,
        dies,
        die_time,
        iops_max: d.iops_max.unwrap_or(0),
        mbps: d.mbps.unwrap_or(0),
        read_mbps: d.read_mbps.unwrap_or(by_data_sheet(READ_MBPS)),
        write_mbps: d.write_mbps.unwrap_or(by_data_sheet(WRITE_MBPS)),
        coalesce_count,
        coalesce_time: Duration::from_micros(100 * u64::from(coalesce_time)),
        irq_delay: Duration(irq_delay),
        volatile_cache,
    })
}

/// Dies, and how long a read keeps one.
fn dies(setup: &Setup<'_>, read: u64) -> Result<(u32, Duration)> {
    let (dies, time) = (setup.device.dies.unwrap_or(0), setup.device.die_ns);
    setup.within("dies", u64::from(dies), 0, 65_536)?;
    match (dies, time) {
        (0, None) => Ok((0, Duration::ZERO)),
        (0, Some(_)) => setup.error("die_ns", "needs dies: nothing else waits for one"),
        (_, None) => setup.error("dies", "needs die_ns: how long a read keeps a die busy"),
        (_, Some(time)) => {
            setup.within("die_ns", time, 1, read)?;
            Ok((dies, Duration(time)))
        }
    }
}
