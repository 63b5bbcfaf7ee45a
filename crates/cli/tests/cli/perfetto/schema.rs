//! The rules of Chrome's trace event format that a trace for Perfetto must keep, and those of its
//! tracks: which members and arguments there are, slices that nest, arrows that end in slices.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Process and thread.
pub(super) type Track = (u64, u64);

/// A slice, times in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) name: String,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) args: Map<String, Value>,
}

/// Content of a trace that keeps the rules.
#[derive(Default, Debug)]
pub(super) struct Content {
    /// In the order of their beginnings, outer ones first.
    pub(super) slices: BTreeMap<Track, Vec<Slice>>,
    /// Names of processes (thread 0) and threads.
    pub(super) names: BTreeMap<Track, String>,
    /// By process and name.
    pub(super) counters: BTreeMap<(u64, String), Vec<(u64, f64)>>,
    /// Asynchronous slices that are not in another.
    pub(super) ios: Vec<Slice>,
    pub(super) arrows: usize,
    /// Slices that are open, by number.
    open: BTreeMap<u64, Vec<Slice>>,
    /// Arrows that have not ended, by number, with the time reached.
    begun: BTreeMap<u64, u64>,
}

const TEXTS: [&str; 10] = [
    "op",
    "device",
    "process",
    "merged",
    "lock",
    "step",
    "holder",
    "holder_step",
    "handed_to",
    "name",
];
const NUMBERS: [&str; 15] = [
    "sector",
    "from_sector",
    "bytes",
    "hctx",
    "tag",
    "internal_tag",
    "requests",
    "errno",
    "io",
    "cpu",
    "holder_cpu",
    "handed_to_cpu",
    "waited_ns",
    "waiters",
    "waiters_before",
];

/// Members of an event of a phase; those after the bar may be missing.
fn members(phase: &str) -> Option<(&'static str, &'static str)> {
    Some(match phase {
        "M" => ("ph name pid tid args", ""),
        "X" => ("ph name pid tid ts dur", "args"),
        "b" | "e" => ("ph cat name id pid tid ts", "args"),
        "s" | "t" => ("ph cat name id pid tid ts", ""),
        "f" => ("ph bp cat name id pid tid ts", ""),
        "C" => ("ph name pid tid ts args", ""),
        _ => return None,
    })
}

pub(super) fn check(trace: &Value) -> Result<Content, String> {
    let top: BTreeSet<&str> = trace
        .as_object()
        .ok_or("no object")?
        .keys()
        .map(|k| &**k)
        .collect();
    if top != BTreeSet::from(["displayTimeUnit", "otherData", "traceEvents"]) {
        return Err(format!("members of the trace: {top:?}"));
    }
    let mut content = Content::default();
    let events = trace["traceEvents"].as_array().ok_or("no list of events")?;
    for event in events {
        content
            .add(event)
            .map_err(|what| format!("{what}: {event}"))?;
    }
    content.complete()?;
    Ok(content)
}

fn number(event: &Value, key: &str) -> Result<u64, String> {
    event[key]
        .as_u64()
        .ok_or_else(|| format!("{key} is no number"))
}

fn text<'a>(event: &'a Value, key: &str) -> Result<&'a str, String> {
    let text = event[key].as_str().filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("{key} is no text"))
}

/// Microseconds with nanoseconds after the point.
fn nanoseconds(event: &Value, key: &str) -> Result<u64, String> {
    let time = event[key].as_f64().filter(|time| *time >= 0.0);
    Ok((time.ok_or_else(|| format!("{key} is no time"))? * 1000.0).round() as u64)
}

fn typed(args: &Map<String, Value>) -> Result<(), String> {
    for (key, value) in args {
        let typed = (TEXTS.contains(&&**key) && value.is_string())
            || (NUMBERS.contains(&&**key) && value.is_u64());
        if !typed {
            return Err(format!("argument {key}"));
        }
    }
    Ok(())
}

impl Content {
    fn add(&mut self, event: &Value) -> Result<(), String> {
        let phase = text(event, "ph")?;
        let (needed, further) = members(phase).ok_or("an unknown phase")?;
        let has: BTreeSet<&str> = event
            .as_object()
            .ok_or("no object")?
            .keys()
            .map(|k| &**k)
            .collect();
        let needed: BTreeSet<&str> = needed.split(' ').collect();
        let missing = needed.difference(&has).next();
        if let Some(missing) = missing {
            return Err(format!("{missing} is missing"));
        }
        let unknown = has
            .iter()
            .find(|key| !needed.contains(**key) && **key != further);
        if let Some(unknown) = unknown {
            return Err(format!("{unknown} is unknown"));
        }
        let track = (number(event, "pid")?, number(event, "tid")?);
        let name = text(event, "name")?;
        let args = match event.get("args") {
            Some(args) => args.as_object().ok_or("args are no object")?.clone(),
            None => Map::new(),
        };
        if phase == "C" {
            return self.counter(track.0, name, event);
        }
        typed(&args)?;
        if phase == "M" {
            return self.named(track, name, text(&event["args"], "name")?);
        }
        let from = nanoseconds(event, "ts")?;
        let name = name.to_owned();
        let slice = |to| Slice {
            name,
            from,
            to,
            args,
        };
        match phase {
            "X" => {
                let length = nanoseconds(event, "dur")?;
                self.slice(track, slice(from + length))
            }
            "b" | "e" => self.asynchronous(number(event, "id")?, phase == "b", slice(from)),
            _ => {
                if phase == "f" && event["bp"] != "e" {
                    return Err("bp is not e".to_owned());
                }
                self.arrow(phase, number(event, "id")?, track, from)
            }
        }
    }

