//! Several mapped devices over the units of two hosts: each unit's clones go to its own paths, all
//! units of a host draw from its tags, and with any failures of paths each I/O ends once.

use blkmq::dm::PathId;
use blkmq::dm::multipath::Message;
use blkmq::env::TraceAction;
use blkmq::request::{Place, QueueId, SetId};
use blkmq::time::Duration;
use sim::machine::{Simulator, Stall};
use sim::plan::{DeviceKind, DiskId, MappedPlan, Outage, Owner, Plan};
use sim::rng::Rng;

use crate::runs;

/// Units of each host, each a mapped device.
const UNITS: u16 = 3;
const IOS: u64 = 900;

/// Two hosts of so many tags, and a job of three threads on all mapped devices.
fn plan(rules: &str, tags: u32) -> Plan {
    let mapped = |unit: u16| {
        let path = |host: u16| char::from(b'a' + (host * UNITS + unit) as u8);
        format!(
            "[[mapped]]\nuse_blk_mq = 1\n\
             table = \"0 16000 multipath 1 queue_if_no_path 0 1 1 service-time 0 2 2 \
             sd{} 1 1 sd{} 1 1\"\n",
            path(0),
            path(1)
        )
    };
    let mapped: String = (0..UNITS).map(mapped).collect();
    let text = format!(
        "[queue]\nrules = \"{rules}\"\nscheduler = \"none\"\nnomerges = 2\n\
         [device]\ntype = \"scsi_debug\"\nadd_host = 2\nmax_luns = {UNITS}\nndelay = 20000\n\
         max_queue = {tags}\n{mapped}\
         [[job]]\nname = \"j\"\nfilename = \"/dev/dm-0:/dev/dm-1:/dev/dm-2\"\nrw = \"randread\"\n\
         direct = 1\nioengine = \"libaio\"\niodepth = 24\nnumjobs = 3\nnumber_ios = {}\n\
         norandommap = true\ncpus_allowed = \"0-2\"\ncpus_allowed_policy = \"split\"\n",
        IOS / 3
    );
    runs::plan_of(&text)
}

fn mapped(plan: &mut Plan, disk: u16) -> &mut MappedPlan {
    let DeviceKind::Mapped(mapped) = &mut plan.disks[usize::from(disk)].device.kind else {
        panic!("it is mapped")
    };
    mapped
}

struct Ran {
    simulator: Simulator,
    stall: Option<Box<Stall>>,
    /// D of each queue.
    issued: Vec<u64>,
    records: String,
}

fn run(plan: &Plan) -> Ran {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    simulator.settle();
    let points = simulator.take_trace();
    let issued = |queue: u16| {
        let points = points.iter().map(|(.., point)| point);
        let of = points.filter(|p| p.action == TraceAction::Issue && p.queue == QueueId(queue));
        of.count() as u64
    };
    let queues = simulator.block_layer().queues.len() as u16;
    Ran {
        issued: (0..queues).map(issued).collect(),
        records: format!("{points:?}"),
        stall,
        simulator,
    }
}

/// Each I/O has ended, and nothing is in use on any level.
fn assert_whole(ran: &Ran, what: &str) {
    if let Some(stall) = &ran.stall {
        panic!("{what}: {stall}");
    }
    assert_eq!(ran.simulator.recorder().total_ios, IOS, "{what}");
    let mq = ran.simulator.block_layer();
    for queue in &mq.queues {
        queue.with_pool(|pool| {
            let free = |place| matches!(place, Place::Free | Place::PlugCache);
            assert!(pool.iter().all(|(_, rq)| free(rq.place)), "{what}");
            assert_eq!(pool.bios_in_use(), 0, "{what}");
        });
        for map in &mq.set_of(queue.id).driver {
            assert_eq!(map.busy_count(), 0, "{what}: tags of queue {}", queue.id);
        }
        if let Some(mapped) = &queue.mapped {
            mapped.with_state(|state| {
                state.target.check();
                assert!(state.tios.iter().all(|tio| tio.clone.is_none()), "{what}");
            });
        }
    }
}

/// Numbers: disks, then the units of the first host, then those of the second one.
#[test]
fn units_of_a_host_have_one_device_and_one_tag_set() {
    let plan = plan("v6.1", 32);
    let names: Vec<&str> = plan.queues().map(|of| of.device.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "dm-0", "dm-1", "dm-2", "sda", "sdb", "sdc", "sdd", "sde", "sdf"
        ]
    );
    let sets: Vec<SetId> = plan.queues().map(|of| of.set).collect();
    assert_eq!(sets, [0, 1, 2, 3, 3, 3, 4, 4, 4].map(SetId));
    assert_eq!(plan.queues_below(DiskId(1)), [QueueId(4), QueueId(7)]);
    let sdf = &plan.disks[2].below()[1];
    assert_eq!(sdf.owner, Some(Owner::Path(DiskId(0), PathId(1))));
    let simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    let mq = simulator.block_layer();
    let set = |queue| core::ptr::from_ref(mq.set_of(QueueId(queue)));
    assert_eq!(set(3), set(5));
    assert_ne!(set(3), set(6));
}

