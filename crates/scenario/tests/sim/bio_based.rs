//! A bio-based device (queue_mode bio) over two null_blks: its bios go to the queues of the paths,
//! which have requests, tags, schedulers and plugs of their own.

use std::collections::VecDeque;

use blkmq::dm::PathId;
use blkmq::dm::multipath::Message;
use blkmq::dm::table::Table;
use blkmq::elevator::SchedulerKind;
use blkmq::env::TraceAction;
use blkmq::request::{QueueId, Status};
use blkmq::rules::{DeviceMapper, EmptyRun, Restart, Rules};
use blkmq::time::{Duration, SimTime};
use sim::machine::Simulator;
use sim::plan::{Outage, Plan, Ratio, Suspension};

use crate::mapped::{Ran, assert_whole, below, fails_and_comes_back, of_rules, run};
use crate::runs;

/// Kernels that map bios differently.
fn kernels() -> [Rules; 4] {
    let v4_20 = Rules {
        name: "v4.20",
        device_mapper: DeviceMapper::V4_20,
        restart: Restart::V4_19,
        empty_run: EmptyRun::Return,
        ..Rules::v4_12()
    };
    [Rules::v4_12(), v4_20, Rules::v6_1(), Rules::v6_12()]
}

/// Both paths in one group.
fn bios(rules: Rules, irqmode: u8, tags: u32, selector: &str) -> Plan {
    with_table(
        rules,
        (irqmode, tags),
        &format!("3 queue_if_no_path queue_mode bio 0 1 1 {selector} 0 2 1 8:0 1 8:1 1"),
    )
}

fn with_table(rules: Rules, (irqmode, tags): (u8, u32), rest: &str) -> Plan {
    let mut plan = of_rules(rules, "none", irqmode, tags);
    let line = format!("0 8 multipath {rest}");
    let mut mapped = below(&mut plan).clone();
    mapped.table = Table::parse(&line, &rules.device_mapper, 16).unwrap();
    plan.map(sim::plan::DiskId(0), mapped);
    plan
}

/// Nothing of the device is left in use either.
fn assert_nothing_left(ran: &Ran) {
    let mapped = ran.simulator.block_layer().queues[0].own_mapped();
    mapped.with_state(|state| {
        assert_eq!(state.pending, 0, "bios under way");
        assert_eq!(state.target.held().count() + state.taken.len(), 0, "held");
        assert!(state.bios.iter().all(|tio| tio.clone.is_none()), "clones");
    });
    assert!(mapped.own_bios().deferred.inspect(VecDeque::is_empty));
}

/// No selector counts an error, as no held bio has failed for lack of a path.
fn has_no_counts(ran: &Ran) -> bool {
    let mapped = ran.simulator.block_layer().queues[0].own_mapped();
    mapped.with_state(|state| state.target.accounts_are_empty())
}

#[test]
fn each_bio_goes_to_a_path_and_the_device_has_no_request() {
    for rules in kernels() {
        for irqmode in 0..3 {
            let ran = run(&bios(rules, irqmode, 64, "round-robin"), |_| {});
            assert_whole(&ran);
            assert_nothing_left(&ran);
            let [upper, first, second] = ran.issued[..] else {
                panic!("three queues")
            };
            assert_eq!((upper, first + second), (0, 4_000), "{}", rules.name);
            // 4.20 asks the selector only if there is no current path.
            let turns = rules.name != "v4.20";
            assert_eq!(
                first.abs_diff(second) <= 2,
                turns,
                "{}: {first}",
                rules.name
            );
        }
    }
}

/// Submitters wait for tags of a path's queue; nothing is refused above.
#[test]
fn submitters_wait_for_tags_of_the_paths() {
    for rules in kernels() {
        let ran = run(&bios(rules, 2, 4, "queue-length"), |_| {});
        assert_whole(&ran);
        assert_nothing_left(&ran);
        assert!(has_no_counts(&ran), "{}: a selector counts", rules.name);
        assert_eq!(ran.requeued, [0, 0, 0], "{}", rules.name);
    }
}

