//! A device over two null_blks, on the real paths of both levels: what goes in comes out, tags of
//! both levels come back, and a clone whose end is forgotten is a stall.

use blkmq::env::{Bit, TraceAction};
use blkmq::request::{HctxId, Place, QueueId};
use meddler::Meddler;
use sim::machine::{Below, Simulator, Stall};
use sim::plan::{DeviceId, DeviceKind, DiskId, FaultPlan, Plan, Ratio};

use crate::meddler;
use crate::runs;

const UPPER: QueueId = QueueId(0);
const LOWER: [QueueId; 2] = [QueueId(1), QueueId(2)];

/// 4,000 random reads of four threads, 16 deep each, from one null_blk.
fn bare(scheduler: &str, irqmode: u8) -> Plan {
    let text = format!(
        "[device]\ntype = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 0\nirqmode = {irqmode}\n\
         [queue]\nscheduler = \"{scheduler}\"\n\
         [[job]]\nname = \"four\"\nrw = \"randread\"\ndirect = 1\nioengine = \"io_uring\"\n\
         iodepth = 16\nnumjobs = 4\nnumber_ios = 1000\nnorandommap = true\n\
         cpus_allowed = \"0-3\"\ncpus_allowed_policy = \"split\"\n"
    );
    runs::plan_of(&text)
}

/// The same over two such devices without scheduler, of this many tags each.
fn stacked(scheduler: &str, irqmode: u8, tags: u32) -> Plan {
    let mut plan = bare(scheduler, irqmode);
    let mut lower = bare("none", irqmode).disks.remove(0);
    lower.device.queue_depth = tags;
    lower.queue.nr_requests = tags;
    lower.queue.nr_requests_first = tags;
    let hctxs = u32::from(lower.capacity.hctxs);
    lower.capacity.driver_tags = tags * hctxs;
    lower.capacity.requests = (tags + 1) * hctxs;
    let mut other = lower.clone();
    "nullb1".clone_into(&mut lower.device.name);
    "nullb2".clone_into(&mut other.device.name);
    plan.stack(DiskId(0), vec![lower, other]);
    plan
}

/// How a run went.
struct Ran {
    simulator: Simulator,
    stall: Option<Box<Stall>>,
    /// D and R of each queue.
    issued: Vec<u64>,
    requeued: Vec<u64>,
    /// Virtual time it took, ns.
    took: u64,
}

fn run(plan: &Plan, change: impl FnOnce(&mut Simulator)) -> Ran {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    change(&mut simulator);
    let stall = runs::to_its_end(&mut simulator);
    simulator.settle();
    let points = simulator.take_trace();
    let count = |action: TraceAction| {
        let queues = 0..simulator.block_layer().queues.len() as u8;
        let of = |queue| {
            let points = points.iter().map(|(.., point)| point);
            let points = points.filter(|p| p.action == action && p.queue == QueueId(queue));
            points.count() as u64
        };
        queues.map(of).collect()
    };
    Ran {
        issued: count(TraceAction::Issue),
        requeued: count(TraceAction::Requeue),
        took: simulator.now().0,
        stall,
        simulator,
    }
}

/// Nothing is lost, and nothing of either level is left in use.
fn assert_whole(ran: &Ran) {
    assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
    assert_eq!(ran.simulator.recorder().total_ios, 4_000);
    let mq = ran.simulator.block_layer();
    for queue in &mq.queues {
        let id = queue.id;
        queue.with_pool(|pool| {
            let free = |place| matches!(place, Place::Free | Place::PlugCache);
            let left = pool.iter().filter(|(_, rq)| !free(rq.place)).count();
            assert_eq!(left, 0, "requests of queue {id}");
            assert_eq!(pool.bios_in_use(), 0, "bios of queue {id}");
        });
        for (index, hctx) in (0..).zip(&queue.hctxs) {
            let driver = mq.set_of(id).driver_of(HctxId(index));
            assert_eq!(driver.busy_count(), 0, "driver tags of queue {id}");
            assert!(!hctx.restart.peek(), "queue {id} waits for a completion");
        }
        for map in &queue.sched {
            assert_eq!(map.busy_count(), 0, "scheduler tags of queue {id}");
        }
    }
}

#[test]
fn each_request_is_one_clone_and_devices_take_turns() {
    for scheduler in ["none", "mq-deadline"] {
        for irqmode in 0..3 {
            let ran = run(&stacked(scheduler, irqmode, 64), |_| {});
            assert_whole(&ran);
            let [upper, first, second] = ran.issued[..] else {
                panic!("three queues")
            };
            assert_eq!(upper, 4_000 + ran.requeued[0], "{scheduler}, {irqmode}");
            assert_eq!(first + second, 4_000, "{scheduler}, {irqmode}");
            assert!(first.abs_diff(second) <= 2 + ran.requeued[0], "{first}");
        }
    }
}

