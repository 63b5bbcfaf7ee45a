//! Every row of the verdict table: errors, counted warnings, and neither.

mod compressed;
mod rows;

use std::io::Write;
use std::path::{Path, PathBuf};

use blkmq::time::SimTime;
use trace::Error;
use trace::blktrace::{
    Action, Categories, Device, DeviceChoice, Event, Options, Reader, Version, Warning, Writer,
    WriterOptions,
};

const DEVICE: Device = Device::new(252, 0);
const NOTE: u64 = 48 + 8;
const RECORD: u64 = 48;

/// Expected result of reading a directory.
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

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
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

/// Reads a directory to its end.
fn read(dir: &Path, options: Options) -> Result<(u64, Reader), Error> {
    let dump = dir.join("dump");
    let mut reader = Reader::open(&[if dump.exists() { &dump } else { dir }], options)?;
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
    let mut rows = rows::all();
    rows.extend(compressed::all());
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

/// A dump is of any number of devices, if all of them were asked for; but not of thousands.
#[test]
fn a_dump_of_several_devices_needs_a_choice() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dump = dir.path().join("dump");
    let mut bytes = Vec::new();
    for minor in 0..1025_u32 {
        write_cpus(dir.path(), "sda", Device::new(8, minor), Version::V1, 1);
        let path = dir.path().join("sda.blktrace.0");
        bytes.extend(std::fs::read(path).expect("it was written"));
        if minor == 1 {
            std::fs::write(&dump, &bytes).expect("it can be written");
        }
    }
    let choose = |device: DeviceChoice| Options {
        device,
        ..Options::default()
    };
    let count = |device| {
        let (events, reader) = read(&dump, choose(device))?;
        Ok::<_, Error>((events, reader.skipped()))
    };
    let only = count(DeviceChoice::Only)
        .expect_err("there are two")
        .to_string();
    assert!(
        only.contains("several devices, name one of them: 8,0, 8,1"),
        "{only}"
    );
    assert_eq!(count(DeviceChoice::All).expect("all"), (20, 0));
    assert_eq!(
        count(DeviceChoice::Named("8,1".into())).expect("one"),
        (10, 10)
    );
    for named in ["8:1", "/dev/8,1"] {
        let one = count(DeviceChoice::Named(named.into()));
        assert_eq!(one.expect("one"), (10, 10), "{named}");
    }
    // The files beside it are named sda, and of another number.
    for absent in ["8,7", "sda", "sdx"] {
        let error = count(DeviceChoice::Named(absent.into()));
        let error = error.expect_err("it is not there").to_string();
        let want = format!("no device {absent}, there are: 8,0, 8,1");
        assert!(error.contains(&want), "{error}");
    }
    std::fs::write(&dump, &bytes).expect("it can be written");
    let many = count(DeviceChoice::All)
        .expect_err("it is damaged")
        .to_string();
    assert!(many.contains("more than 1024 devices"), "{many}");
}
