//! An NVMe drive: queues as drivers/nvme/host/pci.c requests them (v6.1, v6.12), service as
//! modelled.

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{Driver, Result, Setup};
use crate::Device;
use crate::parameter::{Parameter, number, switch};
use sim::plan::{DeviceKind, DevicePlan, Jitter, NvmePlan, OpLatency};

#[rustfmt::skip]
pub(super) const PARAMETERS: &[Parameter] = &[
    number("io_queue_depth", 2..=4095, "entries", 1024,
        "size of a submission queue; tags are one less"),
    number("write_queues", 0..=65_535, "queues", 0,
        "queues for writes only, at most the number of CPUs; 0: shared"),
    number("poll_queues", 0..=65_535, "queues", 0,
        "queues for polled I/O, at most the number of CPUs"),
    number("nr_queues", 1..=65_535, "queues", 0,
        "I/O queues that the drive offers").or("as many as the driver asks for"),
    number("latency_ns", 1..=LATENCY_MAX, "ns", 60_000,
        "service time of a read, the mean of 4 KiB; with the channels, the default is like a \
         Samsung 980 Pro: 780,000 random reads a second, 68 us at the application"),
    number("write_latency_ns", 1..=LATENCY_MAX, "ns", 0, "service time of a write").or(
        "latency_ns, or 20000 if that is not given (an assumption: writes end in the drive's \
         buffer)"),
    number("trim_latency_ns", 1..=LATENCY_MAX, "ns", 0,
        "service time of a discard").or("latency_ns"),
    number("flush_latency_ns", 1..=LATENCY_MAX, "ns", 0,
        "service time of a flush").or("latency_ns"),
    switch("jitter", "commands differ in time by page and size, as those of flash \
         (docs/explanation/model.md); 0: each takes its latency").or("1"),
    number("jitter_percent", 0..=100, "percent", 0,
        "the same spread up and down for all sizes, in place of that of flash").or("as flash"),
    number("channels", 1..=65_536, "commands", 47, "commands served side by side"),
    number("dies", 0..=65_536, "dies", 0,
        "dies of the flash: a read waits for other reads of its dies, which are drawn; 0: only \
         for channels"),
    number("die_ns", 1..=LATENCY_MAX, "ns", 0,
        "time that a read of up to 16 KiB keeps its die busy, at most latency_ns; with the \
         jitter of flash the mean; needs dies").or("none"),
    number("iops_max", 0..=U32_MAX, "IOPS", 0, "limit; 0: none but the channels"),
    number("mbps", 0..=U32_MAX, "MiB/s", 0,
        "bandwidth limit of reads and writes together; 0: none"),
    number("read_mbps", 0..=U32_MAX, "MiB/s", READ_MBPS,
        "bandwidth limit of reads; 0: none, also the default if mbps is given. 7000 MB/s, data \
         sheet of the Samsung 980 Pro of 1 TB"),
    number("write_mbps", 0..=U32_MAX, "MiB/s", WRITE_MBPS, "the same of writes: 5000 MB/s"),
    number("coalesce_threshold", 1..=256, "completions", 1,
        "completions that an interrupt waits for (feature 08h, counted from 1); 1: off, as the \
         driver leaves it"),
    number("coalesce_time", 0..=255, "x 100 us", 0, "longest wait for them"),
    number("irq_delay_ns", 0..=LATENCY_MAX, "ns", 0, "time from completion entry to interrupt"),
    switch("volatile_cache", "a volatile write cache: flushes are sent"),
    number("size_gb", 1..=1 << 20, "GB (10^9 bytes)", 1000, "size"),
    number("mdts_kb", 0..=1 << 20, "KiB", 0,
        "largest transfer, at least 4; 0: the driver's limit, 4096 (v6.1) or 8192"),
    number("count", 1..=1024, "drives", 1, "such drives: nvme0n1, nvme1n1 ..."),
];

