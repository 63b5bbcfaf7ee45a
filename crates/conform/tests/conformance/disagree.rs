//! Disagreements that must be found: rules of another kernel, other tunables, other decisions.

use std::fs;

use crate::change::changed;
use crate::common::{run_in, traces};
use crate::issues::with_issues;
use blkmq::rules::Rules;
use conform::{Mode, Verdict};
use tempfile::TempDir;
use trace::blktrace::{self, Categories};

#[test]
#[ignore = "half a minute: cargo xtask ci --full"]
fn other_rules_diverge_by_records_under_other_loads() {
    diverges_by_records("m4-sq4-mq-deadline", 940);
    diverges_by_records("m2-mix7030-mq-deadline", 940);
}

fn diverges_by_records(name: &str, most: u64) {
    let wrong = Some(Rules::v6_12());
    let verdict = run_in(&traces(name), Mode::Records, wrong).unwrap();
    assert!(verdict.diverged() > 0, "{name}: {verdict}");
    assert!(verdict.predicted <= most, "{name}: {verdict}");
}

/// On one CPU with all records there is nothing that cannot be judged: a wrong scheduler diverges.
/// On two CPUs most of it does.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn wrong_decisions_are_not_called_undecidable() {
    let copy = changed("dd01-defaults", "queue.txt", |text| {
        text.replace("fifo_batch=16", "fifo_batch=8")
    });
    for mode in [Mode::Calls, Mode::Records] {
        let wrong_rules = run_in(&traces("dd09-waves"), mode, Some(Rules::v6_12())).unwrap();
        let wrong_batch = run_in(copy.path(), mode, None).unwrap();
        for verdict in [wrong_rules, wrong_batch] {
            assert_eq!(verdict.unjudged(), 0, "{verdict}");
            assert!(verdict.diverged() > 0, "{verdict}");
        }
    }
    for mode in [Mode::Calls, Mode::Records] {
        let name = traces("m2-randread-mq-deadline");
        let wrong = run_in(&name, mode, Some(Rules::v6_12())).unwrap();
        assert!(wrong.diverged() > wrong.total / 50, "{wrong}");
    }
    let swapped = with_issues("dd02-batch1", |issues| swap(issues, 50, 51));
    let (_, verdict) = first_miss(&swapped);
    assert_eq!(verdict.unjudged(), 0, "{verdict}");
}

/// Without probes a call is paired with the D of what it chose, also where runs hand over requests
/// of several hardware queues.
#[test]
fn a_call_without_a_probe_has_the_d_of_its_choice() {
    for name in ["m4-sq4-bfq", "m2-randread-bfq"] {
        let verdict = without_probes(&with_issues(name, |_| {}));
        assert_eq!((verdict.predicted, verdict.total), (999, 999), "{verdict}");
    }
}

#[test]
#[ignore = "minutes: cargo xtask ci --full"]
fn a_call_with_one_d_and_without_a_probe_has_that_one() {
    let copy = with_issues("bf04-weights", |issues| swap(issues, 50, 51));
    let swapped = without_probes(&copy);
    assert!(swapped.diverged() >= 2, "{swapped}");
}

fn without_probes(copy: &TempDir) -> Verdict {
    fs::remove_file(copy.path().join("ftrace.txt.xz")).unwrap();
    run_in(copy.path(), Mode::Calls, None).unwrap()
}

/// Gives two D each other's request; time, CPU and task stay.
fn swap(issues: &mut [blktrace::Event], one: usize, other: usize) {
    let (a, b) = (issues[one], issues[other]);
    for (to, from) in [(one, b), (other, a)] {
        issues[to].sector = from.sector;
        issues[to].bytes = from.bytes;
        issues[to].categories = from.categories;
    }
}

#[track_caller]
fn first_miss(copy: &TempDir) -> (u64, Verdict) {
    let verdict = run_in(copy.path(), Mode::Records, None).unwrap();
    let first = verdict.first_divergence.clone();
    (first.expect("the change goes unnoticed").index, verdict)
}

#[test]
fn an_unchanged_copy_conforms() {
    for name in ["dd09-waves", "no02-waves"] {
        let verdict = run_in(with_issues(name, |_| {}).path(), Mode::Records, None).unwrap();
        assert!(verdict.conforms(), "{verdict}");
    }
}

#[test]
fn swapped_issues_are_found_where_they_are() {
    for (name, one, other) in [
        ("dd01-defaults", 40, 41),
        ("dd09-waves", 300, 305),
        ("dd22-k612-prio", 70, 90),
        ("no01-burst", 30, 31),
        ("no02-waves", 17, 18),
    ] {
        let copy = with_issues(name, |issues| swap(issues, one, other));
        let (index, verdict) = first_miss(&copy);
        assert_eq!(index, one as u64 + 1, "{name}: {verdict}");
    }
}

#[test]
fn a_changed_issue_is_one_miss() {
    for (name, at) in [
        ("dd03-expiry", 60),
        ("dd10-bigsizes", 100),
        ("no02-waves", 300),
    ] {
        let moved = with_issues(name, |issues| issues[at].sector += 8);
        let (index, verdict) = first_miss(&moved);
        assert_eq!(index, at as u64 + 1, "{name}: {verdict}");
        assert_eq!(verdict.predicted + 1, verdict.total, "{name}: {verdict}");

        let turned = with_issues(name, |issues| {
            issues[at].categories.0 ^= Categories::READ.with(Categories::WRITE).0;
        });
        assert_eq!(first_miss(&turned).0, at as u64 + 1, "{name}");

        let longer = with_issues(name, |issues| issues[at].bytes += 4096);
        assert_eq!(first_miss(&longer).0, at as u64 + 1, "{name}");
    }
}

/// After a miss the replay goes on from the kernel's choice: two swapped neighbours are two
/// misses at most, and not the rest of the trace.
#[test]
fn misses_do_not_spread() {
    for name in ["dd02-batch1", "dd04-starved8", "dd10-bigsizes"] {
        let copy = with_issues(name, |issues| swap(issues, 50, 51));
        let (_, verdict) = first_miss(&copy);
        assert!(verdict.total - verdict.predicted <= 4, "{verdict}");
    }
}

/// In mode calls the kernel's choice is what a call returned.
#[test]
fn swapped_answers_are_found_where_they_are() {
    let copy = changed("dd02-batch1", "ftrace.txt", |text| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let answers: Vec<usize> = (0..lines.len())
            .filter(|&i| lines[i].contains(" dd: "))
            .collect();
        let [one, other] = [answers[40], answers[41]];
        let request = |line: &str| {
            let (head, rest) = line.split_once(" rq=").unwrap();
            let (request, tail) = rest.split_once(" ft=").unwrap();
            [head.to_owned(), request.to_owned(), tail.to_owned()]
        };
        let (a, b) = (request(&lines[one]), request(&lines[other]));
        lines[one] = format!("{} rq={} ft={}", a[0], b[1], a[2]);
        lines[other] = format!("{} rq={} ft={}", b[0], a[1], b[2]);
        lines.join("\n")
    });
    let verdict = run_in(copy.path(), Mode::Calls, None).unwrap();
    let first = verdict.first_divergence.as_ref().expect("goes unnoticed");
    assert_eq!(first.index, 41, "{verdict}");
}
