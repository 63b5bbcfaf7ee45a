//! blkparse reads the writer's files and prints them as we do; the reader reads blkparse's dumps.
//!
//! Skipped with a message where the blktrace package is not installed.

use crate::common;
use std::path::Path;
use std::process::Command;

use blkmq::time::SimTime;
use trace::blkparse::{self, Format, Text};
use trace::blktrace::{
    Action, Categories, Device, Event, Options, Reader, Version, Writer, WriterOptions,
};

/// Runs blkparse in a directory; nothing if there is none.
fn run_blkparse(dir: &Path, args: &[&str]) -> Option<String> {
    match Command::new("blkparse")
        .args(args)
        .current_dir(dir)
        .output()
    {
        Ok(output) => {
            assert!(output.status.success(), "{output:?}");
            Some(String::from_utf8(output.stdout).expect("it prints text"))
        }
        Err(error) => {
            println!("skipped: blkparse cannot be run: {error}");
            None
        }
    }
}

const FORMAT: &str = "%M,%m %c %s %T.%9t %p %a %d %S+%n e%e %P %C\n";

/// The text of files, by our own options.
fn text(paths: &[&Path], options: blkparse::Options) -> String {
    let mut reader = Reader::open(paths, Options::default()).expect("it opens");
    let mut text = Text::new(&mut reader, options);
    let mut out = Vec::new();
    while text.next(&mut out).expect("it is good") {}
    String::from_utf8(out).expect("names are UTF-8")
}

fn formatted(spec: &str) -> blkparse::Options {
    blkparse::Options {
        format: Some(Format::parse(spec).expect("it is a format")),
        no_summary: true,
        ..blkparse::Options::default()
    }
}

/// What blkparse says of its input files is not compared.
fn without_files(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with("Input file"))
        .collect()
}

/// Writes an event: some passthrough requests with a command, remaps to a partition, messages.
fn put(writer: &mut Writer, n: u64, event: Event) {
    let event = Event {
        categories: match n % 4 {
            0 if command(event.action) => event.categories.with(Categories::PC),
            _ => event.categories,
        },
        ..event
    };
    match event.action {
        Action::Remap => {
            let pdu = [
                [0x0f, 0xd0, 0, 1],
                [0x0f, 0xc0, 0, 3],
                [0; 4],
                [0, 0, n as u8, 8],
            ];
            writer.write_with(&event, None, pdu.as_flattened())
        }
        _ if event.categories.any(Categories::PC) => {
            writer.write_with(&event, None, &[0x28, n as u8, 0, 7, 0, 0, 0])
        }
        _ => writer.write(&event),
    }
    .expect("written");
    if n % 50 == 7 {
        let note = Event {
            device: event.device,
            cpu: event.cpu,
            ..Event::new(event.time, Action::Message)
        };
        writer
            .write_with(&note, None, b"some text")
            .expect("written");
    }
}

