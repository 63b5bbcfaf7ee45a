//! Invariants of passes over the scheduler between two of their labels.

use super::{At, PassPath};
use crate::elevator::DispatchPath;
use crate::env::Cpu;
use crate::path::run_queues::SqHctx;
use crate::path::tag::Search;
use crate::queue::RequestQueue;
use crate::request::Place;

impl PassPath {
    pub(in crate::path) fn check(&self, q: &RequestQueue, cpu: &Cpu) {
        let (at, pull) = (self.at, &self.pull);
        assert_eq!(
            pull.rq.is_some(),
            at == At::Tag,
            "{at:?}: a tag is looked for"
        );
        assert!(
            at == At::Tag || matches!(pull.get, Search::No),
            "{at:?} with a search for a tag"
        );
        assert!(
            at == At::Pick || pull.call == DispatchPath::Idle,
            "{at:?} with a dispatch call"
        );
        assert!(
            at == At::Pick || pull.budget_token.is_none(),
            "{at:?} with a budget of its own"
        );
        assert!(
            at == At::DelayRuns || (self.later.0 == 0 && self.current == SqHctx::NONE),
            "{at:?} with hctxs to be run later"
        );
        let pool = q.pool.held(cpu.id);
        for rq in [pull.rq_list.first(), pull.rq_list.last()]
            .into_iter()
            .flatten()
        {
            assert_eq!(pool[rq].place, Place::Path, "{at:?}: {rq:?} was pulled");
        }
    }
}
