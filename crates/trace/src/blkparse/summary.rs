//! What blkparse prints after the events: counts by CPU, device and program.
//!
//! Not here: the lines of events. Arithmetic wraps as blkparse's does: a CPU that requeues more
//! than it issued has issued less than nothing. Read first: dump_io_stats() in blkparse.c.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::Write as _;

use super::track::{Elapsed, Track, Wait};
use crate::blktrace::{Action, Categories, Event};

/// Events of one kind, with their lengths. blkparse sums KiB and the bytes left over apart.
#[derive(Clone, Copy, Default, Debug)]
struct Flow {
    count: u64,
    kib: u64,
    rest: u64,
}

impl Flow {
    fn add(&mut self, bytes: u32) {
        self.count += 1;
        self.kib = self.kib.wrapping_add(u64::from(bytes >> 10));
        self.rest = self.rest.wrapping_add(u64::from(bytes & 1023));
    }

    /// Takes back the bytes of a request, not its count.
    fn take_back(&mut self, bytes: u32) {
        self.kib = self.kib.wrapping_sub(u64::from(bytes >> 10));
        self.rest = self.rest.wrapping_sub(u64::from(bytes & 1023));
    }

    fn sum(&mut self, other: &Flow) {
        self.count += other.count;
        self.kib = self.kib.wrapping_add(other.kib);
        self.rest = self.rest.wrapping_add(other.rest);
    }
}

/// Of file system requests, or of passthrough requests.
#[derive(Clone, Copy, Default, Debug)]
struct Flows {
    queued: Flow,
    issued: Flow,
    /// Only the count is printed.
    requeued: Flow,
    completed: Flow,
    merged: Flow,
}

impl Flows {
    fn account(&mut self, event: &Event) {
        match event.action {
            Action::Queue => self.queued.add(event.bytes),
            Action::Issue => self.issued.add(event.bytes),
            Action::Complete => self.completed.add(event.bytes),
            Action::BackMerge | Action::FrontMerge => self.merged.add(event.bytes),
            Action::Requeue => {
                self.requeued.add(0);
                self.issued.take_back(event.bytes);
            }
            _ => {}
        }
    }

    /// Whether the table of passthrough requests is printed.
    fn any(&self) -> bool {
        let all = [self.queued, self.issued, self.requeued, self.completed];
        all.iter().any(|flow| flow.count > 0)
    }

    fn sum(&mut self, other: &Flows) {
        self.queued.sum(&other.queued);
        self.issued.sum(&other.issued);
        self.requeued.sum(&other.requeued);
        self.completed.sum(&other.completed);
        self.merged.sum(&other.merged);
    }
}

/// Reads, then writes, in each pair.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    files: [Flows; 2],
    passthrough: [Flows; 2],
    unplugs: u64,
    timer_unplugs: u64,
}

impl Counts {
    fn account(&mut self, event: &Event) {
        let write = write_index(event);
        if event.categories.any(Categories::PC) {
            self.passthrough[write].account(event);
            return;
        }
        match event.action {
            Action::Unplug => self.unplugs += 1,
            Action::UnplugTimer => self.timer_unplugs += 1,
            _ => self.files[write].account(event),
        }
    }

    fn sum(&mut self, other: &Counts) {
        for write in [0, 1] {
            self.files[write].sum(&other.files[write]);
            self.passthrough[write].sum(&other.passthrough[write]);
        }
        self.unplugs += other.unplugs;
        self.timer_unplugs += other.timer_unplugs;
    }

    /// Appends the table. `depth` is a device's.
    fn print(&self, title: &str, depth: Option<[u64; 2]>, out: &mut Vec<u8>) {
        line(out, format_args!("{title}"));
        flows(out, &FILES, &self.files, sizes);
        if let Some(depth) = depth {
            both(
                out,
                "Read depth:      ",
                "Write depth:      ",
                numbers(depth),
            );
        }
        if self.passthrough.iter().any(Flows::any) {
            flows(out, &PASSTHROUGH, &self.passthrough, counts);
        }
        let unplugs = numbers([self.unplugs, self.timer_unplugs]);
        both(out, "IO unplugs:      ", "Timer unplugs:    ", unplugs);
    }
}

/// Titles of reads, `LEFT` bytes long, and of writes.
const FILES: [&str; 5] = [
    "Reads Queued:    Writes Queued:    ",
    "Read Dispatches: Write Dispatches: ",
    "Reads Requeued:  Writes Requeued:  ",
    "Reads Completed: Writes Completed: ",
    "Read Merges:     Write Merges:     ",
];
const PASSTHROUGH: [&str; 4] = [
    "PC Reads Queued: PC Writes Queued: ",
    "PC Read Disp.:   PC Write Disp.:   ",
    "PC Reads Req.:   PC Writes Req.:   ",
    "PC Reads Compl.: PC Writes Compl.: ",
];
const LEFT: usize = 17;

