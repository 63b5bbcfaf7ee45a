//! Requests that go around the scheduler: flushes, and the data of flush sequences where the
//! kernel keeps it out.
//!
//! A sequence is: flush before, data, flush after, as far as the device needs them. One flush is
//! under way at a time and serves all that wait. Kernel: block/blk-flush.c (6.1.192, 6.12.117).

use std::collections::BTreeMap;

use blkmq::request::{Op, RequestId};

use super::event::Event;
use super::setup::Setup;

/// Where a sequence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Waits for a flush, before its data or after it.
    Waits { after: bool },
    /// The flush it waits for is with the device.
    Flushing { after: bool },
    /// Its data may go.
    Ready,
    /// Its data is with the device.
    Data,
}

#[derive(Clone, Copy, Debug)]
struct Sequence {
    at: At,
    has_data: bool,
    flush_after: bool,
}

/// All sequences of a device.
#[derive(Clone, Debug)]
pub(super) struct Flushes {
    write_cache: bool,
    fua: bool,
    live: BTreeMap<u32, Sequence>,
    /// Hardware queue of the flush under way.
    under_way: Option<usize>,
}

impl Flushes {
    pub(super) fn new(setup: &Setup) -> Flushes {
        Flushes {
            write_cache: setup.limits.write_cache,
            fua: setup.limits.fua,
            live: BTreeMap::new(),
            under_way: None,
        }
    }

    /// G of a request with PREFLUSH or FUA: its sequence begins.
    pub(super) fn open(&mut self, rq: RequestId, event: &Event) {
        if !event.flags.is_flush() {
            self.live.remove(&rq.0);
            return;
        }
        let before = event.flags.preflush && self.write_cache;
        let at = if before {
            At::Waits { after: false }
        } else {
            At::Ready
        };
        let sequence = Sequence {
            at,
            has_data: event.sectors.0 > 0,
            flush_after: event.flags.fua && self.write_cache && !self.fua,
        };
        self.live.insert(rq.0, sequence);
    }

    /// D of a request that was in no scheduler. The error says what was expected instead.
    pub(super) fn issue(
        &mut self,
        event: &Event,
        fresh: Option<RequestId>,
        hctx: usize,
    ) -> Result<(), String> {
        if event.op == Op::Flush {
            return self.issue_flush(hctx);
        }
        let sequence = fresh.and_then(|rq| self.live.get_mut(&rq.0));
        match sequence {
            Some(sequence) if sequence.at == At::Ready => {
                sequence.at = At::Data;
                Ok(())
            }
            Some(_) => Err("a flush before this data".to_owned()),
            None => Err("an insertion before this".to_owned()),
        }
    }

    fn issue_flush(&mut self, hctx: usize) -> Result<(), String> {
        if self.under_way.is_some() {
            return Err("no second flush while one is under way".to_owned());
        }
        self.under_way = Some(hctx);
        let mut any = false;
        for sequence in self.live.values_mut() {
            if let At::Waits { after } = sequence.at {
                sequence.at = At::Flushing { after };
                any = true;
            }
        }
        any.then_some(())
            .ok_or("no flush: nobody waits for one".to_owned())
    }

    /// C: of the flush under way? Its hardware queue then.
    pub(super) fn complete(&mut self, event: &Event) -> Option<usize> {
        if event.op != Op::Flush {
            return None;
        }
        let hctx = self.under_way.take()?;
        self.live.retain(|_, sequence| match sequence.at {
            At::Flushing { after: false } => {
                sequence.at = At::Ready;
                sequence.has_data
            }
            At::Flushing { after: true } => false,
            _ => true,
        });
        Some(hctx)
    }

    /// C of the data of a sequence.
    pub(super) fn data_ended(&mut self, rq: RequestId) {
        let Some(sequence) = self.live.get_mut(&rq.0) else {
            return;
        };
        if sequence.flush_after {
            sequence.at = At::Waits { after: true };
        } else {
            self.live.remove(&rq.0);
        }
    }
}
