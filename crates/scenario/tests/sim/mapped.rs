//! A device over two null_blks, on the real paths of both levels: every I/O ends, tags of both
//! levels are freed, and a clone whose end is lost is a stall.

use blkmq::dm::PathId;
use blkmq::dm::multipath::Message;
use blkmq::dm::table::Table;
use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, HctxId, Place, QueueId, Status};
use blkmq::rules::{DeviceMapper, EmptyRun, Restart, Rules, Suspension as Suspends};
use blkmq::time::{Duration, SimTime};
use sim::machine::{Below, Simulator, Stall};
use sim::plan::{BusyKind, DeviceKind, DiskId, MappedPlan, Outage, Plan, Ratio, Suspension};

use crate::runs;

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

/// The same mapped to two such devices without scheduler, of this many tags each, in turn.
fn mapped(scheduler: &str, irqmode: u8, tags: u32) -> Plan {
    of_rules(Rules::v6_1(), scheduler, irqmode, tags)
}

/// The same of another kernel.
pub(crate) fn of_rules(rules: Rules, scheduler: &str, irqmode: u8, tags: u32) -> Plan {
    let mut plan = bare(scheduler, irqmode);
    plan.disks[0].queue.rules = rules;
    let mut lower = bare("none", irqmode).disks.remove(0);
    lower.queue.rules = rules;
    lower.device.queue_depth = tags;
    lower.queue.nr_requests = tags;
    lower.queue.nr_requests_first = tags;
    let hctxs = u32::from(lower.capacity.hctxs);
    lower.capacity.driver_tags = tags * hctxs;
    lower.capacity.requests = (tags + 1) * hctxs;
    let mut other = lower.clone();
    "nullb1".clone_into(&mut lower.device.name);
    "nullb2".clone_into(&mut other.device.name);
    let line = "0 8 multipath 1 queue_if_no_path 0 1 1 round-robin 0 2 1 8:0 1 8:1 1";
    let table = Table::parse(line, &rules.device_mapper, 16).unwrap();
    plan.map(DiskId(0), MappedPlan::new(table, vec![lower, other]));
    plan
}

/// The target of a plan's disk.
pub(crate) fn below(plan: &mut Plan) -> &mut MappedPlan {
    let DeviceKind::Mapped(mapped) = &mut plan.disks[0].device.kind else {
        panic!("it is mapped")
    };
    mapped
}

pub(crate) struct Ran {
    pub(crate) simulator: Simulator,
    pub(crate) stall: Option<Box<Stall>>,
    /// D and R of each queue.
    pub(crate) issued: Vec<u64>,
    pub(crate) requeued: Vec<u64>,
    /// Times of D of the mapped queue, and of the others.
    pub(crate) upper_issues: Vec<SimTime>,
    lower_issues: Vec<SimTime>,
    /// Virtual time it took, ns.
    took: u64,
}

pub(crate) fn run(plan: &Plan, change: impl FnOnce(&mut Simulator)) -> Ran {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.trace();
    change(&mut simulator);
    let stall = runs::to_its_end(&mut simulator);
    simulator.settle();
    let points = simulator.take_trace();
    let count = |action: TraceAction| {
        let queues = 0..simulator.block_layer().queues.len() as u16;
        let of = |queue| {
            let points = points.iter().map(|(.., point)| point);
            let points = points.filter(|p| p.action == action && p.queue == QueueId(queue));
            points.count() as u64
        };
        queues.map(of).collect()
    };
    let issues = |upper: bool| {
        let issue = |point: &&(SimTime, CpuId, u32, TracePoint)| {
            point.3.action == TraceAction::Issue && (point.3.queue == QueueId(0)) == upper
        };
        points.iter().filter(issue).map(|point| point.0).collect()
    };
    Ran {
        upper_issues: issues(true),
        lower_issues: issues(false),
        issued: count(TraceAction::Issue),
        requeued: count(TraceAction::Requeue),
        took: simulator.now().0,
        stall,
        simulator,
    }
}

/// Nothing is lost of 4,000 I/Os.
pub(crate) fn assert_whole(ran: &Ran) {
    assert_eq!(ran.simulator.recorder().total_ios, 4_000);
    assert_nothing_left(ran, "");
}

