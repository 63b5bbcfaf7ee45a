//! Threads that fio holds back: rates and pauses, which begin when no I/O is in flight any more.

use scenario::report::{Origin, Report};
use sim::machine::Simulator;

use crate::runs;

/// 100 ms of reads that take 500 us each, with these options.
fn run(job: &str) -> Report {
    let text = format!(
        "[machine]\ncpus = 4\n[device]\ntype = \"null_blk\"\nirqmode = 2\n\
         completion_nsec = 500000\n[[job]]\nname = \"j\"\nrw = \"randread\"\n\
         norandommap = true\ndirect = 1\nioengine = \"libaio\"\niodepth = 16\n\
         runtime = \"100ms\"\ntime_based = true\n{job}\n"
    );
    let plan = runs::plan_of(&text);
    let profile = runs::machine();
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    assert!(runs::to_its_end(&mut simulator).is_none());
    simulator.settle();
    let recorder = simulator.recorder();
    Report::new(Origin::default(), &plan, &profile, recorder, None)
}

fn ios(report: &Report) -> u64 {
    report.jobs[0].read.total_ios
}

/// One I/O, 500 us, then 1 ms of sleep. Without the wait for I/Os in flight there would be more
/// than one at a time, and two thirds more of them.
#[test]
fn a_pause_begins_when_nothing_is_in_flight() {
    let report = run("thinktime = 1000");
    // 16 at the start, then one every 1.5 ms and some work.
    assert!((76..=84).contains(&ios(&report)), "{}", ios(&report));
    assert_eq!(report.device.depth_max, 16);
    let report = run("thinktime = 1000\nthinktime_blocks_type = \"issue\"");
    assert!((62..=68).contains(&ios(&report)), "{}", ios(&report));
    assert_eq!(report.device.depth_max, 1);
}

/// A thread that is ahead of its rate waits for all I/Os in flight and sleeps as long as was
/// missing before that: it is late, and catches up with as many as were due.
#[test]
fn a_rate_is_kept_by_bursts() {
    let report = run("rate_iops = 10000");
    assert!((970..=1000).contains(&ios(&report)), "{}", ios(&report));
    let depth = report.device.depth_max;
    assert!((6..=8).contains(&depth), "{depth}");
    let by_bytes = run("rate = \"40000k\"");
    assert_eq!(by_bytes.jobs[0].read, report.jobs[0].read);
}

#[test]
fn a_poisson_process_has_the_same_rate_and_longer_bursts() {
    let report = run("rate_iops = 10000\nrate_process = \"poisson\"");
    assert!((900..=1100).contains(&ios(&report)), "{}", ios(&report));
    assert!(report.device.depth_max > 8, "{}", report.device.depth_max);
}
