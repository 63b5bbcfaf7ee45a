//! Reads through the page cache in a scenario: which jobs can, and how far the kernel reads ahead.

use trace::fio::{FadviseHint, FioEngine, FioJob};

use super::{Asked, names_buffering};
use crate::{Result, Scenario};
use sim::page_cache::{PAGE_BYTES, PAGE_SECTORS};
use sim::plan::{BufferedPlan, DiskPlan, ThreadPlan};
use sim::readahead::Advice;

/// queue/read_ahead_kb of a device without its own (VM_MAX_READAHEAD).
const READ_AHEAD_KB: u32 = 128;
/// Largest plausible value.
const READ_AHEAD_KB_MAX: u32 = 65536;
/// Memory of the page cache of a scenario without `page_cache_mb`, MiB.
const CACHE_MB: u32 = 1024;
/// Most of it: the simulation needs one byte for a hundred of this.
const CACHE_MB_MAX: u32 = 16384;
const CACHE_MB_MIN: u32 = 16;

/// queue/read_ahead_kb in pages.
pub(super) fn read_ahead_pages(asked: &Asked<'_>) -> Result<u64> {
    let kb = asked.queue.read_ahead_kb.unwrap_or(READ_AHEAD_KB);
    let page_kb = (PAGE_BYTES / 1024) as u32;
    if kb > READ_AHEAD_KB_MAX || !kb.is_multiple_of(page_kb) {
        let what = format!("{kb} is not 0 to {READ_AHEAD_KB_MAX} in whole pages of {page_kb}");
        return Err(asked.error("read_ahead_kb", what));
    }
    Ok(u64::from(kb / page_kb))
}

/// Reads of this job go through the page cache.
fn is_buffered(job: &FioJob) -> bool {
    let none = [FioEngine::Null, FioEngine::IoUringCmd];
    !job.direct && names_buffering(job) && !none.contains(&job.ioengine)
}

pub(super) fn buffered(job: &FioJob) -> Option<BufferedPlan> {
    let advice = match job.fadvise_hint {
        FadviseHint::None => Advice::Normal,
        FadviseHint::ByType if job.rw.random => Advice::Random,
        FadviseHint::ByType | FadviseHint::Sequential => Advice::Sequential,
        FadviseHint::Random => Advice::Random,
    };
    is_buffered(job).then_some(BufferedPlan {
        advice,
        invalidates: job.invalidate,
        file_system: false,
    })
}

/// An option that buffered I/O cannot have, and why.
pub(super) fn refused(job: &FioJob, disk: &DiskPlan) -> Option<(&'static str, String)> {
    if !is_buffered(job) {
        return None;
    }
    let option = match job.setting("buffered").is_some() {
        true => "buffered",
        false => "direct",
    };
    if disk.below().is_empty() {
        return None;
    }
    let device = &disk.device.name;
    let what = format!("{device} is mapped: the page cache over such a device is not modelled");
    Some((option, what))
}

/// Pages of the longest read of a thread.
pub(super) fn pages_asked(thread: &ThreadPlan) -> u64 {
    // One more where it does not begin with a page.
    u64::from(thread.block.read.max_sectors).div_ceil(PAGE_SECTORS) + 1
}

/// Pages that the page cache holds of each disk; 0: no thread reads through it.
pub(super) fn cache_pages(
    scenario: &Scenario,
    disks: &[DiskPlan],
    threads: &[ThreadPlan],
) -> Result<usize> {
    let mb = scenario.machine.page_cache_mb.unwrap_or(CACHE_MB);
    if !(CACHE_MB_MIN..=CACHE_MB_MAX).contains(&mb) {
        let what = format!("{mb} is not {CACHE_MB_MIN} to {CACHE_MB_MAX}");
        return Err(scenario.error("machine.page_cache_mb", what));
    }
    let readers = threads.iter().filter(|thread| thread.buffered.is_some());
    let wanted = readers.map(|thread| {
        let of_file = thread.files.iter().map(|file| {
            let queue = &disks[file.disk.index()].queue;
            queue.pages_under_read(pages_asked(thread))
        });
        of_file.max().unwrap_or(0)
    });
    let wanted: u64 = wanted.sum();
    let pages = (u64::from(mb) << 20) / PAGE_BYTES;
    if wanted > pages {
        let what =
            format!("{mb} MiB are too few: all readers may have {wanted} pages under read at once");
        return Err(scenario.error("machine.page_cache_mb", what));
    }
    Ok(if wanted == 0 { 0 } else { pages as usize })
}
