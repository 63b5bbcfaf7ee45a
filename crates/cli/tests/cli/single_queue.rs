//! Schedulers of the single-queue path, and a rotational disk, through every command that takes
//! them.

use blkmq::elevator::SchedulerKind;
use trace::blktrace::{Action, Options, Reader};

use crate::place::{Place, json};

/// Two readers and a writer on a disk.
const SCENARIO: &str = "\
[machine]
profile = \"quadcore\"
hz = 1000
[queue]
rules = \"v2.6.32\"
scheduler = \"cfq\"
[device]
drive = \"sata2009\"
[[job]]
name = \"reader\"
rw = \"read\"
bs = \"64k\"
ioengine = \"psync\"
direct = 1
offset_increment = \"100g\"
size = \"1g\"
numjobs = 2
time_based = true
runtime = \"300ms\"
[[job]]
name = \"writer\"
rw = \"randwrite\"
bs = \"16k\"
ioengine = \"libaio\"
iodepth = 4
direct = 1
time_based = true
runtime = \"300ms\"
";

const RULES: [&str; 4] = ["v2.6.32", "v2.6.33", "v2.6.35", "v4.20"];

fn schedulers() -> Vec<&'static str> {
    SchedulerKind::of_path(true)
        .map(SchedulerKind::name)
        .collect()
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn each_has_a_capture_folder_that_is_replayed() {
    let all = schedulers();
    for rules in RULES {
        for name in &all {
            let place = Place::new();
            place.write("s.toml", SCENARIO);
            let run = ["run", "s.toml", "--blktrace", "t"];
            let ran = place.blksim(&[&run[..], &["--rules", rules, "--scheduler", name]].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            // On its own device, with the captured times, and on a disk, with all of them.
            let replayed = json(&place.blksim(&["replay", "t", "--json"]));
            assert_eq!(replayed["blksim"]["rules"], rules, "{replayed:#}");
            assert_eq!(replayed["columns"][1]["name"], *name, "{replayed:#}");
            let list = all.join(",");
            for how in [&["--device", "ahci"][..], &["--closed-loop"]] {
                let replay = ["replay", "t", "--scheduler", &list];
                let ran = place.blksim(&[&replay[..], how].concat());
                assert_eq!(ran.code, Some(0), "{rules} {name} {how:?}: {ran:?}");
                assert!(all.iter().all(|name| ran.stdout.contains(name)), "{ran:?}");
            }
            // Under blk-mq, too.
            let replay = ["replay", "t", "--rules", "v6.12", "--scheduler", "bfq"];
            let ran = place.blksim(&[&replay[..], &["--device", "ahci"]].concat());
            assert_eq!(ran.code, Some(0), "{rules} {name}: {ran:?}");
        }
    }
}

/// Turns of one queue at a time, in order, the last of which ends with the run.
#[test]
fn turns_follow_each_other() {
    let place = Place::new();
    place.write("s.toml", SCENARIO);
    for rules in RULES {
        let run = ["run", "s.toml", "--details", "--json", "--rules", rules];
        let report = json(&place.blksim(&run));
        let turns = &report["details"]["turns"];
        let mut spans = Vec::new();
        let mut awaited = 0;
        for queue in turns["queues"].as_array().unwrap() {
            let numbers = |name: &str| -> Vec<u64> {
                let all = queue[name].as_array().unwrap().iter();
                all.map(|number| number.as_u64().unwrap()).collect()
            };
            awaited += numbers("awaited").iter().sum::<u64>();
            spans.extend(numbers("from_ns").into_iter().zip(numbers("to_ns")));
        }
        spans.sort_unstable();
        assert_eq!(turns["count"], spans.len() as u64);
        assert!(awaited > 0, "{rules}: readers are waited for");
        assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "{rules}");
        let end = report["blksim"]["simulated_ns"].as_u64().unwrap();
        // The block layer comes to rest after the last I/O, within a tick.
        let rest = end + 1_000_000;
        assert!(spans.last().is_some_and(|last| last.1 <= rest), "{rules}");
        let attributes = report["blksim"]["iosched"].as_object().unwrap();
        assert_eq!(attributes.contains_key("group_idle"), rules == "v4.20");
        let quantum = if rules < "v2.6.34" { 4 } else { 8 };
        assert_eq!(attributes["quantum"], quantum, "{rules}");
    }
}