#[test]
fn what_is_refused_below_stays_above_and_is_offered_again() {
    for scheduler in ["none", "mq-deadline"] {
        // 64 above, 8 below.
        let ran = run(&stacked(scheduler, 2, 4), |_| {});
        assert_whole(&ran);
        assert!(ran.requeued[0] > 100, "{scheduler}: {:?}", ran.requeued);
        assert_eq!(ran.issued[1] + ran.issued[2], 4_000, "{scheduler}");
        // The device below says no as well.
        let mut plan = stacked(scheduler, 2, 64);
        let DeviceKind::Stacked(kind) = &mut plan.disks[0].device.kind else {
            panic!("it is stacked")
        };
        kind.below[1].device.fault.busy = Ratio {
            numerator: 1,
            denominator: 50,
        };
        let ran = run(&plan, |_| {});
        assert_whole(&ran);
        assert!(ran.requeued[2] > 10, "{scheduler}: {:?}", ran.requeued);
        assert!(ran.requeued[0] >= ran.requeued[2], "{:?}", ran.requeued);
    }
}

#[test]
fn two_levels_cost_more_than_one() {
    // One at a time, from one thread: nothing overlaps.
    let alone = |mut plan: Plan| {
        plan.threads.truncate(1);
        plan.threads[0].iodepth = 1;
        run(&plan, |_| {}).took
    };
    let percent =
        |irqmode| alone(stacked("none", irqmode, 64)) * 100 / alone(bare("none", irqmode));
    // Inside queue_rq alone; with one hardware queue the second completion is a softirq, for which
    // the thread sleeps.
    let inline = percent(0);
    assert!((200..=350).contains(&inline), "{inline} % of the time");
    // A softirq either way: what is left is the clone.
    let softirq = percent(1);
    assert!((103..=130).contains(&softirq), "{softirq} % of the time");
}

#[test]
fn an_error_below_is_an_error_above() {
    let mut plan = stacked("none", 2, 64);
    let DeviceKind::Stacked(kind) = &mut plan.disks[0].device.kind else {
        panic!("it is stacked")
    };
    kind.below[0].device.fault.error = Ratio {
        numerator: 1,
        denominator: 10,
    };
    let ran = run(&plan, |_| {});
    assert!(ran.stall.is_none(), "threads end at their first error");
    let failed = ran.simulator.recorder().total_ios;
    assert!((4..4_000).contains(&failed), "{failed} ended");
}

/// A fault of the stacked device itself, which threads survive.
fn faulty(scheduler: &str, fault: impl FnOnce(&mut FaultPlan)) -> Plan {
    let mut plan = stacked(scheduler, 2, 64);
    fault(&mut plan.disks[0].device.fault);
    for thread in &mut plan.threads {
        thread.survives_read = true;
    }
    plan
}

const ONE_OF_TWENTY: Ratio = Ratio {
    numerator: 1,
    denominator: 20,
};

fn errors(ran: &Ran) -> u64 {
    let directions = ran.simulator.recorder().jobs.iter();
    let directions = directions.flat_map(|job| &job.directions);
    directions.map(|direction| direction.errors).sum()
}

#[test]
fn a_stacked_device_refuses_by_itself_and_nothing_below_hears_of_it() {
    let busy = |fault: &mut FaultPlan| fault.busy = ONE_OF_TWENTY;
    let requeue = |fault: &mut FaultPlan| fault.requeue = ONE_OF_TWENTY;
    for scheduler in ["none", "mq-deadline"] {
        for plan in [faulty(scheduler, busy), faulty(scheduler, requeue)] {
            let ran = run(&plan, |_| {});
            assert_whole(&ran);
            assert_eq!(errors(&ran), 0, "{scheduler}");
            assert!(ran.requeued[0] > 100, "{scheduler}: {:?}", ran.requeued);
            assert_eq!(ran.requeued[1..], [0, 0], "{scheduler}");
            assert_eq!(ran.issued[1] + ran.issued[2], 4_000, "{scheduler}");
        }
    }
}

#[test]
fn an_error_of_the_stacked_device_comes_when_the_clone_has_ended_well() {
    for scheduler in ["none", "mq-deadline"] {
        let plan = faulty(scheduler, |fault| fault.error = ONE_OF_TWENTY);
        let ran = run(&plan, |_| {});
        assert_whole(&ran);
        assert!((100..400).contains(&errors(&ran)), "{}", errors(&ran));
        assert_eq!(ran.issued[1] + ran.issued[2], 4_000, "all had clones");
    }
    // Clones that are given up for want of a tag change nothing of that.
    let mut plan = stacked("none", 2, 4);
    plan.disks[0].device.fault.error = ONE_OF_TWENTY;
    plan.threads.iter_mut().for_each(|t| t.survives_read = true);
    let ran = run(&plan, |_| {});
    assert_whole(&ran);
    assert!(ran.requeued[0] > 100, "{:?}", ran.requeued);
    assert!((100..400).contains(&errors(&ran)), "{}", errors(&ran));
}

