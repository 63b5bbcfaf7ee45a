//! A window that sorts a dump of several CPUs, or the events of a text, by time.
//!
//! `blktrace -o -` writes one CPU's buffer after the other, so times jump back by a buffer's worth.
//! blkparse waits for each CPU's next number; the reader keeps a fixed number of events instead,
//! which bounds memory. An event that is too late for the window counts as time going backwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::event::{Device, Event};
use super::lines::TextLines;
use super::stream::{Shared, Stream};
use crate::Result;

/// What is sorted.
#[derive(Debug)]
pub(super) enum Source {
    Records(Stream),
    Lines(TextLines),
}

/// A waiting event with its data.
#[derive(Debug)]
pub(super) struct Waiting {
    key: (u64, Device, u32, u64),
    pub(super) event: Event,
    pub(super) pdu: Box<[u8]>,
    pub(super) cgroup: Option<u64>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.key == other.key
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A sorted dump or text.
#[derive(Debug)]
pub(super) struct Reorder {
    pub(super) source: Source,
    window: usize,
    waiting: BinaryHeap<Reverse<Waiting>>,
    arrived: u64,
    last_time: u64,
    current: Option<Waiting>,
}

impl Reorder {
    /// Sorts within `window` events, at least one.
    pub(super) fn new(source: Source, window: usize) -> Reorder {
        let window = window.max(1);
        let waiting = BinaryHeap::new();
        Reorder {
            source,
            window,
            waiting,
            arrived: 0,
            last_time: 0,
            current: None,
        }
    }

    /// The event returned last, with its data.
    pub(super) fn current(&self) -> Option<&Waiting> {
        self.current.as_ref()
    }

    /// Moves to the next event in order of (time, device, sequence, arrival), as blkparse sorts a
    /// pipe; those of a text in order of (time, arrival).
    // Out of the way of files of one CPU, which are read much faster.
    #[inline(never)]
    pub(super) fn next(&mut self, shared: &mut Shared) -> Result<bool> {
        while self.waiting.len() < self.window {
            self.arrived += 1;
            let waiting = match &mut self.source {
                Source::Records(stream) => {
                    if !stream.next(shared)? {
                        break;
                    }
                    let event = *stream.event();
                    Waiting {
                        key: (event.time.0, event.device, event.sequence, self.arrived),
                        event,
                        pdu: stream.pdu().into(),
                        cgroup: stream.cgroup(),
                    }
                }
                Source::Lines(lines) => {
                    let Some((event, pdu)) = lines.next(shared)? else {
                        break;
                    };
                    Waiting {
                        key: (event.time.0, Device::default(), 0, self.arrived),
                        event,
                        pdu,
                        cgroup: None,
                    }
                }
            };
            self.waiting.push(Reverse(waiting));
        }
        self.current = self.waiting.pop().map(|Reverse(waiting)| waiting);
        let Some(Waiting { event, .. }) = &self.current else {
            return Ok(false);
        };
        shared.check_time(self.last_time, event)?;
        self.last_time = event.time.0;
        Ok(true)
    }

    /// Bytes decoded so far.
    pub(super) fn offset(&self) -> u64 {
        match &self.source {
            Source::Records(stream) => stream.offset(),
            Source::Lines(lines) => lines.offset(),
        }
    }

    /// Records or lines that were good.
    pub(super) fn good_records(&self) -> u64 {
        match &self.source {
            Source::Records(stream) => stream.good_records(),
            Source::Lines(lines) => lines.good_lines(),
        }
    }
}
