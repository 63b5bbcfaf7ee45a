//! The first steps of a bio: flags of flushes without effect are cleared, and a bio that is longer
//! than a request may be is split.
//!
//! Kernel: submit_bio_noacct() in block/blk-core.c, __bio_split_to_limits(), bio_split_rw_at(),
//! get_max_io_size(), bio_split_discard() in block/blk-merge.c (6.1.192, 6.12.117).

use crate::env::TraceAction;
use crate::path::bio_end::ended;
use crate::request::{Bio, BioId, Op, PAGE_SECTORS, Sectors, Status};
use crate::rules::QueueLimits;
use crate::step::{Cx, Next, Traced, trace_with};

/// Without a volatile write cache PREFLUSH and FUA are cleared; a bio that is only a flush then
/// ends, before any trace point: the call of a bio-based device, or a step. `None`: it goes on.
pub(in crate::path) fn strip_flush(cx: &mut Cx<'_>, id: BioId) -> Option<Next> {
    if cx.q.settings.limits.write_cache {
        return None;
    }
    let mut pool = cx.pool();
    if !pool.bio(id).flags.is_flush() {
        return None;
    }
    let bio = pool.bio_mut(id);
    bio.flags.preflush = false;
    bio.flags.fua = false;
    if bio.sectors.0 > 0 {
        return None;
    }
    let whole = pool.end_piece(id, Status::Ok);
    drop(pool);
    Some(ended(cx.q, whole, cx.cpu))
}

/// Result of a split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Split {
    No,
    /// This part comes first, the bio is the rest.
    First(BioId),
    /// The bio may not wait, so it may not be split: it ends with EAGAIN.
    WouldBlock,
}

/// __bio_split_to_limits() of a bio that is longer than a request may be. Trace X.
pub(super) fn split(cx: &mut Cx<'_>, id: BioId) -> Split {
    let mut pool = cx.pool();
    let bio = pool.bio(id);
    let Some(front) = longest_part(&cx.q.settings.limits, bio) else {
        return Split::No;
    };
    if matches!(bio.op, Op::Read | Op::Write) {
        if bio.flags.nowait {
            return Split::WouldBlock;
        }
        // Parts are not polled for: bio_clear_polled().
        pool.bio_mut(id).flags.polled = false;
    }
    let Some(part) = pool.split_bio(id, front) else {
        unreachable!("the plan reserves bio slots for every split");
    };
    let rest = pool.bio(id).sector;
    let traced = Traced::bio(cx.cpu.tracing, &pool, part);
    drop(pool);
    trace_with(cx.cpu, cx.q.id, TraceAction::Split, traced, rest.0);
    Split::First(part)
}

/// Length of the first part if the bio is longer than a request may be.
pub(in crate::path) fn longest_part(limits: &QueueLimits, bio: &Bio) -> Option<Sectors> {
    if bio.op == Op::Discard {
        return longest_discard(limits, bio);
    }
    let mut most = limits.max_sectors;
    if limits.chunk_sectors > 0 {
        let chunk = u64::from(limits.chunk_sectors);
        most = most.min((chunk - bio.sector.0 % chunk) as u32);
    }
    if bio.segments > limits.max_segments {
        let pages = u32::from(limits.max_segments) * PAGE_SECTORS;
        most = most.min(pages - u32::from(bio.page_offset));
    }
    (bio.sectors.0 > most && most > 0).then_some(Sectors(most))
}

/// The same of a discard: whole granules, so that the next part begins with one.
fn longest_discard(limits: &QueueLimits, bio: &Bio) -> Option<Sectors> {
    let most = limits.discard_sectors();
    if most == 0 || bio.sectors.0 <= most {
        return None;
    }
    let granule = u64::from(limits.discard_granularity.max(1));
    let beyond = (bio.sector.0 + u64::from(most)) % granule;
    let whole = most.checked_sub(beyond as u32).filter(|&part| part > 0);
    Some(Sectors(whole.unwrap_or(most)))
}