/// Samsung 980 Pro of 1 TB, data sheet: sequential reads at 7000 MB/s, in MiB/s.
const READ_MBPS: u64 = 6675;
/// The same of sequential writes, 5000 MB/s.
const WRITE_MBPS: u64 = 4768;
/// Longest plausible service time, ns.
const LATENCY_MAX: u64 = 60_000_000_000;
/// Largest limit that a plan holds.
const U32_MAX: u64 = u32::MAX as u64;

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    let (default_queues, read_queues, poll_queues) = queues(setup)?;
    let write_cache = setup.on("volatile_cache");
    let hw_kb = match setup.count("mdts_kb") {
        0 => setup.rules.nvme_max_kb,
        given => {
            setup.within("mdts_kb", u64::from(given), 4, 1 << 20)?;
            given.min(setup.rules.nvme_max_kb)
        }
    };
    let max_hw_sectors = hw_kb * 2;
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::Nvme(model(setup, write_cache)?),
            name: setup.name.clone(),
            sectors: (setup.get("size_gb") * 1_000_000_000 / 512) & !7,
            block_sectors: 1,
            default_queues,
            read_queues,
            poll_queues,
            // One slot stays empty, so that full and empty differ.
            queue_depth: setup.count("io_queue_depth") - 1,
            hctx_shared: false,
            budget: 0,
            rotational: false,
            rotational_when_chosen: false,
            access_ranges: Vec::new(),
            fault: setup.fault,
            service_times: Vec::new(),
        },
        limits: QueueLimits {
            max_sectors: max_hw_sectors.min(setup.rules.default_max_sectors),
            max_segments: (max_hw_sectors / 8 + 1).min(u32::from(setup.rules.nvme_max_segments))
                as u16,
            chunk_sectors: 0,
            max_discard_sectors: u32::MAX,
            discard_granularity: 1,
            max_discard_segments: 256,
            write_cache,
            fua: write_cache,
            ..QueueLimits::PLAIN
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
    for parameter in ["write_queues", "poll_queues"] {
        setup.within(parameter, setup.get(parameter), 0, cpus.into())?;
    }
    let [write, poll] = ["write_queues", "poll_queues"].map(|name| setup.get(name) as u16);
    let asked = cpus + write + poll;
    let got = d
        .count("nr_queues")
        .map_or(asked, |offered| asked.min(offered));
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
    let read = setup.get("latency_ns");
    let or_read = |name| d.number(name).unwrap_or(read);
    let usual = if d.number("latency_ns").is_some() {
        read
    } else {
        20_000
    };
    let (dies, die_time) = dies(setup, read)?;
    let (coalesce_count, coalesce_time) = (
        setup.count("coalesce_threshold"),
        setup.get("coalesce_time"),
    );
    if coalesce_count > 1 && coalesce_time == 0 {
        let what = "needs coalesce_time: without it a last completion would wait for ever";
        return setup.error("coalesce_threshold", what);
    }
    // A limit of both together describes another kind of drive.
    let limit = |name| match d.number(name) {
        None if d.number("mbps").is_some() => 0,
        _ => setup.count(name),
    };
    Ok(NvmePlan {
        latency: OpLatency {
            read: Duration(read),
            write: Duration(d.number("write_latency_ns").unwrap_or(usual)),
            trim: Duration(or_read("trim_latency_ns")),
            flush: Duration(or_read("flush_latency_ns")),
        },
        jitter: jitter(d),
        channels: setup.count("channels"),
        dies,
        die_time,
        iops_max: setup.count("iops_max"),
        mbps: setup.count("mbps"),
        read_mbps: limit("read_mbps"),
        write_mbps: limit("write_mbps"),
        coalesce_count,
        coalesce_time: Duration::from_micros(100 * coalesce_time),
        irq_delay: Duration(setup.get("irq_delay_ns")),
        volatile_cache,
    })
}

/// A percentage that is written goes before the spread of flash, and no spread before both.
fn jitter(device: &Device) -> Jitter {
    match (device.number("jitter"), device.number("jitter_percent")) {
        (Some(0), _) => Jitter::Percent(0),
        (_, Some(percent)) => Jitter::Percent(percent as u8),
        (_, None) => Jitter::Flash,
    }
}

/// Dies, and how long a read keeps one busy.
fn dies(setup: &Setup<'_>, read: u64) -> Result<(u32, Duration)> {
    let (dies, time) = (setup.count("dies"), setup.device.number("die_ns"));
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
