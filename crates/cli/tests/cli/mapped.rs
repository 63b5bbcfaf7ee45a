//! `run --blktrace` of a mapped device: its trace and those of its paths, for conform.

use std::fs;

use serde_json::Value;

use crate::captures::json;
use crate::place::Place;

/// Two SCSI hosts of four tags under a mapped device.
pub(crate) const SCENARIO: &str = r#"
[machine]
cpus = 1
[queue]
rules = "v6.1"
scheduler = "none"
[device]
type = "scsi_debug"
add_host = 2
ndelay = 200000
max_queue = 4
dev_size_mb = 256
[mapped]
use_blk_mq = 1
table = "0 524288 multipath 0 0 1 1 service-time 0 2 2 sda 1 1 sdb 1 1"
[[job]]
name = "j"
rw = "randrw"
rwmixread = 70
bs = "4k"
ioengine = "libaio"
direct = 1
iodepth = 24
size = "64m"
number_ios = 200
"#;

/// A run with these changes, as a folder `trace`.
fn traced(options: &[&str]) -> Place {
    let place = Place::new();
    fs::write(place.0.path().join("mp.toml"), SCENARIO).unwrap();
    let ran = place.blksim(&[&["run", "mp.toml", "--blktrace", "trace"], options].concat());
    assert_eq!(ran.code, Some(0), "{options:?}: {ran:?}");
    place
}

/// How often each of these actions is in the trace of a device.
fn counts(place: &Place, device: &str, actions: &[&str]) -> Vec<u64> {
    let files = format!("trace/{device}");
    let stats = json(&place.blksim(&["import-stats", &files, "--json"]));
    let of = |action: &&str| stats["actions"][*action].as_u64().unwrap_or(0);
    actions.iter().map(of).collect()
}

/// Each request of the device above is a clone on one of the paths, with an A that gives its origin
/// and an end of its own; above it ends in two parts, as kernels trace it.
#[test]
fn a_mapped_device_and_its_paths_are_traced() {
    let place = traced(&[]);
    let meta = fs::read_to_string(place.0.path().join("trace/meta.txt")).unwrap();
    let table = "dm: 0 524288 multipath 0 0 1 1 service-time 0 2 2 8:0 1 1 8:16 1 1";
    assert!(meta.contains(table), "{meta}");
    assert!(meta.contains("device=scsi_debug add_host=2"), "{meta}");
    let queues = fs::read_to_string(place.0.path().join("trace/queue.txt")).unwrap();
    for section in ["== dm-0 size 524288", "== sda size 524288", "== sdb "] {
        assert!(queues.contains(section), "{queues}");
    }
    let [queued, issued, requeued, completed, remapped] =
        counts(&place, "dm-0", &["Q", "D", "R", "C", "A"])[..]
    else {
        unreachable!("as many as were asked for");
    };
    assert_eq!((queued, completed, remapped), (200, 400, 0));
    // Units that are full refuse a request before it is started: R without D.
    assert_eq!((issued, requeued), (200, 274));
    let mut clones = 0;
    for path in ["sda", "sdb"] {
        let of_path = counts(&place, path, &["A", "D", "C", "Q"]);
        let [remapped, issued, completed, queued] = of_path[..] else {
            unreachable!("as many as were asked for");
        };
        assert_eq!((remapped, completed, queued), (issued, issued, 0), "{path}");
        clones += issued;
    }
    assert_eq!(clones, 200);
}

