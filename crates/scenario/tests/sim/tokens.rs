//! A scheduler with tokens in the simulator: they limit the requests at the device, and a run in
//! which they are not freed reports the waiting hctxs.

use blkmq::elevator::{ElevatorTokens, SchedulerInfo, SchedulerSettings};
use blkmq::env::TraceAction;
use blkmq::request::Op;
use sim::machine::Simulator;
use throttle::{Throttle, info, tokens};

use crate::runs;
use crate::throttle;

const NARROW: &[ElevatorTokens] = &tokens(4, 2);
const WIDE: &[ElevatorTokens] = &tokens(64, 64);
const THROTTLE: SchedulerInfo = info(NARROW);
const OPEN: SchedulerInfo = info(WIDE);

/// Three threads that read and write, as fast as the device goes.
fn simulator(info: &'static SchedulerInfo, leaks: bool, device: &str) -> Simulator {
    let mut plan = runs::plan_of(&format!(
        "[device]\ntype = \"null_blk\"\npoll_queues = 0\nirqmode = 2\nhw_queue_depth = 16\n\
         completion_nsec = 50000\n{device}[queue]\nscheduler = \"mq-deadline\"\n\
         nr_requests = 64\n[[job]]\nname = \"mixed\"\nrw = \"randrw\"\ndirect = 1\n\
         ioengine = \"io_uring\"\nnorandommap = true\niodepth = 16\nnumjobs = 3\n\
         number_ios = 400\ncpus_allowed = \"0-2\"\ncpus_allowed_policy = \"split\"\n"
    ));
    let own = Throttle::custom(info, leaks);
    plan.disks[0].queue.scheduler = SchedulerSettings::Custom(own);
    Simulator::new(&plan, &runs::machine()).unwrap()
}

/// Most reads and writes at the device at once, how many ended, and how many the driver requeued.
fn most(mut simulator: Simulator) -> ([u32; 2], u32, u32) {
    simulator.trace();
    if let Some(stall) = runs::to_its_end(&mut simulator) {
        panic!("{stall}");
    }
    let (mut now, mut most, mut ended, mut requeues) = ([0_u32; 2], [0; 2], 0, 0);
    for (_, _, _, point) in simulator.take_trace() {
        let of = usize::from(point.op != Op::Read);
        match point.action {
            TraceAction::Issue => now[of] += 1,
            TraceAction::Requeue => requeues += 1,
            TraceAction::Complete => {
                now[of] -= 1;
                ended += 1;
            }
            _ => {}
        }
        most[of] = most[of].max(now[of]);
    }
    (most, ended, requeues)
}

const ONE_HCTX: &str = "submit_queues = 1\n";
const THREE_HCTXS: &str = "submit_queues = 3\n";

#[test]
fn tokens_limit_what_is_in_the_device() {
    for device in [ONE_HCTX, THREE_HCTXS] {
        let (most_open, ended, _) = most(simulator(&OPEN, false, device));
        assert!(most_open.iter().all(|&most| most > 6), "{most_open:?}");
        assert_eq!(ended, 1200);
        assert_eq!(most(simulator(&THROTTLE, false, device)), ([4, 2], 1200, 0));
    }
}

#[test]
fn a_request_that_its_driver_gives_back_gives_its_token_back() {
    let requeues = format!("{ONE_HCTX}[device.fault]\nrequeue = \"1/10\"\n");
    let (most, ended, requeues) = most(simulator(&THROTTLE, false, &requeues));
    assert_eq!((most, ended), ([4, 2], 1200));
    assert!(requeues > 50, "{requeues}");
}

#[test]
fn a_stall_names_which_hctx_waits_for_which_token() {
    let mut simulator = simulator(&THROTTLE, true, ONE_HCTX);
    let stall = runs::to_its_end(&mut simulator).expect("tokens are gone");
    let text = stall.to_string();
    for line in [
        "hctx 0 waits for a read token of throttle, 4 of 4 are taken",
        "hctx 0 waits for a write token of throttle, 2 of 2 are taken",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