/// The run has ended, and nothing of either level is left in use.
pub(crate) fn assert_nothing_left(ran: &Ran, what: &str) {
    let stall = ran.stall.as_ref();
    assert!(stall.is_none(), "{what}: {}", stall.unwrap());
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
        if let Some(mapped) = &queue.mapped {
            assert_eq!((mapped.pending.peek(), mapped.holders.peek()), (0, 0));
            mapped.with_state(|state| {
                state.target.check();
                assert!(state.target.accounts_are_empty(), "selectors count");
                assert!(state.tios.iter().all(|tio| tio.clone.is_none()), "clones");
            });
        }
    }
}

#[test]
fn each_request_is_one_clone_and_devices_take_turns() {
    for scheduler in ["none", "mq-deadline"] {
        for irqmode in 0..3 {
            let ran = run(&mapped(scheduler, irqmode, 64), |_| {});
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
        let ran = run(&mapped(scheduler, 2, 4), |_| {});
        assert_whole(&ran);
        assert!(ran.requeued[0] > 100, "{scheduler}: {:?}", ran.requeued);
        assert_eq!(ran.issued[1] + ran.issued[2], 4_000, "{scheduler}");
        // The device below refuses as well.
        let mut plan = mapped(scheduler, 2, 64);
        below(&mut plan).below[1].device.fault.busy = Ratio {
            numerator: 1,
            denominator: 50,
        };
        let ran = run(&plan, |_| {});
        assert_whole(&ran);
        assert!(ran.requeued[2] > 10, "{scheduler}: {:?}", ran.requeued);
        assert!(ran.requeued[0] >= ran.requeued[2], "{:?}", ran.requeued);
    }
}

/// A driver below that lacks a resource promises to run its queue again. The queue above makes no
/// such promise: with one request there it would not be run.
#[test]
fn what_a_driver_below_promises_is_no_promise_above() {
    for rules in kernels() {
        let mut plan = of_rules(rules, "none", 2, 64);
        plan.threads.truncate(1);
        plan.threads[0].iodepth = 1;
        for lower in &mut below(&mut plan).below {
            lower.device.fault.busy_kind = BusyKind::DevResource;
            lower.device.fault.busy = Ratio {
                numerator: 1,
                denominator: 20,
            };
        }
        let ran = run(&plan, |_| {});
        assert_nothing_left(&ran, rules.name);
        assert_eq!(ran.simulator.recorder().total_ios, 1_000, "{}", rules.name);
        let refused = ran.requeued[1] + ran.requeued[2];
        assert!(refused > 10, "{}: {refused}", rules.name);
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
    let percent = |irqmode| alone(mapped("none", irqmode, 64)) * 100 / alone(bare("none", irqmode));
    // Inside queue_rq only; with one hardware queue the second completion is a softirq, for which
    // the thread sleeps.
    let inline = percent(0);
    assert!((200..=350).contains(&inline), "{inline} % of the time");
    // A softirq either way: the difference is the clone.
    let softirq = percent(1);
    assert!((103..=130).contains(&softirq), "{softirq} % of the time");
}

fn kernels() -> [Rules; 6] {
    let v4_20 = Rules {
        name: "v4.20",
        device_mapper: DeviceMapper::V4_20,
        restart: Restart::V4_19,
        empty_run: EmptyRun::Return,
        ..Rules::v4_12()
    };
    [
        Rules::v4_5(),
        Rules::v4_6(),
        Rules::v4_12(),
        v4_20,
        Rules::v6_1(),
        Rules::v6_12(),
    ]
}

#[test]
fn every_kernel_maps_and_ends_all_requests_once() {
    for rules in kernels() {
        for irqmode in 0..3 {
            let ran = run(&of_rules(rules, "none", irqmode, 64), |_| {});
            assert_whole(&ran);
            assert_eq!(ran.issued[1] + ran.issued[2], 4_000, "{}", rules.name);
        }
    }
}

/// One path at a time fails at some moment, and comes back later.
pub(crate) fn outage(rules: Rules, seed: u64, selector: &str) -> Plan {
    let mut plan = two_groups(rules, "1 queue_if_no_path", selector);
    fails_and_comes_back(&mut plan, seed);
    plan
}

/// A group for each path.
fn two_groups(rules: Rules, features: &str, selector: &str) -> Plan {
    let mut plan = of_rules(rules, "none", 2, 16);
    let line =
        format!("0 8 multipath {features} 0 2 1 {selector} 0 1 1 8:0 1 {selector} 0 1 1 8:1 1");
    below(&mut plan).table = Table::parse(&line, &rules.device_mapper, 16).unwrap();
    plan
}

/// Each of two paths goes out of reach at a moment of its own; 200 I/Os.
pub(crate) fn fails_and_comes_back(plan: &mut Plan, seed: u64) {
    let moments: Vec<SimTime> = (0..150).map(|us| SimTime(us * 1000)).collect();
    fails_at_one_of(&moments, plan, seed);
}

/// When paths get requests in a run of 200 I/Os that all go well.
pub(crate) fn moments_of_issue(plan: &Plan) -> Vec<SimTime> {
    let mut plan = plan.clone();
    plan.threads.iter_mut().for_each(|t| t.number_ios = 50);
    run(&plan, |_| {}).lower_issues
}

/// The same, at moments that are drawn among these.
pub(crate) fn fails_at_one_of(moments: &[SimTime], plan: &mut Plan, seed: u64) {
    plan.seed = seed;
    let mapped = below(plan);
    let at = |us: u64| Duration(us * 1000);
    let mut random = seed;
    let mut draw = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for path in [0, 1] {
        let from = Duration(moments[draw(moments.len() as u64) as usize].0);
        let to = from + at(1 + draw(150));
        let path = PathId(path);
        mapped.outages.push(Outage { path, from, to });
        let back = (to + at(draw(50)), Message::Reinstate(path));
        mapped.messages.push(back);
    }
    for lower in &mut mapped.below {
        lower.device.fault.outages = true;
    }
    // An end that waits for a tick reports the failure when the path is back.
    mapped.interval = Duration::from_millis(1);
    plan.threads.iter_mut().for_each(|t| t.number_ios = 50);
}

/// Up to 4.20 a selector keeps its count of a request whose clone was not issued after all: visible
/// as soon as the paths' drivers refuse now and then. Later rules undo it.
#[test]
fn counts_of_clones_that_were_given_up_leak_up_to_4_20() {
    for (mapper, leaks) in [
        (DeviceMapper::V4_20, true),
        (DeviceMapper::V6_1, false),
        (DeviceMapper::V6_12, false),
    ] {
        let rules = Rules {
            device_mapper: mapper,
            ..Rules::v6_1()
        };
        let mut plan = of_rules(rules, "none", 2, 64);
        let line = "0 8 multipath 0 0 1 1 queue-length 0 2 1 8:0 1 8:1 1";
        let mapped = below(&mut plan);
        mapped.table = Table::parse(line, &rules.device_mapper, 16).unwrap();
        for lower in &mut mapped.below {
            lower.device.fault.busy = Ratio {
                numerator: 1,
                denominator: 50,
            };
        }
        let ran = run(&plan, |_| {});
        assert!(ran.stall.is_none(), "{}", ran.stall.unwrap());
        assert_eq!(ran.simulator.recorder().total_ios, 4_000);
        let mapped = ran.simulator.block_layer().queues[0].mapped.as_ref();
        let empty = mapped
            .unwrap()
            .with_state(|s| s.target.accounts_are_empty());
        assert_eq!(empty, !leaks, "{}", mapper.name);
    }
}

/// Requests that the policy holds or retries end without an error.
pub(crate) fn assert_no_error(ran: &Ran, what: &str) {
    for job in &ran.simulator.recorder().jobs {
        assert_eq!(job.error, Status::Ok, "{what}");
    }
}

/// Some request ended with an error, and was retried.
pub(crate) fn saw_failure(ran: &Ran) -> bool {
    let paths = &ran.simulator.recorder().paths;
    paths.iter().any(|path| path.errors > 0)
}

/// A thousand moments at which a path fails.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn all_paths_fail_and_come_back_and_nothing_is_lost() {
    for rules in kernels() {
        let whole = two_groups(rules, "1 queue_if_no_path", "service-time");
        let moments = moments_of_issue(&whole);
        let mut failed = 0;
        for seed in 0..84 {
            let mut plan = whole.clone();
            fails_at_one_of(&moments, &mut plan, seed);
            let ran = run(&plan, |_| {});
            let what = format!("{} seed {seed}", rules.name);
            assert_nothing_left(&ran, &what);
            assert_eq!(ran.simulator.recorder().total_ios, 200, "{what}");
            assert_no_error(&ran, &what);
            failed += u64::from(saw_failure(&ran));
        }
        let name = rules.name;
        assert!(failed >= 80, "{name}: {failed} of 84 runs saw a failure");
    }
}

/// Only one path fails, and no request without a path is held: each ends without an error, as the
/// other path is there all the time.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn while_one_path_is_there_no_request_fails() {
    for rules in kernels() {
        let mut whole = of_rules(rules, "none", 2, 16);
        let line = "0 8 multipath 0 0 1 1 service-time 0 2 1 8:0 1 8:1 1";
        below(&mut whole).table = Table::parse(line, &rules.device_mapper, 16).unwrap();
        let moments = moments_of_issue(&whole);
        let mut failed = 0;
        for seed in 0..84 {
            let mut plan = whole.clone();
            fails_at_one_of(&moments, &mut plan, seed);
            let mapped = below(&mut plan);
            let other = seed as usize % 2;
            mapped.outages.remove(other);
            mapped.messages.remove(other);
            let ran = run(&plan, |_| {});
            let what = format!("{} seed {seed}", rules.name);
            assert_nothing_left(&ran, &what);
            assert_eq!(ran.simulator.recorder().total_ios, 200, "{what}");
            assert_no_error(&ran, &what);
            let paths = &ran.simulator.recorder().paths;
            assert_eq!(paths[other].fail_count, 0, "{what}");
            failed += u64::from(saw_failure(&ran));
        }
        let name = rules.name;
        assert!(failed >= 80, "{name}: {failed} of 84 runs saw a failure");
    }
}