/// Rows of a table, as many as there are titles.
fn flows(
    out: &mut Vec<u8>,
    titles: &[&str],
    [r, w]: &[Flows; 2],
    completed: fn(Flow, Flow) -> [String; 2],
) {
    let rows = [
        sizes(r.queued, w.queued),
        sizes(r.issued, w.issued),
        counts(r.requeued, w.requeued),
        completed(r.completed, w.completed),
        sizes(r.merged, w.merged),
    ];
    for (title, values) in titles.iter().zip(rows) {
        let (left, right) = title.split_at(LEFT);
        both(out, left, right, values);
    }
}

fn line(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("memory takes all bytes");
}

fn both(out: &mut Vec<u8>, left: &str, right: &str, values: [String; 2]) {
    let [l, r] = values;
    line(out, format_args!(" {left}{l}\t {right}{r}"));
}

/// Count and size of each.
fn sizes(left: Flow, right: Flow) -> [String; 2] {
    [left, right].map(|flow| {
        let kib = flow.kib.wrapping_add(flow.rest >> 10);
        format!("{}, {}iB", scaled(flow.count, 0), scaled(kib, 1))
    })
}

fn counts(left: Flow, right: Flow) -> [String; 2] {
    [
        format!("{}\t", scaled(left.count, 0)),
        scaled(right.count, 0),
    ]
}

fn numbers(of: [u64; 2]) -> [String; 2] {
    [format!("{:8}{:8}", of[0], ""), format!("{:8}", of[1])]
}

/// Above a million with a unit; `unit` is the number of the first.
fn scaled(mut value: u64, mut unit: usize) -> String {
    const UNITS: [&str; 5] = ["", "K", "M", "G", "P"];
    while value > 1_000_000 && unit + 1 < UNITS.len() {
        unit += 1;
        value /= 1000;
    }
    format!("{value:8}{}", UNITS[unit])
}

fn write_index(event: &Event) -> usize {
    usize::from(event.categories.any(Categories::WRITE))
}

#[derive(Default, Debug)]
pub(super) struct Cpu {
    counts: Counts,
    last_sequence: Option<u32>,
}

/// What is known of one device.
#[derive(Default, Debug)]
pub(super) struct Device {
    name: String,
    cpus: BTreeMap<u32, Cpu>,
    pub(super) track: Track,
    events: u64,
    first_time: u64,
    last_time: u64,
    depth: [u64; 2],
    depth_max: [u64; 2],
    /// Gaps in the sequence numbers, and numbers in them.
    skips: [u64; 2],
}

impl Device {
    pub(super) fn new(name: String) -> Device {
        Device {
            name,
            ..Device::default()
        }
    }

    pub(super) fn cpu(&mut self, number: u32) -> &mut Cpu {
        self.cpus.entry(number).or_default()
    }

    /// An event was read, whether it is printed or not.
    #[inline]
    pub(super) fn seen(&mut self, event: &Event, time: u64, gaps: bool) {
        self.last_time = time;
        let cpu = self.cpu(event.cpu);
        if gaps && event.action != Action::Message {
            let missing = cpu
                .last_sequence
                .map_or(0, |last| i64::from(event.sequence) - i64::from(last) - 1);
            cpu.last_sequence = Some(event.sequence);
            if missing > 0 {
                self.skips[0] += 1;
                self.skips[1] += missing.unsigned_abs();
            }
        }
    }

    /// The event is one that is printed. Panics if [`Device::seen`] has not had it.
    #[inline]
    pub(super) fn account(&mut self, event: &Event, time: u64) {
        if self.events == 0 {
            self.first_time = time;
        }
        self.events += 1;
        let write = write_index(event);
        match event.action {
            Action::Issue => {
                self.depth[write] += 1;
                self.depth_max[write] = self.depth_max[write].max(self.depth[write]);
            }
            // Traces may begin in the middle of a request.
            Action::Complete | Action::Requeue => {
                self.depth[write] = self.depth[write].saturating_sub(1);
            }
            _ => {}
        }
        let cpu = self.cpus.get_mut(&event.cpu);
        cpu.expect("seen() adds it").counts.account(event);
    }

    pub(super) fn print(&self, out: &mut Vec<u8>) {
        let mut total = Counts::default();
        for (number, cpu) in &self.cpus {
            total.sum(&cpu.counts);
            let title = format!("CPU{number} ({}):", self.name);
            cpu.counts.print(&title, Some(self.depth_max), out);
        }
        if self.cpus.len() > 1 {
            out.push(b'\n');
            total.print(&format!("Total ({}):", self.name), None, out);
        }
        let rate = |flow: &Flow| {
            let milliseconds = self.last_time.wrapping_sub(self.first_time) / 1_000_000;
            let bytes = flow.kib.wrapping_mul(1000).wrapping_add(flow.rest);
            bytes.checked_div(milliseconds).unwrap_or(0)
        };
        let [read, write] = [0, 1].map(|write| rate(&total.files[write].completed));
        line(
            out,
            format_args!("\nThroughput (R/W): {read}KiB/s / {write}KiB/s"),
        );
        line(
            out,
            format_args!("Events ({}): {} entries", self.name, self.events),
        );
        let [gaps, missing] = self.skips;
        let all = self.events + missing;
        let percent = if all == 0 {
            0.0
        } else {
            100.0 * (missing as f64 / all as f64)
        };
        line(
            out,
            format_args!("Skips: {gaps} forward ({missing} - {percent:5.1}%)"),
        );
    }
}

