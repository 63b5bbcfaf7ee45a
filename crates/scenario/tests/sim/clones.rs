//! Clones other than one bio on its way to a driver that accepts it: of several bios, for a path
//! that is stopped, for one with a scheduler, and while the device above is suspended.

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, QueueId};
use blkmq::rules::{BioUpdates, CloneInsertion, Quiesce, Rules};
use blkmq::time::SimTime;
use sim::machine::Simulator;
use sim::plan::Plan;

use crate::runs;

const ABOVE: QueueId = QueueId(0);

/// A device over two paths, with more of these tables and keys: 2,000 I/Os of one thread.
fn plan(rules: &str, [queue, device, mapped, job]: [&str; 4]) -> Plan {
    runs::plan_of(&format!(
        "[queue]\nrules = \"{rules}\"\n{queue}\n\
         [device]\ntype = \"null_blk\"\nnr_devices = 2\npoll_queues = 0\nsubmit_queues = 1\n\
         irqmode = 2\n{device}\n[mapped]\n\
         table = \"0 131072 multipath 0 0 1 1 round-robin 0 2 1 nullb0 1 nullb1 1\"\n{mapped}\n\
         [[job]]\nname = \"one\"\ndirect = 1\nioengine = \"libaio\"\nnorandommap = true\n{job}\n"
    ))
}

type Points = Vec<(SimTime, CpuId, u32, TracePoint)>;

/// Runs to the end; returns the trace of each level.
fn run(plan: &Plan) -> (Simulator, [Points; 2]) {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    simulator.settle();
    let (above, below) = simulator
        .take_trace()
        .into_iter()
        .partition(|(.., point)| point.queue == ABOVE);
    (simulator, [above, below])
}

/// How often an action, and of how many sectors together.
fn sum(points: &Points, action: TraceAction) -> (u64, u64) {
    let of = points.iter().map(|(.., point)| point);
    let of = of.filter(|point| point.action == action);
    of.fold((0, 0), |(count, sectors), point| {
        (count + 1, sectors + u64::from(point.sectors.0))
    })
}

/// Neighbours merge above, and each clone has all bios of its request. Up to 4.12 a request traces
/// a C for each of its bios, later one.
#[test]
fn a_clone_has_all_bios_of_its_request() {
    let job = "rw = \"read\"\nbs = \"4k\"\niodepth = 32\niodepth_batch = 16\n\
               iodepth_batch_complete_min = 16\nnumber_ios = 2000";
    let mut rules: Vec<Rules> = Rules::MAPPED.into_iter().collect();
    rules.extend([Rules::v6_1(), Rules::v6_12()]);
    for rules in rules {
        let (name, message) = (rules.name, rules.device_mapper.requests.bio_updates);
        let slow = "completion_nsec = 200000\nhw_queue_depth = 64";
        let (simulator, [above, below]) = run(&plan(name, ["", slow, "use_blk_mq = 1", job]));
        assert_eq!(simulator.recorder().total_ios, 2_000, "{name}");
        let ((requests, sectors), clones) = (
            sum(&above, TraceAction::Issue),
            sum(&below, TraceAction::Issue),
        );
        assert!(
            requests < 1_000,
            "{name}: {requests} requests of 2,000 I/Os"
        );
        assert_eq!((requests, sectors), clones, "{name}: nothing came back");
        assert_eq!(sectors, 16_000, "{name}");
        assert_eq!(sum(&below, TraceAction::Complete), clones, "{name}");
        let mut ends: Vec<(u64, u32)> = above
            .iter()
            .filter(|(.., point)| point.action == TraceAction::Complete)
            .map(|(.., point)| (point.sector.0, point.sectors.0))
            // The request itself ends after its bios, with nothing left.
            .filter(|&(_, sectors)| sectors > 0)
            .collect();
        match message {
            BioUpdates::Last => assert_eq!(ends.len() as u64, requests, "{name}"),
            BioUpdates::Each => {
                ends.sort_unstable();
                let each = (0..2_000).map(|at| (8 * at, 8));
                assert!(ends.into_iter().eq(each), "{name}: a C is missing");
            }
        }
    }
}

/// A path that its driver has stopped (null_blk over its mbps) takes clones into its own queue, or
/// into its scheduler, and the request above counts as issued. The scheduler's counts of them come
/// back: kyber's tokens, and mq-deadline's of a priority, without which lower ones would wait for
/// 10 s each time (prio_aging_expire).
#[test]
fn a_stopped_path_takes_clones_into_its_queue() {
    let job = "rw = \"randrw\"\nbs = \"4k\"\niodepth = 16\nnumber_ios = 1000";
    let job = format!(
        "{job}\nprioclass = 1\n[[job]]\nname = \"two\"\ndirect = 1\nioengine = \"libaio\"\n\
         norandommap = true\n{job}\nprioclass = 2"
    );
    for rules in [Rules::v4_12(), Rules::v6_1(), Rules::v6_12()] {
        for below in ["none", "mq-deadline", "kyber", "bfq"] {
            let name = format!("{}, {below}", rules.name);
            let slow = format!(
                "completion_nsec = 10000\nmbps = 40\nhw_queue_depth = 64\n\
                 queue = {{ scheduler = \"{below}\" }}"
            );
            let queue = "scheduler = \"none\"";
            let plan = plan(rules.name, [queue, &slow, "use_blk_mq = 1", &job]);
            let (simulator, [above, below]) = run(&plan);
            assert_eq!(simulator.recorder().total_ios, 2_000, "{name}");
            let inserted = sum(&below, TraceAction::Insert).0;
            assert!(inserted > 20, "{name}: {inserted} clones waited below");
            if rules.device_mapper.requests.insertion == CloneInsertion::Direct {
                assert!(inserted < 2_000, "{name}: the others went to the driver");
                let again = sum(&above, TraceAction::Requeue).0;
                assert!(again < inserted, "{name}: {again} came back above");
            }
            for path in &simulator.block_layer().queues[1..] {
                let tokens = path.tokens.iter().map(|of| of.map.busy_count());
                assert_eq!(tokens.sum::<u32>(), 0, "{name}: tokens of a path");
            }
            for job in &simulator.recorder().jobs {
                assert!(job.until.0 < 1_000_000_000, "{name}: until {:?}", job.until);
            }
        }
    }
}

