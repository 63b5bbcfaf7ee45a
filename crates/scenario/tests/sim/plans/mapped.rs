//! `[mapped]`: its devices, and its errors.

use std::path::Path;

use super::{PROFILES, error, plan};
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

#[test]
fn a_single_queue_one_is_refused_where_the_kernel_has_none_or_the_keys_are_of_the_other() {
    let two = "nr_devices = 2\n";
    for (text, expected) in [
        (
            text("", two, &format!("{TABLE}use_blk_mq = 0\n")),
            "mapped.use_blk_mq: 0: v6.12 maps queues of blk-mq alone, to which 1 belongs; of these \
             rules a mapped queue may be a single-queue one: v4.5, v4.6, v4.12",
        ),
        (
            text("rules = \"v4.6\"\nscheduler = \"none\"\n", two, TABLE),
            "queue.scheduler: none is of the path blk-mq; on single-queue there are noop, deadline \
             and cfq; the mapped queue is of the single-queue path with use_blk_mq = 0, the \
             default of v4.6; `use_blk_mq = 1`",
        ),
        (
            text("rules = \"v4.12\"\nscheduler = \"cfq\"\n", two, TABLE),
            "queue.scheduler: cfq above a multipath device is not modelled; there are noop and deadline",
        ),
        (
            text("rules = \"v4.5\"\npath = \"single-queue\"\n", two, TABLE),
            "queue.path: v4.5 has not the path single-queue",
        ),
        (
            text(
                "rules = \"v4.5\"\nscheduler = \"deadline\"\n",
                two,
                &format!("{TABLE}dm_mq_queue_depth = 256\n"),
            ),
            "mapped.dm_mq_queue_depth: means nothing here: the mapped queue is of the single-queue",
        ),
    ] {
        let message = error(&text);
        assert!(message.contains(expected), "{expected}:\n{message}");
    }
}

