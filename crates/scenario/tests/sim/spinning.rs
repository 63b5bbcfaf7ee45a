//! A run that works for ever without progress is a stall whose report names the spinning tasks; one
//! that waits long for a device is none.

use scenario::profile;
use sim::machine::{Simulator, Stall, Why};
use sim::plan::{DeviceId, Plan};
use sim::profile::MachineProfile;
use wrapper::DeviceWrapper;

use crate::runs;
use crate::wrapper;

/// More poll queues than the one to which a thread on one CPU submits.
const FOUR_POLL_QUEUES: &str = "type = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 4\n\
                                hw_queue_depth = 4\nirqmode = 2\nshared_tag_bitmap = 1\n";

const NONE: &str = "scheduler = \"none\"";

/// A scenario of 4 CPUs: keys of its device, and of its job, which polls.
fn plan(queue: &str, device: &str, job: &str) -> Plan {
    let text = format!(
        "[machine]\ncpus = 4\n[queue]\n{queue}\n[device]\n{device}\n\
         [[job]]\nname = \"polled\"\nrw = \"randread\"\nioengine = \"io_uring\"\ndirect = 1\n\
         hipri = 1\nthread = 1\nsize = \"16m\"\n{job}\n"
    );
    runs::plan_of(&text)
}

/// I/Os that ended, and the stall.
fn run_on(
    plan: &Plan,
    profile: &MachineProfile,
    change: impl FnOnce(&mut Simulator),
) -> (u64, Option<Box<Stall>>) {
    let mut simulator = Simulator::new(plan, profile).unwrap();
    change(&mut simulator);
    let stall = runs::to_its_end(&mut simulator);
    (simulator.recorder().total_ios, stall)
}

fn run(plan: &Plan, change: impl FnOnce(&mut Simulator)) -> (u64, Option<Box<Stall>>) {
    run_on(plan, &runs::machine(), change)
}

fn around(wrap: impl FnOnce(&mut DeviceWrapper)) -> impl FnOnce(&mut Simulator) {
    |simulator| DeviceWrapper::around(simulator, DeviceId(0), wrap)
}

/// Polled commands that are lost: each poller polls the hctx of its own and finds nothing, and
/// workers sleep for the tags.
#[test]
fn a_poller_whose_commands_are_lost_is_a_stall() {
    let lost = format!("{FOUR_POLL_QUEUES}[device.fault]\nlost_completion = \"1/20\"\n");
    let (ios, stall) = run(
        &plan(NONE, &lost, "iodepth = 16\nnumber_ios = 1000"),
        |_| {},
    );
    let stall = stall.expect("4 tags never come back");
    assert_eq!(stall.why, Why::OnlyPolls);
    assert!(ios < 1000, "{ios}");
    assert!(stall.at.since(stall.progress).0 < 50_000_000, "{stall}");
    let text = stall.to_string();
    for words in [
        "only polls go on, and none of them will ever find a completion",
        "thread polled.0 polls hctx ",
        "io_uring's worker of thread polled.0 sleeps for a driver tag of hctx 0",
        "4 of them are with the device, which has announced no completion and set no timer",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    // It polls each hctx that has one of its commands, and no other.
    let of_lost = stall.requests.iter().map(|rq| rq.hctx);
    let mut of_lost: Vec<String> = of_lost.map(|hctx| format!("hctx {hctx}")).collect();
    of_lost.sort();
    of_lost.dedup();
    let polls = format!("thread polled.0 polls {} on CPU", of_lost.join(", "));
    assert!(text.contains(&polls), "{polls}:\n{text}");
}

const FIFTY_MS: &str = "type = \"scsi_debug\"\nsubmit_queues = 2\npoll_queues = 1\n\
                      ndelay = 50000000\ndev_size_mb = 64\nmax_queue = 8\n";

/// A drive that answers after 50 ms, and does not report when a poller will find a completion: only
/// that distinguishes long waits from others.
#[test]
fn a_device_must_announce_what_pollers_will_find() {
    let plan = plan("", FIFTY_MS, "iodepth = 4\nnumber_ios = 40");
    let (ios, stall) = run(&plan, around(|wrapper| wrapper.silent = true));
    assert_eq!(stall.expect("taken for one").why, Why::OnlyPolls);
    assert!(ios < 40, "{ios}");
}

#[test]
fn a_poller_that_is_blind_is_a_stall() {
    for device in [FIFTY_MS, FOUR_POLL_QUEUES] {
        let plan = plan("", device, "number_ios = 4");
        let (ios, stall) = run(&plan, around(|wrapper| wrapper.blind = true));
        let stall = stall.expect("it never finds anything");
        assert_eq!((stall.why, ios), (Why::OnlyPolls, 0));
    }
}

#[test]
fn work_in_vain_is_a_stall() {
    let device = "type = \"null_blk\"\nsubmit_queues = 1\npoll_queues = 1\nirqmode = 2\n";
    for scheduler in ["none", "mq-deadline"] {
        let queue = format!("scheduler = \"{scheduler}\"");
        let mut plan = plan(&queue, device, "number_ios = 4");
        plan.threads[0].polled = false;
        let (ios, stall) = run(&plan, around(|wrapper| wrapper.busy = true));
        let stall = stall.expect("no command is ever taken");
        assert!(matches!(stall.why, Why::InVain(_)), "{stall}");
        assert_eq!(ios, 0);
        let text = stall.to_string();
        for words in [
            "work goes on without progress",
            "on the dispatch list",
            "work items are pending",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
    }
}

/// Polls without a price: the poller polls again before its device can answer.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "long without optimisation: cargo xtask test"
)]
fn a_clock_that_stands_still_is_a_stall() {
    let nvme = "type = \"nvme\"\nnr_queues = 2\npoll_queues = 1\n";
    let plan = plan("", nvme, "number_ios = 4");
    let built_in = profile::to_toml(&runs::machine());
    let price = built_in
        .lines()
        .find(|line| line.starts_with("nvme_poll = "));
    let free = built_in.replace(price.unwrap(), "nvme_poll = 0");
    let (_, stall) = run_on(&plan, &profile::parse(&free).unwrap(), |_| {});
    let stall = stall.expect("time does not move");
    assert_eq!(stall.why, Why::NoTime);
    let text = stall.to_string();
    assert!(text.contains("thread polled.0 polls hctx"), "{text}");
    let (_, stall) = run(&plan, |_| {});
    assert!(stall.is_none(), "{}", stall.unwrap());
}
