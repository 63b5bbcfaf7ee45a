//! Built-in scenarios with the words "as in the capture" give the capture's throughput.

use crate::place::Place;
use serde_json::Value;

/// The machine of the deterministic captures, whose prices others of the kind share.
const EMULATED: &str = include_str!("../../../sim/profiles/qemu-icount.toml");

/// I/Os per second of each job.
fn iops(place: &Place, args: &[&str], direction: &str) -> Vec<f64> {
    let ran = place.blksim(&[&["run", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let jobs = report["jobs"].as_array().unwrap();
    jobs.iter()
        .map(|job| job[direction]["iops"].as_f64().unwrap())
        .collect()
}

fn within(percent: f64, figure: f64, of: f64) {
    let off = (figure / of - 1.0).abs() * 100.0;
    assert!(off <= percent, "{figure} is {off:.1} % off {of}");
}

/// Capture sd-fsync-mq-deadline: 80.9 IOPS. fio waits for each fsync, the disk's cache for ticks.
#[test]
fn fsyncs_take_the_time_of_the_capture() {
    within(5.0, iops(&Place::new(), &["fsync-flush"], "write")[0], 80.9);
}

/// Capture sd-trim-mq-deadline: 1351 trims and 5769 reads. Its two CPUs are emulated: at a clock
/// that gives its reads, trims come as far as one price for every instruction goes.
#[test]
fn trims_come_as_slowly_as_the_capture_shows() {
    let place = Place::new();
    let two = EMULATED.replace("cores_per_die = 1", "cores_per_die = 2");
    let slow = two.replace("clock_mhz = 140", "clock_mhz = 39");
    assert_ne!(slow, two);
    place.write("emulated.toml", slow);
    let args = ["trim", "--machine", "emulated.toml"];
    within(3.0, iops(&place, &args, "read")[1], 5769.0);
    within(10.0, iops(&place, &args, "trim")[0], 1351.0);
    // A fast machine leaves nothing but the disk's half millisecond.
    within(1.0, iops(&place, &["trim"], "trim")[0], 1990.0);
}
