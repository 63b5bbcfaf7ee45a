//! Settings that are accepted, but not as written: the plan notes where and how.

use super::plan;

/// A job on two devices.
const BOTH: &str = "[[job]]\nfilename = \"/dev/nullb0:/dev/nullb1\"";

/// A queue on null_blk, with more tables after it.
fn text(queue: &str, more: &str) -> String {
    format!(
        "[machine]\nhz = 250\n[queue]\n{queue}\n[device]\ntype = \"null_blk\"\n{more}[[job]]\n\
         rw = \"read\"\ndirect = 1\ncgroup = \"a\"\n"
    )
}

#[test]
fn attributes_out_of_range_are_reported_with_the_value_that_is_used() {
    let adjusted = |queue: &str| plan(&text(queue, "")).unwrap().adjusted;
    for (queue, note) in [
        // Below the least.
        (
            "scheduler = \"bfq\"\nfifo_expire_sync = 0",
            "dir/s.toml:5: queue.fifo_expire_sync: 0 is taken as 1",
        ),
        // Above the most.
        (
            "scheduler = \"bfq\"\nback_seek_max = 3000000000",
            "dir/s.toml:5: queue.back_seek_max: 3000000000 is taken as 2147483647",
        ),
        // 5 s in ns do not fit into 32 bits.
        (
            "scheduler = \"bfq\"\nslice_idle = 5000",
            "dir/s.toml:5: queue.slice_idle: 5000 is taken as 705",
        ),
        // Raised by another attribute.
        (
            "scheduler = \"bfq\"\nslice_idle = 0\nstrict_guarantees = 1",
            "dir/s.toml:5: queue.slice_idle: 0 is taken as 8",
        ),
        (
            "scheduler = \"mq-deadline\"\nfifo_batch = -3",
            "dir/s.toml:5: queue.fifo_batch: -3 is taken as 0",
        ),
        // Rounded up to a tick of 4 ms.
        (
            "scheduler = \"mq-deadline\"\nread_expire = 3",
            "dir/s.toml:5: queue.read_expire: 3 is taken as 4",
        ),
    ] {
        assert_eq!(adjusted(queue), [note], "{queue}");
    }
    for as_written in [
        "scheduler = \"bfq\"\nfifo_expire_sync = 1\nslice_idle = 0\nlow_latency = 0",
        "scheduler = \"mq-deadline\"\nread_expire = 4\nwrites_starved = -1",
        "scheduler = \"kyber\"\nread_lat_nsec = 1",
    ] {
        assert!(adjusted(as_written).is_empty(), "{as_written}");
    }
    // Two devices that share the line share the note.
    let two = text("scheduler = \"bfq\"\nfifo_expire_sync = 0", "");
    let two = two.replace(
        "[device]\ntype = \"null_blk\"",
        "[device]\ntype = \"null_blk\"\nnr_devices = 2",
    );
    let two = two.replace("[[job]]", BOTH);
    assert_eq!(plan(&two).unwrap().adjusted.len(), 1);
}

#[test]
fn a_weight_is_read_by_the_scheduler_whose_it_is() {
    let of = |queue: &str, name: &str, more: &str| {
        let group = format!("[group.a]\n\"{name}\" = 300\n{more}");
        let plan = plan(&text(queue, &group)).unwrap();
        (plan.groups[1].weight, plan.ignored)
    };
    assert_eq!(
        of("scheduler = \"bfq\"", "io.bfq.weight", ""),
        (300, vec![])
    );
    let note = |name: &str, kinds: &str| {
        let note = format!("dir/s.toml:8: group.a.{name}: not read by {kinds}");
        (100, vec![note])
    };
    assert_eq!(
        of("scheduler = \"mq-deadline\"", "io.bfq.weight", ""),
        note("io.bfq.weight", "mq-deadline")
    );
    assert_eq!(
        of("scheduler = \"none\"", "io.bfq.weight", ""),
        note("io.bfq.weight", "none")
    );
    // An attribute of another scheduler is not taken for one's own.
    assert_eq!(
        of("scheduler = \"bfq\"", "blkio.weight", ""),
        note("blkio.weight", "bfq")
    );
    // The queue gets bfq later.
    let later = "[[change]]\nat_us = 10\nscheduler = \"bfq\"\n";
    assert_eq!(
        of("scheduler = \"none\"", "io.bfq.weight", later),
        (300, vec![])
    );
}

/// Of several devices of one table once.
#[test]
fn whether_a_disk_rotates_is_read_by_some_schedulers() {
    let ignored = |scheduler: &str| {
        let text = text(&format!("scheduler = \"{scheduler}\""), "");
        let two = "[device]\nrotational_when_chosen = 1\nnr_devices = 2";
        let text = text.replace("[device]", two).replace("[[job]]", BOTH);
        plan(&text).unwrap().ignored
    };
    assert!(ignored("bfq").is_empty());
    let note = "dir/s.toml:6: device.rotational_when_chosen: not read by kyber";
    assert_eq!(ignored("kyber"), [note]);
}

#[test]
fn merging_at_creation_is_asked_for_under_schedulers_that_do_it() {
    let ignored = |scheduler: &str| {
        let queue = format!("scheduler = \"{scheduler}\"\nstable_merge = \"never\"");
        plan(&text(&queue, "")).unwrap().ignored
    };
    assert!(ignored("bfq").is_empty());
    assert_eq!(
        ignored("kyber"),
        ["dir/s.toml:5: queue.stable_merge: not read by kyber"]
    );
    // A device's own, beside one with another scheduler.
    let own = "queue.scheduler = \"none\"\nqueue.stable_merge = \"never\"\n";
    assert_eq!(
        plan(&text("scheduler = \"bfq\"", own)).unwrap().ignored,
        ["dir/s.toml:8: device.queue.stable_merge: not read by none"]
    );
}
