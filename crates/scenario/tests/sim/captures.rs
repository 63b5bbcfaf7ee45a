//! Small traces written as files and read back as arrivals.

use std::path::Path;

use blkmq::request::{Op, Sector};
use blkmq::time::{Duration, SimTime};
use trace::blktrace::{Action, Categories, Device, Event, Options, Writer, WriterOptions};

use sim::replay::{Arrivals, Lookup, Point, StepKind, Stream};

use scenario::replay::ReadError;

/// Times in the traces start here: one second and a bit, so that the base is a whole second.
const START: u64 = 1_000_000_100;

/// `pid letter sector+sectors` at a time after the start; then `w` for writes, `!` for EAGAIN.
fn write(dir: &Path, lines: &[(u64, &str)]) {
    write_named(dir, lines, &[(7, "seven")]);
}

fn write_named(dir: &Path, lines: &[(u64, &str)], names: &[(u32, &str)]) {
    let options = WriterOptions::default();
    let mut writer = Writer::create(dir, "dev", Device::new(8, 0), 1, options).unwrap();
    for (pid, name) in names {
        writer.name_process(*pid, name);
    }
    for &(at, line) in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (action, of_request) = match words[1] {
            "Q" => (Action::Queue, false),
            "G" => (Action::GetRequest, false),
            "I" => (Action::Insert, true),
            "D" => (Action::Issue, true),
            "C" => (Action::Complete, true),
            other => panic!("{other}"),
        };
        let mut event = Event::new(SimTime(START + at), action);
        event.device = Device::new(8, 0);
        event.pid = words[0].parse().unwrap();
        let (sector, sectors) = words[2].split_once('+').unwrap();
        event.sector = sector.parse().unwrap();
        event.bytes = sectors.parse::<u32>().unwrap() * 512;
        let flags = words.get(3).copied().unwrap_or("");
        let direction = if flags.contains('w') {
            Categories::WRITE
        } else {
            Categories::READ
        };
        let family = match action {
            Action::Issue => Categories::ISSUE,
            Action::Complete => Categories::COMPLETE,
            _ => Categories::QUEUE,
        };
        event.categories = direction.with(family);
        if flags.contains('!') {
            event.error = 11;
        } else if of_request {
            event.categories = event.categories.with(Categories::FS);
        }
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
}

fn read(lines: &[(u64, &str)], point: Point) -> Result<Arrivals, ReadError> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), lines);
    scenario::replay::read(&[dir.path()], Options::default(), point, &[])
}

/// Two processes, one at depth two.
const TRACE: &[(u64, &str)] = &[
    (0, "7 Q 100+8"),
    (1, "7 G 100+8"),
    (2, "7 D 100+8"),
    (10, "7 Q 200+8 w"),
    (11, "7 G 200+8 w"),
    (12, "7 D 200+8 w"),
    (15, "9 Q 300+8"),
    (16, "9 G 300+8"),
    (17, "9 D 300+8"),
    (50, "0 C 200+8 w"),
    (60, "7 Q 400+8"),
    (61, "7 G 400+8"),
    (62, "7 D 400+8"),
    (70, "0 C 300+8"),
    (80, "0 C 100+8"),
    (90, "9 Q 500+8"),
    (91, "9 G 500+8"),
    (92, "9 D 500+8"),
    (95, "0 C 400+8"),
    (99, "0 C 500+8"),
];

#[test]
fn arrivals_keep_their_times_relative_to_a_whole_second() {
    let arrivals = read(TRACE, Point::Queue).unwrap();
    assert_eq!(arrivals.base, SimTime(1_000_000_000));
    let queued: Vec<u64> = arrivals
        .ios
        .iter()
        .map(|io| io.captured.queued.0 - 100)
        .collect();
    assert_eq!(queued, [0, 10, 15, 60, 90]);
    let ops: Vec<Op> = arrivals.ios.iter().map(|io| io.op).collect();
    assert_eq!(ops, [Op::Read, Op::Write, Op::Read, Op::Read, Op::Read]);
    assert_eq!((arrivals.disks[0].depth, arrivals.cpus), (3, 1));
    assert_eq!(arrivals.disks[0].services.len(), 5);
    assert!(arrivals.notes.is_empty(), "{:?}", arrivals.notes);
}

/// A request whose C comes in two parts is with the device until the second.
#[test]
fn completions_in_parts_are_one_service() {
    let lines = [
        (0, "7 Q 100+16"),
        (2, "7 D 100+16"),
        (50, "0 C 100+8"),
        (60, "0 C 108+8"),
    ];
    let mut arrivals = read(&lines, Point::Queue).unwrap();
    assert_eq!(
        (arrivals.disks[0].services.len(), arrivals.disks[0].depth),
        (1, 1)
    );
    let taken = arrivals.disks[0]
        .services
        .take(Op::Read, (Sector(100), 16), 1);
    assert_eq!(taken, Lookup::Exact(Duration(58)));
}

