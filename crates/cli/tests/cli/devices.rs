//! Several devices in one run, from the command line: traces, replay, tables and errors.

use crate::captures::json;
use crate::place::Place;

/// Two devices of null_blk on one CPU, a job each and one on both.
const JOBS: &str = "--direct=1 --size=100m --ioengine=libaio --bs=4k --number_ios=150 \
                    --name=a --filename=/dev/nullb0 --rw=randrw --iodepth=24 \
                    --name=b --filename=/dev/nullb1 --rw=randwrite --iodepth=16 --iodepth_batch=8 \
                    --name=c --filename=/dev/nullb0:/dev/nullb1 --rw=randread --iodepth=16";

fn run(place: &Place, device: &str, more: &[&str], jobs: &str) -> crate::place::Ran {
    let mut args = vec!["run", "--device", device];
    args.extend(more);
    args.push("--");
    args.extend(jobs.split_whitespace());
    place.blksim(&args)
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn each_device_has_its_trace_and_conforms() {
    for (rules, scheduler) in [
        ("v6.1", "mq-deadline"),
        ("v6.12", "mq-deadline"),
        ("v6.12", "none"),
    ] {
        let place = Place::new();
        let device = "null_blk,nr_devices=2,irqmode=2,completion_nsec=100000,hw_queue_depth=2,gb=1";
        let more = [
            "--rules",
            rules,
            "--scheduler",
            scheduler,
            "--blktrace",
            "trace",
        ];
        let more = [&more[..], &["--set", "machine.cpus=1"]].concat();
        let ran = run(&place, device, &more, JOBS);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut files: Vec<String> = std::fs::read_dir(place.path("trace"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let probed: &[&str] = match scheduler {
            "none" => &[],
            _ => &["ftrace.txt"],
        };
        let others = [
            "meta.txt",
            "nullb0.blktrace.0",
            "nullb1.blktrace.0",
            "priorities.txt",
            "queue.txt",
        ];
        assert_eq!(files, [probed, &others].concat());
        let mut total = 0;
        for device in ["nullb0", "nullb1"] {
            let of = ["--trace-device", device, "--json"];
            let verdict = [&["conform", "trace", "--mode", "records"], &of[..]].concat();
            let verdict = place.blksim(&verdict);
            assert_eq!(verdict.code, Some(0), "{rules} {scheduler}: {verdict:?}");
            let verdict = json(&verdict);
            assert_eq!(verdict["predicted"], verdict["total"], "{verdict:#}");
            total += verdict["total"].as_u64().unwrap();
            let replayed = place.blksim(&[&["replay", "trace"], &of[..]].concat());
            assert_eq!(replayed.code, Some(0), "{replayed:?}");
        }
        assert!(
            (300..=450).contains(&total),
            "{total}: some are merged, none is lost"
        );
        // Without a name all of them are judged together.
        let ran = place.blksim(&["conform", "trace", "--mode", "records"]);
        let message = format!("predicted {total}/{total} dispatches");
        assert!(ran.stdout.contains(&message), "{message} of {ran:?}");
        // The same command again replaces its own folder.
        assert_eq!(
            run(&place, "null_blk,nr_devices=2", &more, JOBS).code,
            Some(0)
        );
    }
}

/// A shared tag set: the simulator and the reference compute fair shares of it independently.
#[test]
fn shared_tags_conform() {
    for rules in ["v6.1", "v6.12"] {
        for (scheduler, depth) in [("mq-deadline", 6), ("mq-deadline", 12), ("none", 6)] {
            let place = Place::new();
            let device = format!(
                "null_blk,nr_devices=2,shared_tags=1,irqmode=2,completion_nsec=100000,gb=1,\
                 hw_queue_depth={depth}"
            );
            let more = [
                "--rules",
                rules,
                "--scheduler",
                scheduler,
                "--blktrace",
                "trace",
            ];
            let more = [&more[..], &["--set", "machine.cpus=1"]].concat();
            let ran = run(&place, &device, &more, JOBS);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let ran = place.blksim(&["conform", "trace", "--mode", "records", "--json"]);
            assert_eq!(ran.code, Some(0), "{rules} {scheduler} {depth}: {ran:?}");
            let verdict = json(&ran);
            assert_eq!(verdict["predicted"], verdict["total"], "{verdict:#}");
            assert!(verdict["total"].as_u64().unwrap() > 400, "{verdict:#}");
        }
    }
}

#[test]
fn devices_that_differ_have_no_common_module() {
    let place = Place::new();
    place.write(
        "mixed.toml",
        "[[device]]\ntype = \"nvme\"\n[[device]]\ntype = \"null_blk\"\n[[job]]\ndirect = 1\n\
         filename = \"/dev/nvme0n1:/dev/nullb0\"\nnumber_ios = 10\n",
    );
    let ran = place.blksim(&["run", "mixed.toml", "--blktrace", "trace"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("one line for the module of all devices"),
        "{ran:?}"
    );
    assert!(!place.path("trace").exists());
    let ran = place.blksim(&["run", "mixed.toml", "--json"]);
    let report = json(&ran);
    assert_eq!(report["device"]["type"], "several");
    assert_eq!(report["devices"][0]["name"], "nvme0n1");
    assert_eq!(report["devices"][1]["type"], "null_blk");
    assert_eq!(report["devices"][1]["read"]["total_ios"], 5);
}

#[test]
fn a_run_that_changes_its_scheduler_is_no_capture() {
    let place = Place::new();
    place.write(
        "changes.toml",
        "[queue]\nscheduler = \"mq-deadline\"\n[device]\ntype = \"null_blk\"\n[[job]]\ndirect = 1\n\
         size = \"16m\"\nnumber_ios = 100\n[[change]]\nat_us = 50\nscheduler = \"none\"\n",
    );
    let ran = place.blksim(&["run", "changes.toml", "--blktrace", "trace"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let what = "queue.txt has one scheduler of each device for all of the run";
    assert!(ran.stderr.contains(what), "{ran:?}");
    assert!(!place.path("trace").exists());
    assert_eq!(place.blksim(&["run", "changes.toml"]).code, Some(0));
}

#[test]
fn what_reads_reports_takes_several_devices() {
    let place = Place::new();
    let device = "nvme,count=2,latency_ns=20000";
    let jobs = "--direct=1 --name=a --filename=/dev/nvme0n1:/dev/nvme1n1 --rw=randread \
                --ioengine=libaio --iodepth=8 --number_ios=400";
    let ran = run(&place, device, &["--details", "--json=report.json"], jobs);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = place.blksim(&["plot", "report.json", "--output", "figures"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(place.path("figures/queue-depth.svg").exists());
    let ran = run(&place, device, &["--csv=report.csv"], jobs);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let csv = std::fs::read_to_string(place.path("report.csv")).unwrap();
    assert!(csv.contains(",nvme,finished,a,1,read,400,"), "{csv}");
    let ran = run(&place, device, &["--trace-perfetto", "trace.json"], jobs);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trace = std::fs::read_to_string(place.path("trace.json")).unwrap();
    assert!(trace.contains("nvme0n1") && trace.contains("nvme1n1"));
}

#[test]
fn a_replay_has_one_device() {
    let place = Place::new();
    let device = "null_blk,irqmode=2";
    let jobs = "--direct=1 --name=a --filename=/dev/nullb0 --rw=randread --number_ios=50";
    let ran = run(&place, device, &["--blktrace", "trace"], jobs);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = place.blksim(&["replay", "trace", "--device", "nvme,count=2"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("a replay has one device"), "{ran:?}");
}

/// A drive of a file or of those built in takes the place of the scenario's; the report names it.
#[test]
fn a_drive_replaces_that_of_the_scenario() {
    let place = Place::new();
    place.write("mine.toml", "type = \"nvme\"\nlatency_ns = 7000\n");
    place.write("none.toml", "");
    let run = |drive: &str| {
        let run = "run nvme-one-process --runtime 1ms --ramp-time 0 --drive";
        let arguments: Vec<&str> = run.split(' ').chain([drive]).collect();
        place.blksim(&arguments)
    };
    for (drive, latency) in [
        ("mine.toml", "latency_ns=7000"),
        ("fast-512", "latency_ns=5000"),
    ] {
        let ran = run(drive);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(latency), "{}", ran.stdout);
        assert!(!ran.stdout.contains("dies="), "{}", ran.stdout);
        assert!(
            ran.stdout.contains(&format!("--drive {drive}")),
            "{}",
            ran.stdout
        );
    }
    for (drive, want) in [
        ("none.toml", "none.toml: type: a drive says what drives it"),
        ("lost.toml", "lost.toml: cannot read"),
        (
            "fast",
            "device.drive: no drive is named `fast`; there are samsung-980-pro",
        ),
    ] {
        let ran = run(drive);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{drive}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(want), "{}", ran.stderr);
    }
    let listed = place.blksim(&["list"]).stdout;
    assert!(listed.contains("\n  slow-66k"), "{listed}");
}
