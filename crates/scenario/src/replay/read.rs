//! From blktrace files to [`Arrivals`].
//!
//! One pass over the events: the matcher follows bios from Q to C, `plugs.rs` the processes. Parts
//! that cannot be replayed are counted and reported, never dropped in silence.

use std::collections::BTreeMap;
use std::path::Path;

use blkmq::request::{IoClass, IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::{Duration, SimTime};
use trace::blktrace::{Action, Categories, Event, Options, Reader};
use trace::matching::{Io, Matcher};
use trace::processes::groups;

use super::plugs::{BioKey, Plugs, RawStep};
use sim::replay::{
    Arrival, Arrivals, Point, Services, Step, StepKind, Stream, Times, service_kind,
};

/// Why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Trace(#[from] trace::Error),
    #[error("{file}: {what}")]
    Empty {
        /// Its name as given.
        file: String,
        what: String,
    },
}

/// EAGAIN: the status of a nowait bio that would have to wait.
const EAGAIN: u16 = 11;

/// Priority of a task without one of its own: best effort 4.
const DEFAULT_PRIO: IoPrio = IoPrio {
    class: IoClass::BestEffort,
    level: 4,
};

/// Reads a capture: files, a directory or a common prefix, as `trace::blktrace::Reader` does.
pub fn read<P: AsRef<Path>>(
    paths: &[P],
    options: Options,
    point: Point,
) -> Result<Arrivals, ReadError> {
    let mut collected = collect(paths, options, point)?;
    let mut notes = core::mem::take(&mut collected.notes);
    let services = core::mem::take(&mut collected.device.services);
    let ios = arriving(collected.ios, point, &mut notes);
    let Some(first) = ios.first().and_then(|io| arrival_time(io, point)) else {
        let file = paths
            .first()
            .map_or_else(String::new, |p| p.as_ref().display().to_string());
        let what = match point {
            Point::Queue => "no Q event, so nothing arrives; --from D replays what was issued",
            Point::Issue => "no D event, so nothing arrives",
        };
        return Err(ReadError::Empty {
            file,
            what: what.to_string(),
        });
    };
    let base = SimTime(first.0 - first.0 % 1_000_000_000);
    let steps = match point {
        Point::Queue => collected.plugs.finish(collected.end),
        Point::Issue => issue_steps(&ios),
    };
    let keys: Vec<BioKey> = ios.iter().map(|io| key(io, point)).collect();
    let arrivals: Vec<Arrival> = ios.iter().map(|io| arrival(io, point, base)).collect();
    let streams = streams(&steps, &keys, &arrivals, base, &collected.names);
    let placed: usize = streams.iter().map(|stream| stream.submits as usize).sum();
    note(
        &mut notes,
        arrivals.len() - placed,
        "cannot be distinguished from another and is left out",
    );
    Ok(Arrivals {
        point,
        base,
        cpus: arrivals.iter().map(|a| a.cpu + 1).max().unwrap_or(1),
        streams,
        groups: groups(&[], [], None),
        ios: arrivals,
        services,
        device_depth: collected.device.most.max(1),
        write_cache: collected.device.write_cache,
        fua: collected.device.fua,
        notes,
    })
}

/// Adds a note about `count` I/Os.
fn note(notes: &mut Vec<String>, count: usize, what: &str) {
    if count > 0 {
        let ios = if count == 1 {
            "1 I/O".to_string()
        } else {
            format!("{count} I/Os")
        };
        notes.push(format!("{ios}: {what}"));
    }
}

/// A D: first sector, end, time.
type Issued = (u64, u64, SimTime);

/// Requests at the device: D, C and R.
#[derive(Default)]
struct DeviceSide {
    services: Services,
    /// Issued and not completed, by direction and first sector of what is left: D, oldest first.
    issued: BTreeMap<(u8, u64), Vec<Issued>>,
    now: u32,
    most: u32,
    write_cache: bool,
    fua: bool,
}

