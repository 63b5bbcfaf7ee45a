//! A multipath device of the single-queue kind over paths of the same kind: its clones go around
//! the paths' schedulers, all of it comes out once, whatever paths do, and who forgets an end is
//! found out.

use blkmq::env::Slab;
use blkmq::request::{CpuId, Status};
use blkmq::rules::Rules;
use blkmq::time::Duration;
use sim::plan::{Plan, Suspension};
use sim::recorder::SwitchTo;

use crate::mapped::{
    assert_no_error, below, fails_and_comes_back, fails_at_one_of, moments_of_issue, run,
    saw_failure,
};
use crate::mapped_single::{Forgets, assert_all_ended, kernels};
use crate::runs;

/// Two units of SCSI, each on a host of its own, which take four commands at a time.
const SCSI: &str = "type = \"scsi_debug\"\nadd_host = 2\nndelay = 20000\ndev_size_mb = 64\n\
                    cmd_per_lun = 4\nmax_queue = 64";
/// Two devices whose driver has no limit but its tags.
const NULL: &str = "type = \"null_blk\"\nnr_devices = 2\nsubmit_queues = 1\npoll_queues = 0\n\
                    irqmode = 2\nhw_queue_depth = 16";

/// One group of both paths in turn.
const ROUND_ROBIN: &str = "1 queue_if_no_path 0 1 1 round-robin 0 2 1 FIRST 1 SECOND 1";
/// A group for each path.
const TWO_GROUPS: &str =
    "1 queue_if_no_path 0 2 1 service-time 0 1 1 FIRST 1 service-time 0 1 1 SECOND 1";
/// The same with a hardware handler.
const ALUA: &str =
    "1 queue_if_no_path 1 alua 2 1 service-time 0 1 1 FIRST 1 service-time 0 1 1 SECOND 1";

/// 4,000 random reads of four threads, 16 deep each.
fn plan(rules: &str, scheduler: &str, device: &str, table: &str) -> Plan {
    let [first, second] = match device.contains("scsi") {
        true => ["sda", "sdb"],
        false => ["nullb0", "nullb1"],
    };
    let table = table.replace("FIRST", first).replace("SECOND", second);
    runs::plan_of(&format!(
        "[queue]\nrules = \"{rules}\"\npath = \"single-queue\"\nscheduler = \"{scheduler}\"\n\
         [device]\n{device}\n[mapped]\ntable = \"0 131072 multipath {table}\"\n\
         [[job]]\nname = \"four\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n\
         iodepth = 16\nnumjobs = 4\nnumber_ios = 1000\nnorandommap = true\n\
         cpus_allowed = \"0-3\"\ncpus_allowed_policy = \"split\"\n"
    ))
}

#[test]
fn its_thread_maps_each_request_once_around_the_schedulers_below() {
    for rules in kernels() {
        for (scheduler, device) in [("deadline", SCSI), ("cfq", SCSI), ("noop", NULL)] {
            let name = format!("{rules}, {scheduler}");
            let ran = run(&plan(rules, scheduler, device, ROUND_ROBIN), |_| {});
            assert_all_ended(&ran, &name);
            let below = ran.requeued[1] + ran.requeued[2];
            // While paths are busy neighbours merge above.
            let requests = ran.issued[0] - ran.requeued[0];
            assert!((3_950..=4_000).contains(&requests), "{name}: {requests}");
            assert_eq!(ran.issued[1] + ran.issued[2], requests + below, "{name}");
            for path in &ran.simulator.block_layer().queues[1..] {
                let single = path.single.as_ref().expect("of the single-queue kind");
                let state = single.state.held(CpuId(0));
                assert_eq!(state.limits.allocated(), 0, "{name}: requests of a path");
                assert_eq!(state.with_driver(), 0, "{name}: requests in flight");
            }
            let cpus = &ran.simulator.recorder().cpus;
            let switches: u64 = cpus.iter().map(|cpu| cpu.switches[SwitchTo::Kdmwork]).sum();
            assert!((1..=8_000).contains(&switches), "{name}: {switches}");
        }
    }
}

/// Moments at which a path fails, and perhaps the other one.
#[test]
fn paths_fail_and_come_back_and_each_request_ends_once() {
    for rules in kernels() {
        for (device, table, runs) in [
            (SCSI, TWO_GROUPS, 40),
            (NULL, TWO_GROUPS, 20),
            (SCSI, ALUA, 20),
        ] {
            let whole = plan(rules, "noop", device, table);
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

/// Without queue_if_no_path what is left when both paths fail ends with an error, once.
#[test]
fn without_a_path_requests_end_with_an_error() {
    for rules in kernels() {
        let table = TWO_GROUPS.replace("1 queue_if_no_path", "0");
        let mut plan = plan(rules, "noop", SCSI, &table);
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

/// Suspended at moments of its own, while a path fails: each request ends once, without an error.
#[test]
fn it_is_suspended_at_any_moment_and_nothing_is_lost() {
    for rules in kernels() {
        let whole = plan(rules, "noop", SCSI, TWO_GROUPS);
        let moments = moments_of_issue(&whole);
        let (mut seen, mut failed) = (0, 0);
        for seed in 0..20 {
            let mut plan = whole.clone();
            fails_at_one_of(&moments, &mut plan, seed);
            let mapped = below(&mut plan);
            mapped.outages.truncate(1);
            mapped.messages.truncate(1);
            mapped.interval = Duration::from_millis(1);
            let at = Duration(mapped.outages[0].from.0.saturating_sub(10_000) + seed * 1_000);
            mapped.suspensions.push(Suspension {
                at,
                noflush: seed.is_multiple_of(2),
                resume: at + Duration::from_millis(20),
            });
            let ran = run(&plan, |_| {});
            let name = format!("{rules} seed {seed}");
            let stall = ran.stall.as_ref();
            assert!(stall.is_none(), "{name}: {}", stall.unwrap());
            let recorder = ran.simulator.recorder();
            let well = recorder.jobs.iter().all(|job| job.error == Status::Ok);
            assert!(well, "{name}");
            assert_eq!(recorder.total_ios, 200, "{name}");
            seen += u64::from(recorder.suspensions[0].suspended.is_some());
            failed += u64::from(saw_failure(&ran));
        }
        assert!(
            seen > 10 && failed > 15,
            "{rules}: {seen} of 20 were suspended, {failed} saw a failure"
        );
    }
}

/// The end of a clone that tells nobody leaves a request for ever, and a stall says what is below.
#[test]
fn who_forgets_the_request_above_is_found_out() {
    for rules in Rules::MAPPED {
        let plan = plan(rules.name, "deadline", SCSI, ROUND_ROBIN);
        let ran = run(&plan, |simulator| {
            simulator.follow(Box::new(Forgets("clone-end.path-complete")));
        });
        let stall = ran.stall.expect("nobody ends what is above");
        let text = stall.to_string();
        assert!(text.contains("dm-0 request "), "{text}");
        assert!(text.contains("its clone below: sda request "), "{text}");
    }
}