/// A bio-based device has only bios: each is a bio of a path as well, with an A that gives its
/// origin and a Q of its own. The task that suspends the device and the one that maps waiting bios
/// have names.
#[test]
fn a_bio_based_device_is_traced() {
    let place = Place::new();
    let bios = SCENARIO
        .replace("use_blk_mq = 1\n", "")
        .replace("multipath 0 0", "multipath 2 queue_mode bio 0");
    let suspended = "[[mapped.suspend]]\nat_us = 500\nresume_us = 900\n[[job]]";
    let text = bios.replace("[[job]]", suspended);
    fs::write(place.0.path().join("mp.toml"), text).unwrap();
    let ran = place.blksim(&["run", "mp.toml", "--blktrace", "trace", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = json(&ran);
    assert!(report["bio_work_runs"].as_u64() > Some(0), "{report}");
    assert_eq!(report["device"]["hw_queues"], 0, "{report}");
    let above = counts(&place, "dm-0", &["Q", "C", "G", "I", "D"]);
    assert_eq!(above, [200, 200, 0, 0, 0]);
    let mut clones = 0;
    for path in ["sda", "sdb"] {
        let of_path = counts(&place, path, &["A", "Q", "D", "C"]);
        assert!(of_path.iter().all(|&count| count == of_path[0]), "{path}");
        clones += of_path[0];
    }
    assert_eq!(clones, 200);
    let files = fs::read_dir(place.0.path().join("trace")).unwrap();
    let mut files = files.map(|file| fs::read(file.unwrap().path()).unwrap());
    let name = b"kdmflush";
    let named = |file: Vec<u8>| file.windows(name.len()).any(|word| word == name);
    assert!(files.any(named), "a worker maps what has waited");
}

/// The verdicts on the device above, of a folder `trace`: choices and dispatches.
fn judged(place: &Place, mode: &str) -> Value {
    let args = ["conform", "trace", "--trace-device", "dm-0", "--mode", mode];
    json(&place.blksim(&[&args[..], &["--json"]].concat()))
}

/// A path fails and comes back: the report has the requests of each path, those that were retried,
/// and the time when the path was out of use.
#[test]
fn the_report_shows_paths() {
    let place = Place::new();
    let ran = place.blksim(&["run", "dm-failover", "--json"]);
    let report = json(&ran);
    let paths = report["paths"].as_array().expect("of a mapped device");
    let of = |path: &Value, key: &str| {
        path[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key}: {path}"))
    };
    let [failed, other] = &paths[..] else {
        panic!("{} paths", paths.len());
    };
    let names = |path: &Value| (path["device"].clone(), path["path"].clone());
    assert_eq!(names(failed), ("dm-0".into(), "nvme0n1".into()));
    assert_eq!(names(other), ("dm-0".into(), "nvme1n1".into()));
    for (path, state) in [(failed, "active"), (other, "active")] {
        assert_eq!((of(path, "group"), &path["state"]), (1, &state.into()));
    }
    // Out of reach at 20 ms, detected at 35 ms.
    let (from, to) = (of(failed, "last_failed_ns"), of(failed, "reinstated_ns"));
    assert!((20_000_000..20_100_000).contains(&from), "{failed}");
    assert!((35_000_000..35_100_000).contains(&to), "{failed}");
    assert_eq!(of(failed, "failed_ns"), to - from);
    assert_eq!((of(failed, "fail_count"), of(other, "fail_count")), (1, 0));
    assert_eq!(other["last_failed_ns"], Value::Null);
    // Requests of the path are tried again once, and no I/O fails.
    let (retried, jobs) = (of(failed, "errors"), &report["jobs"][0]);
    assert!(retried > 0 && of(other, "errors") == 0, "{failed}");
    assert_eq!(jobs["total_err"], 0);
    let ios = report["blksim"]["all_ios"].as_u64().expect("a count");
    let requests = of(failed, "requests") + of(other, "requests");
    assert_eq!(requests, ios + retried, "no ramp, and no merges");
    let depth = of(failed, "depth_max") + of(other, "depth_max");
    assert!((64..=128).contains(&depth), "{report}");

    let ran = place.blksim(&["run", "dm-failover"]);
    let line = ran
        .stdout
        .lines()
        .find(|line| line.contains("dm-0 nvme0n1"));
    let line = line.unwrap_or_else(|| panic!("{ran:?}"));
    assert!(
        line.contains("from 0.0200") && line.contains(" s to 0.0350"),
        "{line}"
    );
    let stays = [
        "run",
        "dm-failover",
        "--set",
        r#"mapped.outage=[{path="nvme1n1",from_us=20000,to_us=99000}]"#,
    ];
    let ran = place.blksim(&stays);
    let line = ran
        .stdout
        .lines()
        .find(|line| line.contains("dm-0 nvme1n1"));
    assert!(line.is_some_and(|line| line.ends_with("s on")), "{ran:?}");
}

/// A run of a mapped queue that maps a request does not count as an empty one.
#[test]
fn runs_that_map_are_not_in_vain() {
    let settings = ["--set", "job.runtime=1ms", "--set", "job.ramp_time=0"];
    let args = [&["run", "dm-null", "--json"], &settings[..]].concat();
    let report = json(&Place::new().blksim(&args));
    let mut hctxs = report["runs"]["hctxs"].as_array().expect("runs").iter();
    let above = hctxs.find(|of| of["device"] == "dm-0").expect("it ran");
    let count = |key: &str| above[key].as_u64().unwrap();
    let (runs, in_vain) = (count("own") + count("foreign"), count("in_vain"));
    assert!(
        runs > 100 && in_vain * 2 < runs,
        "{in_vain} of {runs}: {report:#}"
    );
}

/// On one CPU each path and each dispatch of the device above is predicted, requests that come back
/// included, under each selector and each kernel that finds no tag at once.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn runs_of_a_mapped_device_on_one_cpu_are_predicted() {
    let of = |rules: &str, scheduler: &str, selector: &str| {
        let rules = format!("queue.rules={rules}");
        let scheduler = format!("mapped.queue.scheduler={scheduler}");
        let arguments = if selector == "service-time" {
            "1 1"
        } else {
            "1"
        };
        let paths = format!(
            "2 {} sda {arguments} sdb {arguments}",
            arguments.len() / 2 + 1
        );
        let table = format!("mapped.table=0 524288 multipath 0 0 1 1 {selector} 0 {paths}");
        traced(&["--set", &rules, "--set", &scheduler, "--set", &table])
    };
    for (rules, scheduler, selector, mode) in [
        ("v6.1", "none", "service-time", "records"),
        ("v6.1", "mq-deadline", "round-robin", "calls"),
        ("v6.1", "mq-deadline", "queue-length", "records"),
        ("v6.12", "kyber", "service-time", "calls"),
        ("v4.6", "none", "round-robin", "records"),
    ] {
        let place = of(rules, scheduler, selector);
        let verdict = judged(&place, mode);
        let what = format!("{rules}, {scheduler}, {selector}: {verdict:#}");
        let choices = &verdict["choices"];
        assert!(choices["total"].as_u64() >= Some(200), "{what}");
        assert_eq!(choices["predicted"], choices["total"], "{what}");
        assert_eq!(verdict["diverged"], 0, "{what}");
        assert!(verdict["predicted"].as_u64() >= Some(200), "{what}");
    }
}

/// A request of several bios has one C, or one for each of them and one with nothing left (up to
/// 4.12): its clone is over with the last either way.
#[test]
fn clones_of_merged_requests_are_predicted() {
    for rules in ["v4.6", "v6.1"] {
        let merged = [
            &format!("queue.rules={rules}"),
            "job.rw=read",
            "job.iodepth_batch=8",
            "job.iodepth_batch_complete_min=8",
            "device.max_queue=16",
        ];
        let place = traced(&merged.map(|set| ["--set", set]).concat());
        let [requests, ends] = counts(&place, "dm-0", &["D", "C"])[..] else {
            unreachable!("as many as were asked for");
        };
        assert!(requests < 150, "{rules}: {requests} requests of 200 bios");
        // Each D is of a request that comes back without a tag, or that ends: twice, up to 4.12
        // once more for each bio but its last.
        assert_eq!(
            ends > 200,
            rules == "v4.6",
            "{rules}: {ends} C of {requests}"
        );
        let verdict = judged(&place, "records");
        let what = format!("{rules}: {verdict:#}");
        for message in ["choices", "clones"] {
            let message = &verdict[message];
            assert!(message["total"].as_u64() >= Some(25), "{what}");
            assert_eq!(message["predicted"], message["total"], "{what}");
        }
    }
}

/// Two devices, each over a path of two hosts of two units.
const SEVERAL: &str = r#"
[machine]
cpus = 1
[queue]
rules = "v6.1"
scheduler = "mq-deadline"
[device]
type = "scsi_debug"
add_host = 2
max_luns = 2
ndelay = 200000
max_queue = 64
dev_size_mb = 256
[[mapped]]
table = "0 524288 multipath 0 0 1 1 service-time 0 2 2 sda 1 1 sdc 1 1"
[[mapped]]
table = "0 524288 multipath 0 0 1 1 round-robin 0 2 1 sdd 1 sdb 1"
[[job]]
name = "j"
filename = "/dev/dm-0:/dev/dm-1"
rw = "randrw"
bs = "4k"
ioengine = "libaio"
direct = 1
iodepth = 24
size = "64m"
number_ios = 300
"#;

/// Each of several tables has its choices judged on its own device, which the A of its paths name;
/// one record that names another path is one wrong choice of that device only.
#[test]
fn choices_of_several_mapped_devices_are_judged_by_device() {
    let place = Place::new();
    fs::write(place.0.path().join("mp.toml"), SEVERAL).unwrap();
    let ran = place.blksim(&["run", "mp.toml", "--blktrace", "trace"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let meta = fs::read_to_string(place.0.path().join("trace/meta.txt")).unwrap();
    for table in ["2 2 8:0 1 1 8:32 1 1\n", "2 1 8:48 1 8:16 1\n"] {
        assert!(meta.contains(table), "{meta}");
    }
    let judged = |meta: &str, more: &[&str]| {
        fs::write(place.0.path().join("trace/meta.txt"), meta).unwrap();
        let args = [&["conform", "trace", "--mode", "calls", "--json"], more].concat();
        let ran = place.blksim(&args);
        let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
        let of = |target: &Value| {
            let count = |key: &str| target["choices"][key].as_u64().unwrap();
            let device = target["device"].as_str().unwrap().to_owned();
            (device, count("total"), count("predicted"))
        };
        let targets: Vec<_> = verdict["targets"]
            .as_array()
            .unwrap()
            .iter()
            .map(of)
            .collect();
        (targets, verdict)
    };
    let (targets, verdict) = judged(&meta, &[]);
    let right = |device: &str| (device.to_owned(), 150, 150);
    assert_eq!(targets, [right("dm-0"), right("dm-1")]);
    assert_eq!(verdict["choices"]["predicted"], 300, "{verdict:#}");
    assert_eq!(
        (&verdict["diverged"], &verdict["unjudged"]),
        (&0.into(), &0.into())
    );
    let (targets, _) = judged(&meta, &["--trace-device", "dm-1"]);
    assert_eq!(targets, [right("dm-1")]);
    // The mutant: another table.
    let other = meta.replace(
        "service-time 0 2 2 8:0 1 1 8:32 1 1",
        "round-robin 0 2 1 8:32 1 8:0 1",
    );
    let (targets, _) = judged(&other, &[]);
    assert!(targets[0].2 < 150, "{targets:?}");
    assert_eq!(targets[1], right("dm-1"));
}

/// The device above may be of the path that conform does not follow: it is traced, its thread by
/// name, and refused because of its scheduler's events.
#[test]
fn a_mapped_device_of_the_single_queue_path_is_traced_and_refused() {
    let above = [
        "queue.rules=v4.5",
        "mapped.use_blk_mq=0",
        "mapped.queue.scheduler=noop",
    ];
    let place = traced(&above.map(|set| ["--set", set]).concat());
    let [queued, remapped] = counts(&place, "dm-0", &["Q", "A"])[..] else {
        unreachable!("as many as were asked for");
    };
    assert_eq!((queued, remapped), (200, 0));
    let clones = ["sda", "sdb"].map(|path| counts(&place, path, &["A"])[0]);
    assert_eq!(clones.iter().sum::<u64>(), 200);
    let ran = place.blksim(&["conform", "trace", "--trace-device", "dm-0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let expected = "dm-0: scheduler noop is of the single-queue path, which conform does not follow; \
                    of a multipath device expected use_blk_mq=1";
    assert!(ran.stderr.contains(expected), "{ran:?}");
}

/// Choices of a bio-based device are judged as those of requests; nothing is dispatched there, and
/// the dispatches of its paths are predicted besides.
#[test]
fn choices_of_bios_are_predicted() {
    for (selector, words) in [("round-robin", 1), ("queue-length", 1), ("service-time", 2)] {
        let path = |device: &str| format!("{device}{}", " 1".repeat(words));
        let paths = format!("2 {words} {} {}", path("sda"), path("sdb"));
        let table = format!("0 524288 multipath 2 queue_mode bio 0 1 1 {selector} 0 {paths}");
        let old = "0 524288 multipath 0 0 1 1 service-time 0 2 2 sda 1 1 sdb 1 1";
        let scenario = SCENARIO
            .replace("use_blk_mq = 1\n", "")
            .replace(old, &table)
            .replace(r#"bs = "4k""#, r#"bsrange = "4k-64k""#);
        let place = Place::new();
        fs::write(place.0.path().join("mp.toml"), scenario).unwrap();
        let ran = place.blksim(&["run", "mp.toml", "--blktrace", "trace"]);
        assert_eq!(ran.code, Some(0), "{selector}: {ran:?}");
        let verdict = judged(&place, "records");
        let what = format!("{selector}: {verdict:#}");
        assert_eq!(verdict["choices"]["total"], 200, "{what}");
        assert_eq!(verdict["choices"]["predicted"], 200, "{what}");
        assert_eq!(verdict["total"], 0, "{what}");
        let ran = place.blksim(&["conform", "trace"]);
        let note = "note: dm-0: bio-based, so that no request is there to dispatch";
        assert!(ran.stdout.contains(note), "{ran:?}");
        assert!(
            ran.stdout.contains("predicted 200/200 dispatches"),
            "{ran:?}"
        );
        // The mutant: one clone that came to the other path.
        move_a_clone(&place);
        let ran = place.blksim(&["conform", "trace", "--trace-device", "dm-0", "--json"]);
        assert_eq!(ran.code, Some(1), "{selector}: {ran:?}");
        let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(verdict["choices"]["total"], 200, "{selector}: {verdict:#}");
        assert!(
            verdict["choices"]["predicted"].as_u64() < Some(200),
            "{selector}: {verdict:#}"
        );
    }
}

/// All records of the twentieth clone of sda are of sdb instead.
fn move_a_clone(place: &Place) {
    let file = |device: &str| place.0.path().join(format!("trace/{device}.blktrace.0"));
    let [mut from, mut to] = ["sda", "sdb"].map(|device| records(&fs::read(file(device)).unwrap()));
    let is_remap = |record: &&Vec<u8>| record[28..30] == [15, 0];
    let sector = from.iter().filter(is_remap).nth(19).expect("clones")[16..24].to_vec();
    let other = to.last().expect("records")[36..40].to_vec();
    let is_of_clone = |record: &Vec<u8>| record[16..24] == sector[..];
    let (mut moved, mut kept): (Vec<_>, Vec<_>) = from.drain(..).partition(is_of_clone);
    for record in &mut moved {
        record[36..40].copy_from_slice(&other);
    }
    to.extend(moved);
    to.sort_by_key(|record| u64::from_le_bytes(record[8..16].try_into().unwrap()));
    // None is missing; a record that is no event has no number.
    for records in [&mut kept, &mut to] {
        let events = records.iter_mut().filter(|record| record[4..8] != [0; 4]);
        for (number, record) in (1_u32..).zip(events) {
            record[4..8].copy_from_slice(&number.to_le_bytes());
        }
    }
    fs::write(file("sda"), kept.concat()).unwrap();
    fs::write(file("sdb"), to.concat()).unwrap();
}

/// Each record of a binary trace, with its payload.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while bytes.len() >= 48 {
        let length = 48 + usize::from(u16::from_le_bytes([bytes[46], bytes[47]]));
        records.push(bytes[..length].to_vec());
        bytes = &bytes[length..];
    }
    records
}
