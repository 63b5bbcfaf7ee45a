//! A device of the single-queue kind over two null_blks of blk-mq (use_blk_mq=N): its thread maps
//! every request, each ends once, with any failures of its paths, and a forgotten run or request is
//! detected.

use blkmq::dm::PathId;
use blkmq::drive::{Follower, Ran};
use blkmq::env::Cpu;
use blkmq::path::Frame;
use blkmq::queue::{BlkMq, LockId};
use blkmq::request::{CpuId, QueueId, Status};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};
use sim::machine::{Below, Simulator};
use sim::plan::{Outage, Plan, Ratio, Suspension};
use sim::recorder::SwitchTo;

use crate::mapped::{
    Ran as Whole, assert_no_error, assert_whole, below, fails_and_comes_back, fails_at_one_of,
    moments_of_issue, run, saw_failure,
};
use crate::runs;

/// One group of two paths in turn.
const ROUND_ROBIN: &str = "1 queue_if_no_path 0 1 1 round-robin 0 2 1 nullb0 1 nullb1 1";
/// A group for each path.
const TWO_GROUPS: &str =
    "1 queue_if_no_path 0 2 1 service-time 0 1 1 nullb0 1 service-time 0 1 1 nullb1 1";
/// 4,000 random reads of four threads, 16 deep each, over paths of so many tags.
fn plan(rules: &str, scheduler: &str, (irqmode, tags): (u8, u32), table: &str) -> Plan {
    runs::plan_of(&format!(
        "[queue]\nrules = \"{rules}\"\nscheduler = \"{scheduler}\"\n\
         [device]\ntype = \"null_blk\"\nnr_devices = 2\nsubmit_queues = 1\npoll_queues = 0\n\
         irqmode = {irqmode}\nhw_queue_depth = {tags}\n\
         [mapped]\nuse_blk_mq = 0\ntable = \"0 8388608 multipath {table}\"\n\
         [[job]]\nname = \"four\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n\
         iodepth = 16\nnumjobs = 4\nnumber_ios = 1000\nnorandommap = true\n\
         cpus_allowed = \"0-3\"\ncpus_allowed_policy = \"split\"\n"
    ))
}

/// Kernels that have such a queue.
fn kernels() -> impl Iterator<Item = &'static str> {
    let all = Rules::MAPPED.into_iter();
    all.map(|rules| rules.name)
}

/// Nothing is lost, nothing is in use, and no request of the upper queue is allocated.
fn assert_all_ended(ran: &Whole, name: &str) {
    assert_whole(ran);
    let upper = &ran.simulator.block_layer().queues[0];
    let single = upper.single.as_ref().expect("of the single-queue kind");
    let state = single.state.held(CpuId(0));
    assert_eq!(state.limits.allocated(), 0, "{name}: requests");
    assert_eq!(state.with_driver(), 0, "{name}: requests in flight");
}

#[test]
fn its_thread_maps_each_request_once() {
    for rules in kernels() {
        for scheduler in ["noop", "deadline"] {
            for irqmode in 0..3 {
                let name = format!("{rules}, {scheduler}, {irqmode}");
                let ran = run(&plan(rules, scheduler, (irqmode, 64), ROUND_ROBIN), |_| {});
                assert_all_ended(&ran, &name);
                assert_eq!(ran.issued[1] + ran.issued[2], 4_000, "{name}");
                assert_eq!(ran.issued[0], 4_000 + ran.requeued[0], "{name}");
                let cpus = &ran.simulator.recorder().cpus;
                let switches: u64 = cpus.iter().map(|cpu| cpu.switches[SwitchTo::Kdmwork]).sum();
                // A worker of kblockd goes before it, and the CPU returns to it.
                assert!((1..=8_000).contains(&switches), "{name}: {switches}");
            }
        }
    }
}

/// A path without a tag for a clone: the request goes back to the head of the queue above.
#[test]
fn what_finds_no_tag_below_comes_again() {
    for rules in kernels() {
        let ran = run(&plan(rules, "deadline", (2, 4), ROUND_ROBIN), |_| {});
        assert_all_ended(&ran, rules);
        assert!(ran.requeued[0] > 100, "{rules}: {:?}", ran.requeued);
        assert_eq!(ran.issued[1] + ran.issued[2], 4_000, "{rules}");
        assert_eq!(ran.issued[0], 4_000 + ran.requeued[0], "{rules}");
    }
}

