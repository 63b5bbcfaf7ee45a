//! Whether the records decide about a `D` that no rule explains.
//!
//! An undecided `D` is counted as such. With one CPU the order of records is the order of the
//! events, and nothing is left open. The tried times are in `search.rs`.

use blkmq::request::QueueId;

use super::Records;
use crate::event::Kind;
use crate::hypothesis::Found;

impl Records<'_> {
    /// The records do not show the order of the decisions.
    pub(super) fn is_race(&self, index: usize, found: Option<Found>) -> bool {
        let queue = self.stream.queue[index];
        let Some(since) = self.inserted[index].filter(|_| self.several) else {
            return false;
        };
        match (self.setups[queue.index()].has_scheduler(), found) {
            (true, Some(Found::Taken)) => self.several_issue(index, since),
            (false, Some(Found::Taken | Found::Chosen)) => {
                self.others_run(index, since) && !self.overtakes(index, since)
            }
            _ => false,
        }
    }

    /// Since both requests waited in the scheduler more than one CPU has handed requests over. With
    /// one CPU, or while only one was at it, the order of records is the order of decisions, and
    /// another one is a divergence.
    fn several_issue(&self, index: usize, since: usize) -> bool {
        let queue = self.stream.queue[index];
        let issues = (since..=index).filter(|&event| {
            self.stream.events[event].kind == Kind::Issue && self.stream.queue[event] == queue
        });
        let mut cpus = issues.map(|event| self.stream.events[event].cpu);
        let first = cpus.next();
        cpus.any(|cpu| Some(cpu) != first)
    }

    /// Without a scheduler a run takes the insertions of all CPUs of the hctx, and puts the
    /// remainder on the dispatch list, of which there is no record. If another CPU of its hctx
    /// dispatched while the request waited, the run that took it is not recorded.
    fn others_run(&self, index: usize, since: usize) -> bool {
        let queue = self.stream.queue[index];
        let own = self.stream.events[index].cpu;
        let hctx = self.hctx_of(queue, self.stream.events[since].cpu);
        let oldest = since.saturating_sub(super::BACK_MOST);
        (oldest..=index).any(|event| {
            let (of, cpu) = (self.stream.queue[event], self.stream.events[event].cpu);
            let kind = self.stream.events[event].kind;
            let runs = matches!(kind, Kind::Insert | Kind::Issue | Kind::Requeue);
            // Until it does something else its run may go on.
            let until = self.stream.next[event];
            let on = event >= since || until.is_none_or(|until| until > since);
            runs && on && of == queue && cpu != own && self.hctx_of(queue, cpu) == hctx
        })
    }

    /// An older request of the same software queue waited there still: its D comes later, from a
    /// run that had not begun. A software queue is first in, first out. Requests that a run put
    /// back wait on the dispatch list, and are exempt.
    fn overtakes(&self, index: usize, since: usize) -> bool {
        let queue = self.stream.queue[index];
        if self.setups[queue.index()].budget.is_some()
            || self.stream.events[since].kind != Kind::Insert
        {
            return false;
        }
        let ctx = self.stream.events[since].cpu;
        let oldest = index.saturating_sub(super::BACK_MOST);
        let older = (oldest..since).filter(|&event| {
            let inserts = self.stream.events[event].kind == Kind::Insert;
            inserts && self.stream.queue[event] == queue && self.stream.events[event].cpu == ctx
        });
        older
            .filter_map(|insert| Some((insert, self.issued[insert]?)))
            .any(|(insert, issue)| {
                issue > index
                    && !self.gave_back(queue, insert..issue)
                    && self.began_after(index, issue)
            })
    }

    /// A request came back meanwhile.
    fn gave_back(&self, queue: QueueId, mut while_: core::ops::Range<usize>) -> bool {
        while_.any(|event| {
            self.stream.queue[event] == queue && self.stream.events[event].kind == Kind::Requeue
        })
    }

    /// The task of the later D has the earlier one, too, or did something between them that is no
    /// part of a run.
    fn began_after(&self, index: usize, issue: usize) -> bool {
        let task = self.stream.task[issue];
        let between = (index..issue).filter(|&event| self.stream.task[event] == task);
        between.into_iter().any(|event| {
            let kind = self.stream.events[event].kind;
            event == index || matches!(kind, Kind::Queue | Kind::Get | Kind::Insert)
        })
    }

    fn hctx_of(&self, queue: QueueId, cpu: u16) -> Option<usize> {
        let mut hctxs = self.setups[queue.index()].hctxs.iter();
        hctxs.position(|hctx| hctx.cpus.contains(&cpu))
    }
}

#[cfg(test)]
mod tests;
