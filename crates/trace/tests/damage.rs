//! Every row of the verdict table: what is an error, what a counted warning, what neither.

#![allow(clippy::too_many_lines)] // Tables.
#![allow(clippy::semicolon_if_nothing_returned)] // Their one-line entries.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};

use blkmq::time::SimTime;
use trace::Error;
use trace::blktrace::{
    Action, Categories, Device, Event, Options, Reader, Version, Warning, Writer, WriterOptions,
};

const DEVICE: Device = Device::new(252, 0);
const NOTE: u64 = 48 + 8;
const RECORD: u64 = 48;

/// What reading a directory must come to.
enum Verdict {
    /// An error whose text contains this, at this offset if there is one.
    Error(&'static str, Option<u64>),
    /// So many events, and so many warnings of a kind, the first at this offset.
    Warning(u64, Warning, u64, u64),
    /// So many events and nothing to warn of.
    Fine(u64),
}
use Verdict::{Error as Refused, Fine, Warning as Warned};

/// One row: a name, how the files are made, how they are read, and the verdict.
struct Row(&'static str, fn(&Path), Options, Verdict);

fn event(at: u64, action: Action, sector: u64) -> Event {
    let family = if action == Action::Queue {
        Categories::QUEUE
    } else {
        Categories::COMPLETE
    };
    Event {
        sector,
        bytes: 4096,
        categories: Categories::READ.with(family),
        device: DEVICE,
        pid: 7,
        ..Event::new(SimTime(at), action)
    }
}

/// Ten good events on CPU 0 at 1000, 2000, ... ns, after the wall clock note.
fn write_good(dir: &Path, name: &str, version: Version) {
    write_cpus(dir, name, DEVICE, version, 1);
}

fn write_cpus(dir: &Path, name: &str, device: Device, version: Version, cpus: u32) {
    let options = WriterOptions {
        version,
        ..WriterOptions::default()
    };
    let mut writer = Writer::create(dir, name, device, cpus, options).expect("a directory");
    for n in 0..10 {
        let action = [Action::Queue, Action::Complete][n as usize % 2];
        let event = Event {
            device,
            cpu: n as u32 % cpus,
            ..event(1000 * (n + 1), action, n / 2 * 8)
        };
        writer.write(&event).expect("written");
    }
    writer.finish().expect("written");
}

fn good(dir: &Path) -> PathBuf {
    write_good(dir, "sda", Version::V1);
    dir.join("sda.blktrace.0")
}

/// Changes the bytes of a file.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).expect("it was written");
    change(&mut bytes);
    std::fs::write(path, bytes).expect("it can be written");
}

/// Overwrites bytes of event `n`, counted from 0.
fn poke(dir: &Path, n: u64, at: usize, new: &[u8]) {
    edit(&good(dir), |bytes| {
        let from = (NOTE + n * RECORD) as usize + at;
        bytes[from..from + new.len()].copy_from_slice(new);
    });
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn plain() -> Options {
    Options::default()
}

fn strict() -> Options {
    Options {
        strict: true,
        ..Options::default()
    }
}

fn salvage() -> Options {
    Options {
        salvage: true,
        ..Options::default()
    }
}

fn whole_capture_rows() -> Vec<Row> {
    vec![
        Row(
            "empty directory",
            |_| {},
            plain(),
            Refused("no file named", None),
        ),
        Row(
            "only empty files",
            |dir| {
                std::fs::write(dir.join("sda.blktrace.0"), b"").expect("written");
                std::fs::write(dir.join("sda.blktrace.1"), b"").expect("written");
            },
            plain(),
            Refused("no readable record", None),
        ),
        Row(
            "less than one record",
            |dir| edit(&good(dir), |bytes| bytes.truncate(30)),
            plain(),
            Refused("no readable record", None),
        ),
        Row(
            "an empty file beside a full one",
            |dir| {
                good(dir);
                std::fs::write(dir.join("sda.blktrace.1"), b"").expect("written");
            },
            strict(),
            Fine(10),
        ),
        Row(
            "two devices, none named",
            |dir| {
                write_good(dir, "sda", Version::V1);
                write_good(dir, "sdb", Version::V1);
            },
            plain(),
            Refused("several devices, name one of them: sda, sdb", None),
        ),
        Row(
            "a directory with the name of a file",
            |dir| std::fs::create_dir(dir.join("sda.blktrace.0")).expect("made"),
            plain(),
            Refused("not a regular file", None),
        ),
        Row(
            "one CPU twice",
            |dir| {
                let bytes = std::fs::read(good(dir)).expect("written");
                std::fs::write(dir.join("sda.blktrace.0.gz"), gzip(&bytes)).expect("written");
            },
            plain(),
            Refused("CPU 0 a second time", None),
        ),
        Row(
            "a CPU number without file",
            |dir| {
                write_cpus(dir, "sda", DEVICE, Version::V1, 3);
                std::fs::remove_file(dir.join("sda.blktrace.1")).expect("it was there");
            },
            plain(),
            Warned(7, Warning::MissingCpu, 1, 0),
        ),
        Row(
            "drops told by blktrace",
            |dir| {
                good(dir);
                let log = "=== sda ===\n  Total:  10 events (dropped 42),  1 KiB data\n";
                std::fs::write(dir.join("blktrace.log"), log).expect("written");
            },
            plain(),
            Warned(10, Warning::Dropped, 42, 0),
        ),
        Row(
            "drops told by blktrace, strict",
            |dir| {
                good(dir);
                let log = "=== sda ===\n  Total:  10 events (dropped 42),  1 KiB data\n";
                std::fs::write(dir.join("blktrace.log"), log).expect("written");
            },
            strict(),
            Refused("because of strict", Some(0)),
        ),
    ]
}

fn magic_rows() -> Vec<Row> {
    vec![
        Row(
            "first bytes are no magic",
            |dir| edit(&good(dir), |bytes| bytes[..4].copy_from_slice(b"GIF8")),
            plain(),
            Refused("no record magic: 0x38464947", Some(0)),
        ),
        Row(
            "first bytes are no magic, salvage",
            |dir| edit(&good(dir), |bytes| bytes[..4].copy_from_slice(b"GIF8")),
            salvage(),
            Refused("no record magic", Some(0)),
        ),
        Row(
            "unknown version first",
            |dir| edit(&good(dir), |bytes| bytes[0] = 9),
            plain(),
            Refused("unknown version 9", Some(0)),
        ),
        Row(
            "unknown version in the middle",
            |dir| poke(dir, 3, 0, &[6]),
            plain(),
            Refused(
                "unknown version 6, expected 7 or 8; 4 good records before",
                Some(NOTE + 3 * RECORD),
            ),
        ),
        Row(
            "bad magic in the middle",
            |dir| poke(dir, 4, 1, &[0, 0]),
            plain(),
            Refused("5 good records before", Some(NOTE + 4 * RECORD)),
        ),
        Row(
            "bad magic in the middle, salvage",
            |dir| poke(dir, 4, 1, &[0, 0]),
            salvage(),
            Warned(4, Warning::Salvaged, 1, NOTE + 4 * RECORD),
        ),
        Row(
            "bad magic in the middle, salvage and strict",
            |dir| poke(dir, 4, 1, &[0, 0]),
            Options {
                strict: true,
                salvage: true,
                ..Options::default()
            },
            Refused("because of strict", Some(NOTE + 4 * RECORD)),
        ),
        Row(
            "the other byte order in the middle",
            |dir| poke(dir, 2, 0, b"eat\x07"),
            plain(),
            Refused("other byte order", Some(NOTE + 2 * RECORD)),
        ),
        Row(
            "rubbish behind the last record",
            |dir| edit(&good(dir), |bytes| bytes.extend_from_slice(b"rubbish")),
            plain(),
            Refused("no record magic", Some(NOTE + 10 * RECORD)),
        ),
    ]
}

fn length_rows() -> Vec<Row> {
    vec![
        Row(
            "impossible length in the middle",
            |dir| poke(dir, 5, 46, &[0xff, 0xff]),
            plain(),
            Refused("impossible pdu_len 65535", Some(NOTE + 5 * RECORD)),
        ),
        Row(
            "impossible length, salvage",
            |dir| poke(dir, 5, 46, &[0xff, 0xff]),
            salvage(),
            Warned(5, Warning::Salvaged, 1, NOTE + 5 * RECORD),
        ),
        Row(
            "cgroup bit without room for the id",
            |dir| poke(dir, 5, 29, &[1]),
            plain(),
            Refused("impossible pdu_len 0", Some(NOTE + 5 * RECORD)),
        ),
        Row(
            "a remap without payload",
            |dir| poke(dir, 5, 28, &[15]),
            plain(),
            Refused(
                "impossible pdu_len 0 for action 15",
                Some(NOTE + 5 * RECORD),
            ),
        ),
        Row(
            "truncated last record",
            |dir| edit(&good(dir), |bytes| bytes.truncate(bytes.len() - 1)),
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, NOTE + 9 * RECORD),
        ),
        Row(
            "truncated after two bytes of the last record",
            |dir| edit(&good(dir), |bytes| bytes.truncate(bytes.len() - 46)),
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, NOTE + 9 * RECORD),
        ),
        Row(
            "truncated payload of the last record",
            |dir| poke(dir, 9, 46, &[24]),
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, NOTE + 9 * RECORD),
        ),
        Row(
            "truncated last record, v2",
            |dir| {
                write_good(dir, "sda", Version::V2);
                edit(&dir.join("sda.blktrace.0"), |bytes| {
                    bytes.truncate(bytes.len() - 12)
                });
            },
            plain(),
            Warned(9, Warning::TruncatedRecord, 1, 64 + 8 + 9 * 64),
        ),
        Row(
            "truncated last record, strict",
            |dir| edit(&good(dir), |bytes| bytes.truncate(bytes.len() - 1)),
            strict(),
            Refused("truncated last record", Some(NOTE + 9 * RECORD)),
        ),
        Row(
            "unknown action of known length",
            |dir| poke(dir, 5, 28, &[77]),
            strict(),
            Fine(10),
        ),
    ]
}

