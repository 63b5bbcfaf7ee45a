//! The tracks of a trace: which slices, counters and arrows it has, and their arguments.
//!
//! Process 1 has a thread for each CPU, process 2 one for each lock, process 3 the I/Os as nested
//! asynchronous slices, process 4 counters of schedulers, process 5 counters of requests. Arrows
//! lead from Q over D to C.

use std::collections::{BTreeMap, BTreeSet};

use blkmq::env::TracedRequest;
use blkmq::path::Label;
use blkmq::request::{CpuId, Op, QueueId};
use blkmq::time::SimTime;
use sim::machine::Simulator;
use sim::recorder::Timeline;
use trace::blktrace::Action;

use super::Noted;
use super::depths::{Depths, Stage};
use super::json::{Args, Arrow, Edge, Events, Place};
use super::lives::{Life, Lives, Phase};
use super::locks::{self, Hold, Lock};
use super::slices::{self, Contexts, Slice, What};
use crate::trace_out;

/// Marks the trace as simulated: in the metadata, and next to the CPUs.
const ORIGIN: &str = concat!("simulated by blksim ", env!("CARGO_PKG_VERSION"));

const CPUS: u32 = 1;
const LOCKS: u32 = 2;
const IOS: u32 = 3;
const SCHEDULER: u32 = 4;
const REQUESTS: u32 = 5;

/// Names of the parts of an I/O's life, by the phase that ends each.
const PARTS: [&str; 4] = [
    "waits for a request",
    "in the plug",
    "scheduled",
    "with the device",
];

/// What was recorded.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub(super) simulator: &'a Simulator,
    pub(super) timeline: &'a Timeline,
    pub(super) lives: &'a Lives,
    pub(super) points: &'a [Noted],
    pub(super) depths: &'a Depths,
    /// Values of schedulers.
    pub(super) counters: &'a [(SimTime, (QueueId, String), f64)],
}

pub(super) fn trace(of: Recorded<'_>) -> String {
    let mut out = Events::default();
    out.process(CPUS, &format!("CPUs, {ORIGIN}"));
    out.process(LOCKS, "locks");
    out.process(IOS, "I/Os");
    let slices = slices::nested(of.timeline.spans(), of.points);
    let tracks = Tracks {
        of,
        contexts: Contexts::of(&slices),
        locks: locks::of(of.timeline),
        titles: of.simulator.lock_titles(),
    };
    tracks.cpus(&slices, &mut out);
    tracks.locks(&mut out);
    for (id, life) in of.lives.all.iter().enumerate() {
        tracks.io(id, life, &mut out);
        tracks.arrows(id, life, &mut out);
    }
    tracks.values(&mut out);
    tracks.requests(&mut out);
    out.finish(ORIGIN)
}

struct Tracks<'a> {
    of: Recorded<'a>,
    contexts: Contexts,
    locks: BTreeMap<u32, Lock>,
    /// Names of the locks, by dense number.
    titles: Vec<String>,
}

