//! Does a multipath target choose the paths that a kernel chose?
//!
//! Read off the binary traces of the stacked device and of its paths: a request is mapped between
//! its D there and the A by which its clone comes to a path; without an A its path had no tag. A
//! path with a scheduler gives the clone its tag between A and D. The selector hears of the clone's
//! end between the two C of the request above, or before its R. Not here: in which order these
//! happened (`order.rs`), tags (`tags.rs`), dispatches (`records.rs`, `calls.rs`).
//! Kernel: map_request(), dm_done() in drivers/md/dm-rq.c (6.1.192).

mod order;
mod tags;

use blkmq::dm::multipath::Multipath;
use blkmq::dm::table::Table;
use blkmq::dm::{Incoming, Mapped, PathId};
use blkmq::request::{CpuId, Status};
use blkmq::time::SimTime;
use trace::blktrace::{Action, Device, Event};
use trace::capture::CaptureDir;

use order::{Did, Judged, Wrong};
use tags::Tags;

use super::judge::Judge;
use super::setup::Setup;
use super::verdict::{ChoiceVerdict, Divergence};
use super::{Error, Options, event, name_of};

/// Something that happened to the target between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Atom {
    /// The record before it.
    pub(super) after: SimTime,
    /// The record behind it.
    pub(super) before: SimTime,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A path was chosen; none: the request came back without a clone, or was ended.
    Map { io: Incoming, path: Option<PathId> },
    /// The selector counts the clone: what the atom before has chosen.
    Start { mapped: Mapped },
    /// A clone of a path with a scheduler has a driver tag.
    Tag { path: PathId, cpu: CpuId },
    /// A clone was given up, for want of a tag or for another reason.
    Undo {
        mapped: Mapped,
        started: SimTime,
        cpu: CpuId,
        no_tag: bool,
    },
    /// A clone ended, and its request was tried again or not.
    End {
        mapped: Mapped,
        started: SimTime,
        cpu: CpuId,
        status: Status,
        again: bool,
    },
}

impl What {
    /// What comes of it hangs on what has happened before.
    fn decides(self) -> bool {
        match self {
            What::Map { .. } | What::Tag { .. } => true,
            What::Undo { no_tag, .. } => no_tag,
            What::End { status, .. } => status != Status::Ok,
            What::Start { .. } => false,
        }
    }
}

/// A request of the stacked device that was started and has not come back.
#[derive(Clone, Copy, Debug)]
struct Live {
    sector: u64,
    bytes: u32,
    cpu: u32,
    started: SimTime,
    /// Its path, and when its clone came there.
    path: Option<(PathId, SimTime)>,
    /// When the clone was with the path's driver; zero if it never was.
    issued: SimTime,
    /// The path's driver had no room for it.
    refused: bool,
    /// How the clone ended, and when.
    ended: Option<(Status, SimTime)>,
    /// The first C of the request.
    completed: Option<SimTime>,
}

/// Judges all choices of the target of a capture, if one is there (`stacked`), and what became of
/// its clones. Its device is the first that was read.
pub(super) fn judge(
    dir: &CaptureDir,
    (setups, options): (&[Setup], &Options),
    stacked: bool,
    judge: &mut Judge,
) -> Result<(), Error> {
    let Some(above) = setups.first().filter(|_| stacked) else {
        return Ok(());
    };
    let [line] = &dir.meta.dm_tables[..] else {
        judge.note("meta.txt has several tables: which device has which is not told");
        return Ok(());
    };
    if line.split_whitespace().nth(2) != Some("multipath") {
        judge.note("meta.txt: the table is of no multipath target");
        return Ok(());
    }
    let unfit = |what| Error::Unfit {
        capture: name_of(dir),
        what: format!("meta.txt: dm: {what}"),
    };
    let cpus = usize::from(dir.meta.cpus);
    let rules = &above.rules.device_mapper;
    let table = Table::parse(line, rules, cpus).map_err(unfit)?;
    let mut reading = Reading::new(dir, &above.device, &table)?;
    reading.tags = tags_of(dir, options, (above, &reading.paths))?;
    let mut events = reading.events(dir)?;
    events.sort_by_key(|event| event.time);
    for event in &events {
        if event.cpu as usize >= cpus {
            return Err(unfit(format!("a record of CPU {} of {cpus}", event.cpu)));
        }
        reading.takes(event);
    }
    // Another device than the target's chooses nothing.
    if reading.atoms.is_empty() {
        return Ok(());
    }
    let target = Multipath::new(&table, *rules, &vec![0; cpus], 0);
    let told = order::explain(target, &reading.tags, &reading.atoms);
    let genesis = events.first().map_or(SimTime::ZERO, |event| event.time);
    let verdict = |judged: &Judged| {
        let first = judged.wrong.first();
        let first = first.map(|wrong| divergence(wrong, &above.device, (&table, genesis)));
        ChoiceVerdict {
            total: judged.total,
            predicted: judged.total - judged.wrong.len() as u64,
            open: judged.open,
            first_divergence: first,
        }
    };
    judge.choices(verdict(&told.choices));
    let mut clones = verdict(&told.clones);
    clones.total += reading.stray;
    judge.clones(clones);
    if reading.stray > 0 {
        judge.note("a path has requests that are no clones of what is above");
    }
    if told.reinstated > 0 {
        judge.takes(vec![format!(
            "{}: a path that had failed was reinstated before it was chosen again ({} times)",
            above.device, told.reinstated
        )]);
    }
    Ok(())
}