fn content_rows() -> Vec<Row> {
    vec![
        Row(
            "another device in the file of one CPU",
            |dir| poke(dir, 6, 36, &[1]),
            plain(),
            Refused(
                "device 252,1 in a trace of device 252,0",
                Some(NOTE + 6 * RECORD),
            ),
        ),
        Row(
            "a gap in the numbers",
            |dir| {
                edit(&good(dir), |bytes| {
                    let at = (NOTE + 4 * RECORD) as usize;
                    bytes.drain(at..at + 3 * RECORD as usize);
                });
            },
            plain(),
            Warned(7, Warning::SequenceGap, 3, NOTE + 4 * RECORD),
        ),
        Row(
            "a beginning that is missing",
            |dir| {
                edit(&good(dir), |bytes| {
                    bytes.drain(NOTE as usize..(NOTE + RECORD) as usize);
                });
            },
            plain(),
            Warned(9, Warning::SequenceGap, 1, NOTE),
        ),
        Row(
            "a trace started a second time",
            |dir| {
                edit(&good(dir), |bytes| {
                    // As long after the first as it lasted.
                    let mut again = bytes[NOTE as usize..].to_vec();
                    for record in again.chunks_mut(RECORD as usize) {
                        record[9] += 0x40;
                    }
                    bytes.extend_from_slice(&again);
                })
            },
            strict(),
            Fine(20),
        ),
        Row(
            "time goes back by less than a millisecond",
            |dir| poke(dir, 5, 8, &4_999_u64.to_le_bytes()),
            plain(),
            Warned(10, Warning::TimeBackwards, 1, NOTE + 5 * RECORD),
        ),
        Row(
            "time goes back by a millisecond",
            |dir| {
                poke(dir, 5, 8, &2_000_000_u64.to_le_bytes());
                edit(&dir.join("sda.blktrace.0"), |bytes| {
                    let from = (NOTE + 6 * RECORD) as usize + 8;
                    bytes[from..from + 8].copy_from_slice(&1_000_000_u64.to_le_bytes());
                });
            },
            plain(),
            Refused("time goes back by 1000000 ns", Some(NOTE + 6 * RECORD)),
        ),
        Row(
            "uninitialised fields of a note",
            |dir| edit(&good(dir), |bytes| bytes[4..8].fill(0xa5)),
            strict(),
            Fine(10),
        ),
    ]
}

