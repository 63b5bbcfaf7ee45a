//! `run --trace-perfetto` from outside: each trace keeps the rules of its format, each rule refuses
//! a trace that breaks it, and the arguments agree with each other.

mod schema;

use serde_json::{Value, json};

use crate::place::Place;
use schema::{Content, Slice, check};

const CPUS: u64 = 1;
const LOCKS: u64 = 2;
const REQUESTS: u64 = 5;

fn trace(place: &Place, args: &str) -> Value {
    let args = format!("run {args} --trace-perfetto t.json");
    let args: Vec<&str> = args.split(' ').collect();
    let ran = place.blksim(&args);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&std::fs::read_to_string(place.path("t.json")).unwrap()).unwrap()
}

/// Slices of the CPUs whose names begin with a letter of blktrace, with the slice around each.
fn points<'a>(content: &'a Content, letter: &str) -> Vec<(&'a Slice, &'a Slice)> {
    let letter = format!("{letter} ");
    let mut all = Vec::new();
    for (_, slices) in content.slices.iter().filter(|(track, _)| track.0 == CPUS) {
        for (index, slice) in slices.iter().enumerate() {
            if slice.name.starts_with(&letter) {
                let mut before = slices[..index].iter().rev();
                let around = before.find(|outer| outer.to >= slice.to);
                all.push((slice, around.expect("a task or an interrupt")));
            }
        }
    }
    all
}

fn number(slice: &Slice, key: &str) -> u64 {
    let value = slice.args.get(key).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("{key}: {slice:?}"))
}

#[test]
fn a_trace_keeps_its_format_and_stays_in_its_window() {
    let place = Place::small();
    for (window, from, to) in [
        ("1100us,1200us", 1_100_000, 1_200_000),
        ("1.1ms,1.4ms", 1_100_000, 1_400_000),
    ] {
        let trace = trace(&place, &format!("small.toml --trace-window {window}"));
        let origin = concat!("simulated by blksim ", env!("CARGO_PKG_VERSION"));
        assert_eq!(trace["otherData"]["origin"], origin);
        let content = check(&trace).unwrap();
        assert_eq!(content.names[&(CPUS, 0)], format!("CPUs, {origin}"));
        assert!(content.ios.len() > 10);
        assert!(content.arrows > 10);
        for slice in content.slices.values().flatten() {
            assert!(slice.from < to && slice.to > from, "{slice:?}");
        }
        assert_eq!(place.files(), ["small.toml", "t.json"]);
    }
}

/// Half of the completions of mq-deadline-scaling go to another CPU than the one that issued the
/// request; dm-null has clones, bfq-burst a rotational disk.
#[test]
fn traces_of_all_kinds_of_devices_keep_the_format() {
    for (scenario, arrows) in [
        ("mq-deadline-scaling --runtime 1ms", 500),
        ("nvme-randread --runtime 1ms", 100),
        ("bfq-burst --runtime 100ms", 0),
        ("dm-null --runtime 1ms", 100),
        ("fsync-flush --runtime 20ms", 0),
    ] {
        let content = check(&trace(&Place::new(), scenario)).unwrap();
        assert!(content.arrows >= arrows, "{scenario}: {}", content.arrows);
        assert!(!content.ios.is_empty(), "{scenario}");
        for (issued, _) in points(&content, "D") {
            assert!(issued.args.contains_key("hctx"), "{scenario}: {issued:?}");
        }
    }
}

#[test]
fn slices_name_the_request_and_its_process() {
    let content = check(&trace(&Place::small(), "small.toml")).unwrap();
    let issued = points(&content, "D");
    assert!(issued.len() > 10);
    for (slice, around) in issued {
        assert_eq!(
            (slice.args["op"].as_str(), number(slice, "bytes")),
            (Some("read"), 4096)
        );
        let (tag, scheduler_tag) = (number(slice, "tag"), number(slice, "internal_tag"));
        assert!(tag < 1024 && scheduler_tag < 1024, "{slice:?}");
        assert_eq!(number(slice, "sector") % 8, 0);
        assert!(["fio", "kwo"].contains(&&around.name[..3]), "{around:?}");
    }
    for (slice, around) in points(&content, "Q") {
        assert_eq!(slice.args["process"], *around.name);
        assert!(!slice.args.contains_key("tag"), "{slice:?}");
    }
    let completed = points(&content, "C");
    assert!(completed.len() > 10);
    for (slice, around) in completed {
        let contexts = ["interrupt", "softirq", "fio", "ksoftirqd"];
        assert!(
            contexts.iter().any(|name| around.name.starts_with(name)),
            "{around:?}"
        );
        assert!(number(slice, "tag") < 1024);
    }
}

