//! Runs of mapped devices on many CPUs, judged by conform: counts as they are, and mutants.

use std::fs;

use serde_json::Value;

use crate::place::Place;

/// The start of a built-in scenario, as a folder `trace`.
fn traced(scenario: &str, settings: &[&str]) -> Place {
    let place = Place::new();
    let mut args = vec!["run", scenario, "--blktrace", "trace"];
    args.extend(settings.iter().flat_map(|set| ["--set", set]));
    let ran = place.blksim(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place
}

fn judged(place: &Place, options: &[&str]) -> Value {
    let ran = place.blksim(&[&["conform", "trace", "--json"], options].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

fn of(what: &Value) -> (u64, u64) {
    let count = |key: &str| what[key].as_u64().expect("a number");
    (count("predicted"), count("total"))
}

/// By rival: predicted choices, and all that distinguish it from the judged selector.
fn rival(verdict: &Value, name: &str) -> (u64, u64) {
    let each = &verdict["choices"]["distinguishing"]["each"];
    let mut each = each.as_array().expect("of choices").iter();
    let rival = each.find(|rival| rival["name"] == name);
    of(rival.unwrap_or_else(|| panic!("no {name} in {verdict:#}")))
}

/// Twelve CPUs over 64 tags: each clone with a tag or without agrees with the tags below. The
/// records do not show which of their runs took a request, and no dispatch of none is wrong.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn clones_of_twelve_cpus_are_predicted() {
    let place = traced("dm-null", &["job.runtime=1ms", "job.ramp_time=0"]);
    let verdict = judged(&place, &[]);
    assert_eq!(of(&verdict["choices"]), (855, 855), "{verdict:#}");
    // Two requests of one sector are there at a time, of which one comes back for want of a tag.
    assert_eq!(of(&verdict["clones"]), (1558, 1558), "{verdict:#}");
    assert_eq!(of(&verdict), (244, 1558), "{verdict:#}");
    assert_eq!(verdict["unjudged"], 1314, "{verdict:#}");
    // The mutant: with 128 tags none would have come back for want of one.
    let queues = place.path("trace/queue.txt");
    let text = fs::read_to_string(&queues).unwrap();
    fs::write(&queues, text.replace("tags=64 ", "tags=128 ")).unwrap();
    let (predicted, total) = of(&judged(&place, &[])["clones"]);
    assert_eq!((predicted, total), (855, 1558));
}

/// Eight CPUs under one scheduler over 64 tags. A request that comes back without a worker that
/// inserts it is left over by a run that the model has not followed.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn dispatches_that_come_back_under_a_scheduler_are_predicted() {
    let settings = [
        "job.runtime=300us",
        "job.numjobs=8",
        "queue.rules=v6.1",
        "queue.scheduler=mq-deadline",
    ];
    let place = traced("dm-null", &settings);
    let verdict = judged(&place, &[]);
    assert_eq!(of(&verdict), (2459, 2459), "{verdict:#}");
    assert_eq!(of(&verdict["choices"]), (2442, 2442), "{verdict:#}");
    assert_eq!(of(&verdict["clones"]), (2735, 2735), "{verdict:#}");
}

/// Two hosts of 64 tags, each for four units under four targets: tags of other targets are counted.
/// A wrong rotation makes none of the choices that distinguish it from the right one.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn tags_of_a_host_are_shared_by_targets() {
    let settings = ["job.runtime=3ms", "job.ramp_time=0", "device.can_queue=64"];
    let place = traced("dm-fc", &settings);
    let verdict = judged(&place, &[]);
    assert_eq!(of(&verdict["choices"]), (1455, 1455), "{verdict:#}");
    assert_eq!(of(&verdict["clones"]), (2031, 2031), "{verdict:#}");
    let (predicted, total) = rival(&verdict, "round-robin");
    assert!(predicted == total && total > 80, "{verdict:#}");
    let (predicted, total) = rival(&verdict, "the rotation of 4.12");
    assert!(predicted == total && total > 80, "{verdict:#}");
    let wrong = judged(&place, &["--rules", "v4.12"]);
    let (predicted, total) = rival(&wrong, "the rotation of 4.20");
    assert!(predicted * 10 < total && total > 80, "{wrong:#}");
    let queues = place.path("trace/queue.txt");
    let text = fs::read_to_string(&queues).unwrap();
    let (above, below) = text.split_at(text.find("== sda").expect("a path"));
    for (tags, most) in [("tags=128 ", 1455), ("tags=40 ", 1350)] {
        let changed = below.replace("tags=64 ", tags);
        fs::write(&queues, format!("{above}{changed}")).unwrap();
        let (predicted, total) = of(&judged(&place, &[])["clones"]);
        assert!(predicted <= most && total == 2031, "{tags}: {predicted}");
    }
}

