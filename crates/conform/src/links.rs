//! Which events of a text trace belong together, found before the replay.
//!
//! A probe of an entry is followed by that of its return on the same CPU, a return by the D of the
//! request it gave, a C by the scheduler's finish hook. Used by `calls.rs` only.

use std::collections::BTreeMap;

use blkmq::time::Jiffies;

use super::event::{Event, Kind};

/// Which events belong together, found beforehand.
#[derive(Debug)]
pub(super) struct Links {
    /// For an answer: the D of the request it gave.
    pub(super) issue: Vec<Option<usize>>,
    /// The last answer of which there is a D.
    pub(super) last_issued: usize,
    /// For an entry: what the call returns, and the tick then.
    pub(super) answer: Vec<Option<(Option<u64>, Jiffies)>>,
    /// For a C: the next event of its CPU is the finish probe.
    pub(super) finish_follows: Vec<bool>,
}

impl Links {
    /// Finds them all.
    pub(super) fn new(events: &[Event]) -> Links {
        let mut issue = vec![None; events.len()];
        let mut answer = vec![None; events.len()];
        let mut waiting: Vec<(usize, u64)> = Vec::new();
        let mut asking: BTreeMap<u16, usize> = BTreeMap::new();
        let mut finish_follows = vec![false; events.len()];
        let mut last: BTreeMap<u16, usize> = BTreeMap::new();
        for (index, event) in events.iter().enumerate() {
            match event.kind {
                Kind::Ask { .. } => {
                    asking.insert(event.cpu, index);
                }
                Kind::Answer { rq, at } => {
                    if let Some(entry) = asking.remove(&event.cpu) {
                        answer[entry] = Some((rq, at));
                    }
                    if rq.is_some() {
                        waiting.push((index, event.sector.0));
                    }
                }
                Kind::Issue => {
                    let same = |&(_, sector): &(usize, u64)| sector == event.sector.0;
                    if let Some(at) = waiting.iter().position(same) {
                        issue[waiting.remove(at).0] = Some(index);
                    }
                }
                Kind::Finish { .. } => {
                    if let Some(&before) = last.get(&event.cpu)
                        && matches!(events[before].kind, Kind::Complete { .. })
                    {
                        finish_follows[before] = true;
                    }
                }
                _ => {}
            }
            last.insert(event.cpu, index);
        }
        let last_issued = issue.iter().rposition(Option::is_some).unwrap_or(0);
        Links {
            issue,
            last_issued,
            answer,
            finish_follows,
        }
    }
}
