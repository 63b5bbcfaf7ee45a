//! Traces of runs, judged by conform: all built-in scenarios, and what is left unpredicted.

use crate::place::{Place, json};

/// The one that goes over 8,192 hctxs at each completion.
const LONG: &str = "shared-restart-cost";

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn runs_of_the_scenarios_are_predicted_in_the_strongest_mode() {
    let list = Place::new().blksim(&["list"]).stdout;
    let names = list
        .lines()
        .skip(1)
        .map_while(|l| l.split_whitespace().next());
    // A run that writes an attribute is no capture.
    let left_out = [LONG, "bfq-low-latency-toggle"];
    let judged = are_predicted(names.filter(|name| !left_out.contains(name)));
    assert!(judged >= 7, "{judged} runs with a scheduler");
}

#[test]
#[ignore = "half a minute: cargo xtask ci --full"]
fn a_run_that_goes_over_all_hctxs_is_predicted() {
    assert_eq!(are_predicted([LONG].into_iter()), 1);
}

/// Faults included; with the scheduler's calls where there is a scheduler: in how many.
fn are_predicted<'a>(names: impl Iterator<Item = &'a str>) -> u32 {
    let mut judged = 0;
    for name in names {
        let place = Place::new();
        let args = ["run", name, "--ramp-time", "0", "--runtime", "2ms"];
        // Its 16,384 I/Os wait for tags most of the time, and take minutes to be judged.
        let less: &[&str] = match name {
            LONG => &[
                "--set=job.iodepth=16",
                "--set=job.iodepth_batch_submit=16",
                "--set=job.iodepth_batch_complete_max=16",
            ],
            // Its sections on several CPUs are recorded in the order of labels, not of lines.
            "bfq-burst" | "bfq-startup" => &["--set=machine.cpus=1"],
            _ => &[],
        };
        let ran = place.blksim(&[&args[..], less, &["--blktrace", "trace"]].concat());
        // Many CPUs map requests, and their paths' clones cannot be judged: `mapped.rs`.
        if name.starts_with("dm-") {
            assert_eq!(ran.code, Some(0), "{ran:?}");
            continue;
        }
        // 3: completions are lost in one of them.
        assert!(matches!(ran.code, Some(0 | 3)), "{name}: {ran:?}");
        let message = name.starts_with("bfq-");
        let calls = !message && place.0.path().join("trace/ftrace.txt").exists();
        // Of a log the lines are compared as well, and those with a tick in them may differ.
        let how: &[&str] = if message { &["--mode", "records"] } else { &[] };
        let verdict = place.blksim(&[&["conform", "trace", "--json"], how].concat());
        if name.starts_with("cfq-") {
            assert_eq!(verdict.code, Some(2), "{name}: {verdict:?}");
            assert!(
                verdict.stderr.contains("has the single-queue path"),
                "{verdict:?}"
            );
            continue;
        }
        assert_eq!(verdict.code, Some(0), "{name}: {verdict:?}");
        let verdict = json(&verdict);
        let mode = if calls { "calls" } else { "records" };
        assert_eq!(verdict["mode"], mode, "{name}");
        assert_eq!(verdict["predicted"], verdict["total"], "{name}");
        assert!(verdict["total"].as_u64() > Some(0), "{name}: {verdict:#}");
        judged += u32::from(calls);
    }
    judged
}

/// With more CPUs than threads and few tags a trace of our own is not predicted whole yet
/// (docs/explanation/model.md, "conform"): no more than this may be missed, of six runs together,
/// as one seed has 1 and another one 40. Times that move by nanoseconds move these: of 2400 without
/// a scheduler, 111, 112 and 127 were missed under three states of the model.
#[test]
#[ignore = "half a minute: cargo xtask ci --full"]
fn what_more_cpus_than_threads_leave_unpredicted_does_not_grow() {
    for (run, mode, seeds, missed) in [
        (
            "null-blk-timer --rules v6.12 --set job.number_ios=400",
            "records",
            [1, 2, 3, 4, 5, 6],
            127,
        ),
        (
            "write-starvation --ramp-time 0 --runtime 20ms --set queue.nr_requests=4",
            "calls",
            [1, 2, 3, 7, 8, 9],
            2,
        ),
    ] {
        let (mut total, mut predicted) = (0, 0);
        for seed in seeds {
            let place = Place::new();
            let args = format!("run {run} --seed {seed} --blktrace trace");
            let args: Vec<&str> = args.split(' ').collect();
            let ran = place.blksim(&args);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let judged = place.blksim(&["conform", "trace", "--mode", mode, "--json"]);
            // 1: not all are predicted. 4: none is wrong, but the capture does not decide some.
            assert!(matches!(judged.code, Some(0 | 1 | 4)), "{judged:?}");
            let verdict: serde_json::Value = serde_json::from_str(&judged.stdout).unwrap();
            total += verdict["total"].as_u64().unwrap();
            predicted += verdict["predicted"].as_u64().unwrap();
        }
        assert!(total >= 2400, "{run}: {total}");
        assert!(predicted + missed >= total, "{run}: {predicted} of {total}");
    }
}