/// The schedulers of the paths see the bios from above.
#[test]
fn schedulers_of_the_paths_have_what_comes_from_above() {
    let rules = Rules::v6_1();
    let mut plan = bios(rules, 2, 16, "queue-length");
    for lower in &mut below(&mut plan).below {
        lower.queue.scheduler = SchedulerKind::MqDeadline.defaults(1000, 32);
        lower.queue.nr_requests = 32;
        lower.queue.nr_requests_first = 32;
        let hctxs = u32::from(lower.capacity.hctxs);
        lower.capacity.sched_tags = 32 * hctxs;
        lower.capacity.requests = (32 + 1) * hctxs;
    }
    let ran = run(&plan, |_| {});
    assert_whole(&ran);
    assert_nothing_left(&ran);
    assert_eq!(ran.issued[1] + ran.issued[2], 4_000);
}

fn outage(rules: Rules, seed: u64) -> Plan {
    let rest = "3 queue_if_no_path queue_mode bio 0 2 1 service-time 0 1 1 8:0 1 service-time 0 1 1 \
                8:1 1";
    let mut plan = with_table(rules, (2, 16), rest);
    fails_and_comes_back(&mut plan, seed);
    plan
}

/// A thousand moments at which paths fail, and both at once at some of them.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn all_paths_fail_and_come_back_and_no_bio_is_lost() {
    for rules in kernels() {
        let (mut failed, mut miscounted) = (0, 0);
        for seed in 0..250 {
            let ran = run(&outage(rules, seed), |_| {});
            let (name, stall) = (rules.name, ran.stall.as_ref());
            assert!(stall.is_none(), "{name} seed {seed}: {}", stall.unwrap());
            assert_eq!(ran.simulator.recorder().total_ios, 200, "seed {seed}");
            let jobs = &ran.simulator.recorder().jobs;
            assert!(jobs.iter().all(|job| job.error == Status::Ok), "{seed}");
            assert_nothing_left(&ran);
            // multipath_end_io_bio() of 4.12 looks at the path of a bio after do_end_io_bio() has
            // queued it: kmpathd may have chosen another one by then.
            match name == "v4.12" {
                true => miscounted += u64::from(!has_no_counts(&ran)),
                false => assert!(has_no_counts(&ran), "{name} seed {seed}: a selector counts"),
            }
            failed += u64::from(ran.issued[1] + ran.issued[2] > 200);
        }
        let name = rules.name;
        assert!(failed > 60, "{name}: {failed} of 250 runs saw a failure");
        assert!(miscounted < 5, "{miscounted} of 250 runs");
    }
}

/// The device is suspended at any moment while a path fails: nothing is mapped until it is resumed.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_bio_based_device_is_suspended_and_nothing_is_lost() {
    for rules in kernels() {
        let (mut suspended, mut waited) = (0, 0);
        for seed in 0..40 {
            let noflush = seed % 2 == 0;
            let mut plan = outage(rules, seed);
            let mapped = below(&mut plan);
            if !noflush {
                mapped.outages.truncate(1);
                mapped.messages.truncate(1);
            }
            mapped.interval = Duration::from_millis(1);
            let at = Duration(seed * 7_000);
            let resume = at + Duration::from_millis(20);
            mapped.suspensions.push(Suspension {
                at,
                noflush,
                resume,
            });
            let issues = issues_below(&plan);
            let (name, ran) = (rules.name, issues.ran);
            let stall = ran.stall.as_ref();
            assert!(stall.is_none(), "{name} seed {seed}: {}", stall.unwrap());
            assert_nothing_left(&ran);
            let recorder = ran.simulator.recorder();
            let failed = recorder.jobs.iter().any(|job| job.error != Status::Ok);
            assert!(!failed, "{name} seed {seed}");
            assert_eq!(recorder.total_ios, 200, "{name} seed {seed}");
            let [times] = recorder.suspensions[..] else {
                panic!("one suspension")
            };
            let Some(over) = times.suspended else {
                continue;
            };
            suspended += 1;
            waited += u64::from(over.0 - at.0 > 10_000);
            let within = |time: &&SimTime| over < **time && time.0 < resume.0;
            let meanwhile = issues.times.iter().filter(within).count();
            assert_eq!(meanwhile, 0, "{name} seed {seed}: requests below");
        }
        let name = rules.name;
        assert!(suspended > 20, "{name}: {suspended} of 40 were suspended");
        assert!(waited > 5, "{name}: {waited} of 40 runs waited");
    }
}

struct Issues {
    ran: Ran,
    /// Times of D of both paths.
    times: Vec<SimTime>,
}

