//! Groups the records of a multipath target: the path and the time of each request.
//!
//! The verdict is in `order.rs`.

use blkmq::dm::table::{Table, bare_name};
use blkmq::dm::{Incoming, Mapped, PathId};
use blkmq::request::{CpuId, Status};
use blkmq::time::{Duration, SimTime};
use trace::blktrace::{Action, Categories, Device, Event};
use trace::capture::CaptureDir;

use super::bios::Bio;
use super::tags::Tags;
use super::{Atom, What};
use crate::{Error, dropped_records, event};

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
    /// Where its last C began, and where the next one does: up to 4.12 it has one for each bio.
    completed_sectors: [u64; 2],
    /// Its C, or the last of them.
    completed: Option<SimTime>,
}

impl Live {
    /// A C of so many bytes from where the last one ended.
    fn reports(&mut self, bytes: u32, now: SimTime) {
        let sectors = |bytes: u32| u64::from(bytes >> 9);
        let [_, from] = self.completed_sectors;
        self.completed_sectors = [from, from + sectors(bytes)];
        if self.completed_sectors[1] >= self.sector + sectors(self.bytes) {
            self.completed = Some(now);
        }
    }
}

/// Records of a target, taken together.
pub(super) struct Reading {
    pub(super) above: (String, Device),
    pub(super) paths: Vec<(String, Device)>,
    pub(super) tags: Tags,
    /// Of the first record.
    pub(super) genesis: SimTime,
    /// How far from its record something may have happened as others see it.
    pub(super) slack: Duration,
    live: Vec<Live>,
    /// For a bio-based target, in place of requests.
    pub(super) bios: Vec<Bio>,
    /// An event that is not followed.
    pub(super) not_followed: Option<&'static str>,
    pub(super) atoms: Vec<Atom>,
    /// Requests of paths that are no clones of requests above.
    pub(super) stray: u64,
}

/// Devices with records, and their numbers.
pub(super) fn traced(dir: &CaptureDir) -> Result<Vec<(String, Device)>, Error> {
    let mut traced = Vec::new();
    for device in &dir.devices {
        if !event::is_idle(dir, &device.name)? {
            let number = event::number_of(dir, &device.name)?;
            let number = Device::new(number.major, number.minor);
            traced.push((device.name.clone(), number));
        }
    }
    Ok(traced)
}

/// A device without records.
const NO_DEVICE: Device = Device(u32::MAX);

impl Reading {
    /// Of a table, whose device is `above`.
    pub(super) fn new(traced: &[(String, Device)], table: &Table, above: Option<&str>) -> Reading {
        let above = traced.iter().find(|(name, _)| Some(name.as_str()) == above);
        let paths = table.paths().map(|path| {
            let named = traced.iter().find(|(name, number)| {
                let number = format!("{}:{}", number.major(), number.minor());
                name == bare_name(&path.device) || number == path.device
            });
            // A path without records was unused.
            let unused = (path.device.clone(), NO_DEVICE);
            named.cloned().unwrap_or(unused)
        });
        Reading {
            // A device without records has made no choice.
            above: above.cloned().unwrap_or((String::new(), NO_DEVICE)),
            paths: paths.collect(),
            tags: Tags::default(),
            genesis: SimTime::ZERO,
            slack: Duration::ZERO,
            live: Vec::new(),
            bios: Vec::new(),
            not_followed: None,
            atoms: Vec::new(),
            stray: 0,
        }
    }

    /// With the device that its paths' first A names, if there is one.
    pub(super) fn with_device(
        mut self,
        dir: &CaptureDir,
        traced: &[(String, Device)],
    ) -> Result<Reading, Error> {
        let mut events = Vec::new();
        for (name, number) in &self.paths {
            if *number != NO_DEVICE {
                event::raw(dir, name, &mut events)?;
            }
        }
        let from = events.iter().find(|event| event.action == Action::Remap);
        let from = from.map(|event| event.from);
        let above = traced.iter().find(|(_, number)| Some(*number) == from);
        if let Some(above) = above {
            self.above = above.clone();
        }
        Ok(self)
    }

    /// The first path that the table has twice.
    pub(super) fn twice(&self) -> Option<&(String, Device)> {
        let mut paths = self.paths.iter().enumerate();
        let path = paths.find(|(index, path)| self.paths[..*index].contains(path));
        path.map(|(_, path)| path)
    }

    /// Something was asked of the target, which is none of its own paths.
    pub(super) fn has_requests(&self) -> bool {
        let some = !(self.atoms.is_empty() && self.live.is_empty() && self.bios.is_empty());
        some && !self.paths.contains(&self.above)
    }

