//! The search for a merge: in the ctx queue of the bio's CPU, among the newest requests of its
//! domain.
//!
//! Flushed requests of an hctx merge no more. Kernel: kyber_bio_merge() in block/kyber-iosched.c,
//! blk_bio_list_merge() in block/blk-merge.c (6.1.192, 6.12.117).

use super::domain::Domain;
use super::shared::{KcqId, KyberShared};
use crate::elevator::{MergeAsked, Merged};
use crate::env::{Cpu, TraceAction};
use crate::merge::{Side, try_bio_merge_list};
use crate::names::Label;
use crate::queue::RequestQueue;
use crate::request::BioId;
use crate::step::{Sub, Traced, trace_rq};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct MergePath {
    kcq: KcqId,
}

impl MergePath {
    /// The caller names the only label.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn label(self) -> Option<Label> {
        None
    }
}

impl KyberShared {
    pub(crate) fn start_merge(
        &self,
        q: &RequestQueue,
        asked: MergeAsked,
    ) -> (MergePath, Sub<Merged>) {
        let kcq = KyberShared::kcq_of(q, asked.hctx, asked.cpu);
        (MergePath { kcq }, Sub::Wait(self.kcq_lock(q, kcq)))
    }

    /// Under kcq->lock, up to the release.
    pub(crate) fn merge(
        &self,
        path: &mut MergePath,
        q: &RequestQueue,
        bio: BioId,
        cpu: &mut Cpu,
    ) -> Sub<Merged> {
        let kcq = self.kcq(path.kcq);
        let mut pool = q.pool.held(cpu.id);
        let domain = Domain::of(pool.bio(bio).op);
        let list = kcq.held(cpu)[domain.index()];
        let merged = try_bio_merge_list(&mut pool, &list, bio, &q.settings.limits);
        let traced = Traced::bio(cpu.tracing, &pool, bio);
        drop(pool);
        match merged {
            Some((_, Side::Back)) => trace_rq(cpu, q.id, TraceAction::BackMerge, traced),
            Some((_, Side::Front)) => trace_rq(cpu, q.id, TraceAction::FrontMerge, traced),
            Some((_, Side::Discard)) | None => {}
        }
        kcq.release(cpu);
        Sub::Done(match merged {
            Some(_) => Merged::Into { absorbed: None },
            None => Merged::No,
        })
    }
}