fn compression_rows() -> Vec<Row> {
    fn compressed(dir: &Path, name: &str, pack: fn(&[u8]) -> Vec<u8>) -> PathBuf {
        let path = good(dir);
        let bytes = std::fs::read(&path).expect("written");
        std::fs::remove_file(&path).expect("it was there");
        let path = dir.join(name);
        std::fs::write(&path, pack(&bytes)).expect("written");
        path
    }
    vec![
        Row(
            "gzip under the name of a plain file",
            |dir| {
                compressed(dir, "sda.blktrace.0", gzip);
            },
            strict(),
            Fine(10),
        ),
        Row(
            "xz under the name of gzip",
            |dir| {
                compressed(dir, "sda.blktrace.0.gz", xz);
            },
            strict(),
            Fine(10),
        ),
        Row(
            "damaged gzip",
            |dir| {
                edit(&compressed(dir, "sda.blktrace.0.gz", gzip), |bytes| {
                    let length = bytes.len();
                    bytes[length - 6] ^= 0xff;
                })
            },
            plain(),
            Refused("damaged gzip data", None),
        ),
        Row(
            "truncated xz",
            |dir| {
                edit(&compressed(dir, "sda.blktrace.0.xz", xz), |bytes| {
                    bytes.truncate(bytes.len() - 20);
                })
            },
            plain(),
            Refused("damaged xz data", None),
        ),
        Row(
            "truncated xz, salvage",
            |dir| {
                edit(&compressed(dir, "sda.blktrace.0.xz", xz), |bytes| {
                    bytes.truncate(bytes.len() - 20);
                })
            },
            salvage(),
            Warned(10, Warning::Salvaged, 1, NOTE + 10 * RECORD),
        ),
    ]
}

