//! blkparse reads the writer's files, and the reader reads blkparse's dumps.
//!
//! Skipped with a message where the blktrace package is not installed.

use crate::common;
use std::path::Path;
use std::process::Command;

use blkmq::time::SimTime;
use trace::blktrace::{
    Action, Categories, Device, Event, Options, Reader, Version, Writer, WriterOptions,
};

/// Runs blkparse in a directory; nothing if there is none.
fn blkparse(dir: &Path, args: &[&str]) -> Option<String> {
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

const FORMAT: &str = "%M,%m %c %s %T.%9t %p %a %d %S+%n e%e %C\n";

fn line(reader: &Reader, event: &Event) -> String {
    let time = event.time.since(reader.genesis()).0;
    format!(
        "{},{} {} {} {}.{:09} {} {} {} {}+{} e{} {}",
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
        event.error.wrapping_neg(),
        reader.process_name(event.pid).unwrap_or("(null)"),
    )
}

fn lines(paths: &[&Path], options: Options) -> Vec<String> {
    let mut reader = Reader::open(paths, options).expect("it opens");
    let mut lines = Vec::new();
    while let Some(event) = reader.next().expect("it is good") {
        if event.action != Action::Message {
            lines.push(line(&reader, &event));
        }
    }
    lines
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
        writer.write(&event).expect("written");
    }
    writer.finish().expect("written");
}

#[test]
fn blkparse_prints_the_written_events() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = WriterOptions {
        version: Version::V1,
        ..WriterOptions::default()
    };
    write(dir.path(), options);
    let Some(text) = blkparse(dir.path(), &["-q", "-i", "nullb0", "-f", FORMAT]) else {
        return;
    };
    let got = lines(&[dir.path()], Options::default());
    let want: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("Input file"))
        .collect();
    assert_eq!(want.len(), 600);
    assert_eq!(got, want);
    let Some(text) = blkparse(dir.path(), &["-q", "-i", "nullb0"]) else {
        return;
    };
    assert!(text.contains("20480 / 20488 ["), "{text}");
    assert!(text.contains("<- (253,1)"), "{text}");
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
        if blkparse(dir.path(), &["-q", "-O", "-i", &device, "-d", "dump"]).is_none() {
            return;
        }
        let from_dump = lines(&[&dir.path().join("dump")], Options::default());
        let from_files = lines(&[dir.path()], Options::default());
        assert!(from_files.len() > 1000);
        let without_names =
            |line: &String| line.rsplit_once(' ').expect("it has a name").0.to_string();
        // The dump is in blkparse's order, the window in order of time, number and arrival: equal
        // times of two CPUs may change places.
        let sorted = |lines: &[String]| {
            let mut lines: Vec<String> = lines.iter().map(without_names).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&from_dump), sorted(&from_files), "{capture}");
    }
}
