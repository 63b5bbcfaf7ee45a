//! Waits for a lock by caller, and distances: sums of callers are those of the lock, callers are
//! labels that run under it, and distances follow the topology.

use scenario::report::{LockReport, Origin, Report};
use sim::machine::Simulator;

use crate::runs;

/// Threads, one per CPU of these, on one device with mq-deadline.
fn run(threads: u16, cpus: &str) -> Report {
    let text = format!(
        "[queue]\nscheduler = \"mq-deadline\"\n[device]\ntype = \"null_blk\"\nsubmit_queues = 2\n\
         [[job]]\nrw = \"randread\"\nbs = \"512\"\nioengine = \"io_uring\"\ndirect = 1\n\
         norandommap = true\niodepth = 4\nnumjobs = {threads}\nthread = 1\nruntime = \"2ms\"\n\
         ramp_time = \"1ms\"\ntime_based = true\ncpus_allowed = \"{cpus}\"\n\
         cpus_allowed_policy = \"split\"\n"
    );
    let profile = runs::machine();
    let plan = runs::plan_of(&text);
    let mut simulator = Simulator::new(&plan, &profile).unwrap();
    simulator.collect_counts();
    assert!(runs::to_its_end(&mut simulator).is_none());
    simulator.settle();
    let recorder = simulator.recorder();
    Report::new(Origin::default(), &plan, &profile, recorder, None)
}

fn handoffs(lock: &LockReport) -> [u64; 5] {
    let far = lock.handoffs.unwrap();
    [
        far.same_cpu,
        far.sibling,
        far.same_cache,
        far.same_socket,
        far.other_socket,
    ]
}

/// The callers under dd->lock in docs/internals/architecture.md.
const UNDER_DD_LOCK: [&str; 4] = [
    "submit.elevator-merge",
    "plug.elevator",
    "insert.elevator",
    "pass.pick",
];

#[test]
fn callers_and_distances_add_up_to_their_lock() {
    // Both threads of four cores, one die, four cores of each die: the possible distances.
    let far = [
        ("0-3,16-19", [true, true, true, false, false]),
        ("0-7", [true, false, true, false, false]),
        ("0-3,8-11", [true, false, true, true, false]),
    ];
    for (cpus, may) in far {
        let report = run(8, cpus);
        let lock = report.locks.iter().find(|lock| lock.name == "dd->lock");
        let lock = lock.unwrap();
        assert!(lock.contended > 1000, "{cpus}: {lock:?}");
        let all = lock.callers.iter();
        assert_eq!(
            all.clone().map(|c| c.contended).sum::<u64>(),
            lock.contended
        );
        assert_eq!(all.clone().map(|c| c.wait_ns).sum::<u64>(), lock.wait_ns);
        let longest = all.clone().map(|c| c.wait_max_ns).max();
        assert_eq!(longest, Some(lock.wait_max_ns));
        for caller in all {
            assert!(UNDER_DD_LOCK.contains(&caller.label), "{cpus}: {caller:?}");
        }
        // Dispatch waits, and so does the look for a merge.
        let waits = |label: &str| lock.callers.iter().any(|caller| caller.label == label);
        assert!(
            waits("pass.pick") && waits("submit.elevator-merge"),
            "{cpus}: {lock:?}"
        );
        let far = handoffs(lock);
        assert_eq!(far.iter().sum::<u64>(), lock.contended, "{cpus}: {far:?}");
        for (distance, may) in may.into_iter().enumerate().skip(1) {
            assert_eq!(far[distance] > 0, may, "{cpus}: {far:?}");
        }
        let text = report.to_string();
        assert!(text.contains("\n  dd->lock: waits in "), "{text}");
    }
}

#[test]
fn nobody_waits_alone() {
    let report = run(1, "3");
    assert!(report.locks.iter().any(|lock| lock.name == "dd->lock"));
    for lock in &report.locks {
        assert_eq!((lock.contended, lock.callers.len()), (0, 0), "{lock:?}");
        assert_eq!(handoffs(lock), [0; 5]);
    }
    let text = report.to_string();
    assert!(!text.contains("waits in"), "{text}");
    assert!(!text.contains("handed over"), "{text}");
}