    fn named(&mut self, track: Track, what: &str, name: &str) -> Result<(), String> {
        let of_thread = match what {
            "process_name" => false,
            "thread_name" => true,
            _ => return Err("an unknown name".to_owned()),
        };
        let twice = self.names.insert(track, name.to_owned()).is_some();
        match twice || (track.1 != 0) != of_thread {
            true => Err("named twice".to_owned()),
            false => Ok(()),
        }
    }

    fn slice(&mut self, track: Track, slice: Slice) -> Result<(), String> {
        if slice.from >= slice.to {
            return Err("an empty slice".to_owned());
        }
        let known = self.slices.entry(track).or_default();
        if known.last().is_some_and(|last| last.from > slice.from) {
            return Err("slices are not in order".to_owned());
        }
        known.push(slice);
        Ok(())
    }

    fn asynchronous(&mut self, id: u64, begins: bool, slice: Slice) -> Result<(), String> {
        let open = self.open.entry(id).or_default();
        if open.last().is_some_and(|outer| slice.from < outer.from) {
            return Err("a time before that of the slice around".to_owned());
        }
        if begins {
            open.push(slice);
            return Ok(());
        }
        let mut ended = open.pop().ok_or("an end without a beginning")?;
        if ended.name != slice.name {
            return Err(format!("the end of {}", ended.name));
        }
        ended.to = slice.from;
        if open.is_empty() {
            self.ios.push(ended);
        }
        Ok(())
    }

    /// All slices come before the arrows between them.
    fn arrow(&mut self, phase: &str, id: u64, track: Track, at: u64) -> Result<(), String> {
        let slice = self
            .innermost(track, at)
            .ok_or("an arrow beside the slices")?;
        let letters = match phase {
            "s" => "QX",
            "t" => "D",
            // The end of the window may come before the completion.
            _ => "DC",
        };
        if slice.from != at || !slice.name.starts_with(|letter| letters.contains(letter)) {
            return Err(format!("the arrow ends in {slice:?}"));
        }
        let before = self.begun.remove(&id);
        match (phase, before) {
            ("s", Some(_)) => return Err("an arrow begins twice".to_owned()),
            ("t" | "f", None) => return Err("an arrow without a beginning".to_owned()),
            (_, Some(before)) if before >= at => return Err("back in time".to_owned()),
            _ => {}
        }
        self.arrows += usize::from(phase == "f");
        if phase != "f" {
            self.begun.insert(id, at);
        }
        Ok(())
    }

    pub(super) fn innermost(&self, track: Track, at: u64) -> Option<&Slice> {
        let slices = self.slices.get(&track)?;
        let begun = slices.partition_point(|slice| slice.from <= at);
        slices[..begun].iter().rev().find(|slice| at < slice.to)
    }

    fn counter(&mut self, process: u64, name: &str, event: &Value) -> Result<(), String> {
        let at = nanoseconds(event, "ts")?;
        let args = event["args"].as_object().ok_or("args are no object")?;
        let value = args.get("value").filter(|_| args.len() == 1);
        let value = value.and_then(Value::as_f64).filter(|value| *value >= 0.0);
        let value = value.ok_or("a counter has one value, not below zero")?;
        let values = self.counters.entry((process, name.to_owned())).or_default();
        if values.last().is_some_and(|last| last.0 > at) {
            return Err("a counter goes back in time".to_owned());
        }
        values.push((at, value));
        Ok(())
    }

    fn complete(&self) -> Result<(), String> {
        for (track, slices) in &self.slices {
            if !self.names.contains_key(track) || !self.names.contains_key(&(track.0, 0)) {
                return Err(format!("{track:?} has no name"));
            }
            let mut open: Vec<&Slice> = Vec::new();
            for slice in slices {
                open.retain(|outer| outer.to > slice.from);
                if let Some(outer) = open.last().filter(|outer| outer.to < slice.to) {
                    return Err(format!("{track:?}: {slice:?} goes beyond {outer:?}"));
                }
                open.push(slice);
            }
        }
        if let Some((process, name)) = self
            .counters
            .keys()
            .find(|key| !self.names.contains_key(&(key.0, 0)))
        {
            return Err(format!("process {process} of {name} has no name"));
        }
        if self.open.values().any(|open| !open.is_empty()) {
            return Err("an I/O without an end".to_owned());
        }
        match self.begun.is_empty() {
            true => Ok(()),
            false => Err("an arrow without an end".to_owned()),
        }
    }
}
