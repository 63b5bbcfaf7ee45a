//! Captures of bfq without its log, where the missing data is assumed, and each assumption is
//! named; and what its log shows of several CPUs.

use std::fs;
use std::path::Path;

use crate::common::{run_in, traces};
use crate::rewritten::with_records;
use blkmq::time::Duration;
use conform::{Mode, Options, Verdict};
use tempfile::TempDir;
use trace::blktrace::Action;
use trace::capture::CaptureDir;

/// A copy of a capture whose blktrace lacks the scheduler's lines.
fn without_log(name: &str) -> TempDir {
    with_records(name, None, |events| {
        let before = events.len();
        events.retain(|event| event.action != Action::Message);
        assert!(events.len() < before, "{name}: no message");
    })
}

fn run(dir: &Path, mode: Mode, options: Options) -> Verdict {
    let options = Options {
        mode: Some(mode),
        ..options
    };
    conform::run(&CaptureDir::open(dir).unwrap(), &options).unwrap()
}

/// Number of lines about assumptions that begin like this.
fn taken(verdict: &Verdict, what: &str) -> usize {
    let begins = |line: &&String| line.starts_with(&format!("nullb0: {what}"));
    verdict.taken.iter().filter(begins).count()
}

#[test]
fn what_the_log_would_report_is_taken_and_named() {
    let copy = without_log("bf37-largeburst");
    for (mode, unseen) in [(Mode::Calls, 0), (Mode::Records, 1)] {
        let verdict = run_in(copy.path(), mode, None).unwrap();
        assert!(verdict.conforms(), "{verdict}");
        assert_eq!(taken(&verdict, "a dispatch call decides 30 us before"), 1);
        assert_eq!(taken(&verdict, "a dispatch call that no D shows"), unseen);
        assert_eq!(taken(&verdict, "processes exit 22 ms after"), 1);
        let exits = verdict.taken.iter().find(|line| line.contains("processes"));
        assert!(exits.unwrap().contains("bu9 3250 at 0.39"), "{verdict}");
    }
    let whole = run_in(&traces("bf37-largeburst"), Mode::Calls, None).unwrap();
    assert_eq!(taken(&whole, "a dispatch call"), 0, "{whole}");
    assert_eq!(taken(&whole, "processes"), 0, "{whole}");
}

/// By option, or in meta.txt.
#[test]
fn what_is_reported_is_not_taken() {
    let copy = without_log("bf37-largeburst");
    let options = Options {
        decided_before: Some(Duration::from_micros(25)),
        decided_after: Some(Duration::from_micros(70)),
        exits_after: Some(Duration::from_millis(20)),
        ..Options::default()
    };
    let verdict = run(copy.path(), Mode::Records, options);
    assert!(verdict.conforms(), "{verdict}");
    assert_eq!(taken(&verdict, "a dispatch"), 0, "{verdict}");
    assert_eq!(taken(&verdict, "processes"), 0, "{verdict}");

    let meta = copy.path().join("meta.txt");
    let message = "decided_before_us=25\ndecided_after_us=70\nexit_3250=0.399576604\n\
                exit_9=1\n";
    let text = fs::read_to_string(&meta).unwrap();
    fs::remove_file(&meta).unwrap();
    fs::write(&meta, format!("{text}{message}")).unwrap();
    let verdict = run(copy.path(), Mode::Records, Options::default());
    assert!(verdict.conforms(), "{verdict}");
    assert_eq!(taken(&verdict, "a dispatch"), 0, "{verdict}");
    let exits = verdict.taken.iter().find(|line| line.contains("processes"));
    assert!(!exits.unwrap().contains("3250"), "{verdict}");
    assert!(verdict.to_string().contains("exit_9: no process"));
}

/// A moment that is far off decides otherwise, and the first difference shows how.
#[test]
fn the_first_divergence_shows_both_sides() {
    let copy = without_log("bf35-groups");
    let right = run(copy.path(), Mode::Calls, Options::default());
    assert!(right.diverged() <= 1, "{right}");
    let options = Options {
        decided_before: Some(Duration(0)),
        ..Options::default()
    };
    let wrong = run(copy.path(), Mode::Calls, options);
    assert!(wrong.diverged() > 100, "{wrong}");
    for verdict in [right, wrong] {
        for each in &verdict.divergences {
            assert_ne!(each.kernel, each.model, "{}", each.text);
            assert!(each.text.contains("kernel's queue:"), "{}", each.text);
            assert!(each.text.contains("model's queue:"), "{}", each.text);
        }
    }
}

/// The log has the tick of each section, and when a completion has the lock. blktrace names some
/// workers of io_uring as their owners are named, and one capture has no pointers.
#[test]
fn the_log_of_several_cpus_is_followed() {
    for (name, at_most) in [
        ("m2-seqmerge-bfq", 0),
        ("m2-randread-bfq", 0),
        // Lines outside the lock.
        ("m4-sq4-bfq", 60),
        ("sd-fsync-bfq", 0),
        // A tick within a section.
        ("m4-k612-sq4-bfq", 0),
        // Ends of I/Os of which the log has fewer than blktrace.
        ("m2-k612-uring-bfq", 5),
        ("m4-k612-uring-bfq", 8),
    ] {
        let verdict = run(&traces(name), Mode::Log, Options::default());
        assert_eq!(verdict.predicted, verdict.total, "{verdict}");
        let log = verdict.log.as_ref().expect("it has a log");
        let differ = log.total - log.predicted + log.alone;
        assert!(differ <= at_most, "{verdict}");
    }
}
