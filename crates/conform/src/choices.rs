//! Does a multipath target choose the paths that a kernel chose?
//!
//! Read off the binary traces of the stacked device and of its paths: a request is mapped between
//! its D there and the A by which its clone comes to a path; without an A its path had no tag. The
//! selector hears of the clone's end between the two C of the request above, or before its R. Not
//! here: in which order these happened (`order.rs`), dispatches (`records.rs`, `calls.rs`).
//! Kernel: map_request(), dm_done() in drivers/md/dm-rq.c (6.1.192).

mod order;

use blkmq::dm::multipath::Multipath;
use blkmq::dm::table::Table;
use blkmq::dm::{Incoming, Mapped, Mapping, PathId};
use blkmq::request::{CpuId, Status};
use blkmq::rules::DeviceMapper;
use blkmq::time::SimTime;
use trace::blktrace::{Action, Device, Event};
use trace::capture::CaptureDir;

use super::judge::Judge;
use super::setup::Setup;
use super::verdict::{ChoiceVerdict, Divergence};
use super::{Error, event, name_of};

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
    /// A clone was given up.
    Undo { mapped: Mapped, started: SimTime },
    /// A clone ended.
    End {
        mapped: Mapped,
        started: SimTime,
        status: Status,
    },
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
    /// How the clone ended, and when.
    ended: Option<(Status, SimTime)>,
    /// The first C of the request.
    completed: Option<SimTime>,
}

/// Judges all choices of the target of a capture, if one is there (`stacked`). Its device is the
/// first that was read.
pub(super) fn judge(
    dir: &CaptureDir,
    setups: &[Setup],
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
    let choices = of_target(dir, &above.device, &above.rules.device_mapper, line)?;
    // Another device than the target's chooses nothing.
    if choices.total > 0 {
        judge.choices(choices);
    }
    Ok(())
}

fn of_target(
    dir: &CaptureDir,
    above: &str,
    rules: &DeviceMapper,
    line: &str,
) -> Result<ChoiceVerdict, Error> {
    let unfit = |what| Error::Unfit {
        capture: name_of(dir),
        what: format!("meta.txt: dm: {what}"),
    };
    let cpus = usize::from(dir.meta.cpus);
    let table = Table::parse(line, rules, cpus).map_err(unfit)?;
    let mut reading = Reading::new(dir, above, &table)?;
    let mut events = reading.events(dir)?;
    events.sort_by_key(|event| event.time);
    for event in &events {
        if event.cpu as usize >= cpus {
            return Err(unfit(format!("a record of CPU {} of {cpus}", event.cpu)));
        }
        reading.takes(event);
    }
    let target = Multipath::new(&table, *rules, &vec![0; cpus], 0);
    let told = order::explain(target, &reading.atoms);
    let device = |path: PathId| match table.paths().nth(path.index()) {
        Some(path) => path.device.clone(),
        None => path.0.to_string(),
    };
    let genesis = events.first().map_or(SimTime::ZERO, |event| event.time);
    let first = told.wrong.first().map(|wrong| Divergence {
        index: wrong.index,
        device: above.to_owned(),
        time: SimTime(wrong.time.since(genesis).0),
        kernel: device(wrong.kernel),
        model: match wrong.model {
            Mapping::To(mapped) => device(mapped.path),
            Mapping::Requeue | Mapping::DelayRequeue => "it comes back".to_owned(),
            Mapping::Kill(status) => format!("it ends: {status:?}"),
        },
        text: format!(
            "status after the model's choice: {}",
            wrong.target.status(&table)
        ),
    });
    Ok(ChoiceVerdict {
        total: told.total,
        predicted: told.total - told.wrong.len() as u64,
        open: told.open,
        first_divergence: first,
    })
}

/// Records of a target, taken together.
struct Reading {
    above: (String, Device),
    paths: Vec<(String, Device)>,
    live: Vec<Live>,
    atoms: Vec<Atom>,
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
            live: Vec::new(),
            atoms: Vec::new(),
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
                ended: None,
                completed: None,
            }),
            Action::Requeue => {
                if let Some(live) = self.take(|live| live.sector == event.sector) {
                    self.comes_back(&live, event.time);
                }
            }
            Action::Complete if event.bytes > 0 => {
                let first = |live: &&mut Live| live.completed.is_none() && at(live, event.sector);
                let live = self.live.iter_mut().find(first);
                if let Some(live) = live {
                    live.completed = Some(event.time);
                    // A request that never had a clone has one C.
                    if live.path.is_none() {
                        let killed = self.take(|live| at(live, event.sector));
                        self.comes_back(&killed.expect("it was found"), event.time);
                    }
                }
            }
            Action::Complete => {
                let over = |live: &Live| live.ended.is_some() && at(live, event.sector);
                if let Some(live) = self.take(over) {
                    self.comes_back(&live, event.time);
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
                if let Some(live) = live.find(|live| of_path(live) && at(live, event.sector)) {
                    live.issued = event.time;
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
    fn comes_back(&mut self, live: &Live, now: SimTime) {
        let mapped_before = live.path.map_or(now, |(_, when)| when);
        let mut add = |after, before, what| {
            self.atoms.push(Atom {
                after,
                before,
                what,
            });
        };
        let io = Incoming {
            bytes: live.bytes,
            cpu: CpuId(live.cpu as u16),
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
        let started = live.issued;
        match live.ended {
            Some((status, ended)) => {
                let after = live.completed.unwrap_or(ended);
                let what = What::End {
                    mapped,
                    started,
                    status,
                };
                add(after, now, what);
            }
            None => add(when, now, What::Undo { mapped, started }),
        }
    }
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