#[test]
fn think_times_count_from_the_completion_that_came_before() {
    let arrivals = read(TRACE, Point::Queue).unwrap();
    let [seven, nine] = arrivals.streams.as_slice() else {
        panic!("two processes")
    };
    assert_eq!((seven.name.as_str(), seven.pid, nine.pid), ("seven", 7, 9));
    let waits = |stream: &Stream| -> Vec<(u32, u64)> {
        stream
            .steps
            .iter()
            .map(|step| (step.after, step.think.0))
            .collect()
    };
    // The third of task 7 comes 10 ns after the first completion of its own, the write's.
    assert_eq!(waits(seven), [(0, 100), (0, 110), (1, 10)]);
    assert_eq!(waits(nine), [(0, 115), (1, 20)]);
}

/// A task that has two in flight waits for room: its third I/O for one completion, not for both
/// that it happened to see.
#[test]
fn a_process_waits_for_room_at_its_depth() {
    let trace = [
        (0, "7 Q 100+8"),
        (1, "7 D 100+8"),
        (2, "7 Q 200+8"),
        (3, "7 D 200+8"),
        (10, "0 C 100+8"),
        (11, "0 C 200+8"),
        (20, "7 Q 300+8"),
        (21, "7 D 300+8"),
        (25, "7 Q 400+8"),
        (26, "7 D 400+8"),
        (40, "0 C 300+8"),
        (41, "0 C 400+8"),
    ];
    let arrivals = read(&trace, Point::Queue).unwrap();
    let steps = arrivals.streams[0].steps.iter();
    let waits: Vec<(u32, u64)> = steps.map(|step| (step.after, step.think.0)).collect();
    assert_eq!(waits, [(0, 100), (0, 102), (1, 10), (2, 14)]);
}

/// A worker of io_uring has the depth of its ring's task.
#[test]
fn a_ring_waits_together_with_its_workers() {
    let trace = [
        (0, "7 Q 100+8"),
        (1, "7 D 100+8"),
        (2, "8 Q 200+8"),
        (3, "8 D 200+8"),
        (10, "0 C 100+8"),
        (12, "8 Q 300+8"),
        (13, "8 D 300+8"),
        (20, "0 C 200+8"),
        (21, "0 C 300+8"),
    ];
    let dir = tempfile::tempdir().unwrap();
    write_named(dir.path(), &trace, &[(7, "seven"), (8, "iou-wrk-7")]);
    let read = scenario::replay::read(&[dir.path()], Options::default(), Point::Queue, &[]);
    let arrivals = read.unwrap();
    let [task, worker] = arrivals.streams.as_slice() else {
        panic!("two tasks")
    };
    assert_eq!((task.ring, worker.ring), (0, 0));
    // Its second waits for the task's completion.
    assert_eq!(worker.steps[1].after, 1);
    assert_eq!(worker.steps[1].think, Duration(2));
}

#[test]
fn a_bio_that_was_turned_away_is_replayed_once_and_counted() {
    let trace = [
        (0, "7 Q 100+8"),
        (1, "7 C 100+8 !"),
        (5, "8 Q 100+8"),
        (6, "8 G 100+8"),
        (7, "8 D 100+8"),
        (9, "0 C 100+8"),
    ];
    let arrivals = read(&trace, Point::Queue).unwrap();
    assert_eq!(arrivals.ios.len(), 1);
    assert_eq!(arrivals.ios[0].pid, 8);
    assert_eq!(arrivals.streams.len(), 1);
    assert!(
        arrivals.notes[0].starts_with("1 I/O: turned away"),
        "{:?}",
        arrivals.notes
    );
}

#[test]
fn bios_without_end_and_without_beginning_are_counted() {
    let trace = [
        (0, "0 C 900+8"),
        (1, "7 D 800+8"),
        (2, "7 Q 100+8"),
        (3, "7 G 100+8"),
        (4, "7 D 100+8"),
        (5, "0 C 800+8"),
    ];
    let arrivals = read(&trace, Point::Queue).unwrap();
    assert_eq!(arrivals.ios.len(), 1);
    assert_eq!(arrivals.ios[0].captured.completed, SimTime::NEVER);
    let said = |what: &str| arrivals.notes.iter().any(|note| note.contains(what));
    assert!(said("the trace has no Q of it"), "{:?}", arrivals.notes);
    assert!(
        said("1 I/O: replayed, but without completion"),
        "{:?}",
        arrivals.notes
    );
    // Its service is known all the same.
    assert_eq!(arrivals.disks[0].services.len(), 1);
}

#[test]
fn from_d_requests_arrive_when_they_were_issued() {
    let arrivals = read(TRACE, Point::Issue).unwrap();
    let queued: Vec<u64> = arrivals
        .ios
        .iter()
        .map(|io| io.captured.queued.0 - 100)
        .collect();
    assert_eq!(queued, [2, 12, 17, 62, 92]);
    let plain = |stream: &Stream| {
        stream
            .steps
            .iter()
            .all(|step| matches!(step.kind, StepKind::Submit(_)))
    };
    assert!(arrivals.streams.iter().all(plain));
}

#[test]
fn a_trace_without_arrivals_is_an_error_that_says_what_would_help() {
    let trace = [(0, "7 D 100+8"), (9, "0 C 100+8")];
    let error = read(&trace, Point::Queue).unwrap_err();
    assert!(error.to_string().contains("--from D"), "{error}");
    assert_eq!(read(&trace, Point::Issue).unwrap().ios.len(), 1);
}
