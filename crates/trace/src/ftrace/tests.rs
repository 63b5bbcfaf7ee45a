use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use blkmq::time::SimTime;

use super::{DeviceNumber, Event, Ftrace, IoPriority, Probe, Record, read_all};
use crate::text::Lines;

fn trace(text: &str) -> Ftrace {
    Ftrace::new(Lines::new(
        Path::new("t"),
        Box::new(Cursor::new(text.to_string().into_bytes())),
    ))
}

fn one(line: &str) -> Record {
    let mut all: Vec<Record> = trace(line).collect::<Result<_, _>>().unwrap();
    assert_eq!(all.len(), 1, "{line}");
    all.pop().unwrap()
}

const NULLB0: DeviceNumber = DeviceNumber {
    major: 252,
    minor: 0,
};

#[test]
fn requests_of_both_kernels() {
    let old = one(
        "  kworker/0:1H-38  [003] d.h1.     9.571362: block_rq_issue: 252,0 R 4096 () \
         2097160 + 8 [kworker/0:1H]",
    );
    assert_eq!(
        (old.task.as_str(), old.pid, old.cpu),
        ("kworker/0:1H", 38, 3)
    );
    assert_eq!(old.at, SimTime(9_571_362_000));
    assert!(old.in_interrupt());
    let Event::RequestIssue(rq) = &old.event else {
        panic!("{old:?}")
    };
    assert_eq!(
        (rq.device, rq.bytes, rq.sector, rq.sectors),
        (NULLB0, 4096, 2_097_160, 8)
    );
    assert_eq!((rq.priority, rq.task.as_str()), (None, "kworker/0:1H"));

    let new = one(
        "  burst-696  [000] ...1.  13.839693: block_rq_insert: 252,0 WFS 4096 () 16 + 8 \
         be,0,4 [burst]",
    );
    assert!(!new.in_interrupt());
    let Event::RequestInsert(rq) = &new.event else {
        panic!("{new:?}")
    };
    assert_eq!(
        rq.priority,
        Some(IoPriority {
            class: 2,
            hint: 0,
            level: 4
        })
    );
    assert_eq!(rq.rwbs, "WFS");

    let done = one(
        "<idle>-0 [001] dNh1. 5.943952: block_rq_complete: 8,0 R (12 00 ff) 7 + 8 idle,3,7 [-5]",
    );
    let Event::RequestComplete(rq) = &done.event else {
        panic!("{done:?}")
    };
    assert_eq!((rq.command.as_str(), rq.error), ("12 00 ff", -5));
    assert_eq!(
        rq.priority,
        Some(IoPriority {
            class: 3,
            hint: 3,
            level: 7
        })
    );
}

#[test]
fn odd_heads() {
    // Task names hold blanks, dashes and brackets; there may be a TGID column or no flags.
    let r = one(" tmux: [1]-x-77 [002] 1.5: block_plug: [tmux: [1]-x]");
    assert_eq!(
        (r.task.as_str(), r.pid, r.cpu, r.context.as_str()),
        ("tmux: [1]-x", 77, 2, "")
    );
    assert_eq!(r.at, SimTime(1_500_000_000));
    assert_eq!(r.event, Event::Plug("tmux: [1]-x".into()));
    let r = one(" fio-288 (    280) [001] ..... 5.943368: block_unplug: [a] b] 12");
    assert_eq!((r.pid, r.cpu), (288, 1));
    assert_eq!(
        r.event,
        Event::Unplug {
            task: "a] b".into(),
            count: 12
        }
    );
    let r = one(" fio-1 [000] ..... 5.000001: some_event: x=1 [y]");
    assert_eq!(
        (r.name.as_str(), &r.event),
        ("some_event", &Event::Other("x=1 [y]".into()))
    );
}

