//! Order, fields and names agree with blkparse's output for every capture.

use crate::common;
use trace::blktrace::{Action, Event, Reader};

/// One event in the format of `blkparse-full.txt`. blkparse prints the error as it is stored.
fn line(reader: &Reader, event: &Event) -> String {
    let time = event.time.since(reader.genesis()).0;
    format!(
        "{:>3},{:<3},{},{},{}.{:09},{},{},{},{},{},{},{},{}",
        event.device.major(),
        event.device.minor(),
        event.cpu,
        event.sequence,
        time / 1_000_000_000,
        time % 1_000_000_000,
        event.pid,
        event.action.letters(),
        event.rwbs(),
        event.sector,
        event.sectors(),
        event.bytes,
        event.error.wrapping_neg(),
        match event.pid {
            // Every CPU's idle task is pid 0. blkparse reads ahead and so prints the name of
            // another one.
            0 => "swapper",
            pid => reader.process_name(pid).unwrap_or("(null)"),
        },
    )
}

#[test]
fn every_capture_reads_as_blkparse_printed_it() {
    let captures = common::captures();
    assert!(captures.len() >= 30, "the captures are there");
    let mut events = 0;
    for capture in captures {
        let want = common::text(&capture.join("blkparse-full.txt.xz"));
        // Its last words, on the error stream, were captured too.
        let mut want = want.lines().filter(|line| !line.starts_with("Input file "));
        let mut reader = Reader::open(&[&capture], common::all_devices()).expect("it opens");
        while let Some(event) = reader.next().expect("it is not damaged") {
            // blkparse 1.2.0 drops messages that have a cgroup id.
            if event.action == Action::Message {
                continue;
            }
            events += 1;
            let want = want
                .next()
                .unwrap_or_else(|| panic!("{capture:?}: more than blkparse"));
            let want = want
                .split(",swapper/")
                .next()
                .expect("there is a first part");
            let got = line(&reader, &event);
            assert_eq!(got.trim_end_matches(",swapper"), want, "{capture:?}");
        }
        assert_eq!(want.next(), None, "{capture:?}: less than blkparse");
        assert!(
            reader.warnings().is_empty(),
            "{capture:?}: {:?}",
            reader.warnings()
        );
    }
    assert!(events > 60_000, "{events}");
}
