//! `run --blktrace DIR`: a folder that replay and conform take, written whole or not at all.

use std::process::{Command, Stdio};

use crate::captures::{json, simulated};
use crate::place::{Place, Ran};

/// Runs `script` in a shell, where `$BLKSIM` is the program.
fn shell(place: &Place, script: &str) -> Ran {
    let output = Command::new("sh")
        .current_dir(place.0.path())
        .env("BLKSIM", env!("CARGO_BIN_EXE_blksim"))
        .args(["-c", script])
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_run_is_a_capture_that_the_model_predicts() {
    for scenario in [
        "null-blk-timer",
        "seq-merge",
        "scsi-limits",
        "nvme-randread",
    ] {
        for rules in ["v6.1", "v6.12"] {
            let place = Place::new();
            let args = ["run", scenario, "--rules", rules, "--blktrace", "trace"];
            let args = [&args[..], &["--set", "job.number_ios=400"]].concat();
            // Records show only which request was issued first, not which was pulled first.
            let few: &[&str] = match scenario {
                "null-blk-timer" => &["--set", "machine.cpus=4"],
                _ => &[],
            };
            let args = [&args[..], few].concat();
            let ran = place.blksim(&args);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let replayed = json(&place.blksim(&["replay", "trace", "--json"]));
            assert_eq!(replayed["blksim"]["rules"], rules);
            // Its driver is known, and so are the settings of each task.
            let notes = replayed.to_string();
            assert!(!notes.contains("not modelled"), "{scenario}: {replayed:#}");
            assert!(
                !notes.contains("has no priorities"),
                "{scenario}: {replayed:#}"
            );
            let off = replayed["columns"][1]["agreement"]["mean_off_ppm"].as_i64();
            assert!(off.unwrap().abs() < 20_000, "{scenario}: {replayed:#}");
            let verdict = place.blksim(&["conform", "trace", "--mode", "records", "--json"]);
            assert_eq!(verdict.code, Some(0), "{scenario}, {rules}: {verdict:?}");
            let verdict = json(&verdict);
            assert_eq!(verdict["rules"], rules);
            assert_eq!(verdict["predicted"], verdict["total"]);
            assert!(verdict["total"].as_u64().unwrap() > 20, "{verdict:#}");
        }
    }
}

/// Faults included; with the scheduler's calls where there is a scheduler.
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
    let mut judged = 0;
    for name in names {
        let place = Place::new();
        let args = ["run", name, "--ramp-time", "0", "--runtime", "2ms"];
        // Its 16,384 I/Os wait for tags most of the time, and take minutes to be judged.
        let less: &[&str] = match name {
            "shared-restart-cost" => &[
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
    assert!(judged >= 8, "{judged} runs with a scheduler");
}

/// Tasks wait for tags most of the time: the trace does not show which of them finds one first.
/// (Calls that find nothing are counted. There is none after a lone bio of v6.12: the submitter
/// runs the queue, where kblockd did so, 10 ms have 285 calls and not 345. CPUs run ahead of each
/// other, so with more CPUs than threads one may find a tag some nanoseconds before the trace shows
/// its return: 494 of 496 with 32 CPUs, docs/explanation/model.md.)
#[test]
fn runs_with_few_tags_are_predicted() {
    for args in [
        "--runtime 20ms",
        "--runtime 20ms --set queue.nr_requests=4 --set machine.cpus=5 --seed 7",
    ] {
        let place = Place::new();
        let run = format!("run write-starvation --ramp-time 0 {args} --blktrace trace");
        let run: Vec<&str> = run.split(' ').collect();
        assert_eq!(place.blksim(&run).code, Some(0));
        let verdict = place.blksim(&["conform", "trace", "--json"]);
        assert_eq!(verdict.code, Some(0), "{args}: {verdict:?}");
        let verdict = json(&verdict);
        assert_eq!(verdict["mode"], "calls");
        assert!(verdict["total"].as_u64() > Some(300), "{args}: {verdict:#}");
    }
}

/// With more CPUs than threads and few tags a trace of our own is not predicted whole yet
/// (docs/explanation/model.md, "conform"): no more than this may be missed, of six runs together,
/// as one seed has 1 and another one 40. Times that move by nanoseconds move these: of 2400 without
/// a scheduler, 111, 112 and 127 were missed under three states of the model.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
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

/// Two threads with plugs of three disks: the folder of their trace.
fn run_of_several_disks(rules: &str, scheduler: &str, tags: u32, cpus: u32) -> Place {
    let place = Place::new();
    place.write(
        "disks.toml",
        format!(
            "[machine]\ncpus = {cpus}\n[queue]\nrules = \"{rules}\"\n\
             scheduler = \"{scheduler}\"\n[device]\ntype = \"null_blk\"\n\
             nr_devices = 3\nirqmode = 2\ncompletion_nsec = 20000\nhw_queue_depth = {tags}\n\
             [[job]]\nname = \"all\"\n\
             filename = \"/dev/nullb0:/dev/nullb1:/dev/nullb2\"\nrw = \"randrw\"\n\
             bs = \"4k\"\nioengine = \"io_uring\"\niodepth = 16\n\
             iodepth_batch_submit = 8\ndirect = 1\nnumber_ios = 1000\nnumjobs = 2\n"
        ),
    );
    let ran = place.blksim(&["run", "disks.toml", "--blktrace", "trace"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place
}

/// Requests of three disks in one plug: the next event of the task gives the disk of each U. Where
/// one disk is asked for, the others are followed as well.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn plugs_of_several_disks_are_predicted() {
    for (rules, scheduler, tags) in [
        ("v6.1", "mq-deadline", 8),
        ("v6.12", "mq-deadline", 8),
        ("v6.12", "none", 64),
    ] {
        let place = run_of_several_disks(rules, scheduler, tags, 2);
        let verdict = place.blksim(&["conform", "trace", "--json"]);
        assert_eq!(verdict.code, Some(0), "{rules} {scheduler}: {verdict:?}");
        // Calls that gave nothing count, too, where it is known whose they are.
        let total = json(&verdict)["total"].as_u64().unwrap();
        assert!(total >= 2000, "{rules} {scheduler}: {total}");
        let mut sum = 0;
        for disk in ["nullb0", "nullb1", "nullb2"] {
            let verdict = place.blksim(&["conform", "trace", "--trace-device", disk, "--json"]);
            assert_eq!(
                verdict.code,
                Some(0),
                "{disk}, {rules} {scheduler}: {verdict:?}"
            );
            sum += json(&verdict)["total"].as_u64().unwrap();
        }
        assert_eq!(sum, total, "{rules} {scheduler}");
    }
}

/// Kernels have no insertion probe of kyber: the request of a call, or the run that it is in, gives
/// its disk.
#[test]
fn calls_of_several_disks_without_insertion_probes_are_predicted() {
    for rules in ["v6.1", "v6.12"] {
        let place = run_of_several_disks(rules, "kyber", 8, 1);
        let probes = std::fs::read_to_string(place.path("trace/ftrace.txt")).unwrap();
        let lines = probes.lines().filter(|line| !line.contains(" ins: "));
        let without: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(without.len() < probes.len());
        place.write("trace/ftrace.txt", without);
        let verdict = place.blksim(&["conform", "trace", "--mode", "calls", "--json"]);
        assert_eq!(verdict.code, Some(0), "{rules}: {verdict:?}");
        assert_eq!(json(&verdict)["total"], 2000, "{rules}");
    }
}

/// With 8 tags and no scheduler the plug's owner, or io_uring's worker, waits for a tag, and the
/// trace does not show which of two tasks finds one first: one CPU leaves no such choice.
#[test]
fn plugs_whose_owners_wait_for_tags_are_predicted() {
    for (rules, cpus, missed) in [
        ("v6.1", 1, 0),
        ("v6.12", 1, 0),
        ("v6.1", 2, 1),
        ("v6.12", 2, 1),
    ] {
        let place = run_of_several_disks(rules, "none", 8, cpus);
        let judged = place.blksim(&["conform", "trace", "--json"]);
        // 1: not all are predicted.
        assert!(matches!(judged.code, Some(0 | 1)), "{judged:?}");
        let verdict: serde_json::Value = serde_json::from_str(&judged.stdout).unwrap();
        let count = |name: &str| verdict[name].as_u64().unwrap();
        assert_eq!(count("total"), 2000, "{rules}, {cpus} CPUs: {verdict:#}");
        let predicted = count("predicted");
        assert!(
            predicted + missed >= 2000,
            "{rules}, {cpus} CPUs: {verdict:#}"
        );
    }
}

/// Completions that other CPUs end are in the trace after their D, so every I/O has a whole life.
#[test]
fn a_replay_of_a_contended_run_drops_nothing() {
    let place = Place::new();
    let run = "run mq-deadline-scaling --runtime 2ms --blktrace trace --json=run.json";
    let run: Vec<&str> = run.split(' ').collect();
    assert_eq!(place.blksim(&run).code, Some(0));
    let report = std::fs::read_to_string(place.path("run.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let replayed = json(&place.blksim(&["replay", "trace", "--json"]));
    assert_eq!(replayed["ios"], report["blksim"]["all_ios"]);
    let notes = replayed.to_string();
    for drop in ["without C", "not replayed", "none that the capture issued"] {
        assert!(!notes.contains(drop), "{drop}: {notes}");
    }
}

#[test]
fn settings_of_the_run_are_in_its_folder() {
    let place = Place::new();
    let ran = place.blksim(&[
        "run",
        "write-starvation",
        "--runtime",
        "2ms",
        "--set",
        "queue.fifo_batch=3",
        "--set",
        "queue.nr_requests=24",
        "--device",
        "null_blk,irqmode=2,submit_queues=2,hw_queue_depth=9,fault.error=1/2",
        "--set",
        "machine.cpus=3",
        "--blktrace",
        "trace",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let read = |name: &str| std::fs::read_to_string(place.path("trace").join(name)).unwrap();
    let (meta, queue) = (read("meta.txt"), read("queue.txt"));
    for line in [
        "cpus=3",
        "device=null_blk hw_queue_depth=9 irqmode=2 submit_queues=2",
    ] {
        assert!(
            meta.lines().any(|message| message == line),
            "{line}: {meta}"
        );
    }
    for line in [
        "queue/iosched/fifo_batch=3",
        "queue/nr_requests=24",
        "mq/1: tags=9 cpus=2",
    ] {
        assert!(
            queue.lines().any(|message| message == line),
            "{line}: {queue}"
        );
    }
    // The others come after it.
    let scheduler = "queue/scheduler=[mq-deadline] none";
    assert!(queue.contains(scheduler), "{queue}");
}

#[test]
fn no_other_capture_is_mixed_in_or_destroyed() {
    for (file, content, says) in [
        ("meta.txt", "cmd=fio --name=x\n", "would destroy"),
        ("queue.txt", "== nullb0 size 8\n", "would destroy"),
        ("priorities.txt", "1000 1 0\n", "would destroy"),
        ("ftrace.txt.xz", "", "belongs to another capture"),
        ("sda.blktrace.0", "", "belongs to another capture"),
        ("nullb0.blktrace.0.gz", "", "belongs to another capture"),
        ("nullb0.blktrace.7", "", "more CPUs"),
    ] {
        let place = Place::new();
        std::fs::create_dir(place.path("trace")).unwrap();
        std::fs::write(place.path("trace").join(file), content).unwrap();
        let ran = place.blksim(&[
            "run",
            "null-blk-randread",
            "--set",
            "machine.cpus=2",
            "--blktrace",
            "trace",
        ]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(file), "{ran:?}");
        assert!(ran.stderr.contains(says), "{ran:?}");
        let left: Vec<_> = std::fs::read_dir(place.path("trace")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

#[test]
fn a_second_run_replaces_the_first() {
    let place = Place::new();
    simulated(&place);
    let first = std::fs::read(place.path("trace").join("nullb0.blktrace.0")).unwrap();
    simulated(&place);
    let second = std::fs::read(place.path("trace").join("nullb0.blktrace.0")).unwrap();
    assert_eq!(first, second);
}

/// 400 MB of records and probes: they do not fit into the address space that the run has. Room that
/// malloc reserves for each thread, and does not use, is none of it.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn the_trace_is_written_while_the_run_goes_on() {
    let place = Place::new();
    let run = "exec \"$BLKSIM\" run mq-deadline-scaling --runtime 300ms --blktrace trace";
    let ran = shell(
        &place,
        &format!("export MALLOC_ARENA_MAX=1; ulimit -v 100000; {run}"),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let written: u64 = std::fs::read_dir(place.path("trace"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(written > 350 << 20, "{written}");
}

/// A limit on the size of files simulates a full disk.
#[test]
fn a_full_disk_leaves_nothing() {
    for (dir, left) in [("new", &[][..]), ("old", &["old"])] {
        let place = Place::new();
        std::fs::create_dir(place.path("old")).unwrap();
        let run = "exec \"$BLKSIM\" run null-blk-randread --json=report.json --blktrace";
        let ran = shell(
            &place,
            &format!("trap '' XFSZ; ulimit -f 1000; {run} {dir}"),
        );
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("nullb0.blktrace."), "{ran:?}");
        assert!(ran.stderr.contains("File too large"), "{ran:?}");
        assert_eq!(ran.stdout, "");
        let files = place.files();
        assert!(left.iter().all(|file| files.contains(&(*file).to_owned())));
        assert!(!files.contains(&"report.json".to_owned()), "{files:?}");
        assert_eq!(std::fs::read_dir(place.path("old")).unwrap().count(), 0);
        assert!(!place.path("new").exists());
    }
}

/// One thread on a device that answers at once: no event comes from other CPUs.
#[test]
fn ctrl_c_stops_a_single_thread() {
    let place = Place::new();
    // It passes the signal on, and kills a process that does not end: 137.
    let mut child = Command::new("timeout")
        .current_dir(place.0.path())
        .args(["-s", "KILL", "20", env!("CARGO_BIN_EXE_blksim"), "run"])
        .args(["--device", "null_blk,irqmode=0", "--json=report.json"])
        .args(["--blktrace", "trace", "--set", "machine.cpus=1"])
        .args(["--", "--name=x", "--rw=randread", "--direct=1"])
        .args(["--time_based", "--runtime=1h"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let partial = place.path("trace").join(".nullb0.blktrace.0.partial");
    let grows = || partial.metadata().is_ok_and(|file| file.len() > 1 << 20);
    while !grows() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        std::thread::yield_now();
    }
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.files(), [""; 0]);
}
