//! The first steps of a bio: flags of flushes without effect are cleared, and a bio that is longer
//! than a request may be is split.
//!
//! Kernel: submit_bio_noacct() in block/blk-core.c, __bio_split_to_limits(), bio_split_rw_at(),
//! get_max_io_size(), bio_split_discard() in block/blk-merge.c (6.1.192, 6.12.117).

use super::{At, Execute, SubmitPath};
use crate::call::{Call, Event, Inserts, ThenRun};
use crate::env::{Cpu, TraceAction};
use crate::path::bio_end::ended;
use crate::request::{Bio, BioId, Op, PAGE_SECTORS, RequestId, Sectors, Status};
use crate::rules::QueueLimits;
use crate::step::{Cx, Next, Traced, trace_with};

impl SubmitPath {
    /// A passthrough request has its tag: to the dispatch list.
    pub(super) fn execute_now(
        &mut self,
        cpu: &mut Cpu,
        rq: RequestId,
        how: Execute,
        around: bool,
    ) -> Next {
        self.rq = None;
        self.at = At::Rest;
        let run = match how.in_background {
            true => ThenRun::Background,
            false => ThenRun::Here,
        };
        let path = match around {
            true => Inserts::bypass(self.queue, rq, how.at_head, run),
            // Before v5.6 mq-deadline had it on its list of head insertions.
            false => Inserts::new(self.queue, rq, true, run),
        };
        Next::call(cpu, Call::Insert(path))
    }

    /// Without a volatile write cache PREFLUSH and FUA are cleared; a bio that is only a flush then
    /// ends, before any trace point: returns the next step, if it has.
    pub(super) fn strip_flush(&mut self, cx: &mut Cx<'_>) -> Option<Next> {
        match strip_flush(cx, self.bio)? {
            Next::Step => Some(self.next_part(cx)),
            above => {
                self.at = At::Rest;
                Some(above)
            }
        }
    }

    /// bio_queue_enter(): takes a reference on the queue. `None` if it got one; else the next step:
    /// a bio waits for a frozen queue, or ends if it may not wait. The freeze also waits for a bio
    /// with a cached request.
    pub(super) fn enter_queue(&mut self, cx: &mut Cx<'_>) -> Option<Next> {
        let mut pool = cx.pool();
        if pool.enter_queue() {
            self.entered = true;
            return None;
        }
        drop(pool);
        self.find_frozen(cx)
    }

    #[cold]
    fn find_frozen(&mut self, cx: &mut Cx<'_>) -> Option<Next> {
        if self.passthrough.is_none() && self.find_cached_rq(cx.mq, cx.cpu).is_some() {
            cx.pool().get_queue(1);
            self.entered = true;
            return None;
        }
        if cx.q.with_pool(|pool| pool.bio(self.bio).flags.nowait) {
            return Some(self.would_block(cx));
        }
        let (queue, event) = (self.queue, Event::Thaw);
        Some(cx.call(Call::Wait { queue, event }))
    }

    /// Splits a bio that is longer than a request may be: its first part continues, the rest
    /// follows it. `None` if it was not split. Trace X.
    pub(super) fn split(&mut self, cx: &mut Cx<'_>) -> Option<Split> {
        let mut pool = cx.pool();
        let bio = pool.bio(self.bio);
        let front = longest_part(&cx.q.settings.limits, bio)?;
        if matches!(bio.op, Op::Read | Op::Write) {
            if bio.flags.nowait {
                return Some(Split::WouldBlock);
            }
            // Parts are not polled for: bio_clear_polled().
            pool.bio_mut(self.bio).flags.polled = false;
        }
        let Some(part) = pool.split_bio(self.bio, front) else {
            unreachable!("the plan reserves bio slots for every split");
        };
        let remainder = core::mem::replace(&mut self.bio, part);
        self.remainder = Some(remainder);
        let remainder = pool.bio(remainder).sector;
        let traced = Traced::bio(cx.cpu.tracing, &pool, part);
        drop(pool);
        trace_with(cx.cpu, self.queue, TraceAction::Split, traced, remainder.0);
        Some(Split::Done)
    }
}

/// [`SubmitPath::strip_flush`] of any bio: the call of a bio-based device, or `None`.
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
    /// The path continues with the first part.
    Done,
    /// The bio may not wait, so it may not be split: it ends with EAGAIN.
    WouldBlock,
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