fn issues_below(plan: &Plan) -> Issues {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    runs::to_its_end(&mut simulator);
    let points = simulator.take_trace();
    let times = points
        .iter()
        .filter(|(.., point)| point.action == TraceAction::Issue && point.queue != QueueId(0));
    let times = times.map(|point| point.0).collect();
    Issues {
        ran: run(plan, |_| {}),
        times,
    }
}

/// An fsync(2) becomes a flush of a path.
#[test]
fn flushes_go_below() {
    for rules in kernels() {
        let text = "[device]\ntype = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 0\n\
                    irqmode = 2\ncache_size = 64\nmemory_backed = 1\n[queue]\nscheduler = \"none\"\n\
                    [[job]]\nname = \"sync\"\nrw = \"write\"\ndirect = 1\nioengine = \"sync\"\n\
                    number_ios = 100\nfsync = 4\n";
        let mut plan = runs::plan_of(text);
        plan.disks[0].queue.rules = rules;
        let mut lower = plan.disks[0].clone();
        "nullb1".clone_into(&mut lower.device.name);
        let line = "0 8 multipath 2 queue_mode bio 0 1 1 round-robin 0 1 1 8:0 1";
        let table = Table::parse(line, &rules.device_mapper, 16).unwrap();
        plan.map(
            sim::plan::DiskId(0),
            sim::plan::MappedPlan::new(table, vec![lower]),
        );
        assert!(plan.disks[0].queue.limits.write_cache, "it has a cache");
        let ran = run(&plan, |_| {});
        assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
        assert_nothing_left(&ran);
        // 100 writes, and a flush between four of them and the next.
        assert_eq!(ran.issued, [0, 124], "{}", rules.name);
    }
}

/// A bio that has failed on one path and is then refused for lack of any ends in the worker, which
/// reports the end to the selector of the bio's last path: a second time. So it is in each kernel
/// that maps bios; the count of a path falls below zero.
#[test]
fn a_held_bio_that_fails_is_taken_off_its_path_twice() {
    for rules in kernels() {
        let rest = "3 queue_if_no_path queue_mode bio 0 1 1 queue-length 0 2 1 8:0 1 8:1 1";
        let mut plan = with_table(rules, (2, 16), rest);
        plan.threads.iter_mut().for_each(|t| t.number_ios = 50);
        let mapped = below(&mut plan);
        let at = |us: u64| Duration(us * 1000);
        for path in [0, 1] {
            mapped.outages.push(Outage {
                path: PathId(path),
                from: at(50),
                to: at(100_000),
            });
        }
        for lower in &mut mapped.below {
            lower.device.fault.outages = true;
        }
        mapped
            .messages
            .push((at(400), Message::QueueIfNoPath(false)));
        let ran = run(&plan, |_| {});
        assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
        assert_nothing_left(&ran);
        let jobs = &ran.simulator.recorder().jobs;
        assert!(jobs.iter().any(|job| job.error == Status::IoError));
        let mapped = ran.simulator.block_layer().queues[0].own_mapped();
        let empty = mapped.with_state(|state| state.target.accounts_are_empty());
        assert!(!empty, "{}: each path counts what it has", rules.name);
    }
}

/// Bios that wait for the device are listed in a stall report.
#[test]
fn a_stall_tells_of_bios_that_wait() {
    let mut plan = bios(Rules::v6_1(), 2, 64, "round-robin");
    let mapped = below(&mut plan);
    mapped.suspensions.push(Suspension {
        at: Duration(50_000),
        noflush: true,
        resume: Duration::from_millis(30),
    });
    mapped.below[1].device.fault.lost_completion = Ratio {
        numerator: 1,
        denominator: 100,
    };
    let stall = run(&plan, |_| {}).stall.expect("a bio never ends");
    let text = format!("{stall}");
    let words = "nullb0 is being suspended: dmsetup waits for what is in flight";
    assert!(text.contains(words), "{text}");
    assert!(text.contains(" until the device goes on"), "{text}");
    let lost = stall.requests[0].carries.as_ref();
    let lost = lost.expect("the lost one comes before what is queued");
    assert_eq!(lost.device, "nullb0");
    let (sector, sectors) = lost.bios[0];
    let words = format!("carries the bio {sector}+{sectors} of nullb0");
    assert!(text.contains(&words), "{text}");
}

