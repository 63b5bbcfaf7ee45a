//! Messages of a scheduler with one lock in blktrace, between the records that the block layer
//! writes in the same section.
//!
//! Kernel: blk_add_trace_msg() and its like in schedulers, __blk_trace_note_message() in
//! kernel/trace/blktrace.c (6.1.192, 6.12.117).

use super::{Locked, Scheduler};
use crate::elevator::scheduler::TRACED;
use crate::env::{Cpu, TraceAction, TraceMsg};
use crate::queue::RequestQueue;
use crate::request::QueueId;
use crate::step::{Traced, probe, trace_message, trace_rq, trace_swallowed};

/// Unrecorded messages of one call: the text of the CPU from there on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Log {
    queue: QueueId,
    from: usize,
}

impl<P: Scheduler + 'static> Locked<P> {
    /// Takes the policy's messages, under its lock.
    #[inline]
    pub(super) fn messages(&self, q: &RequestQueue, cpu: &mut Cpu) -> Log {
        let from = cpu.messages.len();
        if self.info.logs && q.settings.log {
            self.take_log(cpu);
        }
        Log { queue: q.id, from }
    }

    #[cold]
    fn take_log(&self, cpu: &mut Cpu) {
        let mut messages = core::mem::take(&mut cpu.messages);
        self.policy.held(cpu).take_log(&mut |line| {
            // An unrecorded message is dropped.
            messages.push_str(line);
            messages.push('\n');
        });
        if !cpu.tracing {
            messages.clear();
        }
        cpu.messages = messages;
    }

    /// Records all messages of the policy.
    #[inline]
    pub(super) fn emit_log(&self, q: &RequestQueue, cpu: &mut Cpu) {
        self.messages(q, cpu).rest(cpu);
    }
}

impl<P: Scheduler + 'static> Locked<P> {
    /// Records the policy's counters, if they are enabled. The section's charge was taken before,
    /// so that a run with counters costs the same as one without.
    #[inline]
    pub(super) fn read(&self, q: &RequestQueue, cpu: &mut Cpu) {
        if cpu.counting {
            self.read_all(q, cpu);
        }
    }

    #[cold]
    fn read_all(&self, q: &RequestQueue, cpu: &mut Cpu) {
        let mut readings = core::mem::take(&mut cpu.readings);
        let mut policy = self.policy.held(cpu);
        policy.take_readings(&mut |reading| readings.push(reading));
        // The readings cost the modelled CPU nothing.
        let _looks = policy.take_charge();
        drop(policy);
        for reading in readings.drain(..) {
            probe::reading(q, reading, cpu);
        }
        cpu.readings = readings;
    }
}

impl Log {
    /// Records a message that is written without the lock.
    pub(super) fn write(q: &RequestQueue, message: Option<String>, cpu: &mut Cpu) {
        let from = cpu.messages.len();
        if let Some(message) = message {
            cpu.messages.push_str(&message);
            cpu.messages.push('\n');
        }
        Log { queue: q.id, from }.rest(cpu);
    }

    /// Records messages up to the next mark, then the record that belongs at the mark.
    #[inline]
    pub(crate) fn trace(&mut self, action: TraceAction, traced: Option<Traced>, cpu: &mut Cpu) {
        while self.message(cpu) {}
        trace_rq(cpu, self.queue, action, traced);
    }

    /// The same for an absorbed request.
    #[inline]
    pub(crate) fn swallow(&mut self, traced: Option<Traced>, cpu: &mut Cpu) {
        while self.message(cpu) {}
        trace_swallowed(cpu, self.queue, traced);
    }

    /// Records the other messages.
    #[inline]
    pub(crate) fn rest(mut self, cpu: &mut Cpu) {
        while self.from < cpu.messages.len() {
            self.message(cpu);
        }
    }

    /// Records one message. False if it was a mark, or there is none.
    #[inline]
    fn message(&mut self, cpu: &mut Cpu) -> bool {
        self.from < cpu.messages.len() && self.record(cpu)
    }

    #[cold]
    fn record(&mut self, cpu: &mut Cpu) -> bool {
        let line = cpu.messages[self.from..].lines().next();
        let line = line.expect("there is text left");
        let (bytes, mark) = (line.len(), line == TRACED);
        let msg = TraceMsg::at(self.from, bytes);
        self.from += bytes + 1;
        if !mark {
            trace_message(cpu, self.queue, msg);
        }
        !mark
    }
}
