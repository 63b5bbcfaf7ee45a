//! The simulator's own traces as captures: on one CPU every dispatch follows from the records.
//!
//! Workloads, tunables and devices that no captured kernel of `traces/` had.

use crate::place::Place;

const NULL_BLK: &str =
    "null_blk,irqmode=2,completion_nsec=200000,hw_queue_depth=1,submit_queues=1,gb=1";
const NULL_BLK_4: &str = "null_blk,irqmode=2,completion_nsec=100000,hw_queue_depth=4";
const SCSI: &str = "scsi_debug,ndelay=300000,max_queue=3,dev_size_mb=256";
const SCSI_HOST: &str = "scsi_debug,ndelay=300000,max_queue=3,host_max_queue=2,dev_size_mb=256";
const SCSI_TRIM: &str = "scsi_debug,ndelay=300000,max_queue=3,dev_size_mb=256,lbpu=1";

/// One run: rules, scheduler, device, settings, fio jobs.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
);

const CASES: &[Case] = &[
    (
        "v6.1",
        "mq-deadline",
        NULL_BLK,
        &[],
        "--name=a --rw=randrw --iodepth=32",
    ),
    (
        "v6.12",
        "mq-deadline",
        NULL_BLK,
        &[],
        "--name=a --rw=randrw --iodepth=32",
    ),
    (
        "v6.1",
        "mq-deadline",
        NULL_BLK,
        &["queue.fifo_batch=1", "queue.writes_starved=4"],
        "--name=a --rw=randrw --iodepth=64 --iodepth_batch=16",
    ),
    (
        "v6.1",
        "mq-deadline",
        NULL_BLK,
        &[
            "queue.fifo_batch=32",
            "queue.read_expire=4",
            "queue.writes_starved=1",
        ],
        "--name=a --rw=randrw --rwmixread=70 --iodepth=64 --iodepth_batch=16",
    ),
    (
        "v6.12",
        "mq-deadline",
        NULL_BLK,
        &[
            "queue.fifo_batch=2",
            "queue.read_expire=8",
            "queue.write_expire=12",
        ],
        "--name=a --rw=randrw --iodepth=64 --iodepth_batch=16",
    ),
    (
        "v6.1",
        "mq-deadline",
        NULL_BLK,
        &[
            "machine.hz=1000",
            "queue.read_expire=2",
            "queue.write_expire=3",
        ],
        "--name=a --rw=randrw --iodepth=64 --iodepth_batch=16",
    ),
    (
        "v6.1",
        "mq-deadline",
        NULL_BLK,
        &["queue.front_merges=0"],
        "--name=a --rw=write --iodepth=64 --iodepth_batch=4 --name=b --rw=read --iodepth=16",
    ),
    (
        "v6.12",
        "mq-deadline",
        NULL_BLK,
        &["queue.nomerges=2"],
        "--name=a --rw=write --iodepth=64 --iodepth_batch=4",
    ),
    (
        "v6.1",
        "mq-deadline",
        NULL_BLK_4,
        &["queue.nr_requests=8", "queue.async_depth=2"],
        "--name=a --rw=randrw --iodepth=32",
    ),
    (
        "v6.12",
        "mq-deadline",
        NULL_BLK_4,
        &[],
        "--name=a --rw=randrw --iodepth=8 --numjobs=3",
    ),
    (
        "v6.1",
        "mq-deadline",
        SCSI,
        &[],
        "--name=a --rw=randwrite --iodepth=16 --fsync=3",
    ),
    (
        "v6.12",
        "mq-deadline",
        SCSI,
        &[],
        "--name=a --rw=randwrite --iodepth=16 --fsync=3 --name=b --rw=randread --iodepth=4",
    ),
    (
        "v6.12",
        "mq-deadline",
        SCSI_HOST,
        &[],
        "--name=a --rw=randrw --iodepth=32",
    ),
    (
        "v6.1",
        "mq-deadline",
        SCSI_TRIM,
        &[],
        "--name=a --rw=randtrim --iodepth=16 --name=b --rw=randread --iodepth=8",
    ),
    (
        "v6.1",
        "none",
        NULL_BLK_4,
        &[],
        "--name=a --rw=randrw --iodepth=32 --iodepth_batch=8",
    ),
    (
        "v6.12",
        "none",
        NULL_BLK,
        &[],
        "--name=a --rw=read --iodepth=64 --iodepth_batch=16",
    ),
    (
        "v6.1",
        "none",
        SCSI,
        &[],
        "--name=a --rw=randwrite --iodepth=16 --fsync=3",
    ),
    // A bio that is cut into parts, each with a plug of its own since v6.12.
    (
        "v6.12",
        "kyber",
        NULL_BLK,
        &[],
        "--name=a --rw=randrw --bs=128k --iodepth=1",
    ),
    (
        "v6.12",
        "mq-deadline",
        NULL_BLK,
        &["queue.max_sectors_kb=32"],
        "--name=a --rw=randrw --bs=64k --iodepth=1",
    ),
    (
        "v6.12",
        "none",
        NULL_BLK,
        &["queue.max_sectors_kb=32"],
        "--name=a --rw=randrw --bs=64k --iodepth=1",
    ),
    // Parts of 255 sectors: the third, and merged ones.
    (
        "v6.1",
        "kyber",
        NULL_BLK,
        &[],
        "--name=a --rw=randrw --bs=1m --iodepth=1 --number_ios=40",
    ),
    (
        "v6.1",
        "mq-deadline",
        NULL_BLK,
        &[],
        "--name=a --rw=write --bs=2560 --iodepth=128 --iodepth_batch=128 --number_ios=1500",
    ),
];