/// Without a path, the worker that holds bios queues itself again: it takes a whole CPU until a
/// path comes back. So it is in each kernel that maps bios.
#[test]
fn a_worker_spins_while_no_path_is_left() {
    for rules in kernels() {
        let mut plan = bios(rules, 2, 16, "round-robin");
        plan.threads.iter_mut().for_each(|t| t.number_ios = 20);
        let mapped = below(&mut plan);
        for path in [0, 1] {
            let message = |us: u64, what| (Duration(us * 1000), what);
            let path = PathId(path);
            mapped.messages.push(message(5, Message::Fail(path)));
            mapped
                .messages
                .push(message(1_005, Message::Reinstate(path)));
        }
        let ran = run(&plan, |_| {});
        assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
        assert_nothing_left(&ran);
        let busy = ran.simulator.recorder().bio_work_runs;
        assert!(busy > 200, "{}: the worker ran {busy} times", rules.name);
    }
}

/// A suspension without flush is complete though no path is left: held bios wait with the device
/// then. In 4.12 the flag that holds bios stays set, so that they are held on and on and the
/// suspension waits for a path.
#[test]
fn a_suspension_without_flush_waits_for_a_path_in_4_12() {
    for rules in kernels() {
        let mut plan = bios(rules, 2, 16, "round-robin");
        plan.threads.iter_mut().for_each(|t| t.number_ios = 50);
        let mapped = below(&mut plan);
        for path in [0, 1] {
            let message = |us: u64, what| (Duration(us * 1000), what);
            let path = PathId(path);
            mapped.messages.push(message(20, Message::Fail(path)));
            mapped
                .messages
                .push(message(5_000, Message::Reinstate(path)));
        }
        mapped.interval = Duration::from_millis(1);
        mapped.suspensions.push(Suspension {
            at: Duration::from_millis(1),
            noflush: true,
            resume: Duration::from_millis(20),
        });
        let ran = run(&plan, |_| {});
        assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
        assert_nothing_left(&ran);
        let recorder = ran.simulator.recorder();
        assert_eq!(recorder.total_ios, 200, "{}", rules.name);
        let over = recorder.suspensions[0].suspended.expect("it is complete");
        let waits = over.0 > 5_000_000;
        assert_eq!(waits, rules.name == "v4.12", "{}: {over:?}", rules.name);
    }
}

/// If no path comes back the run is reported as work without progress, with the held bios.
#[test]
fn a_worker_that_spins_for_ever_is_a_stall() {
    let mut plan = bios(Rules::v6_12(), 2, 16, "round-robin");
    plan.threads.iter_mut().for_each(|t| t.number_ios = 20);
    let mapped = below(&mut plan);
    for path in [0, 1] {
        let fail = Message::Fail(PathId(path));
        mapped.messages.push((Duration(5_000), fail));
    }
    let stall = run(&plan, |_| {}).stall.expect("no path comes back");
    let text = format!("{stall}");
    assert!(text.contains("bios until there is a path"), "{text}");
    assert!(text.contains("kmpathd"), "{text}");
}

/// The paths' queues split bios, each by its own limits.
#[test]
fn paths_cut_bios_up() {
    let text = "[queue]\nscheduler = \"none\"\n[[device]]\ntype = \"null_blk\"\n\
                submit_queues = 1\nqueue = { max_sectors_kb = 4 }\n[[device]]\n\
                type = \"null_blk\"\nsubmit_queues = 1\n[mapped]\ntable = \"0 8192 multipath 2 \
                queue_mode bio 0 1 1 round-robin 0 2 1 nullb0 1 nullb1 1\"\n\
                queue = { max_sectors_kb = 64 }\n\
                [[job]]\nname = \"big\"\nrw = \"randread\"\nbs = \"64k\"\ndirect = 1\n\
                ioengine = \"libaio\"\niodepth = 4\nsize = \"4m\"\n";
    let plan = runs::plan_of(text);
    let ran = run(&plan, |_| {});
    assert!(ran.stall.is_none(), "{}", ran.stall.as_ref().unwrap());
    assert_nothing_left(&ran);
    assert_eq!(ran.simulator.recorder().total_ios, 64);
    // 32 of 16 parts, 32 whole.
    assert_eq!(ran.issued, [0, 512, 32]);
}
