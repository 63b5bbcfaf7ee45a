//! Writes events as the files that blktrace would have written: one per CPU, with notes and
//! numbers.
//!
//! Files appear under their names only when all of them are complete. Not a recorder: the caller
//! passes the events of each CPU in the order of time.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use blkmq::time::SimTime;

use super::event::{Action, Categories, Device, Event};
use super::record::{self, CGROUP_SIZE, Order};
use crate::{Error, Result};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// 48 bytes; every tool reads it.
    V1,
    /// 64 bytes, with the categories of zone operations.
    V2,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriterOptions {
    /// Record version. Default: v1.
    pub version: Version,
    /// Byte order. Default: little.
    pub order: Order,
    /// Time of the wall clock note and its clock value in nanoseconds since 1970. Default: zero and
    /// zero, so that the bytes depend on nothing but the events.
    pub wall_clock: (SimTime, u64),
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions {
            version: Version::V1,
            order: Order::Little,
            wall_clock: (SimTime::ZERO, 0),
        }
    }
}

#[derive(Debug)]
struct Output {
    partial: PathBuf,
    path: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    sequence: u32,
    last_time: SimTime,
}

impl Output {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let io = |source| Error::io(&self.partial, self.offset, source);
        self.file.write_all(bytes).map_err(io)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// The trace of one device being written. Dropped without [`Writer::finish`] it leaves nothing.
#[derive(Debug)]
pub struct Writer {
    options: WriterOptions,
    device: Device,
    outputs: Vec<Output>,
    /// Names not yet written, in a list sorted by pid.
    names: Vec<(u32, String)>,
    named: BTreeSet<u32>,
    /// Task of the last event: it needs no look-up.
    last_pid: Option<u32>,
    finished: bool,
}

impl Writer {
    /// Starts `<name>.blktrace.0` to `<name>.blktrace.<cpus - 1>` in an existing directory. The
    /// wall clock note is the first record of CPU 0. Panics if `cpus` is zero.
    pub fn create(
        dir: &Path,
        name: &str,
        device: Device,
        cpus: u32,
        options: WriterOptions,
    ) -> Result<Writer> {
        assert!(cpus > 0);
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(Error::input(
                dir,
                format!("device name {name:?}, expected no slash"),
            ));
        }
        let mut writer = Writer {
            options,
            device,
            outputs: Vec::new(),
            names: Vec::new(),
            named: BTreeSet::new(),
            last_pid: None,
            finished: false,
        };
        for cpu in 0..cpus {
            let path = dir.join(format!("{name}.blktrace.{cpu}"));
            let partial = dir.join(format!(".{name}.blktrace.{cpu}.partial"));
            let file = File::create(&partial).map_err(|source| Error::io(&partial, 0, source))?;
            writer.outputs.push(Output {
                partial,
                path,
                file: BufWriter::with_capacity(1 << 16, file),
                offset: 0,
                sequence: 0,
                last_time: SimTime::ZERO,
            });
        }
        let (time, since_1970_ns) = writer.options.wall_clock;
        let seconds = (since_1970_ns / 1_000_000_000) as u32;
        let nanoseconds = (since_1970_ns % 1_000_000_000) as u32;
        let pdu = match writer.options.order {
            Order::Little => [seconds.to_le_bytes(), nanoseconds.to_le_bytes()],
            Order::Big => [seconds.to_be_bytes(), nanoseconds.to_be_bytes()],
        };
        let note = Event {
            categories: Categories::NOTIFY,
            ..Event::new(time, Action::Message)
        };
        writer.put(0, &note, 1, None, pdu.as_flattened())?;
        Ok(writer)
    }

    /// Names a task. The note goes before its first event; the first name given is kept. At most 15
    /// bytes are kept, as in the kernel.
    pub fn name_process(&mut self, pid: u32, name: &str) {
        if self.named.contains(&pid) {
            return;
        }
        if let Err(at) = self.names.binary_search_by_key(&pid, |(pid, _)| *pid) {
            self.names.insert(at, (pid, name.to_string()));
            self.last_pid = None;
        }
    }

    /// Writes an event to the file of `event.cpu`. Its number and its location are ignored, its
    /// device must be the writer's.
    pub fn write(&mut self, event: &Event) -> Result<()> {
        let (pdu, length) = record::pdu_of(event);
        let cgroup = event.categories.any(Categories::CGROUP).then_some(1);
        self.write_with(event, cgroup, &pdu[..length])
    }

