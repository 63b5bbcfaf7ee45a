//! Nothing is allocated in steady state: a counting allocator checks.
//!
//! The counts are those of the calling thread only, so tests may run in parallel. The pattern: warm
//! up outside of `measure`, do the steady work inside, compare with zero.
#![forbid(unsafe_code)]

extern crate blksim_scenario as scenario;

use std::path::Path;

use allocation_counter::measure;
use blkmq::time::{Duration, SimTime};
use scenario::profile;
use scenario::{ProfileFacts, Scenario};
use sim::event_queue::EventQueue;
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::rng::Rng;

/// Pops one event and pushes it back a random step later, `count` times.
fn hold(queue: &mut EventQueue<u32>, rng: &mut Rng, count: u32) {
    for _ in 0..count {
        let (time, event) = queue.pop().expect("the hold model never drains");
        // One step in 1,000 is a timer, milliseconds away.
        let mean = if rng.chance(1, 1_000) {
            10_000_000
        } else {
            500
        };
        queue.push(
            SimTime(time.0 + rng.exponential(mean)),
            (event % 4) as u8,
            event,
        );
    }
}

fn filled(queue: &mut EventQueue<u32>) {
    for event in 0..1_000 {
        queue.push(SimTime(u64::from(event) * 7), (event % 4) as u8, event);
    }
}

#[test]
fn the_allocator_counts() {
    let counted = measure(|| {
        let mut queue = EventQueue::default();
        filled(&mut queue);
    });
    assert!(
        counted.count_total > 2,
        "a queue that grows allocates: {counted:?}"
    );
}

#[test]
fn a_warm_event_queue_allocates_nothing() {
    let mut queue = EventQueue::default();
    let mut rng = Rng::stream(1, "hold");
    filled(&mut queue);
    let counted = measure(|| hold(&mut queue, &mut rng, 1_000_000));
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert_eq!(queue.len(), 1_000);
}

#[test]
fn a_queue_of_the_right_capacity_allocates_nothing_at_all() {
    let mut queue = EventQueue::with_capacity(1_000);
    let counted = measure(|| {
        filled(&mut queue);
        queue.clear();
        filled(&mut queue);
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

/// The plan of a built-in scenario, changed by assignments, on the default machine.
fn plan(name: &str, set: &[&str]) -> (Plan, MachineProfile) {
    let profile = profile::built_in("ryzen-7950x").unwrap();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/scenarios");
    let file = dir.join(format!("{name}.toml"));
    let mut scenario = Scenario::from_toml(&file, &std::fs::read_to_string(&file).unwrap());
    for assignment in set {
        scenario = scenario.and_then(|scenario| scenario.set(assignment));
    }
    let info = ProfileFacts {
        name: &profile.name,
        cpus: profile.cpus(),
    };
    (scenario.unwrap().plan(&[info]).unwrap(), profile)
}

/// Scenarios and their changes.
type Runs = &'static [(&'static str, &'static [&'static str])];

/// Threads that seldom sleep: contention, tags and software queues, interrupts, budgets and
/// restarts, merging in the plug and at insertion, polling.
const RUNS: Runs = &[
    ("mq-deadline-scaling", &["queue.scheduler=none"]),
    ("nvme-polled", &[]),
    ("nvme-coalescing", &[]),
    ("scsi-limits", &["machine.cpus=32"]),
    ("seq-merge", &[]),
    ("seq-merge", &["queue.scheduler=mq-deadline"]),
    ("nvme-eight-drives", &["machine.profile=ryzen-7950x"]),
];

