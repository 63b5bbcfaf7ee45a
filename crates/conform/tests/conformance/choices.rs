//! The reference against captured multipath targets: every path that a kernel chose.

use std::fs;

use crate::change::changed;
use crate::common::{run_in, traces};
use crate::rewritten::with_records;
use blkmq::rules::{DeviceMapper, Rules, Undo};
use conform::{ChoiceVerdict, Mode, Options, Verdict, run};
use trace::blktrace::{Action, Categories, Event};
use trace::capture::CaptureDir;

fn judged(name: &str, device_mapper: DeviceMapper) -> Verdict {
    let rules = Rules {
        device_mapper,
        ..Rules::v6_1()
    };
    run_in(&traces(name), Mode::Records, Some(rules)).unwrap()
}

fn choices(verdict: &Verdict) -> &ChoiceVerdict {
    verdict.choices.as_ref().expect("there is a target")
}

/// Two CPUs map requests and end them. Where the records of a choice and of an end overlap, one of
/// both orders explains it.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn every_path_is_predicted() {
    for (name, total) in [
        ("mp-round-robin-none", 1590),
        ("mp-service-time-kyber", 1490),
        ("mp-service-time-mq-deadline", 1484),
    ] {
        let verdict = judged(name, DeviceMapper::V6_1);
        let of = choices(&verdict);
        assert_eq!(
            (of.predicted, of.total),
            (total, total),
            "{name}: {verdict}"
        );
        assert!(of.open * 20 < of.total, "{name}: {verdict}");
        let line = format!("predicted {total}/{total} path choices");
        assert!(verdict.to_string().contains(&line), "{verdict}");
        // Each of them found a tag of the one host that both paths have, or came back.
        let of = verdict.clones.as_ref().expect("there is a target");
        assert_eq!(
            (of.predicted, of.total),
            (total, total),
            "{name}: {verdict}"
        );
        assert!(of.open * 10 < of.total, "{name}: {verdict}");
    }
}

/// Mutants: habits of other kernels do not pass for those of this one.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn habits_of_older_kernels_are_found() {
    let forgets = DeviceMapper {
        undo: Undo::Forgotten,
        ..DeviceMapper::V6_1
    };
    for (rules, name) in [
        (DeviceMapper::V4_12, "mp-service-time-mq-deadline"),
        (DeviceMapper::V4_12, "mp-service-time-kyber"),
        (forgets, "mp-service-time-mq-deadline"),
    ] {
        let verdict = judged(name, rules);
        let of = choices(&verdict);
        assert!(of.predicted < of.total, "{name}: {verdict}");
        assert!(!verdict.conforms());
        let first = of.first_divergence.as_ref().expect("there is one");
        assert_eq!(first.device, "dm-0");
        assert_ne!(first.kernel, first.model);
        assert!(first.text.contains("8:0 A 0 "), "{}", first.text);
    }
}

/// By rival: choices that distinguish it from the judged selector, and the predicted ones of them.
fn rivals(verdict: &Verdict) -> Vec<(&'static str, u64, u64)> {
    let rivals = choices(verdict).rivals.as_ref().expect("of choices");
    let of = |rival: &conform::RivalVerdict| (rival.name, rival.total, rival.predicted);
    rivals.each.iter().map(of).collect()
}

/// Choices that one of two selectors makes in no order distinguish them; requests of one length do
/// not distinguish service-time from queue-length.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn selectors_are_distinguished() {
    for (name, deciding) in [
        (
            "mp-round-robin-none",
            vec![("queue-length", 122), ("service-time", 122)],
        ),
        (
            "mp-service-time-kyber",
            vec![
                ("round-robin", 319),
                ("queue-length", 0),
                ("the rotation of 4.12", 531),
            ],
        ),
        (
            "mp-service-time-mq-deadline",
            vec![
                ("round-robin", 36),
                ("queue-length", 0),
                ("the rotation of 4.12", 503),
            ],
        ),
    ] {
        let verdict = judged(name, DeviceMapper::V6_1);
        let message: Vec<_> = deciding.iter().map(|&(name, n)| (name, n, n)).collect();
        assert_eq!(rivals(&verdict), message, "{verdict}");
    }
}

