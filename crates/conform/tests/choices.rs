//! The reference against captured multipath targets: every path that a kernel chose.

mod common;

use blkmq::rules::{DeviceMapper, Rules, Undo};
use common::{run_in, traces};
use conform::{ChoiceVerdict, Mode, Options, Verdict, run};
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
    }
}

/// Mutants: habits of other kernels do not pass for those of this one.
#[test]
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

/// The target's device alone has choices.
#[test]
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
