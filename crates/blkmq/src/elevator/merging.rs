//! Merging into a scheduler: the request that a bio is offered to, and the merges that follow.
//!
//! The same for all that file requests in a [`MergeIndex`]; the hooks differ. Not here: the limits
//! of merges (`merge.rs` of the crate). Kernel: block/elevator.c elv_merge(),
//! elv_attempt_insert_merge(), block/blk-mq-sched.c blk_mq_sched_try_merge() (v6.1, v6.12); their
//! counterparts in 4.20.

use super::scheduler::BioMerge;
use crate::list::QueueList;
use crate::merge::{
    MergeIndex, Merging, Side, attach, bio_is_mergeable, joins_as_range, may_join, merges_ranges,
    side_of, try_request_merge,
};
use crate::request::{BioId, Place, RequestId, RequestPool};
use crate::rules::{DiscardMerge, NoMerges, QueueLimits};

/// Hooks of a scheduler for merging, as struct elevator_mq_ops names them, for [`try_merge`] and
/// [`insert_merge`].
pub trait MergeHooks {
    /// last_merge and the hash.
    fn index(&mut self) -> &mut MergeIndex;

    /// A bio that fits may become part of this request (allow_merge). It may be asked twice about
    /// one pair. Default: always.
    fn allow_merge(&mut self, _pool: &RequestPool, _rq: RequestId, _bio: BioId) -> bool {
        true
    }

    /// A request that is inserted may become part of this queued one (allow_rq_merge, up to v4.20).
    /// Default: always.
    fn allow_request_merge(
        &mut self,
        _pool: &RequestPool,
        _rq: RequestId,
        _next: RequestId,
    ) -> bool {
        true
    }

    /// A request that the bio might join which last_merge and hash do not know (request_merge).
    /// Default: there is none.
    fn request_merge(
        &mut self,
        _pool: &RequestPool,
        _bio: BioId,
        _limits: &QueueLimits,
    ) -> Option<(RequestId, Side)> {
        None
    }

    /// The queued request before this one in the scheduler's order (former_request).
    fn former_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId>;

    /// The queued request after it (next_request).
    fn next_request(&mut self, pool: &RequestPool, rq: RequestId) -> Option<RequestId>;

    /// A bio joined `rq` at its front, and nothing more came of it (request_merged). Default:
    /// nothing.
    fn grown_at_front(&mut self, _pool: &mut RequestPool, _rq: RequestId) {}

    /// `rq` absorbed `next`, which may be queued or belong to a path, and which is removed
    /// (requests_merged). The index is not the hook's business.
    fn requests_merged(&mut self, pool: &mut RequestPool, rq: RequestId, next: RequestId);
}

enum Found {
    /// The only request to try, on this side.
    Use(RequestId, Side),
    /// None, but the scheduler may have one.
    Ask,
    /// None; the search ends.
    Stop,
}

/// blk_mq_sched_try_merge(): joins a bio to a queued request, and that to its neighbour if the gap
/// is closed.
pub fn try_merge(
    hooks: &mut impl MergeHooks,
    pool: &mut RequestPool,
    bio: BioId,
    merging: Merging<'_>,
) -> BioMerge {
    let limits = merging.limits;
    let candidate = match elv_merge(hooks, pool, bio, merging) {
        Found::Use(rq, side) => Some((rq, side)),
        Found::Ask => hooks.request_merge(pool, bio, limits),
        Found::Stop => None,
    };
    // The kernel, too, checks again a request that last_merge or the hash found.
    let allowed =
        candidate.filter(|&(rq, side)| side == Side::Discard || hooks.allow_merge(pool, rq, bio));
    let Some((rq, side)) = allowed else {
        return BioMerge::No;
    };
    if !attach(pool, rq, bio, side, limits) {
        hooks.index().drop_unmergeable(pool, rq);
        return BioMerge::No;
    }
    match side {
        Side::Back => grown_after(hooks, pool, rq, limits),
        Side::Front => grown_before(hooks, pool, rq, limits),
        // Neither hash nor neighbours are looked at, as in the kernel.
        Side::Discard => BioMerge::Into {
            rq,
            side,
            absorbed: None,
        },
    }
}

/// The request to offer `bio` to, from last_merge or the hash.
fn elv_merge(
    hooks: &mut impl MergeHooks,
    pool: &mut RequestPool,
    bio: BioId,
    merging: Merging<'_>,
) -> Found {
    if merging.nomerges == NoMerges::Never || !bio_is_mergeable(pool.bio(bio)) {
        return Found::Stop;
    }
    let limits = merging.limits;
    let last = hooks.index().last_merge();
    pool.touch_last_merge(last);
    if let Some(rq) = last.filter(|&rq| fits(hooks, pool, (rq, bio), limits))
        && let Some(side) = side_of(&pool[rq], pool.bio(bio), limits)
    {
        return match side {
            // blk_queue_bio() has no merge for it.
            Side::Discard if limits.discard_merge == DiscardMerge::AtEnds => Found::Stop,
            _ => Found::Use(rq, side),
        };
    }
    if merging.nomerges == NoMerges::Simple {
        return Found::Stop;
    }
    let start = pool.bio(bio).sector;
    let found = hooks.index().find(pool, start);
    match found.filter(|&rq| fits(hooks, pool, (rq, bio), limits)) {
        Some(rq) if joins_as_range(pool[rq].op, limits) => Found::Use(rq, Side::Discard),
        Some(rq) => Found::Use(rq, Side::Back),
        None => Found::Ask,
    }
}