/// Tags of the paths. None if what is told of a path cannot be read.
fn tags_of(
    dir: &CaptureDir,
    options: &Options,
    (above, paths): (&Setup, &[(String, Device)]),
) -> Result<Tags, Error> {
    let mut setups = Vec::new();
    for (name, _) in paths {
        let Some(traced) = dir.devices.iter().find(|device| device.name == *name) else {
            return Ok(Tags::default());
        };
        let setup = Setup::read(dir, &traced.name, options, above.hz)?;
        setups.push((name.clone(), setup));
    }
    Ok(Tags::of(dir, &setups))
}

fn divergence(wrong: &Wrong, above: &str, (table, genesis): (&Table, SimTime)) -> Divergence {
    let device = |path: PathId| match table.paths().nth(path.index()) {
        Some(path) => path.device.clone(),
        None => path.0.to_string(),
    };
    let text = |did: Did| match did {
        Did::Goes(path) => device(path),
        Did::Tag(path) => format!("a clone on {} has a tag", device(path)),
        Did::NoTag(path) => format!("no tag on {}, the request comes back", device(path)),
        Did::Back => "it comes back".to_owned(),
        Did::Over => "it ends".to_owned(),
    };
    Divergence {
        index: wrong.index,
        device: above.to_owned(),
        time: SimTime(wrong.time.since(genesis).0),
        kernel: text(wrong.kernel),
        model: text(wrong.model),
        text: format!(
            "status after the model's choice: {}",
            wrong.target.status(table)
        ),
    }
}

/// Records of a target, taken together.
struct Reading {
    above: (String, Device),
    paths: Vec<(String, Device)>,
    tags: Tags,
    live: Vec<Live>,
    atoms: Vec<Atom>,
    /// Requests of paths that are no clones of what is above.
    stray: u64,
}

impl Reading {
    fn new(dir: &CaptureDir, above: &str, table: &Table) -> Result<Reading, Error> {
        let mut traced = Vec::new();
        for device in &dir.devices {
            if !event::is_idle(dir, &device.name)? {
                let number = event::number_of(dir, &device.name)?;
                let number = Device::new(number.major, number.minor);
                traced.push((device.name.clone(), number));
            }
        }
        let above = traced.iter().find(|(name, _)| name == above).cloned();
        // A device without records has made no choice.
        let above = above.unwrap_or((String::new(), Device(u32::MAX)));
        let mut paths = Vec::new();
        for path in table.paths() {
            let named = traced.iter().find(|(name, number)| {
                let number = format!("{}:{}", number.major(), number.minor());
                *name == path.device || number == path.device
            });
            // One without records had nothing to do.
            let unused = (path.device.clone(), Device(u32::MAX));
            paths.push(named.cloned().unwrap_or(unused));
        }
        Ok(Reading {
            above,
            paths,
            tags: Tags::default(),
            live: Vec::new(),
            atoms: Vec::new(),
            stray: 0,
        })
    }

