//! `[mapped]`: what it makes of devices, and what is refused.

use super::{error, plan};
use blkmq::dm::PathId;
use blkmq::elevator::SchedulerSettings;
use blkmq::path::ToTarget;
use blkmq::rules::{CloneInsertion, DeviceMapper, EndRun};
use blkmq::time::Duration;

const JOB: &str =
    "[[job]]\nrw = \"randread\"\nioengine = \"libaio\"\niodepth = 4\nruntime = \"1ms\"\n";
const TABLE: &str = "table = \"0 8000 multipath 0 0 1 1 service-time 0 2 1 nullb1 1 nullb0 1\"\n";

fn text(queue: &str, device: &str, mapped: &str) -> String {
    format!("[queue]\n{queue}[device]\ntype = \"null_blk\"\n{device}[mapped]\n{mapped}{JOB}")
}

#[test]
fn paths_are_no_disks_and_stand_in_the_order_of_the_table() {
    let queue = "rules = \"v4.5\"\nscheduler = \"none\"\n";
    let more = "dm_mq_nr_hw_queues = 2\nkernel.end_run = \"nothing\"\n\
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
        (look, ToTarget::Reinstate(path)),
        (Duration(3000), ToTarget::Fail(PathId(0))),
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
            "v4.20: multipath is modelled over blk-mq alone",
        ),
        (
            text("", two, &format!("{TABLE}use_blk_mq = 0\n")),
            "mapped.use_blk_mq: 0: only the multi-queue path",
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
                &TABLE.replace("multipath 0", "multipath 2 queue_mode bio"),
            ),
            "queue_mode bio is not modelled",
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
            "mapped.message.0.text: no message `hello`",
        ),
        (
            text(
                "",
                two,
                &format!("{TABLE}outage = [{{ path = \"nullb1\", from_us = 5, to_us = 5 }}]\n"),
            ),
            "mapped.outage.0.to_us: 5 is not behind from_us",
        ),
    ];
    for (text, expected) in cases {
        let told = error(&text);
        assert!(told.contains(expected), "{expected}:\n{told}");
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
        let told = error(&text("", two, &format!("{TABLE}{more}\n")));
        assert!(told.contains(&format!("mapped.{field}: ")), "{told}");
        assert!(
            told.contains("is too much") || told.contains("is not "),
            "{told}"
        );
    }
}