#[test]
fn what_a_stacked_device_never_answers_has_no_clone() {
    let plan = faulty("none", |fault| fault.timeout = ONE_OF_TWENTY);
    let ran = run(&plan, |_| {});
    assert_whole(&ran);
    let timeouts = errors(&ran);
    assert!((100..400).contains(&timeouts), "{timeouts}");
    assert_eq!(ran.issued[0], 4_000, "{:?}", ran.issued);
    assert_eq!(ran.issued[1] + ran.issued[2], 4_000 - timeouts);
    assert!(ran.took > plan.disks[0].queue.io_timeout.0, "{}", ran.took);
    let depth = ran.simulator.recorder().device_depth.max;
    assert!(
        depth <= 64,
        "{depth}: what has no clone is with no device below"
    );

    let plan = faulty("mq-deadline", |fault| fault.lost_completion = ONE_OF_TWENTY);
    let stall = run(&plan, |_| {}).stall.expect("a request never ends");
    let text = stall.to_string();
    for words in ["no clone of it is below", "of them lost for good"] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
}

/// The first so many requests go through: each is counted once, and its fate drawn once, though its
/// clone was given up.
#[test]
fn faults_of_a_stacked_device_begin_after_so_many_requests() {
    let mut plan = stacked("none", 2, 4);
    let fault = &mut plan.disks[0].device.fault;
    fault.after_commands = 3_900;
    fault.error = Ratio {
        numerator: 1,
        denominator: 1,
    };
    plan.threads.iter_mut().for_each(|t| t.survives_read = true);
    let ran = run(&plan, |_| {});
    assert_whole(&ran);
    assert!(ran.requeued[0] > 100, "{:?}", ran.requeued);
    assert_eq!(errors(&ran), 100);
}

#[test]
fn a_forgotten_request_above_is_a_stall() {
    let ran = run(&stacked("none", 1, 64), |simulator| {
        Meddler::around(simulator, DeviceId(0), |meddler| meddler.forgets = 100);
    });
    let stall = ran.stall.expect("a request never ends").to_string();
    for words in [
        "stacked: ",
        "no clone of it is below, and the device above has not ended it",
        "which has announced no completion and set no timer",
    ] {
        assert!(stall.contains(words), "{words}:\n{stall}");
    }
    let mq = ran.simulator.block_layer();
    let with_device = |queue: QueueId| {
        let with = |rq: &blkmq::request::Request| rq.place == Place::Device;
        mq.queue(queue)
            .with_pool(|pool| pool.iter().filter(|(_, rq)| with(rq)).count())
    };
    assert!(with_device(UPPER) > 0, "it waits above");
    assert_eq!(LOWER.map(with_device), [0, 0], "nothing is below");
}

/// What waits above waits for a clone, and the report follows it to the device that has lost it.
#[test]
fn a_completion_lost_below_is_followed_through_both_levels() {
    let mut plan = stacked("mq-deadline", 2, 64);
    let DeviceKind::Stacked(kind) = &mut plan.disks[0].device.kind else {
        panic!("it is stacked")
    };
    kind.below[1].device.fault.lost_completion = Ratio {
        numerator: 1,
        denominator: 100,
    };
    let ran = run(&plan, |_| {});
    let stall = ran.stall.expect("a request never ends");
    let (mut lost, mut text) = (0, String::new());
    for above in &stall.requests {
        assert_eq!(above.disk.as_deref(), Some("nullb0"), "a clone by itself");
        let Some(Below::Clone(clone)) = &above.below else {
            assert_ne!(above.place, Place::Device, "{stall}");
            continue;
        };
        assert_eq!(
            clone.disk.as_deref(),
            Some("nullb2"),
            "nullb1 loses nothing"
        );
        assert_eq!((above.place, clone.place), (Place::Device, Place::Device));
        assert_eq!((above.sector, above.sectors), (clone.sector, clone.sectors));
        assert!(clone.below.is_none(), "null_blk is no stacked device");
        lost += 1;
        text = format!("{stall}");
    }
    for words in [
        "nullb0 request ",
        "    its clone below: nullb2 request ",
        &format!("  {lost} of them are with the device"),
        &format!("{lost} never answered, {lost} of them lost for good"),
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
}