    /// Why nothing is judged.
    pub(super) fn unjudged(&self, dir: &CaptureDir) -> Result<Option<String>, Error> {
        if let Some(why) = self.untraced(dir) {
            return Ok(Some(why));
        }
        for (name, _) in [&self.above].into_iter().chain(&self.paths) {
            if let Some(loss) = dropped_records::of_device(dir, name)?.first() {
                return Ok(Some(loss.clone()));
            }
        }
        let chosen = |atom: &Atom| matches!(atom.what, What::Map { path: Some(_), .. });
        Ok(match self.not_followed {
            Some(why) => Some(why.to_owned()),
            None if self.atoms.iter().any(chosen) => None,
            None => Some("no request came to a path of its table".to_owned()),
        })
    }

    /// A path is not among those with records, and may be a device that was not traced.
    fn untraced(&self, dir: &CaptureDir) -> Option<String> {
        let (path, _) = self.paths.iter().find(|(_, of)| *of == NO_DEVICE)?;
        let mut all = dir.devices.iter();
        let untraced = all.find(|device| device.blktrace.is_empty())?;
        let name = &untraced.name;
        Some(format!("its path {path} may be {name}, which has no trace"))
    }

    /// Records of all devices, each device's in order of time.
    pub(super) fn events(&self, dir: &CaptureDir) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for (name, _) in [&self.above].into_iter().chain(&self.paths) {
            if dir.devices.iter().any(|device| device.name == *name) {
                event::raw(dir, name, &mut events)?;
            }
        }
        // A request of a handler or a checker to a path (an INQUIRY, a TEST UNIT READY) is no
        // clone.
        events.retain(|event| !event.categories.any(Categories::PC));
        Ok(events)
    }

    pub(super) fn takes(&mut self, event: &Event) {
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
                completed_sectors: [event.sector; 2],
                completed: None,
            }),
            Action::Requeue => {
                // A request without a clone that was started where the R is, then one whose clone
                // has failed or was refused.
                let rank = |live: &Live| match live.path {
                    None => Some(u8::from(live.cpu != event.cpu) * 2),
                    Some(_) if live.refused || live.ended.is_some() => Some(1),
                    Some(_) => Some(3),
                };
                let rank = |live: &Live| at(live, event.sector).then(|| rank(live)).flatten();
                if let Some(index) = self.least(rank) {
                    self.is_over(index, event.time, true);
                }
            }
            Action::Complete if event.bytes > 0 => {
                let rank = |live: &Live| {
                    let next =
                        live.completed.is_none() && live.completed_sectors[1] == event.sector;
                    next.then_some(u8::from(live.ended.is_none()))
                };
                let Some(index) = self.least(rank) else {
                    return;
                };
                let live = &mut self.live[index];
                live.reports(event.bytes, event.time);
                if live.path.is_none() && event.error == 0 {
                    self.not_followed = Some(
                        "a request ended well without a clone: records of a path are missing, or \
                         one of its table is another device",
                    );
                }
                // A request that never had a clone has one C, and so has one that fails.
                let failed = live.ended.is_some_and(|(status, _)| status != Status::Ok);
                if live.path.is_none() || failed {
                    self.is_over(index, event.time, false);
                }
            }
            Action::Complete => {
                let rank = |live: &Live| {
                    let over = live.ended.is_some() && live.completed_sectors[0] == event.sector;
                    over.then_some(u8::from(live.completed.is_none()))
                };
                if let Some(index) = self.least(rank) {
                    self.is_over(index, event.time, false);
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

    pub(super) fn add_atom(&mut self, (after, before): (SimTime, SimTime), what: What) {
        self.atoms.push(Atom {
            after,
            before,
            what,
        });
    }

    /// The oldest of the requests with the least rank.
    fn least(&self, rank: impl Fn(&Live) -> Option<u8>) -> Option<usize> {
        let all = self.live.iter().enumerate();
        let ranked = all.filter_map(|(index, live)| Some((rank(live)?, index)));
        ranked.min().map(|(_, index)| index)
    }

    /// A request has left the target: its result.
    fn is_over(&mut self, index: usize, now: SimTime, again: bool) {
        let live = self.live.remove(index);
        let mapped_before = live.path.map_or(now, |(_, when)| when);
        let (atoms, slack) = (&mut self.atoms, self.slack);
        // Atoms that come after the choice stay after it.
        let mut add = |after: SimTime, before: SimTime, what| {
            let after = match after >= mapped_before {
                true => (mapped_before + slack).max(SimTime(after.0.saturating_sub(slack.0))),
                false => SimTime(after.0.saturating_sub(slack.0)),
            };
            atoms.push(Atom {
                after,
                before: before + slack,
                what,
            });
        };
        let cpu = CpuId(live.cpu as u16);
        let io = Incoming {
            bytes: live.bytes,
            cpu,
            now: live.started,
            bio: None,
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
                    over: now,
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
                    over: now,
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
pub(super) fn status_of(error: u16) -> Status {
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