/// Mutants: the wrong selector and the wrong rotation make hardly any of the choices that
/// distinguish them from the right one, with any number of all choices.
#[test]
fn a_wrong_selector_shows() {
    let name = "mp-service-time-mq-deadline";
    let worst = |verdict: &Verdict, right: &str| {
        assert!(!verdict.conforms(), "{verdict}");
        let all = rivals(verdict);
        let of = all.iter().find(|(name, ..)| *name == right);
        let &(_, total, predicted) = of.expect("the right one is a rival");
        assert!(total >= 36, "{verdict}");
        assert!(predicted * 10 < total, "{verdict}");
        let line =
            format!("predicted {predicted}/{total} of those that distinguish it from {right}");
        assert!(verdict.to_string().contains(&line), "{verdict}");
    };
    worst(&judged(name, DeviceMapper::V4_12), "the rotation of 4.20");
    let copy = changed(name, "meta.txt", |text| {
        let own = "service-time 0 2 2 8:0 1 1 8:16 1 1";
        assert!(text.contains(own), "{text}");
        text.replace(own, "round-robin 0 2 1 8:0 1 8:16 1")
    });
    let verdict = run_in(copy.path(), Mode::Records, None).unwrap();
    let of = choices(&verdict);
    assert!(of.predicted * 100 > of.total * 95, "{verdict}");
    worst(&verdict, "service-time");
}

/// A mutant: two hosts of four tags each would have had room for the requests that came back.
#[test]
fn a_request_that_came_back_without_need_is_found() {
    let copy = changed("mp-round-robin-none", "meta.txt", |text| {
        text.replace("num_tgts=2", "add_host=2")
    });
    let verdict = run_in(copy.path(), Mode::Records, None).unwrap();
    let of = choices(&verdict);
    assert_eq!(of.predicted, of.total, "{verdict}");
    let clones = verdict.clones.as_ref().expect("there is a target");
    assert!(clones.predicted + 100 < clones.total, "{verdict}");
    assert!(!verdict.conforms());
    let first = clones.first_divergence.as_ref().expect("there is one");
    assert!(first.kernel.starts_with("no tag on 8:"), "{first:?}");
}

/// Only the target's device has choices.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_path_chooses_nothing() {
    let dir = CaptureDir::open(&traces("mp-service-time-kyber")).unwrap();
    let of = |device: &str| {
        let options = Options {
            mode: Some(Mode::Records),
            trace_device: Some(device.to_owned()),
            ..Options::default()
        };
        run(&dir, &options).unwrap()
    };
    assert_eq!(of("sda").choices, None);
    assert_eq!(choices(&of("dm-0")).total, 1490);
}

const OWN_TABLE: &str = "dm: 0 524288 multipath 2 queue_mode mq 0 1 1 service-time";
const NAME: &str = "mp-service-time-mq-deadline";

/// The same table with other words: as multipath -ll and dmsetup table print it.
#[test]
fn a_table_may_name_its_device_and_files() {
    let copy = changed(NAME, "meta.txt", |text| {
        assert!(text.contains(OWN_TABLE), "{text}");
        text.replace("dm: 0 ", "dm: mpatha: 0 ")
            .replace(" 8:0 ", " /dev/sda ")
            .replace(" 8:16 ", " sdb ")
    });
    let verdict = run_in(copy.path(), Mode::Records, None).unwrap();
    assert_eq!(
        (choices(&verdict).predicted, choices(&verdict).total),
        (1484, 1484)
    );
}

