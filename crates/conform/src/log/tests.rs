//! Calls of a log with the data of their probes, and with the D that follow.

use blkmq::request::{Op, Sector, Sectors};
use blkmq::time::Jiffies;

use super::{issues, join};
use crate::event::{Event, Kind, Place};
use crate::fixtures::{self, TASK};

fn event(kind: Kind, sector: u64, time: u64) -> Event {
    fixtures::event(Place::Event(1), (time, TASK), kind, Op::Write, sector)
}

fn issued(list: &[(Kind, u64)]) -> Vec<u64> {
    let event = |&(kind, sector): &(Kind, u64)| event(kind, sector, 0);
    let list: Vec<Event> = list.iter().map(event).collect();
    issues(&list).into_iter().map(|sector| sector.0).collect()
}

/// v6.1 hands data of a flush sequence to the driver without asking the scheduler.
#[test]
fn what_went_around_the_scheduler_no_call_gave() {
    let around = [
        (Kind::Get, 0),
        (Kind::Get, 100),
        (Kind::Insert, 100),
        (Kind::Issue, 0),
        (Kind::Issue, 100),
    ];
    assert_eq!(issued(&around), [100]);
}

/// It waits on a dispatch list then. Once more in the scheduler it is given once more.
#[test]
fn what_the_driver_gave_back_was_given_by_a_call_once() {
    let back = [
        (Kind::Insert, 0),
        (Kind::Issue, 0),
        (Kind::Requeue, 0),
        (Kind::Issue, 0),
        (Kind::Requeue, 0),
        (Kind::Insert, 0),
        (Kind::Issue, 0),
    ];
    assert_eq!(issued(&back), [0, 0]);
}

/// Its start is that of the bio in front.
#[test]
fn a_request_that_has_grown_is_known() {
    let grown = [
        (Kind::Insert, 8),
        (Kind::BioMerge { front: true }, 0),
        (Kind::BioMerge { front: false }, 16),
    ];
    let mut list: Vec<Event> = grown.iter().map(|&(kind, at)| event(kind, at, 0)).collect();
    let mut issue = event(Kind::Issue, 0, 0);
    issue.sectors = Sectors(24);
    list.push(issue);
    assert_eq!(issues(&list), [Sector(0)]);
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