impl Tracks<'_> {
    fn cpus(&self, slices: &[Slice], out: &mut Events) {
        let cpus: BTreeSet<CpuId> = slices.iter().map(|slice| slice.cpu).collect();
        for cpu in cpus {
            out.thread(on_cpu(cpu), &format!("CPU {}", cpu.0));
        }
        for slice in slices {
            let (name, args) = match slice.what {
                What::Task(_) | What::Softirq | What::Irq => {
                    (self.context(Some(slice.what)), Args::default())
                }
                What::Wait(slot, label) => {
                    let name = format!("waits for {}", self.titles[slot as usize]);
                    (name, self.wait(slice, slot, label))
                }
                What::Point(index) => self.point(&self.of.points[index]),
            };
            out.slice(&name, on_cpu(slice.cpu), (slice.from, slice.to), &args);
        }
    }

    /// The lock, the label that needs it, and the context that holds it when the wait begins, or
    /// that gets it then from the one before.
    fn wait(&self, slice: &Slice, slot: u32, label: Label) -> Args {
        let lock = &self.locks[&slot];
        let args = Args::default()
            .text("lock", &self.titles[slot as usize])
            .text("step", label.name())
            .number("waiters_before", lock.waiters(slice.from));
        let context = |hold: &Hold| self.context(self.contexts.at(hold.cpu, hold.from));
        match (lock.holder(slice.from), lock.heir(slice.from)) {
            (Some(hold), _) => args
                .text("holder", &context(hold))
                .number("holder_cpu", hold.cpu.0)
                .texts(
                    "holder_step",
                    lock.wait_before(hold).map(|wait| wait.label.name()),
                ),
            (None, Some(hold)) => args
                .text("handed_to", &context(hold))
                .number("handed_to_cpu", hold.cpu.0),
            (None, None) => args,
        }
    }

    /// blktrace's letters, and what they are about.
    fn point(
        &self,
        Noted {
            time, io, point, ..
        }: &Noted,
    ) -> (String, Args) {
        let event = trace_out::event(*time, point).expect("only events of blktrace are kept");
        let letters = event.action.letters();
        let disk = self.of.simulator.disk_name(point.queue);
        let args = Args::default().texts("device", disk.as_deref());
        match event.action {
            Action::Plug => return (letters.to_owned(), args),
            Action::Unplug | Action::UnplugTimer => {
                return (letters.to_owned(), args.number("requests", point.payload));
            }
            _ => {}
        }
        let op = operation(point.op);
        let from = (event.action == Action::Remap).then_some(point.payload);
        let submitter = io.map(|io| self.submitter(&self.of.lives.all[io]));
        let args = held(
            address(args, op, point.sector.0, u64::from(event.bytes)),
            point.request,
        )
        .numbers("from_sector", from)
        .numbers("errno", (event.error != 0).then_some(event.error))
        .texts("process", submitter.as_deref())
        .numbers("io", io.map(|io| io as u64));
        (format!("{letters} {op}"), args)
    }

    fn locks(&self, out: &mut Events) {
        for (&slot, lock) in &self.locks {
            let (title, place) = (&self.titles[slot as usize], lock_track(slot));
            out.thread(place, title);
            for hold in &lock.holds {
                let context = self.context(self.contexts.at(hold.cpu, hold.from));
                let wait = lock.wait_before(hold);
                let args = Args::default()
                    .number("cpu", hold.cpu.0)
                    .texts("step", wait.map(|wait| wait.label.name()))
                    .numbers("waited_ns", wait.map(|wait| wait.length.0))
                    .number("waiters", lock.waiters(hold.from));
                out.slice(&context, place, (hold.from, hold.to), &args);
            }
            for (at, waiters) in lock.waiters_over_time() {
                out.counter(LOCKS, &format!("{title} waiters"), at, waiters);
            }
        }
    }

    /// Beginning and end of each part of a life. A part that is not over at the end of the run or
    /// of the window lasts to there.
    fn io(&self, id: usize, life: &Life, out: &mut Events) {
        let reached = life.phases.iter().flatten().map(|(at, _)| *at).max();
        let over = life.phases[Phase::Completed as usize].map(|(at, _)| at);
        let last = over.unwrap_or(self.end().max(reached.unwrap_or(life.began.0)));
        let disk = self.of.simulator.disk_name(life.queue);
        let op = operation(life.op);
        let name = match &disk {
            Some(disk) => format!("{disk} {op}"),
            None => op.to_owned(),
        };
        let args = Args::default().texts("device", disk.as_deref());
        let args = held(address(args, op, life.sector, life.bytes), life.request)
            .text("process", &self.submitter(life))
            .text("merged", if life.merged { "yes" } else { "no" });
        let place = (IOS, id);
        let none = Args::default();
        out.asynchronous(Edge::Begin, &name, place, life.began.0, &args);
        let mut part = |name: &str, from, to| {
            out.asynchronous(Edge::Begin, name, place, from, &none);
            out.asynchronous(Edge::End, name, place, to, &none);
        };
        let mut from = life.began.0;
        let mut index = 0;
        for phase in 0..PARTS.len() {
            if let Some((at, _)) = life.phases[phase] {
                // A request that skips a place (no insertion) spends that time in the one before.
                let at = at.max(from);
                part(PARTS[index], from, at);
                from = at;
                index = (phase + 1).min(PARTS.len() - 1);
            }
        }
        if over.is_none() && from < last {
            part(PARTS[index], from, last);
        }
        out.asynchronous(Edge::End, &name, place, last.max(from), &none);
    }

    /// From submission to issue to completion, between the slices of their trace points.
    fn arrows(&self, id: usize, life: &Life, out: &mut Events) {
        let places = [
            Some(life.began),
            life.phases[Phase::Issued as usize],
            life.phases[Phase::Completed as usize],
        ];
        let places = places.into_iter().flatten();
        let places: Vec<(SimTime, CpuId)> = places.filter(|(at, _)| *at < self.end()).collect();
        for (index, &(at, cpu)) in places.iter().enumerate() {
            let part = match index {
                _ if places.len() == 1 => return,
                0 => Arrow::Start,
                _ if index + 1 == places.len() => Arrow::Finish,
                _ => Arrow::Step,
            };
            out.arrow(part, id, on_cpu(cpu), at);
        }
    }

    fn values(&self, out: &mut Events) {
        if !self.of.counters.is_empty() {
            out.process(SCHEDULER, "scheduler");
        }
        for (at, (queue, name), value) in self.of.counters {
            out.counter(SCHEDULER, &self.on_disk(*queue, name), *at, *value);
        }
    }

    fn requests(&self, out: &mut Events) {
        let (from, _) = self.of.timeline.window().unwrap_or_default();
        let counters = self.of.depths.counters(from);
        if !counters.is_empty() {
            out.process(REQUESTS, "requests");
        }
        for ((queue, hctx, stage), values) in counters {
            let name = match stage {
                Stage::Queued => "queued",
                Stage::InFlight => "in flight",
            };
            let name = match hctx {
                None => name.to_owned(),
                Some(hctx) => format!("hctx {} {name}", hctx.0),
            };
            let name = self.on_disk(queue, &name);
            for (at, value) in values {
                out.counter(REQUESTS, &name, at, value);
            }
        }
    }

    fn on_disk(&self, queue: QueueId, name: &str) -> String {
        match self.of.simulator.disk_name(queue) {
            Some(disk) => format!("{disk} {name}"),
            None => name.to_owned(),
        }
    }

    fn end(&self) -> SimTime {
        self.of
            .timeline
            .window()
            .map_or(SimTime::ZERO, |(_, to)| to)
    }

    fn submitter(&self, life: &Life) -> String {
        // Task 0 is the idle task.
        match life.task.checked_sub(1) {
            Some(task) => self.of.simulator.task_name(task),
            None => "idle".to_owned(),
        }
    }

    fn context(&self, what: Option<What>) -> String {
        match what {
            Some(What::Task(task)) => self.of.simulator.task_name(task),
            Some(What::Softirq) => "softirq".to_owned(),
            Some(What::Irq) => "interrupt".to_owned(),
            Some(What::Wait(..) | What::Point(_)) | None => "idle".to_owned(),
        }
    }
}

/// Threads of a trace are numbered from 1.
fn on_cpu(cpu: CpuId) -> Place {
    Place {
        process: CPUS,
        thread: u32::from(cpu.0) + 1,
    }
}

fn lock_track(slot: u32) -> Place {
    Place {
        process: LOCKS,
        thread: slot + 1,
    }
}

fn address(args: Args, op: &str, sector: u64, bytes: u64) -> Args {
    args.text("op", op)
        .number("sector", sector)
        .number("bytes", bytes)
}

fn held(args: Args, request: Option<TracedRequest>) -> Args {
    args.numbers("hctx", request.map(|request| request.hctx.0))
        .numbers(
            "tag",
            request.and_then(|request| request.tag).map(|tag| tag.0),
        )
        .numbers(
            "internal_tag",
            request
                .and_then(|request| request.internal_tag)
                .map(|tag| tag.0),
        )
}

fn operation(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::WriteZeroes => "write zeroes",
        Op::Discard => "trim",
        Op::Flush => "flush",
    }
}
