//! Requests that go around the scheduler: flushes, and the data of flush sequences where the
//! kernel keeps it out.
//!
//! A sequence is: flush before, data, flush after, as far as the device needs them. Each hardware
//! queue has one flush under way at a time, which serves all of this queue that wait.
//! Kernel: block/blk-flush.c (6.1.192, 6.12.117).

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
    /// Hardware queue of the task that began it.
    hctx: usize,
    has_data: bool,
    flush_after: bool,
}

/// All sequences of a device.
#[derive(Clone, Debug)]
pub(super) struct Flushes {
    write_cache: bool,
    fua: bool,
    live: BTreeMap<u32, Sequence>,
    /// Hardware queues whose flush is on its way to the device: it serves those that waited when
    /// it was sent off, not those that came until its D.
    kicked: Vec<usize>,
    /// Hardware queues whose flush is under way, in the order of their D.
    under_way: Vec<usize>,
}

impl Flushes {
    pub(super) fn new(setup: &Setup) -> Flushes {
        Flushes {
            write_cache: setup.limits.write_cache,
            fua: setup.limits.fua,
            live: BTreeMap::new(),
            kicked: Vec::new(),
            under_way: Vec::new(),
        }
    }

    /// G of a request with PREFLUSH or FUA: its sequence begins.
    pub(super) fn open(&mut self, rq: RequestId, event: &Event, hctx: usize) {
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
            hctx,
            has_data: event.sectors.0 > 0,
            flush_after: event.flags.fua && self.write_cache && !self.fua,
        };
        self.live.insert(rq.0, sequence);
        self.kick(hctx);
    }

    /// blk_kick_flush(): sends a flush off unless one is under way, or data that may need one, too.
    fn kick(&mut self, hctx: usize) {
        let data = |of: &Sequence| of.hctx == hctx && of.at == At::Data;
        if !self.under_way.contains(&hctx) && !self.live.values().any(data) {
            self.send_off(hctx);
        }
    }

    fn send_off(&mut self, hctx: usize) {
        if self.kicked.contains(&hctx) {
            return;
        }
        for sequence in self.live.values_mut().filter(|of| of.hctx == hctx) {
            if let At::Waits { after } = sequence.at {
                sequence.at = At::Flushing { after };
                if !self.kicked.contains(&hctx) {
                    self.kicked.push(hctx);
                }
            }
        }
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

    /// The flush of this CPU's hardware queue, or if that has none to send, of another one: a
    /// worker can run it elsewhere.
    fn issue_flush(&mut self, own: usize) -> Result<(), String> {
        let waits = |of: &Sequence| matches!(of.at, At::Waits { .. });
        // Data in flight holds a flush back for five seconds at most.
        if self.kicked.is_empty() {
            let ready = |of: &&Sequence| waits(of) && !self.under_way.contains(&of.hctx);
            if let Some(hctx) = self.live.values().find(ready).map(|of| of.hctx) {
                self.send_off(hctx);
            }
        }
        let at = self
            .kicked
            .iter()
            .position(|&hctx| hctx == own)
            .unwrap_or(0);
        if at < self.kicked.len() {
            self.under_way.push(self.kicked.remove(at));
            return Ok(());
        }
        // It is with the device all the same.
        self.under_way.push(own);
        Err(if self.live.values().any(waits) {
            "no second flush while one is under way".to_owned()
        } else {
            "no flush: nobody waits for one".to_owned()
        })
    }

    /// C: of a flush under way? Its hardware queue then: that of this CPU, else the oldest.
    pub(super) fn complete(&mut self, event: &Event, own: usize) -> Option<usize> {
        if event.op != Op::Flush || self.under_way.is_empty() {
            return None;
        }
        let at = self.under_way.iter().position(|&hctx| hctx == own);
        let hctx = self.under_way.remove(at.unwrap_or(0));
        self.live.retain(|_, sequence| match sequence.at {
            At::Flushing { .. } if sequence.hctx != hctx => true,
            At::Flushing { after: false } => {
                sequence.at = At::Ready;
                sequence.has_data
            }
            At::Flushing { after: true } => false,
            _ => true,
        });
        self.kick(hctx);
        Some(hctx)
    }

    /// C of the data of a sequence.
    pub(super) fn data_ended(&mut self, rq: RequestId) {
        let Some(sequence) = self.live.get_mut(&rq.0) else {
            return;
        };
        let hctx = sequence.hctx;
        if sequence.flush_after {
            sequence.at = At::Waits { after: true };
        } else {
            self.live.remove(&rq.0);
        }
        self.kick(hctx);
    }
}