/// A missing or wrong part of a table is an error with its line, and no verdict.
#[test]
fn a_bad_table_is_one_error() {
    let with = |change: &dyn Fn(&str) -> String| {
        let copy = changed(NAME, "meta.txt", change);
        let error = run_in(copy.path(), Mode::Records, None).unwrap_err();
        error.to_string()
    };
    let missing = with(&|text| text.replace("dm: ", "was: dm=1 "));
    let expected = "meta.txt: dm: missing: sda has requests without Q and G";
    assert!(missing.contains(expected), "{missing}");
    let twice = with(&|text| text.replace(" 8:16 ", " 8:0 "));
    assert!(
        twice.contains("meta.txt:6: dm: path sda is there twice"),
        "{twice}"
    );
    let selector = with(&|text| text.replace("service-time", "round-robbin"));
    assert!(selector.contains("meta.txt:6: dm: "), "{selector}");
}

/// Mutants of a capture: a path with missing records decides nothing, and a note reports that.
#[test]
fn a_path_with_records_missing_is_not_judged() {
    let with = |change: &dyn Fn(&std::path::Path)| {
        let copy = changed(NAME, "meta.txt", str::to_owned);
        change(copy.path());
        let verdict = run_in(copy.path(), Mode::Records, None).unwrap();
        assert_eq!(verdict.choices, None, "{verdict}");
        assert!(!verdict.is_whole(), "{verdict}");
        verdict.unjudged_targets.join(", ")
    };
    let file = "sdb.blktrace.0.xz";
    let why = with(&|copy| fs::remove_file(copy.join(file)).unwrap());
    assert!(why.contains("path choices of dm-0: sdb: "), "{why}");
    // Without blktrace's counts an empty file is that of a CPU that traced nothing.
    let why = with(&|copy| {
        fs::remove_file(copy.join(file)).unwrap();
        fs::remove_file(copy.join("blktrace.log")).unwrap();
        fs::write(copy.join("sdb.blktrace.0"), "").unwrap();
    });
    assert!(
        why.contains("dm-0: a request ended well without a clone"),
        "{why}"
    );
    let why = with(&|copy| {
        fs::remove_file(copy.join(file)).unwrap();
        let mut bytes = unpacked(file);
        bytes.truncate(bytes.len() - 13);
        fs::write(copy.join("sdb.blktrace.0"), bytes).unwrap();
    });
    assert!(
        why.contains("dm-0: sdb: 1 x truncated last record"),
        "{why}"
    );
    let why = with(&|copy| {
        let meta = fs::read_to_string(copy.join("meta.txt")).unwrap();
        let none = meta.replace("1 1 service-time 0 2 2 8:0 1 1 8:16 1 1", "0 0");
        assert_ne!(meta, none);
        fs::write(copy.join("meta.txt"), none).unwrap();
    });
    assert!(why.contains("path choices of dm-0: "), "{why}");
}

/// A file of the capture as it was before it was packed.
fn unpacked(file: &str) -> Vec<u8> {
    let packed = fs::File::open(traces(NAME).join(file)).unwrap();
    let mut bytes = Vec::new();
    let mut unpacked = liblzma::read::XzDecoder::new(packed);
    std::io::Read::read_to_end(&mut unpacked, &mut bytes).unwrap();
    bytes
}

/// A handler and a checker send a path commands of their own, which are no clones.
#[test]
fn a_command_of_a_checker_is_no_clone() {
    let copy = with_records(NAME, Some("sdb"), |events| {
        let mut issues = 0;
        *events = events.iter().fold(Vec::new(), |mut all, event| {
            all.push(*event);
            issues += u32::from(event.action == Action::Issue);
            if event.action == Action::Issue && issues % 50 == 1 {
                let (bytes, categories) = (36, Categories::PC);
                all.push(Event {
                    bytes,
                    categories,
                    ..*event
                });
            }
            all
        });
        assert!(issues > 150, "{issues} requests");
    });
    let verdict = run_in(copy.path(), Mode::Records, None).unwrap();
    let of = choices(&verdict);
    assert_eq!((of.predicted, of.total), (1484, 1484), "{verdict}");
    let clones = verdict.clones.as_ref().expect("there is a target");
    assert_eq!((clones.predicted, clones.total), (1484, 1484), "{verdict}");
}
