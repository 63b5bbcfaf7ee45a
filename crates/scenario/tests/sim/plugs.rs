//! Start, flush and run of plugs: by engine, operation and kernel (docs/explanation/model.md,
//! "Plugs"), as in captures of these kernels. And the waits of fio itself.

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{CpuId, Op};
use blkmq::time::SimTime;
use sim::machine::Simulator;

use crate::runs;

type Traced = (SimTime, CpuId, u32, TracePoint);

/// The trace of a run to its end.
fn trace(text: &str) -> Vec<Traced> {
    let plan = runs::plan_of(text);
    let mut simulator = Simulator::new(&plan, &runs::machine()).unwrap();
    simulator.trace();
    let stall = runs::to_its_end(&mut simulator);
    assert!(stall.is_none(), "{text}\n{}", stall.unwrap());
    simulator.settle();
    simulator.take_trace()
}

/// Letters, in the order of time, up to the first C. In brackets points of other tasks than the
/// submitter.
fn letters(trace: &[Traced]) -> String {
    let mut letters = String::new();
    for (.., task, point) in trace {
        let letter = match point.action {
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
            TraceAction::Complete => break,
            TraceAction::Remap => "A",
            TraceAction::Message(_) | TraceAction::Probe(_) => continue,
        };
        let own = *task == trace[0].2;
        letters += &if own {
            format!("{letter} ")
        } else {
            format!("({letter}) ")
        };
    }
    letters.trim_end().to_owned()
}

/// One I/O of this kind, on a disk that keeps it for a while.
fn lone(rules: &str, scheduler: &str, engine: &str, rw: &str) -> String {
    letters(&trace(&format!(
        "[machine]\ncpus = 2\n[queue]\nrules = \"{rules}\"\nscheduler = \"{scheduler}\"\n\
         [device]\ntype = \"scsi_debug\"\nndelay = 500000\nlbpu = 1\ndev_size_mb = 64\n\
         [[job]]\nname = \"one\"\nrw = \"{rw}\"\nbs = \"4k\"\nioengine = \"{engine}\"\n\
         direct = 1\nnumber_ios = 1\nsize = \"1m\"\ncpus_allowed = \"0\"\n"
    )))
}

#[test]
fn a_lone_io_goes_the_way_of_its_kernel() {
    let kblockd = "Q G I (D)";
    let here = "Q G P U I D";
    let asleep = "Q G P UT I (D)";
    for (engine, rw, v6_1, v6_12) in [
        ("libaio", "randread", kblockd, here),
        ("io_uring", "randread", kblockd, here),
        ("psync", "randread", kblockd, here),
        ("libaio", "randwrite", here, here),
        ("io_uring", "randwrite", here, here),
        ("psync", "randwrite", asleep, here),
        ("libaio", "randtrim", asleep, asleep),
        ("io_uring", "randtrim", asleep, asleep),
        ("psync", "randtrim", asleep, asleep),
    ] {
        let of = |rules| lone(rules, "mq-deadline", engine, rw);
        assert_eq!(of("v6.1"), v6_1, "v6.1 {engine} {rw}");
        assert_eq!(of("v6.12"), v6_12, "v6.12 {engine} {rw}");
    }
    // Without a scheduler: issued by the submitter, except for a plug that schedule() flushes.
    assert_eq!(lone("v6.1", "none", "libaio", "randread"), "Q G D");
    assert_eq!(lone("v6.1", "none", "libaio", "randwrite"), "Q G P D");
    assert_eq!(lone("v6.1", "none", "psync", "randwrite"), asleep);
    assert_eq!(lone("v6.12", "none", "psync", "randwrite"), "Q G P U D");
    assert_eq!(lone("v6.12", "none", "psync", "randtrim"), asleep);
}

