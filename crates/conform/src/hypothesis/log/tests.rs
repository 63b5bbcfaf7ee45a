//! A capture of a scheduler that writes a log, made by hand.

use std::hash::{Hash, Hasher};

use blkmq::elevator::{
    CustomScheduler, DispatchTime, ElevatorLock, InsertAt, Insertion, LEVELS, LogMarks, Now,
    Probes, Scheduler, SchedulerInfo, Wanted,
};
use blkmq::list::QueueList;
use blkmq::merge::Merging;
use blkmq::request::{Op, Place as At, RequestId, RequestPool};
use blkmq::time::SimTime;

use super::{BEFORE_LINE, NS_A_LETTER};
use crate::event::{Event, Events, Kind};
use crate::fixtures::{self, KWORKER, TASK};
use crate::mode::log::add_calls;
use crate::setup::Setup;
use crate::submitters::Processes;
use crate::{Mode, Place, Verdict};

/// A task on another CPU.
const OTHER: u32 = 101;
const LOCKS: &[ElevatorLock] = &[ElevatorLock::irq_save("teller->lock")];
const MARKS: LogMarks = LogMarks {
    dispatch: "ask",
    gives: "gives",
    exit: "exits",
    unlocked: Some("free"),
    ticks: "ticks ",
    takes_tick: "takes",
};
const INFO: SchedulerInfo = SchedulerInfo {
    logs: true,
    probes: Probes {
        log: Some(MARKS),
        ..SchedulerInfo::plain("teller", LOCKS).probes
    },
    ..SchedulerInfo::plain("teller", LOCKS)
};

/// First in, first out; logs its actions and the time of each dispatch.
#[derive(Clone, Debug, Default)]
struct Teller {
    queued: QueueList,
    log: Vec<String>,
    /// Times of the lines that come, the next one first.
    times: Vec<SimTime>,
}

impl Teller {
    fn log_line(&mut self, line: String) {
        self.log.push(line);
        if !self.times.is_empty() {
            self.times.remove(0);
        }
    }
}

impl Scheduler for Teller {
    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        _at: InsertAt,
        _now: Now,
        _merging: Merging<'_>,
    ) -> Insertion {
        pool[rq].place = At::Elevator;
        self.queued.push_back(pool, rq);
        self.log_line(format!("in {:016x} {}", rq.0, pool[rq].sector.0));
        Insertion::Inserted
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        _completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        self.log_line("ask".to_owned());
        let rq = self.queued.first()?;
        self.force_dispatch(pool, rq);
        let later = self.times.first().map_or(0, |time| time.since(now.time).0);
        self.log_line(format!("gives {:016x} after {later}", rq.0));
        Some(rq)
    }

    fn limits_under_lock(&self, _wanted: Wanted) -> bool {
        true
    }

    fn limit_depth_locked(&mut self, _wanted: Wanted, _now: Now) -> Option<u32> {
        self.log_line("free".to_owned());
        None
    }

    fn has_work(&self) -> bool {
        !self.queued.is_empty()
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.queued.remove(pool, rq);
        pool[rq].place = At::Path;
    }

    fn take_log(&mut self, each: &mut dyn FnMut(&str)) {
        for line in self.log.drain(..) {
            each(&line);
        }
    }

    fn lines_at(&mut self, clocks: &[Now]) {
        self.times = clocks.iter().map(|line| line.time).collect();
    }
}

impl CustomScheduler for Teller {
    fn info(&self) -> &'static SchedulerInfo {
        &INFO
    }

    fn copy(&self) -> Box<dyn CustomScheduler> {
        Box::new(self.clone())
    }

    fn digest(&self, mut state: &mut dyn Hasher) {
        self.queued.hash(&mut state);
    }
}

#[derive(Default)]
struct Capture(Events);

impl Capture {
    fn add(&mut self, ns: u64, pid: u32, kind: Kind, sector: u64) {
        let place = Place::Event(self.0.list.len() as u64 + 1);
        let moment = (1_000_000_000 + ns, pid);
        let mut event = fixtures::event(place, moment, kind, Op::Read, sector);
        event.cpu = u16::from(pid == OTHER);
        self.0.list.push(event);
    }

    fn line(&mut self, ns: u64, pid: u32, text: &str) {
        let kind = Kind::Line(self.0.lines.len() as u32);
        self.0.lines.push(text.to_owned());
        self.add(ns, pid, kind, 0);
    }

    /// A read of this address, whose request has this name.
    fn read(&mut self, ns: u64, sector: u64, name: &str) {
        self.add(ns, TASK, Kind::Queue, sector);
        self.line(ns, TASK, "free");
        self.add(ns, TASK, Kind::Get, sector);
        self.add(ns, TASK, Kind::Insert, sector);
        self.line(ns + 1000, TASK, &format!("in {name} {sector}"));
    }

    /// It goes and comes back; between the lines of the call the clock moves so far.
    fn goes(&mut self, ns: u64, sector: u64, (name, moves): (&str, u64)) {
        self.line(ns, KWORKER, "ask");
        // From the lock, and to where the line is put together.
        let letters = "gives 0123456789abcdef after 4000".len() as u64;
        let read = moves + BEFORE_LINE - NS_A_LETTER * letters;
        let gives = format!("gives {name} after {read}");
        self.line(ns + moves, KWORKER, &gives);
        self.add(ns + 10_000, KWORKER, Kind::Issue, sector);
        let complete = Kind::Complete { failed: false };
        self.add(ns + 50_000, 0, complete, sector);
    }

    fn judged(mut self) -> Verdict {
        add_calls(&mut self.0, &MARKS, Vec::new().into());
        fixtures::verdict(Mode::Log, setup(), self.0)
    }
}

