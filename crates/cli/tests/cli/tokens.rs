//! A scheduler with tokens in every command: targets that are met or missed, depths over time,
//! counters of a trace, a calibration, a table, changes of the scheduler to it and away from it.

use serde_json::Value;

use crate::captures::json;
use crate::place::Place;

/// The entry of a group of requests.
fn group<'a>(report: &'a Value, name: &str) -> &'a Value {
    let groups = report["tokens"].as_array().unwrap();
    let found = groups.iter().find(|group| group["group"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {groups:#?}"))
}

fn run(place: &Place, more: &[&str]) -> Value {
    let args = [&["run", "kyber-latency", "--json"], more].concat();
    json(&place.blksim(&args))
}

/// 90th percentile of reads, ms.
fn reads_ms(report: &Value) -> f64 {
    let reads = &report["jobs"][0]["read"]["clat_ns"]["percentile"];
    reads["90.000000"].as_f64().unwrap() / 1e6
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn reads_keep_their_target_under_a_flood_of_writes() {
    let place = Place::new();
    let without = run(&place, &["--scheduler", "mq-deadline"]);
    assert!(reads_ms(&without) > 3.0, "{}", reads_ms(&without));
    assert_eq!(without.get("tokens"), None);
    let kept = run(&place, &[]);
    assert!(reads_ms(&kept) < 2.0, "{}", reads_ms(&kept));
    let iosched = &kept["blksim"]["iosched"];
    assert_eq!(iosched["read_lat_nsec"], 2_000_000);
    assert_eq!(iosched["write_lat_nsec"], 10_000_000);
    let writes = group(&kept, "WRITE");
    assert_eq!(
        (&writes["first"], &writes["last"]),
        (&Value::from(32), &Value::from(32))
    );
    assert!(writes["throttled"].as_u64().unwrap() > 10_000, "{writes}");
    for group in ["READ", "WRITE"].map(|name| group(&kept, name)) {
        let latencies = group["latencies"].as_array().unwrap();
        assert_eq!(latencies.len(), 2, "{group}");
        for latency in latencies {
            assert!(latency["calculated"].as_u64().unwrap() > 5, "{latency}");
            assert_eq!(latency["calculated"], latency["within"], "{latency}");
        }
    }
    // The price is small: the drive has as much to do as before.
    let rate = |report: &Value| report["jobs"][1]["write"]["iops"].as_f64().unwrap();
    let ratio = rate(&kept) / rate(&without);
    assert!((0.95..1.0).contains(&ratio), "{ratio}");
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_target_that_cannot_be_kept_is_reported() {
    let place = Place::new();
    let tight = [
        "run",
        "kyber-latency",
        "--set",
        "queue.read_lat_nsec=200000",
    ];
    let text = place.blksim(&tight).stdout;
    let missed = "total latency, 99 %: TARGET MISSED, within it 0 of";
    assert!(text.contains(missed), "{text}");
    let text = place.blksim(&["run", "kyber-latency"]).stdout;
    assert_eq!(text.matches("target met").count(), 4, "{text}");
    assert!(!text.contains("MISSED"), "{text}");
}

#[test]
fn depths_and_latencies_are_drawn_over_time() {
    let place = Place::new();
    let args = ["run", "kyber-latency", "--details", "--json=r.json"];
    assert_eq!(place.blksim(&args).code, Some(0));
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap();
    let gauges = report["details"]["scheduler"].as_array().unwrap();
    let of = |name: &str, group: &str| {
        let found = gauges
            .iter()
            .find(|g| g["name"] == name && g["group"] == group);
        &found.unwrap_or_else(|| panic!("no {name} of {group}"))["values"]
    };
    // The ramp is shown, too: that is where depths settle.
    let depths = of("tokens", "WRITE").as_array().unwrap();
    assert_eq!(
        (&depths[0], depths.last()),
        (&Value::from(128.0), Some(&Value::from(32.0)))
    );
    let late = of("I/O latency, 90 %", "READ").as_array().unwrap();
    let message: Vec<f64> = late.iter().filter_map(Value::as_f64).collect();
    assert_eq!((message[0], message.last()), (2.0, Some(&1.0)));
    let ran = place.blksim(&["plot", "r.json", "-o", "p"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let figure = std::fs::read_to_string(place.path("p/scheduler.svg")).unwrap();
    for text in [
        "kyber: tokens",
        "I/O latency, 90 %",
        "READ",
        "WRITE",
        "the target",
    ] {
        assert!(figure.contains(text), "{text}");
    }
    assert!(!figure.contains("DISCARD"), "nothing of it changes");
    // A scheduler without events has no such figure.
    let other = [
        "plot",
        "kyber-latency",
        "--scheduler",
        "mq-deadline",
        "--runtime",
        "10ms",
    ];
    let ran = place.blksim(&[&other[..], &["--ramp-time", "1ms", "-o", "q"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!place.path("q/scheduler.svg").exists());
    assert!(ran.stderr.contains("scheduler: left out"), "{ran:?}");
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

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_profile_is_fitted_to_it_and_the_published_rows_run() {
    let place = Place::new();
    place.write(
        "measured.toml",
        "base = \"xeon-10c\"\nname = \"mine\"\n[[run]]\nname = \"one\"\n\
         scenario = \"nvme-one-process\"\nset = [\"queue.scheduler=kyber\"]\n\
         [run.cycles_per_io]\nscheduler = 560\n",
    );
    let ran = place.blksim(&["calibrate", "measured.toml"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let row = ran.stdout.lines().find(|line| line.contains("scheduler"));
    let ratio: f64 = row
        .unwrap()
        .split_whitespace()
        .last()
        .unwrap()
        .parse()
        .unwrap();
    assert!((0.98..1.02).contains(&ratio), "{row:?}");
    let ran = place.blksim(&["reproduce", "--quick"]);
    let rows: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|l| l.starts_with("  kyber"))
        .collect();
    assert!(rows.len() >= 4, "{}", ran.stdout);
    assert!(rows.iter().all(|row| row.ends_with("in")), "{rows:#?}");
}

#[test]
fn a_run_changes_to_it_and_away_from_it() {
    let place = Place::new();
    let shown = place.blksim(&["show", "kyber-latency"]).stdout;
    let changes = "[[change]]\nat_us = 700000\nscheduler = \"mq-deadline\"\n\
                   [[change]]\nat_us = 1300000\nscheduler = \"kyber\"\n";
    place.write("s.toml", shown + changes);
    let args = [
        "run",
        "s.toml",
        "--ramp-time",
        "0",
        "--runtime",
        "2s",
        "--details",
    ];
    let report = json(&place.blksim(&[&args[..], &["--json"]].concat()));
    let changed = report["changes"].as_array().unwrap();
    assert!(
        changed.iter().all(|change| change["took_ns"].is_u64()),
        "{changed:#?}"
    );
    let gauges = report["details"]["scheduler"].as_array().unwrap();
    let tokens = |of: &&Value| of["name"] == "tokens" && of["group"] == "WRITE";
    let tokens = gauges.iter().find(tokens).unwrap();
    let step = tokens["step_ns"].as_u64().unwrap();
    let at = |ms: u64| &tokens["values"][(ms * 1_000_000 / step) as usize];
    // Lowered once, gone with its scheduler, and as many as ever with the next one.
    assert_eq!(
        (at(100), at(600)),
        (&Value::from(128.0), &Value::from(64.0))
    );
    assert_eq!(at(1000), &Value::Null);
    assert_eq!(at(1400), &Value::from(128.0));
}
