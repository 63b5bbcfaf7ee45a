//! The reference against captured kernels, and what must not be taken for agreement.

mod common;
mod whole;

use std::fs;
use std::path::PathBuf;

use blkmq::rules::Rules;
use common::{changed, run_in, traces};
use conform::{self, Error, Mode, Options, Verdict};
use tempfile::TempDir;
use trace::blktrace::{self, Action, Categories, Reader, Writer, WriterOptions};
use trace::capture::CaptureDir;
use whole::{assert_conforms, run};

const DETERMINISTIC: [&str; 14] = [
    "dd01-defaults",
    "dd02-batch1",
    "dd03-expiry",
    "dd04-starved8",
    "dd05-prio-aging",
    "dd06-prio",
    "dd07-merges",
    "dd08-nofront",
    "dd09-waves",
    "dd10-bigsizes",
    "dd16-asyncdepth-stale",
    "dd21-k612-defaults",
    "dd22-k612-prio",
    "dd23-k612-merges",
];

const WITHOUT_SCHEDULER: [&str; 10] = [
    "no01-burst",
    "no02-waves",
    "m2-k612-none",
    "m2-mix7030-none",
    "m2-randread-none",
    "m2-seqmerge-none",
    "m4-sq4-none",
    "sd-fua-none",
    "sd-rand-none",
    "sd-trim-none",
];

#[test]
fn every_call_of_the_deterministic_captures_is_predicted() {
    for name in DETERMINISTIC {
        assert_conforms(name, Mode::Calls);
    }
}

#[test]
fn every_record_of_the_deterministic_captures_is_predicted() {
    for name in DETERMINISTIC {
        assert_conforms(name, Mode::Records);
    }
}

#[test]
fn every_record_without_scheduler_is_predicted() {
    for name in WITHOUT_SCHEDULER {
        assert_conforms(name, Mode::Records);
    }
}

#[test]
fn calls_on_several_cpus_are_predicted() {
    for name in [
        "m2-prio-mq-deadline",
        "m2-randread-mq-deadline",
        "m2-k612-irq1-mq-deadline",
        "m2-k612-mq-deadline",
        "m4-shared3-mq-deadline",
        "m4-sq4-mq-deadline",
        "sd-fsync-mq-deadline",
        "sd-fua-mq-deadline",
    ] {
        assert_conforms(name, Mode::Calls);
    }
}

/// Ctx queues, hctxs and tokens on several CPUs: from calls, and from records alone.
#[test]
fn a_scheduler_with_several_locks_is_predicted_on_several_cpus() {
    for name in [
        "m2-randread-kyber",
        "m4-sq4-kyber",
        "sd-fsync-kyber",
        "sd-rand-kyber",
    ] {
        let verdict = run(name, Mode::Calls);
        assert_eq!(verdict.predicted, verdict.total, "{verdict}");
    }
    for name in [
        "m2-mix7030-kyber",
        "m2-randread-kyber",
        "m2-seqmerge-kyber",
        "m4-sq4-kyber",
        "sd-fsync-kyber",
        "sd-rand-kyber",
        "sd-trim-kyber",
    ] {
        let verdict = run(name, Mode::Records);
        assert_eq!(verdict.predicted, verdict.total, "{verdict}");
    }
    let name = "mp-service-time-kyber";
    let verdict = run(name, Mode::Records);
    assert_eq!(verdict.unjudged(), 600, "{verdict}");
    assert!(verdict.predicted >= 1489, "{verdict}");
    let options = Options {
        mode: Some(Mode::Calls),
        trace_device: Some("dm-0".to_owned()),
        rules: None,
        rotational_when_chosen: None,
    };
    let verdict = conform::run(&CaptureDir::open(&traces(name)).unwrap(), &options).unwrap();
    assert_eq!((verdict.predicted, verdict.total), (600, 600), "{verdict}");
}

/// Of a scheduler that writes a log: captures whose order is its decision alone, with their lines.
const TOLD: [(&str, u64); 20] = [
    ("bf01-seq2", 3671),
    ("bf02-seq2-lowlat", 4060),
    ("bf03-noidle", 8835),
    ("bf04-weights", 26_928),
    ("bf05-budget", 6581),
    ("bf06-burst10", 4587),
    ("bf07-classes", 11_385),
    ("bf08-dump", 4998),
    ("bf09-nonrot", 5099),
    ("bf10-think", 2214),
    ("bf11-one", 1096),
    ("bf21-k612-seq2", 2758),
    ("bf31-coop-split", 7632),
    ("bf32-stable-delayed", 11_236),
    ("bf33-waker", 7252),
    ("bf34-async", 6672),
    ("bf35-groups", 8784),
    ("bf36-autobudget", 9831),
    ("bf37-largeburst", 10_621),
    ("bf38-k612-softrt", 10_060),
];

