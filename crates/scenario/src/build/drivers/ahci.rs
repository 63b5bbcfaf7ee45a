//! A rotational disk: queues as libata requests them from the SCSI mid-layer
//! (drivers/ata/libata-scsi.c, v6.1, v6.12), service as modelled.

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{Driver, Result, Setup};
use crate::parameter::{Parameter, number};
use sim::plan::{AhciPlan, DeviceKind, DevicePlan, NcqOrder};

#[rustfmt::skip]
pub(super) const PARAMETERS: &[Parameter] = &[
    // A disk with NCQ uses one of the 32 less, unless device/queue_depth is written.
    number("queue_depth", 1..=MAX_QUEUE as u64, "commands", 31,
        "commands that the disk has at a time (device/queue_depth); 1: no NCQ"),
    Parameter::word("ncq_order", &["shortest", "arrival"],
        "order in which the disk serves its commands: shortest way first, but commands older \
         than 64 turns at once, or in order of arrival"),
    number("rpm", 1000..=100_000, "turns a minute", 7200,
        "speed of the platters; this and the following defaults are those of drive sata2009"),
    number("cylinders", 3..=10_000_000, "", 150_000, "positions of the arm"),
    number("heads", 1..=64, "", 4, "tracks of a cylinder"),
    number("zones", 1..=1000, "", 16,
        "groups of cylinders with equally many sectors a track; the size follows"),
    number("outer_mb_s", 1..=10_000, "MB/s (10^6 bytes)", 120,
        "sustained rate on the outside, where sector 0 is"),
    number("inner_mb_s", 1..=10_000, "MB/s", 60,
        "the same on the inside, at most outer_mb_s; zones between are linear"),
    number("seek_track_us", 0..=SEEK_MAX, "us", 800, "seek to the next cylinder"),
    number("seek_third_us", 0..=SEEK_MAX, "us", 8500,
        "seek over a third of all cylinders, about the mean of random seeks"),
    number("seek_full_us", 0..=SEEK_MAX, "us", 17_000, "seek over all cylinders"),
    number("head_switch_us", 0..=SEEK_MAX, "us", 800, "switch to the next head of a cylinder"),
    number("overhead_us", 0..=SEEK_MAX, "us", 100, "time of the disk's controller for a command"),
    number("link_mb_s", 1..=100_000, "MB/s", 300, "rate of the link"),
    number("cache_segments", 0..=1024, "segments", 16,
        "segments of the read cache; 0: no read-ahead of the disk"),
    number("segment_kb", 4..=1 << 20, "KiB", 1024,
        "size of a segment, and of the disk's read-ahead"),
    number("write_cache_kb", 0..=1 << 18, "KiB", 8192, "write cache; 0: off"),
    number("count", 1..=1024, "disks", 1, "such disks: sda, sdb ..."),
];

/// Commands of a port (ATA_MAX_QUEUE).
const MAX_QUEUE: u32 = 32;
/// Largest transfer with 48-bit addresses (ATA_MAX_SECTORS_LBA48).
const MAX_HW_SECTORS: u32 = 65_535;
/// Entries of a command's table (AHCI_MAX_SG).
const MAX_SEGMENTS: u16 = 168;
/// Longest plausible seek, us.
const SEEK_MAX: u64 = 1_000_000;

pub(super) fn set_up(setup: &Setup<'_>) -> Result<Driver> {
    let disk = model(setup)?;
    let write_cache = disk.write_cache_sectors > 0;
    Ok(Driver {
        plan: DevicePlan {
            kind: DeviceKind::Ahci(disk),
            name: setup.name.clone(),
            sectors: disk.layout().1 & !7,
            block_sectors: 1,
            default_queues: 1,
            read_queues: 0,
            poll_queues: 0,
            queue_depth: MAX_QUEUE,
            hctx_shared: false,
            budget: disk.queue_depth,
            rotational: true,
            rotational_when_chosen: true,
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
            write_cache,
            // libata.fua is off by default.
            fua: false,
            ..QueueLimits::PLAIN
        },
        max_hw_sectors: MAX_HW_SECTORS,
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

fn model(setup: &Setup<'_>) -> Result<AhciPlan> {
    if setup.device.has("poll_queues") {
        return setup.error("poll_queues", "libata polls no disk");
    }
    let [cylinders, zones, outer, inner] =
        ["cylinders", "zones", "outer_mb_s", "inner_mb_s"].map(|name| setup.count(name));
    if zones > cylinders {
        return setup.error("zones", format!("there are {cylinders} cylinders only"));
    }
    if inner > outer {
        let what = format!("{inner} is above outer_mb_s={outer}: outer tracks are longer");
        return setup.error("inner_mb_s", what);
    }
    for (longer, shorter) in [
        ("seek_third_us", "seek_track_us"),
        ("seek_full_us", "seek_third_us"),
    ] {
        if setup.get(longer) < setup.get(shorter) {
            return setup.error(longer, format!("a longer way takes no less than {shorter}"));
        }
    }
    let micros = |name| Duration::from_micros(setup.get(name));
    let bytes = |name| setup.get(name) * 1_000_000;
    let order = setup.device.parameters.get("ncq_order");
    let order = order.and_then(|written| written.as_str());
    let mut orders = NcqOrder::ALL.into_iter();
    Ok(AhciPlan {
        queue_depth: setup.count("queue_depth"),
        order: orders
            .find(|known| Some(known.name()) == order)
            .unwrap_or(NcqOrder::Shortest),
        rpm: setup.count("rpm"),
        cylinders,
        heads: setup.count("heads"),
        zones,
        outer_bytes: bytes("outer_mb_s"),
        inner_bytes: bytes("inner_mb_s"),
        seek_track: micros("seek_track_us"),
        seek_third: micros("seek_third_us"),
        seek_full: micros("seek_full_us"),
        head_switch: micros("head_switch_us"),
        overhead: micros("overhead_us"),
        link_bytes: bytes("link_mb_s"),
        segments: setup.count("cache_segments"),
        segment_sectors: setup.get("segment_kb") * 2,
        write_cache_sectors: setup.get("write_cache_kb") * 2,
    })
}