/// Threads and workers that sleep and wake: flushes, waiting for tags, kblockd.
const SLEEPING: Runs = &[
    ("mq-deadline-scaling", &[]),
    ("mq-deadline-scaling", &["queue.rules=v6.1"]),
    ("nvme-polled", &["job.hipri=0"]),
    ("nvme-randread", &[]),
    ("nvme-randread", &["queue.scheduler=mq-deadline"]),
    ("scsi-limits", &["queue.scheduler=mq-deadline"]),
    ("fsync-flush", &[]),
    ("mixed-prio", &[]),
    ("write-starvation", &[]),
    ("trim", &[]),
    (
        "bfq-burst",
        &["machine.profile=ryzen-7950x", "queue.stable_merge=never"],
    ),
    (
        "bfq-burst",
        &[
            "machine.profile=ryzen-7950x",
            "queue.stable_merge=within-burst",
        ],
    ),
    ("kyber-latency", &["machine.profile=ryzen-7950x"]),
    (
        "nvme-one-process",
        &["machine.profile=ryzen-7950x", "queue.scheduler=kyber"],
    ),
    (
        "disk-stream",
        &[
            "machine.profile=ryzen-7950x",
            "job.direct=0",
            "job.runtime=1000",
        ],
    ),
    (
        "disk-stream",
        &[
            "machine.profile=ryzen-7950x",
            "machine.cpus=2",
            "job.direct=0",
            "job.runtime=1000",
            "job.numjobs=3",
            "queue.rules=v2.6.32",
            "queue.scheduler=cfq",
        ],
    ),
    (
        "cfq-cooperators",
        &["machine.profile=ryzen-7950x", "machine.cpus=2"],
    ),
    (
        "cfq-nfsd",
        &[
            "machine.profile=ryzen-7950x",
            "machine.cpus=2",
            "nfsd.rsize=32k",
        ],
    ),
    (
        "write-starvation",
        &["queue.rules=v2.6.32", "queue.scheduler=deadline"],
    ),
    (
        "scsi-limits",
        &[
            "queue.rules=v2.6.32",
            "queue.scheduler=noop",
            "queue.nr_requests=16",
            "device.submit_queues=1",
        ],
    ),
    (
        "dm-null",
        &[
            "machine.profile=ryzen-7950x",
            "mapped.use_blk_mq=0",
            "mapped.queue.scheduler=deadline",
        ],
    ),
    (
        "nvme-eight-drives",
        &[
            "machine.profile=ryzen-7950x",
            "queue.scheduler=mq-deadline",
            "job.numjobs=4",
            "job.cpus_allowed=0-3",
            "job.iodepth_batch=16",
        ],
    ),
];

/// A run that does not end by itself in the time that is measured here, with what each report has.
fn endless(name: &str, set: &[&str]) -> Simulator {
    let (mut plan, profile) = plan(name, set);
    for thread in &mut plan.threads {
        (thread.ramp_time, thread.runtime) = (Duration(0), Duration::from_secs(3600));
        (thread.number_ios, thread.io_bytes) = (u64::MAX, u64::MAX);
    }
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    simulator.collect_counts();
    simulator
}

/// Runs until `ios` more have ended.
fn run(simulator: &mut Simulator, ios: u64) {
    let end = simulator.recorder().total_ios + ios;
    while simulator.recorder().total_ios < end {
        assert!(simulator.run_some(16).is_none(), "it ended");
    }
}

/// I/Os before which buffers may still grow to their final size.
const WARM_UP: u64 = 20_000;
/// I/Os that are checked.
const STEADY: u64 = 20_000;

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_warm_simulator_allocates_nothing() {
    let mut wrong = Vec::new();
    for (name, set) in RUNS.iter().chain(SLEEPING) {
        let mut simulator = endless(name, set);
        run(&mut simulator, WARM_UP);
        let counted = measure(|| run(&mut simulator, STEADY));
        if counted.count_total > 0 {
            wrong.push(format!("{name} {set:?}: {counted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Largest number of bytes that a whole run holds at once.
fn peak(name: &str, set: &[&str], runtime: Duration) -> u64 {
    let (mut plan, profile) = plan(name, set);
    for thread in &mut plan.threads {
        (thread.ramp_time, thread.runtime) = (Duration(0), runtime);
        (thread.number_ios, thread.io_bytes) = (u64::MAX, u64::MAX);
    }
    let counted = measure(|| {
        let mut simulator = Simulator::new(&plan, &profile).unwrap();
        let outcome = simulator.run(|_| true);
        assert!(matches!(outcome, Outcome::Finished));
        simulator.settle();
    });
    counted.bytes_max
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn memory_does_not_grow_with_the_length_of_a_run() {
    let mut wrong = Vec::new();
    for (name, set) in RUNS.iter().chain(SLEEPING) {
        let short = peak(name, set, Duration::from_millis(20));
        let long = peak(name, set, Duration::from_millis(80));
        if long.abs_diff(short) > 4096 {
            wrong.push(format!("{name} {set:?}: {short} bytes, then {long}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