/// The same without queue_if_no_path: requests without a path fail, and only those.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn without_a_path_requests_fail_and_with_one_none_does() {
    for rules in kernels() {
        let (mut failed, mut retried) = (0, 0);
        for seed in 0..84 {
            let mut plan = two_groups(rules, "0", "service-time");
            fails_and_comes_back(&mut plan, seed);
            let ran = run(&plan, |_| {});
            let what = format!("{} seed {seed}", rules.name);
            assert_nothing_left(&ran, &what);
            let recorder = ran.simulator.recorder();
            let paths = &recorder.paths;
            if recorder.jobs[0].error == Status::Ok {
                assert_eq!(recorder.total_ios, 200, "{what}");
                retried += u64::from(saw_failure(&ran));
                continue;
            }
            failed += 1;
            let both = paths.iter().all(|path| path.fail_count > 0);
            assert!(
                both,
                "{what}: an I/O failed while a path was there: {paths:?}"
            );
        }
        let name = rules.name;
        assert!(failed > 10, "{name}: {failed} of 84 runs failed");
        assert!(retried > 5, "{name}: {retried} of 84 runs went on");
    }
}

/// The device is suspended and resumed at any moment, without flush, while both paths fail and come
/// back; or with flush, while one does.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_device_is_suspended_at_any_moment_and_nothing_is_lost() {
    for rules in kernels() {
        let (mut suspended, mut waited, mut late) = (0, 0, 0);
        for seed in 0..40 {
            let noflush = seed % 2 == 0;
            let mut plan = outage(rules, seed, "service-time");
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
            let ran = run(&plan, |_| {});
            let (name, stall) = (rules.name, ran.stall.as_ref());
            assert!(stall.is_none(), "{name} seed {seed}: {}", stall.unwrap());
            assert_nothing_left(&ran, &format!("{name} seed {seed}"));
            let recorder = ran.simulator.recorder();
            let early = rules.device_mapper.requests.suspension == Suspends::Stops;
            // A request that is mapped after the suspension may find no path and not be held.
            let failed = recorder.jobs.iter().any(|job| job.error != Status::Ok);
            assert!(early || !failed, "{name} seed {seed}");
            assert!(failed || recorder.total_ios == 200, "{name} seed {seed}");
            late += u64::from(failed);
            let [times] = recorder.suspensions[..] else {
                panic!("one suspension")
            };
            let Some(over) = times.suspended else {
                continue;
            };
            suspended += 1;
            waited += u64::from(over.0 - at.0 > 10_000);
            let within = |time: SimTime| over < time && time.0 < resume.0;
            let issued = ran
                .upper_issues
                .iter()
                .filter(|&&time| within(time))
                .count();
            assert!(
                issued == 0 || early,
                "{name} seed {seed}: {issued} requests are mapped"
            );
        }
        let name = rules.name;
        assert!(late < 10, "{name}: {late} of 40 runs failed");
        assert!(
            suspended > 20,
            "{name}: {suspended} of 40 runs were suspended"
        );
        assert!(
            waited > 5,
            "{name}: {waited} of 40 runs waited for what was in flight"
        );
    }
}

