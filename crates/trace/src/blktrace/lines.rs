//! One text as a stream of events: a line at a time, turned into events by the format's parser.
//!
//! Decides which damage is an error, as `stream` does for records. Sorting is `reorder`'s.

use std::collections::VecDeque;

use super::bytes::Bytes;
use super::event::{Device, Event, Location};
use super::formats::{Bad, Parsed, Parser};
use super::stream::Shared;
use super::warnings::Warning;
use crate::{Error, Result};

/// Names of processes that are kept: more are of a damaged file.
const NAMES: usize = 1 << 17;

#[derive(Debug)]
pub(super) struct TextLines {
    bytes: Bytes,
    file: u16,
    parser: Box<dyn Parser>,
    /// Number of the current line, first line 1.
    line: u64,
    good_lines: u64,
    waiting: VecDeque<(Event, Box<[u8]>)>,
    ended: bool,
}

/// Where a parser puts what a line says.
#[derive(Debug)]
pub(crate) struct Out<'a> {
    shared: &'a mut Shared,
    waiting: &'a mut VecDeque<(Event, Box<[u8]>)>,
    location: Location,
    warnings: Vec<(Warning, u64)>,
}

impl Out<'_> {
    /// An event of this line.
    pub(crate) fn event(&mut self, event: Event) {
        self.put(event, &[]);
    }

    /// A message of this line.
    pub(crate) fn message(&mut self, event: Event, text: &str) {
        self.put(event, text.as_bytes());
    }

    fn put(&mut self, event: Event, pdu: &[u8]) {
        let location = self.location;
        self.waiting
            .push_back((Event { location, ..event }, pdu.into()));
    }

    /// The name of a process. The first one stays, as in blktrace.
    pub(crate) fn process(&mut self, pid: u32, name: &str) {
        let names = &mut self.shared.names;
        if names.len() < NAMES && !names.contains_key(&pid) {
            names.insert(pid, name.to_owned());
        }
    }

    /// A number for a device of which the line has only the name.
    pub(crate) fn device(&mut self, field: &'static str, name: &str) -> Parsed<Device> {
        if name.contains(char::is_control) {
            return Err(Bad::new(field, name, "a name without control characters"));
        }
        let number = self.shared.devices.named(name);
        number.ok_or_else(|| Bad::new(field, name, "at most 1024 devices in one file"))
    }

    /// The clock value of a time, nanoseconds since 1970. The first one stays.
    pub(crate) fn wall_clock(&mut self, time: blkmq::time::SimTime, since_1970_ns: u64) {
        self.shared.wall_clock.get_or_insert((time, since_1970_ns));
    }

    /// Something about this line that the reading can live with, so many times.
    pub(crate) fn warn(&mut self, warning: Warning, times: u64) {
        if times > 0 {
            self.warnings.push((warning, times));
        }
    }
}

impl TextLines {
    pub(super) fn new(bytes: Bytes, file: u16, parser: Box<dyn Parser>) -> TextLines {
        TextLines {
            bytes,
            file,
            parser,
            line: 0,
            good_lines: 0,
            waiting: VecDeque::new(),
            ended: false,
        }
    }

    /// Bytes read so far.
    pub(super) fn offset(&self) -> u64 {
        self.bytes.offset()
    }

    pub(super) fn good_lines(&self) -> u64 {
        self.good_lines
    }

    /// The next event of a device that was asked for, in the order of the file, and its text.
    pub(super) fn next(&mut self, shared: &mut Shared) -> Result<Option<(Event, Box<[u8]>)>> {
        loop {
            while let Some((event, pdu)) = self.waiting.pop_front() {
                let wrong = |what| Error::text(self.bytes.path(), self.line, "device", what);
                if shared.devices.wanted(event.device).map_err(wrong)? {
                    return Ok(Some((event, pdu)));
                }
                shared.skipped += 1;
            }
            if self.ended {
                shared.refuse_devices(self.bytes.path())?;
                return Ok(None);
            }
            self.read_line(shared)?;
        }
    }

    fn read_line(&mut self, shared: &mut Shared) -> Result<()> {
        let length = match self.bytes.line() {
            Ok(Some(length)) => length,
            Ok(None) => {
                self.line += 1;
                let what = "longer than 256 KiB, which no line of these formats is".to_owned();
                return self.damaged(
                    &Bad {
                        field: "line",
                        what,
                    },
                    shared,
                );
            }
            Err(error) if shared.options.salvage && self.good_lines > 0 => {
                drop(error);
                return self.salvage(shared);
            }
            Err(error) => {
                self.ended = true;
                return Err(error);
            }
        };
        if length == 0 {
            self.ended = true;
            return Ok(());
        }
        self.line += 1;
        let location = Location::new(self.file, self.bytes.offset());
        let bytes = &self.bytes.have()[..length];
        let whole = bytes.last() == Some(&b'\n');
        // Names of processes can hold any byte.
        let text = String::from_utf8_lossy(bytes);
        let mut out = Out {
            shared: &mut *shared,
            waiting: &mut self.waiting,
            location,
            warnings: Vec::new(),
        };
        let line = text.trim_end_matches(['\n', '\r']);
        let parsed = match line.find('\r') {
            _ if line.trim().is_empty() => Ok(()),
            Some(at) => {
                let want = "a line feed, not a carriage return, at the end of each line";
                Err(Bad::new("line", &line[at..], want))
            }
            None => self.parser.line(line, &mut out),
        };
        let Out { warnings, .. } = out;
        match parsed {
            Ok(()) => {}
            Err(_) if !whole && self.good_lines > 0 => {
                self.ended = true;
                self.waiting.clear();
                return shared.warn(Warning::TruncatedRecord, 1, location);
            }
            Err(bad) => return self.damaged(&bad, shared),
        }
        for (warning, times) in warnings {
            shared.warn(warning, times, location)?;
        }
        self.good_lines += 1;
        self.bytes.skip(length);
        Ok(())
    }

    /// Damage: the end of this file if the caller salvages, else an error.
    #[cold]
    fn damaged(&mut self, bad: &Bad, shared: &mut Shared) -> Result<()> {
        self.waiting.clear();
        if shared.options.salvage && self.good_lines > 0 {
            return self.salvage(shared);
        }
        self.ended = true;
        Err(Error::text(
            self.bytes.path(),
            self.line,
            bad.field,
            bad.what.as_str(),
        ))
    }

    fn salvage(&mut self, shared: &mut Shared) -> Result<()> {
        self.ended = true;
        let location = Location::new(self.file, self.bytes.offset());
        shared.warn(Warning::Salvaged, 1, location)
    }
}
