//! The text of every capture is what blkparse printed, byte for byte.

use crate::common;
use trace::blkparse::{Format, Options, Text};
use trace::blktrace::Reader;

/// The format of `blkparse-full.txt`.
const FULL: &str = "%D,%c,%s,%T.%9t,%p,%a,%d,%S,%n,%N,%e,%C\\n";

fn options(format: Option<&str>) -> Options {
    Options {
        format: format.map(|spec| Format::parse(spec).expect("it is a format")),
        no_summary: true,
        ..Options::default()
    }
}

#[test]
fn every_capture_reads_as_blkparse_printed_it() {
    let captures = common::captures();
    assert!(captures.len() >= 30, "the captures are there");
    let mut lines = 0;
    for capture in captures {
        for (file, format) in [
            ("blkparse.txt.xz", None),
            ("blkparse-full.txt.xz", Some(FULL)),
        ] {
            let want = common::text(&capture.join(file));
            let mut reader = Reader::open(&[&capture], common::all_devices()).expect("it opens");
            let mut text = Text::new(&mut reader, options(format));
            let mut got = Vec::new();
            while text.next(&mut got).expect("it is not damaged") {}
            let got = String::from_utf8(got).expect("names are UTF-8");
            // Its last words were captured too.
            let mut want = want.lines().filter(|line| !line.starts_with("Input file "));
            for line in got.lines() {
                lines += 1;
                assert_eq!(Some(line), want.next(), "{capture:?}, {file}");
            }
            assert_eq!(want.next(), None, "{capture:?}, {file}");
            assert!(reader.warnings().is_empty(), "{capture:?}");
        }
    }
    assert!(lines > 120_000, "{lines}");
}