/// dmsetup's messages to a suspended device are lost, those of multipathd about a path are
/// repeated; and a suspension that waits for a request that never ends is reported as that.
#[test]
fn a_suspended_device_refuses_messages_and_a_suspension_is_reported_in_a_stall() {
    let mut plan = of_rules(Rules::v6_1(), "none", 2, 16);
    let mapped = below(&mut plan);
    let ms = Duration::from_millis;
    mapped.interval = ms(1);
    mapped.suspensions.push(Suspension {
        at: Duration(50_000),
        noflush: true,
        resume: ms(30),
    });
    let path = PathId(0);
    mapped
        .messages
        .push((Duration(20_000), Message::Fail(path)));
    mapped.messages.push((ms(20), Message::Reinstate(path)));
    mapped.messages.push((ms(20), Message::Fail(PathId(1))));
    let ran = run(&plan, |_| {});
    assert_whole(&ran);
    assert_eq!(ran.simulator.recorder().refused_messages, 1);
    let mapped = ran.simulator.block_layer().queues[0].own_mapped();
    mapped.with_state(|state| assert_eq!(state.target.valid_paths(), 2, "both are back"));

    let lost = Ratio {
        numerator: 1,
        denominator: 100,
    };
    below(&mut plan).below[1].device.fault.lost_completion = lost;
    let stall = run(&plan, |_| {}).stall.expect("a request never ends");
    let text = format!("{stall}");
    let words = "nullb0 is being suspended: dmsetup waits for what is in flight";
    assert!(text.contains(words), "{text}");
}

