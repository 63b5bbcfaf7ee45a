//! Ways of requests back from the driver, by the events before and after an R.
//!
//! The model's part is in `hypothesis/device.rs`.

use std::collections::BTreeMap;

use blkmq::request::{Direction, QueueId};

use super::Stream;
use crate::event::{Event, Kind};

/// Where a request goes that comes back.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Return {
    /// The driver had started it. It waits on a list without records, or is inserted by the task
    /// that had issued it directly (up to 4.18).
    #[default]
    Started,
    /// No D since it was inserted or came back last: the driver was busy before it started the
    /// request (dm_mq_queue_rq(): `busy` of the target).
    Refused,
    /// A worker inserts it again: it went by the requeue list, and the driver took it for its own
    /// until then. Kernel: blk_mq_requeue_work().
    Listed,
}

/// A request as records name it.
type Range = (QueueId, Direction, u64, u32);

impl Stream {
    /// Sorts each R.
    pub(super) fn find_returns(&mut self) {
        let mut inserted: BTreeMap<Range, Option<usize>> = BTreeMap::new();
        for index in (0..self.events.len()).rev() {
            let range = self.range(index);
            match self.events[index].kind {
                Kind::Insert => inserted.insert(range, Some(index)),
                // The insertion after a G is that of another request with the same range.
                Kind::Issue | Kind::Get => inserted.insert(range, None),
                Kind::Requeue => {
                    if let Some(insert) = inserted.remove(&range).flatten()
                        && !self.issued_directly(index, insert)
                    {
                        self.returns[index] = Return::Listed;
                        self.returns[insert] = Return::Listed;
                    }
                    None
                }
                _ => None,
            };
        }
        let mut started: BTreeMap<Range, bool> = BTreeMap::new();
        for index in 0..self.events.len() {
            let range = self.range(index);
            match self.events[index].kind {
                Kind::Get | Kind::Insert => started.insert(range, false),
                Kind::Issue => started.insert(range, true),
                Kind::Requeue => {
                    if started.insert(range, false) == Some(false)
                        && self.returns[index] == Return::Started
                    {
                        self.returns[index] = Return::Refused;
                    }
                    None
                }
                _ => None,
            };
        }
    }

    /// Only a mapped queue's driver is asked before it starts a request: for the others an R
    /// without a D (a fault of null_blk) counts as started.
    pub(crate) fn refused_by(&mut self, asks_first: impl Fn(QueueId) -> bool) {
        for (returns, &queue) in self.returns.iter_mut().zip(&self.queue) {
            if *returns == Return::Refused && !asks_first(queue) {
                *returns = Return::Started;
            }
        }
    }

    fn range(&self, index: usize) -> Range {
        let Event {
            op,
            sector,
            sectors,
            ..
        } = self.events[index];
        (self.queue[index], op.direction(), sector.0, sectors.0)
    }

    /// The insertion is the next event of the task of an R, which owns the request: it
    /// had tried direct issue.
    fn issued_directly(&self, requeue: usize, insert: usize) -> bool {
        if self.next[requeue] != Some(insert) {
            return false;
        }
        let range = self.range(requeue);
        let mut before = (0..requeue).rev();
        let got = before.find(|&at| self.events[at].kind == Kind::Get && self.range(at) == range);
        got.is_none_or(|got| self.task[got] == self.task[requeue])
    }

    /// A task has stopped at an offer to the driver.
    pub(crate) fn offers(&self, index: usize) -> bool {
        let kind = self.events[index].kind;
        kind == Kind::Issue || kind == Kind::Requeue && self.returns[index] == Return::Refused
    }
}

#[cfg(test)]
mod tests;
