//! biosnoop of bcc (Python and C) and of bpftrace: a line for each I/O, at its completion.
//!
//! The columns follow the line with their names. A name of a process can hold blanks, so columns
//! after it are counted from the end of the line.

use blkmq::time::SimTime;

use super::super::event::{Action, Categories, Device, Event};
use super::super::lines::Out;
use super::{Bad, Parsed, Parser, number};
use crate::ftrace::timestamp;

/// Times begin with the first completion: a day before it keeps earlier starts positive.
const BASE_NS: u64 = 86_400_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Biosnoop {
    /// Names of the columns, once their line was seen.
    columns: Vec<String>,
    /// Lines so far.
    ios: u64,
}

fn is_header(line: &str) -> bool {
    let has = |name| line.split_whitespace().any(|word| word == name);
    line.trim_start().starts_with("TIME(") && has("COMM") && has("PID") && has("LAT(ms)")
}

pub(crate) fn begins(lines: &[&str]) -> bool {
    // bpftrace and bcc begin with a line about themselves.
    lines.iter().take(3).any(|line| is_header(line))
}

impl Parser for Biosnoop {
    fn line(&mut self, line: &str, out: &mut Out<'_>) -> Parsed<()> {
        if is_header(line) {
            self.columns = line.split_whitespace().map(str::to_owned).collect();
            return Ok(());
        }
        if self.columns.is_empty() {
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (count, columns) = (words.len(), self.columns.len());
        if count < columns {
            let want = format!("{columns} columns: {}", self.columns.join(" "));
            return Err(Bad::new("line", line, &want));
        }
        let io = self.io(&words)?;
        let (comm, extra) = (self.place("COMM").unwrap_or_default(), count - columns);
        if io.pid != 0 {
            out.process(io.pid, &words[comm..=comm + extra].join(" "));
        }
        let device = match self.word(&words, "DISK") {
            "" => Device::default(),
            disk => out.device("DISK", disk)?,
        };
        for (at, action) in io.times {
            let Some(at) = at else { continue };
            let mut categories = io.bits.of_action(action);
            if action == Action::Complete && self.has_issue() {
                categories = categories.with(Categories::FS);
            }
            out.event(Event {
                sector: io.sector,
                bytes: io.bytes,
                categories,
                pid: io.pid,
                device,
                ..Event::new(SimTime(at), action)
            });
        }
        self.ios += 1;
        Ok(())
    }

    fn lacks(&self) -> String {
        "biosnoop has no CPUs, no priorities, no merges and no plugs; without the column QUE(ms) \
         bcc's has no Q, and bpftrace's has no D, no sectors, no lengths and no directions: each \
         I/O is taken for a read of a sector of its own"
            .to_owned()
    }
}

/// What a line says.
struct Io {
    bits: Categories,
    sector: u64,
    bytes: u32,
    pid: u32,
    /// Q, D and C, where they are known.
    times: [(Option<u64>, Action); 3],
}

impl Biosnoop {
    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The word of a column; empty if there is no such column.
    fn word<'a>(&self, words: &[&'a str], name: &str) -> &'a str {
        let extra = words.len() - self.columns.len();
        let after_name = |at| self.place("COMM").is_some_and(|comm| at > comm);
        match self.place(name) {
            Some(at) if after_name(at) => words[at + extra],
            Some(at) => words[at],
            None => "",
        }
    }

    fn io(&self, words: &[&str]) -> Parsed<Io> {
        let get = |name| self.word(words, name);
        let is_seconds = self.columns[0] == "TIME(s)";
        let unit_ns = if is_seconds { 1_000_000_000 } else { 1_000_000 };
        let end = ns("TIME", words[0], unit_ns)?.saturating_add(BASE_NS);
        let latency = ns("LAT(ms)", get("LAT(ms)"), 1_000_000)?;
        let queued = match get("QUE(ms)") {
            "" => None,
            // In C: none.
            text if text.starts_with('-') => Some(0),
            text => Some(ns("QUE(ms)", text, 1_000_000)?),
        };
        let start = end.checked_sub(latency);
        let first = start.and_then(|start| start.checked_sub(queued.unwrap_or(0)));
        let (Some(start), Some(first)) = (start, first) else {
            return Err(Bad::new("LAT(ms)", get("LAT(ms)"), "less than a day"));
        };
        let (bits, sector, bytes) = if self.has_issue() {
            let bits = Categories::from_rwbs(get("T"));
            let bits = bits.ok_or_else(|| Bad::new("T", get("T"), "R, W or more letters"))?;
            let sector = match get("SECTOR") {
                // A flush has none.
                "-1" => 0,
                text => number("SECTOR", text)?,
            };
            (bits, sector, number("BYTES", get("BYTES"))?)
        } else {
            (Categories::READ, self.ios, 512)
        };
        let is_queued = queued.is_some() || !self.has_issue();
        Ok(Io {
            bits,
            sector,
            bytes,
            pid: number("PID", get("PID"))?,
            times: [
                (is_queued.then_some(first), Action::Queue),
                (self.has_issue().then_some(start), Action::Issue),
                (Some(end), Action::Complete),
            ],
        })
    }

    /// bcc's latency begins when the driver gets the request, bpftrace's when the request is made.
    fn has_issue(&self) -> bool {
        self.place("SECTOR").is_some()
    }
}

/// A decimal number with up to nine places after the point, in units of `unit_ns`.
fn ns(field: &'static str, text: &str, unit_ns: u64) -> Parsed<u64> {
    let text = text.trim();
    let value = match text.contains('.') {
        true => timestamp(text),
        false => timestamp(&format!("{text}.0")),
    };
    let value = value.and_then(|value| {
        u64::try_from(u128::from(value.0) * u128::from(unit_ns) / 1_000_000_000).ok()
    });
    value.ok_or_else(|| Bad::new(field, text, "a decimal number"))
}