/// A scheduler of a path has the clones of 4.12 in its lists; later they bypass it, but it still
/// limits the tags of writes: two of each word, or two in all (6.12).
#[test]
fn clones_go_through_the_scheduler_of_a_path_or_around_it() {
    let job = "rw = \"randwrite\"\nbs = \"4k\"\niodepth = 64\nnumber_ios = 2000";
    for rules in [Rules::v4_12(), Rules::v6_1(), Rules::v6_12()] {
        let name = rules.name;
        let queue = "scheduler = \"none\"";
        let most_of = |limit: &str| {
            let slow = format!(
                "completion_nsec = 200000\nhw_queue_depth = 256\n\
                 queue = {{ scheduler = \"mq-deadline\", nr_requests = 256{limit} }}"
            );
            let (simulator, [_, below]) = run(&plan(name, [queue, &slow, "use_blk_mq = 1", job]));
            assert_eq!(simulator.recorder().total_ios, 2_000, "{name}");
            let count = |action| sum(&below, action).0;
            assert_eq!(count(TraceAction::Issue), 2_000, "{name}");
            let around = rules.device_mapper.requests.insertion == CloneInsertion::Direct;
            let inserted = if around { 0 } else { 2_000 };
            assert_eq!(count(TraceAction::Insert), inserted, "{name}");
            let paths = &simulator.recorder().paths;
            paths.iter().map(|path| path.depth.max).max().expect("two")
        };
        let (free, limited) = (most_of(""), most_of(", async_depth = 2"));
        assert!(free >= 16, "{name}: {free} at once");
        let words = if name == "v6.12" { 1 } else { 4 };
        assert!(limited <= 2 * words, "{name}: {limited} at once");
    }
}

/// The target of 4.5 counts how long it works on a path, under m->lock or without it.
#[test]
fn a_path_is_kept_for_its_count_whatever_the_lock() {
    let job = "rw = \"randread\"\nbs = \"4k\"\niodepth = 4\nnumber_ios = 2000";
    for lock in ["whole", "changes"] {
        let mapped = format!("use_blk_mq = 1\nrr_min_io_rq = 50\nkernel.target_lock = \"{lock}\"");
        let (_, [_, below]) = run(&plan("v4.5", ["", "", &mapped, job]));
        let issues = below
            .iter()
            .filter(|(.., point)| point.action == TraceAction::Issue);
        let paths: Vec<QueueId> = issues.map(|(.., point)| point.queue).collect();
        assert_eq!(paths.len(), 2_000, "{lock}");
        let runs: Vec<usize> = paths
            .chunk_by(PartialEq::eq)
            .map(<[QueueId]>::len)
            .collect();
        assert_eq!(runs, [50; 40], "{lock}");
    }
}

/// A change of the scheduler of a suspended device does not resume it: later I/O waits for dmsetup
/// resume (quiesce_depth).
#[test]
fn a_change_of_the_scheduler_leaves_a_device_suspended() {
    let job =
        "rw = \"randread\"\nbs = \"4k\"\niodepth = 4\nnumber_ios = 2000\nstartdelay = \"10ms\"";
    let events = "use_blk_mq = 1\n[[mapped.suspend]]\nat_us = 1000\nresume_us = 20000\n\
                  [[change]]\nat_us = 5000\nscheduler = \"mq-deadline\"";
    for rules in [Rules::v6_1(), Rules::v6_12()] {
        let name = rules.name;
        let queue = "scheduler = \"none\"";
        let mut plan = plan(name, [queue, "", events, job]);
        let first = |points: &Points, action| {
            let mut of = points.iter().filter(|(.., point)| point.action == action);
            of.next().expect("there is one").0.0 / 1_000_000
        };
        let (simulator, [above, below]) = run(&plan);
        assert_eq!(simulator.recorder().total_ios, 2_000, "{name}");
        assert_eq!(first(&above, TraceAction::Queue), 10, "{name}");
        let issued = [&above, &below].map(|points| first(points, TraceAction::Issue));
        assert_eq!(issued, [20, 20], "{name}");
        let changes = &simulator.recorder().changes;
        let changed = changes[0].ended.is_some_and(|at| at.0 < 10_000_000);
        assert!(changed, "{name}: {changes:?}");
        // The mutant: as before the calls were counted.
        plan.disks[0].queue.rules.quiesce = Quiesce::Flag;
        let (_, [_, below]) = run(&plan);
        assert_eq!(first(&below, TraceAction::Issue), 10, "{name}");
    }
}
