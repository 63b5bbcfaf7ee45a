//! Records made by hand: the places of requests that come back, and requests that a driver has
//! refused.

use blkmq::elevator::SchedulerSettings;
use blkmq::request::{Op, QueueId};

use super::Return;
use crate::event::{Event, Events, Kind, Place};
use crate::fixtures::{self, KWORKER, TASK};
use crate::setup::Setup;
use crate::stream::Stream;
use crate::{Mode, Verdict};

/// Records 1 us apart: `tG1` is the G of request 1 by the task that submits, `kD1` its D by a
/// worker.
fn events(letters: &str) -> Vec<Event> {
    let event = |(number, letter): (usize, &str)| {
        let [who, kind, sector] = letter.as_bytes() else {
            panic!("{letter}");
        };
        let pid = if *who == b't' { TASK } else { KWORKER };
        let kind = match kind {
            b'Q' => Kind::Queue,
            b'G' => Kind::Get,
            b'I' => Kind::Insert,
            b'D' => Kind::Issue,
            b'R' => Kind::Requeue,
            other => panic!("{other}"),
        };
        let place = Place::Event(number as u64 + 1);
        let moment = (number as u64 * 1000, pid);
        let sector = u64::from(sector - b'0') * 8;
        fixtures::event(place, moment, kind, Op::Read, sector)
    };
    letters.split(' ').enumerate().map(event).collect()
}

fn returns(letters: &str) -> Vec<Return> {
    let of_device = events(letters).into_iter().map(|event| (QueueId(0), event));
    let stream = Stream::new(of_device.collect());
    let kinds = stream.events.iter().zip(&stream.returns);
    let returns = kinds.filter(|(event, _)| event.kind == Kind::Requeue);
    returns.map(|(_, &returns)| returns).collect()
}

/// Of one hctx without a scheduler.
fn verdict(letters: &str) -> Verdict {
    let setup = Setup {
        nr_requests: 4,
        ..fixtures::setup_of(SchedulerSettings::None, 1000)
    };
    let events = Events {
        list: events(letters),
        ..Events::default()
    };
    fixtures::verdict(Mode::Records, setup, events)
}

/// Busy: the next D comes from a dispatch list, or a task inserts a request that it could not
/// issue.
#[test]
fn what_a_driver_has_started_waits_on_a_list_that_does_not_show() {
    assert_eq!(returns("tQ1 tG1 tD1 tR1 kD1"), [Return::Started]);
    let both = [Return::Started; 2];
    assert_eq!(returns("tQ1 tG1 tI1 kD1 kR1 kD1 kR1 kD1"), both);
    assert_eq!(returns("tQ1 tG1 tD1 tR1 tI1 kD1"), [Return::Started]);
}

#[test]
fn a_worker_inserts_requests_of_the_requeue_list() {
    assert_eq!(returns("tQ1 tG1 tD1 tR1 kI1 kD1"), [Return::Listed]);
    assert_eq!(returns("tQ1 tG1 tI1 kD1 kR1 kI1 kD1"), [Return::Listed]);
    let both = [Return::Started, Return::Listed];
    assert_eq!(returns("tQ1 tG1 tD1 tR1 kD1 kR1 kI1 kD1"), both);
}

#[test]
fn a_request_without_a_d_was_refused() {
    assert_eq!(returns("tQ1 tG1 tR1 kR1 kD1"), [Return::Refused; 2]);
    let both = [Return::Refused, Return::Started];
    assert_eq!(returns("tQ1 tG1 tI1 kR1 kD1 kR1"), both);
    // A D before the records began is unknown.
    assert_eq!(returns("kR1 kD1"), [Return::Started]);
}

/// A refused request waits on the dispatch list, before all later insertions.
#[test]
fn a_request_that_was_refused_is_offered_first() {
    let refused = "tQ1 tG1 tR1 tR1 tQ2 tG2 tI2 kR1";
    let of = verdict(&format!("{refused} kD1 kD2"));
    assert_eq!((of.predicted, of.diverged()), (2, 0), "{of}");
    // The mutant: the younger one first.
    let of = verdict(&format!("{refused} kD2 kD1"));
    assert!(of.diverged() > 0, "{of}");
}