#[test]
fn each_unit_gets_what_is_mapped_to_it() {
    for rules in ["v4.5", "v4.12", "v6.1", "v6.12"] {
        // Enough of all, and too few.
        for tags in [64, 5] {
            let ran = run(&plan(rules, tags));
            let what = format!("{rules}, {tags} tags");
            assert_whole(&ran, &what);
            for unit in 0..usize::from(UNITS) {
                let (first, second) = (ran.issued[3 + unit], ran.issued[6 + unit]);
                assert_eq!(first + second, IOS / 3, "{what}: unit {unit}");
                assert!(first.min(second) > IOS / 12, "{what}: {first}, {second}");
            }
        }
    }
}

/// The one host's tags limit all of its units together.
#[test]
fn units_of_a_host_draw_from_its_tags() {
    let alone = {
        let mut plan = plan("v6.1", 6);
        for disk in 0..UNITS {
            for lower in &mut mapped(&mut plan, disk).below {
                lower.owner = None;
            }
        }
        let sets = plan.disks.len() as u16;
        for disk in 0..UNITS {
            for (path, lower) in mapped(&mut plan, disk).below.iter_mut().enumerate() {
                lower.set = SetId(sets + 2 * disk + path as u16);
            }
        }
        run(&plan)
    };
    let both = run(&plan("v6.1", 6));
    assert_whole(&alone, "hosts of one unit");
    assert_whole(&both, "hosts of three units");
    let most = |ran: &Ran| ran.simulator.recorder().device_depth.max;
    assert_eq!((most(&both), most(&alone)), (12, 36));
}

/// Paths go out of reach one by one or with their whole host, and come back, at any moments.
fn outages(plan: &mut Plan, seed: u64) {
    let mut random = Rng::stream(seed, "outages");
    let mut at = |from: u64, below: u64| from + random.below(below);
    let hosts: [(u64, u64); 2] = core::array::from_fn(|_| {
        let from = at(0, 250);
        (from, at(from + 1, 200))
    });
    let whole = at(0, 3) > 0;
    for disk in 0..UNITS {
        for (path, &(mut from, mut to)) in hosts.iter().enumerate() {
            if !whole {
                from = at(0, 250);
                to = at(from + 1, 200);
            }
            let path = PathId(path as u16);
            let us = |us: u64| Duration(us * 1000);
            let back = us(at(to, 60));
            let mapped = mapped(plan, disk);
            mapped.outages.push(Outage {
                path,
                from: us(from),
                to: us(to),
            });
            mapped.messages.push((back, Message::Reinstate(path)));
            mapped.below[path.index()].device.fault.outages = true;
        }
    }
}

#[test]
fn whatever_paths_fail_each_request_ends_once() {
    for rules in ["v4.5", "v4.6", "v4.12", "v6.1", "v6.12"] {
        let mut failed = 0;
        for seed in 0..24 {
            let mut plan = plan(rules, if seed % 2 == 0 { 8 } else { 64 });
            plan.seed = seed;
            outages(&mut plan, seed);
            let ran = run(&plan);
            assert_whole(&ran, &format!("{rules}, seed {seed}"));
            let clones: u64 = ran.issued[3..].iter().sum();
            failed += u64::from(clones > IOS);
        }
        assert!(failed > 12, "{rules}: {failed} of 24 runs saw a failure");
    }
}

#[test]
fn the_same_plan_runs_the_same_way() {
    let of = |seed| {
        let mut plan = plan("v6.1", 8);
        outages(&mut plan, seed);
        run(&plan).records
    };
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4), "the records differ");
}

/// One unit is out of reach: the others of its host are not, as they are in the mutant.
#[test]
fn a_unit_out_of_reach_leaves_the_others_of_its_host() {
    let with = |disks: core::ops::Range<u16>| {
        let mut plan = plan("v6.1", 64);
        for disk in disks {
            let of = mapped(&mut plan, disk);
            of.outages.push(Outage {
                path: PathId(0),
                from: Duration(50_000),
                to: Duration::from_secs(1),
            });
        }
        for disk in 0..UNITS {
            mapped(&mut plan, disk).below[0].device.fault.outages = true;
        }
        let ran = run(&plan);
        assert_whole(&ran, "out of reach");
        let share = |unit: usize| ran.issued[3 + unit] * 100 / (IOS / 3);
        [share(0), share(1), share(2)]
    };
    let one = with(1..2);
    assert!(one[0] > 40 && one[1] < 35 && one[2] > 40, "{one:?}");
    let all = with(0..UNITS);
    assert!(all.iter().all(|&share| share < 35), "{all:?}");
}