/// The holder that a wait names is the one on the lock's own track.
#[test]
fn waits_name_the_holder() {
    let content = check(&trace(&Place::small(), "small.toml")).unwrap();
    let track = |title: &str| {
        let mut names = content.names.iter().filter(|(track, _)| track.0 == LOCKS);
        *names
            .find(|(_, name)| *name == title)
            .expect("a track for each lock")
            .0
    };
    let cpus = content.slices.iter().filter(|(track, _)| track.0 == CPUS);
    let waits = cpus.flat_map(|(track, slices)| slices.iter().map(move |slice| (track.1, slice)));
    let mut named = 0;
    for (cpu, wait) in waits.filter(|(_, slice)| slice.name.starts_with("waits for ")) {
        let title = wait.args["lock"].as_str().unwrap();
        assert_eq!(wait.name, format!("waits for {title}"));
        let cpu_of = |key| wait.args.get(key).and_then(Value::as_u64);
        let held = content.innermost(track(title), wait.from);
        assert_eq!(
            held.map(|held| number(held, "cpu")),
            cpu_of("holder_cpu"),
            "{wait:?}"
        );
        assert_ne!(cpu_of("holder_cpu"), Some(cpu - 1), "{wait:?}");
        if let Some(held) = held {
            assert_eq!(wait.args["holder"], *held.name);
            named += 1;
        }
        let mut after = content.slices[&track(title)].iter();
        let next = after.find(|hold| hold.from > wait.from);
        if let Some(handed_to) = cpu_of("handed_to_cpu") {
            assert_eq!(
                next.map(|next| number(next, "cpu")),
                Some(handed_to),
                "{wait:?}"
            );
            assert!(number(wait, "waiters_before") > 0, "{wait:?}");
        }
        let waiters = &content.counters[&(LOCKS, format!("{title} waiters"))];
        let at = waiters.partition_point(|value| value.0 <= wait.from);
        assert!(
            waiters[at - 1].1 > number(wait, "waiters_before") as f64,
            "{wait:?}"
        );
    }
    assert!(named > 10, "{named}");
}

/// In flight: what it was at first, plus D, less C and R.
#[test]
fn counters_agree_with_the_slices() {
    let content = check(&trace(&Place::small(), "small.toml")).unwrap();
    let in_flight = &content.counters[&(REQUESTS, "in flight".to_owned())];
    let mut edges: Vec<(u64, f64)> = Vec::new();
    for (letter, by) in [("D", 1.0), ("C", -1.0), ("R", -1.0)] {
        edges.extend(
            points(&content, letter)
                .iter()
                .map(|(slice, _)| (slice.from, by)),
        );
    }
    let changes: f64 = edges.iter().map(|(_, by)| by).sum();
    let (first, last) = (in_flight[0].1, in_flight.last().unwrap().1);
    assert!(
        (last - first - changes).abs() < 0.5,
        "{first} {last} {changes}"
    );
    assert!(in_flight.len() > 10);
    assert!(
        content
            .counters
            .contains_key(&(REQUESTS, "queued".to_owned()))
    );
}

type Mutant = (&'static str, &'static str, fn(&mut Value));