#[test]
fn every_line_of_a_scheduler_that_writes_a_log_is_predicted() {
    for (name, lines) in TOLD {
        let verdict = run(name, Mode::Log);
        assert!(verdict.total > 0 && verdict.conforms(), "{verdict}");
        let log = verdict.log.as_ref().expect("the blktrace files have it");
        assert_eq!(
            (log.total, log.predicted, log.alone),
            (lines, lines, 0),
            "{verdict}"
        );
    }
}

/// On several CPUs the tick at which a section reads its clock is not recorded: lines with a time
/// in ticks may differ, and so may the order of sections. At least so many lines are predicted, and
/// every dispatch.
#[test]
fn dispatches_of_a_scheduler_that_writes_a_log_are_predicted_on_several_cpus() {
    for (name, lines) in [
        ("m2-prio-bfq", 12_897),
        ("m2-randread-bfq", 11_058),
        ("m2-randwrite-d64-bfq", 14_944),
        ("m2-seqmerge-bfq", 1332),
        ("m4-shared4-bfq", 13_016),
        ("m4-sq4-bfq", 10_867),
        ("sd-fsync-bfq", 5484),
        ("sd-rand-bfq", 8338),
    ] {
        let verdict = run(name, Mode::Log);
        assert_eq!(verdict.predicted, verdict.total, "{verdict}");
        let log = verdict.log.as_ref().expect("the blktrace files have it");
        assert!(log.predicted >= lines, "{name}: {verdict}");
    }
}

/// Rules of another kernel, and another answer to what no record tells, are found out.
#[test]
fn a_log_does_not_agree_with_everything() {
    for (name, wrong) in [
        ("bf01-seq2", Rules::v6_12()),
        ("bf38-k612-softrt", Rules::v6_1()),
        ("bf34-async", Rules::v6_12()),
    ] {
        let verdict = run_in(&traces(name), Mode::Log, Some(wrong)).unwrap();
        assert!(!verdict.conforms(), "{name} conforms to {}", wrong.name);
    }
    let options = Options {
        mode: Some(Mode::Log),
        trace_device: None,
        rules: None,
        rotational_when_chosen: Some(true),
    };
    let dir = CaptureDir::open(&traces("bf01-seq2")).unwrap();
    let verdict = conform::run(&dir, &options).unwrap();
    assert!(!verdict.conforms(), "{verdict}");
}

/// Orders that records do not carry are searched for. What is left are races: at least so many are
/// predicted.
#[test]
fn records_on_several_cpus_are_predicted_but_for_races() {
    for (name, least) in [
        ("m2-k612-irq1-mq-deadline", 800),
        ("m2-k612-mq-deadline", 693),
        ("m2-mix7030-mq-deadline", 986),
        ("m2-prio-mq-deadline", 900),
        ("m2-randread-mq-deadline", 999),
        ("m2-seqmerge-mq-deadline", 125),
        ("m4-shared3-mq-deadline", 898),
        ("m4-sq4-mq-deadline", 969),
        ("mp-service-time-mq-deadline", 1484),
        ("sd-fsync-mq-deadline", 499),
        ("sd-fua-mq-deadline", 176),
        ("sd-trim-mq-deadline", 300),
    ] {
        let verdict = run(name, Mode::Records);
        assert!(verdict.predicted >= least, "{name}: {verdict}");
    }
}

/// The search does not explain everything: rules of another kernel are told apart by records, too.
#[test]
fn other_rules_diverge_by_records_on_several_cpus() {
    for (name, most) in [
        ("m2-randread-mq-deadline", 980),
        ("m4-sq4-mq-deadline", 940),
        ("m2-mix7030-mq-deadline", 940),
    ] {
        let wrong = Some(Rules::v6_12());
        let verdict = run_in(&traces(name), Mode::Records, wrong).unwrap();
        assert!(verdict.diverged() > 0, "{name}: {verdict}");
        assert!(verdict.predicted <= most, "{name}: {verdict}");
    }
}

/// An empty return is a dispatch, too: there is one in this capture and none of it has a D.
#[test]
fn empty_calls_count() {
    let calls = run("dd05-prio-aging", Mode::Calls);
    let records = run("dd05-prio-aging", Mode::Records);
    assert_eq!((calls.total, records.total), (130, 129));
}

#[test]
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

/// Other rules let calls on several CPUs diverge, whatever moment of a call is tried.
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