#[test]
fn probes() {
    let r = one(
        "b-1 [000] ...1. 9.571340: ins: (blk_mq_sched_try_insert_merge+0x0/0x40) \
         rq=0xffff88800b89c000 s=2097160 len=4096 prio=0x4004 fl=0x0 it=-1 j=4294894640",
    );
    let Event::Probe(Probe::Insert(p)) = r.event else {
        panic!("{r:?}")
    };
    assert_eq!(
        (p.rq, p.sector, p.bytes),
        (0xffff_8880_0b89_c000, 2_097_160, 4096)
    );
    assert_eq!(
        p.priority,
        IoPriority {
            class: 2,
            hint: 0,
            level: 4
        }
    );
    assert_eq!((p.internal_tag, p.jiffies), (-1, 4_294_894_640));
    let r = one("k-1 [0] ..... 9.0: dd: (a+0x1/0x2 <- dd_dispatch_request) rq=0x0 s=77 ft=88 j=9");
    assert_eq!(
        r.event,
        Event::Probe(Probe::DeadlineReturn {
            chosen: None,
            jiffies: 9
        })
    );
    let r = one("k-1 [0] ..... 9.0: dd: (a+0x1/0x2 <- dd_dispatch_request) rq=0x5 s=77 ft=88 j=9");
    let want = Probe::DeadlineReturn {
        chosen: Some((5, 77, 88)),
        jiffies: 9,
    };
    assert_eq!(r.event, Event::Probe(want));
    let r =
        one("k-1 [0] ..... 9.0: bfq: (x <- y) rq=0x0 s=1 len=2 prio=0x3 fl=0x4 it=-418381824 j=5");
    let Event::Probe(Probe::DispatchReturn { request, .. }) = r.event else {
        panic!("{:?}", r.event);
    };
    assert_eq!(request, None);
    let r = one("k-1 [0] ..... 9.0: ddfin: (dd_finish_request+0x0/0xe0) rq=0xf j=9");
    assert_eq!(r.event, Event::Probe(Probe::Finish { rq: 15, detail: 9 }));
    let r = one("k-1 [0] ..... 9.0: dde: (dd_dispatch_request+0x0/0x100) j=7");
    assert_eq!(
        r.event,
        Event::Probe(Probe::DispatchEntry {
            jiffies: 7,
            hctx: None
        })
    );
}

#[test]
fn remap_split_and_kyber() {
    let r = one("f-1 [0] ..... 9.0: block_bio_remap: 8,16 R 5 + 8 <- (253,0) 5");
    let Event::BioRemap(remap) = r.event else {
        panic!()
    };
    assert_eq!((remap.device.minor, remap.old_device.major), (16, 253));
    let r = one("w-1 [0] ..... 9.0: block_split: 252,0 WS 62208 / 62463 [w]");
    assert!(matches!(
        r.event,
        Event::Split {
            sector: 62208,
            new_sector: 62463,
            ..
        }
    ));
    let r = one("w-1 [0] ..s1. 9.0: kyber_latency: 252,0 READ I/O p90 8/4 samples=508");
    let Event::KyberLatency(k) = r.event else {
        panic!()
    };
    assert_eq!(
        (k.percentile, k.numerator, k.denominator, k.samples),
        (90, 8, 4, 508)
    );
    assert_eq!(k.kind, "I/O");
    let r = one("w-1 [0] ..s1. 9.0: kyber_adjust: 252,0 WRITE 32");
    assert!(matches!(r.event, Event::KyberAdjust { depth: 32, .. }));
}

#[test]
fn lost_events_are_counted() {
    let mut t =
        trace("# tracer: nop\nCPU:1 [LOST 22 EVENTS]\n\nf-1 [0] ..... 9.0: block_plug: [f]\n");
    assert_eq!(t.next().unwrap().unwrap().line, 4);
    assert!(t.next().is_none());
    assert_eq!(t.lost_count(), 22);
}

const MOVE: &str = "cgroup_attach_task: dst_root=0 dst_id=4 dst_level=1 dst_path=/b";

#[test]
fn bad_lines_say_where_and_what() {
    let head = "f-1 [0] ..... 9.000001:";
    let cases = [
        ("nonsense", "TASK-PID"),
        ("f-1 [x] ..... 9.0: block_plug: [f]", "TASK-PID"),
        ("f-1 [0] ..... 12345: block_plug: [f]", "TIMESTAMP"),
        ("f-1 [0] ..... 1.1234567890: block_plug: [f]", "TIMESTAMP"),
        ("f-1 [0] ..... nothing", "TIMESTAMP"),
        (&format!("{head} block_plug: f"), "comm"),
        (&format!("{head} block_unplug: [f]"), "comm"),
        (&format!("{head} block_unplug: [f] many"), "nr_rq"),
        (&format!("{head} block_bio_queue: 252 R 1 + 8 [f]"), "dev"),
        (
            &format!("{head} block_bio_queue: 252,0 R x + 8 [f]"),
            "sector",
        ),
        (
            &format!("{head} block_bio_queue: 252,0 R 1 - 8 [f]"),
            "separator",
        ),
        (
            &format!("{head} block_bio_queue: 252,0 R 1 + [f]"),
            "nr_sector",
        ),
        (
            &format!("{head} block_rq_issue: 252,0 R 4096 1 + 8 [f]"),
            "cmd",
        ),
        (
            &format!("{head} block_rq_issue: 252,0 R () 1 + 8 [f]"),
            "bytes",
        ),
        (
            &format!("{head} block_rq_issue: 252,0 R 4096 () 1 + 8 be,0 [f]"),
            "ioprio",
        ),
        (
            &format!("{head} block_rq_issue: 252,0 R 4096 () 1 + 8 be,0,9 [f]"),
            "ioprio",
        ),
        (
            &format!("{head} block_rq_complete: 252,0 R () 1 + 8 [EIO]"),
            "error",
        ),
        (&format!("{head} ins: rq=0x1"), "probe"),
        (&format!("{head} dd: (f) rq=1 s=2 j=4"), "ft"),
        (&format!("{head} dde: (f) j=4 k=5"), "h"),
        (&format!("{head} dde: (f) j=4 h=1 k=5"), "end of line"),
        (
            &format!("{head} kyber_latency: 252,0 READ total 90 8/4 samples=1"),
            "percentile",
        ),
        (
            &format!("{head} kyber_latency: 252,0 READ total p90 8 samples=1"),
            "numerator",
        ),
        (&format!("{head} cgroup_attach_task: dst_id=4"), "dst_root"),
        (&format!("{head} {MOVE} pid=4294967296 comm=r"), "pid"),
    ];
    for (line, field) in cases {
        let mut t = trace(&format!("# x\n{line}\n{head} block_plug: [f]\n"));
        let text = t.next().unwrap().unwrap_err().to_string();
        assert!(
            text.starts_with(&format!("t:2: {field}: ")),
            "{line}\n  {text}"
        );
        assert!(t.next().is_none(), "reading went on after an error");
    }
}

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

