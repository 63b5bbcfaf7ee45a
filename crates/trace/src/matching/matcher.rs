//! Follows bios through the block layer by their events.
//!
//! An event names a range, not a bio, so the rules here decide which of several candidates it
//! means: the exact range before a containing one, the task's own before others', of issued ones
//! the oldest. Two that fit equally well are counted as ambiguous. btt has other rules: see `btt`.
//! Read first: trace_block_*() in block/blk-core.c, blk-mq.c and blk-merge.c (v6.12).

use std::collections::BTreeMap;

use blkmq::time::SimTime;

use super::io::{Io, Join, Origin};
use super::requests::Requests;
use super::table::NONE;
use crate::blktrace::{Action, Categories, Device, Event, Warning, Warnings};

/// Empty flushes kept for each device; a task waits for its flush before it sends more.
const FLUSHES: usize = 4096;

/// Matches the events of a merged trace, any number of devices.
#[derive(Debug, Default)]
pub struct Matcher {
    devices: Vec<Requests>,
    numbers: BTreeMap<Device, usize>,
    /// Number of the device of the last event.
    current: usize,
    done: Vec<Io>,
    warnings: Warnings,
    in_flight: usize,
    in_flight_max: usize,
    passthrough: u64,
}

impl Matcher {
    pub fn new() -> Matcher {
        Matcher::default()
    }

    /// Takes one event, in the order of the merged trace; returns the bios it completes, if any.
    /// Passthrough events and those that concern no bio are ignored.
    #[inline]
    pub fn add(&mut self, event: &Event) -> &[Io] {
        self.done.clear();
        let unmatched = Categories::PC.with(Categories::NOTIFY);
        if event.bytes == 0 || event.categories.any(unmatched) {
            self.add_empty(event);
            return &self.done;
        }
        let device = self.device(event);
        let before = device.bios;
        match event.action {
            // Bios and requests that there are, and nothing to be counted.
            Action::GetRequest => {
                device.get_request(event);
                return &self.done;
            }
            Action::Insert => {
                device.insert(event);
                return &self.done;
            }
            Action::Complete => return self.complete(event),
            Action::Queue => device.queue(event),
            Action::Issue => device.issue(event),
            Action::BackMerge => device.merge(event, Join::Back),
            Action::FrontMerge => device.merge(event, Join::Front),
            Action::Requeue => device.requeue(event),
            Action::Split => device.split_at(event),
            Action::Remap => device.remap(event),
            _ => {}
        }
        let (entered, kept) = (device.bios - before, device.table.len());
        self.in_flight += entered;
        self.in_flight_max = self.in_flight_max.max(self.in_flight);
        if kept > super::LIMIT {
            self.give_up();
        }
        &self.done
    }

    /// Ends the matching: returns the bios that did not complete, by device and in order of their
    /// first event, and counts them. A second call returns nothing.
    pub fn finish(&mut self) -> Vec<Io> {
        self.done.clear();
        for at in 0..self.devices.len() {
            self.abandon(at);
        }
        std::mem::take(&mut self.done)
    }

    /// The warnings counted so far: bios without completion (after `finish`), completions without
    /// bio, ambiguous matches.
    pub fn warnings(&self) -> Warnings {
        let mut warnings = self.warnings.clone();
        for device in &self.devices {
            if let Some(first) = device.ambiguous_first {
                warnings.add(Warning::AmbiguousMatch, device.ambiguous, first);
            }
        }
        warnings
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The most bios in flight at once.
    pub fn in_flight_max(&self) -> usize {
        self.in_flight_max
    }

    /// Passthrough events that were ignored.
    pub fn passthrough(&self) -> u64 {
        self.passthrough
    }

    /// First event of the oldest unfinished bio: no bio that completes later was seen earlier.
    /// With it a consumer can bring finished bios into the order of submission.
    pub fn oldest(&self) -> Option<SimTime> {
        let oldest = |device: &Requests| {
            let id = device.table.oldest();
            let with_data = (id != NONE).then(|| device.table.get(id).seen);
            let flush = device.flushes.waiting.first().map(|live| live.seen);
            [with_data, flush].into_iter().flatten().min()
        };
        self.devices.iter().filter_map(oldest).min()
    }

    #[inline]
    fn device(&mut self, event: &Event) -> &mut Requests {
        if self
            .devices
            .get(self.current)
            .is_none_or(|current| current.device != event.device)
        {
            self.select(event.device);
        }
        &mut self.devices[self.current]
    }

    #[cold]
    fn select(&mut self, device: Device) {
        let next = self.devices.len();
        self.current = *self.numbers.entry(device).or_insert(next);
        if self.current == next {
            self.devices.push(Requests::new(device));
        }
    }

    #[inline]
    fn complete(&mut self, event: &Event) -> &[Io] {
        let device = &mut self.devices[self.current];
        let before = device.bios;
        let known = device.complete(event, &mut self.done);
        self.in_flight -= before - device.bios;
        if !known || self.done.iter().any(|io| io.origin == Origin::Issue) {
            self.warnings
                .add(Warning::CompleteWithoutQueue, 1, event.location);
        }
        &self.done
    }

    /// Drops the unfinished bios of the current device: most of them will never complete, and the
    /// others cannot be distinguished from them.
    #[cold]
    fn give_up(&mut self) {
        let Requests { table, flushes, .. } = &self.devices[self.current];
        let oldest = match table.oldest() {
            NONE => flushes.waiting.first().map(|live| live.location),
            id => Some(table.get(id).location),
        };
        if let Some(location) = oldest {
            self.warnings.add(Warning::TooManyUnfinished, 1, location);
        }
        self.abandon(self.current);
    }

    /// Events without data: empty flushes, and the second completion that ends a request. Nothing
    /// is done for passthrough and notes.
    #[cold]
    fn add_empty(&mut self, event: &Event) {
        match event.action {
            _ if event.categories.any(Categories::PC) => self.passthrough += 1,
            _ if event.categories.any(Categories::NOTIFY) => {}
            Action::Queue => {
                let flushes = &mut self.device(event).flushes;
                flushes.queue(event);
                let kept = flushes.waiting.len();
                self.in_flight += 1;
                self.in_flight_max = self.in_flight_max.max(self.in_flight);
                if kept > FLUSHES {
                    self.give_up();
                }
            }
            Action::GetRequest => self.device(event).flushes.get_request(event),
            Action::Insert => self.device(event).flushes.insert(event),
            Action::Issue => self.device(event).flushes.issue(event),
            Action::Complete => {
                let device = event.device;
                if let Some(live) = self.device(event).flushes.complete(event) {
                    self.done.push(live.io(device, Some(event.time)));
                    self.in_flight -= 1;
                }
            }
            _ => {}
        }
    }

    /// Drops all bios of a device.
    fn abandon(&mut self, at: usize) {
        let from = self.done.len();
        self.devices[at].abandon(&mut self.done);
        self.in_flight -= self.done.len() - from;
        for io in &self.done[from..] {
            self.warnings
                .add(Warning::QueueWithoutComplete, 1, io.location);
        }
    }
}

#[cfg(test)]
mod tests;
