//! A sweep over devices, schedulers and threads as one table: shows any change of behaviour.
//!
//! Every figure is exact, so any change of a price, a label or an order shows here. A difference
//! that can be explained is accepted with `INSTA_UPDATE=always cargo test -p blksim-scenario --test
//! sweep` and committed with the change that made it.

use std::path::Path;

use scenario::profile;
use scenario::report::{Origin, Report};
use scenario::{ProfileFacts, Scenario};
use sim::machine::{Outcome, Simulator};

const PROFILE: &str = "ryzen-7950x";

/// Tables `[device]` by a short name.
const DEVICES: [(&str, &str); 4] = [
    ("null_blk", "type = \"null_blk\""),
    ("null_blk timer", "type = \"null_blk\"\nirqmode = 2"),
    ("nvme", "type = \"nvme\"\njitter = 0"),
    (
        "scsi_debug",
        "type = \"scsi_debug\"\nmax_queue = 16\nndelay = 10000",
    ),
];

fn run(device: &str, queue: &str, job: &str, threads: u32) -> Report {
    let text = format!(
        "seed = 1\n[machine]\nprofile = \"{PROFILE}\"\n[queue]\n{queue}\n[device]\n{device}\n\
         [[job]]\nname = \"j\"\n{job}\nbs = \"4k\"\nioengine = \"io_uring\"\nnumjobs = {threads}\n\
         thread = true\ndirect = 1\ngroup_reporting = true\ntime_based = true\nruntime = \"3ms\"\n"
    );
    let info = [ProfileFacts {
        name: PROFILE,
        cpus: 32,
    }];
    let scenario = Scenario::from_toml(Path::new("sweep.toml"), &text).unwrap();
    let plan = scenario
        .plan(&info)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let profile = profile::built_in(PROFILE).unwrap();
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    let outcome = simulator.run(|_| true);
    assert!(matches!(outcome, Outcome::Finished), "{outcome:?}\n{text}");
    simulator.settle();
    Report::new(
        Origin::default(),
        &plan,
        &profile,
        simulator.recorder(),
        None,
    )
}

/// One line: the case and its results.
fn line(device: &str, case: &str, threads: u32, report: &Report) -> String {
    let job = &report.jobs[0];
    let ios = job.read.total_ios + job.write.total_ios;
    let clat = |name| job.read.clat_ns.percentile.at(name).unwrap_or(0);
    // A sum of nothing is -0.0.
    let waits = report
        .locks
        .iter()
        .fold(0.0, |sum, lock| sum + lock.wait_share);
    let taken: u64 = report.locks.iter().map(|lock| lock.acquisitions).sum();
    format!(
        "{device:<15} {case:<28} {threads:>7} {ios:>7} {:>9} {:>9} {:>6.2} {:>6.2} {:>6.2} {taken:>8} {:>7}\n",
        clat("50.000000"),
        clat("99.000000"),
        100.0 * report.cpus.system,
        100.0 * report.cpus.lock_wait,
        100.0 * waits,
        report.cpus.ctx,
    )
}

#[test]
fn a_sweep_gives_the_figures_it_gave() {
    let mut table = format!(
        "{:<15} {:<28} {:>7} {:>7} {:>9} {:>9} {:>6} {:>6} {:>6} {:>8} {:>7}\n",
        "device",
        "case",
        "threads",
        "ios",
        "p50 ns",
        "p99 ns",
        "sys %",
        "spin %",
        "wait %",
        "locks",
        "ctx"
    );
    let cases = [
        (
            "none, d4",
            "scheduler = \"none\"",
            "rw = \"randread\"\niodepth = 4",
        ),
        (
            "mq-deadline, d4 batch 4",
            "scheduler = \"mq-deadline\"",
            "rw = \"randread\"\niodepth = 4\niodepth_batch_submit = 4\niodepth_batch_complete = 4",
        ),
        (
            "mq-deadline v6.1, mixed d8",
            "scheduler = \"mq-deadline\"\nrules = \"v6.1\"",
            "rw = \"randrw\"\nrwmixread = 70\niodepth = 8",
        ),
        (
            "mq-deadline, sequential d16",
            "scheduler = \"mq-deadline\"",
            "rw = \"read\"\niodepth = 16\niodepth_batch_submit = 8",
        ),
    ];
    for (name, device) in DEVICES {
        for (case, queue, job) in cases {
            for threads in [1, 8] {
                let report = run(device, queue, job, threads);
                table += &line(name, case, threads, &report);
            }
        }
    }
    insta::assert_snapshot!(table);
}
