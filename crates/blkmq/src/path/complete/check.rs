//! Invariants of an end of a request between two of its labels.

use super::{At, CompletePath};
use crate::env::Cpu;
use crate::queue::BlkMq;
use crate::request::Place;

impl CompletePath {
    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        let is_put = matches!(at, At::PutDriver | At::PutSched | At::PutSequence);
        assert_eq!(self.put.is_some(), is_put, "{at:?}: a tag goes back");
        assert!(
            self.internal.is_none() || at == At::PutDriver,
            "{at:?} before the scheduler's tag"
        );
        let within = matches!(at, At::EndSequences | At::Requeue);
        assert!(
            within || self.sequence.done.is_empty() && !self.sequence.issues(),
            "{at:?} outside of mq_flush_lock"
        );
        let flush = &mq.queue(self.queue).hctx(self.hctx).flush;
        assert!(
            at != At::EndSequences || !flush.is_free(),
            "requests of sequences end without mq_flush_lock"
        );
        if !matches!(at, At::End | At::EndBio | At::Finish | At::Tags) {
            return;
        }
        let pool = mq.queue(self.queue).pool.held(cpu.id);
        let r = &pool[self.rq];
        assert_ne!(
            r.place,
            Place::Free,
            "{at:?} of {:?}, which is free",
            self.rq
        );
        let ended = matches!(at, At::Finish | At::Tags) && !r.flush_seq;
        assert!(
            !ended || r.bio_first.is_none(),
            "{at:?} of {:?} with bios",
            self.rq
        );
    }

    pub(in crate::path) fn check_over(&self) {
        assert!(
            self.put.is_none() && self.internal.is_none(),
            "a tag goes back"
        );
    }
}
