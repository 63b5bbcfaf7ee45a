//! Disks of one device: two namespaces of a drive share its hardware and its tags, and each request
//! ends on its own queue.

use blkmq::dm::table::Table;
use blkmq::env::TraceAction;
use blkmq::request::{Place, QueueId, SetId};
use sim::machine::{Simulator, Stall};
use sim::plan::{DiskId, DiskPlan, FaultPlan, MappedPlan, Owner, Plan, Ratio};

use crate::runs;

const IOS: u64 = 2_000;

/// Two drives, a job of two threads on each; the second writes. `keys` are of the drives, `job` of
/// the jobs.
fn two(scheduler: &str, keys: &str, job: &str) -> Plan {
    let jobs = [("nvme0n1", "randread"), ("nvme1n1", "randwrite")].map(|(disk, rw)| {
        format!(
            "[[job]]\nname = \"{disk}\"\nfilename = \"/dev/{disk}\"\nrw = \"{rw}\"\ndirect = 1\n\
             ioengine = \"io_uring\"\niodepth = 16\nnumjobs = 2\nnumber_ios = {}\n\
             norandommap = true\ncpus_allowed = \"0-3\"\n{job}\n",
            IOS / 2
        )
    });
    let text = format!(
        "[device]\ntype = \"nvme\"\ncount = 2\nnr_queues = 2\n{keys}\n\
         [queue]\nscheduler = \"{scheduler}\"\nnomerges = 2\n{}",
        jobs.concat()
    );
    runs::plan_of(&text)
}

/// The same as namespaces of one.
fn joined(scheduler: &str, keys: &str, job: &str) -> Plan {
    let mut plan = two(scheduler, keys, job);
    plan.join(DiskId(0), 1);
    plan
}

struct Ran {
    simulator: Simulator,
    stall: Option<Box<Stall>>,
    took: u64,
}

fn run(plan: &Plan) -> Ran {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    simulator.settle();
    Ran {
        took: simulator.now().0,
        stall,
        simulator,
    }
}

/// Number of trace points of each queue.
fn count(ran: &mut Ran, actions: &[TraceAction]) -> Vec<[u64; 2]> {
    let points = ran.simulator.take_trace();
    let of = |action: &TraceAction| {
        [QueueId(0), QueueId(1)].map(|queue| {
            let points = points.iter().map(|(.., point)| point);
            let points = points.filter(|p| p.action == *action && p.queue == queue);
            points.count() as u64
        })
    };
    actions.iter().map(of).collect()
}

/// Each disk's job has done all of its I/Os, and nothing is left in use.
fn assert_whole(ran: &mut Ran) {
    assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
    let recorder = ran.simulator.recorder();
    assert_eq!(
        recorder.jobs[0].directions[0].ios, IOS,
        "reads of the first"
    );
    assert_eq!(
        recorder.jobs[1].directions[1].ios, IOS,
        "writes of the second"
    );
    let mq = ran.simulator.block_layer();
    for queue in &mq.queues {
        queue.with_pool(|pool| {
            let free = |place| matches!(place, Place::Free | Place::PlugCache);
            assert!(
                pool.iter().all(|(_, rq)| free(rq.place)),
                "requests are left"
            );
            assert_eq!(pool.bios_in_use(), 0, "bios are left");
        });
    }
    let driver = &mq.set_of(QueueId(0)).driver;
    assert!(
        driver.iter().all(|map| map.busy_count() == 0),
        "tags are left"
    );
    let issued = count(ran, &[TraceAction::Issue])[0];
    assert_eq!(issued, [IOS; 2], "each of the right queue");
}

#[test]
fn a_device_of_two_disks_is_one_device_on_one_tag_set() {
    let plan = joined("none", "", "");
    assert_eq!([plan.disks[0].set, plan.disks[1].set], [SetId(0); 2]);
    assert_eq!(plan.disks[1].owner, Some(Owner::Disk(DiskId(0))));
    let simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    let mq = simulator.block_layer();
    assert!(core::ptr::eq(mq.set_of(QueueId(0)), mq.set_of(QueueId(1))));
}

#[test]
fn each_request_ends_on_its_own_queue() {
    for scheduler in ["none", "mq-deadline"] {
        for (keys, job) in [
            ("", ""),
            // Few tags for both.
            ("io_queue_depth = 9", ""),
            // A poller of one finds completions of the other, too.
            ("poll_queues = 1", "hipri = 1"),
            ("coalesce_threshold = 7\ncoalesce_time = 1", ""),
        ] {
            let mut ran = run(&joined(scheduler, keys, job));
            assert_whole(&mut ran);
        }
    }
}

#[test]
fn what_the_hardware_does_for_one_the_other_waits_for() {
    // Ten commands at a time for a tenth of a millisecond each.
    let keys = "latency_ns = 100000\njitter_percent = 0\nchannels = 10";
    let (alone, both) = (run(&two("none", keys, "")), run(&joined("none", keys, "")));
    let percent = both.took * 100 / alone.took;
    assert!((185..=215).contains(&percent), "{percent} % of the time");
}