/// elv_bio_merge_ok().
fn fits(
    hooks: &mut impl MergeHooks,
    pool: &RequestPool,
    (rq, bio): (RequestId, BioId),
    limits: &QueueLimits,
) -> bool {
    may_join(&pool[rq], pool.bio(bio), limits) && hooks.allow_merge(pool, rq, bio)
}

/// `rq` took a bio at its end: it may now reach its successor; otherwise its key in the hash has
/// changed.
fn grown_after(
    hooks: &mut impl MergeHooks,
    pool: &mut RequestPool,
    rq: RequestId,
    limits: &QueueLimits,
) -> BioMerge {
    let next = hooks.next_request(pool, rq);
    let absorbed = next.filter(|&next| merge_neighbours(hooks, pool, rq, next, limits));
    if absorbed.is_none() {
        hooks.index().rehash(pool, rq);
        hooks.index().set_last_merge(rq);
    }
    BioMerge::Into {
        rq,
        side: Side::Back,
        absorbed,
    }
}

/// `rq` took a bio at its start: its predecessor may now reach it, and the earlier request
/// survives; otherwise its place in the scheduler's order may have changed.
fn grown_before(
    hooks: &mut impl MergeHooks,
    pool: &mut RequestPool,
    rq: RequestId,
    limits: &QueueLimits,
) -> BioMerge {
    let prev = hooks.former_request(pool, rq);
    if let Some(prev) = prev.filter(|&prev| merge_neighbours(hooks, pool, prev, rq, limits)) {
        return BioMerge::Into {
            rq: prev,
            side: Side::Front,
            absorbed: Some(rq),
        };
    }
    hooks.grown_at_front(pool, rq);
    hooks.index().set_last_merge(rq);
    BioMerge::Into {
        rq,
        side: Side::Front,
        absorbed: None,
    }
}

/// Merges two queued neighbours, if they touch and fit.
fn merge_neighbours(
    hooks: &mut impl MergeHooks,
    pool: &mut RequestPool,
    rq: RequestId,
    next: RequestId,
    limits: &QueueLimits,
) -> bool {
    // Deviation(D5): two discards become ranges of one, and the second is freed and still queued.
    let of_ranges = merges_ranges(pool[rq].op, limits);
    let merged = !of_ranges && try_request_merge(pool, rq, next, limits);
    if merged {
        absorbed(hooks, pool, rq, next);
    }
    merged
}

/// elv_attempt_insert_merge(): appends a request that is being inserted to a queued one that ends
/// where it starts, that one perhaps to another one, and so on. Returns the emptied requests, last
/// one first.
pub fn insert_merge(
    hooks: &mut impl MergeHooks,
    pool: &mut RequestPool,
    rq: RequestId,
    merging: Merging<'_>,
) -> QueueList {
    let mut emptied = QueueList::new();
    if !pool[rq].is_mergeable() || merging.nomerges == NoMerges::Never {
        return emptied;
    }
    let last = hooks.index().last_merge();
    pool.touch_last_merge(last);
    if let Some(last) = last
        && append_request(hooks, pool, last, rq, merging.limits)
    {
        emptied.push_front(pool, rq);
        return emptied;
    }
    if merging.nomerges == NoMerges::Simple {
        return emptied;
    }
    let mut moving = rq;
    while let Some(target) = {
        let start = pool[moving].sector;
        hooks.index().find(pool, start)
    } {
        // Deviation(D5): for discards of several ranges the kernel continues, too, but leaves the
        // absorbed one, which it frees, on fifo and tree (attempt_merge() informs the scheduler of
        // other requests only). The model stops before that.
        let queued = pool[moving].place == Place::Elevator;
        if queued && merges_ranges(pool[moving].op, merging.limits) {
            break;
        }
        if !append_request(hooks, pool, target, moving, merging.limits) {
            break;
        }
        emptied.push_front(pool, moving);
        moving = target;
    }
    emptied
}

/// Appends `next`, queued or being inserted, to the queued `rq`.
fn append_request(
    hooks: &mut impl MergeHooks,
    pool: &mut RequestPool,
    rq: RequestId,
    next: RequestId,
    limits: &QueueLimits,
) -> bool {
    if !hooks.allow_request_merge(pool, rq, next) {
        return false;
    }
    if !try_request_merge(pool, rq, next, limits) {
        hooks.index().drop_unmergeable(pool, rq);
        return false;
    }
    if merges_ranges(pool[rq].op, limits) {
        // The scheduler is not called: no count of merges, and the hash keeps the old end.
        pool[next].place = Place::Path;
    } else {
        absorbed(hooks, pool, rq, next);
    }
    true
}

/// elv_merge_requests(): the scheduler's records after `rq` took all of `next`.
fn absorbed(hooks: &mut impl MergeHooks, pool: &mut RequestPool, rq: RequestId, next: RequestId) {
    hooks.requests_merged(pool, rq, next);
    pool[next].place = Place::Path;
    hooks.index().rehash(pool, rq);
    hooks.index().set_last_merge(rq);
}