/// Reads a directory to its end.
fn read(dir: &Path, options: Options) -> Result<(u64, Reader), Error> {
    let mut reader = Reader::open(&[dir], options)?;
    let mut events = 0;
    while reader.next()?.is_some() {
        events += 1;
    }
    Ok((events, reader))
}

fn offset(error: &Error) -> Option<u64> {
    match error {
        Error::Binary { offset, .. } | Error::Io { offset, .. } => Some(*offset),
        _ => None,
    }
}

#[test]
fn each_row_has_its_verdict() {
    let rows: Vec<Row> = [
        whole_capture_rows(),
        magic_rows(),
        length_rows(),
        content_rows(),
        compression_rows(),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(rows.len() >= 40, "{}", rows.len());
    for Row(name, make, options, verdict) in rows {
        let dir = tempfile::tempdir().expect("a temporary directory");
        make(dir.path());
        let got = read(dir.path(), options);
        match (got, verdict) {
            (Err(error), Refused(text, at)) => {
                let shown = error.to_string();
                assert!(shown.contains(text), "{name}: {shown}");
                let path = dir.path().to_str().expect("an ASCII path");
                assert!(shown.contains(path), "{name}: names no file: {shown}");
                assert!(at.is_none() || offset(&error) == at, "{name}: {shown}");
            }
            (Ok((events, reader)), Warned(want, warning, count, at)) => {
                let rows = reader.warnings().rows(reader.files());
                assert_eq!(rows.len(), 1, "{name}: {rows:?}");
                assert_eq!(
                    (events, rows[0].warning, rows[0].count),
                    (want, warning, count),
                    "{name}"
                );
                assert_eq!(rows[0].offset, at, "{name}");
            }
            (Ok((events, reader)), Fine(want)) => {
                assert!(
                    reader.warnings().is_empty(),
                    "{name}: {:?}",
                    reader.warnings()
                );
                assert_eq!(events, want, "{name}");
            }
            (Err(error), _) => panic!("{name}: {error}"),
            (Ok((events, _)), Refused(..)) => panic!("{name}: {events} events, no error"),
        }
    }
}

#[test]
fn nothing_follows_an_error() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    poke(dir.path(), 4, 1, &[0, 0]);
    let mut reader = Reader::open(&[dir.path()], plain()).expect("the first record is good");
    let mut events = 0;
    while let Ok(Some(_)) = reader.next() {
        events += 1;
    }
    assert_eq!(events, 4);
    assert!(matches!(reader.next(), Ok(None)));
}

#[test]
fn a_missing_file_and_an_empty_list_are_errors() {
    let missing = Reader::open(&["/nonexistent/sda.blktrace.0"], plain());
    assert!(
        missing
            .expect_err("it is not there")
            .to_string()
            .contains("/nonexistent/sda")
    );
    let nothing: [&Path; 0] = [];
    assert!(Reader::open(&nothing, plain()).is_err());
}

#[test]
fn a_name_without_the_ending_means_all_its_cpus() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write_cpus(dir.path(), "sda", DEVICE, Version::V1, 2);
    write_cpus(dir.path(), "sdb", Device::new(8, 16), Version::V1, 2);
    let mut reader = Reader::open(&[dir.path().join("sdb")], strict()).expect("both files");
    let first = reader.next().expect("good").expect("ten events");
    assert_eq!(first.device, Device::new(8, 16));
    assert_eq!(reader.files().len(), 2);
}
