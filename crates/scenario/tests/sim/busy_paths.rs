//! Paths of a mapped device whose drivers report busy: its requests stay above until a path accepts
//! one.

use blkmq::rules::{BusyPaths, Rules};
use sim::machine::Simulator;
use sim::plan::Plan;

use crate::runs;

const IOS: u64 = 600;

/// One mapped device over two of these, and three threads on it.
fn plan(rules: &str, device: &str, paths: [&str; 2]) -> Plan {
    let [first, second] = paths;
    runs::plan_of(&format!(
        "[queue]\nrules = \"{rules}\"\nscheduler = \"none\"\n[device]\n{device}\n\
         [mapped]\nuse_blk_mq = 1\n\
         table = \"0 16000 multipath 0 0 1 1 round-robin 0 2 1 {first} 1 {second} 1\"\n\
         [[job]]\nname = \"j\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\niodepth = 8\n\
         numjobs = 3\nnumber_ios = {}\nnorandommap = true\ncpus_allowed = \"0-2\"\n\
         cpus_allowed_policy = \"split\"\n",
        IOS / 3
    ))
}

/// Two hosts with a unit each, which takes so many commands.
fn scsi(rules: &str, lun_depth: u32) -> Plan {
    let device = format!(
        "type = \"scsi_debug\"\nadd_host = 2\nndelay = 20000\ncmd_per_lun = {lun_depth}\n\
         max_queue = 64"
    );
    plan(rules, &device, ["sda", "sdb"])
}

/// Calls that asked whether a path is busy, requests to be mapped, clones that were given up, and
/// I/Os.
#[derive(Debug)]
struct Counted {
    asked: u64,
    mapped: u64,
    given_up: u64,
    ios: u64,
}

fn run(plan: &Plan) -> Counted {
    let mut simulator = Simulator::new(plan, &runs::machine()).unwrap();
    simulator.collect_counts();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{}", stall.unwrap());
    simulator.settle();
    let count = |name| {
        let mut labels = simulator.spent().labels();
        let found = labels.find(|(label, _)| label.name() == name);
        found.map_or(0, |(_, sum)| sum.count)
    };
    let counted = Counted {
        asked: count("map-rq.path-busy"),
        mapped: count("map-rq.get"),
        given_up: count("map-rq.clone") - count("map-rq.start-io") + count("map-rq.undo"),
        ios: simulator.recorder().total_ios,
    };
    assert_eq!(counted.ios, IOS, "{counted:?}");
    counted
}

/// Each unit takes two commands at a time of 24: nearly all mapped requests find a budget; kernels
/// that do not ask first map requests that then find none.
#[test]
fn with_all_paths_busy_requests_stay_above_and_come_back() {
    for rules in [Rules::v6_1(), Rules::v6_12()] {
        let mut plan = scsi(rules.name, 2);
        let asks = run(&plan);
        assert!(asks.asked > IOS, "{}: {asks:?}", rules.name);
        assert!(asks.given_up * 10 < IOS, "{}: {asks:?}", rules.name);
        plan.disks[0].queue.rules.device_mapper.requests.busy_paths = BusyPaths::Unheard;
        let blind = run(&plan);
        assert_eq!(blind.asked, 0, "{}", rules.name);
        assert!(
            blind.given_up > 4 * asks.given_up,
            "{}: {blind:?}, {asks:?}",
            rules.name
        );
    }
}

/// Up to 4.20 no driver of a queue of blk-mq reports busy; null_blk's never does.
#[test]
fn who_has_nothing_to_say_is_not_asked() {
    for rules in Rules::MAPPED {
        assert_eq!(run(&scsi(rules.name, 2)).asked, 0, "{}", rules.name);
    }
    let null = "type = \"null_blk\"\nnr_devices = 2\npoll_queues = 0\nhw_queue_depth = 2\n\
                irqmode = 2\nsubmit_queues = 1";
    for rules in [Rules::v6_1(), Rules::v6_12()] {
        let counted = run(&plan(rules.name, null, ["nullb0", "nullb1"]));
        assert_eq!(counted.asked, 0, "{}", rules.name);
    }
}

/// A unit that accepts every command is asked, and is not busy.
#[test]
fn paths_with_room_say_so() {
    let counted = run(&scsi("v6.1", 32));
    assert_eq!((counted.mapped, counted.given_up), (IOS, 0), "{counted:?}");
    assert_eq!(counted.asked, IOS, "the first path has room: {counted:?}");
}