fn setup() -> Setup {
    let mut setup = fixtures::setup(Teller::default(), 250);
    setup.cpus = 2;
    setup.hctxs[0].cpus = vec![0, 1];
    setup
}

const A: &str = "00000000f88c0f3c";
const B: &str = "00000000108e6847";

/// Two reads, one after the other.
fn two_reads(second: &str, moves: u64) -> Capture {
    let mut capture = Capture::default();
    capture.read(0, 64, A);
    capture.goes(20_000, 64, (A, 4_000));
    capture.read(100_000, 128, B);
    capture.goes(120_000, 128, (second, moves));
    capture
}

#[test]
fn every_line_and_the_clock_between_two_of_them_agree() {
    let verdict = two_reads(B, 3_000).judged();
    let log = verdict.log.as_ref().expect("it has a log");
    assert_eq!(
        (log.total, log.predicted, log.alone),
        (8, 8, 0),
        "{verdict}"
    );
    assert_eq!((verdict.total, verdict.predicted), (2, 2), "{verdict}");
    assert!(verdict.conforms(), "{verdict}");
}

#[test]
fn another_name_for_the_same_request_is_a_difference() {
    let verdict = two_reads("00000000aaaaaaaa", 3_000).judged();
    let log = verdict.log.as_ref().expect("it has a log");
    let first = log.first_divergence.as_ref().expect("it differs");
    assert_eq!(first.index, 8, "{verdict}");
    assert!(first.text.contains("lines before:"), "{verdict}");
    assert_eq!((log.predicted, log.alone), (7, 1), "{verdict}");
    assert!(!verdict.conforms());
    assert_eq!(verdict.predicted, 2, "the decision is the same");
}

/// A task on another CPU allocates while a call is under way: its lines stand between those of the
/// call, or after them.
#[test]
fn a_line_without_the_lock_stands_anywhere_between_the_events_of_its_task() {
    let log = |inside: &[&str], after: &[&str]| {
        let mut capture = Capture::default();
        capture.read(0, 64, A);
        capture.add(19_000, OTHER, Kind::Queue, 128);
        capture.line(20_000, KWORKER, "ask");
        for line in inside {
            capture.line(21_000, OTHER, line);
        }
        let read =
            BEFORE_LINE + 4_000 - NS_A_LETTER * "gives 0123456789abcdef after 4000".len() as u64;
        capture.line(24_000, KWORKER, &format!("gives {A} after {read}"));
        for line in after {
            capture.line(25_000, OTHER, line);
        }
        capture.add(30_000, KWORKER, Kind::Issue, 64);
        capture.add(31_000, OTHER, Kind::Get, 128);
        capture.add(32_000, OTHER, Kind::Insert, 128);
        capture.line(33_000, OTHER, &format!("in {B} 128"));
        let verdict = capture.judged();
        let log = verdict.log.as_ref().expect("it has a log");
        (
            log.total,
            log.predicted,
            log.alone,
            log.first_divergence.is_none(),
        )
    };
    assert_eq!(log(&["free"], &[]), (6, 6, 0, true));
    assert_eq!(log(&[], &["free"]), (6, 6, 0, true));
    // Missing, one more, another text.
    assert_eq!(log(&[], &[]), (5, 5, 1, false));
    assert_eq!(log(&["free"], &["free"]), (7, 6, 0, false));
    assert_eq!(log(&["free 2"], &[]), (6, 5, 1, false));
}

#[test]
fn a_line_without_the_lock_belongs_to_one_allocation() {
    let mut capture = two_reads(B, 3_000);
    // That of the first read comes with the second one.
    let mut first = capture.0.list.remove(1);
    assert_eq!(first.kind, Kind::Line(0));
    let second = |event: &Event| event.kind == Kind::Queue && event.sector.0 == 128;
    let at = capture.0.list.iter().position(second).unwrap();
    first.time = capture.0.list[at].time;
    capture.0.list.insert(at + 1, first);
    let verdict = capture.judged();
    let log = verdict.log.as_ref().expect("it has a log");
    assert_eq!(
        (log.total, log.predicted, log.alone),
        (8, 7, 1),
        "{verdict}"
    );
    assert!(log.first_divergence.is_some(), "{verdict}");
}

/// io_uring allocates for all bios that it announced to its plug at once.
#[test]
fn requests_that_one_line_is_about_are_a_batch() {
    let mut capture = Capture::default();
    let asks = [true, false, false, true];
    for (number, asks) in (0..).zip(asks) {
        capture.add(number, TASK, Kind::Queue, number);
        if asks {
            capture.line(number, TASK, "free");
        }
        capture.add(number, TASK, Kind::Get, number);
        // The depth of a write with FUA is not limited.
        capture.0.list.last_mut().unwrap().flags.fua = number == 2;
    }
    let (stream, _) = Mode::Log.join(vec![capture.0], &[setup()], &Processes::default());
    let gets = |sector| {
        let is = |e: &Event| e.kind == Kind::Get && e.sector.0 == sector;
        stream.events.iter().position(is).unwrap()
    };
    assert_eq!(stream.batches, [(gets(0), 2), (gets(3), 1)].into());
}

#[test]
fn a_line_that_only_one_side_has_is_passed_over() {
    let mut capture = two_reads(B, 3_000);
    capture.0.list.retain(|event| event.kind != Kind::Line(2));
    capture.0.lines.remove(2);
    for event in &mut capture.0.list {
        if let Kind::Line(line) = &mut event.kind {
            *line -= u32::from(*line > 2);
        }
    }
    capture.line(300_000, KWORKER, "more");
    let verdict = capture.judged();
    let log = verdict.log.as_ref().expect("it has a log");
    assert!(log.predicted < log.total, "{verdict}");
    assert!(log.first_divergence.is_some(), "{verdict}");
}
