use std::fs;
use std::path::{Path, PathBuf};

use super::CaptureDir;
use crate::io_txt::{Call, IoKind, Process};
use crate::meta::{Command, KernelVersion};

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

fn all() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = fs::read_dir(traces())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    dirs.sort();
    dirs
}

/// Every capture of the tree opens, and its texts agree with each other.
#[test]
fn captures_open() {
    let mut scripts = 0;
    for path in all() {
        let capture = CaptureDir::open(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let want = if name.contains("k612") { 12 } else { 1 };
        assert_eq!(
            capture.meta.kernel,
            KernelVersion {
                major: 6,
                minor: want,
                third: None,
            },
            "{name}"
        );
        assert_eq!(capture.meta.exit_code, Some(0));
        for device in &capture.devices {
            assert!(!device.blktrace.is_empty(), "{name}");
            assert!(
                *device.blktrace.keys().last().unwrap() < capture.meta.cpus,
                "{name}"
            );
            let queue = capture.queue(Some(&device.name)).unwrap();
            let scheduler = queue.scheduler().unwrap();
            assert_eq!(scheduler == "none", queue.iosched.is_empty(), "{name}");
            assert!(queue.number("nr_requests").unwrap() > 0);
            assert!(!queue.hctxs.is_empty());
        }
        assert!(capture.after.is_some());
        match &capture.meta.command {
            Command::IoScript { device, .. } => {
                scripts += 1;
                assert!(capture.queue(Some(device)).is_ok());
                assert!(!capture.io_script().unwrap().unwrap().processes.is_empty());
            }
            Command::Fio { arguments } => assert!(arguments.len() > 5),
            // A script that changes the scheduler or paths meanwhile.
            Command::Other(text) => assert!(text.contains(".sh fio "), "{name}: {text}"),
        }
    }
    assert!(scripts >= 15, "only {scripts} captures with a script");
}

/// The script of a capture accounts for each bio that the kernel traced. (The reads of the sd-fua
/// captures lie past the device's end; the kernel answers those without a bio.)
#[test]
fn scripts_account_for_the_traced_bios() {
    for (name, bios) in [
        ("dd01-defaults", 129),
        ("dd09-waves", 806),
        ("sd-fua-none", 176),
    ] {
        let capture = CaptureDir::open(&traces().join(name)).unwrap();
        let script = capture.io_script().unwrap().unwrap();
        let end = capture.queue(None).unwrap().sectors;
        let calls = script.processes.iter().flat_map(Process::expand);
        let queued: Vec<_> = calls
            .filter_map(|call| match call {
                Call::Queue(io) if io.sector < end => Some(io),
                _ => None,
            })
            .collect();
        assert_eq!(queued.len(), bios, "{name}");
        let flushes = queued.iter().filter(|io| io.kind == IoKind::Flush).count();
        assert_eq!(flushes > 0, name == "sd-fua-none");
    }
}

#[test]
fn what_is_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let open = || CaptureDir::open(path).map(|_| ()).unwrap_err().to_string();
    assert!(
        open().contains("no meta.txt here (nor meta.txt.xz); it describes the capture, and docs")
    );
    let gone = CaptureDir::open(&path.join("gone"))
        .unwrap_err()
        .to_string();
    assert!(
        gone.ends_with("cannot read: no such file or directory"),
        "{gone}"
    );

    let from = traces().join("m4-shared3-mq-deadline");
    fs::copy(from.join("meta.txt"), path.join("meta.txt")).unwrap();
    assert!(open().contains("no queue.txt here"));
    fs::copy(from.join("queue.txt"), path.join("queue.txt")).unwrap();
    let capture = CaptureDir::open(path).unwrap();
    assert_eq!(capture.devices.len(), 3);
    let text = capture.ftrace().unwrap_err().to_string();
    assert!(
        text.contains("no ftrace.txt in this capture, needed for the scheduler's own"),
        "{text}"
    );
    let text = capture.queue(None).unwrap_err().to_string();
    assert!(
        text.ends_with("several devices, name one: nullb0, nullb1, nullb2"),
        "{text}"
    );
    let text = capture.queue(Some("sda")).unwrap_err().to_string();
    assert!(
        text.ends_with("no device sda, there are: nullb0, nullb1, nullb2"),
        "{text}"
    );

    fs::write(path.join("sdz.blktrace.0"), "").unwrap();
    assert!(open().contains("sdz.blktrace.0: queue.txt has no section for sdz"));
    fs::remove_file(path.join("sdz.blktrace.0")).unwrap();
    fs::write(path.join("queue.txt.xz"), "").unwrap();
    assert!(open().contains("keep one of them"));
}
