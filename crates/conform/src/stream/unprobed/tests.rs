use blkmq::request::{Op, QueueId};
use blkmq::time::Jiffies;

use super::*;
use crate::event::{Event, Place};
use crate::fixtures::{self, KWORKER, TASK};

/// Events on CPU 0 as (us, task, whether it is a D), else a call: each call with its D and the
/// number of calls of its run from it on.
fn unprobed(events: &[(u64, u32, bool)]) -> Vec<(usize, Vec<usize>, usize)> {
    let answer = Kind::Answer {
        rq: Some(UNKNOWN),
        at: Jiffies(0),
    };
    let event = |&(us, pid, issue): &(u64, u32, bool)| {
        let kind = if issue { Kind::Issue } else { answer };
        fixtures::event(Place::Event(1), (us * 1000, pid), kind, Op::Read, us)
    };
    let events: Vec<Event> = events.iter().map(event).collect();
    assert!(events.is_sorted_by_key(|event| event.time));
    let stream = Stream::new(events.into_iter().map(|e| (QueueId(0), e)).collect());
    let of = |(call, of): (usize, Unprobed)| (call, of.own, of.calls);
    stream.unprobed.into_iter().map(of).collect()
}

#[test]
fn the_calls_of_a_run_have_its_d_in_any_order() {
    let run = [
        (0, KWORKER, false),
        (5, KWORKER, false),
        (10, KWORKER, true),
        (12, KWORKER, true),
        (20, KWORKER, false),
        (30, KWORKER, true),
    ];
    let two = vec![2, 3];
    assert_eq!(
        unprobed(&run),
        [(0, two.clone(), 2), (1, two, 1), (4, vec![5], 1)]
    );
}

/// It found no tag: what the task hands over later is of other calls.
#[test]
fn a_run_is_over_when_its_task_does_nothing_or_has_left_the_cpu() {
    let none: Vec<usize> = Vec::new();
    let late = [(0, KWORKER, false), (1100, KWORKER, true)];
    assert_eq!(unprobed(&late), [(0, none.clone(), 1)]);
    let left = [(0, KWORKER, false), (50, TASK, true), (90, KWORKER, true)];
    assert_eq!(unprobed(&left), [(0, none, 1)]);
    let same = [(0, KWORKER, false), (90, KWORKER, true)];
    assert_eq!(unprobed(&same), [(0, vec![1], 1)]);
}
