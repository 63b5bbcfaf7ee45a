//! Event sequences of real kernels in short, and the plugs in them.

use blkmq::time::SimTime;
use trace::blktrace::{Action, Categories, Event};

use super::{Plugs, RawStep};

/// Events of task 7 as letters; time is the position. `d` is a D of another task, `c` a C on the
/// back of task 7.
fn steps(letters: &str) -> String {
    let mut plugs = Plugs::default();
    for (at, letter) in letters.split_whitespace().enumerate() {
        let action = match letter {
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
        };
        let mut event = Event::new(SimTime(at as u64), action);
        event.pid = if letter == "d" { 38 } else { 7 };
        if matches!(letter, "I" | "D" | "d" | "c") {
            event.categories = Categories::FS;
        }
        // C without a request: turned away.
        event.error = if letter == "C" { 11 } else { 0 };
        plugs.add(&event);
    }
    let processes = plugs.finish(SimTime(1000));
    let [(7, steps)] = processes.as_slice() else {
        panic!("{processes:?}")
    };
    let letter = |step: &RawStep| match step {
        RawStep::Submit((at, ..), _) => format!("Q{}", at.0),
        RawStep::Plug(_) => "(".to_string(),
        RawStep::Unplug(at, _) => format!("{}:)", at.0),
    };
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
    // Without another P it had nothing more to gather.
    assert_eq!(steps("Q G P Q UT I d c G Q G I"), "( Q0 Q3 4:) Q9");
}

#[test]
fn direct_issue_without_u_ends_the_plug() {
    assert_eq!(steps("Q G P Q G D D Q G P D"), "( Q0 Q3 5:) ( Q7 10:)");
    // The run of a task that waits for a tag is no flush.
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
    let mut plugs = Plugs::default();
    for (at, action) in [
        (10, Action::Queue),
        (13, Action::GetRequest),
        (14, Action::Plug),
        (18, Action::Complete),
        (20, Action::Queue),
    ] {
        let mut event = Event::new(SimTime(at), action);
        event.pid = 7;
        plugs.add(&event);
    }
    let steps = &plugs.finish(SimTime(30))[0].1;
    let busy: Vec<u64> = steps
        .iter()
        .filter_map(|step| match step {
            RawStep::Submit(_, busy) | RawStep::Unplug(_, busy) => Some(busy.0),
            RawStep::Plug(_) => None,
        })
        .collect();
    assert_eq!(busy, [10, 6, 10]);
}