impl DeviceSide {
    fn add(&mut self, event: &Event) {
        if !event.categories.any(Categories::FS) {
            return;
        }
        let op = operation(event.categories, event.bytes);
        let key = (service_kind(op), event.sector);
        match event.action {
            Action::Issue => {
                let end = event.sector.saturating_add(u64::from(event.bytes >> 9));
                let issued = (event.sector, end, event.time);
                self.issued.entry(key).or_default().push(issued);
                self.now += 1;
                self.most = self.most.max(self.now);
                self.write_cache |= op == Op::Flush;
                self.fua |= op == Op::Write && event.categories.any(Categories::FUA);
            }
            Action::Complete | Action::Requeue => {
                let Some(waiting) = self.issued.get_mut(&key) else {
                    return;
                };
                let issued = waiting.remove(0);
                let (first, end, at) = issued;
                if waiting.is_empty() {
                    self.issued.remove(&key);
                }
                let upto = event.sector.saturating_add(u64::from(event.bytes >> 9));
                if event.action == Action::Complete && event.error == 0 && upto < end {
                    // A part of the request: the device goes on with the rest.
                    let rest = self.issued.entry((key.0, upto)).or_default();
                    rest.insert(0, issued);
                    return;
                }
                if event.action == Action::Complete {
                    self.services.add(op, (first, end), at, event.time);
                }
                self.now -= 1;
            }
            _ => {}
        }
    }
}

struct Collected {
    ios: Vec<Io>,
    plugs: Plugs,
    device: DeviceSide,
    names: BTreeMap<u32, String>,
    end: SimTime,
    notes: Vec<String>,
}

fn collect<P: AsRef<Path>>(
    paths: &[P],
    options: Options,
    point: Point,
) -> Result<Collected, trace::Error> {
    let strict = options.strict;
    let mut reader = Reader::open(paths, options)?;
    let mut matcher = Matcher::new();
    let (mut ios, mut plugs) = (Vec::new(), Plugs::default());
    let (mut device, mut end) = (DeviceSide::default(), SimTime::ZERO);
    let mut flushes = 0;
    while let Some(event) = reader.next()? {
        end = end.max(event.time);
        device.add(&event);
        plugs.add(&event);
        let issue_only = matches!(
            event.action,
            Action::Issue | Action::Complete | Action::Requeue
        );
        if point == Point::Queue || issue_only {
            ios.extend_from_slice(matcher.add(&event));
            flushes += usize::from(event.action == Action::Issue && event.bytes == 0);
        }
    }
    ios.extend(matcher.finish());
    device.services.finish();
    let mut warnings = reader.warnings().clone();
    if point == Point::Queue {
        warnings.merge(&matcher.warnings());
    }
    if strict {
        warnings.refuse(reader.files())?;
    }
    let pids = ios.iter().map(|io| io.pid);
    let names = pids.filter_map(|pid| Some((pid, reader.process_name(pid)?.to_string())));
    let rows = warnings.rows(reader.files());
    let mut notes = rows.iter().map(ToString::to_string).collect();
    if point == Point::Issue {
        note(
            &mut notes,
            flushes,
            "a flush of the flush machine, which is not replayed from D",
        );
    }
    Ok(Collected {
        names: names.collect(),
        ios,
        plugs,
        device,
        end,
        notes,
    })
}

/// I/Os that can be replayed, in the order of arrival; the rest is counted.
fn arriving(ios: Vec<Io>, point: Point, notes: &mut Vec<String>) -> Vec<Io> {
    let (mut again, mut unseen, mut unfinished) = (0, 0, 0);
    let mut kept = Vec::with_capacity(ios.len());
    for io in ios {
        if io.error == EAGAIN && io.issued.is_none() {
            again += 1;
        } else if arrival_time(&io, point).is_none() {
            unseen += 1;
        } else {
            unfinished += usize::from(io.completed.is_none());
            kept.push(io);
        }
    }
    note(
        notes,
        again,
        "turned away with EAGAIN; only the second submission is replayed",
    );
    let why = match point {
        Point::Queue => "the trace has no Q of it, so that it is not replayed",
        Point::Issue => "the trace has no D of it, so that it is not replayed",
    };
    note(notes, unseen, why);
    let what = "replayed, but without completion in the capture, so that its column lacks it";
    note(notes, unfinished, what);
    kept.sort_by_key(|io| (key(io, point), io.location));
    kept
}

fn arrival_time(io: &Io, point: Point) -> Option<SimTime> {
    match point {
        Point::Queue => io.queued,
        Point::Issue => io.issued,
    }
}

fn key(io: &Io, point: Point) -> BioKey {
    (
        arrival_time(io, point).unwrap_or(SimTime::NEVER),
        io.sector,
        io.pid,
    )
}

