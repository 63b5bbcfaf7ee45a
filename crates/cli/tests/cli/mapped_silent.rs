//! Changes of a mapped device without a record: messages, and activations of its groups.

use std::fs;

use serde_json::Value;

use crate::mapped::SCENARIO;
use crate::place::Place;

/// A run of the scenario with these words in place of others, as a folder `trace`.
fn traced(changes: &[(&str, &str)]) -> Place {
    let mut text = SCENARIO.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let place = Place::new();
    fs::write(place.0.path().join("mp.toml"), text).unwrap();
    let ran = place.blksim(&["run", "mp.toml", "--blktrace", "trace"]);
    assert_eq!(ran.code, Some(0), "{changes:?}: {ran:?}");
    place
}

/// Assumptions of conform, and the number of choices that it predicts of all.
fn judged(place: &Place) -> (Vec<String>, u64, u64) {
    let ran = place.blksim(&["conform", "trace"]);
    let taken = ran.stdout.lines().filter(|line| line.contains(" times)"));
    let taken = taken.map(str::to_owned).collect();
    let ran = place.blksim(&["conform", "trace", "--json"]);
    let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
    let count = |key: &str| verdict["choices"][key].as_u64().unwrap();
    let alike = verdict["diverged"] == 0 && count("predicted") == count("total");
    assert_eq!(ran.code == Some(0), alike, "{verdict:#}");
    (taken, count("predicted"), count("total"))
}

const FAILED: &str =
    "taken: dm-0: a path went out of use without a record (a message or a checker)";
const REINSTATED: &str =
    "taken: dm-0: a path that had failed was reinstated before it was chosen again";
const ACTIVATED: &str =
    "taken: dm-0: the activation of a group had ended before a path of it was chosen";

fn messages(all: &[(u32, &str)]) -> String {
    let line = |(at_us, text): &(u32, &str)| {
        format!("[[mapped.message]]\nat_us = {at_us}\ntext = \"{text}\"\n")
    };
    let lines: String = all.iter().map(line).collect();
    format!("{lines}[[job]]")
}

/// `dmsetup message` takes a path out of use, or both, and brings them back: of either kind of
/// device every choice is predicted, and the assumptions are reported.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn paths_that_a_message_fails_are_found() {
    let one = messages(&[(1500, "fail_path sda"), (4500, "reinstate_path sda")]);
    let both = messages(&[
        (1500, "fail_path sda"),
        (3500, "fail_path sdb"),
        (5000, "reinstate_path sda"),
        (6000, "reinstate_path sdb"),
    ]);
    let features = ("multipath 0 0", "multipath 1 queue_if_no_path 0");
    let bios = (
        "multipath 0 0",
        "multipath 3 queue_if_no_path queue_mode bio 0",
    );
    let size = ("number_ios = 200", "number_ios = 400");
    for kind in [features, bios] {
        for (all, times) in [(&one, 1), (&both, 2)] {
            let mut changes = vec![kind, size, ("[[job]]", all.as_str())];
            if kind == bios {
                changes.push(("use_blk_mq = 1\n", ""));
            }
            let place = traced(&changes);
            let (taken, predicted, total) = judged(&place);
            assert_eq!(
                (predicted, total >= 400),
                (total, true),
                "{changes:?}: {taken:?}"
            );
            // Bios are held while no path is there: that of the second one shows nowhere.
            let times = if kind == bios { 1 } else { times };
            let lines = [FAILED, REINSTATED].map(|line| format!("{line} ({times} times)"));
            assert_eq!(taken, lines, "{changes:?}");
        }
    }
}

/// The mutant: another selector is no path out of use, with and without one.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_wrong_selector_is_no_failure() {
    let one = messages(&[(1500, "fail_path sda"), (4500, "reinstate_path sda")]);
    let sizes = (r#"bs = "4k""#, r#"bsrange = "4k-64k""#);
    for job in ["[[job]]", &one] {
        let place = traced(&[
            ("number_ios = 200", "number_ios = 400"),
            sizes,
            ("[[job]]", job),
        ]);
        let (_, predicted, total) = judged(&place);
        assert_eq!(predicted, total);
        let meta = place.0.path().join("trace/meta.txt");
        let text = fs::read_to_string(&meta).unwrap();
        let own = "service-time 0 2 2 8:0 1 1 8:16 1 1";
        assert!(text.contains(own), "{text}");
        fs::write(&meta, text.replace(own, "round-robin 0 2 1 8:0 1 8:16 1")).unwrap();
        let (taken, predicted, total) = judged(&place);
        assert!(predicted < total, "{predicted} of {total}: {taken:?}");
    }
}

/// A hardware handler activates a group before its first request.
#[test]
fn a_group_is_activated_without_a_record() {
    let place = traced(&[("multipath 0 0", "multipath 0 1 alua")]);
    let (taken, predicted, total) = judged(&place);
    assert_eq!((predicted, total >= 200), (total, true), "{taken:?}");
    assert_eq!(taken, [format!("{ACTIVATED} (1 times)")]);
}

/// A target without any path shows nothing of its selector: exit code 4, and not 0.
#[test]
fn a_target_without_a_choice_is_not_judged() {
    let none = messages(&[(0, "fail_path sda"), (0, "fail_path sdb")]);
    let place = traced(&[("[[job]]", &none)]);
    let ran = place.blksim(&["conform", "trace"]);
    let line = "cannot be judged: path choices of dm-0: no request came to a path of its table";
    assert!(ran.stdout.contains(line), "{ran:?}");
    assert_eq!(ran.code, Some(4), "{ran:?}");
}
