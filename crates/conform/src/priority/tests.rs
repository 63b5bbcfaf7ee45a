//! Data of probes on requests in blktrace.

use blkmq::request::Op;
use blkmq::time::Jiffies;

use super::take_operations;
use crate::event::{Event, Kind, Place};
use crate::fixtures::{self, TASK};

/// To blktrace it is a write.
fn event(kind: Kind, sector: u64, op: Op) -> Event {
    fixtures::event(Place::Event(1), (0, TASK), kind, op, sector)
}

fn recorded() -> Vec<Event> {
    let bios = [0, 100, 0].into_iter();
    let kinds = [Kind::Queue, Kind::Get, Kind::Insert, Kind::Issue];
    bios.flat_map(|at| kinds.map(|kind| event(kind, at, Op::Write)))
        .collect()
}

fn operations(probed: &[Event]) -> Vec<Op> {
    let mut events = recorded();
    take_operations(probed, &mut events);
    events.iter().map(|event| event.op).collect()
}

/// The second write of this range was none.
#[test]
fn write_zeroes_are_reported_by_probes_of_insertions() {
    let at = Jiffies(0);
    let reported = [(0, Op::Write), (100, Op::WriteZeroes), (0, Op::WriteZeroes)];
    let probed = reported.map(|(sector, op)| event(Kind::Arrive { rq: 1, at }, sector, op));
    let zeroes = [Op::WriteZeroes, Op::WriteZeroes, Op::WriteZeroes, Op::Write];
    assert_eq!(
        operations(&probed),
        [[Op::Write; 4], zeroes, zeroes].concat()
    );
}

/// kyber has no such probe, but its calls return the request.
#[test]
fn write_zeroes_are_reported_by_returns_of_calls() {
    let at = Jiffies(0);
    let reported = [(0, Op::WriteZeroes), (100, Op::Write), (0, Op::Write)];
    let answer = Kind::Answer { rq: Some(1), at };
    let probed = reported.map(|(sector, op)| event(answer, sector, op));
    let writes = [Op::Write; 8];
    assert_eq!(
        operations(&probed),
        [&[Op::WriteZeroes; 4][..], &writes].concat()
    );
    assert_eq!(operations(&[]), [Op::Write; 12]);
}
