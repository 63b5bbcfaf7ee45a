//! Decisions of the scheduler, each between the events that bound it.
//!
//! Of a recorded call these are its entry and its return; in a log both are at the line that it
//! begins with. Where only records show decisions, they are the insertion of a request and its D.

use std::collections::BTreeMap;

use blkmq::request::QueueId;

use super::{Return, Stream};
use crate::event::Kind;

/// A decision of the scheduler, and what the capture shows of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decision {
    /// The earliest event that it can have been made before. None: it has no record.
    pub(crate) not_before: Option<usize>,
    /// The event that shows it: the return of its call, or the D.
    pub(crate) not_after: usize,
    /// The D of the chosen request. None: the call gave nothing, no probe shows
    /// which, or the capture ends before.
    pub(crate) chosen: Option<usize>,
}

impl Stream {
    /// The D of the request that an answer gave, where a probe shows that.
    pub(crate) fn chosen(&self, answer: usize) -> Option<usize> {
        self.decisions[answer]?.chosen
    }

    /// Each D shows a decision, made since the insertion of its request: the latest of its range
    /// before it. Without a scheduler a request that comes back waits as one that was inserted.
    pub(crate) fn decided_by_issues(&mut self, scheduled: impl Fn(QueueId) -> bool) {
        self.calls = false;
        let mut known: BTreeMap<(QueueId, u64), Vec<usize>> = BTreeMap::new();
        for (index, event) in self.events.iter().enumerate() {
            let place = (self.queue[index], event.sector.0);
            match event.kind {
                Kind::Requeue if !scheduled(place.0) => {
                    let of_start = known.entry(place).or_default();
                    match self.returns[index] {
                        Return::Started => of_start.push(index),
                        Return::Refused => {
                            of_start.pop();
                            of_start.push(index);
                        }
                        Return::Listed => {}
                    }
                }
                Kind::Insert => known.entry(place).or_default().push(index),
                Kind::Issue => {
                    let inserted = known.get_mut(&place).and_then(Vec::pop);
                    self.decisions[index] = Some(Decision {
                        not_before: inserted.map(|inserted| inserted + 1),
                        not_after: index,
                        chosen: Some(index),
                    });
                }
                _ => {}
            }
        }
    }
}