    /// Records of all devices, each device's in order of time.
    fn events(&self, dir: &CaptureDir) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for (name, _) in [&self.above].into_iter().chain(&self.paths) {
            if dir.devices.iter().any(|device| device.name == *name) {
                event::raw(dir, name, &mut events)?;
            }
        }
        Ok(events)
    }

    fn takes(&mut self, event: &Event) {
        if event.device == self.above.1 {
            return self.takes_above(event);
        }
        let path = self.paths.iter().position(|(_, of)| *of == event.device);
        if let Some(path) = path {
            self.takes_below(event, PathId(path as u16));
        }
    }

    fn takes_above(&mut self, event: &Event) {
        match event.action {
            Action::Issue => self.live.push(Live {
                sector: event.sector,
                bytes: event.bytes,
                cpu: event.cpu,
                started: event.time,
                path: None,
                issued: SimTime::ZERO,
                refused: false,
                ended: None,
                completed: None,
            }),
            Action::Requeue => {
                if let Some(live) = self.take(|live| live.sector == event.sector) {
                    self.is_over(&live, event.time, true);
                }
            }
            Action::Complete if event.bytes > 0 => {
                let first = |live: &&mut Live| live.completed.is_none() && at(live, event.sector);
                let live = self.live.iter_mut().find(first);
                if let Some(live) = live {
                    live.completed = Some(event.time);
                    // A request that never had a clone has one C, and so has one that fails.
                    let failed = live.ended.is_some_and(|(status, _)| status != Status::Ok);
                    if live.path.is_none() || failed {
                        let over = self.take(|live| at(live, event.sector));
                        self.is_over(&over.expect("it was found"), event.time, false);
                    }
                }
            }
            Action::Complete => {
                let over = |live: &Live| live.ended.is_some() && at(live, event.sector);
                if let Some(live) = self.take(over) {
                    self.is_over(&live, event.time, false);
                }
            }
            _ => {}
        }
    }

    fn takes_below(&mut self, event: &Event, path: PathId) {
        let of_path = |live: &&mut Live| live.path.is_some_and(|(of, _)| of == path);
        let mut live = self.live.iter_mut();
        match event.action {
            Action::Remap if event.from == self.above.1 => {
                let new = |live: &&mut Live| live.path.is_none() && at(live, event.extra);
                if let Some(live) = live.find(|live| new(live) && live.cpu == event.cpu) {
                    live.path = Some((path, event.time));
                }
            }
            Action::Issue => {
                let new = |live: &&mut Live| of_path(live) && live.issued == SimTime::ZERO;
                match live.find(|live| new(live) && is(live, event)) {
                    Some(live) => live.issued = event.time,
                    None => self.stray += 1,
                }
            }
            Action::Requeue => {
                let with_driver = |live: &&mut Live| of_path(live) && live.issued > SimTime::ZERO;
                if let Some(live) = live.find(|live| with_driver(live) && is(live, event)) {
                    live.refused = true;
                }
            }
            Action::Complete => {
                let running = |live: &&mut Live| live.ended.is_none() && at(live, event.sector);
                if let Some(live) = live.find(|live| of_path(live) && running(live)) {
                    live.ended = Some((status_of(event.error), event.time));
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, which: impl Fn(&Live) -> bool) -> Option<Live> {
        let index = self.live.iter().position(which)?;
        Some(self.live.remove(index))
    }

    /// A request is not with the target any more: what has happened to it.
    fn is_over(&mut self, live: &Live, now: SimTime, again: bool) {
        let mapped_before = live.path.map_or(now, |(_, when)| when);
        let atoms = &mut self.atoms;
        let mut add = |after, before, what| {
            atoms.push(Atom {
                after,
                before,
                what,
            });
        };
        let cpu = CpuId(live.cpu as u16);
        let io = Incoming {
            bytes: live.bytes,
            cpu,
            now: live.started,
        };
        let path = live.path.map(|(path, _)| path);
        add(live.started, mapped_before, What::Map { io, path });
        let Some((path, when)) = live.path else {
            return;
        };
        let mapped = Mapped {
            path,
            bytes: live.bytes,
        };
        add(live.started, mapped_before, What::Start { mapped });
        let started = live.issued;
        let was_issued = started > SimTime::ZERO;
        let late_tag = !self.tags.with_request(path);
        if was_issued && late_tag {
            add(when, started, What::Tag { path, cpu });
        }
        match live.ended {
            Some((status, ended)) => {
                let after = live.completed.filter(|_| status == Status::Ok);
                let what = What::End {
                    mapped,
                    started,
                    cpu,
                    status,
                    again,
                };
                add(after.unwrap_or(ended), now, what);
            }
            None => {
                let what = What::Undo {
                    mapped,
                    started,
                    cpu,
                    no_tag: late_tag && !was_issued,
                };
                add(if was_issued { started } else { when }, now, what);
            }
        }
    }
}

/// The target begins with the first sector of its paths; a clone is as long as its request.
fn is(live: &Live, event: &Event) -> bool {
    at(live, event.sector) && live.bytes == event.bytes
}

/// The target begins with the first sector of its paths.
fn at(live: &Live, sector: u64) -> bool {
    live.sector == sector
}

/// blk_status_to_errno(), the other way round.
fn status_of(error: u16) -> Status {
    let all = [
        Status::Ok,
        Status::Timeout,
        Status::Again,
        Status::NotSupported,
        Status::Resource,
        Status::Transport,
        Status::Target,
        Status::Nexus,
        Status::Medium,
        Status::Protection,
        Status::NoSpace,
    ];
    let known = all.into_iter().find(|status| status.errno() == error);
    known.unwrap_or(Status::IoError)
}

#[cfg(test)]
mod tests;
