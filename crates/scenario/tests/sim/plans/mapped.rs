//! `[mapped]`: its devices.

use std::path::Path;

use super::plan;
use blkmq::dm::PathId;
use blkmq::dm::multipath::Message;
use blkmq::elevator::SchedulerSettings;
use blkmq::rules::{CloneInsertion, DeviceMapper, EndRun};
use blkmq::time::Duration;
use scenario::Scenario;
use sim::plan::Plan;

const JOB: &str =
    "[[job]]\nrw = \"randread\"\nioengine = \"libaio\"\niodepth = 4\nruntime = \"1ms\"\n";
const TABLE: &str = "table = \"0 8000 multipath 0 0 1 1 service-time 0 2 1 nullb1 1 nullb0 1\"\n";

fn text(queue: &str, device: &str, mapped: &str) -> String {
    format!("[queue]\n{queue}[device]\ntype = \"null_blk\"\n{device}[mapped]\n{mapped}{JOB}")
}

#[test]
fn paths_are_no_disks_and_stand_in_the_order_of_the_table() {
    let queue = "rules = \"v4.5\"\nscheduler = \"none\"\n";
    let more = "use_blk_mq = 1\ndm_mq_nr_hw_queues = 2\nkernel.end_run = \"nothing\"\n\
                outage = [{ path = \"nullb0\", from_us = 5, to_us = 9 }]\n\
                message = [{ at_us = 3, text = \"fail_path nullb1\" }]\n";
    let plan = plan(&text(queue, "nr_devices = 2\n", &format!("{TABLE}{more}"))).unwrap();
    let [disk] = &plan.disks[..] else {
        panic!("{} disks", plan.disks.len())
    };
    assert_eq!(
        (disk.device.name.as_str(), disk.device.sectors),
        ("dm-0", 8000)
    );
    assert_eq!(
        (disk.device.default_queues, disk.device.queue_depth),
        (2, 128)
    );
    let names: Vec<&str> = disk.below().iter().map(|path| &*path.device.name).collect();
    assert_eq!(names, ["nullb1", "nullb0"]);
    for path in disk.below() {
        assert_eq!(path.capacity.bios, disk.capacity.bios);
        assert!(path.device.fault.outages, "one of them is out of reach");
        assert_eq!(path.queue.scheduler, SchedulerSettings::None);
    }
    let rules = disk.queue.rules.device_mapper;
    assert_eq!(rules.requests.end_run, EndRun::Nothing, "the one change");
    assert_eq!(rules.requests.insertion, CloneInsertion::InBackground);
    let mapped = disk.mapped().unwrap();
    let (path, look) = (PathId(1), Duration::from_secs(5));
    assert_eq!(mapped.outages[0].path, path);
    let messages = [
        (look, Message::Reinstate(path)),
        (Duration(3000), Message::Fail(PathId(0))),
    ];
    assert_eq!(mapped.messages, messages);
}

#[test]
fn the_scheduler_is_that_of_the_mapped_queue() {
    let plan = plan(&text(
        "scheduler = \"mq-deadline\"\n",
        "nr_devices = 2\n",
        TABLE,
    ))
    .unwrap();
    let disk = &plan.disks[0];
    assert_ne!(disk.queue.scheduler, SchedulerSettings::None);
    assert_eq!(disk.below()[0].queue.scheduler, SchedulerSettings::None);
    assert_eq!(disk.queue.rules.device_mapper, DeviceMapper::V6_12);
}

#[test]
fn with_use_blk_mq_0_the_mapped_queue_alone_is_a_single_queue_one() {
    let queue = "rules = \"v4.5\"\nscheduler = \"deadline\"\n";
    for written in ["", "use_blk_mq = 0\n", "use_blk_mq = \"N\"\n"] {
        let plan = plan(&text(
            queue,
            "nr_devices = 2\n",
            &format!("{TABLE}{written}"),
        ))
        .unwrap();
        let disk = &plan.disks[0];
        assert!(disk.queue.rules.single_queue.is_some(), "{written}");
        assert_eq!(disk.queue.scheduler.kind().name(), "deadline");
        assert_eq!(disk.queue.nr_requests, 128);
        for path in disk.below() {
            assert!(path.queue.rules.single_queue.is_none(), "{written}");
            assert_eq!(path.queue.scheduler, SchedulerSettings::None);
        }
    }
}

/// Two hosts of two units, and a mapped device over each unit.
const HOSTS: &str = "[device]\ntype = \"fc\"\nadd_host = 2\nmax_luns = 2\n";

fn several(device: &str, tables: &[&str], more: &str) -> String {
    let mapped = |table: &&str| format!("[[mapped]]\ntable = \"0 8000 multipath {table}\"\n");
    let mapped: String = tables.iter().map(mapped).collect();
    let job = "[[job]]\nfilename = \"/dev/dm-1\"\nrw = \"randread\"\nruntime = \"1ms\"\n";
    format!("{device}{mapped}{more}{job}")
}