/// A unit without a trace: nothing that depends on it is judged, and the reason is reported.
#[test]
fn a_unit_without_a_trace_is_reported() {
    let settings = ["job.runtime=1ms", "job.ramp_time=0", "device.can_queue=64"];
    let place = traced("dm-fc", &settings);
    for cpu in 0..24 {
        fs::remove_file(place.path(&format!("trace/sdc.blktrace.{cpu}"))).unwrap();
    }
    let ran = place.blksim(&["conform", "trace"]);
    for line in [
        "cannot be judged: path choices of dm-2: its path 8:32 may be sdc, which has no trace",
        "note: dm-0: whether a tag was free is not judged: sdc draws from the tags of its paths \
         and has no trace",
    ] {
        assert!(ran.stdout.contains(line), "{ran:?}");
    }
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let verdict = judged(&place, &[]);
    let (predicted, total) = of(&verdict["choices"]);
    assert!(predicted == total && total > 100, "{verdict:#}");
    assert_eq!(of(&verdict["clones"]), (0, 0), "{verdict:#}");
}

/// A path fails under load and comes back. Failed requests go to the requeue list, from which a
/// worker inserts them again, and under v6.12 requests that come after the worker's turn wait for
/// the next one.
#[test]
fn choices_beside_a_failing_path_are_predicted() {
    let outage = r#"mapped.outage=[{path="nvme0n1",from_us=1000,to_us=2000,reinstate_us=2500}]"#;
    for (rules, [choices, clones]) in [("v6.1", [1430, 1453]), ("v6.12", [1423, 1448])] {
        let rules = format!("queue.rules={rules}");
        let place = traced("dm-failover", &["job.runtime=3ms", outage, &rules]);
        let verdict = judged(&place, &[]);
        let all = |count: u64| (count, count);
        assert_eq!(of(&verdict["choices"]), all(choices), "{verdict:#}");
        assert_eq!(of(&verdict["clones"]), all(clones), "{verdict:#}");
        assert_eq!(of(&verdict), all(choices), "{verdict:#}");
        let (predicted, total) = rival(&verdict, "round-robin");
        assert!(predicted == total && total > 100, "{verdict:#}");
    }
}

/// A selector's table over the two paths of dm-failover, none of which fails.
fn selected(selector: &str, [first, second]: [&str; 2]) -> Place {
    let table = format!(
        "mapped.table=0 8388608 multipath 1 queue_if_no_path 0 1 1 {selector} 0 2 1 \
         nvme0n1 {first} nvme1n1 {second}"
    );
    traced(
        "dm-failover",
        &["job.runtime=1ms", "mapped.outage=[]", &table],
    )
}

/// The CPU that maps decides. Masks the other way round: each choice is a wrong one.
#[test]
fn choices_by_cpu_are_predicted() {
    let place = selected("io-affinity", ["5", "a"]);
    let verdict = judged(&place, &[]);
    assert_eq!(of(&verdict["choices"]), (489, 489), "{verdict:#}");
    assert_eq!(of(&verdict["clones"]), (489, 489), "{verdict:#}");
    let meta = place.path("trace/meta.txt");
    let text = fs::read_to_string(&meta).unwrap();
    assert!(text.contains("259:0 5 259:1 a"), "{text}");
    fs::write(&meta, text.replace("259:0 5 259:1 a", "259:0 a 259:1 5")).unwrap();
    let verdict = judged(&place, &[]);
    assert_eq!(of(&verdict["choices"]), (0, 489), "{verdict:#}");
}

/// Estimates of service times depend on the end of a clone, which records show between bounds: near
/// ties may be decided otherwise.
#[test]
fn choices_by_service_times_are_predicted() {
    let place = selected("historical-service-time", ["1", "1"]);
    let verdict = judged(&place, &[]);
    let (predicted, total) = of(&verdict["choices"]);
    assert!(predicted * 100 >= total * 99 && total == 482, "{verdict:#}");
    let (predicted, total) = rival(&verdict, "queue-length");
    assert!(predicted * 100 >= total * 95 && total > 20, "{verdict:#}");
    let (predicted, total) = rival(&verdict, "round-robin");
    assert!(predicted * 100 >= total * 99 && total > 100, "{verdict:#}");
}