    /// Writes an event with a cgroup id and a payload of the caller's: text for a message, the
    /// command of a passthrough request, driver data.
    pub fn write_with(&mut self, event: &Event, cgroup: Option<u64>, pdu: &[u8]) -> Result<()> {
        let cpus = self.outputs.len();
        let Some(output) = self.outputs.get_mut(event.cpu as usize) else {
            let path = &self.outputs[0].path;
            return Err(Error::input(
                path,
                format!("event on CPU {}, of {cpus}", event.cpu),
            ));
        };
        let refuse = |what: String| Err(Error::binary(&output.path, output.offset, what));
        if event.time < output.last_time {
            return refuse(format!(
                "event at {} after {}",
                event.time, output.last_time
            ));
        }
        if event.device != self.device {
            return refuse(format!(
                "device {} in the trace of {}",
                event.device, self.device
            ));
        }
        let length = pdu.len() + cgroup.map_or(0, |_| CGROUP_SIZE);
        if u16::try_from(length).is_err() {
            return refuse(format!("payload of {length} bytes, expected at most 65535"));
        }
        let mut event = *event;
        let code = match event.action {
            Action::Message => {
                event.categories = event.categories.with(Categories::NOTIFY);
                2
            }
            Action::Unknown => event.extra as u16 & !0x100,
            action => action as u16,
        };
        event.categories.0 &= !Categories::CGROUP.0;
        if cgroup.is_some() {
            event.categories = event.categories.with(Categories::CGROUP);
        }
        output.last_time = event.time;
        if event.action != Action::Message {
            output.sequence += 1;
            event.sequence = output.sequence;
        }
        self.note_process(&event)?;
        self.put(event.cpu, &event, code, cgroup, pdu)
    }

    /// Hands everything written so far to the system, so that a full disk is noticed here.
    pub fn flush(&mut self) -> Result<()> {
        for output in &mut self.outputs {
            let io = |source| Error::io(&output.partial, output.offset, source);
            output.file.flush().map_err(io)?;
        }
        Ok(())
    }

    /// Completes all files and gives them their names, replacing older ones.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        for output in &self.outputs {
            std::fs::rename(&output.partial, &output.path)
                .map_err(|source| Error::io(&output.path, output.offset, source))?;
        }
        self.finished = true;
        Ok(())
    }

    /// Writes the note of a task whose first event this is.
    fn note_process(&mut self, event: &Event) -> Result<()> {
        if self.last_pid == Some(event.pid) || self.names.is_empty() {
            return Ok(());
        }
        self.last_pid = Some(event.pid);
        let Ok(at) = self.names.binary_search_by_key(&event.pid, |(pid, _)| *pid) else {
            return Ok(());
        };
        let (pid, name) = self.names.remove(at);
        self.named.insert(pid);
        let mut pdu = [0; 16];
        let mut length = name.len().min(15);
        while !name.is_char_boundary(length) {
            length -= 1;
        }
        pdu[..length].copy_from_slice(&name.as_bytes()[..length]);
        let note = Event {
            categories: Categories::NOTIFY,
            pid,
            ..Event::new(event.time, Action::Message)
        };
        self.put(event.cpu, &note, 0, None, &pdu)
    }

    fn put(
        &mut self,
        cpu: u32,
        event: &Event,
        code: u16,
        cgroup: Option<u64>,
        pdu: &[u8],
    ) -> Result<()> {
        let event = Event {
            device: self.device,
            cpu,
            ..*event
        };
        let output = &mut self.outputs[cpu as usize];
        let length = (pdu.len() + cgroup.map_or(0, |_| CGROUP_SIZE)) as u16;
        let v2 = self.options.version == Version::V2;
        let (header, size) = record::encode(self.options.order, v2, &event, code, length);
        output.put(&header[..size])?;
        if let Some(id) = cgroup {
            let id = match self.options.order {
                Order::Little => id.to_le_bytes(),
                Order::Big => id.to_be_bytes(),
            };
            output.put(&id)?;
        }
        if pdu.is_empty() {
            Ok(())
        } else {
            output.put(pdu)
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            for output in &self.outputs {
                // Nothing can be done if this fails.
                let _ = std::fs::remove_file(&output.partial);
            }
        }
    }
}
