//! Invariants of a plug flush between two of its labels.

use super::{At, Mode, PlugPath};
use crate::elevator::InsertPath;
use crate::env::Cpu;
use crate::path::tag::Search;
use crate::queue::BlkMq;
use crate::request::Place;

impl PlugPath {
    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        let asks = matches!(
            at,
            At::Stopped | At::Quiesced | At::Budget | At::Tag | At::NoTag
        );
        let issues = asks || matches!(at, At::Answer | At::BusyWrite | At::WholeAnswer);
        assert_eq!(self.rq.is_some(), issues, "{at:?}: a request is issued");
        assert!(
            at == At::Tag || matches!(self.get, Search::No),
            "{at:?} with a search for a tag"
        );
        assert_eq!(
            self.insertion != InsertPath::Idle,
            at == At::Elevator,
            "{at:?}: an insertion"
        );
        assert!(
            self.only.is_none() || self.mode == Mode::Single && at == At::Next,
            "{at:?} of one request"
        );
        assert!(
            self.busy == 0 || at == At::BusyWrite,
            "{at:?} with an average"
        );
        assert!(
            !self.in_background || at == At::Run,
            "{at:?}: where a group's run is done"
        );
        for entry in self.rest.iter(mq) {
            let pool = mq.queue(entry.queue).pool.held(cpu.id);
            assert_eq!(pool[entry.rq].place, Place::Path, "{at:?}: {entry:?} waits");
            assert!(
                self.mode != Mode::Plug || entry.queue == self.queue,
                "{at:?}: {entry:?} is issued with those of queue {}",
                self.queue
            );
        }
        if let Some(rq) = self.rq.filter(|_| asks) {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            assert_eq!(pool[rq].place, Place::Path, "{at:?} of {rq:?}");
        }
    }

    pub(in crate::path) fn check_over(&self) {
        assert!(
            self.rest.is_empty() && self.group.is_empty(),
            "requests are left"
        );
        assert_eq!(self.rq.or(self.only), None, "a request that goes nowhere");
        assert!(matches!(self.get, Search::No), "it searches for a tag");
        assert_eq!(self.insertion, InsertPath::Idle, "it inserts");
        assert!(!self.entered, "it still uses the queue");
        assert!(!self.in_background, "a group without its run");
    }
}
