//! A rotational disk: queues as libata gives them to the SCSI mid-layer (drivers/ata/libata-scsi.c,
//! v6.1, v6.12), service as our model has it.

use blkmq::rules::QueueLimits;
use blkmq::time::Duration;

use super::{DEFAULT_CAP, Driver, Result, Setup};
use sim::plan::{AhciPlan, DeviceKind, DevicePlan, NcqOrder};

pub(super) const PARAMETERS: &[&str] = &[
    "queue_depth",
    "ncq_order",
    "rpm",
    "cylinders",
    "heads",
    "zones",
    "outer_mb_s",
    "inner_mb_s",
    "seek_track_us",
    "seek_third_us",
    "seek_full_us",
    "head_switch_us",
    "overhead_us",
    "link_mb_s",
    "cache_segments",
    "segment_kb",
    "write_cache_kb",
    "count",
];

/// Commands of a port (ATA_MAX_QUEUE).
const MAX_QUEUE: u32 = 32;
/// Of those a disk with NCQ has one less at a time, until device/queue_depth says otherwise.
const DEFAULT_DEPTH: u32 = MAX_QUEUE - 1;
/// Largest transfer with 48-bit addresses (ATA_MAX_SECTORS_LBA48).
const MAX_HW_SECTORS: u32 = 65_535;
/// Entries of a command's table (AHCI_MAX_SG).
const MAX_SEGMENTS: u16 = 168;
/// Longest movement that is believed, us.
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
        },
        limits: QueueLimits {
            max_sectors: MAX_HW_SECTORS.min(DEFAULT_CAP),
            max_segments: MAX_SEGMENTS,
            chunk_sectors: 0,
            max_discard_sectors: 0,
            discard_granularity: 1,
            max_discard_segments: 1,
            write_cache,
            // libata.fua is off by default.
            fua: false,
        },
        max_hw_sectors: MAX_HW_SECTORS,
        io_timeout: Duration::from_secs(30),
        no_sched: false,
    })
}

fn model(setup: &Setup<'_>) -> Result<AhciPlan> {
    let d = setup.device;
    if d.poll_queues.is_some_and(|queues| queues > 0) {
        return setup.error("poll_queues", "libata polls no disk");
    }
    let numbers = [
        ("queue_depth", d.queue_depth, DEFAULT_DEPTH, 1u32, MAX_QUEUE),
        ("rpm", d.rpm, 7200, 1000, 100_000),
        ("cylinders", d.cylinders, 150_000, 3, 10_000_000),
        ("heads", d.heads, 4, 1, 64),
        ("zones", d.zones, 16, 1, 1000),
        ("outer_mb_s", d.outer_mb_s, 120, 1, 10_000),
        ("inner_mb_s", d.inner_mb_s, 60, 1, 10_000),
        ("link_mb_s", d.link_mb_s, 300, 1, 100_000),
        ("cache_segments", d.cache_segments, 16, 0, 1024),
        ("segment_kb", d.segment_kb, 1024, 4, 1 << 20),
        ("write_cache_kb", d.write_cache_kb, 8192, 0, 1 << 18),
    ];
    let mut told = [0; 11];
    for (told, (parameter, written, usual, least, most)) in told.iter_mut().zip(numbers) {
        *told = written.unwrap_or(usual);
        setup.within(
            parameter,
            u64::from(*told),
            u64::from(least),
            u64::from(most),
        )?;
    }
    let [
        queue_depth,
        rpm,
        cylinders,
        heads,
        zones,
        outer,
        inner,
        link,
        segments,
        segment_kb,
        write_cache_kb,
    ] = told;
    if zones > cylinders {
        return setup.error("zones", format!("there are {cylinders} cylinders only"));
    }
    if inner > outer {
        let what = format!("{inner} is above outer_mb_s={outer}: outer tracks are longer");
        return setup.error("inner_mb_s", what);
    }
    let [seek_track, seek_third, seek_full, head_switch, overhead] = times(setup)?;
    Ok(AhciPlan {
        queue_depth,
        order: order(setup)?,
        rpm,
        cylinders,
        heads,
        zones,
        outer_bytes: u64::from(outer) * 1_000_000,
        inner_bytes: u64::from(inner) * 1_000_000,
        seek_track,
        seek_third,
        seek_full,
        head_switch,
        overhead,
        link_bytes: u64::from(link) * 1_000_000,
        segments,
        segment_sectors: u64::from(segment_kb) * 2,
        write_cache_sectors: u64::from(write_cache_kb) * 2,
    })
}

/// Times of the arm: to the next cylinder, over a third, over all, to the next head; and that of a
/// command.
fn times(setup: &Setup<'_>) -> Result<[Duration; 5]> {
    let d = setup.device;
    let written = [
        ("seek_track_us", d.seek_track_us, 800),
        ("seek_third_us", d.seek_third_us, 8500),
        ("seek_full_us", d.seek_full_us, 17_000),
        ("head_switch_us", d.head_switch_us, 800),
        ("overhead_us", d.overhead_us, 100),
    ];
    let mut times = [Duration::ZERO; 5];
    for (time, (parameter, written, usual)) in times.iter_mut().zip(written) {
        let micros = written.unwrap_or(usual);
        setup.within(parameter, micros, 0, SEEK_MAX)?;
        *time = Duration::from_micros(micros);
    }
    let [track, third, full, ..] = times;
    if third < track {
        return setup.error(
            "seek_third_us",
            "a longer way takes no less than seek_track_us",
        );
    }
    if full < third {
        return setup.error(
            "seek_full_us",
            "a longer way takes no less than seek_third_us",
        );
    }
    Ok(times)
}

fn order(setup: &Setup<'_>) -> Result<NcqOrder> {
    let Some(written) = setup.device.ncq_order.as_deref() else {
        return Ok(NcqOrder::Shortest);
    };
    let mut all = NcqOrder::ALL.into_iter();
    match all.find(|order| order.name() == written) {
        Some(order) => Ok(order),
        None => {
            let names = NcqOrder::ALL.map(NcqOrder::name).join(" nor ");
            setup.error("ncq_order", format!("`{written}` is neither {names}"))
        }
    }
}
