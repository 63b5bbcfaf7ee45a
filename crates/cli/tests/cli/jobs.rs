//! Commands that make many runs: the same bytes for any number of threads.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::place::{Place, Ran, blksim_within};

/// The output of a command, with one thread and with four.
fn with_one_and_four(place: &Place, arguments: &str) -> [Ran; 2] {
    ["1", "4"].map(|jobs| {
        let arguments = arguments.replace("JOBS", jobs);
        let arguments: Vec<&str> = arguments.split(' ').collect();
        blksim_within(Duration::from_mins(5), place.0.path(), &arguments, &[])
    })
}

const SMALL: &str = "\
[machine]
cpus = 4
[queue]
scheduler = \"mq-deadline\"
[device]
type = \"null_blk\"
[[job]]
rw = \"randread\"
direct = 1
ioengine = \"io_uring\"
iodepth = 4
numjobs = 4
time_based = true
runtime = \"1ms\"
";

#[test]
fn compare_prints_the_same_for_any_number_of_threads() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let [one, four] = with_one_and_four(
        &place,
        "compare small.toml --scheduler none,mq-deadline --seeds 4 --jobs JOBS --json=JOBS.json \
         --csv JOBS.csv",
    );
    assert_eq!(one.code, Some(0), "{one:?}");
    assert_eq!(one.stdout, four.stdout);
    for ending in ["json", "csv"] {
        let file = |jobs: &str| std::fs::read(place.path(&format!("{jobs}.{ending}"))).unwrap();
        assert!(file("1") == file("4"), "{ending}");
    }
}

