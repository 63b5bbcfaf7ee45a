//! A sample of each format gives the events in the file beside it; damage of it is one clear error;
//! random changes of it are no panic.

mod damage;
mod fuzz;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use trace::blktrace::{DeviceChoice, Options, Reader};

/// Name of each sample, and the format that it is of.
pub(crate) const SAMPLES: [(&str, &str); 12] = [
    ("biosnoop-bpftrace.txt", "biosnoop"),
    ("biosnoop-queued.txt", "biosnoop"),
    ("biosnoop.txt", "biosnoop"),
    ("blkparse-full.txt", "blkparse"),
    ("blkparse.txt", "blkparse"),
    ("ftrace.txt", "ftrace"),
    ("iolog-2.txt", "iolog"),
    ("iolog-3.txt", "iolog"),
    ("msr.csv", "msr"),
    ("perf.txt", "ftrace"),
    ("systor.csv", "systor"),
    ("trace-cmd.txt", "ftrace"),
];

pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/formats/samples")
        .join(name)
}

/// Reads a file to its end; the events as lines.
fn events(path: &Path, options: Options) -> Result<(String, Reader), trace::Error> {
    let mut reader = Reader::open(&[path], options)?;
    let mut text = String::new();
    while let Some(event) = reader.next()? {
        let time = event.time.since(reader.genesis()).0;
        let (action, rwbs) = (event.action.letters(), event.rwbs());
        let (sector, bytes) = (event.sector, event.bytes);
        write!(text, "{time} {action} {rwbs} {sector}+{bytes}").expect("to memory");
        let (device, cpu, pid) = (event.device, event.cpu, event.pid);
        let name = reader.process_name(pid).unwrap_or("-");
        let (error, extra) = (event.error, event.extra);
        writeln!(text, " of {device} cpu {cpu} {pid} {name} {error} {extra}").expect("to memory");
    }
    let rows = reader.warnings().rows(reader.files());
    for row in rows {
        writeln!(text, "{} x {}", row.count, row.warning).expect("to memory");
    }
    Ok((text, reader))
}

#[test]
fn each_sample_gives_its_events() {
    for (name, format) in SAMPLES {
        let path = sample(name);
        let (text, reader) = events(&path, Options::default()).expect(name);
        assert_eq!(reader.lacks().len(), 1, "{name}");
        let want = path.with_extension("events");
        if std::env::var_os("REWRITE").is_some() {
            std::fs::write(&want, &text).expect("it can be written");
        }
        let want = std::fs::read_to_string(want).expect("it is in the repository");
        assert_eq!(text, want, "{name}");
        let forced = Options {
            format: Some(format.parse().expect("there is this format")),
            ..Options::default()
        };
        assert_eq!(events(&path, forced).expect(name).0, want, "{name}");
    }
}

/// The order of the fields is the user's.
#[test]
fn a_format_of_blkparse_is_read_as_it_was_given() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("out.txt");
    let text = "R  Q|    4.000000005 8/16 sda 7904 - 8 [fio] 2] \n\
                R  C|    4.000001005 8/16 sda 7904 - 8 [swapper/0] \n";
    std::fs::write(&file, text).expect("it can be written");
    let read = |spec: &str| {
        let format = spec.parse()?;
        let options = Options {
            format: Some(format),
            ..Options::default()
        };
        let read = events(&file, options);
        read.map(|(text, _)| text)
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        read(r"blkparse:%d %2a|%5T.%9t %M/%m sda %S - %n [%C] \n").expect("it fits"),
        "0 Q R 7904+4096 of 8,16 cpu 0 0 swapper 0 0\n1000 C R 7904+4096 of 8,16 cpu 0 0 swapper 0 0\n"
    );
    for (spec, says) in [
        (
            r"blkparse:%d %a %T.%t %S+%n %k\n",
            "%k at position 19: expected a letter of acCdDeMmnNpPsStTuUz",
        ),
        (
            r"blkparse:%d %a %T.%t %S%n\n",
            "nothing separates two of its fields",
        ),
        (
            r"blkparse:%a %T.%t %S %n\n",
            "it lacks %d, RWBS, the direction",
        ),
        (
            r"blkparse:%d %a %T.%t %S %n %5",
            "% at position 19: expected a letter",
        ),
        (
            r"blkparse:%d %a %T %S %n\n",
            "it lacks %t, the nanoseconds of the time",
        ),
        (r"msr:%d", "msr takes no `:SPEC`, only blkparse does"),
        ("btt", "expected one of blktrace, iolog, ftrace,"),
        (
            r"blkparse:%d,%a,%T.%t,%S,%n\n",
            ":1: separator: nothing, expected `,`",
        ),
    ] {
        let error = read(spec).expect_err(spec);
        assert!(error.contains(says), "{spec}: {error}");
    }
}

/// bpftrace's samples have two devices' worth of nothing; MSR's volume has a name.
#[test]
fn a_device_of_a_text_is_chosen_by_its_name() {
    let named = |name: &str| Options {
        device: DeviceChoice::Named(name.to_owned()),
        ..Options::default()
    };
    for (file, device) in [
        ("msr.csv", "usr_0"),
        ("systor.csv", "lun4"),
        ("biosnoop.txt", "/dev/xvda1"),
        ("biosnoop.txt", "xvda1"),
        ("blkparse.txt", "252:0"),
        ("iolog-2.txt", "/dev/sda"),
        ("iolog-2.txt", "sda"),
    ] {
        let (text, _) = events(&sample(file), named(device)).expect(file);
        let whole = events(&sample(file), Options::default()).expect(file).0;
        assert_eq!(text, whole, "{file} {device}");
        let error = events(&sample(file), named("nvme9n9")).expect_err(file);
        let error = error.to_string();
        assert!(error.contains("no device nvme9n9, there are: "), "{error}");
    }
}