/// Some hundred events of all usual kinds on three CPUs, with equal times among them.
fn write(dir: &Path, options: WriterOptions) {
    let device = Device::new(252, 0);
    let mut writer = Writer::create(dir, "nullb0", device, 3, options).expect("a directory");
    let actions = [
        (Action::Queue, Categories::QUEUE),
        (Action::GetRequest, Categories::QUEUE),
        (Action::Plug, Categories::QUEUE),
        (Action::Unplug, Categories::QUEUE),
        (Action::Insert, Categories::QUEUE.with(Categories::FS)),
        (Action::Split, Categories::default()),
        (Action::Remap, Categories::QUEUE),
        (Action::Issue, Categories::ISSUE.with(Categories::FS)),
        (Action::Requeue, Categories::REQUEUE.with(Categories::FS)),
        (Action::BackMerge, Categories::QUEUE),
        (Action::FrontMerge, Categories::QUEUE),
        (Action::UnplugTimer, Categories::QUEUE),
        (Action::Complete, Categories::COMPLETE.with(Categories::FS)),
    ];
    let flags = [
        Categories::READ,
        Categories::WRITE.with(Categories::SYNC),
        Categories::WRITE.with(Categories::DISCARD),
        Categories::WRITE
            .with(Categories::FUA)
            .with(Categories::FLUSH),
        Categories::READ
            .with(Categories::AHEAD)
            .with(Categories::META),
    ];
    for n in 0..600_u64 {
        let (action, family) = actions[(n % 13) as usize];
        let plug = matches!(action, Action::Plug | Action::Unplug | Action::UnplugTimer);
        let pid = 100 + n as u32 % 5;
        writer.name_process(
            pid,
            ["fio", "kworker/0:1H", "a name that is too long"][n as usize % 3],
        );
        let event = Event {
            sector: if plug { 0 } else { n * 4096 },
            bytes: if plug { 0 } else { 4096 * (n as u32 % 7 + 1) },
            extra: match action {
                Action::Split | Action::Remap => n * 4096 + 8,
                Action::Unplug | Action::UnplugTimer => n % 16,
                _ => 0,
            },
            from: if action == Action::Remap {
                Device::new(253, 1)
            } else {
                Device(0)
            },
            categories: flags[(n % 5) as usize].with(family),
            pid,
            device,
            cpu: (n * n % 3) as u32,
            error: if action == Action::Complete {
                (n % 2 * 5) as u16
            } else {
                0
            },
            ..Event::new(SimTime(7_000_000_000 + n / 2 * 333), action)
        };
        put(&mut writer, n, event);
    }
    writer.finish().expect("written");
}

fn command(action: Action) -> bool {
    matches!(action, Action::Insert | Action::Issue | Action::Complete)
}

#[test]
fn blkparse_prints_the_written_events() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = WriterOptions {
        version: Version::V1,
        ..WriterOptions::default()
    };
    write(dir.path(), options);
    for (arguments, ours) in [
        (&["-i", "nullb0"][..], blkparse::Options::default()),
        (&["-q", "-i", "nullb0", "-f", FORMAT], formatted(FORMAT)),
    ] {
        let Some(theirs) = run_blkparse(dir.path(), arguments) else {
            return;
        };
        let theirs = without_files(&theirs);
        assert!(theirs.lines().count() > 600, "{theirs}");
        assert_eq!(text(&[dir.path()], ours), theirs, "{arguments:?}");
    }
    let default = text(&[dir.path()], blkparse::Options::default());
    for part in [
        "20480 / 20488 [",
        "252,3  ",
        "<- (253,1)",
        "(28 04 00 07 00 ..)",
        " m   N some text\n",
    ] {
        assert!(default.contains(part), "{part}: {default}");
    }
}

#[test]
fn the_dump_of_blkparse_holds_the_same_events() {
    for capture in [
        "m2-randread-none",
        "m4-sq4-mq-deadline",
        "sd-fsync-mq-deadline",
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut device = String::new();
        for entry in std::fs::read_dir(common::traces().join(capture)).expect("it is there") {
            let path = entry.expect("readable").path();
            let name = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            if let Some((before, _)) = name.split_once(".blktrace.") {
                device = before.to_string();
                std::fs::write(dir.path().join(name), common::unxz(&path)).expect("written");
            }
        }
        if run_blkparse(dir.path(), &["-q", "-O", "-i", &device, "-d", "dump"]).is_none() {
            return;
        }
        let without_names = FORMAT.replace(" %C", "");
        let from_dump = text(&[&dir.path().join("dump")], formatted(&without_names));
        let from_files = text(&[dir.path()], formatted(&without_names));
        assert!(from_files.lines().count() > 1000);
        // The dump is in blkparse's order, the window in order of time, number and arrival: equal
        // times of two CPUs may change places.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&from_dump), sorted(&from_files), "{capture}");
    }
}
