//! Measurements of the rotational disk `sata2009`, against the data of its file: the arm, the
//! platters, the rates, the cache.

use std::path::Path;

use scenario::profile;
use scenario::report::{Origin, Report};
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};

const PROFILE: &str = "quadcore";

/// A run of jobs on the disk.
fn run(device: &str, jobs: &str) -> Report {
    let text = format!(
        "[machine]\nprofile = \"{PROFILE}\"\n[queue]\nscheduler = \"none\"\n[device]\n\
         drive = \"sata2009\"\n{device}\n{jobs}"
    );
    let profile = profile::built_in(PROFILE).expect("a built-in profile");
    let info = [ProfileFacts {
        name: PROFILE,
        cpus: profile.cpus(),
    }];
    let scenario = Scenario::from_toml(Path::new("disk.toml"), &text).expect("a scenario");
    let plan = scenario.plan(&info).expect("a plan");
    let mut simulator = Simulator::new(&plan, &profile).expect("a machine of this plan");
    let outcome = simulator.run(|_| true);
    assert!(matches!(outcome, Outcome::Finished), "{outcome:?}");
    simulator.settle();
    Report::new(
        Origin::default(),
        &plan,
        &profile,
        simulator.recorder(),
        None,
    )
}

fn job(name: &str, rw: &str, bs: &str, more: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nrw = \"{rw}\"\nbs = \"{bs}\"\nioengine = \"psync\"\n\
         direct = 1\nnorandommap = 1\n{more}\n"
    )
}

/// Mean latency of the reads of all jobs, us.
fn read_us(report: &Report) -> f64 {
    let jobs = report.jobs.iter();
    let each: Vec<f64> = jobs.map(|job| job.read.clat_ns.mean / 1000.0).collect();
    each.iter().sum::<f64>() / each.len() as f64
}

fn within(is: f64, least: f64, most: f64) {
    assert!(
        (least..=most).contains(&is),
        "{is} is not {least} to {most}"
    );
}

/// Half a turn (4167 us), the command (100 us), and some 20 us of link and software.
const BESIDE_THE_ARM: f64 = 4167.0 + 100.0 + 20.0;

#[test]
fn a_random_read_moves_over_a_third() {
    let report = run("", &job("reader", "randread", "4k", "number_ios = 2000"));
    // The curve's mean over all pairs is 8.2 ms; sectors lie closer together at the outside.
    within(read_us(&report) - BESIDE_THE_ARM, 7500.0, 8300.0);
    within(1e6 / read_us(&report), 78.0, 86.0);
}

#[test]
fn a_full_stroke_takes_what_its_file_says() {
    let ends = job(
        "outside",
        "randread",
        "4k",
        "size = \"1g\"\nnumber_ios = 400",
    ) + &job(
        "inside",
        "randread",
        "4k",
        "offset = \"455g\"\nsize = \"1g\"\nnumber_ios = 400",
    );
    let report = run("ncq_order = \"arrival\"\ncache_segments = 0", &ends);
    // Each waits for the other one's stroke, too.
    within(read_us(&report) / 2.0 - BESIDE_THE_ARM, 16_300.0, 17_100.0);
}

#[test]
fn one_sector_comes_round_once_a_turn() {
    let sector = job(
        "reader",
        "read",
        "4k",
        "size = \"4k\"\ntime_based = 1\nruntime = \"1500ms\"",
    );
    let report = run("cache_segments = 0", &sector);
    within(read_us(&report), 8300.0, 8340.0);
    // Two turns a millisecond more: the result depends on the platters, not on a constant of the
    // model.
    let report = run("cache_segments = 0\nrpm = 15000", &sector);
    within(read_us(&report), 3980.0, 4010.0);
}

#[test]
fn the_cache_answers_within_the_command() {
    let sector = job(
        "reader",
        "read",
        "4k",
        "size = \"4k\"\ntime_based = 1\nruntime = \"1500ms\"",
    );
    let report = run("", &sector);
    let percentiles = &report.jobs[0].read.clat_ns.percentile.0;
    let median = percentiles.iter().find(|(name, _)| *name == "50.000000");
    let (_, median) = median.expect("there is a median");
    within(*median as f64 / 1000.0, 100.0, 140.0);
}

#[test]
fn a_reader_streams_at_the_rate_of_its_zone() {
    for (offset, least, most) in [
        ("0", 117.0, 121.0),
        ("225g", 88.0, 100.0),
        ("455g", 58.0, 63.0),
    ] {
        let reader = format!("offset = \"{offset}\"\nsize = \"200m\"");
        let report = run("", &job("reader", "read", "128k", &reader));
        let read = &report.jobs[0].read;
        within(read.bw_bytes as f64 / 1e6, least, most);
    }
}
