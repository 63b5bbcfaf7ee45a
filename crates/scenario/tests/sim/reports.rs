//! Reports of records made by hand.

use scenario::profile;
use sim::cost::Step;
use std::path::Path;

use blkmq::time::{Duration, SimTime};
use serde_json::Value;

use scenario::report::{Origin, Report, digest};
use scenario::{ProfileFacts, Scenario};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::recorder::Recorder;
use sim::recorder::{
    CallerStats, LockStats, SwitchCounts, SwitchTo, TaskUsage, Usage, WaitStats, WorkItems,
};

const SCENARIO: &str = r#"
description = "two jobs, one after the other"
[machine]
cpus = 4
[queue]
scheduler = "mq-deadline"
[device]
type = "null_blk"
irqmode = 2
completion_nsec = 20000
[[job]]
name = "mix, \"quoted\""
rw = "randrw"
direct = 1
ioengine = "libaio"
iodepth = 8
numjobs = 2
number_ios = 400
[[job]]
name = "after"
stonewall = true
rw = "randwrite"
direct = 1
ioengine = "io_uring"
iodepth = 4
time_based = true
runtime = "5ms"
ramp_time = "5ms"
"#;

fn profile() -> MachineProfile {
    profile::built_in("ryzen-7950x").unwrap()
}

fn plan() -> Plan {
    let scenario = Scenario::from_toml(Path::new("two.toml"), SCENARIO).unwrap();
    let info = ProfileFacts {
        name: "ryzen-7950x",
        cpus: 32,
    };
    scenario.plan(&[info]).unwrap()
}

fn origin() -> Origin {
    Origin {
        version: "0.0.0".to_owned(),
        scenario_hash: digest(SCENARIO),
        options: vec!["--seed 1".to_owned()],
        varied: Vec::new(),
    }
}

/// A record whose figures can be computed by hand.
fn by_hand(plan: &Plan) -> Recorder {
    let mut recorder = Recorder::new(plan);
    recorder.begun = true;
    recorder.until = SimTime(2_000_000_000);
    let mut switches = SwitchCounts::default();
    for to in [SwitchTo::Task, SwitchTo::Kworker, SwitchTo::Idle] {
        switches.add(to);
    }
    recorder.cpus = vec![
        Usage {
            user: 100_000,
            system: 200_000,
            softirq: 50_000,
            irq: 25_000,
            spin: 125_000,
            idle: 500_000,
            switches,
            items: WorkItems::default(),
        };
        4
    ];
    let thread = TaskUsage {
        user_ps: 250_000_000_000,
        system_ps: 500_000_000_000,
        switches: 7,
    };
    recorder.threads = vec![thread; plan.threads.len()];
    recorder.locks = vec![LockStats {
        name: "dd->lock",
        acquisitions: 10,
        contended: 4,
        tries_failed: 0,
        wait: Duration(500),
        hold: Duration(900),
        wait_max: Duration(300),
        hold_max: Duration(90),
        waits: Some(WaitStats {
            handoffs: [0, 1, 0, 3, 0],
            callers: vec![caller("pass.pick", 3, 499), caller("plug.elevator", 1, 1)],
        }),
    }];
    // 1,000 and 500 cycles an I/O at 5 GHz, of 1,000 I/Os.
    recorder.spent.step(Step::FioPrepare, 200_000_000);
    recorder.spent.step(Step::Irq, 100_000_000);
    recorder.jobs[0].until = SimTime(1_000_000_000);
    recorder.jobs[0].ended = SimTime(1_000_000_000);
    recorder.jobs[0].running = 0;
    recorder.jobs[0].runtime = Duration::from_secs(1);
    let reads = &mut recorder.jobs[0].directions[0];
    for latency in 1..=1000 {
        reads.latency.record(latency).unwrap();
    }
    (reads.ios, reads.bytes, reads.errors) = (1000, 4_096_000, 2);
    recorder
}

fn caller(name: &'static str, contended: u64, wait: u64) -> CallerStats {
    CallerStats {
        name,
        contended,
        wait: Duration(wait),
        wait_max: Duration(wait / contended + 1),
    }
}

fn report_by_hand() -> Report {
    let plan = plan();
    // Prices may change, these figures do not depend on them.
    let profile = MachineProfile {
        hash: "0123456789abcdef".to_owned(),
        ..profile()
    };
    Report::new(origin(), &plan, &profile, &by_hand(&plan), None)
}

#[test]
fn figures_are_those_of_the_record() {
    let report = report_by_hand();
    let read = &report.jobs[0].read;
    assert_eq!(
        (read.iops, read.bw_bytes, read.bw),
        (1000.0, 4_096_000, 4000)
    );
    assert_eq!(read.runtime, 1000);
    assert_eq!((read.clat_ns.min, read.clat_ns.max), (1, 1000));
    assert_eq!(read.clat_ns.percentile.at("99.000000"), Some(990));
    assert_eq!(read.clat_ns.percentile.at("50.000000"), Some(500));
    assert_eq!(report.jobs[0].total_err, 2);
    // Two threads, a quarter and a half of one second each.
    assert_eq!(
        (report.jobs[0].usr_cpu, report.jobs[0].sys_cpu),
        (25.0, 50.0)
    );
    assert_eq!(report.jobs[0].ctx, 14);
    let cpus = report.cpus;
    let modes = [
        cpus.user,
        cpus.system,
        cpus.softirq,
        cpus.irq,
        cpus.lock_wait,
        cpus.idle,
    ];
    let tenths = modes.map(|percent| (percent * 10.0) as u64);
    assert_eq!(tenths, [100, 200, 50, 25, 125, 500]);
    assert_eq!(cpus.busy_ns, 4 * 500);
    // 500 ns waited of 2000 that were not idle.
    assert_eq!(report.locks[0].wait_share.to_bits(), 0.25_f64.to_bits());
}

#[test]
fn who_waited_for_a_lock_stands_after_it() {
    let report = report_by_hand();
    let pick = &report.locks[0].callers[0];
    assert_eq!(
        (pick.label, pick.contended, pick.wait_ns),
        ("pass.pick", 3, 499)
    );
    // Of 2000 ns that were not idle.
    assert_eq!(pick.wait_share.to_bits(), 0.2495_f64.to_bits());
    let far = report.locks[0].handoffs.unwrap();
    assert_eq!((far.sibling, far.same_socket), (1, 3));
    let text = report.to_string();
    for line in [
        // The other caller has less than a hundredth of the waiting time.
        "\n  dd->lock: waits in pass.pick 24.95 %\n",
        "\n  dd->lock: handed over within a CPU 0, core 1, last-level cache 0, socket 3; to \
         another 0\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_digest_is_the_head_of_sha256() {
    assert_eq!(digest("abc"), "ba7816bf8f01cfea");
}

#[test]
fn nothing_measured_divides_nothing() {
    let plan = plan();
    let report = Report::new(origin(), &plan, &profile(), &Recorder::new(&plan), None);
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    let read = &json["jobs"][0]["read"];
    assert_eq!(read["iops"], 0.0);
    assert!(read["clat_ns"].get("percentile").is_none());
    assert!(
        report
            .to_string()
            .contains("no I/O ended in the measured time")
    );
    assert_eq!(report.to_csv().lines().count(), 1, "only the header");
}

#[test]
fn text_of_a_record() {
    insta::assert_snapshot!(report_by_hand().to_string());
}
