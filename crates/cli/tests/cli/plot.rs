//! `plot` and `compare` from outside.

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
        assert_eq!(ran.stdout.lines().count(), 10, "{ran:?}");
    }
    let (one, three) = (bytes(&place, "one"), bytes(&place, "three"));
    assert_eq!(one.len(), 10);
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
