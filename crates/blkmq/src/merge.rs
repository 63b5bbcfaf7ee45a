//! Rules of merges: of a bio with a request, of a request with its successor.
//!
//! Plug, software queues and schedulers share them. Not here: the request that a bio is offered to
//! (the caller chooses it), and a scheduler's look-up ([`MergeIndex`]). Left out, as the model has
//! none of them: REQ_SWAP, integrity, encryption, write hints, atomic writes, segment gaps. Kernel:
//! block/blk-merge.c (v6.1, v6.12), block/blk.h.

mod index;

pub use index::MergeIndex;

use crate::list::QueueList;
use crate::request::{Bio, BioId, Op, Request, RequestId, RequestPool, Sector};
use crate::rules::{DiscardMerge, NoMerges, QueueLimits};

#[derive(Clone, Copy, Debug)]
pub struct Merging<'a> {
    /// Sizes that no merge may exceed.
    pub limits: &'a QueueLimits,
    /// queue/nomerges.
    pub nomerges: NoMerges,
}

/// The side on which a bio joins a request (enum elv_merge).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// After its data; traced as M.
    Back,
    /// Before its data; traced as F.
    Front,
    /// As one more range of a discard, adjacent or not; not traced.
    Discard,
}

/// The result of offering a bio to one request (enum bio_merge_status).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BioTry {
    /// The bio is part of the request.
    Merged(Side),
    /// Not adjacent or not alike: another request may work (BIO_MERGE_NONE).
    NotEligible,
    /// Adjacent, but too large together: no other request is tried (BIO_MERGE_FAILED).
    Failed,
}

/// bio_mergeable(): the bio itself allows it.
pub fn bio_is_mergeable(bio: &Bio) -> bool {
    !bio.flags.nomerge && !bio.flags.is_flush()
}

/// blk_rq_merge_ok(), blk_cgroup_mergeable(): alike enough, wherever they lie.
pub fn may_join(rq: &Request, bio: &Bio, limits: &QueueLimits) -> bool {
    let prios = limits.prios_merge || rq.ioprio == bio.ioprio;
    let groups = limits.cgroups_merge || (rq.group, rq.flags.meta) == (bio.group, bio.flags.meta);
    rq.is_mergeable() && bio_is_mergeable(bio) && rq.op == bio.op && prios && groups
}

/// blk_try_merge(): the side on which `bio` touches `rq`.
pub fn side_of(rq: &Request, bio: &Bio, limits: &QueueLimits) -> Option<Side> {
    if merges_ranges(rq.op, limits) {
        Some(Side::Discard)
    } else if rq.end() == bio.sector {
        Some(Side::Back)
    } else if bio.sector.end(bio.sectors) == rq.sector {
        Some(Side::Front)
    } else {
        None
    }
}

/// The side of `bio`, which ends where `rq` starts, if they may merge.
pub fn front_side(rq: &Request, bio: &Bio, limits: &QueueLimits) -> Option<Side> {
    let side = match joins_as_range(rq.op, limits) {
        true => Side::Discard,
        false => Side::Front,
    };
    may_join(rq, bio, limits).then_some(side)
}

/// blk_discard_mergable(): the device takes several ranges in one discard, so that discards
/// merge without touching.
pub fn merges_ranges(op: Op, limits: &QueueLimits) -> bool {
    op == Op::Discard && limits.max_discard_segments > 1
}

/// A bio that joins a queued one does so as a further range.
pub fn joins_as_range(op: Op, limits: &QueueLimits) -> bool {
    merges_ranges(op, limits) && limits.discard_merge == DiscardMerge::AsRanges
}

/// blk_attempt_bio_merge(): offers `bio` to `rq`. A failure on sizes marks `rq` NOMERGE for good.
pub fn try_bio_merge(
    pool: &mut RequestPool,
    rq: RequestId,
    bio: BioId,
    limits: &QueueLimits,
) -> BioTry {
    if !may_join(&pool[rq], pool.bio(bio), limits) {
        return BioTry::NotEligible;
    }
    match side_of(&pool[rq], pool.bio(bio), limits) {
        None => BioTry::NotEligible,
        Some(side) if attach(pool, rq, bio, side, limits) => BioTry::Merged(side),
        Some(_) => BioTry::Failed,
    }
}

/// Requests that [`try_bio_merge_list`] tries.
const LIST_SCAN: usize = 8;

/// blk_bio_list_merge(): offers `bio` to the newest requests of `list`, newest first, until one
/// accepts it or fails. Used on software queues.
pub fn try_bio_merge_list(
    pool: &mut RequestPool,
    list: &QueueList,
    bio: BioId,
    limits: &QueueLimits,
) -> Option<(RequestId, Side)> {
    let mut candidate = list.last();
    for _ in 0..LIST_SCAN {
        let rq = candidate?;
        match try_bio_merge(pool, rq, bio, limits) {
            BioTry::Merged(side) => return Some((rq, side)),
            BioTry::Failed => return None,
            BioTry::NotEligible => candidate = list.prev(pool, rq),
        }
    }
    None
}

