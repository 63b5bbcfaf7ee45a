//! Retries of requests that were not mapped, by the kernel's timers.

use blkmq::rules::Rules;
use sim::machine::Simulator;

use crate::runs;

/// One path, with its events.
fn run(rules: &str, device: &str, mapped: &str, job: &str) -> Simulator {
    let text = format!(
        "[queue]\nrules = \"{rules}\"\nscheduler = \"none\"\n\
         [device]\ntype = \"null_blk\"\npoll_queues = 0\nsubmit_queues = 1\nirqmode = 2\n{device}\n\
         [mapped]\nuse_blk_mq = 1\n\
         table = \"0 8000 multipath 1 queue_if_no_path 0 1 1 service-time 0 1 1 nullb0 1\"\n{mapped}\n\
         [[job]]\nname = \"one\"\nrw = \"randread\"\ndirect = 1\nioengine = \"libaio\"\n{job}\n"
    );
    let mut simulator = Simulator::new(&runs::plan_of(&text), &runs::machine()).unwrap();
    simulator.collect_counts();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{rules}: {}", stall.unwrap());
    simulator
}

/// How often requests of a thread were to be mapped.
fn mapped(rules: &str, device: &str, mapped: &str, job: &str) -> u64 {
    let simulator = run(rules, device, mapped, job);
    let mut labels = simulator.spent().labels();
    let found = labels.find(|(label, _)| label.name() == "map-rq.enter");
    found.map_or(0, |(_, sum)| sum.count)
}

/// A single change: all else under m->lock, the target is looked up for each request, or for none.
#[test]
fn the_target_is_looked_up_whatever_the_lock() {
    for rules in [Rules::v4_5(), Rules::v4_6(), Rules::v4_12()] {
        for lock in ["whole", "changes"] {
            for (target, times) in [("table", 100), ("known", 0)] {
                let keys = format!("kernel.target_lock = \"{lock}\"\nkernel.target = \"{target}\"");
                let simulator = run(rules.name, "", &keys, "number_ios = 100");
                let mut labels = simulator.spent().labels();
                let found = labels.find(|(label, _)| label.name() == "map-rq.table");
                let count = found.map_or(0, |(_, sum)| sum.count);
                assert_eq!(count, times, "{}, {lock}, {target}", rules.name);
            }
        }
    }
}

/// Without a path a request is requeued: at once up to 4.6, after 100 ms later.
#[test]
fn a_request_without_a_path_comes_again_in_100_ms() {
    let outage = |to: u32| {
        format!(
            "[[mapped.outage]]\npath = \"nullb0\"\nfrom_us = 0\nto_us = {to}\nreinstate_us = {to}"
        )
    };
    for rules in [Rules::v4_12(), Rules::v6_1(), Rules::v6_12()] {
        let count = mapped(rules.name, "", &outage(450_000), "number_ios = 1");
        // One that fails, one that finds no path, four failed attempts, and one after the outage.
        assert!((6..=7).contains(&count), "{}: {count}", rules.name);
    }
    for rules in [Rules::v4_5(), Rules::v4_6()] {
        let count = mapped(rules.name, "", &outage(2_000), "number_ios = 1");
        assert!(count > 50, "{}: {count}", rules.name);
    }
}

/// A request without a tag below is retried when a tag is freed, with 4.12 every 100 ms besides,
/// and later every 3 ms (BLK_MQ_RESOURCE_DELAY, which the timer wheel rounds up).
#[test]
fn a_request_without_a_tag_below_is_tried_again_and_again() {
    let slow = "completion_nsec = 350000000\nhw_queue_depth = 1";
    for (rules, expected) in [
        (Rules::v4_12(), 5..=7),
        (Rules::v6_1(), 80..=120),
        (Rules::v6_12(), 80..=120),
    ] {
        let count = mapped(rules.name, slow, "", "number_ios = 2\niodepth = 2");
        assert!(expected.contains(&count), "{}: {count}", rules.name);
    }
}