/// A single change without an effect on such a device.
#[test]
fn a_change_without_effect_is_refused() {
    let two = "nr_devices = 2\n";
    for (text, expected) in [
        (
            text(
                "",
                two,
                &(TABLE.replace("multipath 0", "multipath 2 queue_mode bio")
                    + "kernel.second_end = \"placed\"\n"),
            ),
            "mapped.kernel.second_end: decides nothing of a device that is bio-based; \
             expected target_lock",
        ),
        (
            text(
                "rules = \"v4.5\"\n",
                two,
                &format!("{TABLE}use_blk_mq = 0\nkernel.target = \"known\"\n"),
            ),
            "mapped.kernel.target: decides nothing of a device that is of the single-queue kind; \
             expected target_lock, io_data, insertion, end_run",
        ),
    ] {
        let message = error(&text);
        assert!(message.contains(expected), "{expected}:\n{message}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    let two = "nr_devices = 2\n";
    let cases = [
        (
            text("", two, "table = \"0 8000 multipath\"\n"),
            ": mapped.table: ",
        ),
        (text("", "", TABLE), "there is no device nullb1"),
        (
            text("", two, &TABLE.replace("nullb1 1 nullb0 1", "8:0 1 8:1 1")),
            "names none of the devices",
        ),
        (
            text("rules = \"v4.20\"\nscheduler = \"noop\"\n", two, TABLE),
            "v4.20: multipath is modelled over queues of blk-mq of v4.5, v4.6, v4.12, v6.1, v6.12 only",
        ),
        (
            text("", two, &format!("{TABLE}dm_mq_nr_hw_queues = 33\n")),
            "33 is not 1 to 32",
        ),
        (
            text("", two, &format!("{TABLE}kernel.end_run = \"never\"\n")),
            "mapped.kernel.end_run: `never` is none of hctxs, nothing",
        ),
        (
            text(
                "",
                two,
                &(TABLE.replace("multipath 0", "multipath 2 queue_mode bio")
                    + "queue.scheduler = \"mq-deadline\"\n"),
            ),
            "mapped.queue.scheduler: means nothing with queue_mode bio",
        ),
        (
            text("", two, &TABLE.replace("8000", "999999999999")),
            "but the smallest path has",
        ),
        (
            text(
                "",
                two,
                &format!("{TABLE}message = [{{ at_us = 1, text = \"hello\" }}]\n"),
            ),
            "mapped.message.0.text: hello: expected queue_if_no_path",
        ),
        (
            text(
                "",
                two,
                &format!("{TABLE}outage = [{{ path = \"nullb1\", from_us = 5, to_us = 5 }}]\n"),
            ),
            "mapped.outage.0.to_us: 5 is not after from_us",
        ),
    ];
    for (text, expected) in cases {
        let message = error(&text);
        assert!(message.contains(expected), "{expected}:\n{message}");
    }
}

/// An error of the table's reader names the key that has written the word.
#[test]
fn wrong_words_of_a_key_are_reported_where_it_stands() {
    let two = "nr_devices = 2\n";
    let old = "rules = \"v4.12\"\nscheduler = \"none\"\n";
    for (queue, key, value) in [
        ("", "features", "1 queue_if_no_pathh"),
        ("", "path_selector", "lucky 0"),
        (old, "path_selector", "historical-service-time 0"),
    ] {
        let line = format!("hw_handler = 0\n{key} = \"{value}\"\n");
        let text = text(queue, two, &format!("{TABLE}{line}"));
        let number = text.lines().position(|line| line.starts_with(key));
        let message = error(&text);
        let expected = format!("s.toml:{}: mapped.{key}: ", number.unwrap() + 1);
        assert!(message.contains(&expected), "{expected}:\n{message}");
    }
    // The table itself is wrong, with any keys.
    let table = TABLE.replace("multipath 0", "multipath 1 queue");
    let message = error(&text("", two, &format!("{table}hw_handler = 0\n")));
    assert!(message.contains(": mapped.table: "), "{message}");
}

#[test]
fn outages_of_one_path_do_not_overlap() {
    let of = |path: &str, from: u64, to: u64| {
        format!("{{ path = \"{path}\", from_us = {from}, to_us = {to} }}")
    };
    let outages = |last: String| {
        let all = [of("nullb1", 5, 9), of("nullb0", 5, 9), last].join(", ");
        text(
            "",
            "nr_devices = 2\n",
            &format!("{TABLE}outage = [{all}]\n"),
        )
    };
    for last in [of("nullb1", 8, 10), of("nullb1", 1, 20)] {
        let message = error(&outages(last));
        let expected = "mapped.outage.2.from_us: it overlaps another outage of nullb1";
        assert!(message.contains(expected), "{message}");
    }
    plan(&outages(of("nullb1", 9, 10))).unwrap();
}

#[test]
fn what_a_kernel_or_a_device_does_not_have_is_refused() {
    let two = "nr_devices = 2\n";
    let cases = [
        (
            text("rules = \"v5.13\"\nscheduler = \"none\"\n", two, TABLE),
            "queue.rules: v5.13: multipath is modelled over queues of blk-mq of v4.5, v4.6, v4.12, v6.1, v6.12 only",
        ),
        (
            text(
                "rules = \"v4.6\"\n",
                two,
                &format!("{TABLE}use_blk_mq = 1\nqueue.scheduler = \"bfq\"\n"),
            ),
            "mapped.queue.scheduler: bfq: queues of blk-mq have no schedulers in v4.6",
        ),
        (
            text(
                "rules = \"v4.6\"\n",
                two,
                &format!("{TABLE}use_blk_mq = 1\nqueue_if_no_path_timeout_secs = 1\n"),
            ),
            "mapped.queue_if_no_path_timeout_secs: v4.6 has no such parameter",
        ),
        (
            text("", two, &TABLE.replace("0 8000", "8 8000")),
            "mapped.table: word 1, START: `8`, expected 0",
        ),
        (
            text("", two, &format!("{TABLE}hw_handler = \"1 aluaa\"\n")),
            "mapped.hw_handler: no hardware handler `aluaa`; there are alua, emc, hp_sw, rdac",
        ),
        (
            text(
                "",
                two,
                &TABLE.replace("multipath 0 0", "multipath 0 1 alua"),
            ),
            "mapped.table: alua: nullb1 is no SCSI device",
        ),
        (
            text(
                "",
                two,
                &format!("{TABLE}path_selector = \"queue-length\"\n"),
            ),
            "s.toml:7: mapped.path_selector: `queue-length`: expected a name",
        ),
        (
            text(
                "",
                two,
                &format!(
                    "{TABLE}outage = [{{ path = \"nullb1\", from_us = 5, to_us = 9, \
                     reinstate_us = 7 }}]\n"
                ),
            ),
            "mapped.outage.0.reinstate_us: 7 is before to_us",
        ),
    ];
    for (text, expected) in cases {
        let message = error(&text);
        assert!(message.contains(expected), "{expected}:\n{message}");
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
    let sets: Vec<u8> = plan.queues().map(|of| of.set.0).collect();
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
    let sets: Vec<u8> = plan.queues().map(|of| of.set.0).collect();
    assert_eq!(sets, [0, 0, 1, 2]);
}

fn plan_of_one(head: &str) -> Plan {
    let text = text("", "nr_devices = 2\n", TABLE).replace("[mapped]", head);
    let mut plan = plan(&text).unwrap();
    plan.name.clear();
    plan
}

#[test]
fn what_several_tables_get_wrong_is_reported_where_it_stands() {
    let cases = [
        (
            several(HOSTS, &[FIRST, &SECOND.replace("sdb", "sda")], ""),
            "s.toml:8: mapped.1.table: sda is a path of mapped.0 already",
        ),
        (
            several(HOSTS, &[FIRST, &SECOND.replace("sdb", "sdx")], ""),
            "s.toml:8: mapped.1.table: there is no device sdx",
        ),
        (
            several(HOSTS, &[FIRST, "0 0 1 1 round-robin 0 1 0 sdb"], ""),
            "s.toml:6: mapped.0.table: sdc is a path, but sdd, a unit of the same host, is none",
        ),
        (
            several(HOSTS, &[FIRST, "0 0 1 1 round-robin 0 0 0"], ""),
            "s.toml:8: mapped.1.table: names none of the devices: sdb, sdd",
        ),
        (
            several(HOSTS, &[FIRST, SECOND], "name = \"dm-0\"\n"),
            "s.toml:9: mapped.1.name: there are two devices dm-0",
        ),
        (
            several(HOSTS, &[FIRST, SECOND], "name = \"sda\"\n"),
            "s.toml:9: mapped.1.name: there are two devices sda",
        ),
        (
            several(HOSTS, &[FIRST, SECOND], "dm_mq_queue_depth = 0\n"),
            "s.toml:9: mapped.1.dm_mq_queue_depth: 0 is not 1 to 10240",
        ),
        (
            several(HOSTS, &[FIRST, SECOND], "").replace("dm-1", "dm-2"),
            "there is no device /dev/dm-2; there are /dev/dm-0, /dev/dm-1",
        ),
        (
            text("", "nr_devices = 2\nshared_tags = 1\n", TABLE),
            "device.shared_tags: nullb1 is a path",
        ),
        (
            format!("mapped = 3\n{JOB}"),
            "a table [mapped] or several [[mapped]]",
        ),
    ];
    for (text, expected) in cases {
        let message = error(&text);
        assert!(message.contains(expected), "{expected}:\n{message}");
    }
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
    for (option, expected) in [
        (
            "mapped.2.name=x",
            "`2` is no number of one of 2 tables `mapped`",
        ),
        (
            "mapped.0.outage.1.to_us=5",
            "`1` is no number of one of 1 tables `outage`",
        ),
        ("mapped.0=x", "write mapped.PARAMETER=VALUE"),
    ] {
        let message = late.clone().set(option).unwrap_err().to_string();
        assert!(message.contains(expected), "{option}: {message}");
    }
}

/// The only device may have its number, too.
#[test]
fn an_option_may_name_the_only_one_by_its_number() {
    let text = text("", "nr_devices = 2\n", TABLE);
    let read = || Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
    let set = read().set("mapped.0.dm_mq_queue_depth=7").unwrap();
    assert_eq!(set.mapped[0].dm_mq_queue_depth, Some(7));
    let message = read().set("mapped.0.dm_mq_nr_hw_queues=33").unwrap();
    let message = message.plan(PROFILES).unwrap_err().to_string();
    assert!(
        message.starts_with("--set mapped.0.dm_mq_nr_hw_queues=33: "),
        "{message}"
    );
    for option in ["mapped.1.name=x", "device.1.nr_devices=2"] {
        let message = read().set(option).unwrap_err().to_string();
        let expected = "`1` is no number of one of 1 table `";
        assert!(message.contains(expected), "{option}: {message}");
    }
}

/// An error about a replaced value names the option, not the line that it replaced.
#[test]
fn errors_within_an_option_name_the_option() {
    let outage = "outage = [{ path = \"nullb0\", from_us = 1, to_us = 9 }]\n";
    let text = text("", "nr_devices = 2\n", &format!("{TABLE}{outage}"));
    let scenario = Scenario::from_toml(Path::new("s.toml"), &text).unwrap();
    let option = "mapped.outage=[{ path = \"nullb7\", from_us = 1, to_us = 9 }]";
    let message = scenario.set(option).unwrap();
    let message = message.plan(PROFILES).unwrap_err().to_string();
    let expected = format!(
        "--set {option}: mapped.outage.0.path: nullb7: no path, expected one of nullb1, nullb0"
    );
    assert_eq!(message, expected);
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

#[test]
fn suspensions_end_one_after_another() {
    for (times, expected) in [
        (
            "{ at_us = 5, resume_us = 5 }",
            "mapped.suspend.0.resume_us: 5 is not after at_us",
        ),
        (
            "{ at_us = 5, resume_us = 9 }, { at_us = 8, resume_us = 11 }",
            "mapped.suspend.1.at_us: 8 is before the last one ends",
        ),
    ] {
        let more = format!("{TABLE}suspend = [{times}]\n");
        let message = error(&text("", "nr_devices = 2\n", &more));
        assert!(message.contains(expected), "{expected}:\n{message}");
    }
}

/// The clock counts ns in 64 bits.
#[test]
fn times_that_never_come_are_refused() {
    let two = "nr_devices = 2\n";
    for (more, field) in [
        (
            "outage = [{ path = \"nullb1\", from_us = 5, to_us = MAX }]",
            "outage.0.to_us",
        ),
        (
            "message = [{ at_us = MAX, text = \"queue_if_no_path\" }]",
            "message.0.at_us",
        ),
        ("polling_interval = MAX", "polling_interval"),
        ("polling_interval = 0", "polling_interval"),
        ("activation_us = MAX", "activation_us"),
        (
            "queue_if_no_path_timeout_secs = MAX",
            "queue_if_no_path_timeout_secs",
        ),
    ] {
        let more = more.replace("MAX", &i64::MAX.to_string());
        let message = error(&text("", two, &format!("{TABLE}{more}\n")));
        assert!(message.contains(&format!("mapped.{field}: ")), "{message}");
        assert!(
            message.contains("is too much") || message.contains("is not "),
            "{message}"
        );
    }
}