/// Two hundred and fifty moments at which a path fails, and perhaps the other one.
#[test]
fn paths_fail_and_come_back_and_each_request_ends_once() {
    for rules in kernels() {
        for (handler, runs) in [(None, 60), (Some("alua"), 24)] {
            let mut whole = plan(rules, "noop", (2, 16), TWO_GROUPS);
            // A scenario has it for SCSI devices only.
            below(&mut whole).table.hw_handler = handler.map(str::to_owned);
            let moments = moments_of_issue(&whole);
            let mut failed = 0;
            for seed in 0..runs {
                let mut plan = whole.clone();
                fails_at_one_of(&moments, &mut plan, seed);
                let ran = run(&plan, |_| {});
                let name = format!("{rules} seed {seed}");
                let stall = ran.stall.as_ref();
                assert!(stall.is_none(), "{name}: {}", stall.unwrap());
                assert_eq!(ran.simulator.recorder().total_ios, 200, "{name}");
                assert_no_error(&ran, &name);
                failed += u64::from(saw_failure(&ran));
            }
            assert_eq!(failed, runs, "{rules}: runs that saw a failure");
        }
    }
}

/// Without queue_if_no_path the remaining requests end with an error when both paths fail, once.
#[test]
fn without_a_path_requests_end_with_an_error() {
    for rules in kernels() {
        let table = TWO_GROUPS.replace("1 queue_if_no_path", "0");
        let mut plan = plan(rules, "noop", (2, 16), &table);
        fails_and_comes_back(&mut plan, 3);
        for thread in &mut plan.threads {
            thread.survives_read = true;
        }
        let ran = run(&plan, |_| {});
        assert!(ran.stall.is_none(), "{rules}: {}", ran.stall.unwrap());
        let recorder = ran.simulator.recorder();
        let reads = &recorder.jobs[0].directions[0];
        assert!(reads.errors > 0, "{rules}: both paths were out of reach");
        assert_eq!(recorder.total_ios, 200, "{rules}");
    }
}

