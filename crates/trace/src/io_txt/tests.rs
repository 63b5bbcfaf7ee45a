use std::io::Cursor;
use std::path::Path;

use blkmq::time::Duration;

use super::{BATCH_MAX, Call, Io, IoKind, IoScript};
use crate::ftrace::IoPriority;
use crate::text::Lines;

fn read(text: &str) -> crate::Result<IoScript> {
    IoScript::read(Lines::new(
        Path::new("io"),
        Box::new(Cursor::new(text.to_string().into_bytes())),
    ))
}

fn read_at(sector: u64) -> Call {
    Call::Queue(Io {
        kind: IoKind::Read,
        sector,
        sectors: 8,
        priority: None,
    })
}

#[test]
fn every_kind_of_line() {
    let script = read(
        "# a comment\nproc a 1 4\nat 3000\nr 16 8\nw 32 8 0x4005\nW 48 16 024\nf\nsubmit\nreap 0\n\
         d 0 2048\n\nproc b\nr 0 8\n",
    )
    .unwrap();
    let [a, b] = script.processes.as_slice() else {
        panic!("{script:?}")
    };
    assert_eq!((a.name.as_str(), a.line), ("a", 2));
    assert_eq!(
        a.priority,
        IoPriority {
            class: 1,
            hint: 0,
            level: 4
        }
    );
    assert_eq!(
        b.priority,
        IoPriority {
            class: 0,
            hint: 0,
            level: 0
        }
    );
    let be5 = IoPriority {
        class: 2,
        hint: 0,
        level: 5,
    };
    let octal = IoPriority {
        class: 0,
        hint: 2,
        level: 4,
    };
    let io = |kind, sector, sectors, priority| {
        Call::Queue(Io {
            kind,
            sector,
            sectors,
            priority,
        })
    };
    assert_eq!(
        a.expand(),
        [
            Call::At(Duration::from_millis(3)),
            read_at(16),
            io(IoKind::Write, 32, 8, Some(be5)),
            io(IoKind::WriteDsync, 48, 16, Some(octal)),
            io(IoKind::Flush, 0, 0, None),
            Call::Submit,
            Call::Reap(0),
            Call::Discard {
                sector: 0,
                sectors: 2048
            },
            Call::Reap(0),
        ]
    );
    // Every process ends with a submit of the remainder and a wait for all.
    assert_eq!(b.expand(), [read_at(0), Call::Submit, Call::Reap(0)]);
}

#[test]
fn loops_move_positions() {
    let script = read("proc a\nloop 3 100\nr 0 8\nf\nsubmit\nend\n").unwrap();
    let calls = script.processes[0].expand();
    assert_eq!(calls.len(), 3 * 3 + 1);
    let reads: Vec<Call> = calls
        .into_iter()
        .filter(|c| matches!(c, Call::Queue(io) if io.sectors > 0))
        .collect();
    assert_eq!(reads, [read_at(0), read_at(100), read_at(200)]);
}

#[test]
fn a_full_batch_submits_itself() {
    let script = read(&format!("proc a\nloop {} 8\nr 0 8\nend\n", BATCH_MAX + 1)).unwrap();
    let calls = script.processes[0].expand();
    assert_eq!(calls[BATCH_MAX], Call::Submit);
    assert_eq!(calls.iter().filter(|c| **c == Call::Submit).count(), 2);
}

#[test]
fn bad_scripts() {
    let cases = [
        ("", "io:0: proc: no process"),
        ("r 0 8", "io:1: proc: expected `proc"),
        ("proc a 4 0", "io:1: class: 4 is not 0 to 3"),
        ("proc a 1 8", "io:1: level: 8 is not 0 to 7"),
        ("proc a\nr x 8", "io:2: sector: `x`"),
        ("proc a\nreap all", "io:2: reap: `all`"),
        ("proc a\nreap -1", "io:2: reap: `-1` is not 0 to"),
        ("proc a\nr -1 8", "io:2: sector: `-1`"),
        ("proc a\nr 0 8 high", "io:2: prio: `high`"),
        ("proc a\nr 0 8 0x8000", "io:2: prio: `0x8000`"),
        ("proc a\nwait 1", "io:2: line: `wait` is none of"),
        ("proc a\nend", "io:2: end: no loop"),
        (
            "proc a\nloop 2\nloop 2\nend\nend",
            "io:3: loop: loops do not nest",
        ),
        ("proc a\nloop 2\nr 0 8\nproc b", "io:4: proc: inside a loop"),
        ("proc a\nloop 2\nr 0 8", "io:3: loop: `end` is missing"),
    ];
    for (text, want) in cases {
        let got = read(text).unwrap_err().to_string();
        assert!(got.starts_with(want), "{text:?}\n  {got}");
    }
}

#[test]
fn a_process_may_be_in_a_group_and_write_through_the_page_cache() {
    let script = read("proc a 2 4 a/x\nb 8 64\nwb\nfsync\n").expect("all are known");
    let [process] = &script.processes[..] else {
        panic!("{script:?}")
    };
    assert_eq!(process.group, "a/x");
    let calls = [
        Call::Buffered {
            sector: 8,
            sectors: 64,
        },
        Call::Writeback,
        Call::Fsync,
        Call::Reap(0),
    ];
    assert_eq!(process.expand(), calls);
}

/// aioscript.c: submit, reap all, exit(0).
#[test]
fn a_process_ends_at_its_exit() {
    let script = read("proc a\nr 0 8\nexit\nr 8 8\n").expect("exit is known");
    let ended = [read_at(0), Call::Submit, Call::Reap(0)];
    assert_eq!(script.processes[0].expand(), ended);
    let script = read("proc a\nloop 3 8\nr 0 8\nsubmit\nexit\nend\nr 16 8\n").unwrap();
    assert_eq!(script.processes[0].expand(), ended);
}

/// aioscript.c reads each line with sscanf(): numbers that are missing are 0, and nothing more is
/// looked at. Positions of a loop may go down.
#[test]
fn as_lenient_as_the_replayer() {
    let text = "proc\nr 0 8 # first\nsubmit # all of it\nreap\nloop 3 -8 # back\nr 8 8\nend\nr 0\n";
    let [process] = &read(text).expect("it is read").processes[..] else {
        panic!("one process")
    };
    assert_eq!((process.name.as_str(), process.priority.class), ("p", 0));
    let calls = [
        read_at(0),
        Call::Submit,
        Call::Reap(0),
        read_at(8),
        read_at(0),
        // Before the device, and of no length: the kernel makes no I/O of either.
        Call::Submit,
        Call::Reap(0),
    ];
    assert_eq!(process.expand(), calls);
    let more = read("proc a 2 4 x y z\nr 0 8 0 more\nf 1\n").expect("further words are nothing");
    assert_eq!(more.processes[0].group, "x");
}
