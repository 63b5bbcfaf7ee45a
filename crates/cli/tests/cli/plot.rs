//! `plot`, `compare` and `run --trace-perfetto` from outside.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::place::{Place, blksim_with};

fn json(place: &Place, name: &str) -> Value {
    let text = std::fs::read_to_string(place.path(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn bytes(place: &Place, dir: &str) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(place.path(dir)).unwrap();
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    };
    files.map(file).collect()
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_sweep_gives_the_same_bytes_whatever_the_number_of_threads() {
    let place = Place::small();
    let sweep = "plot small.toml --threads 1,2,4 --schedulers none,mq-deadline -o";
    for (threads, dir) in [("1", "one"), ("3", "three")] {
        let args: Vec<&str> = sweep.split(' ').chain([dir]).collect();
        let ran = blksim_with(place.0.path(), &args, &[("RAYON_NUM_THREADS", threads)]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.stdout.lines().count(), 9, "{ran:?}");
    }
    let (one, three) = (bytes(&place, "one"), bytes(&place, "three"));
    assert_eq!(one.len(), 9);
    for (name, bytes) in &one {
        assert!(three[name] == *bytes, "{name} differs");
    }
    let csv = String::from_utf8(one["runs.csv"].clone()).unwrap();
    assert_eq!(csv.lines().count(), 7, "a header and six runs");
}

fn drop_bins(of: &mut Value) {
    if let Some(object) = of.as_object_mut() {
        object.remove("bins");
        object.values_mut().for_each(drop_bins);
    } else if let Some(list) = of.as_array_mut() {
        list.iter_mut().for_each(drop_bins);
    }
}

#[test]
fn details_and_traces_do_not_move_a_run_and_agree_with_its_sums() {
    let place = Place::small();
    assert_eq!(
        place
            .blksim(&["run", "small.toml", "--json=plain.json"])
            .code,
        Some(0)
    );
    let watched = "run small.toml --details --trace-perfetto t.json --json=watched.json";
    let watched: Vec<&str> = watched.split(' ').collect();
    assert_eq!(place.blksim(&watched).code, Some(0));
    let (plain, mut watched) = (json(&place, "plain.json"), json(&place, "watched.json"));
    let details = watched.as_object_mut().unwrap().remove("details").unwrap();
    // With the distributions come fio's buckets.
    let latency = &mut watched["jobs"][0]["read"]["clat_ns"];
    let bins = latency.as_object_mut().unwrap().remove("bins").unwrap();
    assert!(!bins.as_object().unwrap().is_empty());
    drop_bins(&mut watched);
    assert_eq!(plain, watched);
    let locks = details["locks"].as_array().unwrap();
    assert!(!locks.is_empty());
    let sum = |counts: &Value| -> u64 {
        let counts = counts.as_object().unwrap().values();
        counts.map(|n| n.as_u64().unwrap()).sum()
    };
    for (sums, lock) in plain["locks"].as_array().unwrap().iter().zip(locks) {
        assert_eq!(sums["name"], lock["name"]);
        let contended = sums["contended"].as_u64().unwrap();
        assert_eq!(sum(&lock["wait_ns"]), contended, "{lock}");
        assert_eq!(sum(&sums["handoffs"]), contended, "{sums}");
        // Locks held while the ramp ends were taken before and are released after.
        let taken = sums["acquisitions"].as_u64().unwrap();
        let held = sum(&lock["hold_ns"]);
        assert!(
            held >= taken && held <= taken + 4,
            "{lock}: {taken} and {held}"
        );
    }
    let latencies = sum(&details["latency_ns"][0]["counts"]);
    assert_eq!(
        Some(latencies),
        plain["blksim"]["jobs"][0]["read"]["total_ios"].as_u64()
    );
    let most = details["device_depth"]["max"].as_array().unwrap().iter();
    let most = most.map(|n| n.as_u64().unwrap()).max();
    assert_eq!(most, plain["device"]["depth_max"].as_u64());
}

/// Begin and end of a slice in nanoseconds.
fn span(event: &Value) -> (u64, u64) {
    let ns = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    let from = ns(&event["ts"]);
    (from, from + event.get("dur").map_or(0, ns))
}

fn check_nesting(events: &[Value]) {
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let track = (
            event["pid"].as_u64().unwrap(),
            event["tid"].as_u64().unwrap(),
        );
        tracks.entry(track).or_default().push(span(event));
    }
    assert!(tracks.keys().any(|(process, _)| *process == 1), "CPUs");
    assert!(tracks.keys().any(|(process, _)| *process == 2), "locks");
    for (track, mut spans) in tracks {
        spans.sort_by_key(|&(from, to)| (from, std::cmp::Reverse(to)));
        let mut open: Vec<(u64, u64)> = Vec::new();
        for (from, to) in spans {
            while open.last().is_some_and(|(_, end)| *end <= from) {
                open.pop();
            }
            if let Some((_, end)) = open.last() {
                assert!(to <= *end, "{track:?}: {from}..{to} in one up to {end}");
            }
            open.push((from, to));
        }
    }
}

/// Parts of an I/O begin and end like brackets; returns the number of I/Os.
fn check_lives(events: &[Value]) -> usize {
    let mut open: BTreeMap<u64, Vec<(&str, u64)>> = BTreeMap::new();
    let mut ios = 0;
    for event in events.iter().filter(|event| event["cat"] == "io") {
        let id = event["id"].as_u64().unwrap();
        let (name, at) = (event["name"].as_str().unwrap(), span(event).0);
        let stack = open.entry(id).or_default();
        match event["ph"].as_str().unwrap() {
            "b" => stack.push((name, at)),
            "e" => {
                let (began, from) = stack.pop().unwrap();
                assert_eq!(began, name);
                assert!(from <= at);
                ios += usize::from(stack.is_empty());
            }
            _ => {}
        }
    }
    assert!(open.values().all(Vec::is_empty), "an I/O without an end");
    ios
}

/// Places of each arrow in the order of the file, which is that of an I/O's life, have increasing
/// times; returns the number of arrows.
fn check_flows(events: &[Value]) -> usize {
    let mut places: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in events {
        if ["s", "t", "f"].contains(&event["ph"].as_str().unwrap()) {
            let id = event["id"].as_u64().unwrap();
            places.entry(id).or_default().push(span(event).0);
        }
    }
    for (id, times) in &places {
        assert!(times.is_sorted_by(|a, b| a < b), "I/O {id}: {times:?}");
    }
    places.len()
}

/// Half of the completions go to another CPU than the one that issued the request.
#[test]
fn arrows_of_a_trace_point_ahead_in_time() {
    let place = Place::new();
    let run = "run mq-deadline-scaling --runtime 1ms --trace-perfetto t.json";
    let run: Vec<&str> = run.split(' ').collect();
    assert_eq!(place.blksim(&run).code, Some(0));
    let mut trace = json(&place, "t.json");
    let events = trace["traceEvents"].as_array_mut().unwrap();
    assert!(check_flows(events) > 500);
    let end = events.iter_mut().rfind(|event| event["ph"] == "f").unwrap();
    end["ts"] = Value::from(0);
    assert!(std::panic::catch_unwind(|| check_flows(events)).is_err());
}

#[test]
fn a_trace_parses_nests_and_stays_in_its_window() {
    let place = Place::small();
    let run = "run small.toml --trace-perfetto t.json --trace-window";
    for (window, from, to) in [
        ("1100us,1200us", 1_100_000, 1_200_000),
        ("1.1ms,1.4ms", 1_100_000, 1_400_000),
    ] {
        let args: Vec<&str> = run.split(' ').chain([window]).collect();
        let ran = place.blksim(&args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let trace = json(&place, "t.json");
        let origin = concat!("simulated by blksim ", env!("CARGO_PKG_VERSION"));
        assert_eq!(trace["otherData"]["origin"], origin);
        let events = trace["traceEvents"].as_array().unwrap();
        let cpus = |event: &&Value| event["name"] == "process_name" && event["pid"] == 1;
        let cpus = events.iter().find(cpus).unwrap();
        assert_eq!(cpus["args"]["name"], format!("CPUs, {origin}"));
        check_nesting(events);
        assert!(check_lives(events) > 10);
        check_flows(events);
        for event in events.iter().filter(|event| event["ph"] == "X") {
            let span = span(event);
            assert!(span.0 < to && span.1 > from, "{event}");
        }
        for kind in ["s", "f"] {
            assert!(events.iter().any(|event| event["ph"] == kind), "{kind}");
        }
        let waits = |e: &Value| {
            e["name"]
                .as_str()
                .is_some_and(|n| n == "waits for dd->lock")
        };
        assert!(events.iter().any(waits));
        assert_eq!(place.files(), ["small.toml", "t.json"]);
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_trace_has_counters_of_tokens() {
    let place = Place::new();
    let window = [
        "--trace-perfetto",
        "t.json",
        "--trace-window",
        "519ms,521ms",
    ];
    let ran = place.blksim(&[&["run", "kyber-latency"], &window[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = std::fs::read_to_string(place.path("t.json")).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let counters = events.filter(|event| event["ph"] == "C");
    let writes = counters.filter(|event| event["name"] == "WRITE: tokens");
    let values: Vec<(f64, i64)> = writes
        .map(|event| {
            let value = event["args"]["value"].as_i64().unwrap();
            (event["ts"].as_f64().unwrap(), value)
        })
        .collect();
    // The value at the beginning of the window, and the one that the timer set.
    assert_eq!(values.len(), 2, "{values:?}");
    assert_eq!(values[0], (519_000.0, 128));
    assert!(values[1].0 > 520_000.0 && values[1].1 == 64, "{values:?}");
}
