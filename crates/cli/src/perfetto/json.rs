//! The trace as text: Chrome's trace event format, one event a line, times in microseconds.
//!
//! Tracks: process 1 has a thread for each CPU, process 2 one for each lock, process 3 the I/Os as
//! nested asynchronous slices, process 4 counters of schedulers. Flows lead from submission over
//! issue to completion.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use blkmq::request::{CpuId, Op, QueueId};
use blkmq::time::SimTime;
use sim::recorder::{SpanKind, Timeline};

use super::lives::{Life, Lives, Phase};
use super::slices;

/// Marks the trace as simulated: in the metadata, and next to the CPUs.
const ORIGIN: &str = concat!("simulated by blksim ", env!("CARGO_PKG_VERSION"));

const CPUS: u32 = 1;
const LOCKS: u32 = 2;
const IOS: u32 = 3;
const SCHEDULER: u32 = 4;

/// Names of the parts of an I/O's life, by the phase that ends each.
const PARTS: [&str; 4] = [
    "waits for a request",
    "in the plug",
    "scheduled",
    "with the device",
];

pub(super) fn trace(
    timeline: &Timeline,
    lives: &Lives,
    counters: &[(SimTime, (QueueId, String), f64)],
    task_name: impl Fn(u32) -> String,
    disk_name: impl Fn(QueueId) -> Option<String>,
) -> String {
    let mut out = Events::default();
    out.named("process_name", CPUS, 0, &format!("CPUs, {ORIGIN}"));
    out.named("process_name", LOCKS, 0, "locks");
    out.named("process_name", IOS, 0, "I/Os");
    cpus(timeline, task_name, &mut out);
    locks(timeline, &mut out);
    let end = timeline.window().map_or(SimTime::ZERO, |(_, to)| to);
    let seen: BTreeSet<CpuId> = timeline.spans().iter().map(|span| span.cpu).collect();
    for (id, life) in lives.all.iter().enumerate() {
        io(id, life, disk_name(life.queue), end, &mut out);
        flow(id, life, end, &seen, &mut out);
    }
    if !counters.is_empty() {
        out.named("process_name", SCHEDULER, 0, "scheduler");
    }
    for (at, (queue, name), value) in counters {
        let name = match disk_name(*queue) {
            Some(disk) => format!("{disk} {name}"),
            None => name.clone(),
        };
        out.counter(&name, *at, *value);
    }
    out.finish()
}

fn cpus(timeline: &Timeline, task_name: impl Fn(u32) -> String, out: &mut Events) {
    let cpus: BTreeSet<CpuId> = timeline.spans().iter().map(|span| span.cpu).collect();
    for cpu in cpus {
        out.named("thread_name", CPUS, thread(cpu), &format!("CPU {}", cpu.0));
    }
    for span in slices::nested(timeline.spans()) {
        let name = match span.kind {
            SpanKind::Task(task) => task_name(task),
            SpanKind::Softirq => "softirq".to_owned(),
            SpanKind::Irq => "interrupt".to_owned(),
            SpanKind::Wait(name) | SpanKind::Hold { name, .. } => format!("waits for {name}"),
        };
        out.slice(&name, (CPUS, thread(span.cpu)), span.from, span.to);
    }
}

fn locks(timeline: &Timeline, out: &mut Events) {
    let mut by_lock: BTreeMap<u32, Vec<(SimTime, SimTime, CpuId)>> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for span in timeline.spans() {
        if let SpanKind::Hold { name, slot } = span.kind
            && span.from < span.to
        {
            names.insert(slot, name);
            let holds = by_lock.entry(slot).or_default();
            holds.push((span.from, span.to, span.cpu));
        }
    }
    for (slot, mut holds) in by_lock {
        out.named("thread_name", LOCKS, slot + 1, names[&slot]);
        holds.sort();
        for (from, to, cpu) in holds {
            out.slice(&format!("CPU {}", cpu.0), (LOCKS, slot + 1), from, to);
        }
    }
}

/// Threads of a trace are numbered from 1.
fn thread(cpu: CpuId) -> u32 {
    u32::from(cpu.0) + 1
}

