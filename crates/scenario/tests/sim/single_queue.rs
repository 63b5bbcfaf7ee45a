//! The single-queue request path under whole runs: its traces, its limits on requests and on the
//! driver's commands.

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, Op};
use blkmq::time::SimTime;
use sim::machine::Simulator;

use crate::runs;

type Traced = (SimTime, CpuId, u32, TracePoint);

/// A run to its end, with its trace.
fn trace(text: &str) -> Vec<Traced> {
    let plan = runs::plan_of(text);
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{text}\n{}", stall.unwrap());
    simulator.settle();
    simulator.take_trace()
}

fn letter(action: TraceAction) -> &'static str {
    match action {
        TraceAction::Queue => "Q",
        TraceAction::Split => "X",
        TraceAction::BackMerge => "M",
        TraceAction::FrontMerge => "F",
        TraceAction::GetRq => "G",
        TraceAction::Plug => "P",
        TraceAction::Unplug => "U",
        TraceAction::UnplugTimer => "UT",
        TraceAction::Insert => "I",
        TraceAction::Issue => "D",
        TraceAction::Requeue => "R",
        TraceAction::Complete => "C",
        TraceAction::Remap => "A",
        TraceAction::Message(_) | TraceAction::Probe(_) => "",
    }
}

fn letters(all: &[Traced]) -> String {
    let letters = all.iter().map(|(.., point)| letter(point.action));
    letters.collect::<Vec<_>>().join(" ")
}

fn count(all: &[Traced], action: TraceAction) -> usize {
    all.iter()
        .filter(|(.., point)| point.action == action)
        .count()
}