/// Each value of a list is a variant, each combination of two lists; names give the differences.
#[test]
fn compare_takes_lists_of_values() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let arguments = "compare small.toml --seeds 2 --set queue.fifo_batch=1,16 --set job.iodepth=4,8 \
                     --set job.bs=\"4k,8k\" --set machine.hz=1000 --json=out.json";
    let ran = place.blksim(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let json = std::fs::read_to_string(place.path("out.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let variants = json["measures"]["iops"]["variants"].as_array().unwrap();
    let names: Vec<&str> = variants
        .iter()
        .map(|variant| variant["variant"].as_str().unwrap())
        .collect();
    let want = [
        "queue.fifo_batch=1, job.iodepth=4",
        "queue.fifo_batch=1, job.iodepth=8",
        "queue.fifo_batch=16, job.iodepth=4",
        "queue.fifo_batch=16, job.iodepth=8",
    ];
    assert_eq!(names, want);
    for (a, b) in [(0, 1), (0, 2)] {
        assert_ne!(variants[a]["values"], variants[b]["values"]);
    }
    for (option, what) in [
        ("queue.fifo_batch=1,1", "1 is there twice"),
        ("queue.fifo_batch=1,", "value 2 is empty"),
        ("queue.fifo_batch=1,x", "queue.fifo_batch=x"),
        ("queue.fifo_bach=1,2", "did you mean `fifo_batch`?"),
    ] {
        let ran = place.blksim(&["compare", "small.toml", "--set", option]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{option}");
        assert!(ran.stderr.contains(what), "{option}: {}", ran.stderr);
    }
}

#[test]
fn plot_draws_a_curve_for_each_value() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let arguments = "plot small.toml --threads 1,2 --set job.iodepth=1,4 -o out";
    let ran = place.blksim(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let scaling = std::fs::read_to_string(place.path("out/scaling.svg")).unwrap();
    for curve in ["job.iodepth=1", "job.iodepth=4"] {
        assert!(scaling.contains(curve), "{curve}");
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn plot_draws_the_same_for_any_number_of_threads() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let [one, four] = with_one_and_four(
        &place,
        "plot small.toml --threads 1,2,4 --schedulers none,mq-deadline --jobs JOBS -o JOBS",
    );
    assert_eq!(one.code, Some(0), "{one:?}");
    assert_eq!(one.stdout.replace("1/", "4/"), four.stdout);
    assert_eq!(one.stderr, four.stderr);
    let mut names = 0;
    for entry in std::fs::read_dir(place.path("1")).unwrap() {
        let name = entry.unwrap().file_name();
        let file = |jobs: &str| std::fs::read(place.path(jobs).join(&name)).unwrap();
        assert!(file("1") == file("4"), "{name:?}");
        names += 1;
    }
    assert_eq!(names, one.stdout.lines().count());
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn sensitivity_prints_the_same_for_any_number_of_threads() {
    let [one, four] = with_one_and_four(
        &Place::new(),
        "sensitivity quadcore --runtime 1ms --seeds 1 --jobs JOBS",
    );
    assert_eq!(one.code, Some(0), "{one:?}");
    assert_eq!(one.stdout, four.stdout);
    assert!(one.stdout.lines().count() > 10, "{one:?}");
}

/// Every figure is judged; a figure that must stay in its tolerance and is out makes exit code 1:
/// `cargo xtask reproduce` relies on it.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn reproduce_prints_the_same_for_any_number_of_threads() {
    let place = Place::new();
    place.write(
        "list",
        "Axboe, 19 Jan 2024 | null_blk, stock | IOPS\nAxboe, 19 Jan 2024 | null_blk, stock | sys %\n",
    );
    let [one, four] = with_one_and_four(&place, "reproduce --quick --jobs JOBS --expect list");
    assert_eq!(one.stdout, four.stdout);
    assert_eq!(one.code, Some(1), "{one:?}");
    let text = one.stdout.as_str();
    assert!(text.ends_with("\n1 of 2 have gone out\n"), "{text}");
    assert!(
        text.contains("was within its tolerance: Axboe, 19 Jan 2024 | null_blk, stock | sys %\n")
    );
    let total = text
        .lines()
        .find(|line| line.ends_with(" within tolerance"));
    let words: Vec<&str> = total.unwrap().split(' ').collect();
    let [within, "of", all, ..] = words[..] else {
        panic!("{words:?}");
    };
    let judged = |verdict: &str| text.lines().filter(|line| line.ends_with(verdict)).count();
    assert_eq!(judged("  in").to_string(), within);
    assert_eq!((judged("  in") + judged("  out")).to_string(), all);
}

#[test]
fn lists_of_figures_are_read_before_anything_runs() {
    let place = Place::new();
    let is_in = "Axboe, 19 Jan 2024 | null_blk, stock | IOPS\n";
    for (list, what) in [
        ("", "no figure"),
        ("x\n", "line 1"),
        (&is_in.repeat(2), "line 2: listed twice"),
    ] {
        place.write("list", list);
        let refused = place.blksim(&["reproduce", "--quick", "--expect", "list"]);
        assert_eq!(refused.code, Some(2), "{list}");
        assert_eq!(refused.stdout, "", "{list}");
        assert!(refused.stderr.contains(what), "{what}: {refused:?}");
    }
}

/// Ctrl-C while several threads are at it: nothing is printed, and no file is left.
#[test]
fn ctrl_c_ends_all_threads_and_leaves_nothing() {
    for arguments in [
        "compare nvme-randread --scheduler none,mq-deadline --runtime 1h --json=a.json --jobs 2",
        "plot nvme-randread --threads 1,2 --runtime 1h -o pictures --jobs 2",
        "sensitivity xeon-10c --runtime 1h --jobs 2",
    ] {
        let place = Place::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_blksim"))
            .current_dir(place.0.path())
            .args(arguments.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // One thread that waits for the signal, and two that run.
        let tasks = format!("/proc/{}/task", child.id());
        let running = || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 3);
        while !running() {
            assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
            std::thread::yield_now();
        }
        let killed = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
        let ran = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(130), "{arguments}: {stderr}");
        assert!(stderr.contains("interrupted"), "{arguments}: {stderr}");
        assert_eq!(ran.stdout, b"", "{arguments}");
        assert_eq!(place.files(), Vec::<String>::new(), "{arguments}");
    }
}
