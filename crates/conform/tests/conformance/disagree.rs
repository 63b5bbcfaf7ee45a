//! Disagreements that must be found: rules of another kernel, other tunables, other decisions.

use crate::change::changed;
use crate::common::{run_in, traces};
use crate::issues::with_issues;
use blkmq::rules::Rules;
use conform::{Mode, Options, Verdict};
use tempfile::TempDir;
use trace::blktrace::{self, Categories};
use trace::capture::CaptureDir;

/// Rules of another kernel, and another answer without a record, are found out.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_log_does_not_agree_with_everything() {
    for (name, wrong) in [
        ("bf01-seq2", Rules::v6_12()),
        ("bf38-k612-softrt", Rules::v6_1()),
        ("bf34-async", Rules::v6_12()),
    ] {
        let verdict = run_in(&traces(name), Mode::Log, Some(wrong)).unwrap();
        assert!(!verdict.conforms(), "{name} conforms to {}", wrong.name);
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_log_does_not_agree_with_another_kind_of_disk() {
    let options = Options {
        mode: Some(Mode::Log),
        rules: None,
        rotational_when_chosen: Some(true),
        ..Options::default()
    };
    let dir = CaptureDir::open(&traces("bf01-seq2")).unwrap();
    let verdict = conform::run(&dir, &options).unwrap();
    assert!(!verdict.conforms(), "{verdict}");
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_kernel_does_not_follow_another_ones_rules() {
    for (name, wrong) in [
        ("dd01-defaults", Rules::v6_12()),
        ("dd09-waves", Rules::v6_12()),
        ("dd21-k612-defaults", Rules::v6_1()),
        ("dd22-k612-prio", Rules::v6_1()),
    ] {
        for mode in [Mode::Calls, Mode::Records] {
            let verdict = run_in(&traces(name), mode, Some(wrong)).unwrap();
            assert!(!verdict.conforms(), "{name} conforms to {}", wrong.name);
            assert_eq!(verdict.rules, wrong.name);
        }
    }
    let verdict = run_in(&traces("no02-waves"), Mode::Records, Some(Rules::v6_12())).unwrap();
    assert!(!verdict.conforms(), "plugs of 6.1 are stacks");
}

/// The search does not explain everything: records distinguish rules of another kernel, too.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn other_rules_diverge_by_records_on_several_cpus() {
    diverges_by_records("m2-randread-mq-deadline", 980);
}

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

/// With other rules calls on several CPUs diverge, at every tried time of a call.
#[test]
fn overlapping_calls_do_not_explain_everything() {
    for name in ["m2-randread-mq-deadline", "m4-sq4-mq-deadline"] {
        let verdict = run_in(&traces(name), Mode::Calls, Some(Rules::v6_12())).unwrap();
        let wrong = verdict.total - verdict.predicted;
        assert!(wrong > verdict.total / 50, "{verdict}");
    }
}

#[test]
fn a_changed_tunable_diverges() {
    for (name, from, to) in [
        ("dd01-defaults", "fifo_batch=16", "fifo_batch=8"),
        ("dd01-defaults", "async_depth=256", "async_depth=1"),
        ("dd04-starved8", "writes_starved=8", "writes_starved=7"),
        ("dd03-expiry", "read_expire=20", "read_expire=60"),
        (
            "dd05-prio-aging",
            "prio_aging_expire=100",
            "prio_aging_expire=400",
        ),
    ] {
        let copy = changed(name, "queue.txt", |text| {
            assert!(text.contains(from));
            text.replace(from, to)
        });
        for mode in [Mode::Calls, Mode::Records] {
            let verdict = run_in(copy.path(), mode, None).unwrap();
            assert!(
                !verdict.conforms(),
                "{name} with {to}, mode {}",
                mode.name()
            );
        }
    }
}

/// Allocated tags are not recorded, but whether there was one is: a limit that is not the kernel's
/// is reported, even where the same requests are dispatched.
#[test]
fn another_limit_of_asynchronous_operations_is_reported() {
    for (name, from, to) in [
        (
            "dd16-asyncdepth-stale",
            "async_depth=2 ",
            "async_depth=200 ",
        ),
        ("dd07-merges", "async_depth=256", "async_depth=1"),
    ] {
        let copy = changed(name, "queue.txt", |text| {
            assert!(text.contains(from));
            text.replace(from, to)
        });
        for mode in [Mode::Calls, Mode::Records] {
            let verdict = run_in(copy.path(), mode, None).unwrap();
            let message = !verdict.conforms() || !verdict.notes.is_empty();
            assert!(message, "{name} with {to}, mode {}", mode.name());
        }
    }
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