/// Counts of one process, and its longest times: allocation, dispatch, completion of reads and
/// writes, in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
struct Program {
    /// Processes that were seen before it.
    place: usize,
    counts: Counts,
    longest: [[u64; 2]; 3],
}

impl Program {
    fn add(&mut self, other: &Program) {
        self.counts.sum(&other.counts);
        for (own, other) in self.longest.iter_mut().zip(other.longest) {
            *own = [own[0].max(other[0]), own[1].max(other[1])];
        }
    }
}

/// Processes by PID.
#[derive(Default, Debug)]
pub(super) struct Programs(BTreeMap<u32, Program>);

impl Programs {
    /// Takes an event. `unnamed` is called for a task that must get a name.
    pub(super) fn account(&mut self, event: &Event, unnamed: impl FnOnce(u32)) {
        let counted = matches!(
            event.action,
            Action::Queue
                | Action::Issue
                | Action::Complete
                | Action::Requeue
                | Action::BackMerge
                | Action::FrontMerge
                | Action::Unplug
                | Action::UnplugTimer
        );
        if counted {
            let place = self.0.len();
            let program = self.0.entry(event.pid).or_insert_with(|| {
                unnamed(event.pid);
                Program {
                    place,
                    ..Program::default()
                }
            });
            program.counts.account(event);
        }
    }

    /// A time of a request ended. A process that has no counts yet gets none of it.
    pub(super) fn waited(&mut self, event: &Event, elapsed: &Elapsed) {
        if let Some(program) = self.0.get_mut(&elapsed.pid) {
            let longest = &mut program.longest[elapsed.wait as usize][write_index(event)];
            *longest = (*longest).max(elapsed.nanoseconds);
        }
    }

    pub(super) fn print<'n>(
        &self,
        name: impl Fn(u32) -> &'n str,
        by_name: bool,
        out: &mut Vec<u8>,
    ) {
        let mut programs: Vec<(&str, u32, Program, &str)> = Vec::new();
        let mut seen: Vec<_> = self.0.iter().collect();
        seen.sort_by_key(|(_, program)| program.place);
        for (pid, program) in seen {
            let name = name(*pid);
            let known = match by_name {
                true => programs.iter_mut().find(|(known, ..)| *known == name),
                false => None,
            };
            match known {
                Some((_, _, first, more)) => {
                    first.add(program);
                    *more = ", ...";
                }
                None => programs.push((name, *pid, *program, "")),
            }
        }
        programs.sort_by(|a, b| version_order(a.0.as_bytes(), b.0.as_bytes()).then(a.1.cmp(&b.1)));
        for (name, pid, program, more) in programs {
            let title = format!("{name} ({pid}{more})");
            program.counts.print(&title, None, out);
            let waits = [
                ("Allocation wait: ", Wait::Allocation),
                ("Dispatch wait:   ", Wait::Dispatch),
                ("Completion wait: ", Wait::Completion),
            ];
            for (title, wait) in waits {
                let longest = program.longest[wait as usize].map(|longest| longest / 1000);
                let right = format!("{:18}", title.trim_end());
                both(out, title, &right, numbers(longest));
            }
        }
        out.push(b'\n');
    }
}

/// The order of strverscmp(3): numbers in names by value, those that begin with 0 as fractions.
fn version_order(a: &[u8], b: &[u8]) -> Ordering {
    let equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a_rest, b_rest) = (&a[equal..], &b[equal..]);
    let plain = a_rest.cmp(b_rest);
    let digits = |text: &[u8]| text.iter().take_while(|c| c.is_ascii_digit()).count();
    let (a_digits, b_digits) = (digits(a_rest), digits(b_rest));
    // The part of the number that is before the difference.
    let before = a[..equal].iter().rev().take_while(|c| c.is_ascii_digit());
    let before = &a[equal - before.count()..equal];
    match before.first() {
        None if a_rest.starts_with(b"0") || b_rest.starts_with(b"0") => plain,
        None if a_digits == 0 || b_digits == 0 => plain,
        None => a_digits.cmp(&b_digits).then(plain),
        Some(b'0') if before.iter().any(|digit| *digit != b'0') => plain,
        // More zeros, or digits after them, are less than nothing after them.
        Some(b'0') => (b_digits.min(1)).cmp(&a_digits.min(1)).then(plain),
        Some(_) => a_digits.cmp(&b_digits).then(plain),
    }
}

#[cfg(test)]
mod tests;
