//! From blktrace files to [`Arrivals`].
//!
//! One pass over the events: the matcher follows bios from Q to C, `plugs.rs` the processes. Parts
//! that cannot be replayed are counted and reported, never dropped in silence.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::path::Path;

use blkmq::request::{IoClass, IoPrio, Op, OpFlags, Sector, Sectors};
use blkmq::time::{Duration, SimTime};
use trace::blktrace::{Action, Categories, Device, DeviceChoice, Event, Options, Reader};
use trace::matching::{Io, Matcher};
use trace::processes::groups;

use super::plugs::{BioKey, Plugs, RawStep};
use sim::plan::ServiceKind;
use sim::replay::{Arrival, Arrivals, CapturedDisk, Point, Step, StepKind, Stream, Times};

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
/// `together`: names of the devices that are replayed together; none: there is one.
pub fn read<P: AsRef<Path>>(
    paths: &[P],
    mut options: Options,
    point: Point,
    together: &[&str],
) -> Result<Arrivals, ReadError> {
    if !together.is_empty() {
        options.device = DeviceChoice::All;
    }
    let mut collected = collect(paths, options, point, together)?;
    let mut notes = core::mem::take(&mut collected.notes);
    let numbers = core::mem::take(&mut collected.numbers);
    let ios = arriving(collected.ios, point, &mut notes);
    let Some(first) = ios.first().and_then(|io| arrival_time(io, point)) else {
        let file = paths
            .first()
            .map_or_else(String::new, |p| p.as_ref().display().to_string());
        let what = match point {
            Point::Queue => "no Q event, so nothing arrives; `replay --from D` has what was issued",
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
    let arrivals = ios.iter().map(|io| Arrival {
        disk: numbers[&io.device],
        ..arrival(io, point, base)
    });
    let arrivals: Vec<Arrival> = arrivals.collect();
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
        disks: collected.disks.into_iter().map(|of| of.disk).collect(),
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

/// A D: first sector, end, time, and the requests that the device had with it.
type Issued = (u64, u64, SimTime, u32);

/// Requests at the device: D, C and R.
#[derive(Default)]
struct DeviceSide {
    disk: CapturedDisk,
    /// Issued and not completed, by direction and first sector of what is left: D, oldest first.
    issued: BTreeMap<(ServiceKind, u64), Vec<Issued>>,
    now: u32,
}

impl DeviceSide {
    fn add(&mut self, event: &Event) {
        if !event.categories.any(Categories::FS) {
            return;
        }
        let op = operation(event.categories, event.bytes);
        let key = (ServiceKind::of(op), event.sector);
        match event.action {
            Action::Issue => {
                let end = event.sector.saturating_add(u64::from(event.bytes >> 9));
                self.now += 1;
                let issued = (event.sector, end, event.time, self.now);
                self.issued.entry(key).or_default().push(issued);
                self.disk.depth = self.disk.depth.max(self.now);
                self.disk.write_cache |= op == Op::Flush;
                self.disk.fua |= op == Op::Write && event.categories.any(Categories::FUA);
            }
            Action::Complete | Action::Requeue => {
                let Some(waiting) = self.issued.get_mut(&key) else {
                    return;
                };
                let issued = waiting.remove(0);
                let (first, end, at, depth) = issued;
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
                    let services = &mut self.disk.services;
                    services.add(op, (first, end), (at, event.time), depth);
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
    disks: Vec<DeviceSide>,
    /// Place in `disks` of each device.
    numbers: BTreeMap<Device, u16>,
    names: BTreeMap<u32, String>,
    end: SimTime,
    notes: Vec<String>,
}

fn collect<P: AsRef<Path>>(
    paths: &[P],
    options: Options,
    point: Point,
    together: &[&str],
) -> Result<Collected, trace::Error> {
    let strict = options.strict;
    let mut reader = Reader::open(paths, options)?;
    let mut matcher = Matcher::new();
    let (mut ios, mut plugs) = (Vec::new(), Plugs::default());
    let mut disks = Vec::new();
    disks.resize_with(together.len().max(1), DeviceSide::default);
    let (mut numbers, mut end) = (BTreeMap::new(), SimTime::ZERO);
    let mut flushes = 0;
    while let Some(event) = reader.next()? {
        end = end.max(event.time);
        let number = *numbers.entry(event.device).or_insert_with(|| {
            let file = reader.files()[event.location.file()].file_name();
            let named = |name: &&str| file.is_some_and(|file| is_of_device(file, name));
            together.iter().position(named).unwrap_or(0) as u16
        });
        disks[usize::from(number)].add(&event);
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
    for (number, of) in (0..).zip(&mut disks) {
        of.disk.services.finish();
        of.disk.depth = of.disk.depth.max(1);
        of.disk.requests = most_requests(ios.iter().filter(|io| numbers[&io.device] == number));
    }
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
    let mut notes: Vec<String> = rows.iter().map(ToString::to_string).collect();
    notes.extend(reader.lacks().iter().cloned());
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
        disks,
        numbers,
        end,
        notes,
    })
}

/// The most requests that were allocated at once: from G to C.
fn most_requests<'a>(ios: impl Iterator<Item = &'a Io>) -> u32 {
    let of = |io: &Io| Some([(io.got_request?, 1), (io.completed?, -1)]);
    let mut changes: Vec<(SimTime, i64)> = ios.filter_map(of).flatten().collect();
    changes.sort_unstable();
    let mut now = 0;
    let after = changes.into_iter().map(|(_, change)| {
        now += change;
        now
    });
    after.max().unwrap_or(0) as u32
}

/// Whether a file is one of `<device>.blktrace.<cpu>`.
fn is_of_device(file: &OsStr, device: &str) -> bool {
    let rest = file.to_str().and_then(|file| file.strip_prefix(device));
    rest.is_some_and(|rest| rest.starts_with(".blktrace."))
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
        disk: 0,
        got: relative(io.got_request),
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
            ring: 0,
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
            streams.push(stream);
        }
    }
    rings(&mut streams);
    waits(&mut streams, arrivals);
    streams
}

/// An I/O worker of io_uring has the name `iou-wrk-PID`: it submits what its ring's task wanted.
fn rings(streams: &mut [Stream]) {
    for index in 0..streams.len() {
        let task = streams[index].name.strip_prefix("iou-wrk-");
        let pid: Option<u32> = task.and_then(|pid| pid.parse().ok());
        let of = pid.and_then(|pid| streams.iter().position(|stream| stream.pid == pid));
        streams[index].ring = of.unwrap_or(index) as u32;
    }
}

/// A step among those of its ring: when its I/O or those of its plug are all submitted, the step's
/// own time, its stream and its place there.
type RingStep = (SimTime, SimTime, usize, usize);

/// The completions that each step of a process waited for, and its think time since the last of
/// them.
///
/// A process that keeps several I/Os in flight waits for room, not for all that it has seen end:
/// its depth is the most it had in flight near that step. I/Os of one plug are submitted together,
/// so room for all of them is needed. A ring has one depth with its workers.
fn waits(streams: &mut [Stream], arrivals: &[Arrival]) {
    for ring in 0..streams.len() as u32 {
        let mut steps: Vec<RingStep> = Vec::new();
        let (mut submitted, mut done) = (Vec::new(), Vec::new());
        let members = streams.iter().enumerate().filter(|(_, of)| of.ring == ring);
        for (index, stream) in members {
            let together = plugged_until(&stream.steps);
            for (place, (step, until)) in stream.steps.iter().zip(together).enumerate() {
                steps.push((until, step.at, index, place));
                if let StepKind::Submit(io) = step.kind {
                    submitted.push(step.at);
                    done.push(arrivals[io as usize].captured.completed);
                }
            }
        }
        done.retain(|done| *done != SimTime::NEVER);
        done.sort_unstable();
        submitted.sort_unstable();
        let until = |times: &[SimTime], at: SimTime| times.partition_point(|time| *time <= at);
        let in_flight =
            |(index, at): (usize, &SimTime)| (index + 1).saturating_sub(until(&done, *at));
        let depths = depths(
            &submitted
                .iter()
                .enumerate()
                .map(in_flight)
                .collect::<Vec<usize>>(),
        );
        for (together, at, index, place) in steps {
            let end = until(&submitted, together);
            let depth = end.checked_sub(1).map_or(1, |last| depths[last]);
            let count = until(&done, at).min(end.saturating_sub(depth));
            streams[index].steps[place].after = count as u32;
            if let Some(last) = count.checked_sub(1) {
                let blocked = blocked_since(done[last], &streams[index].steps[..place], arrivals);
                streams[index].steps[place].think = at.since(done[last] + blocked);
            }
        }
    }
}

/// How long a process with these steps waited for requests, Q to G, since a time.
fn blocked_since(time: SimTime, steps: &[Step], arrivals: &[Arrival]) -> Duration {
    // The last I/O before that time may have waited until after it. A step of its plug may follow.
    let from = steps.partition_point(|step| step.at <= time);
    let waited = steps[from.saturating_sub(2)..].iter().map(|step| {
        let StepKind::Submit(io) = step.kind else {
            return 0;
        };
        match arrivals[io as usize].got {
            SimTime::NEVER => 0,
            got => got.since(step.at.max(time)).0,
        }
    });
    Duration(waited.sum())
}

/// For each step: when the last I/O of its plug is submitted.
fn plugged_until(steps: &[Step]) -> Vec<SimTime> {
    let mut until: Vec<SimTime> = steps.iter().map(|step| step.at).collect();
    let (mut from, mut plugged, mut last) = (0, false, SimTime::ZERO);
    for (index, step) in steps.iter().enumerate() {
        match step.kind {
            StepKind::Submit(_) => last = step.at,
            StepKind::Plug => (plugged, from) = (true, index),
            StepKind::Unplug => plugged = false,
        }
        if plugged {
            until[from..=index].fill(last.max(steps[from].at));
        }
    }
    until
}

/// The depth of a ring at each submission, of what was in flight after it: the most among twice as
/// many submissions before and after as there ever were in flight.
fn depths(in_flight: &[usize]) -> Vec<usize> {
    let reach = 2 * in_flight.iter().copied().max().unwrap_or(1);
    let mut depths = Vec::with_capacity(in_flight.len());
    // Places whose value is above those of all later ones within reach.
    let mut highest: VecDeque<usize> = VecDeque::new();
    let mut next = 0;
    for index in 0..in_flight.len() {
        while next < in_flight.len().min(index + reach + 1) {
            while highest
                .pop_back_if(|last| in_flight[*last] <= in_flight[next])
                .is_some()
            {}
            highest.push_back(next);
            next += 1;
        }
        while highest
            .pop_front_if(|first| *first + reach < index)
            .is_some()
        {}
        depths.push(in_flight[highest[0]]);
    }
    depths
}