/// Every captured trace is read in full, and agrees with the counts of the blktrace beside it.
#[test]
fn captures_read_in_full() {
    let mut compared = 0;
    for dir in std::fs::read_dir(traces()).unwrap() {
        let dir = dir.unwrap().path();
        let file = dir.join("ftrace.txt.xz");
        if !file.exists() {
            continue;
        }
        let records = read_all(&file).unwrap();
        let mut counts = BTreeMap::new();
        for record in &records {
            let letter = match &record.event {
                Event::BioQueue(_) => "Q",
                Event::RequestInsert(_) => "I",
                Event::RequestIssue(_) => "D",
                Event::RequestComplete(_) => "C",
                Event::BioFrontMerge(_) => "F",
                Event::Other(text) => panic!("{}: {} {text}", file.display(), record.name),
                _ => continue,
            };
            *counts.entry(letter).or_insert(0_u64) += 1;
        }
        assert!(records.is_sorted_by_key(|r| r.at), "{}", file.display());
        // A capture of record.sh has no counts.
        let Ok(json) = std::fs::read_to_string(dir.join("capture.json")) else {
            continue;
        };
        compared += 1;
        let count = |name: &str| -> u64 {
            json.split_once(&format!("\"{name}\": "))
                .map_or(0, |(_, n)| {
                    n.split([',', '\n']).next().unwrap().parse().unwrap()
                })
        };
        for letter in ["Q", "I", "D", "C", "F"] {
            let mut printed = count(letter);
            if letter == "C" {
                // The end of a bio that got no request is no event of ftrace's.
                printed -= count("completions_with_error");
            }
            assert_eq!(
                counts.get(letter).copied().unwrap_or(0),
                printed,
                "{dir:?} {letter}"
            );
        }
    }
    assert!(compared >= 25, "only {compared} captures found");
}

/// Lines of captures, in the kernel's columns.
const PRINTED: &str = "# tracer: nop
           burst-696     [000] .....    13.839678: block_bio_queue: 252,0 R 2097160 + 8 [burst]
           burst-696     [000] .....    13.839682: block_getrq: 252,0 WS 2097160 + 8 [burst]
           burst-696     [000] .....    13.839684: block_plug: [burst]
           burst-696     [000] .....    13.839686: block_unplug: [burst] 1
           burst-696     [000] .....    13.839693: block_rq_insert: 252,0 R 4096 () 8 + 8 be,0,4 [burst]
    kworker/1:1H-44      [001] .....    24.150624: block_rq_issue: 252,0 R 4096 () 8 + 8 [kworker/1:1H]
         move.sh-433     [000] dN.1.     9.728083: cgroup_attach_task: dst_root=0 dst_id=44 dst_level=1 dst_path=/b pid=436 comm=r 1
           burst-696     [000] .....    13.839693: block_split: 252,0 R 8 / 16 [burst]
           burst-696     [000] d.h2.    13.841706: block_rq_complete: 252,0 R () 8 + 8 be,0,4 [-5]
";

#[test]
fn what_is_read_is_printed_as_it_was() {
    let records: Vec<Record> = trace(PRINTED).collect::<Result<_, _>>().unwrap();
    let printed: String = records.iter().map(|record| format!("{record}\n")).collect();
    assert_eq!(format!("# tracer: nop\n{printed}"), PRINTED);
}