/// Which tags are taken is not recorded, but whether there was one is: a limit that is not the
/// kernel's is told, even where the same requests are dispatched.
#[test]
fn another_limit_of_asynchronous_operations_is_told() {
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
            let told = !verdict.conforms() || !verdict.notes.is_empty();
            assert!(told, "{name} with {to}, mode {}", mode.name());
        }
    }
}

/// A copy of a capture with its blktrace changed: `change` sees the D events, in order.
fn with_issues(name: &str, change: impl Fn(&mut Vec<blktrace::Event>)) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let source = CaptureDir::open(&traces(name)).unwrap();
    for (bare, path) in &source.files {
        if !bare.contains(".blktrace.") {
            fs::copy(path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let device = &source.devices[0];
    let files: Vec<&PathBuf> = device.blktrace.values().collect();
    let mut reader = Reader::open(&files, blktrace::Options::default()).unwrap();
    let mut events = Vec::new();
    let mut names = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        if let Some(name) = reader.process_name(event.pid) {
            names.push((event.pid, name.to_owned()));
        }
        events.push(event);
    }
    let is_issue = |event: &&mut blktrace::Event| event.action == Action::Issue;
    let mut issues: Vec<blktrace::Event> = events.iter_mut().filter(is_issue).map(|e| *e).collect();
    change(&mut issues);
    for (event, changed) in events.iter_mut().filter(is_issue).zip(issues) {
        *event = changed;
    }
    let number = events[0].device;
    let cpus = u32::from(source.meta.cpus);
    let options = WriterOptions::default();
    let mut writer = Writer::create(copy.path(), &device.name, number, cpus, options).unwrap();
    for (pid, name) in names {
        writer.name_process(pid, &name);
    }
    for event in &events {
        writer.write(event).unwrap();
    }
    writer.finish().unwrap();
    copy
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

#[test]
fn damage_is_one_clear_error() {
    let garbage = changed("dd01-defaults", "ftrace.txt", |text| {
        text.replacen("prio=0x4004", "prio=often", 1)
    });
    let error = run_in(garbage.path(), Mode::Calls, None).unwrap_err();
    assert!(matches!(error, Error::Trace(_)), "{error}");
    assert!(error.to_string().contains("ftrace.txt:"), "{error}");

    // A file that was cut to nothing is no reason to take a weaker mode.
    for left in ["", "# tracer: nop\n"] {
        let empty = changed("dd01-defaults", "ftrace.txt", |_| left.to_owned());
        let dir = CaptureDir::open(empty.path()).unwrap();
        let error = conform::run(&dir, &Options::default()).unwrap_err();
        assert!(
            error.to_string().contains("ftrace.txt has no event"),
            "{error}"
        );
    }

    let negative = changed("dd01-defaults", "queue.txt", |text| {
        text.replace("queue/nr_requests=256", "queue/nr_requests=-1")
    });
    let error = run_in(negative.path(), Mode::Records, None).unwrap_err();
    assert!(error.to_string().contains("queue/nr_requests"), "{error}");

    let cut = with_issues("dd01-defaults", |_| {});
    let file = cut.path().join("nullb0.blktrace.0");
    let mut bytes = fs::read(&file).unwrap();
    bytes[48 * 100..48 * 101].fill(0);
    fs::write(&file, bytes).unwrap();
    let error = run_in(cut.path(), Mode::Records, None).unwrap_err();
    assert!(error.to_string().contains("blktrace.0: byte"), "{error}");
}

#[test]
fn events_that_are_not_read_are_named() {
    let renamed = changed("dd01-defaults", "ftrace.txt", |text| {
        text.replacen(" ddfin: ", " ddfim: ", 3)
    });
    let verdict = run_in(renamed.path(), Mode::Calls, None).unwrap();
    let told = "ftrace.txt: 3 events that are not read: ddfim";
    assert!(verdict.notes.iter().any(|note| note == told), "{verdict}");
}

#[test]
fn what_cannot_be_compared_says_so() {
    let other = changed("dd01-defaults", "queue.txt", |text| {
        text.replace("mq-deadline", "cfq")
    });
    let error = run_in(other.path(), Mode::Records, None).unwrap_err();
    assert!(matches!(error, Error::NotModelled { .. }), "{error}");
    assert!(
        error.to_string().contains("cfq is not modelled yet"),
        "{error}"
    );

    let error = run_in(&traces("no01-burst"), Mode::Calls, None).unwrap_err();
    assert!(error.to_string().contains("mode records"), "{error}");

    let error = run_in(&traces("m2-mix7030-mq-deadline"), Mode::Calls, None).unwrap_err();
    assert!(error.to_string().contains("ftrace.txt"), "{error}");

    let other = changed("dd01-defaults", "meta.txt", |text| {
        text.replace("6.1.0-56-amd64", "5.4.0-1-amd64")
    });
    let error = run_in(other.path(), Mode::Calls, None).unwrap_err();
    assert!(matches!(error, Error::Kernel { .. }), "{error}");
}

#[test]
fn the_text_ends_with_the_count_and_shows_both_queues() {
    let verdict = run("dd04-starved8", Mode::Calls).to_string();
    assert_eq!(verdict.lines().last(), Some("predicted 129/129 dispatches"));

    let wrong = Some(Rules::v6_12());
    let verdict = run_in(&traces("dd04-starved8"), Mode::Calls, wrong).unwrap();
    let text = verdict.to_string();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("predicted ") && last.ends_with("/129 dispatches"));
    assert!(text.contains("first divergence: dispatch "), "{text}");
    assert!(text.contains("\nkernel's queue:\n"), "{text}");
    assert!(text.contains("\nmodel's queue:\n"), "{text}");
    assert!(text.contains("last_dir="), "{text}");
}

#[test]
fn the_json_has_exactly_the_promised_fields() {
    let keys = |verdict: &Verdict| -> Vec<String> {
        let json = serde_json::to_value(verdict).unwrap();
        json.as_object().unwrap().keys().cloned().collect()
    };
    let mut promised = vec![
        "capture",
        "rules",
        "scheduler",
        "mode",
        "total",
        "predicted",
        "diverged",
        "unjudged",
        "unjudged_reasons",
        "first_divergence",
        "told",
        "log",
    ];
    promised.sort_unstable();
    let good = run("dd07-merges", Mode::Records);
    let mut found = keys(&good);
    found.sort();
    assert_eq!(found, promised);
    let json = serde_json::to_value(&good).unwrap();
    assert_eq!(json["capture"], "dd07-merges");
    assert_eq!(json["mode"], "records");
    assert_eq!(json["scheduler"], "mq-deadline");
    assert_eq!(json["rules"], "v6.1");
    assert_eq!(json["total"], 22);
    assert!(json["first_divergence"].is_null());

    let wrong = Some(Rules::v6_12());
    let bad = run_in(&traces("dd07-merges"), Mode::Records, wrong).unwrap();
    let json = serde_json::to_value(&bad).unwrap();
    assert!(json["first_divergence"]["index"].as_u64().unwrap() > 0);
    assert!(json["first_divergence"]["kernel"].is_string());
}

/// Where the records lack what would decide, that is said, and nothing else is hidden behind it.
#[test]
fn what_records_cannot_decide_is_neither_right_nor_wrong() {
    let clones = run("mp-service-time-mq-deadline", Mode::Records);
    assert_eq!((clones.diverged(), clones.unjudged()), (0, 600), "{clones}");
    assert_eq!(clones.predicted, 1484, "{clones}");
    let text = clones.to_string();
    assert!(text.contains("cannot be judged: 600, clones of"), "{text}");

    let races = run("m4-shared3-mq-deadline", Mode::Records);
    assert_eq!(races.predicted, 898, "{races}");
    assert!(races.unjudged() > 0, "{races}");
}

/// On one CPU with all records there is nothing that cannot be judged: a wrong scheduler diverges.
/// On two CPUs most of it does.
#[test]
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

/// A call whose entry the probes missed is judged at its return alone.
#[test]
fn a_missing_probe_is_no_divergence() {
    let copy = changed("dd09-waves", "ftrace.txt", |text| {
        let mut number = 0;
        let keeps = |line: &&str| {
            number += usize::from(line.contains(" dde: "));
            !line.contains(" dde: ") || number % 10 != 0
        };
        text.lines()
            .filter(keeps)
            .map(|line| format!("{line}\n"))
            .collect()
    });
    let verdict = run_in(copy.path(), Mode::Calls, None).unwrap();
    assert_eq!(verdict.diverged(), 0, "{verdict}");
}

#[test]
fn the_default_is_the_strongest_mode_and_says_why() {
    for (name, mode, why) in [
        ("dd01-defaults", Mode::Calls, "has the dispatch calls"),
        ("no01-burst", Mode::Records, "makes no dispatch calls"),
        ("m2-seqmerge-mq-deadline", Mode::Records, "no ftrace.txt"),
    ] {
        let options = Options::default();
        let dir = CaptureDir::open(&traces(name)).unwrap();
        let verdict = conform::run(&dir, &options).unwrap();
        assert_eq!(verdict.mode, mode, "{name}");
        assert!(verdict.to_string().contains(why), "{verdict}");
    }
}