/// A label without its effects.
#[derive(Debug)]
struct Forgets(&'static str);

impl Follower for Forgets {
    fn before(&mut self, _mq: &BlkMq, _frame: &Frame) {}
    fn after(&mut self, _mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu) {
        let forgets = ran.was.label().name() == self.0;
        let mut taken = 0;
        while forgets && cpu.outbox.take(taken).is_some() {
            taken += 1;
        }
    }
    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    fn item_begins(&mut self, _mq: &BlkMq, _context: usize, _queue: QueueId) {}
}

/// Runs with that defect; the text of the stall, and the state below of the first request.
fn stalls(plan: &Plan, label: &'static str) -> (String, Option<Below>) {
    let forgets = |simulator: &mut Simulator| {
        simulator.follow(Box::new(Forgets(label)));
    };
    let ran = run(plan, forgets);
    let stall = ran.stall.unwrap_or_else(|| panic!("{label} is not missed"));
    let first = stall.requests.first().expect("a request is stuck");
    (stall.to_string(), first.below.clone())
}

#[test]
fn who_forgets_a_request_or_a_run_is_found_out() {
    let whole = plan("v4.5", "deadline", (2, 64), ROUND_ROBIN);
    let (text, below) = stalls(&whole, "single-run.begin");
    assert!(matches!(below, Some(Below::Nothing)), "{text}");
    assert!(text.contains("no clone of it is below"), "{text}");
    // The queue is not run for the only request, which is requeued as its path fails.
    let mut alone = plan("v4.5", "deadline", (2, 64), TWO_GROUPS);
    alone.threads.truncate(1);
    alone.threads[0].iodepth = 1;
    let mapped = self::below(&mut alone);
    mapped.outages.push(Outage {
        path: PathId(0),
        from: Duration(50_000),
        to: Duration(100_000),
    });
    mapped.below[0].device.fault.outages = true;
    let (text, below) = stalls(&alone, "single-end.requeue");
    assert!(below.is_none(), "it is above: {text}");
    assert!(
        text.contains("requests on the driver's list, 0 with"),
        "{text}"
    );
}

#[test]
fn a_completion_lost_below_is_followed_from_above() {
    let mut plan = plan("v4.5", "deadline", (2, 64), ROUND_ROBIN);
    below(&mut plan).below[1].device.fault.lost_completion = Ratio {
        numerator: 1,
        denominator: 100,
    };
    let stall = run(&plan, |_| {}).stall.expect("a request never ends");
    let text = stall.to_string();
    for words in [
        "dm-0 request ",
        "    its clone below: nullb1 request ",
        "dm-0 queue: not plugged, ",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
}

/// The device is suspended from then on for 20 ms, while paths fail; how many requests were mapped
/// in this time, if it was suspended before the end.
fn mapped_while_suspended(
    plan: &Plan,
    change: impl FnOnce(&mut Simulator),
) -> (Whole, Option<usize>) {
    let mut plan = plan.clone();
    let [suspension] = below(&mut plan).suspensions[..] else {
        panic!("one suspension")
    };
    let ran = run(&plan, change);
    let times = ran.simulator.recorder().suspensions[0];
    let within = |since: SimTime, time: SimTime| since < time && time.0 < suspension.resume.0;
    let count = times.suspended.map(|since| {
        let issues = ran.upper_issues.iter();
        issues.filter(|&&time| within(since, time)).count()
    });
    (ran, count)
}

/// Suspended at a moment of its own, up to 10 us before a path fails or after that.
fn suspended(whole: &Plan, moments: &[SimTime], seed: u64) -> Plan {
    let mut plan = whole.clone();
    fails_at_one_of(moments, &mut plan, seed);
    let noflush = seed.is_multiple_of(2);
    let mapped = below(&mut plan);
    if !noflush {
        // Requests in flight fail with both paths then, as queue_if_no_path is off during the
        // suspension.
        mapped.outages.truncate(1);
        mapped.messages.truncate(1);
    }
    mapped.interval = Duration::from_millis(1);
    let at = Duration(mapped.outages[0].from.0.saturating_sub(10_000) + seed * 500);
    let resume = at + Duration::from_millis(20);
    mapped.suspensions.push(Suspension {
        at,
        noflush,
        resume,
    });
    plan
}

/// A hundred and twenty moments of a suspension: nothing is mapped during it, and each request ends
/// once, without an error.
#[test]
fn it_is_suspended_at_any_moment_and_nothing_is_lost() {
    for rules in kernels() {
        let whole = plan(rules, "noop", (2, 16), TWO_GROUPS);
        let moments = moments_of_issue(&whole);
        let mut seen = [0; 3];
        for seed in 0..40 {
            let plan = suspended(&whole, &moments, seed);
            let at = below(&mut plan.clone()).suspensions[0].at;
            let (ran, mapped) = mapped_while_suspended(&plan, |_| {});
            let name = format!("{rules} seed {seed}");
            let stall = ran.stall.as_ref();
            assert!(stall.is_none(), "{name}: {}", stall.unwrap());
            let recorder = ran.simulator.recorder();
            assert!(
                recorder.jobs.iter().all(|job| job.error == Status::Ok),
                "{name}"
            );
            assert_eq!(recorder.total_ios, 200, "{name}");
            let Some(mapped) = mapped else {
                continue;
            };
            assert_eq!(mapped, 0, "{name}");
            let took = recorder.suspensions[0].suspended.unwrap().0 - at.0;
            seen[0] += 1;
            seen[1] += u64::from(took > 10_000);
            seen[2] += u64::from(saw_failure(&ran));
        }
        let [suspended, waited, failed] = seen;
        assert!(
            suspended > 20 && waited > 5 && failed > 30,
            "{rules}: {suspended}, {waited}, {failed}"
        );
    }
}

/// After that label of a suspension the queue is not stopped.
#[derive(Debug)]
struct NotStopped(&'static str);

impl Follower for NotStopped {
    fn before(&mut self, mq: &BlkMq, frame: &Frame) {
        if self.0 == "before" && frame.label().name() == "suspend.start-single" {
            start(mq);
        }
    }
    fn after(&mut self, mq: &BlkMq, ran: Ran<'_>, _cpu: &mut Cpu) {
        if self.0 == "after" && ran.was.label().name() == "suspend.stop-single" {
            start(mq);
        }
    }
    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    fn item_begins(&mut self, _mq: &BlkMq, _context: usize, _queue: QueueId) {}
}

/// A path that holds that queue's lock clears its mark.
fn start(mq: &BlkMq) {
    let single = mq.queue(QueueId(0)).single.as_ref();
    single
        .expect("of that kind")
        .stopped
        .clear(&mut Cpu::new(CpuId(0)));
}

#[test]
fn who_does_not_stop_it_or_does_not_run_it_again_is_found_out() {
    let mut seen = [0; 2];
    let whole = plan("v4.12", "noop", (2, 16), TWO_GROUPS);
    let moments = moments_of_issue(&whole);
    for seed in 0..20 {
        let mut plan = suspended(&whole, &moments, seed);
        // One I/O at a time: there are moments at which nothing is in flight.
        plan.threads.truncate(1);
        plan.threads[0].iodepth = 1;
        let ignores = |simulator: &mut Simulator| simulator.follow(Box::new(NotStopped("after")));
        let (_, mapped) = mapped_while_suspended(&plan, ignores);
        seen[0] += u64::from(mapped.is_some_and(|count| count > 0));
        let leaves = |simulator: &mut Simulator| simulator.follow(Box::new(NotStopped("before")));
        let (ran, _) = mapped_while_suspended(&plan, leaves);
        if let Some(stall) = ran.stall {
            seen[1] += 1;
            assert!(!stall.requests.is_empty(), "{stall}");
        }
    }
    let [mapped, left] = seen;
    assert!(
        mapped > 5 && left > 5,
        "{mapped} of 20 mapped, {left} of 20 left"
    );
}
