//! Captures of `traces/` with other records.

use std::fs;
use std::path::PathBuf;

use blkmq::time::SimTime;
use tempfile::TempDir;
use trace::blktrace::{self, Action, Reader, Writer, WriterOptions};
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
    let mut texts = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        if let Some(name) = reader.process_name(event.pid) {
            names.push((event.pid, name.to_owned()));
        }
        if event.action == Action::Message {
            texts.push((event.time, event.cpu, reader.pdu().to_owned()));
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
        let of = |&(time, cpu, _): &(SimTime, u32, Vec<u8>)| (time, cpu) == (event.time, event.cpu);
        let is_text = event.action == Action::Message;
        let text = texts.iter().position(of).filter(|_| is_text);
        match text.map(|at| texts.remove(at).2) {
            Some(text) => writer.write_with(event, None, &text).unwrap(),
            None => writer.write(event).unwrap(),
        }
    }
    writer.finish().unwrap();
    copy
}
