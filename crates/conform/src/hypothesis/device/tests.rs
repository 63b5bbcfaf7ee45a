//! Flushes of two hardware queues at once, in records made by hand.

use blkmq::elevator::SchedulerSettings;
use blkmq::request::{Op, OpFlags, Sectors};
use blkmq::rules::QueueLimits;

use crate::event::{Event, Events, Kind};
use crate::fixtures;
use crate::setup::{Hctx, Setup};
use crate::{Mode, Place, Verdict};

/// Each of two CPUs has an hctx of its own.
fn setup() -> Setup {
    let limits = QueueLimits {
        write_cache: true,
        ..QueueLimits::PLAIN
    };
    let hctx = |cpu| Hctx {
        tags: 8,
        cpus: vec![cpu],
    };
    Setup {
        limits,
        hctxs: vec![hctx(0), hctx(1)],
        cpus: 2,
        ..fixtures::setup_of(SchedulerSettings::None, 1000)
    }
}

/// Of its records, 1 us apart: `0Q` is a flush's bio on CPU 0, `1D` the D of a flush on the other
/// by a worker, `1C` its completion, `1E` the end of the sequence there.
fn verdict(letters: &str) -> Verdict {
    let event = |(number, letters): (usize, &str)| -> Event {
        let [cpu, letter] = letters.as_bytes() else {
            panic!("{letters}");
        };
        let (kind, op) = match letter {
            b'Q' => (Kind::Queue, Op::Write),
            b'G' => (Kind::Get, Op::Write),
            b'D' => (Kind::Issue, Op::Flush),
            b'C' => (Kind::Complete { failed: false }, Op::Flush),
            b'E' => (Kind::Complete { failed: false }, Op::Write),
            other => panic!("{other}"),
        };
        let of_bio = matches!(letter, b'Q' | b'G');
        let cpu = u16::from(cpu - b'0');
        let task = if of_bio {
            fixtures::TASK
        } else {
            fixtures::KWORKER
        };
        let moment = (number as u64 * 1000, task + u32::from(cpu));
        let place = Place::Event(number as u64 + 1);
        let flags = OpFlags {
            preflush: of_bio,
            ..OpFlags::default()
        };
        Event {
            cpu,
            flags,
            sectors: Sectors(0),
            ..fixtures::event(place, moment, kind, op, 0)
        }
    };
    let list = letters.split_whitespace().enumerate().map(event).collect();
    let events = Events {
        list,
        ..Events::default()
    };
    fixtures::verdict(Mode::Records, setup(), events)
}

/// The flush that was issued last completes first, and its hctx has another one.
#[test]
fn flushes_of_two_hctxs_complete_in_any_order() {
    for records in [
        "0Q 0G 0D 1Q 1G 1D 0C 0E 0Q 0G 0D",
        "0Q 0G 0D 1Q 1G 1D 1C 1E 1Q 1G 1D",
    ] {
        let of = verdict(records);
        assert_eq!((of.predicted, of.total), (3, 3), "{records}: {of}");
        assert!(of.notes.is_empty(), "{records}: {of}");
    }
    // A mutant: an hctx has one flush at once.
    let of = verdict("0Q 0G 0D 1Q 1G 1D 1C 1E 0Q 0G 0D");
    assert_eq!((of.predicted, of.total), (2, 3), "{of}");
}