#[test]
fn a_stall_and_a_timeline_name_the_scheduler() {
    for name in schedulers() {
        let place = Place::new();
        let lossy = SCENARIO.replace(
            "[[job]]\nname = \"reader\"",
            "[device.fault]\nlost_completion = \"1/4\"\n[[job]]\nname = \"reader\"",
        );
        // More than the drive takes: the rest is with the scheduler.
        let lossy = lossy.replace("iodepth = 4", "iodepth = 64");
        place.write("s.toml", &lossy);
        let ran = place.blksim(&["run", "s.toml", "--scheduler", name]);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(
            ran.stderr.contains(&format!("scheduler {name}: ")),
            "{ran:?}"
        );
        place.write("s.toml", SCENARIO);
        let run = [
            "run",
            "s.toml",
            "--scheduler",
            name,
            "--trace-perfetto",
            "p",
        ];
        let ran = place.blksim(&[&run[..], &["--trace-window", "100ms,150ms"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let text = std::fs::read_to_string(place.path("p")).unwrap();
        let timeline: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(!timeline["traceEvents"].as_array().unwrap().is_empty());
    }
}

/// blkparse's output for a folder: letters, and the text of messages.
fn lines(place: &Place, folder: &str) -> Vec<String> {
    let file = place.path(&format!("{folder}/sda.blktrace.0"));
    let mut reader = Reader::open(&[file], Options::default()).unwrap();
    let mut lines = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        lines.push(match event.action {
            Action::Message => String::from_utf8(reader.pdu().to_vec()).unwrap(),
            action => action.letters().to_owned(),
        });
    }
    lines
}

/// One read after the other: its slice, the wait for the next one, and that one.
#[test]
fn messages_stand_where_the_kernel_writes_them() {
    let place = Place::new();
    let one = "[machine]\nprofile = \"quadcore\"\nhz = 1000\ncpus = 1\n[queue]\nscheduler = \"cfq\"\n\
               [device]\ndrive = \"sata2009\"\n[[job]]\nrw = \"read\"\nbs = \"4k\"\n\
               ioengine = \"psync\"\ndirect = 1\nnumber_ios = 2\n";
    for (rules, expected) in [("v2.6.32", FIRST), ("v4.20", LAST)] {
        place.write("s.toml", one);
        let set = format!("queue.rules={rules}");
        let run = ["run", "s.toml", "--set", &set, "--blktrace", rules];
        let ran = place.blksim(&run);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let is = lines(&place, rules);
        assert_eq!(is, expected, "{rules}: {is:#?}");
    }
}

const FIRST: &[&str] = &[
    "Q",
    "cfq1000 alloced",
    "G",
    "P",
    "I",
    "cfq1000 insert_request",
    "cfq1000 add_to_rr",
    "U",
    "cfq1000 set_active",
    "cfq1000 fifo=(null)",
    "cfq1000 dispatch_insert",
    "cfq1000 del_from_rr",
    "cfq1000 dispatched a request",
    "cfq1000 activate rq, drv=1",
    "D",
    "C",
    "cfq1000 complete",
    "cfq1000 set_slice=100",
    "cfq1000 arm_idle: 8",
    "Q",
    "G",
    "P",
    "I",
    "cfq1000 insert_request",
    "cfq1000 add_to_rr",
    "U",
    "cfq1000 dispatch_insert",
    "cfq1000 del_from_rr",
    "cfq1000 dispatched a request",
    "cfq1000 activate rq, drv=1",
    "D",
    "C",
    "cfq1000 complete",
    "cfq1000 arm_idle: 8",
    "cfq1000 slice expired t=0",
    "cfq1000 put_queue",
];

const LAST: &[&str] = &[
    "Q",
    "cfq1000S  alloced",
    "G",
    "I",
    "cfq1000S  insert_request",
    "cfq1000S  add_to_rr",
    "cfq workload slice:300000000",
    "cfq1000S  set_active wl_class:0 wl_type:2",
    "cfq1000S  dispatch_insert",
    "cfq1000S  dispatched a request",
    "cfq1000S  activate rq, drv=1",
    "D",
    "C",
    "cfq1000S  complete rqnoidle 0",
    "cfq1000S  set_slice=100000000",
    "cfq1000S  arm_idle: 8000000 group_idle: 0",
    "cfq schedule dispatch",
    "Q",
    "G",
    "I",
    "cfq1000S  insert_request",
    "cfq1000S  dispatch_insert",
    "cfq1000S  dispatched a request",
    "cfq1000S  activate rq, drv=1",
    "D",
    "C",
    "cfq1000S  complete rqnoidle 0",
    "cfq1000S  arm_idle: 8000000 group_idle: 0",
    "cfq schedule dispatch",
    "cfq1000S  slice expired t=0",
    "served: vt=427503616 min_vt=0",
    "cfq1000S  sl_used=104371 disp=2 charge=104371 iops=0 sect=16",
    "cfq1000S  del_from_rr",
    "del_from_rr group",
    "cfq1000S  put_queue",
];