/// The same, of which the dispatch calls are compared.
const CALLS: &[Case] = &[
    (
        "v6.12",
        "mq-deadline",
        NULL_BLK,
        &["queue.max_sectors_kb=32"],
        "--name=a --rw=randrw --bs=64k --iodepth=1",
    ),
    (
        "v6.12",
        "kyber",
        NULL_BLK,
        &["queue.nr_requests=4"],
        "--name=a --rw=randrw --bs=128k --iodepth=8 --iodepth_batch=8",
    ),
    (
        "v6.12",
        "mq-deadline",
        NULL_BLK,
        &[],
        "--name=a --rw=randrw --bs=1m --iodepth=8 --iodepth_batch=8 --number_ios=40",
    ),
];

/// Runs a case and compares it: the last line of the verdict.
fn verdict(place: &Place, case: &Case, mode: &str) -> String {
    let (rules, scheduler, device, settings, jobs) = case;
    let mut args = vec![
        "run",
        "--rules",
        rules,
        "--scheduler",
        scheduler,
        "--device",
        device,
    ];
    args.extend(["--set", "machine.cpus=1", "--blktrace", "run"]);
    // Else the depth follows from the device's, and the scheduler has little to choose from.
    if *scheduler != "none" && !settings.iter().any(|of| of.contains("nr_requests")) {
        args.extend(["--set", "queue.nr_requests=64"]);
    }
    for setting in *settings {
        args.extend(["--set", setting]);
    }
    args.extend([
        "--",
        "--direct=1",
        "--size=100m",
        "--ioengine=libaio",
        "--number_ios=200",
    ]);
    args.extend(["--bs=4k"]);
    args.extend(jobs.split(' '));
    let ran = place.blksim(&args);
    assert_eq!(ran.code, Some(0), "{case:?}: {ran:?}");
    let ran = place.blksim(&["conform", "run", "--mode", mode]);
    assert_eq!(ran.code, Some(0), "{case:?}: {ran:?}");
    ran.stdout.lines().last().unwrap_or_default().to_owned()
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn every_dispatch_of_a_simulated_run_is_predicted() {
    let records = CASES.iter().map(|case| (case, "records"));
    let calls = CALLS.iter().map(|case| (case, "calls"));
    for (case, mode) in records.chain(calls) {
        let place = Place::new();
        let last = verdict(&place, case, mode);
        let (_, counts) = last.split_once(' ').expect("predicted N/M dispatches");
        let (predicted, total) = counts.split_once('/').expect("N/M");
        assert_eq!(Some(predicted), total.split(' ').next(), "{case:?}: {last}");
        assert!(predicted.parse::<u32>().unwrap() > 20, "{case:?}: {last}");
    }
}

#[test]
fn priorities_of_tasks_decide() {
    let place = Place::new();
    let jobs = "--name=rt --prioclass=1 --rw=randread --iodepth=16 --name=idle --prioclass=3 \
                --rw=randread --iodepth=16";
    let settings = [
        "--set",
        "machine.cpus=1",
        "--set",
        "queue.prio_aging_expire=8",
    ];
    let mut args = vec!["run", "--scheduler", "mq-deadline", "--device", NULL_BLK];
    args.extend(["--blktrace", "run", "--set", "queue.nr_requests=64"]);
    args.extend(settings);
    args.extend([
        "--",
        "--direct=1",
        "--size=100m",
        "--ioengine=libaio",
        "--number_ios=200",
    ]);
    args.extend(["--bs=4k"]);
    args.extend(jobs.split_whitespace());
    assert_eq!(place.blksim(&args).code, Some(0));
    let written = std::fs::read_to_string(place.path("run/priorities.txt")).unwrap();
    assert_eq!(written, "1000 1 0\n1001 3 0\n");
    // Probes have priorities, too, and go first.
    std::fs::remove_file(place.path("run/ftrace.txt")).unwrap();
    let replayed = place.blksim(&["replay", "run", "--json"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(
        !replayed.stdout.contains("has no priorities"),
        "{replayed:?}"
    );
    let ran = place.blksim(&["conform", "run", "--mode", "records"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place.write("run/priorities.txt", "1000 3 0\n1001 1 0\n");
    let turned = place.blksim(&["replay", "run", "--json"]);
    assert_ne!(
        turned.stdout, replayed.stdout,
        "the other task goes first now"
    );
    let ran = place.blksim(&["conform", "run", "--mode", "records"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    place.write("run/priorities.txt", "1000 3\n");
    let ran = place.blksim(&["conform", "run", "--mode", "records"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("priorities.txt:1"), "{ran:?}");
}

/// Groups in two levels with different weights, and classes of priorities.
const GROUPS: &str = r#"
[machine]
cpus = 1

[queue]
scheduler = "bfq"

[device]
type = "null_blk"
irqmode = 2
completion_nsec = 400000
hw_queue_depth = 1
rotational_when_chosen = 1

[group.a]
"io.bfq.weight" = 300
[group."a/x"]
"io.bfq.weight" = 100
[group."a/y"]
"io.bfq.weight" = 400
[group.b]
"io.bfq.weight" = 50
"#;

/// That with jobs, of classes of their own or of one.
fn with_jobs(scenario: &str, classes: bool) -> String {
    let mut scenario = scenario.to_owned();
    let jobs = [
        ("x", "a/x", 2, "read"),
        ("y", "a/y", 2, "randread"),
        ("b", "b", 1, "randwrite"),
        ("i", "b", 3, "read"),
        ("root", "", 2, "randread"),
    ];
    for (at, (name, group, class, rw)) in jobs.into_iter().enumerate() {
        let (offset, class) = (at * 100, if classes { class } else { 2 });
        scenario += &format!(
            "[[job]]\nname = \"{name}\"\nrw = \"{rw}\"\nioengine = \"libaio\"\niodepth = 4\n\
             direct = 1\nsize = \"40m\"\noffset = \"{offset}m\"\nnumber_ios = 150\n\
             prioclass = {class}\nprio = 4\n"
        );
        if !group.is_empty() {
            scenario += &format!("cgroup = \"{group}\"\n");
        }
    }
    scenario
}

/// Exit code, dispatches that were predicted, and all of them.
fn judged(place: &Place, mode: &str) -> (Option<i32>, u64, u64) {
    let ran = place.blksim(&["conform", "run", "--mode", mode, "--json"]);
    let verdict: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |field: &str| verdict[field].as_u64().unwrap();
    (ran.code, of("predicted"), of("total"))
}

/// One request at a time: each D is a decision.
#[test]
fn groups_of_tasks_decide_by_records() {
    let place = Place::new();
    place.write("groups.toml", with_jobs(GROUPS, false));
    let ran = place.blksim(&["run", "groups.toml", "--blktrace", "run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (code, predicted, total) = judged(&place, "records");
    assert_eq!((code, predicted), (Some(0), total));
    assert!(total > 600, "{total}");
}

#[test]
#[ignore = "20 s: cargo xtask ci --full"]
fn groups_of_tasks_their_weights_and_classes_decide() {
    let scenario = GROUPS.replace("hw_queue_depth = 1", "hw_queue_depth = 4");
    let scenario = with_jobs(&scenario, true);
    let place = Place::new();
    place.write("groups.toml", &scenario);
    let ran = place.blksim(&["run", "groups.toml", "--blktrace", "run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let (meta, tasks) = (read("run/meta.txt"), read("run/priorities.txt"));
    for line in [
        "rotational_when_scheduler_chosen_nullb0=1",
        "cgroup /a io.bfq.weight=default 300",
        "cgroup /a/x io.bfq.weight=default 100",
        "cgroup /a/y io.bfq.weight=default 400",
        "cgroup /b io.bfq.weight=default 50",
    ] {
        assert!(meta.lines().any(|of| of == line), "{line}: {meta}");
    }
    let expected = "1000 2 4 a/x\n1001 2 4 a/y\n1002 1 4 b\n1003 3 4 b\n1004 2 4\n";
    assert_eq!(tasks, expected);
    let (code, predicted, total) = judged(&place, "calls");
    assert_eq!((code, predicted), (Some(0), total));
    assert!(total > 2000, "{total}");
    // Without a task's group, or with other weights, the model chooses otherwise.
    let changes = [
        ("priorities.txt", tasks.replace(" a/y", " b")),
        ("meta.txt", meta.replace("default 400", "default 10")),
        ("priorities.txt", tasks.replace("1003 3", "1003 1")),
    ];
    for (file, changed) in changes {
        let path = format!("run/{file}");
        let whole = read(&path);
        assert_ne!(changed, whole, "{file}");
        place.write(&path, &changed);
        let (code, predicted, total) = judged(&place, "calls");
        assert_eq!(code, Some(1), "{file}");
        assert!(predicted < total, "{file}: {predicted} of {total}");
        place.write(&path, &whole);
    }
}

/// meta.txt states that lines have the time of their section, on a clock that begins with the run:
/// the log of a run is followed line for line. Taken for a kernel's it is not.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn lines_of_a_run_are_followed_to_the_end() {
    let null_blk = with_jobs(GROUPS, false).replace("iodepth = 4", "iodepth = 1");
    let device = null_blk.find("[device]").unwrap()..null_blk.find("[group.a]").unwrap();
    let mut disk = null_blk.clone();
    disk.replace_range(device, "[device]\ntype = \"ahci\"\n");
    // Long enough for two decisions that lie that close together.
    let null_blk = null_blk.replace("number_ios = 150", "number_ios = 900");
    // Without the times of labels, decisions that lie close together come in another order.
    for (scenario, least, without_times) in [(null_blk, 35_000, 1), (disk, 15_000, 0)] {
        let place = Place::new();
        place.write("groups.toml", &scenario);
        let ran = place.blksim(&["run", "groups.toml", "--blktrace", "run"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let log = || {
            let ran = place.blksim(&["conform", "run", "--mode", "log", "--json"]);
            let verdict: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            let of = |field: &str| verdict["log"][field].as_u64().unwrap();
            (ran.code, of("predicted"), of("total"))
        };
        let (code, predicted, total) = log();
        assert_eq!((code, predicted), (Some(0), total));
        assert!(total > least, "{total}");
        let meta = std::fs::read_to_string(place.path("run/meta.txt")).unwrap();
        let without = meta.replace("record_times=labels\n", "");
        assert_ne!(without, meta);
        place.write("run/meta.txt", without);
        let (code, ..) = log();
        assert_eq!(code, Some(without_times));
    }
}

/// Every dispatch of a run is followed in a mode; of mode log every line, too.
#[track_caller]
fn assert_followed(place: &Place, mode: &str, least: u64) {
    let ran = place.blksim(&["conform", "run", "--mode", mode, "--json"]);
    assert_eq!(ran.code, Some(0), "{mode}: {ran:?}");
    let verdict: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let counts = if mode == "log" {
        &verdict["log"]
    } else {
        &verdict
    };
    let of = |field: &str| counts[field].as_u64().unwrap();
    assert_eq!(of("predicted"), of("total"), "{mode}");
    assert!(of("total") > least, "{mode}: {}", of("total"));
}

/// A task that slept for a tag has lost its plug's time (v6.9 and later), and so has one whose plug
/// was for one bio.
#[test]
fn the_clock_is_read_anew_after_a_tag() {
    let groups = with_jobs(GROUPS, true).replace("hw_queue_depth = 1", "hw_queue_depth = 4");
    let (head, rest) = groups.split_once("[group.a]").unwrap();
    let jobs = &rest[rest.find("[[job]]").unwrap()..];
    let jobs = jobs.lines().filter(|line| !line.starts_with("cgroup"));
    let jobs: Vec<&str> = jobs.collect();
    let jobs = jobs
        .join("\n")
        .replace("number_ios = 150", "number_ios = 190");
    let place = Place::new();
    place.write("classes.toml", format!("{head}{jobs}\n"));
    let ran = place.blksim(&["run", "classes.toml", "--blktrace", "run"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_followed(&place, "calls", 2_000);
    assert_followed(&place, "log", 16_000);
}

/// Bios that must not wait and find no tag, and the workers of io_uring that hand them in again: a
/// worker has the I/O context of the task that it works for.
#[test]
fn bios_that_must_not_wait_are_followed_in_each_mode() {
    for scheduler in ["bfq", "mq-deadline", "kyber"] {
        let scenario = format!(
            "[machine]\ncpus = 1\n\
             [queue]\nscheduler = \"{scheduler}\"\nrules = \"v6.1\"\nnr_requests = 4\n\
             [device]\ntype = \"null_blk\"\nirqmode = 2\ncompletion_nsec = 400000\n\
             hw_queue_depth = 1\n\
             [global]\nioengine = \"io_uring\"\ndirect = 1\nsize = \"40m\"\nnumber_ios = 300\n\
             [[job]]\nname = \"a\"\nrw = \"randrw\"\niodepth = 8\n\
             [[job]]\nname = \"b\"\nrw = \"randread\"\niodepth = 4\noffset = \"100m\"\n"
        );
        let place = Place::new();
        place.write("ring.toml", &scenario);
        let ran = place.blksim(&["run", "ring.toml", "--blktrace", "run"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let names = std::fs::read_to_string(place.path("run/priorities.txt")).unwrap();
        assert_eq!(names.lines().count(), 4, "two jobs, and a worker of each");
        assert_followed(&place, "calls", 599);
        assert_followed(&place, "records", 599);
        if scheduler == "bfq" {
            assert_followed(&place, "log", 7_000);
        }
    }
}