/// Each path has a group of its own, which a hardware handler initialises: a path goes out of reach
/// at any moment of that, and so does the other one.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn paths_fail_while_their_groups_are_initialised_and_nothing_is_lost() {
    for rules in kernels() {
        let mut failed = 0;
        // 4.12 runs its queue again 100 ms after it refused a request: by then both paths are back
        // in most runs.
        let seeds = if rules.name == "v4.12" { 120 } else { 30 };
        for seed in 0..seeds {
            let mut plan = outage(rules, seed, "service-time");
            let line = "0 8 multipath 1 queue_if_no_path 1 alua 2 1 \
                        service-time 0 1 1 8:0 1 service-time 0 1 1 8:1 1";
            let mapped = below(&mut plan);
            mapped.table = Table::parse(line, &rules.device_mapper, 16).unwrap();
            assert!(mapped.table.hw_handler.is_some());
            mapped.activation = Duration(1000 + seed % 30 * 3000);
            let ran = run(&plan, |_| {});
            let what = format!("{} seed {seed}", rules.name);
            assert_nothing_left(&ran, &what);
            let recorder = ran.simulator.recorder();
            assert_eq!(recorder.total_ios, 200, "{what}");
            assert_eq!(recorder.jobs[0].error, Status::Ok, "{what}");
            failed += u64::from(saw_failure(&ran));
        }
        let name = rules.name;
        assert!(
            failed > 10,
            "{name}: {failed} of {seeds} runs saw a failure"
        );
    }
}

/// A request waits above for a clone, and the report follows it to the device that has lost it.
#[test]
fn a_completion_lost_below_is_followed_through_both_levels() {
    let mut plan = mapped("mq-deadline", 2, 64);
    below(&mut plan).below[1].device.fault.lost_completion = Ratio {
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
        assert!(clone.below.is_none(), "null_blk is mapped to nothing");
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
