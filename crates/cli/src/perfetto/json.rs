//! Chrome's trace event format as text: one event a line, times in microseconds.
//!
//! Only the writing; which events there are is in `tracks.rs`. Format: "Trace Event Format" of the
//! Catapult project, as ui.perfetto.dev reads it.

use std::fmt::{Display, Write as _};

use blkmq::time::SimTime;

/// Events of a trace, as text.
#[derive(Default)]
pub(super) struct Events(String);

/// A thread of a process: where a slice is shown.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) process: u32,
    pub(super) thread: u32,
}

/// Beginning or end of an asynchronous slice.
#[derive(Clone, Copy)]
pub(super) enum Edge {
    Begin,
    End,
}

/// A part of an arrow.
#[derive(Clone, Copy)]
pub(super) enum Arrow {
    Start,
    Step,
    Finish,
}

/// Arguments of an event.
#[derive(Default)]
pub(super) struct Args(String);

impl Args {
    pub(super) fn text(mut self, key: &str, value: &str) -> Args {
        self.add(key, &quoted(value));
        self
    }

    pub(super) fn number(mut self, key: &str, value: impl Into<u64>) -> Args {
        self.add(key, &value.into());
        self
    }

    pub(super) fn texts(self, key: &str, value: Option<&str>) -> Args {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    pub(super) fn numbers(self, key: &str, value: Option<impl Into<u64>>) -> Args {
        match value {
            Some(value) => self.number(key, value),
            None => self,
        }
    }

    fn add(&mut self, key: &str, value: &dyn Display) {
        let comma = if self.0.is_empty() { "" } else { "," };
        let _ = write!(self.0, "{comma}\"{key}\":{value}");
    }
}

/// As a member of an event, if there are any.
impl Display for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, ",\"args\":{{{}}}", self.0)
    }
}

impl Events {
    fn event(&mut self, members: std::fmt::Arguments<'_>) {
        let comma = if self.0.is_empty() { "" } else { ",\n" };
        let _ = write!(self.0, "{comma}{{{members}}}");
    }

    pub(super) fn process(&mut self, process: u32, name: &str) {
        self.named("process_name", process, 0, name);
    }

    pub(super) fn thread(&mut self, place: Place, name: &str) {
        self.named("thread_name", place.process, place.thread, name);
    }

    fn named(&mut self, what: &str, process: u32, thread: u32, name: &str) {
        let args = Args::default().text("name", name);
        self.event(format_args!(
            "\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{process},\"tid\":{thread}{args}"
        ));
    }

    /// Slices of a thread come in the order of their beginnings, outer ones first.
    pub(super) fn slice(
        &mut self,
        name: &str,
        Place { process, thread }: Place,
        (from, to): (SimTime, SimTime),
        args: &Args,
    ) {
        let (name, at) = (quoted(name), microseconds(from));
        let length = microseconds(SimTime(to.since(from).0));
        self.event(format_args!(
            "\"ph\":\"X\",\"name\":{name},\"pid\":{process},\"tid\":{thread},\"ts\":{at},\
             \"dur\":{length}{args}"
        ));
    }

    pub(super) fn asynchronous(
        &mut self,
        edge: Edge,
        name: &str,
        (process, id): (u32, usize),
        at: SimTime,
        args: &Args,
    ) {
        let kind = match edge {
            Edge::Begin => 'b',
            Edge::End => 'e',
        };
        let (name, at) = (quoted(name), microseconds(at));
        self.event(format_args!(
            "\"ph\":\"{kind}\",\"cat\":\"io\",\"name\":{name},\"id\":{id},\"pid\":{process},\
             \"tid\":1,\"ts\":{at}{args}"
        ));
    }

    /// A part of an arrow; it ends in the innermost slice of this place at that time.
    pub(super) fn arrow(&mut self, part: Arrow, id: usize, place: Place, at: SimTime) {
        let kind = match part {
            Arrow::Start => "\"s\"",
            Arrow::Step => "\"t\"",
            Arrow::Finish => "\"f\",\"bp\":\"e\"",
        };
        let (Place { process, thread }, at) = (place, microseconds(at));
        self.event(format_args!(
            "\"ph\":{kind},\"cat\":\"io\",\"name\":\"I/O\",\"id\":{id},\"pid\":{process},\
             \"tid\":{thread},\"ts\":{at}"
        ));
    }

    /// A value from this time on.
    pub(super) fn counter(&mut self, process: u32, name: &str, at: SimTime, value: impl Display) {
        let (name, at) = (quoted(name), microseconds(at));
        self.event(format_args!(
            "\"ph\":\"C\",\"name\":{name},\"pid\":{process},\"tid\":1,\"ts\":{at},\
             \"args\":{{\"value\":{value}}}"
        ));
    }

    pub(super) fn finish(self, origin: &str) -> String {
        format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"origin\":{}}},\
             \"traceEvents\":[\n{}\n]}}\n",
            quoted(origin),
            self.0
        )
    }
}

fn microseconds(at: SimTime) -> String {
    format!("{}.{:03}", at.0 / 1000, at.0 % 1000)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
