//! docs/findings/0001: a queue that goes idle raises the wake batch of the tags that it shares, and
//! tasks of the other one keep sleeping with all tags free. Numbers of sleepers are those of a real
//! kernel 6.1.192.

use blkmq::queue::BlkMq;
use blkmq::rules::WakeScan;
use blkmq::time::SimTime;
use sim::machine::{Outcome, Simulator, Stall};
use sim::plan::Plan;

use crate::runs;

const SCENARIO: &str = include_str!("../../../cli/scenarios/idle-user-stall.toml");

/// Until here each event is checked: reads that get a tag without further help have ended.
const WATCHED: SimTime = SimTime(15_000_000_000);

fn change(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from}");
    text.replace(from, to)
}

/// As measured: nullb0 answers in 4 s, nullb1 in 10 us, and the readers start at once.
fn measured() -> String {
    let text = SCENARIO.replacen("1_000_000_000", "4_000_000_000", 1);
    let text = text.replacen("= 1_000_000_000", "= 10_000", 1);
    change(&text, "startdelay = \"2500ms\"", "startdelay = \"10ms\"")
}

/// A scenario with so many readers.
fn plan(text: &str, readers: u32, rules: &str) -> Plan {
    let text = change(text, "numjobs = 56", &format!("numjobs = {readers}"));
    runs::plan_of(&change(&text, "\"v6.1\"", &format!("\"{rules}\"")))
}

#[derive(Debug)]
struct Ran {
    /// Most tasks that slept for a tag while none was allocated.
    in_vain: usize,
    end: SimTime,
    ios: u64,
    stall: Option<Box<Stall>>,
}

fn in_vain(mq: &BlkMq) -> usize {
    let set = &mq.sets[0];
    match set.driver[0].busy_count() {
        0 => set.waiting_count(),
        _ => 0,
    }
}

fn run(plan: &Plan) -> Ran {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    let mut most = 0;
    let mut outcome = None;
    while simulator.now() < WATCHED && outcome.is_none() {
        outcome = simulator.run_some(1);
        most = most.max(in_vain(simulator.block_layer()));
    }
    let stall = match outcome {
        Some(Outcome::Stalled(stall)) => Some(stall),
        Some(Outcome::Finished) => None,
        None => runs::to_its_end(&mut simulator),
    };
    Ran {
        in_vain: most,
        end: simulator.now(),
        ios: simulator.recorder().total_ios,
        stall,
    }
}

/// 4 sleep at the end, and the timer of their own queue wakes 2 of them.
#[test]
fn with_56_readers_two_sleep_for_ever() {
    for text in [measured(), SCENARIO.to_owned()] {
        let ran = run(&plan(&text, 56, "v6.1"));
        assert_eq!(ran.in_vain, 4, "{ran:?}");
        let stall = ran.stall.expect("two sleep");
        assert_eq!(stall.tag_waits.len(), 2, "{stall}");
        assert_eq!(ran.ios, 1 + 54);
        let text = stall.to_string();
        for words in [
            "sleeps for a driver tag of nullb0 hctx 0",
            "no tag will be freed",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
    }
}

/// 3 sleep until their own queue's timer runs, which wakes one of each wait queue; seen to end
/// after 17.3 to 17.5 s, as the wheel of timers is coarser there.
#[test]
fn with_48_readers_three_sleep_until_the_timer() {
    let ran = run(&plan(&measured(), 48, "v6.1"));
    assert!(ran.stall.is_none(), "{}", ran.stall.unwrap());
    assert_eq!((ran.in_vain, ran.ios), (3, 1 + 48));
    let (from, to) = (SimTime(16_900_000_000), SimTime(17_500_000_000));
    assert!(ran.end > from && ran.end < to, "{:?}", ran.end);
}

/// With a long io_timeout that timer is far away, unless a read begins after its first round.
#[test]
fn the_timer_may_be_200_s_away() {
    let text = change(&measured(), "io_timeout = 10_000", "io_timeout = 200_000");
    let late = change(&text, "startdelay = \"10ms\"", "startdelay = \"2s\"");
    for (text, seconds) in [(late, 200), (text, 17)] {
        let ran = run(&plan(&text, 48, "v6.1"));
        assert!(ran.stall.is_none(), "{}", ran.stall.unwrap());
        assert_eq!((ran.in_vain, ran.ios), (3, 1 + 48));
        let at_least = SimTime(seconds * 1_000_000_000);
        assert!(ran.end > at_least, "{:?}", ran.end);
    }
}

#[test]
fn newer_kernels_wake_them_all() {
    for readers in [48, 56] {
        let ran = run(&plan(&measured(), readers, "v6.12"));
        assert!(ran.stall.is_none(), "{}", ran.stall.unwrap());
        assert_eq!((ran.in_vain, ran.ios), (0, 1 + u64::from(readers)));
        // A reader that is woken when the other queue goes idle reads until 7 s; then the rest,
        // until 11.
        assert!(ran.end < SimTime(11_200_000_000), "{:?}", ran.end);
    }
}

/// The repair by itself: a batch goes on to the next wait queue.
#[test]
fn the_scan_of_6_12_alone_repairs_6_1() {
    let mut plan = plan(&measured(), 56, "v6.1");
    for disk in &mut plan.disks {
        disk.queue.rules.wake_scan = WakeScan::UntilSpent;
    }
    let ran = run(&plan);
    assert!(ran.stall.is_none(), "{}", ran.stall.unwrap());
    assert_eq!((ran.in_vain, ran.ios), (0, 1 + 56));
}

/// Most tags of a batch of 8 reads that is plugged, on a set of 8 that another queue uses, too.
fn most_in_a_plug(rules: &str) -> u32 {
    let text = format!(
        "[machine]\ncpus = 2\n[queue]\nrules = \"{rules}\"\nscheduler = \"none\"\n\
         [device]\ntype = \"null_blk\"\nnr_devices = 2\nshared_tags = 1\nhw_queue_depth = 8\n\
         irqmode = 2\ncompletion_nsec = 100_000_000\n\
         [[job]]\nname = \"user\"\nfilename = \"/dev/nullb1\"\nrw = \"randread\"\nbs = \"4k\"\n\
         direct = 1\nnumber_ios = 1\n\
         [[job]]\nname = \"batch\"\nfilename = \"/dev/nullb0\"\nrw = \"randread\"\nbs = \"4k\"\n\
         direct = 1\nioengine = \"io_uring\"\niodepth = 8\niodepth_batch = 8\nnumber_ios = 8\n\
         startdelay = \"200ms\"\n"
    );
    let mut simulator = Simulator::new(&runs::plan_of(&text), &runs::machine()).unwrap();
    let mut most = 0;
    while simulator.run_some(1).is_none() {
        most = most.max(simulator.block_layer().sets[0].driver[0].busy_count());
    }
    assert_eq!(simulator.recorder().total_ios, 9);
    most
}

/// Without scheduler v6.1 counts a request against its share of 4 when it is issued, not while it
/// is in the plug.
#[test]
fn a_plug_of_v6_1_may_hold_more_than_a_share() {
    assert_eq!(most_in_a_plug("v6.12"), 4);
    assert_eq!(most_in_a_plug("v6.1"), 8);
}