/// Beginning and end of each part of a life. A part that is not over at the end of the run or of
/// the window lasts to there.
fn io(id: usize, life: &Life, disk: Option<String>, end: SimTime, out: &mut Events) {
    let reached = life.phases.iter().flatten().map(|(at, _)| *at).max();
    let over = life.phases[Phase::Completed as usize].map(|(at, _)| at);
    let last = over.unwrap_or(end.max(reached.unwrap_or(life.began.0)));
    let op = match life.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::WriteZeroes => "write zeroes",
        Op::Discard => "trim",
        Op::Flush => "flush",
    };
    let merged = if life.merged { ", merged" } else { "" };
    let disk = disk.map_or(String::new(), |name| name + " ");
    let name = format!("{disk}{op} {} bytes at {}{merged}", life.bytes, life.sector);
    out.asynchronous('b', &name, id, life.began.0);
    let mut from = life.began.0;
    let mut part = 0;
    for phase in 0..PARTS.len() {
        if let Some((at, _)) = life.phases[phase] {
            // A request that skips a place (no insertion) spends that time in the one before.
            let at = at.max(from);
            out.asynchronous('b', PARTS[part], id, from);
            out.asynchronous('e', PARTS[part], id, at);
            from = at;
            part = (phase + 1).min(PARTS.len() - 1);
        }
    }
    if over.is_none() && from < last {
        out.asynchronous('b', PARTS[part], id, from);
        out.asynchronous('e', PARTS[part], id, last);
    }
    out.asynchronous('e', &name, id, last.max(from));
}

/// Arrows from submission to issue to completion, between CPUs.
fn flow(id: usize, life: &Life, end: SimTime, seen: &BTreeSet<CpuId>, out: &mut Events) {
    let places = [
        Some(life.began),
        life.phases[Phase::Issued as usize],
        life.phases[Phase::Completed as usize],
    ];
    let places: Vec<(SimTime, CpuId)> = places
        .into_iter()
        .flatten()
        .filter(|(at, cpu)| *at < end && seen.contains(cpu))
        .collect();
    if places.len() < 2 {
        return;
    }
    for (index, &(at, cpu)) in places.iter().enumerate() {
        let kind = if index == 0 {
            "\"s\""
        } else if index + 1 == places.len() {
            "\"f\",\"bp\":\"e\""
        } else {
            "\"t\""
        };
        let thread = thread(cpu);
        out.event(&format!(
            "\"ph\":{kind},\"cat\":\"io\",\"name\":\"I/O\",\"id\":{id},\"pid\":{CPUS},\
             \"tid\":{thread},\"ts\":{}",
            microseconds(at)
        ));
    }
}

fn microseconds(at: SimTime) -> String {
    format!("{}.{:03}", at.0 / 1000, at.0 % 1000)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Events of a trace, as text.
#[derive(Default)]
struct Events(String);

impl Events {
    fn event(&mut self, members: &str) {
        let comma = if self.0.is_empty() { "" } else { ",\n" };
        let _ = write!(self.0, "{comma}{{{members}}}");
    }

    /// Name of a process or a thread.
    fn named(&mut self, what: &str, process: u32, thread: u32, name: &str) {
        let name = quoted(name);
        self.event(&format!(
            "\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{process},\"tid\":{thread},\
             \"args\":{{\"name\":{name}}}"
        ));
    }

    fn slice(&mut self, name: &str, (process, thread): (u32, u32), from: SimTime, to: SimTime) {
        let length = microseconds(SimTime(to.since(from).0));
        self.event(&format!(
            "\"ph\":\"X\",\"name\":{},\"pid\":{process},\"tid\":{thread},\"ts\":{},\
             \"dur\":{length}",
            quoted(name),
            microseconds(from)
        ));
    }

    fn asynchronous(&mut self, kind: char, name: &str, id: usize, at: SimTime) {
        self.event(&format!(
            "\"ph\":\"{kind}\",\"cat\":\"io\",\"name\":{},\"id\":{id},\"pid\":{IOS},\"tid\":1,\
             \"ts\":{}",
            quoted(name),
            microseconds(at)
        ));
    }

    fn counter(&mut self, name: &str, at: SimTime, value: f64) {
        self.event(&format!(
            "\"ph\":\"C\",\"name\":{},\"pid\":{SCHEDULER},\"tid\":1,\"ts\":{},\
             \"args\":{{\"value\":{value}}}",
            quoted(name),
            microseconds(at)
        ));
    }

    fn finish(self) -> String {
        format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"origin\":{}}},\
             \"traceEvents\":[\n{}\n]}}\n",
            quoted(ORIGIN),
            self.0
        )
    }
}
