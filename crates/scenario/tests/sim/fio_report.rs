//! Each member of the JSON of fio 3.33 is in ours, of the same type: the same jobs under both.
//!
//! Without this version of fio the comparison is skipped with a line that says so; without any, it
//! fails where CI=true.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use scenario::report::{Origin, Report};
use scenario::{ProfileFacts, Scenario, profile};
use serde_json::Value;
use sim::machine::{Outcome, Simulator};

use crate::fio::is_fio_here;

/// Jobs of several kinds: a group of synchronous clones, one of libaio, one with a description, one
/// that looks for a steady state and one for a depth.
const JOBS: &str = "
[global]
size=256k
bs=4k
bwavgtime=1
iopsavgtime=1
[group]
ioengine=psync
rw=randrw
fsync=8
numjobs=2
group_reporting
loops=4
[deep]
stonewall
ioengine=libaio
iodepth=8
iodepth_batch=4
rw=randread
slat_percentiles=1
lat_percentiles=1
percentile_list=50:99.5
continue_on_error=all
loops=4
[last]
stonewall
ioengine=psync
rw=write
description=the last
clat_percentiles=0
[steady]
stonewall
ioengine=psync
rw=read
rate_iops=100
time_based
runtime=4
steadystate=iops_slope:33.3%
steadystate_duration=2
numjobs=2
group_reporting
[target]
stonewall
ioengine=libaio
rw=randread
iodepth=4
loops=4
latency_target=50ms
latency_window=10ms
latency_percentile=99.5
";

/// Members by path, with the types of their values. Names of buckets are data.
fn members(value: &Value, path: &str, all: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(list) => {
            let each = format!("{path}[]");
            for item in list {
                members(item, &each, all);
            }
            "array"
        }
        Value::Object(object) => {
            for (name, inner) in object {
                let is_bins = path.rsplit('.').next() == Some("bins");
                let name = if is_bins { "*" } else { name };
                members(inner, &format!("{path}.{name}"), all);
            }
            "object"
        }
    };
    all.insert(path.to_owned(), kind);
}

fn by_fio() -> Option<Value> {
    if !is_fio_here() {
        return None;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let text = JOBS.replace("[global]", "[global]\nfilename=data");
    std::fs::write(place.path().join("j.fio"), text).expect("a file");
    let ran = Command::new("fio")
        .args([
            "--eta=never",
            "--output-format=json+",
            "--output=j.json",
            "j.fio",
        ])
        .current_dir(place.path())
        .output()
        .expect("fio");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "fio: {said}");
    let json = std::fs::read_to_string(place.path().join("j.json")).expect("a report");
    Some(serde_json::from_str(&json).expect("JSON"))
}

fn here() -> Value {
    let profile = profile::built_in("ryzen-7950x").expect("a built-in profile");
    let facts = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    let text = JOBS.replace("[global]", "[global]\nfilename=/dev/nullb0");
    let plan = Scenario::from_fio(Path::new("j.fio"), &text)
        .and_then(|scenario| scenario.set_device("null_blk,irqmode=2,completion_nsec=20000"))
        .and_then(|scenario| scenario.plan(&[facts]))
        .expect("a plan");
    let mut simulator = Simulator::new(&plan, &profile).expect("a machine");
    simulator.collect_fio();
    assert!(matches!(simulator.run(|_| true), Outcome::Finished));
    simulator.settle();
    let report = Report::new(
        Origin::default(),
        &plan,
        &profile,
        simulator.recorder(),
        None,
    );
    serde_json::from_str(&report.to_json()).expect("JSON")
}

/// Members that ours lack, or have of another type.
fn wrong(theirs: &Value, ours: &Value) -> Vec<String> {
    let (mut of_fio, mut of_ours) = (BTreeMap::new(), BTreeMap::new());
    members(theirs, "", &mut of_fio);
    members(ours, "", &mut of_ours);
    println!("{} members of fio", of_fio.len());
    let differs = |(path, kind): (String, &'static str)| match of_ours.get(&path) {
        Some(own) if *own == kind => None,
        own => Some(format!("{path}: fio {kind}, here {own:?}")),
    };
    of_fio.into_iter().filter_map(differs).collect()
}

#[test]
fn the_report_has_each_member_of_fios() {
    let mut ours = here();
    let Some(theirs) = by_fio() else {
        return;
    };
    let differ = wrong(&theirs, &ours);
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    // Entries are the same ones.
    let entries = |report: &Value| -> Vec<(Value, Value)> {
        let jobs = report["jobs"].as_array().expect("a list").iter();
        jobs.map(|job| (job["jobname"].clone(), job["groupid"].clone()))
            .collect()
    };
    assert_eq!(entries(&theirs), entries(&ours));
    // So is what they give again of their options, and what a steady rate has.
    for pointer in [
        "/jobs/3/steadystate/ss",
        "/jobs/3/steadystate/duration",
        "/jobs/3/steadystate/attained",
        "/jobs/3/steadystate/max_deviation",
        "/jobs/4/latency_target",
        "/jobs/4/latency_window",
        "/jobs/4/latency_percentile",
    ] {
        let of = |report: &Value| report.pointer(pointer).expect("a member").clone();
        assert_eq!(of(&theirs), of(&ours), "{pointer}");
    }
    for report in [&theirs, &ours] {
        let data = &report["jobs"][3]["steadystate"]["data"];
        let near =
            |of: &Value, want: u64| of.as_u64().is_some_and(|of| of.abs_diff(want) <= want / 5);
        assert!(near(&data["iops_mean"], 200), "{data}");
        assert!(near(&data["bw"][1], 200 * 4096), "{data}");
    }
    // The comparison sees a member that is missing, and one of another type.
    for job in ours["jobs"].as_array_mut().expect("a list") {
        job["read"]["lat_ns"] = Value::Null;
        job.as_object_mut().expect("an object").remove("ctx");
    }
    let differ = wrong(&theirs, &ours).join("\n");
    assert!(
        differ.contains(".jobs[].read.lat_ns: fio object, here Some(\"null\")"),
        "{differ}"
    );
    assert!(
        differ.contains(".jobs[].ctx: fio integer, here None"),
        "{differ}"
    );
}
