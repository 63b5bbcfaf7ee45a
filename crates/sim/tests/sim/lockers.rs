//! Threads that take one lock: what a hand-off costs by distance, who gets how much, and what the
//! report tells.

use std::path::Path;

use sim::machine::{Outcome, Simulator};
use sim::profile::MachineProfile;
use sim::report::{Handoffs, LockersReport, Origin, Report};
use sim::scenario::{ProfileFacts, Scenario};

const PROFILE: &str = "ryzen-7950x";

fn scenario(text: &str) -> Result<Report, String> {
    let profile = MachineProfile::built_in(PROFILE).unwrap();
    let facts = [ProfileFacts {
        name: PROFILE,
        cpus: profile.cpus(),
    }];
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).map_err(|e| e.to_string())?;
    let plan = scenario.plan(&facts).map_err(|e| e.to_string())?;
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    assert!(matches!(simulator.run(|_| true), Outcome::Finished));
    simulator.settle();
    let recorder = simulator.recorder();
    let origin = Origin::default();
    Ok(Report::new(origin, &plan, &profile, recorder, None))
}

/// A millisecond of one group.
fn run(locker: &str) -> LockersReport {
    let text = format!("[[locker]]\nruntime = \"1ms\"\n{locker}");
    scenario(&text).unwrap().lockers.unwrap()
}

/// As many hand-offs at each distance, nearest first.
fn by_distance(handoffs: Handoffs) -> [u64; 5] {
    [
        handoffs.same_cpu,
        handoffs.sibling,
        handoffs.same_cache,
        handoffs.same_socket,
        handoffs.other_socket,
    ]
}

/// Alone, an operation takes what was given and what a lock costs that lies in the CPU's own
/// cache.
#[test]
fn one_thread_waits_for_nobody() {
    let report = run("hold_ns = 300\nthink_ns = 600\n");
    assert_eq!((report.contended, report.wait_mean_ns), (0.0, 0.0));
    assert_eq!(by_distance(report.handoffs), [0; 5]);
    // 900 ns and two atomic operations.
    assert!((1_085..=1_111).contains(&report.operations), "{report:?}");
    assert!((300.0..320.0).contains(&report.hold_mean_ns), "{report:?}");
    assert_eq!(report.operations_a_second as u64, report.operations * 1000);
}

/// The farther the other one is, the longer a hand-off takes: twice the line's way.
#[test]
fn a_handoff_costs_by_distance() {
    let profile = MachineProfile::built_in(PROFILE).unwrap().transfer_ps;
    // CPU 16 is the other thread of CPU 0's core; dies have eight cores.
    let pairs = [
        ("0,16", 1, profile.sibling),
        ("0,1", 2, profile.die),
        ("0,8", 3, profile.socket),
    ];
    let mut bases = Vec::new();
    for (cpus, distance, transfer_ps) in pairs {
        let report = run(&format!(
            "threads = 2\nhold_ns = 1000\ncpus_allowed = \"{cpus}\"\n"
        ));
        let handoffs = by_distance(report.handoffs);
        assert_eq!(
            handoffs.iter().sum::<u64>(),
            handoffs[distance],
            "{cpus}: {handoffs:?}"
        );
        assert!(
            handoffs[distance] + 2 >= report.operations,
            "{cpus}: {report:?}"
        );
        // Every operation is a hand-off, and nobody thinks: a turn of both is a hold of one's own
        // and the wait for the other's. (Behind a hold shorter than that of 1000 ns the one that
        // comes back still has the word's line when it is to be unlocked.)
        assert!(report.contended > 0.99, "{cpus}: {report:?}");
        let operation = f64::midpoint(report.hold_mean_ns, report.wait_mean_ns);
        bases.push(operation - 2.0 * transfer_ps as f64 / 1000.0);
    }
    // What is left is the same at each distance: the hold, and the work of a hand-off.
    assert!(
        bases.iter().all(|base| (base - bases[0]).abs() < 2.0),
        "{bases:?}"
    );
}

/// The queue is first come, first served.
#[test]
fn everybody_gets_the_same() {
    let report = run("threads = 8\nhold_ns = 50\nthink_ns = 20\n");
    let group = &report.groups[0];
    assert!(
        group.operations_max - group.operations_min <= 1,
        "{group:?}"
    );
    assert_eq!((group.threads, group.name.as_str()), (8, "locker0"));
    assert!(report.contended > 0.99);
    // Between two turns of a thread each of the others has one: what it waits, holds and thinks is
    // eight operations of the lock, of which a hold is the smallest part.
    let turn = report.wait_mean_ns + report.hold_mean_ns + 20.0;
    let turns = turn * report.operations_a_second / 1e9;
    assert!((7.9..8.1).contains(&turns), "{turns}: {report:?}");
    assert!(
        report.wait_mean_ns > 14.0 * report.hold_mean_ns,
        "{report:?}"
    );
}

