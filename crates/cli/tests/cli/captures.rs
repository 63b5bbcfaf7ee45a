//! Captures in and out: `blksim import-stats` and `blksim run --blktrace`.

use std::path::{Path, PathBuf};

use crate::place::{Place, Ran};
use serde_json::Value;

fn capture(name: &str) -> String {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../traces")
        .join(name);
    assert!(dir.is_dir(), "{}", dir.display());
    dir.display().to_string()
}

/// A copy of a capture in which another scheduler is named.
fn unmodelled(place: &Place) -> String {
    let copy = place.path("unmodelled");
    std::fs::create_dir_all(&copy).unwrap();
    for entry in std::fs::read_dir(capture("dd01-defaults")).unwrap() {
        let entry = entry.unwrap();
        let to = copy.join(entry.file_name());
        if entry.file_name() == "queue.txt" {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            std::fs::write(to, text.replace("mq-deadline", "cfq")).unwrap();
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
    copy.display().to_string()
}

pub(crate) fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn statistics_of_a_capture_are_btts() {
    // traces/dd01-defaults/btt.txt.xz: Q2C and D2C, 0.000000001 s exact in count and maximum.
    let place = Place::new();
    let stats = json(&place.blksim(&["import-stats", "--json", &capture("dd01-defaults")]));
    let events = stats["events"].as_u64().unwrap();
    let sum: u64 = stats["actions"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(sum, events, "every event has a letter");
    for metric in ["q2c", "d2c"] {
        let (count, max) = (&stats[metric]["count"], &stats[metric]["max_ns"]);
        assert!(count.as_u64().unwrap() > 0, "{metric}");
        assert!(max.as_f64().unwrap() >= stats[metric]["mean_ns"].as_f64().unwrap());
    }
    let again = place.blksim(&["import-stats", "--json", &capture("dd01-defaults")]);
    assert_eq!(json(&again), stats);
}

#[test]
fn text_shows_counts_latencies_and_speed() {
    let ran = Place::new().blksim(&["import-stats", &capture("m2-randread-none")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for word in ["events over", "Q2C", "D2C", "events/s", "MB/s"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
}

#[test]
fn a_kernel_is_compared_with_the_model() {
    let place = Place::new();
    let dir = capture("dd01-defaults");
    let ran = place.blksim(&["conform", &dir]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.trim_end().ends_with("dispatches"), "{ran:?}");
    let verdict = json(&place.blksim(&["conform", &dir, "--mode", "calls", "--json"]));
    assert_eq!(verdict["predicted"], verdict["total"]);
    assert!(verdict["total"].as_u64().unwrap() > 100);
    assert_eq!(verdict["first_divergence"], Value::Null);
    // To a file, the text stays.
    let ran = place.blksim(&["conform", &dir, "--mode", "calls", "--json=verdict.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.trim_end().ends_with("dispatches"), "{ran:?}");
    let written = std::fs::read_to_string(place.path("verdict.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), verdict);
}

#[test]
fn a_kernel_that_differs_is_reported_by_the_exit_code() {
    // The capture's queue.txt with another fifo_batch: the model then decides otherwise.
    let place = Place::new();
    for entry in std::fs::read_dir(capture("dd01-defaults")).unwrap() {
        let file = entry.unwrap();
        let name = file.file_name().into_string().unwrap();
        let mut content = std::fs::read(file.path()).unwrap();
        if name == "queue.txt" {
            let text = String::from_utf8(content).unwrap();
            let changed = text.replace("fifo_batch=16", "fifo_batch=2");
            assert_ne!(changed, text);
            content = changed.into_bytes();
        }
        place.write(&name, content);
    }
    let ran = place.blksim(&["conform", "."]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for words in ["first divergence", "kernel: ", "model: "] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
    let ran = place.blksim(&["conform", ".", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("first_divergence"), "{ran:?}");
}

/// Every dispatch of this capture is predicted with another recorded depth, too: only the event
/// decides.
#[test]
fn an_event_of_a_scheduler_that_differs_is_reported_by_the_exit_code() {
    let dir = capture("ky07-throttle-writes");
    let place = Place::new();
    let verdict = json(&place.blksim(&["conform", &dir, "--json"]));
    assert_eq!(
        (&verdict["told"]["total"], &verdict["told"]["predicted"]),
        (&11.into(), &11.into())
    );
    for entry in std::fs::read_dir(&dir).unwrap() {
        let file = entry.unwrap();
        let name = file.file_name().into_string().unwrap();
        if name != "ftrace.txt.xz" {
            place.write(&name, std::fs::read(file.path()).unwrap());
        }
    }
    let ftrace = Path::new(&dir).join("ftrace.txt.xz");
    let mut lines = trace::text::Lines::open(&ftrace).unwrap();
    let mut text = String::new();
    while lines.advance().unwrap() {
        text += lines.line();
        text.push('\n');
    }
    let changed = text.replacen("READ I/O p90", "READ total p90", 1);
    assert_ne!(changed, text);
    place.write("ftrace.txt", changed);
    let ran = place.blksim(&["conform", ".", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(verdict["predicted"], verdict["total"]);
    assert_eq!(verdict["told"]["predicted"], 10);
}

/// Captures on several CPUs with events of the scheduler's timer.
#[test]
fn events_on_several_cpus_are_all_predicted() {
    for (name, events) in [
        ("m2-randread-kyber", 2),
        ("m4-sq4-kyber", 2),
        ("sd-fsync-kyber", 4),
    ] {
        let verdict = json(&Place::new().blksim(&["conform", &capture(name), "--json"]));
        let found = &verdict["told"];
        assert_eq!(
            (&found["total"], &found["predicted"]),
            (&events.into(), &events.into())
        );
        assert_eq!(found["alone"], 0, "{name}");
    }
}

#[test]
fn a_capture_that_cannot_be_compared_is_reported() {
    let place = Place::new();
    let dir = capture("dd01-defaults");
    place.write("file", "");
    let table: &[(&[&str], &[&str])] = &[
        (&["absent"], &["absent"]),
        (&["file"], &["file"]),
        (&["."], &["meta.txt"]),
        (
            &[&dir, "--mode", "guess"],
            &["--mode guess", "calls, records or log"],
        ),
        (&[&dir, "--rules", "v2.4"], &["--rules v2.4", "v6.12"]),
        (&[&dir, "--trace-device", "sdz"], &["sdz", "nullb0"]),
        (&[&unmodelled(&place)], &["cfq", "not modelled"]),
    ];
    for (args, says) in table {
        let ran = place.blksim(&[&["conform"], *args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{args:?}");
        for word in *says {
            assert!(
                ran.stderr.contains(word),
                "{args:?}: no {word:?} in {ran:?}"
            );
        }
    }
}

#[test]
fn a_capture_is_replayed_side_by_side() {
    let place = Place::new();
    let dir = capture("dd02-batch1");
    let args = ["replay", &dir, "--scheduler", "mq-deadline,none", "--json"];
    let comparison = json(&place.blksim(&args));
    assert_eq!(json(&place.blksim(&args)), comparison);
    let columns = comparison["columns"].as_array().unwrap();
    let names: Vec<&str> = columns
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert_eq!(names, ["captured", "mq-deadline", "none"]);
    let mean = |at: usize| columns[at]["q2c"]["mean_ns"].as_f64().unwrap();
    // The captured scheduler on the captured device gives the captured latency back.
    assert!((mean(1) / mean(0) - 1.0).abs() < 0.02, "{comparison:#}");
    for column in columns {
        assert_eq!(column["q2c"]["count"], comparison["ios"]);
    }
    let text = place.blksim(&["replay", &dir, "--closed-loop", "--from", "D"]);
    assert_eq!(text.code, Some(0), "{text:?}");
    for words in ["from D, closed loop", "captured", "D2C", "Closed loop: "] {
        assert!(text.stdout.contains(words), "{words}: {}", text.stdout);
    }
}

#[test]
fn a_replay_is_written_into_files() {
    let place = Place::new();
    let dir = capture("dd02-batch1");
    let args = ["replay", &dir, "--scheduler", "mq-deadline,none"];
    let files = ["--json=replay.json", "--csv=replay.csv"];
    let both = place.blksim(&[&args[..], &files].concat());
    assert_eq!(both.code, Some(0), "{both:?}");
    assert!(
        both.stdout.contains("Open loop"),
        "the text is still printed"
    );
    assert_eq!(place.files(), ["replay.csv", "replay.json"]);
    let message = place.blksim(&[&args[..], &["--json"]].concat()).stdout;
    let written = std::fs::read_to_string(place.path("replay.json")).unwrap();
    assert_eq!(written, message);
    let csv = std::fs::read_to_string(place.path("replay.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let cell = |row: usize, name: &str| {
        let at = rows[0].iter().position(|title| *title == name);
        rows[row][at.unwrap_or_else(|| panic!("{name}: {csv}"))]
    };
    let comparison: Value = serde_json::from_str(&message).unwrap();
    for row in 1..4 {
        let column = &comparison["columns"][row - 1];
        assert_eq!(column["name"], cell(row, "column"));
        let mean = column["q2c"]["mean_ns"].to_string();
        assert_eq!(mean, cell(row, "q2c_mean_ns"));
    }
    for args in [
        &["--json=absent/x"][..],
        &["--csv=/dev/full"],
        &["--json", "--csv=-"],
    ] {
        let ran = place.blksim(&[&["replay", &dir], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(place.files(), ["replay.csv", "replay.json"]);
}

#[test]
fn bare_files_can_be_replayed() {
    let place = Place::new();
    simulated(&place);
    let files = ["trace/nullb0.blktrace.0", "trace/nullb0.blktrace.1"];
    let args = [
        &["replay"],
        &files[..],
        &["--scheduler", "mq-deadline", "--json"],
    ]
    .concat();
    let comparison = json(&place.blksim(&args));
    assert_eq!(comparison["ios"], 1000);
    let notes = comparison["columns"][1]["notes"].as_array().unwrap();
    let message = notes
        .iter()
        .filter_map(Value::as_str)
        .any(|note| note.contains("no queue.txt"));
    assert!(
        message,
        "notes name the data that bare traces lack: {notes:?}"
    );
}

#[test]
fn a_capture_that_cannot_be_replayed_is_reported() {
    let place = Place::new();
    let dir = capture("dd01-defaults");
    place.write(
        "bad.blktrace.0",
        "this is no trace at all, but long enough for one record ......",
    );
    let table: &[(&[&str], &[&str])] = &[
        (&["absent"], &["absent"]),
        (&["bad.blktrace.0"], &["bad.blktrace.0: byte 0"]),
        (&[&dir, "--from", "C"], &["--from C", "expected Q or D"]),
        (
            &[&dir, "--scheduler", "cfq"],
            &["--scheduler cfq", "of the path single-queue"],
        ),
        (
            &[&dir, "--device", "floppy"],
            &["--device floppy", "null_blk"],
        ),
        (&[&dir, "--rules", "v5.4"], &["--rules v5.4"]),
        (&[&dir, "--set", "queue.fifo=1"], &["--set queue.fifo=1"]),
        (&[&dir, "--trace-device", "sdz"], &["sdz"]),
        (
            &[&unmodelled(&place)],
            &["captured with cfq", "--scheduler none"],
        ),
        (
            &[&capture("m4-shared3-mq-deadline")],
            &["several devices", "nullb1"],
        ),
    ];
    for (args, says) in table {
        let ran = place.blksim(&[&["replay"], *args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{args:?}");
        for word in *says {
            assert!(
                ran.stderr.contains(word),
                "{args:?}: no {word:?} in {ran:?}"
            );
        }
    }
}

/// Writes the trace of a small run, and returns the report of the run itself.
pub(crate) fn simulated(place: &Place) -> Value {
    let args = [
        "run",
        "--json",
        "--blktrace",
        "trace",
        "--set",
        "machine.cpus=2",
        "--scheduler",
        "mq-deadline",
        "--device",
        "null_blk,irqmode=2,completion_nsec=50000,hw_queue_depth=8",
        "--",
        "--name=x",
        "--rw=randrw",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=16",
        "--number_ios=1000",
    ];
    json(&place.blksim(&args))
}

#[test]
fn a_simulated_run_reads_as_a_capture() {
    let place = Place::new();
    let report = simulated(&place);
    let stats = json(&place.blksim(&["import-stats", "--json", "--strict", "trace"]));
    assert_eq!(stats["completed"], 1000);
    assert_eq!(stats["unfinished"], 0);
    assert_eq!(stats["q2c"]["count"], stats["actions"]["Q"]);
    assert_eq!(stats["actions"]["D"], stats["actions"]["C"]);
    // fio's latency is Q2C, and the way up from there.
    let job = &report["jobs"][0];
    let (mut sum, mut count) = (0.0, 0.0);
    for direction in ["read", "write"] {
        let clat = &job[direction]["clat_ns"];
        sum += clat["mean"].as_f64().unwrap() * clat["N"].as_f64().unwrap();
        count += clat["N"].as_f64().unwrap();
    }
    let (clat, q2c) = (sum / count, stats["q2c"]["mean_ns"].as_f64().unwrap());
    assert!(q2c < clat, "Q2C {q2c}, clat {clat}");
    assert!(q2c > clat * 0.8, "Q2C {q2c}, clat {clat}");
}

/// The bytes of a small simulated trace, CPU 0.
fn records() -> Vec<u8> {
    let place = Place::new();
    simulated(&place);
    std::fs::read(place.path("trace").join("nullb0.blktrace.0")).unwrap()
}

#[test]
fn damage_has_a_verdict() {
    let good = records();
    let place = Place::new();
    let mut unknown = good.clone();
    unknown[0] = 9;
    // The first record is the wall clock note, 48 + 8 bytes.
    let mut middle = good.clone();
    middle[56 + 3] = 0;
    place.write("empty.blktrace.0", b"");
    place.write(
        "text.blktrace.0",
        b"this is no trace at all, but it is long enough for a record..",
    );
    place.write("unknown.blktrace.0", &unknown);
    place.write("middle.blktrace.0", &middle);
    place.write("short.blktrace.0", &good[..good.len() - 5]);
    place.write("a.blktrace.0", &good);
    place.write(
        "xz.blktrace.0.xz",
        b"\xfd7zXZ\x00 and then nothing of the kind",
    );
    let table: &[(&[&str], &[&str])] = &[
        (&["absent"], &["absent"]),
        (&["empty.blktrace.0"], &["empty.blktrace.0"]),
        (&["text.blktrace.0"], &["text.blktrace.0: byte 0"]),
        (
            &["unknown.blktrace.0"],
            &["unknown.blktrace.0: byte 0", "version"],
        ),
        (&["middle.blktrace.0"], &["middle.blktrace.0: byte "]),
        (&["xz.blktrace.0.xz"], &["xz.blktrace.0.xz"]),
        (&["."], &["several devices", "middle", "short"]),
        (
            &["a.blktrace.0", "--trace-device", "sdz"],
            &["no device sdz"],
        ),
        (
            &["--strict", "short.blktrace.0"],
            &["truncated last record", "strict"],
        ),
        (
            &["--strict", "--salvage", "a.blktrace.0"],
            &["cannot be used with"],
        ),
        (&[], &["FILE"]),
    ];
    for (args, says) in table {
        let ran = place.blksim(&[&["import-stats"], *args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{args:?}");
        for word in *says {
            assert!(
                ran.stderr.contains(word),
                "{args:?}: no {word:?} in {ran:?}"
            );
        }
    }
    for args in [
        &["short.blktrace.0"][..],
        &["--salvage", "middle.blktrace.0"],
    ] {
        let ran = place.blksim(&[&["import-stats"], args].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("Warnings"), "{ran:?}");
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn what_a_capture_cannot_decide_has_an_exit_code_of_its_own() {
    let place = Place::new();
    let dir = capture("mp-service-time-mq-deadline");
    let ran = place.blksim(&["conform", &dir, "--trace-device", "sda", "--json"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let verdict: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(verdict["unjudged"], verdict["total"]);
    assert_eq!(verdict["diverged"], 0);
    // A divergence outranks it.
    let ran = place.blksim(&[
        "conform",
        &capture("m4-shared3-mq-deadline"),
        "--mode",
        "records",
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}