/// Most requests that the driver has or looks at.
fn most_in_flight(all: &[Traced]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for (.., point) in all {
        match point.action {
            TraceAction::Issue => now += 1,
            TraceAction::Complete => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fn text(queue: &str, device: &str, job: &str) -> String {
    format!(
        "[machine]\ncpus = 2\n[queue]\npath = \"single-queue\"\n{queue}\n[device]\n{device}\n\
         [[job]]\nname = \"one\"\nbs = \"4k\"\ndirect = 1\nsize = \"16m\"\n{job}\n"
    )
}

const SCSI: &str = "type = \"scsi_debug\"\nndelay = 200000\ndev_size_mb = 64";

#[test]
fn a_lone_io_goes_the_way_of_its_kernel() {
    for scheduler in ["noop", "deadline"] {
        for (engine, rw) in [
            ("psync", "randread"),
            ("psync", "randwrite"),
            ("libaio", "randread"),
        ] {
            let of = |rules: &str| {
                let queue = format!("rules = \"{rules}\"\nscheduler = \"{scheduler}\"");
                let job = format!("rw = \"{rw}\"\nioengine = \"{engine}\"\nnumber_ios = 1");
                letters(&trace(&text(&queue, SCSI, &job)))
            };
            // blk_run_address_space() unplugs, after the insertion.
            assert_eq!(of("v2.6.32"), "Q G P I U D C", "{scheduler} {engine} {rw}");
            assert_eq!(of("v4.20"), "Q G I D C", "{scheduler} {engine} {rw}");
        }
    }
}

/// The driver takes no more than its depth, and the end of a request starts the next one.
#[test]
fn the_driver_gets_as_many_as_it_takes() {
    for (device, depth) in [
        (format!("{SCSI}\ncmd_per_lun = 3"), 3),
        (
            "type = \"null_blk\"\nirqmode = 2\nhw_queue_depth = 2".to_owned(),
            2,
        ),
        (
            "type = \"null_blk\"\nirqmode = 0\nhw_queue_depth = 1".to_owned(),
            1,
        ),
        (
            "type = \"null_blk\"\nirqmode = 1\nhw_queue_depth = 4".to_owned(),
            4,
        ),
    ] {
        for scheduler in ["noop", "deadline"] {
            let job = "rw = \"randrw\"\nioengine = \"libaio\"\niodepth = 16\nnumjobs = 2\n\
                       iodepth_batch_submit = 8\nnumber_ios = 300";
            let queue = format!("scheduler = \"{scheduler}\"");
            let all = trace(&text(&queue, &device, job));
            assert_eq!(count(&all, TraceAction::Queue), 600, "{device}");
            assert_eq!(
                count(&all, TraceAction::Issue),
                count(&all, TraceAction::Complete)
            );
            // Its look at one more, for which it has no room, is a D.
            let most = most_in_flight(&all);
            assert!(most <= depth + 1, "{device}: {most} at once");
            let inline = device.contains("irqmode = 0") || device.contains("irqmode = 1");
            assert!(inline || most == depth + 1, "{device}: {most} at once");
        }
    }
}

/// Tasks sleep for requests and are woken, with few of them: six of a kind here.
#[test]
fn tasks_wait_for_requests_and_get_them() {
    for scheduler in ["noop", "deadline"] {
        let queue = format!("scheduler = \"{scheduler}\"\nnr_requests = 4");
        let job = "rw = \"randwrite\"\nioengine = \"libaio\"\niodepth = 32\nnumjobs = 4\n\
                   number_ios = 200";
        let all = trace(&text(&queue, SCSI, job));
        assert_eq!(count(&all, TraceAction::Complete), 800);
        let (mut now, mut most) = (0_usize, 0);
        for (.., point) in &all {
            match point.action {
                TraceAction::GetRq => now += 1,
                TraceAction::Complete => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        assert_eq!(most, 6, "half as many again as nr_requests");
    }
}

/// Adjacent I/Os in the scheduler are one request at the driver.
#[test]
fn sequential_writes_after_a_busy_disk_are_merged() {
    let job = "rw = \"write\"\nioengine = \"libaio\"\niodepth = 32\niodepth_batch_submit = 32\n\
               number_ios = 512";
    let device = format!("{SCSI}\ncmd_per_lun = 1");
    for scheduler in ["noop", "deadline"] {
        let queue = format!("scheduler = \"{scheduler}\"");
        let all = trace(&text(&queue, &device, job));
        let merged = count(&all, TraceAction::BackMerge);
        let issued = count(&all, TraceAction::Issue);
        assert_eq!(
            merged + issued,
            512,
            "{scheduler}: each bio is one or the other"
        );
        assert!(issued < 64, "{scheduler}: {issued} requests");
        let first = all
            .iter()
            .find(|(.., point)| point.action == TraceAction::Queue);
        assert_eq!(first.unwrap().3.op, Op::Write);
    }
}

/// A device that refuses now and then: refused requests are offered again.
#[test]
fn refused_and_returned_requests_come_again() {
    for fault in ["busy = \"1/5\"", "requeue = \"1/5\""] {
        for device in [SCSI, "type = \"null_blk\"\nirqmode = 2"] {
            let job = "rw = \"randread\"\nioengine = \"libaio\"\niodepth = 8\nnumber_ios = 400";
            let device = format!("{device}\n[device.fault]\n{fault}");
            let all = trace(&text("scheduler = \"deadline\"", &device, job));
            assert_eq!(count(&all, TraceAction::Complete), 400, "{device}");
            assert!(count(&all, TraceAction::Requeue) > 20, "{device}");
        }
    }
}

/// The same scenario gives the same trace.
#[test]
fn runs_are_repeated_to_the_nanosecond() {
    let job = "rw = \"randrw\"\nioengine = \"libaio\"\niodepth = 8\nnumjobs = 3\nnumber_ios = 100";
    let text = text("scheduler = \"deadline\"", SCSI, job);
    let times = |all: &[Traced]| all.iter().map(|(at, ..)| *at).collect::<Vec<_>>();
    assert_eq!(times(&trace(&text)), times(&trace(&text)));
}
