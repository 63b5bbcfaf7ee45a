//! Bios that a process gathered in a plug, from its P, U and UT events.
//!
//! P comes after the bio that opens the plug, and the kernel flushes a full plug by itself: that
//! does not end the plug. v6.1 traces no U when it issues a plug directly: then the process's own D
//! shows the flush. Kernel: blk_add_rq_to_plug(), blk_mq_flush_plug_list() (v6.1, v6.12).

use std::collections::BTreeMap;

use blkmq::time::{Duration, SimTime};
use trace::blktrace::{Action, Categories, Event};

/// Names a bio of the trace: its Q, its first sector, its task.
pub(super) type BioKey = (SimTime, u64, u32);

/// A step of a process as traced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RawStep {
    /// Q, and how long before it the process was last seen running.
    Submit(BioKey, Duration),
    /// The plug starts before the next bio.
    Plug(SimTime),
    /// It is flushed; how long before that the process was last seen running.
    Unplug(SimTime, Duration),
}

#[derive(Debug, Default)]
struct Process {
    steps: Vec<RawStep>,
    /// Index of its last bio.
    last: Option<usize>,
    /// The last bio waits for a request: D's of that time are not a flush.
    waits: bool,
    open: bool,
    /// Its last event, without interrupts on its CPU.
    seen: SimTime,
    /// The last step is a flush; a P shows that the plug continued.
    flushed: bool,
}

/// Steps of all processes of one device.
#[derive(Debug, Default)]
pub(super) struct Plugs {
    processes: BTreeMap<u32, Process>,
    /// Task ids in the order of their first bio.
    order: Vec<u32>,
}

impl Plugs {
    /// Takes one event, in the order of the merged trace.
    pub(super) fn add(&mut self, event: &Event) {
        if event.action == Action::Queue {
            self.queue(event);
            return;
        }
        let Some(process) = self.processes.get_mut(&event.pid) else {
            return;
        };
        let of_request = event.categories.any(Categories::FS);
        match event.action {
            Action::GetRequest | Action::BackMerge | Action::FrontMerge => process.waits = false,
            Action::Complete if !of_request && event.error != 0 => process.waits = false,
            Action::Plug => process.plug(),
            Action::Unplug | Action::UnplugTimer => process.unplug(event.time),
            Action::Issue if of_request && !process.waits => process.unplug(event.time),
            _ => {}
        }
        if event.action != Action::Complete {
            process.seen = event.time;
        }
    }

    fn queue(&mut self, event: &Event) {
        let known = self.processes.len();
        let process = self.processes.entry(event.pid).or_default();
        process.last = Some(process.steps.len());
        let busy = event.time.since(process.seen);
        process
            .steps
            .push(RawStep::Submit((event.time, event.sector, event.pid), busy));
        process.seen = event.time;
        process.waits = true;
        process.flushed = false;
        if self.processes.len() > known {
            self.order.push(event.pid);
        }
    }

    /// Steps of each process. A plug without a flush in the trace ends at `end`.
    pub(super) fn finish(mut self, end: SimTime) -> Vec<(u32, Vec<RawStep>)> {
        let take = |pid: &u32| {
            let process = self
                .processes
                .get_mut(pid)
                .expect("every pid in order has a process");
            process.unplug(end);
            (*pid, std::mem::take(&mut process.steps))
        };
        self.order.iter().map(take).collect()
    }
}

impl Process {
    fn plug(&mut self) {
        if self.flushed {
            // The kernel cut a full plug, or flushed it while the task slept.
            self.steps.pop();
            self.flushed = false;
            self.open = true;
        } else if let (false, Some(last)) = (self.open, self.last) {
            let RawStep::Submit((at, ..), _) = self.steps[last] else {
                unreachable!("last is the index of a bio")
            };
            self.steps.insert(last, RawStep::Plug(at));
            self.last = Some(last + 1);
            self.open = true;
        }
    }

    fn unplug(&mut self, at: SimTime) {
        if self.open {
            self.steps.push(RawStep::Unplug(at, at.since(self.seen)));
            self.open = false;
            self.flushed = true;
        }
    }
}
