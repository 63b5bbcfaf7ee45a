//! Limits of a device, and those that sysfs does not show to the sector.
//!
//! Kernel: block/blk-settings.c, block/blk-sysfs.c.

use blkmq::rules::QueueLimits;
use trace::capture::CaptureDir;
use trace::queue_txt::DeviceQueue;

use super::positive;
use crate::Error;
use crate::event::{self, LONGEST};

/// max_sectors of a driver that sets none: BLK_SAFE_MAX_SECTORS.
const SAFE_MAX_SECTORS: u32 = 255;

/// The limits in queue.txt, and in sectors if another source has them.
pub(super) fn of(
    dir: &CaptureDir,
    queue: &DeviceQueue,
    null_blk: bool,
) -> Result<(QueueLimits, Option<OddLimit>), Error> {
    let mut limits = limits(queue)?;
    let odd = OddLimit::find(dir, queue, null_blk)?;
    limits.max_sectors += u32::from(odd.is_some());
    Ok((limits, odd))
}

pub(super) fn limits(queue: &DeviceQueue) -> Result<QueueLimits, Error> {
    let small = |name: &str| -> Result<u32, Error> {
        Ok(queue.number(name)?.clamp(0, i64::from(u32::MAX)) as u32)
    };
    let granularity = match queue.attributes.contains_key("discard_granularity") {
        true => (queue.number("discard_granularity")? / 512).clamp(0, i64::from(u32::MAX)) as u32,
        // Unknown: no discard is split at one.
        false => 0,
    };
    Ok(QueueLimits {
        max_sectors: positive(queue, "max_sectors_kb")?
            .saturating_mul(2)
            .min(LONGEST),
        max_segments: positive(queue, "max_segments")?.min(u32::from(u16::MAX)) as u16,
        chunk_sectors: small("chunk_sectors")?,
        max_discard_sectors: (queue.number("discard_max_bytes")? / 512)
            .clamp(0, i64::from(u32::MAX)) as u32,
        discard_granularity: granularity,
        max_discard_segments: small("max_discard_segments")?.clamp(1, u32::from(u16::MAX)) as u16,
        write_cache: queue.attribute("write_cache")? == "write back",
        fua: queue.number("fua")? != 0,
        ..QueueLimits::PLAIN
    })
}

/// How an odd max_sectors is known: sysfs shows whole kilobytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OddLimit {
    Parameter,
    /// null_blk sets none, and the block layer gives 255 (BLK_SAFE_MAX_SECTORS).
    NullBlk,
    Split,
}

impl OddLimit {
    /// Of a device whose max_sectors_kb, in sectors, is one less.
    fn find(
        dir: &CaptureDir,
        queue: &DeviceQueue,
        null_blk: bool,
    ) -> Result<Option<OddLimit>, Error> {
        let kilobytes = positive(queue, "max_sectors_kb")?;
        let blocks = queue.attributes.get("logical_block_size");
        if blocks.is_some_and(|size| size != "512") || kilobytes >= LONGEST / 2 {
            return Ok(None);
        }
        let odd = 2 * kilobytes + 1;
        let parameter = dir.meta.device.parameters.get("max_sectors");
        let hardware = queue.attributes.get("max_hw_sectors_kb");
        let whole = hardware.is_none_or(|most| *most == kilobytes.to_string());
        Ok(match parameter.filter(|_| null_blk) {
            Some(given) if whole && *given == odd.to_string() => Some(OddLimit::Parameter),
            None if null_blk && whole && odd == SAFE_MAX_SECTORS => Some(OddLimit::NullBlk),
            _ if event::is_cut_at(dir, &queue.name, odd)? => Some(OddLimit::Split),
            _ => None,
        })
    }

    pub(super) const fn reason(self) -> &'static str {
        match self {
            OddLimit::Parameter => "as its parameter max_sectors says",
            OddLimit::NullBlk => "what null_blk has without a parameter max_sectors",
            OddLimit::Split => "where a bio was cut, an X in its blktrace",
        }
    }
}