/// Four I/Os of one call, on two disks in turn: one plug, which is flushed disk by disk.
#[test]
fn a_plug_holds_requests_of_several_disks() {
    for engine in ["libaio", "io_uring"] {
        let all = trace(&format!(
            "[machine]\ncpus = 1\n[queue]\nscheduler = \"mq-deadline\"\n\
             [device]\ntype = \"null_blk\"\nnr_devices = 2\nirqmode = 2\n\
             completion_nsec = 100000\n[[job]]\nname = \"both\"\n\
             filename = \"/dev/nullb0:/dev/nullb1\"\nrw = \"randread\"\nbs = \"4k\"\n\
             ioengine = \"{engine}\"\niodepth = 4\niodepth_batch_submit = 4\n\
             iodepth_batch_complete_min = 4\ndirect = 1\nnumber_ios = 4\n"
        ));
        let way = "Q G P Q G Q G Q G U I I D D U I I D D";
        assert_eq!(letters(&all), way, "{engine}");
        let counts: Vec<(u16, u64)> = all
            .iter()
            .filter(|(.., point)| point.action == TraceAction::Unplug)
            .map(|(.., point)| (point.queue.0, point.payload))
            .collect();
        assert_eq!(counts, [(0, 2), (1, 2)], "{engine}");
    }
}

/// Q and C of bios in the order of time: those in flight when an operation of this kind enters, and
/// those that enter until it has ended.
fn beside(all: &[Traced], is: impl Fn(&TracePoint) -> bool) -> (usize, usize) {
    let (mut in_flight, mut same, mut entered, mut at_once) = (0usize, 0usize, 0, 0);
    for (.., point) in all {
        match point.action {
            TraceAction::Queue => {
                in_flight += 1;
                entered += usize::from(same > 0);
                same += usize::from(is(point));
                at_once = at_once.max(same);
            }
            TraceAction::Complete if !point.of_request || point.op != Op::Flush => {
                in_flight -= 1;
                same -= usize::from(is(point));
            }
            _ => {}
        }
    }
    assert_eq!(in_flight, 0);
    (at_once, entered)
}

/// fio waits for trims in the ioctl of each, whatever the depth.
#[test]
fn trims_come_one_by_one() {
    for engine in ["libaio", "io_uring"] {
        let all = trace(&format!(
            "[machine]\ncpus = 2\n[device]\ntype = \"scsi_debug\"\nndelay = 500000\nlbpu = 1\n\
             dev_size_mb = 64\n[[job]]\nname = \"t\"\nrw = \"randtrim\"\nbs = \"4k\"\n\
             ioengine = \"{engine}\"\niodepth = 8\niodepth_batch_submit = 4\ndirect = 1\n\
             number_ios = 20\nsize = \"4m\"\n"
        ));
        let (at_once, entered) = beside(&all, |point| point.op == Op::Discard);
        assert_eq!((at_once, entered), (1, 0), "{engine}");
    }
}

/// libaio's fsync(2) is fio's own call, which waits; that of io_uring is its worker's, and the
/// thread continues.
#[test]
fn only_io_uring_writes_while_it_syncs() {
    let fsyncs = |engine: &str| {
        let all = trace(&format!(
            "[machine]\ncpus = 2\n[device]\ntype = \"scsi_debug\"\nndelay = 500000\n\
             dev_size_mb = 64\n[[job]]\nname = \"s\"\nrw = \"randwrite\"\nbs = \"4k\"\n\
             ioengine = \"{engine}\"\niodepth = 8\nfsync = 4\ndirect = 1\nnumber_ios = 40\n\
             size = \"4m\"\n"
        ));
        // The flush request itself, which no task submits, is recognised by its operation.
        let flushes = |point: &TracePoint| point.sectors.0 == 0 && point.op != Op::Flush;
        let (_, entered) = beside(&all, flushes);
        let of = |(_, _, task, point): &Traced| (flushes(point)).then_some(*task);
        let writer = all[0].2;
        let others = all.iter().filter_map(of).filter(|&task| task != writer);
        (entered, others.count())
    };
    assert_eq!(fsyncs("libaio").0, 0);
    let (entered, by_worker) = fsyncs("io_uring");
    assert!(entered > 9, "{entered} I/Os beside a flush");
    assert!(by_worker > 9, "{by_worker} records of the worker");
}
