//! Each scheduler of the list through every command that takes one.

use blkmq::elevator::SchedulerKind;

use crate::place::{Place, json};

const SCENARIO: &str = "\
[machine]
cpus = 4
[device]
type = \"null_blk\"
irqmode = 2
hw_queue_depth = 4
submit_queues = 1
poll_queues = 0
[[job]]
rw = \"randrw\"
direct = 1
ioengine = \"io_uring\"
iodepth = 8
numjobs = 2
number_ios = 300
norandommap = true
";

/// Those of blk-mq with a policy of their own.
fn schedulers() -> impl Iterator<Item = SchedulerKind> {
    let all = SchedulerKind::of_path(false);
    all.filter(|&kind| kind != SchedulerKind::None)
}

#[test]
fn each_runs_and_is_in_the_report() {
    for kind in schedulers() {
        let place = Place::new();
        place.write("s.toml", SCENARIO);
        let name = kind.name();
        let ran = place.blksim(&["run", "s.toml", "--scheduler", name, "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let report = json(&ran);
        assert_eq!(report["blksim"]["scheduler"], name);
        let job = &report["blksim"]["jobs"][0];
        let ios = |side: &str| job[side]["total_ios"].as_u64().unwrap();
        assert_eq!(ios("read") + ios("write"), 600, "{report:#}");
        let lock = kind.info().unwrap().locks[0].name;
        let locks = report["locks"].as_array().unwrap();
        assert!(locks.iter().any(|of| of["name"] == lock), "{report:#}");
        let text = place.blksim(&["run", "s.toml", "--scheduler", name]).stdout;
        assert!(text.contains(&format!("scheduler {name}")), "{text}");
        assert!(text.contains(lock), "{text}");
    }
}

#[test]
fn each_stall_names_it() {
    for kind in schedulers() {
        let place = Place::new();
        // Completions get lost: the tags are used up, and the rest waits in the scheduler.
        // (All that a scheduler of so many requests may have, more than runs take out of it. Reads:
        // of writes some take as many as there were tags before nr_requests was written.)
        let lossy = SCENARIO.replace("randrw", "randread").replace(
            "[[job]]",
            "[queue]\nnr_requests = 64\n[device.fault]\nlost_completion = \"1/20\"\n[[job]]",
        );
        place.write("s.toml", &lossy);
        let ran = place.blksim(&["run", "s.toml", "--scheduler", kind.name()]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let named = format!("scheduler {}: ", kind.name());
        assert!(ran.stderr.contains(&named), "{ran:?}");
        assert!(ran.stderr.contains("has_work: yes"), "{ran:?}");
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn each_has_a_capture_folder_that_is_replayed() {
    for kind in schedulers() {
        let place = Place::new();
        place.write("s.toml", SCENARIO);
        let name = kind.name();
        let ran = place.blksim(&["run", "s.toml", "--scheduler", name, "--blktrace", "t"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let queue = std::fs::read_to_string(place.path("t/queue.txt")).unwrap();
        assert!(queue.contains(name), "{queue}");
        // With any verdict its dispatches are judged: in the strongest mode, except a log, whose
        // lines a simulated run records by labels (docs/explanation/model.md).
        let message = kind.info().is_some_and(|info| info.logs);
        let how: &[&str] = if message { &["--mode", "records"] } else { &[] };
        let ran = place.blksim(&[&["conform", "t", "--json"], how].concat());
        let verdict: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(verdict["scheduler"], name, "{verdict:#}");
        assert!(verdict["total"].as_u64().unwrap() >= 600, "{verdict:#}");
        // With its own scheduler, and with all of them side by side.
        let replayed = json(&place.blksim(&["replay", "t", "--json"]));
        assert_eq!(replayed["columns"][1]["name"], name, "{replayed:#}");
        let all: Vec<&str> = SchedulerKind::of_path(false)
            .map(SchedulerKind::name)
            .collect();
        let ran = place.blksim(&["replay", "t", "--scheduler", &all.join(",")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(all.iter().all(|name| ran.stdout.contains(name)), "{ran:?}");
    }
}

#[test]
fn all_are_plotted_and_compared() {
    let all: Vec<&str> = SchedulerKind::of_path(false)
        .map(SchedulerKind::name)
        .collect();
    let list = all.join(",");
    let place = Place::new();
    place.write("s.toml", SCENARIO);
    let sweep = [
        "plot",
        "s.toml",
        "--threads",
        "1,2",
        "--scheduler",
        &list,
        "-o",
        "p",
    ];
    let ran = place.blksim(&sweep);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let plots = std::fs::read_dir(place.path("p")).unwrap();
    let figure = plots.filter_map(Result::ok).find(|of| {
        let text = std::fs::read_to_string(of.path()).unwrap_or_default();
        all.iter().all(|name| text.contains(name))
    });
    assert!(figure.is_some(), "a figure has a line for each");
    let ran = place.blksim(&["compare", "s.toml", "--scheduler", &list, "--seeds", "2"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(all.iter().all(|name| ran.stdout.contains(name)), "{ran:?}");
}

#[test]
fn help_lists_them() {
    let place = Place::new();
    let all: Vec<&str> = SchedulerKind::of_path(false)
        .map(SchedulerKind::name)
        .collect();
    for command in ["run", "replay", "plot", "compare"] {
        let help = place.blksim(&[command, "--help"]).stdout;
        assert!(help.contains(&all.join(",")), "{command}: {help}");
    }
}
