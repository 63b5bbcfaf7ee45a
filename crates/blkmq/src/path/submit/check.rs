//! What must hold of a submission between two of its labels.

use super::{At, SubmitPath};
use crate::env::{Cpu, Env, Slab};
use crate::path::tag::Search;
use crate::queue::BlkMq;
use crate::request::Place;

impl SubmitPath {
    pub(in crate::path) fn check<E: Env>(&self, mq: &BlkMq<E>, cpu: &Cpu) {
        let at = self.at;
        let searches = matches!(at, At::Tag | At::TagBatch | At::WaitRetry | At::WaitLast);
        assert!(
            searches || matches!(self.search, Search::No),
            "{at:?} with a search for a tag"
        );
        let without = searches
            || matches!(
                at,
                At::WouldBlock | At::WaitRun | At::WaitAdd | At::WaitCount
            )
            || matches!(at, At::WaitSleep | At::WaitWoken | At::WaitPassOn);
        assert!(!without || self.rq.is_none(), "{at:?} with a request");
        let with = matches!(at, At::AfterFlush | At::Plug | At::Busy);
        assert!(!with || self.rq.is_some(), "{at:?} without a request");
        assert_eq!(
            self.put.is_some(),
            at == At::WaitPassOn,
            "{at:?}: a wake-up is passed on"
        );
        let leaves = matches!(at, At::WaitLeave | At::WaitUncount);
        let in_line = leaves || matches!(at, At::WaitLast | At::WaitSleep | At::WaitWoken);
        assert!(!self.waiting || in_line, "{at:?} counted as waiting");
        assert!(self.waiting || !leaves, "{at:?} leaves no line");
        assert!(!self.batch || searches, "{at:?} for several tags");
        if let Some(rq) = self.rq.filter(|_| with && at != At::AfterFlush || leaves) {
            let q = mq.queue(self.queue);
            let pool = q.pool.held(cpu.id);
            let r = &pool[rq];
            assert_eq!(r.place, Place::Path, "{at:?} of {rq:?}");
            assert_eq!(
                r.internal_tag.is_some(),
                q.has_elevator(),
                "{at:?} of {rq:?}: a scheduler's tag"
            );
            assert!(r.tag.is_none() || !q.has_elevator(), "{at:?} of {rq:?}");
        }
    }
}