/// null_blk stops and starts all queues of the device that has used up its share of bandwidth.
///
/// v6.1 issues a single read by itself, and a refusal of it is traced as R. v6.12 passes it to
/// null_queue_rqs() as its plug, which leaves no such record.
#[test]
fn a_device_that_stops_its_queues_stops_and_starts_those_of_all_disks() {
    let mut plan = runs::plan_of(
        "[device]\ntype = \"null_blk\"\nnr_devices = 2\nmbps = 40\n\
         [queue]\nrules = \"v6.1\"\n\
         [[job]]\nname = \"a\"\nfilename = \"/dev/nullb0:/dev/nullb1\"\nrw = \"randread\"\n\
         direct = 1\nioengine = \"io_uring\"\niodepth = 16\nnumjobs = 2\nnumber_ios = 4000\n\
         bs = \"4k\"\nnorandommap = true\n",
    );
    let alone = run(&plan);
    plan.join(DiskId(0), 1);
    // Which disk is first when the device has used up its share depends on the seed. The timer
    // starts the queues of the first disk first: it is refused about twice as often.
    let mut refused = [0; 2];
    for seed in 1..=6 {
        plan.seed = seed;
        let mut both = run(&plan);
        let of_run = count(&mut both, &[TraceAction::Requeue])[0];
        refused = [refused[0] + of_run[0], refused[1] + of_run[1]];
    }
    let most = refused[0] + refused[1];
    assert!(refused.iter().all(|&times| times * 4 > most), "{refused:?}");
    let both = run(&plan);
    assert!(both.stall.is_none(), "{}", both.stall.unwrap());
    assert_eq!(both.simulator.recorder().total_ios, 8_000);
    let percent = both.took * 100 / alone.took;
    assert!((185..=215).contains(&percent), "{percent} % of the time");
}

#[test]
fn a_fault_of_the_device_comes_to_both_disks() {
    let ratio = Ratio {
        numerator: 1,
        denominator: 20,
    };
    let faulty = |fault: &dyn Fn(&mut FaultPlan)| {
        let mut plan = two("none", "", "");
        for disk in &mut plan.disks {
            fault(&mut disk.device.fault);
        }
        for thread in &mut plan.threads {
            (thread.survives_read, thread.survives_write) = (true, true);
        }
        plan.join(DiskId(0), 1);
        plan
    };
    let refusing = faulty(&|fault| (fault.busy, fault.requeue) = (ratio, ratio));
    let mut ran = run(&refusing);
    let requeued = count(&mut ran, &[TraceAction::Requeue])[0];
    assert!(ran.stall.is_none());
    assert_eq!(ran.simulator.recorder().total_ios, 2 * IOS);
    assert!(requeued.iter().all(|&count| count > 50), "{requeued:?}");

    let ran = run(&faulty(&|fault| fault.timeout = ratio));
    assert!(ran.stall.is_none(), "{}", ran.stall.unwrap());
    let directions = ran.simulator.recorder().jobs.iter();
    let errors: Vec<u64> = directions
        .map(|job| job.directions.iter().map(|of| of.errors).sum())
        .collect();
    assert!(
        errors.iter().all(|count| (50..200).contains(count)),
        "{errors:?}"
    );

    // A stall lists the device once.
    let stall = run(&faulty(&|fault| fault.lost_completion = ratio)).stall;
    let stall = stall.expect("a request never ends");
    assert_eq!(stall.devices.len(), 1, "{stall}");
    let disks: Vec<_> = stall.requests.iter().map(|rq| rq.disk.as_deref()).collect();
    for disk in ["nvme0n1", "nvme1n1"] {
        assert!(disks.contains(&Some(disk)), "{stall}");
    }
}

/// A plan in which three of four disks are joined, and the fourth is to be stacked.
fn four() -> Plan {
    let mut plan = runs::plan_of(
        "[device]\ntype = \"nvme\"\ncount = 4\nnr_queues = 2\n[[job]]\n\
         filename = \"/dev/nvme0n1:/dev/nvme1n1:/dev/nvme2n1:/dev/nvme3n1\"\nrw = \"randread\"\n\
         direct = 1\nioengine = \"io_uring\"\niodepth = 16\nnumber_ios = 2000\n\
         norandommap = true\n",
    );
    plan.join(DiskId(1), 2);
    plan
}

/// Paths of one group, in turn.
fn mapped(below: Vec<DiskPlan>) -> MappedPlan {
    let paths: String = (0..below.len()).map(|path| format!(" 8:{path}")).collect();
    let line = format!(
        "0 8 multipath 0 0 1 1 round-robin 0 {} 0{paths}",
        below.len()
    );
    let rules = below[0].queue.rules.device_mapper;
    MappedPlan::new(Table::parse(&line, &rules, 1).unwrap(), below)
}

/// Numbers of queues and devices differ from there on.
#[test]
fn a_mapped_device_stands_on_others_beside_joined_disks() {
    let mut plan = four();
    let sets: Vec<SetId> = plan.disks.iter().map(|disk| disk.set).collect();
    assert_eq!(sets, [0, 1, 1, 1].map(SetId));
    let mut lower = plan.disks[0].clone();
    "nvme4n1".clone_into(&mut lower.device.name);
    let below = vec![lower.clone(), lower];
    plan.map(DiskId(0), mapped(below));
    let ran = run(&plan);
    assert!(ran.stall.is_none(), "{}", ran.stall.unwrap());
    assert_eq!(ran.simulator.recorder().total_ios, 2_000);
    let ios = ran.simulator.recorder().disks.iter();
    let ios: Vec<u64> = ios.map(|disk| disk.directions[0].ios).collect();
    assert_eq!(ios, [500; 4], "file after file");
}

#[test]
#[should_panic(expected = "is joined with others")]
fn a_joined_disk_is_not_mapped() {
    let mut plan = four();
    let lower = plan.disks[0].clone();
    plan.map(DiskId(2), mapped(vec![lower]));
}

#[test]
#[should_panic(expected = "is on another tag set already")]
fn what_shares_tags_with_others_is_not_joined() {
    let mut plan = joined("none", "", "");
    plan.disks[1].owner = None;
    plan.join(DiskId(0), 1);
}
