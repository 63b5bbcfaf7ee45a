//! `blksim calibrate`: residuals, the profile it writes, and measurements that are wrong.

use crate::place::Place;
use serde_json::Value;

/// One process on one core for two milliseconds.
const ONE: &str = r#"
[queue]
scheduler = "mq-deadline"
rules = "v6.1"
inline_runs = true
[device]
type = "nvme"
latency_ns = 20000
[[job]]
name = "one"
rw = "randread"
bs = "4k"
ioengine = "io_uring"
iodepth = 32
time_based = true
runtime = "2ms"
cpus_allowed = "0"
"#;

const MEASURED: &str = r#"
base = "xeon-10c"
name = "mine"
[[run]]
name = "one process"
scenario = "one.toml"
[run.cycles_per_io]
user = 3000
driver = 100
"#;

#[test]
fn a_profile_is_fitted_written_and_used() {
    let place = Place::new();
    place.write("one.toml", ONE);
    place.write("measured.toml", MEASURED);
    let run = place.blksim(&["calibrate", "measured.toml", "-o", "mine.toml"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let rows: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(rows.len(), 3, "{}", run.stdout);
    for row in &rows[1..] {
        let ratio: f64 = row.split_whitespace().last().unwrap().parse().unwrap();
        assert!((0.98..1.02).contains(&ratio), "{row}");
    }
    let used = place.blksim(&["run", "one.toml", "--machine", "mine.toml", "--json"]);
    let report: Value = serde_json::from_str(&used.stdout).unwrap();
    let work = report["work"].as_array().unwrap();
    let user = work.iter().find(|row| row["component"] == "user").unwrap();
    let cycles = user["cycles_per_io"].as_f64().unwrap();
    assert!((2940.0..3060.0).contains(&cycles), "{cycles}");
}

#[test]
fn wrong_measurements_are_one_error_and_no_file() {
    let place = Place::new();
    place.write("one.toml", ONE);
    let cases = [
        (MEASURED.replace("xeon-10c", "xeon"), "no machine profile"),
        (MEASURED.replace("one.toml", "two"), "two"),
        (MEASURED.replace("user", "usr"), "cycles_per_io.usr"),
        (MEASURED.replace("3000", "\"much\""), "measured.toml:8"),
        (
            MEASURED.replace("[run.cycles", "pins = \"x\"\niops = 1\n[run.cycles"),
            "nor a step of [cycles]",
        ),
    ];
    for (text, what) in cases {
        place.write("measured.toml", &text);
        let run = place.blksim(&["calibrate", "measured.toml", "-o", "new.toml"]);
        assert_eq!(run.code, Some(2), "{text}\n{run:?}");
        assert!(run.stderr.contains(what), "{what}: {}", run.stderr);
        assert_eq!(place.files(), ["measured.toml", "one.toml"]);
    }
}

#[test]
fn inline_runs_spare_the_worker() {
    let place = Place::new();
    place.write("one.toml", ONE);
    let switches = |inline: &str| {
        let set = format!("queue.inline_runs={inline}");
        let run = place.blksim(&["run", "one.toml", "--set", &set, "--json"]);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        report["cpus"]["ctx"].as_u64().unwrap()
    };
    let (inline, worker) = (switches("true"), switches("false"));
    assert!(worker > 10 * inline.max(1), "{worker} and {inline}");
}

#[test]
fn wrong_arguments_of_studies_are_reported() {
    let place = Place::new();
    for (arguments, what) in [
        ("reproduce --without bogus", "there is no mechanism `bogus`"),
        ("sensitivity bogus", "no machine profile is named `bogus`"),
        ("sensitivity qemu-icount", "no published row"),
        ("sensitivity xeon-10c --runtime 0", "--runtime"),
        ("sensitivity xeon-10c --runtime soon", "--runtime"),
        ("check --jobs 0", "--jobs"),
    ] {
        let run = place.blksim(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(run.code, Some(2), "{arguments}: {run:?}");
        assert!(run.stderr.contains(what), "{arguments}: {}", run.stderr);
    }
}