/// bio_attempt_{back,front,discard}_merge(): joins `bio` to `rq` on `side` unless the result would
/// be too large; then marks `rq` NOMERGE and returns false.
pub fn attach(
    pool: &mut RequestPool,
    rq: RequestId,
    bio: BioId,
    side: Side,
    limits: &QueueLimits,
) -> bool {
    let Some(segments) = segments_with_bio(&pool[rq], pool.bio(bio), side, limits) else {
        pool[rq].flags.nomerge = true;
        return false;
    };
    pool[rq].ioprio = pool[rq].ioprio.best(pool.bio(bio).ioprio);
    match side {
        Side::Back | Side::Discard => pool.append_bio(rq, bio),
        Side::Front => pool.prepend_bio(rq, bio),
    }
    pool[rq].segments = segments;
    true
}

/// Segments of `rq` after `bio` joins it, or `None` if it must not.
/// ll_back_merge_fn(), ll_front_merge_fn(), bio_attempt_discard_merge().
fn segments_with_bio(rq: &Request, bio: &Bio, side: Side, limits: &QueueLimits) -> Option<u16> {
    let start = if side == Side::Front {
        bio.sector
    } else {
        rq.sector
    };
    if rq.sectors.0.saturating_add(bio.sectors.0) > max_sectors(rq, start, limits) {
        return None;
    }
    match (side, rq.op) {
        (Side::Discard, _) => {
            let ranges = rq.segments.max(1);
            (ranges < limits.max_discard_segments).then_some(ranges + 1)
        }
        // A discard that grows at an end is still one range.
        (_, Op::Discard) if limits.discard_merge == DiscardMerge::AsRanges => Some(rq.segments),
        _ => fitting_segments(rq, bio.segments, limits),
    }
}

/// Segments of `rq` and `more` together, if the device takes that many.
fn fitting_segments(rq: &Request, more: u16, limits: &QueueLimits) -> Option<u16> {
    let most = match rq.op {
        Op::Discard if limits.discard_merge == DiscardMerge::AsRanges => {
            limits.max_discard_segments
        }
        _ => limits.max_segments,
    };
    rq.segments.checked_add(more).filter(|&total| total <= most)
}

/// blk_rq_get_max_sectors(): the longest that `rq` may be if it starts at `start`.
fn max_sectors(rq: &Request, start: Sector, limits: &QueueLimits) -> u32 {
    if rq.op == Op::Discard {
        return limits.max_discard_sectors.min(u32::MAX >> 9);
    }
    if limits.chunk_sectors == 0 {
        return limits.max_sectors;
    }
    let chunk = u64::from(limits.chunk_sectors);
    limits.max_sectors.min((chunk - start.0 % chunk) as u32)
}

/// attempt_merge(): moves the bios of `next` to `rq` if `next` begins where `rq` ends, they are
/// alike, and they fit. `next` is left without bios, keeping its address for the trace. The caller
/// updates the scheduler's own records of both.
pub fn try_request_merge(
    pool: &mut RequestPool,
    rq: RequestId,
    next: RequestId,
    limits: &QueueLimits,
) -> bool {
    assert_ne!(rq, next, "a request cannot absorb itself");
    let (a, b) = (&pool[rq], &pool[next]);
    let of_ranges = merges_ranges(a.op, limits);
    // Most are not adjacent.
    if !of_ranges && a.end() != b.sector {
        return false;
    }
    let prios = limits.prios_merge || a.ioprio == b.ioprio;
    // Ranges of discards are not asked for their cgroups (ll_merge_requests_fn()).
    let any_groups = limits.cgroups_merge || of_ranges;
    let groups = any_groups || (a.group, a.flags.meta) == (b.group, b.flags.meta);
    if !a.is_mergeable() || !b.is_mergeable() || a.op != b.op || !prios || !groups {
        return false;
    }
    let segments = if of_ranges {
        let segments = ranges_together(pool, rq, next, limits);
        if segments.is_none() {
            pool[rq].flags.nomerge = true;
        }
        segments
    } else {
        let sectors = a.sectors.0.saturating_add(b.sectors.0);
        let fits = sectors <= max_sectors(a, a.sector, limits);
        fits.then(|| fitting_segments(a, b.segments, limits))
            .flatten()
    };
    let Some(segments) = segments else {
        return false;
    };
    pool[rq].ioprio = pool[rq].ioprio.best(pool[next].ioprio);
    pool.absorb(rq, next);
    pool[rq].segments = segments;
    true
}

/// req_attempt_discard_merge(): ranges of two discards together. As in the kernel, only the
/// ranges of `rq` are held against the limit, and only the first bio of `next` against the size.
fn ranges_together(
    pool: &RequestPool,
    rq: RequestId,
    next: RequestId,
    limits: &QueueLimits,
) -> Option<u16> {
    let ranges = pool[rq].segments.max(1);
    let first = pool[next].bio_first.expect("a mergeable request has a bio");
    let sectors = pool[rq].sectors.0.saturating_add(pool.bio(first).sectors.0);
    if ranges >= limits.max_discard_segments
        || sectors > max_sectors(&pool[rq], pool[rq].sector, limits)
    {
        return None;
    }
    ranges.checked_add(pool[next].segments.max(1))
}

#[cfg(test)]
mod tests;
