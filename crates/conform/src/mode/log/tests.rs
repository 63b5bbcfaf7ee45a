//! Calls of a log with the data of their probes.

use blkmq::request::Op;
use blkmq::time::Jiffies;

use super::join;
use crate::event::{Event, Kind, Place};
use crate::fixtures::{self, TASK};

fn event(kind: Kind, sector: u64, time: u64) -> Event {
    fixtures::event(Place::Event(1), (time, TASK), kind, Op::Write, sector)
}

/// ftrace counts microseconds, and several calls may be in one.
#[test]
fn answers_are_joined_in_order_where_none_is_missing() {
    let at = Jiffies(0);
    let list: Vec<Event> = [1100, 1300, 1500]
        .map(|time| event(Kind::Line(0), 0, time))
        .into();
    let answer = |rq: u64| event(Kind::Answer { rq: Some(rq), at }, rq, 1000);
    let joined = |answers: &[u64]| -> Vec<Option<u64>> {
        let answers = answers.iter().map(|&rq| answer(rq)).collect();
        let joined = join(&list, &[0, 1, 2], answers).into_iter();
        joined
            .map(|answer| answer.map(|answer| answer.sector.0))
            .collect()
    };
    assert_eq!(joined(&[8, 16, 24]), [Some(8), Some(16), Some(24)]);
    // One was missed: only the time assigns the others.
    assert_eq!(joined(&[8]), [None, None, Some(8)]);
}
