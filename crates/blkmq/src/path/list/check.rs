//! Invariants of a dispatch list between two of its labels.

use super::{At, ListPath, Stop};
use crate::env::Cpu;
use crate::path::tag::Search;
use crate::queue::RequestQueue;
use crate::request::Place;

impl ListPath {
    pub(in crate::path) fn check(&self, q: &RequestQueue, cpu: &Cpu) {
        let at = self.at;
        let is_put = matches!(at, At::PutTag | At::PutAhead);
        assert_eq!(self.put.is_some(), is_put, "{at:?}: a tag goes back");
        let offers = matches!(at, At::Answer | At::TagAhead);
        assert_eq!(self.rq.is_some(), offers, "{at:?}: a request is offered");
        assert!(!self.ahead || at == At::Answer, "{at:?} with a tag ahead");
        let searches = matches!(at, At::Tag | At::TagRetry | At::TagAhead);
        assert!(
            searches || matches!(self.get, Search::No),
            "{at:?} with a search for a tag"
        );
        let lines = matches!(at, At::TagLine | At::TagRetry | At::TagLeave);
        assert!(lines || self.ws_index.is_none(), "{at:?} with a line");
        assert!(
            self.busy == 0 || at == At::BusyWrite,
            "{at:?} with an average"
        );
        let of_head = searches
            || lines
            || is_put
            || matches!(at, At::Budget | At::TagRestart | At::TagSetRestart)
            || matches!(
                at,
                At::TagInLine | At::TagStale | At::NoTag | At::Rest | At::PutBack
            );
        assert!(!of_head || !self.list.is_empty(), "{at:?} of an empty list");
        let ends = matches!(
            at,
            At::Restart | At::StillInLine | At::BusyRead | At::BusyWrite
        );
        assert!(!ends || self.list.is_empty(), "{at:?} with requests left");
        let left = matches!(at, At::NoTag | At::Rest | At::PutBack | At::Restart) || is_put;
        assert!(!left || self.stop != Stop::No, "{at:?} without a reason");
        let pool = q.pool.held(cpu.id);
        // A refused request is marked requeued only after its tag was freed.
        let head = self.list.first().filter(|_| !self.refused);
        let last = self.list.last().filter(|_| self.list.len() > 1);
        for rq in head.into_iter().chain(last) {
            assert_eq!(pool[rq].place, Place::Path, "{at:?}: {rq:?} of the list");
        }
        if let Some(rq) = self.rq.filter(|_| at == At::TagAhead) {
            assert_eq!(pool[rq].place, Place::Path, "{at:?}: {rq:?}");
            assert!(pool[rq].tag.is_some(), "{at:?}: {rq:?} has no tag");
        }
    }

    pub(in crate::path) fn check_over(&self) {
        assert!(self.list.is_empty(), "requests are left");
        assert_eq!(self.rq, None, "a request that goes nowhere");
        assert!(matches!(self.get, Search::No), "it searches for a tag");
        assert!(self.put.is_none(), "a tag goes back");
        assert_eq!(self.ws_index, None, "it is in a wait queue");
        assert!(!self.ahead, "a tag ahead");
    }
}
