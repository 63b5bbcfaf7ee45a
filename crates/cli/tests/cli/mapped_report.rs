//! A mapped device in the report: its settings by their names, and the reasons of task switches.

use serde_json::Value;

use crate::captures::json;
use crate::place::Place;

/// A short run of `dm-null` with these values.
fn report(sets: &[&str]) -> Value {
    let short = ["job.runtime=2ms", "job.ramp_time=1ms", "job.numjobs=4"];
    let mut args = vec!["run", "dm-null", "--json"];
    for set in short.iter().chain(sets) {
        args.extend(["--set", set]);
    }
    json(&Place::new().blksim(&args))
}

/// Settings have the names of dmsetup, multipath.conf and the module's parameters, those of the
/// path's device are with the path.
#[test]
fn settings_have_their_names() {
    let message = report(&[
        "mapped.features=1 queue_if_no_path",
        "mapped.path_selector=queue-length 0",
        "mapped.rr_min_io_rq=5",
        "mapped.no_path_retry=3",
        "mapped.polling_interval=7",
        "mapped.dm_mq_nr_hw_queues=3",
        "mapped.dm_mq_queue_depth=50",
        "mapped.kernel.end_run=nothing",
        "mapped.kernel.target_lock=changes",
        "device.submit_queues=2",
    ]);
    let of = |name: &str| &message["device"]["parameters"][name];
    for (name, value) in [
        ("paths", "1"),
        (
            "table",
            "multipath 1 queue_if_no_path 0 1 1 queue-length 0 1 1 nullb0 5",
        ),
        ("features", "1 queue_if_no_path"),
        ("hw_handler", "0"),
        ("path_selector", "queue-length 0"),
        ("rr_min_io_rq", "5"),
        ("use_blk_mq", "1"),
        ("no_path_retry", "3"),
        ("polling_interval", "7"),
        ("dm_mq_nr_hw_queues", "3"),
        ("dm_mq_queue_depth", "50"),
        ("kernel.end_run", "nothing"),
        ("kernel.target_lock", "changes"),
    ] {
        assert_eq!(of(name), value, "{name}: {message:#}");
    }
    let absent = ["kernel.insertion", "queue_if_no_path_timeout_secs"];
    assert!(absent.iter().all(|name| of(name).is_null()), "{message:#}");
    let path = &message["paths"][0];
    assert_eq!(
        (&path["type"], &path["hw_queues"], &path["queue_depth"]),
        (&"null_blk".into(), &2.into(), &64.into()),
    );
    assert_eq!(path["scheduler"], "none");
    assert_eq!(path["parameters"]["irqmode"], "1");
    // Each change of a kernel has its key.
    let changes = [
        ("kernel.target_lock", "changes"),
        ("kernel.target", "known"),
        ("kernel.io_data", "in-request"),
        ("kernel.insertion", "at-once"),
        ("kernel.second_end", "placed"),
        ("kernel.end_run", "nothing"),
    ];
    let sets = changes.map(|(name, value)| format!("mapped.{name}={value}"));
    let message = report(&sets.each_ref().map(String::as_str));
    for (name, value) in changes {
        assert_eq!(message["device"]["parameters"][name], value, "{message:#}");
    }
    let message = report(&["queue.rules=v6.1"]);
    let parameters = &message["device"]["parameters"];
    assert_eq!(parameters["queue_if_no_path_timeout_secs"], "0");
    assert!(parameters["use_blk_mq"].is_null(), "6.1 has no such one");
}

/// The causes that a report names, and its counts.
fn switches(sets: &[&str]) -> (String, Value) {
    let message = report(sets);
    let switches = message["context_switches"].clone();
    let causes = switches["causes"].as_array().expect("a list").iter();
    let causes: Vec<&str> = causes.map(|cause| cause.as_str().unwrap()).collect();
    // All CPUs' switches are those of the report, by target.
    let count = |name: &str| switches[name].as_u64().expect("a count");
    let sum: u64 = ["ksoftirqd", "kworker", "kdmwork", "task", "idle"]
        .into_iter()
        .map(count)
        .sum();
    assert_eq!(message["cpus"]["ctx"], sum, "{message:#}");
    (causes.join("\n"), switches)
}

/// Switches are named with their reason, and without the reason neither is there.
#[test]
fn switches_have_their_cause() {
    let softirq = "second_end=softirq";
    let background = "insertion=in-background";
    let (causes, counts) = switches(&["device.submit_queues=4"]);
    assert!(
        causes.contains(softirq) && causes.contains(background),
        "{causes}"
    );
    assert!(counts["ksoftirqd"].as_u64() > Some(100), "{counts}");
    assert!(
        counts["idle"].as_u64() > Some(100),
        "workers leave CPUs idle: {counts}"
    );
    let at_once = ["device.submit_queues=4", "mapped.kernel.insertion=at-once"];
    let (causes, _) = switches(&at_once);
    assert!(
        causes.contains(softirq) && !causes.contains(background),
        "{causes}"
    );
    let placed = ["device.submit_queues=4", "mapped.kernel.second_end=placed"];
    let (causes, _) = switches(&placed);
    assert!(
        !causes.contains(softirq) && causes.contains(background),
        "{causes}"
    );
    let single = ["mapped.use_blk_mq=0", "mapped.queue.scheduler=noop"];
    let (causes, counts) = switches(&single);
    assert!(causes.contains("the device's one thread"), "{causes}");
    assert!(counts["kdmwork"].as_u64() > Some(100), "{counts}");
}
