//! Times between the events of a request (`-t`), by its first sector.
//!
//! As blkparse 1.2.0 has it: I since G, D since I, C since D. Where it prints what happens to be in
//! memory, because one of the two events is missing, there is no time here. Read first: log_track_*
//! in blkparse.c.

use std::collections::BTreeMap;

use crate::blktrace::{Action, Categories, Event};

/// A request from G or I to C. Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Request {
    pid: u32,
    allocated: Option<u64>,
    inserted: Option<u64>,
    issued: Option<u64>,
}

/// The kind of a time, as the summary of a program lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    Allocation,
    Dispatch,
    Completion,
}

/// A time that an event ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elapsed {
    pub(super) nanoseconds: u64,
    pub(super) wait: Wait,
    /// Task that the request belongs to.
    pub(super) pid: u32,
}

/// Requests of one device.
#[derive(Default, Debug)]
pub(super) struct Track {
    requests: BTreeMap<u64, Request>,
}

impl Track {
    /// Takes an event. `unnamed` is called for a task that must get a name.
    pub(super) fn take(
        &mut self,
        event: &Event,
        time: u64,
        unnamed: impl FnOnce(u32),
    ) -> Option<Elapsed> {
        let of = |request: &Request, since: Option<u64>, wait| {
            Some(Elapsed {
                nanoseconds: time.wrapping_sub(since?),
                wait,
                pid: request.pid,
            })
        };
        match event.action {
            Action::GetRequest => {
                self.start(event, unnamed).allocated = Some(time);
                None
            }
            Action::Insert => {
                let request = self.start(event, unnamed);
                request.inserted = Some(time);
                of(request, request.allocated, Wait::Allocation)
            }
            Action::FrontMerge => {
                if let Some(request) = self.requests.remove(&event.end()) {
                    // An equal start is an alias, which blkparse does not follow either.
                    self.requests.entry(event.sector).or_insert(request);
                }
                None
            }
            Action::Issue if event.categories.any(Categories::FS) => {
                let request = self.requests.get_mut(&event.sector)?;
                request.issued = Some(time);
                of(request, request.inserted, Wait::Dispatch)
            }
            Action::Complete => {
                let request = self.requests.remove(&event.sector)?;
                of(&request, request.issued, Wait::Completion)
            }
            _ => None,
        }
    }

    fn start(&mut self, event: &Event, unnamed: impl FnOnce(u32)) -> &mut Request {
        self.requests.entry(event.sector).or_insert_with(|| {
            unnamed(event.pid);
            Request {
                pid: event.pid,
                allocated: None,
                inserted: None,
                issued: None,
            }
        })
    }
}
