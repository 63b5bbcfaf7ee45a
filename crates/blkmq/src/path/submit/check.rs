//! Invariants of a submission between two of its labels.

use super::{At, SubmitPath};
use crate::env::Cpu;
use crate::path::tag::Search;
use crate::queue::BlkMq;
use crate::request::Place;

impl SubmitPath {
    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        let searches = matches!(at, At::Tag | At::TagBatch | At::WaitRetry | At::WaitLast);
        assert!(
            searches || matches!(self.search, Search::No),
            "{at:?} with a search for a tag"
        );
        let without = searches
            || matches!(
                at,
                At::WouldBlock | At::WaitRun | At::WaitCount | At::WaitAdd
            )
            || matches!(at, At::WaitSleep | At::WaitPassOn);
        assert!(!without || self.rq.is_none(), "{at:?} with a request");
        let with = matches!(at, At::AfterFlush | At::Plug | At::Busy);
        assert!(!with || self.rq.is_some(), "{at:?} without a request");
        assert_eq!(
            self.put.is_some(),
            at == At::WaitPassOn,
            "{at:?}: a wake-up is passed on"
        );
        let leaves = matches!(at, At::WaitFinish | At::WaitLeave | At::WaitUncount);
        let queued = leaves || matches!(at, At::WaitAdd | At::WaitLast | At::WaitSleep);
        assert!(!self.waiting || queued, "{at:?} counted as waiting");
        assert!(self.waiting || !leaves, "{at:?} leaves no line");
        assert!(!self.batch || searches, "{at:?} for several tags");
        let bare = matches!(
            at,
            At::Enter | At::ElevatorMerge | At::Alloc | At::LimitDepth
        );
        assert!(!bare || self.depth.is_none(), "{at:?} after limit_depth()");
        if self.bio_plug {
            assert_eq!(at, At::Rest, "{at:?} with a plug of its own");
            assert!(cpu.plug.active, "a plug of its own is the task's");
            assert_eq!(cpu.plug.list.len(), 1, "requests of one bio's plug");
            assert!(cpu.plug.cached.is_empty(), "one bio's plug announces none");
        }
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

    pub(in crate::path) fn check_over(&self) {
        assert!(!self.entered, "it still uses the queue");
        assert!(matches!(self.search, Search::No), "it searches for a tag");
        assert!(self.put.is_none(), "it passes a wake-up on");
        assert!(!self.waiting, "it waits for a tag");
        assert_eq!(self.rq, None, "a request that goes nowhere");
        assert_eq!(
            self.cached_rq.or(self.absorbed),
            None,
            "a request to be freed"
        );
        assert_eq!(self.depth, None, "a depth that nobody reads");
        assert_eq!(self.remainder, None, "a part of the bio is left");
        assert!(!self.bio_plug, "its plug is left to the task");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{BioId, QueueId, RequestId};

    fn path() -> SubmitPath {
        SubmitPath::new(QueueId(0), BioId(0))
    }

    #[test]
    #[should_panic(expected = "it still uses the queue")]
    fn a_submission_that_stays_a_user_of_the_queue_is_found() {
        let mut path = path();
        path.entered = true;
        path.check_over();
    }

    #[test]
    #[should_panic(expected = "a request that goes nowhere")]
    fn a_submission_that_forgets_its_request_is_found() {
        let mut path = path();
        path.rq = Some(RequestId(3));
        path.check_over();
    }
}
