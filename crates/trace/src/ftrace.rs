//! The text of `/sys/kernel/tracing/trace`: one event a line, block events and our probes typed.
//!
//! Lines keep the order in which the kernel printed them (merged by time). Typed payloads are in
//! `event.rs`. Kernel: include/trace/events/block.h and kyber.h (6.1 and 6.12; the latter adds the
//! ioprio to block_rq_*), kernel/trace/trace_output.c.

use std::path::Path;

use blkmq::time::SimTime;

mod event;
pub(crate) mod fields;
mod print;
mod writer;

pub use print::HEADER;
pub use writer::Writer;

pub use event::{
    BlockBio, BlockDone, BlockRequest, CgroupAttach, DeviceNumber, Event, IoPriority, KyberLatency,
    Probe, ProbedRequest, Remap,
};

use crate::text::Lines;
use crate::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Line in the file, first line 1.
    pub line: u64,
    /// Name of the running task (`<idle>` for the idle task).
    pub task: String,
    pub pid: u32,
    pub cpu: u16,
    /// irqs-off, need-resched, hard- or softirq, preempt depth, migrate-disable; empty if the
    /// trace has no such column.
    pub context: String,
    /// Time of the trace clock; ftrace prints microseconds.
    pub at: SimTime,
    /// Name of the event or probe.
    pub name: String,
    pub event: Event,
}

impl Record {
    /// True if the event happened in an interrupt handler (hard or soft).
    pub fn in_interrupt(&self) -> bool {
        self.context
            .chars()
            .any(|c| matches!(c, 'h' | 'H' | 's' | 'z' | 'Z'))
    }
}

/// Streaming reader of a trace.
#[derive(Debug)]
pub struct Ftrace {
    lines: Lines,
    lost: u64,
    failed: bool,
}

impl Ftrace {
    /// Opens a trace, plain or compressed (`.xz`, `.gz`).
    pub fn open(file: &Path) -> Result<Ftrace> {
        Ok(Ftrace::new(Lines::open(file)?))
    }

    pub fn new(lines: Lines) -> Ftrace {
        Ftrace {
            lines,
            lost: 0,
            failed: false,
        }
    }

    /// Events that the kernel reported as dropped or overwritten so far.
    pub fn lost_count(&self) -> u64 {
        self.lost
    }

    fn read(&mut self) -> Result<Option<Record>> {
        while self.lines.advance()? {
            let line = self.lines.line();
            if line.trim().is_empty() || line.starts_with('#') {
                self.lost += overwritten(line).unwrap_or(0);
                continue;
            }
            if let Some(lost) = lost_events(line) {
                self.lost += lost;
                continue;
            }
            let lines = &self.lines;
            let parsed = parse(line, lines.number());
            return parsed
                .map(Some)
                .map_err(|(field, what)| lines.error(field, what));
        }
        Ok(None)
    }
}

impl Iterator for Ftrace {
    type Item = Result<Record>;

    /// The next event. Nothing follows an error.
    fn next(&mut self) -> Option<Result<Record>> {
        if self.failed {
            return None;
        }
        let item = self.read().transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}

/// `CPU:1 [LOST 22 EVENTS]`, which the kernel prints where a ring buffer ran over.
pub(crate) fn lost_events(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("CPU:")?;
    let (_, rest) = rest.split_once(" [LOST ")?;
    rest.strip_suffix(" EVENTS]")?.trim().parse().ok()
}

/// `# entries-in-buffer/entries-written: 100/140   #P:1`: the oldest 40 are gone.
pub(crate) fn overwritten(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("entries-in-buffer/entries-written: ")?;
    let (kept, written) = rest.split_whitespace().next()?.split_once('/')?;
    written.parse::<u64>().ok()?.checked_sub(kept.parse().ok()?)
}

/// One line of a trace. The error is the field and a sentence.
pub(crate) fn parse(
    line: &str,
    number: u64,
) -> std::result::Result<Record, (&'static str, String)> {
    let bad = |field, what: &str| (field, what.to_owned());
    let head = split_head(line).ok_or_else(|| {
        bad(
            "TASK-PID",
            "expected `task-pid [cpu] flags time: event: ...`",
        )
    })?;
    let mut rest = head.rest.trim_start();
    let mut context = "";
    if let Some((first, more)) = rest.split_once(' ')
        && !first.ends_with(':')
    {
        context = first;
        rest = more.trim_start();
    }
    let (time, rest) = rest
        .split_once(':')
        .ok_or_else(|| bad("TIMESTAMP", "expected `seconds.microseconds:`"))?;
    let at = timestamp(time).ok_or_else(|| {
        let what = "is not seconds.microseconds (is trace_clock set to mono?)";
        ("TIMESTAMP", format!("`{time}` {what}"))
    })?;
    let rest = rest.trim_start();
    // perf puts the group of the event before its name.
    let rest = rest.strip_prefix("block:").unwrap_or(rest);
    let (name, payload) = match rest.split_once(':') {
        Some((name, payload)) if !name.contains(' ') => (name, payload.trim()),
        // Function tracer and markers print no `name:`.
        _ => ("", rest),
    };
    let event = event::parse(name, payload).map_err(|bad| (bad.field, bad.describe(name)))?;
    Ok(Record {
        line: number,
        task: head.task.to_string(),
        pid: head.pid,
        cpu: head.cpu,
        context: context.to_string(),
        at,
        name: name.to_string(),
        event,
    })
}

struct Head<'a> {
    task: &'a str,
    pid: u32,
    cpu: u16,
    rest: &'a str,
}

/// Splits at ` [cpu] `. Task names may hold blanks, dashes and brackets, so the first bracketed
/// number that follows a `-pid` counts.
fn split_head(line: &str) -> Option<Head<'_>> {
    for (open, _) in line.match_indices('[') {
        let (before, after) = (&line[..open], &line[open + 1..]);
        let Some((cpu, rest)) = after.split_once(']') else {
            continue;
        };
        let Ok(cpu) = cpu.parse::<u16>() else {
            continue;
        };
        let mut before = before.trim_end();
        // With record-tgid there is a column `(tgid)` in between.
        if before.ends_with(')')
            && let Some(tgid) = before.rfind('(')
        {
            before = before[..tgid].trim_end();
        }
        // perf puts a blank between them, and with its option tid a further number.
        let Some((task, pid)) = before.rsplit_once(['-', ' ']) else {
            continue;
        };
        let pid = pid.rsplit_once('/').map_or(pid, |(_, tid)| tid);
        let Ok(pid) = pid.parse::<u32>() else {
            continue;
        };
        return Some(Head {
            task: task.trim(),
            pid,
            cpu,
            rest,
        });
    }
    None
}

/// Seconds with up to nine decimals, to nanoseconds.
pub(crate) fn timestamp(text: &str) -> Option<SimTime> {
    let (seconds, fraction) = text.split_once('.')?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    let seconds: u64 = seconds.parse().ok()?;
    let fraction: u64 = fraction.parse().ok()?;
    Some(SimTime(
        seconds
            .checked_mul(1_000_000_000)?
            .checked_add(fraction * scale)?,
    ))
}

/// Reads a whole trace into memory.
pub fn read_all(file: &Path) -> Result<Vec<Record>> {
    Ftrace::open(file)?.collect::<std::result::Result<Vec<_>, Error>>()
}

#[cfg(test)]
mod tests;