/// Operation of an event with data; without data it is a flush.
fn operation(categories: Categories, bytes: u32) -> Op {
    if bytes == 0 {
        Op::Flush
    } else if categories.any(Categories::DISCARD) {
        Op::Discard
    } else if categories.any(Categories::WRITE) {
        Op::Write
    } else {
        Op::Read
    }
}

fn arrival(io: &Io, point: Point, base: SimTime) -> Arrival {
    let has = |category| io.categories.any(category);
    let relative =
        |time: Option<SimTime>| time.map_or(SimTime::NEVER, |time| SimTime(time.since(base).0));
    let queued = arrival_time(io, point);
    Arrival {
        // The bio of an empty flush is a write with REQ_PREFLUSH.
        op: match operation(io.categories, io.bytes) {
            Op::Flush => Op::Write,
            op => op,
        },
        flags: OpFlags {
            sync: has(Categories::SYNC),
            meta: has(Categories::META),
            rahead: has(Categories::AHEAD),
            preflush: has(Categories::FLUSH),
            fua: has(Categories::FUA),
            ..OpFlags::default()
        },
        sector: Sector(io.sector),
        sectors: Sectors(io.bytes >> 9),
        ioprio: DEFAULT_PRIO,
        of_root: false,
        pid: io.pid,
        cpu: u16::try_from(io.cpu).unwrap_or(u16::MAX - 1),
        captured: Times {
            queued: relative(queued),
            issued: relative(io.issued),
            completed: relative(io.completed),
        },
    }
}

/// Without plugs: each process submits.
fn issue_steps(ios: &[Io]) -> Vec<(u32, Vec<RawStep>)> {
    let mut processes: Vec<(u32, Vec<RawStep>)> = Vec::new();
    let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
    for io in ios {
        let number = *numbers.entry(io.pid).or_insert(processes.len());
        if number == processes.len() {
            processes.push((io.pid, Vec::new()));
        }
        processes[number]
            .1
            .push(RawStep::Submit(key(io, Point::Issue), Duration::ZERO));
    }
    processes
}

fn streams(
    raw: &[(u32, Vec<RawStep>)],
    keys: &[BioKey],
    arrivals: &[Arrival],
    base: SimTime,
    names: &BTreeMap<u32, String>,
) -> Vec<Stream> {
    let mut placed = vec![false; arrivals.len()];
    let mut streams = Vec::new();
    for (pid, steps) in raw {
        let mut stream = Stream {
            pid: *pid,
            name: names.get(pid).cloned().unwrap_or_default(),
            group: 0,
            steps: Vec::with_capacity(steps.len()),
            submits: 0,
        };
        for step in steps {
            let (kind, at, busy) = match *step {
                RawStep::Plug(at) => (StepKind::Plug, at, Duration::ZERO),
                RawStep::Unplug(at, busy) => (StepKind::Unplug, at, busy),
                RawStep::Submit(wanted, busy) => {
                    let from = keys.partition_point(|key| *key < wanted);
                    let same = keys[from..]
                        .iter()
                        .take_while(|key| **key == wanted)
                        .count();
                    let Some(index) = (from..from + same).find(|&index| !placed[index]) else {
                        continue;
                    };
                    placed[index] = true;
                    stream.submits += 1;
                    (StepKind::Submit(index as u32), wanted.0, busy)
                }
            };
            let at = SimTime(at.since(base).0);
            stream.steps.push(Step {
                kind,
                at,
                busy,
                after: 0,
                think: Duration(at.0),
            });
        }
        if stream.submits > 0 {
            waits(&mut stream, arrivals);
            streams.push(stream);
        }
    }
    streams
}

/// The completions that each step of a process waited for: those of the process until then.
fn waits(stream: &mut Stream, arrivals: &[Arrival]) {
    let submitted = stream.steps.iter().filter_map(|step| match step.kind {
        StepKind::Submit(index) => Some(arrivals[index as usize].captured.completed),
        StepKind::Plug | StepKind::Unplug => None,
    });
    let mut done: Vec<SimTime> = submitted.filter(|done| *done != SimTime::NEVER).collect();
    done.sort_unstable();
    let mut count = 0;
    for step in &mut stream.steps {
        while done.get(count).is_some_and(|done| *done <= step.at) {
            count += 1;
        }
        step.after = count as u32;
        if let Some(last) = count.checked_sub(1) {
            step.think = step.at.since(done[last]);
        }
    }
}