const FIRST: &str = "0 0 1 1 round-robin 0 2 0 sda sdc";
const SECOND: &str = "0 0 1 1 round-robin 0 2 0 sdd sdb";

#[test]
fn several_tables_make_devices_in_their_order() {
    let more = "kernel.end_run = \"nothing\"\n[[mapped.outage]]\npath = \"sdb\"\nfrom_us = 1\n\
                to_us = 2\n";
    let plan = plan(&several(HOSTS, &[FIRST, SECOND], more)).unwrap();
    let names: Vec<&str> = plan.queues().map(|of| &*of.device.name).collect();
    assert_eq!(names, ["dm-0", "dm-1", "sda", "sdb", "sdc", "sdd"]);
    let sets: Vec<u16> = plan.queues().map(|of| of.set.0).collect();
    assert_eq!(sets, [0, 1, 2, 2, 3, 3]);
    let changed = [0, 1].map(|disk: usize| {
        let rules = plan.disks[disk].queue.rules.device_mapper.requests;
        (
            rules.end_run,
            plan.disks[disk].mapped().unwrap().outages.len(),
        )
    });
    let usual = DeviceMapper::V6_12.requests.end_run;
    assert_eq!(
        changed,
        [(usual, 0), (EndRun::Nothing, 1)],
        "the second one's"
    );
    for unit in plan.queues().skip(2) {
        assert!(unit.device.fault.outages, "{}", unit.device.name);
        assert_eq!((unit.device.queue_depth, unit.device.budget), (2000, 32));
    }
    // One of several means the same as the only table.
    let one = plan_of_one("[[mapped]]");
    assert_eq!(one, plan_of_one("[mapped]"));
    // Other disks keep their places and their host.
    let others = "[[device]]\ntype = \"scsi_debug\"\nmax_luns = 2\n[[device]]\ntype = \"nvme\"\n";
    let table = "0 0 1 1 round-robin 0 1 0 nvme0n1";
    let job = several(others, &[table], "").replace("dm-1", "sdb");
    let plan = super::plan(&job).unwrap();
    let names: Vec<&str> = plan.queues().map(|of| &*of.device.name).collect();
    assert_eq!(names, ["sda", "sdb", "dm-0", "nvme0n1"]);
    let sets: Vec<u16> = plan.queues().map(|of| of.set.0).collect();
    assert_eq!(sets, [0, 0, 1, 2]);
}

fn plan_of_one(head: &str) -> Plan {
    let text = text("", "nr_devices = 2\n", TABLE).replace("[mapped]", head);
    let mut plan = plan(&text).unwrap();
    plan.name.clear();
    plan
}

#[test]
fn options_change_all_of_several_or_one() {
    let text = several(HOSTS, &[FIRST, SECOND], "");
    let read = || Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
    let depths = |scenario: Scenario| -> Vec<Option<u32>> {
        let all = scenario.mapped.iter();
        all.map(|of| of.dm_mq_queue_depth).collect()
    };
    let all = read().set("mapped.dm_mq_queue_depth=7").unwrap();
    assert_eq!(depths(all), [Some(7), Some(7)]);
    let one = read().set("mapped.1.dm_mq_queue_depth=7").unwrap();
    assert_eq!(depths(one), [None, Some(7)]);
    let list = "mapped.0.outage=[{ path = \"sda\", from_us = 1, to_us = 9 }]";
    let late = read().set(list).unwrap();
    let late = late.set("mapped.0.outage.0.to_us=5").unwrap();
    assert_eq!(late.mapped[0].outage[0].to_us, 5);
}

/// The only device may have its number, too.
#[test]
fn an_option_may_name_the_only_one_by_its_number() {
    let text = text("", "nr_devices = 2\n", TABLE);
    let read = || Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
    let set = read().set("mapped.0.dm_mq_queue_depth=7").unwrap();
    assert_eq!(set.mapped[0].dm_mq_queue_depth, Some(7));
}

/// dmsetup and multipathd take paths by their files as well.
#[test]
fn paths_are_known_by_their_files() {
    let more = "outage = [{ path = \"/dev/nullb0\", from_us = 5, to_us = 9 }]\n\
                message = [{ at_us = 3, text = \"fail_path /dev/nullb1\" }]\n";
    let table = TABLE.replace("nullb", "/dev/nullb");
    let plan = plan(&text("", "nr_devices = 2\n", &format!("{table}{more}"))).unwrap();
    let mapped = plan.disks[0].mapped().unwrap();
    let names: Vec<&str> = mapped.table.paths().map(|path| &*path.device).collect();
    assert_eq!(names, ["nullb1", "nullb0"]);
    assert_eq!(mapped.outages[0].path, PathId(1));
    let fails = (Duration(3000), Message::Fail(PathId(0)));
    assert_eq!(mapped.messages[1], fails);
}