/// The first event of a phase to which each is done, and the complaint.
const MUTANTS: [Mutant; 21] = [
    ("X", "dur is missing", |event| {
        drop(event.as_object_mut().unwrap().remove("dur"));
    }),
    ("X", "colour is unknown", |event| {
        event["colour"] = json!("red");
    }),
    ("X", "an unknown phase", |event| event["ph"] = json!("Y")),
    ("X", "ts is no time", |event| event["ts"] = json!("1")),
    ("X", "pid is no number", |event| event["pid"] = json!("1")),
    ("X", "name is no text", |event| event["name"] = json!(7)),
    ("X", "an empty slice", |event| event["dur"] = json!(0)),
    ("X", "not in order", |event| event["ts"] = json!(9e9)),
    ("X", "has no name", |event| event["tid"] = json!(999)),
    ("X", "argument tag", |event| {
        event["args"] = json!({"tag": "7"});
    }),
    ("X", "argument tga", |event| {
        event["args"] = json!({"tga": 7});
    }),
    ("M", "named twice", |event| event["pid"] = json!(2)),
    ("b", "the end of", |event| event["name"] = json!("write")),
    ("b", "an end without a beginning", |event| {
        event["id"] = json!(999_999);
    }),
    ("b", "the slice around", |event| event["ts"] = json!(9e9)),
    ("s", "an arrow without a beginning", |event| {
        event["id"] = json!(999_999);
    }),
    ("s", "an arrow beside the slices", |event| {
        event["tid"] = json!(999);
    }),
    ("t", "the arrow ends in", |event| {
        event["ts"] = json!(event["ts"].as_f64().unwrap() + 0.001);
    }),
    ("f", "bp is not e", |event| event["bp"] = json!("s")),
    ("C", "not below zero", |event| {
        event["args"]["value"] = json!(-1);
    }),
    ("C", "back in time", |event| event["ts"] = json!(9e9)),
];

#[test]
fn each_rule_of_the_format_refuses_a_trace_that_breaks_it() {
    let trace = trace(&Place::small(), "small.toml --trace-window 1100us,1200us");
    check(&trace).unwrap();
    let refused = |what: &str, mutant: &Value| {
        let complaint = check(mutant).expect_err(what);
        assert!(complaint.contains(what), "{what}: {complaint}");
    };
    for (phase, what, change) in MUTANTS {
        let mut mutant = trace.clone();
        let events = mutant["traceEvents"].as_array_mut().unwrap();
        change(
            events
                .iter_mut()
                .find(|event| event["ph"] == phase)
                .unwrap(),
        );
        refused(what, &mutant);
    }
    // Without the last event of a phase.
    for (phase, what) in [
        ("e", "an I/O without an end"),
        ("f", "an arrow without an end"),
    ] {
        let mut mutant = trace.clone();
        let events = mutant["traceEvents"].as_array_mut().unwrap();
        let last = events
            .iter()
            .rposition(|event| event["ph"] == phase)
            .unwrap();
        events.remove(last);
        refused(what, &mutant);
    }
    let mut mutant = trace.clone();
    let events = mutant["traceEvents"].as_array_mut().unwrap();
    let begins = |event: &&mut Value| event["ph"] == "X" && event["name"] == "Q read";
    events.iter_mut().find(begins).unwrap()["dur"] = json!(1e6);
    refused("goes beyond", &mutant);
    let mut mutant = trace.clone();
    mutant["stackFrames"] = json!({});
    refused("members of the trace", &mutant);
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_trace_has_counters_of_tokens() {
    let trace = trace(&Place::new(), "kyber-latency --trace-window 519ms,521ms");
    let content = check(&trace).unwrap();
    let values = &content.counters[&(4, "WRITE: tokens".to_owned())];
    // The value at the beginning of the window, and the one that the timer set.
    assert_eq!(values.len(), 2, "{values:?}");
    assert_eq!(values[0], (519_000_000, 128.0));
    assert!(
        values[1].0 > 520_000_000 && values[1].1 as i64 == 64,
        "{values:?}"
    );
}

/// Whether a run is recorded changes nothing in it.
#[test]
fn a_recorded_run_has_the_report_of_one_that_is_not() {
    let place = Place::new();
    for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
        let args = format!(
            "run mq-deadline-scaling --scheduler {scheduler} --threads 2 --runtime 5ms \
             --ramp-time 2ms --json"
        );
        let report = |more: &str| {
            let args = format!("{args} {more}");
            let ran = place.blksim(&args.split_whitespace().collect::<Vec<_>>());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            ran.stdout
        };
        let plain = report("");
        let folder = format!("--blktrace {scheduler}");
        for more in ["--trace-perfetto t.json", &folder] {
            assert!(report(more) == plain, "{scheduler} {more}");
        }
    }
}
