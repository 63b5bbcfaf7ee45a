//! The search for a merge: in the ctx queue of the bio's CPU, among the newest requests of its
//! domain.
//!
//! Flushed requests of an hctx merge no more. Kernel: kyber_bio_merge() in block/kyber-iosched.c,
//! blk_bio_list_merge() in block/blk-merge.c (6.1.192, 6.12.117).

use super::domain::Domain;
use super::shared::{KcqId, KyberShared};
use crate::elevator::Merged;
use crate::env::TraceAction;
use crate::merge::{Side, try_bio_merge_list};
use crate::request::BioId;
use crate::step::{Cx, Traced, trace_rq};
use steps::steps;

/// kyber_bio_merge(). The caller names the label.
#[steps]
pub(crate) fn bio_merge(cx: &mut Cx<'_>, bio: BioId) -> Merged {
    let kcq: KcqId = kcq_of(cx, bio);
    lock!(_, KyberShared::of(cx).kcq_lock(cx.q, kcq));
    merge(cx, bio, kcq)
}

/// That of this CPU in the hctx of the bio, if it becomes a request.
fn kcq_of(cx: &Cx<'_>, bio: BioId) -> KcqId {
    let cpu = cx.cpu.id;
    let (op, flags) =
        cx.q.with_pool(|pool| (pool.bio(bio).op, pool.bio(bio).flags));
    let hctx = cx.set().hctx_for(cpu, op, flags.polled);
    KyberShared::kcq_of(cx.q, hctx, cpu)
}

/// Under kcq->lock, up to the release.
fn merge(cx: &mut Cx<'_>, bio: BioId, id: KcqId) -> Merged {
    let (q, kcq) = (cx.q, KyberShared::of(cx).kcq(id));
    let mut pool = cx.pool();
    let domain = Domain::of(pool.bio(bio).op);
    let list = kcq.held(cx.cpu)[domain.index()];
    let merged = try_bio_merge_list(&mut pool, &list, bio, &q.settings.limits);
    let traced = Traced::bio(cx.cpu.tracing, &pool, bio);
    drop(pool);
    match merged {
        Some((_, Side::Back)) => trace_rq(cx.cpu, q.id, TraceAction::BackMerge, traced),
        Some((_, Side::Front)) => trace_rq(cx.cpu, q.id, TraceAction::FrontMerge, traced),
        Some((_, Side::Discard)) | None => {}
    }
    kcq.release(cx.cpu);
    match merged {
        Some(_) => Merged::Into { absorbed: None },
        None => Merged::No,
    }
}
