//! Records made by hand of two CPUs without a scheduler: open ones, and wrong ones.

use blkmq::elevator::SchedulerSettings;
use blkmq::request::Op;
use blkmq::rules::Rules;

use crate::event::{Event, Events, Kind};
use crate::fixtures;
use crate::setup::{Hctx, Setup};
use crate::{Mode, Place, Verdict};

/// By CPU: a task of its own.
const TASKS: [u32; 2] = [100, 101];

/// Both CPUs have one hctx, whose runs take all that both have inserted (v4.5).
fn setup() -> Setup {
    Setup {
        rules: Rules::v4_5(),
        hctxs: vec![Hctx {
            tags: 8,
            cpus: vec![0, 1],
        }],
        cpus: 2,
        ..fixtures::setup_of(SchedulerSettings::None, 1000)
    }
}

/// Of its records, 1 us apart: `0Q1` is the bio of request 1 on CPU 0, `1D1` its D on the other.
fn verdict(letters: &str) -> Verdict {
    let event = |(number, letter): (usize, &str)| -> Event {
        let [cpu, kind, sector] = letter.as_bytes() else {
            panic!("{letter}");
        };
        let kind = match kind {
            b'Q' => Kind::Queue,
            b'G' => Kind::Get,
            b'I' => Kind::Insert,
            b'D' => Kind::Issue,
            b'R' => Kind::Requeue,
            other => panic!("{other}"),
        };
        let cpu = u16::from(cpu - b'0');
        let moment = (number as u64 * 1000, TASKS[usize::from(cpu)]);
        let place = Place::Event(number as u64 + 1);
        let sector = u64::from(sector - b'0') * 8;
        Event {
            cpu,
            ..fixtures::event(place, moment, kind, Op::Read, sector)
        }
    };
    let list = letters.split_whitespace().enumerate().map(event).collect();
    let events = Events {
        list,
        ..Events::default()
    };
    fixtures::verdict(Mode::Records, setup(), events)
}

/// Predicted, not decided and diverged.
fn counts(verdict: &Verdict) -> (u64, u64, u64) {
    (verdict.predicted, verdict.unjudged(), verdict.diverged())
}

/// Each CPU takes what it has inserted itself.
#[test]
fn runs_of_two_cpus_may_be_as_followed() {
    let of = verdict("0Q1 0G1 0I1 0D1 1Q2 1G2 1I2 1D2");
    assert_eq!(counts(&of), (2, 0, 0), "{of}");
}

/// Either run may have taken either request. With one CPU nothing is open.
#[test]
fn which_run_took_a_request_is_open() {
    let of = verdict("0Q1 0G1 0I1 1Q2 1G2 1I2 0D2 1D1");
    assert_eq!(counts(&of), (1, 1, 0), "{of}");
    let of = verdict("0Q1 0G1 0Q2 0G2 0I1 0I2 0D2 0D1");
    assert!(of.diverged() > 0, "{of}");
    assert_eq!(of.unjudged(), 0, "{of}");
}

/// A software queue is first in, first out: a task that dispatched the younger one and does other
/// things before the older one's D has begun no run that could have held the older one.
#[test]
fn a_younger_request_of_a_software_queue_is_found() {
    let filled = "0Q1 0G1 0Q2 0G2 0I1 0I2 1Q3 1G3 1I3";
    let of = verdict(&format!("{filled} 1D1 1D2 1D3"));
    assert_eq!(of.diverged(), 0, "{of}");
    // The run of the other CPU holds request 1.
    let of = verdict(&format!("{filled} 1D2 1D3 0D1"));
    assert_eq!(of.diverged(), 0, "{of}");
    // The mutants: one run with both in the wrong order, and one that had not begun.
    let of = verdict(&format!("{filled} 1D3 1D2 1D1"));
    assert_eq!(of.diverged(), 1, "{of}");
    let of = verdict(&format!("{filled} 1D2 1D3 0Q4 0D1"));
    assert_eq!(of.diverged(), 1, "{of}");
}
