//! Captures of `traces/` with other records.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;
use trace::blktrace::{self, Reader, Writer, WriterOptions};
use trace::capture::CaptureDir;

use crate::common::traces;

/// A copy of a capture with the blktrace of a device changed, by default that of the first.
pub(crate) fn with_records(
    name: &str,
    device: Option<&str>,
    change: impl Fn(&mut Vec<blktrace::Event>),
) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let source = CaptureDir::open(&traces(name)).unwrap();
    let mut devices = source.devices.iter();
    let is = |name: &str| device.is_none_or(|device| device == name);
    let device = devices.find(|traced| is(&traced.name)).unwrap();
    for (bare, path) in &source.files {
        if !bare.starts_with(&format!("{}.blktrace.", device.name)) {
            fs::copy(path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let files: Vec<&PathBuf> = device.blktrace.values().collect();
    let mut reader = Reader::open(&files, blktrace::Options::default()).unwrap();
    let mut events = Vec::new();
    let mut names = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        if let Some(name) = reader.process_name(event.pid) {
            names.push((event.pid, name.to_owned()));
        }
        events.push(event);
    }
    change(&mut events);
    let number = events[0].device;
    let cpus = u32::from(source.meta.cpus);
    let options = WriterOptions::default();
    let mut writer = Writer::create(copy.path(), &device.name, number, cpus, options).unwrap();
    for (pid, name) in names {
        writer.name_process(pid, &name);
    }
    for event in &events {
        writer.write(event).unwrap();
    }
    writer.finish().unwrap();
    copy
}
