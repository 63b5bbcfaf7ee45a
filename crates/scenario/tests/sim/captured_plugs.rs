//! Event sequences of real kernels in short, and the plugs in them.

use blkmq::time::SimTime;
use scenario::replay::read;
use sim::replay::{Point, Step, StepKind};
use trace::blktrace::{Action, Categories, Device, Event, Options, Writer, WriterOptions};

/// A whole second, which is time zero of the arrivals.
const START: u64 = 1_000_000_000;

/// Steps of task 7 in a trace of these actions by time, each of a bio of its own: what is not
/// matched is left out and changes no plug.
fn read_back(events: &[(u64, Event)], end: u64) -> Vec<Step> {
    let dir = tempfile::tempdir().unwrap();
    let options = WriterOptions::default();
    let mut writer = Writer::create(dir.path(), "dev", Device::new(8, 0), 1, options).unwrap();
    let mut last = Event::new(SimTime(START + end), Action::Complete);
    (last.pid, last.categories) = (38, Categories::FS);
    for (at, event) in events.iter().chain([&(end, last)]) {
        let mut event = *event;
        (event.time, event.device) = (SimTime(START + at), Device::new(8, 0));
        (event.sector, event.bytes) = (8 * (at + 1), 4096);
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
    let arrivals = read(&[dir.path()], Options::default(), Point::Queue, &[]).unwrap();
    let [stream] = arrivals.streams.as_slice() else {
        panic!("{:?}", arrivals.streams)
    };
    assert_eq!(stream.pid, 7);
    stream.steps.clone()
}

fn of_task(action: Action) -> Event {
    let mut event = Event::new(SimTime::ZERO, action);
    event.pid = 7;
    event
}

/// Events of task 7 as letters; time is the position. `d` is a D of another task, `c` a C on the
/// back of task 7.
fn steps(letters: &str) -> String {
    let event = |letter: &str| {
        let mut event = of_task(match letter {
            "Q" => Action::Queue,
            "G" => Action::GetRequest,
            "M" => Action::BackMerge,
            "P" => Action::Plug,
            "U" => Action::Unplug,
            "UT" => Action::UnplugTimer,
            "I" => Action::Insert,
            "D" | "d" => Action::Issue,
            "C" | "c" => Action::Complete,
            other => panic!("{other}"),
        });
        if letter == "d" {
            event.pid = 38;
        }
        if matches!(letter, "I" | "D" | "d" | "c") {
            event.categories = Categories::FS;
        }
        // C without a request: refused.
        event.error = if letter == "C" { 11 } else { 0 };
        event
    };
    let events: Vec<(u64, Event)> = (0..).zip(letters.split_whitespace().map(event)).collect();
    let letter = |step: &Step| match step.kind {
        StepKind::Submit(_) => format!("Q{}", step.at.0),
        StepKind::Plug => "(".to_string(),
        StepKind::Unplug => format!("{}:)", step.at.0),
    };
    let steps = read_back(&events, 1000);
    steps.iter().map(letter).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_plug_starts_before_the_bio_that_p_follows() {
    assert_eq!(steps("Q G P Q G Q M U I I d"), "( Q0 Q3 Q5 7:)");
    assert_eq!(steps("Q G I Q G P U Q G I"), "Q0 ( Q3 6:) Q7");
}

#[test]
fn a_full_plug_is_cut_and_goes_on() {
    assert_eq!(steps("Q G P Q G U I I P Q G U I"), "( Q0 Q3 Q9 11:)");
}

#[test]
fn a_task_that_sleeps_for_a_tag_keeps_its_plug() {
    assert_eq!(steps("Q G P Q UT I d c G P Q G U"), "( Q0 Q3 Q10 12:)");
    // Without another P the plug gathers no more.
    assert_eq!(steps("Q G P Q UT I d c G Q G I"), "( Q0 Q3 4:) Q9");
}

#[test]
fn direct_issue_without_u_ends_the_plug() {
    assert_eq!(steps("Q G P Q G D D Q G P D"), "( Q0 Q3 5:) ( Q7 10:)");
    // The run of a task that waits for a tag is not a flush.
    assert_eq!(steps("Q G P Q D UT I c G P U"), "( Q0 Q3 10:)");
}

#[test]
fn a_bio_that_was_turned_away_waits_for_nothing() {
    assert_eq!(steps("Q G P Q C D"), "( Q0 Q3 5:)");
}

#[test]
fn a_plug_that_is_open_at_the_end_of_the_trace_is_flushed_there() {
    assert_eq!(steps("Q G P Q G"), "( Q0 Q3 1000:)");
}

#[test]
fn time_on_the_cpu_counts_from_the_last_event_of_the_task() {
    let events = [
        (10, Action::Queue),
        (13, Action::GetRequest),
        (14, Action::Plug),
        (18, Action::Complete),
        (20, Action::Queue),
    ];
    let steps = read_back(&events.map(|(at, action)| (at, of_task(action))), 30);
    let of_kind = steps.iter().filter(|step| step.kind != StepKind::Plug);
    let busy: Vec<u64> = of_kind.map(|step| step.busy.0).collect();
    // Before the first of them it was not seen: since time zero of the trace's clock.
    assert_eq!(busy, [START + 10, 6, 10]);
}