#[test]
fn printed_probes_and_events_are_read_back() {
    for line in [
        "b-6 [0] ...1. 13.8: ins: (f+0x4/0x40) rq=0xff s=20 len=4096 prio=0x4004 fl=0x1 it=-1 j=42",
        "b-6 [0] ..... 13.8: dde: (dd_dispatch_request+0x4/0x190) j=42",
        "b-6 [0] ..... 13.8: kybere: (kyber_dispatch_request+0x4/0x190) j=42 h=3",
        "b-6 [0] ..... 13.8: dd: (x <- dd_dispatch_request) rq=0xff s=20 ft=45 j=42",
        "b-6 [0] ..... 13.8: dd: (x <- dd_dispatch_request) rq=0x0 s=5 ft=45 j=42",
        "b-6 [0] ..... 13.8: bfq: (x <- y) rq=0xf s=1 len=2 prio=0x3 fl=0x4 it=7 j=5",
        "b-6 [0] ..... 13.8: kyber: (x <- y) rq=0x0 s=1 len=2 prio=0x3 fl=0x4 it=7 j=5",
        "b-6 [0] d.h1. 13.8: ddfin: (dd_finish_request+0x0/0xe0) rq=0xf j=9",
        "b-6 [0] d.h1. 13.8: kyfin: (kyber_finish_request+0x0/0xe0) rq=0xf it=9",
        "b-6 [0] ..... 13.8: block_bio_remap: 253,0 RS 20 + 8 <- (8,0) 30",
        "b-6 [0] ..... 13.8: block_rq_merge: 252,0 R 4096 () 8 + 8 idle,0,7 [b]",
        "b-6 [0] ..... 13.8: block_rq_requeue: 252,0 R () 8 + 8 [0]",
        "b-6 [0] ..... 13.8: kyber_adjust: 252,0 READ 64",
        "b-6 [0] ..... 13.8: kyber_throttled: 252,0 READ",
        "b-6 [0] ..... 13.8: kyber_latency: 252,0 READ total p90 3/4 samples=500",
    ] {
        let record = one(line);
        assert_eq!(one(&record.to_string()), record, "{line}");
    }
}

#[test]
fn a_written_trace_is_in_the_order_of_time_and_appears_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ftrace.txt");
    let mut writer = super::Writer::create(&file).unwrap();
    let at = |at: u64, cpu: u16| {
        let mut record = one("b-6 [0] ..... 1.0: block_plug: [b]");
        (record.at, record.cpu) = (SimTime(at), cpu);
        record
    };
    for (time, cpu) in [(5000, 0), (9000, 0), (4000, 1)] {
        writer.write(at(time, cpu));
    }
    writer.settle(SimTime(6000)).unwrap();
    for (time, cpu) in [(7000, 1), (10_000, 1)] {
        writer.write(at(time, cpu));
    }
    assert!(!file.exists());
    writer.finish().unwrap();
    let records = read_all(&file).unwrap();
    let times: Vec<(u64, u16)> = records.iter().map(|r| (r.at.0 / 1000, r.cpu)).collect();
    assert_eq!(times, [(4, 1), (5, 0), (7, 1), (9, 0), (10, 1)]);
    drop(super::Writer::create(&dir.path().join("other.txt")).unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// The oldest events of a ring buffer that ran over are gone without a line of their own.
#[test]
fn overwritten_events_are_counted() {
    let mut all = trace(
        "# entries-in-buffer/entries-written: 100/140   #P:1\nf-1 [0] ..... 9.0: block_plug: [f]\n",
    );
    assert_eq!(all.by_ref().count(), 1);
    assert_eq!(all.lost_count(), 40);
}

/// IOPRIO_CLASS_STRINGS of 6.12 has a fifth one, and other numbers are printed as such.
#[test]
fn a_class_that_is_none_of_the_four_is_none() {
    for (class, want) in [("invalid", 0), ("0x5", 0), ("be", 2)] {
        let line =
            format!("f-1 [0] ..... 9.0: block_rq_insert: 252,0 R 512 () 1 + 1 {class},0,4 [f]");
        let Event::RequestInsert(rq) = one(&line).event else {
            panic!("{line}")
        };
        assert_eq!(
            rq.priority.map(|priority| priority.class),
            Some(want),
            "{line}"
        );
    }
    let other = "f-1 [0] ..... 9.0: block_rq_insert: 252,0 R 512 () 1 + 1 high,0,4 [f]";
    assert!(trace(other).next().expect("a line").is_err());
}