#[test]
fn some_holds_are_long() {
    let plain = run("threads = 2\nhold_ns = 100\n");
    let long = "threads = 2\nhold_ns = 100\nlong_hold_ns = 10000\nlong_hold_every = 20\n";
    let mixed = run(long);
    let more = mixed.hold_mean_ns - plain.hold_mean_ns;
    // 9900 / 20.
    assert!((350.0..650.0).contains(&more), "{more}");
    assert_eq!(run(long), mixed);
}

/// Groups take the same lock, each with times of its own.
#[test]
fn groups_share_the_lock() {
    let report = scenario(
        "[[locker]]\nname = \"greedy\"\nruntime = \"1ms\"\nhold_ns = 1000\n\
         [[locker]]\nname = \"quick\"\nruntime = \"1ms\"\nthreads = 2\nthink_ns = 10\n",
    );
    let report = report.unwrap();
    let lockers = report.lockers.as_ref().unwrap();
    let [greedy, quick] = &lockers.groups[..] else {
        panic!("{lockers:?}");
    };
    assert_eq!(
        (greedy.name.as_str(), quick.name.as_str()),
        ("greedy", "quick")
    );
    // In turn: each waits for the long hold.
    assert!(
        quick.operations_max.abs_diff(greedy.operations) <= 2,
        "{lockers:?}"
    );
    let lock = &report.locks[0];
    assert_eq!((report.locks.len(), lock.name), (1, "spin lock"));
    assert_eq!((lock.callers.len(), lock.callers[0].label), (1, "locker"));
    assert!(report.jobs.is_empty());
    let json = report.to_json();
    assert!(json.contains("\"handoffs\"") && json.contains("\"greedy\""));
    assert!(report.to_string().contains("\nLock: "));
}

/// A thread that holds the lock keeps its CPU: spin_lock() disables preemption.
#[test]
fn who_holds_it_is_not_preempted() {
    let text = "[[locker]]\nruntime = \"20ms\"\nthreads = 2\nhold_ns = 700\ncpus_allowed = \"0\"\n";
    let report = scenario(text).unwrap();
    let lockers = report.lockers.unwrap();
    assert!(lockers.contended < 1e-9);
    assert!(lockers.groups[0].operations_min > 5_000, "{lockers:?}");
    // A slice is 3 ms.
    assert!((5..=10).contains(&report.cpus.ctx), "{}", report.cpus.ctx);
}

#[test]
fn the_ramp_does_not_count() {
    let with = run("ramp_time = \"1ms\"\nhold_ns = 300\nthink_ns = 600\n");
    let without = run("hold_ns = 300\nthink_ns = 600\nramp_time = 0\n");
    // Without a ramp, the first one comes when the CPU has left its idle state.
    assert!(with.operations.abs_diff(without.operations) <= 5);
}

#[test]
fn what_may_be_wrong() {
    let job = "[[job]]\nrw = \"randread\"\ndirect = 1\n";
    for (text, want) in [
        (
            format!("[[locker]]\n{job}"),
            "s.toml:2: job: [[locker]] stands alone",
        ),
        (
            "[[locker]]\n[device]\ntype = \"null_blk\"\n".to_owned(),
            "s.toml:2: device: [[locker]] stands alone",
        ),
        (
            "[[locker]]\n[queue]\nrules = \"v6.1\"\nscheduler = \"none\"\n".to_owned(),
            "s.toml:4: queue.scheduler: [[locker]] stands alone",
        ),
        (
            "[[locker]]\nthreads = 0\n".to_owned(),
            "s.toml:2: locker.0.threads: 0 in all; expected 1 to 4096",
        ),
        (
            "[[locker]]\n[[locker]]\nthreads = 4096\n".to_owned(),
            "s.toml:3: locker.1.threads: 4097 in all",
        ),
        (
            "[[locker]]\ncpus_allowed = \"0-32\"\n".to_owned(),
            "s.toml:2: locker.0.cpus_allowed: there is no CPU 32; they are 0 to 31",
        ),
        (
            "[[locker]]\ncpus_allowed = \"x\"\n".to_owned(),
            "s.toml:2: locker.0.cpus_allowed: `x` is not a CPU number",
        ),
        (
            "[[locker]]\nhold_ns = 1000000001\n".to_owned(),
            "s.toml:2: locker.0.hold_ns: at most 1000000000",
        ),
        (
            "[[locker]]\nlong_hold_ns = 5\n".to_owned(),
            "s.toml:2: locker.0.long_hold_ns: long_hold_ns and long_hold_every go together",
        ),
        (
            "[[locker]]\nruntime = \"1y\"\n".to_owned(),
            "s.toml:2: locker.0.runtime: `1y` has an unknown unit",
        ),
        (
            "[[locker]]\nramp_time = true\n".to_owned(),
            "s.toml:2: locker.0.ramp_time: invalid type: boolean `true`, expected a string or a whole number",
        ),
        (
            "[[locker]]\nhold = 3\n".to_owned(),
            "s.toml:2: unknown field `hold`",
        ),
    ] {
        let got = scenario(&text).unwrap_err();
        assert!(got.starts_with(want), "{text}\n  {got}");
    }
}
