//! The arm: which command it serves next, how long that takes, and how far the drive reads ahead
//! afterwards.

use super::geometry::{Geometry, Spot};
use super::segments::Segments;
use crate::plan::{AhciPlan, NcqOrder};
use blkmq::request::{Op, RequestId, Sector};
use blkmq::time::SimTime;

/// Turns after which an overtaken command is served first: some half a second at 7200 a minute. An
/// assumption; without a bound the shortest way first starves distant commands.
const PATIENCE: u64 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    Read(RequestId),
    /// A command writes through the cache.
    Write(RequestId),
    /// Sectors of the write cache go to the platters.
    Destage,
}

impl Task {
    pub(super) fn of(op: Op, rq: RequestId) -> Task {
        match op {
            Op::Read => Task::Read(rq),
            _ => Task::Write(rq),
        }
    }

    pub(super) fn request(self) -> Option<RequestId> {
        match self {
            Task::Read(rq) | Task::Write(rq) => Some(rq),
            Task::Destage => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiting {
    pub(super) task: Task,
    pub(super) sector: Sector,
    pub(super) end: Sector,
    pub(super) since: SimTime,
    /// When the drive has decoded the command.
    pub(super) ready: SimTime,
}

/// The drive reads ahead, into a segment.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    segment: usize,
    /// The next sector at `at`.
    next: Sector,
    at: SimTime,
    limit: Sector,
}

/// The arm and the commands that wait for it.
#[derive(Debug)]
pub(super) struct Arm {
    // Settings.
    geometry: Geometry,
    order: NcqOrder,

    // State.
    segments: Segments,
    queue: Vec<Waiting>,
    /// Extents of the write cache, oldest first.
    dirty: Vec<Waiting>,
    current: Option<Waiting>,
    /// Position of the arm, unless the drive reads ahead.
    spot: Spot,
    ahead: Option<Ahead>,
}

impl Arm {
    /// At the outside, with room for so many commands.
    pub(super) fn new(plan: &AhciPlan, slots: usize) -> Arm {
        let geometry = Geometry::new(plan);
        Arm {
            spot: geometry.locate(Sector(0)),
            order: plan.order,
            segments: Segments::new(plan.segments, plan.segment_sectors),
            queue: Vec::with_capacity(slots),
            // An extent has a sector at least.
            dirty: Vec::with_capacity(plan.write_cache_sectors as usize),
            current: None,
            ahead: None,
            geometry,
        }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn add(&mut self, waiting: Waiting) {
        self.queue.push(waiting);
    }

    /// Adds sectors of the write cache; they join the newest extent where that ends.
    pub(super) fn add_dirty(&mut self, sector: Sector, end: Sector, now: SimTime) {
        match self.dirty.last_mut() {
            Some(last) if last.end == sector => last.end = end,
            _ => self.dirty.push(Waiting {
                task: Task::Destage,
                sector,
                end,
                since: now,
                ready: now,
            }),
        }
    }

    /// Sectors were written: the read cache drops them.
    pub(super) fn forget(&mut self, sector: Sector, end: Sector, now: SimTime) {
        if !self.is_busy() {
            self.stop(now);
        }
        self.segments.forget(sector, end);
    }

    /// How far the drive has read ahead by `now`, and whether it still does.
    fn come_to(&self, now: SimTime) -> Option<(Sector, bool)> {
        let ahead = self.ahead?;
        let (sector, _) = self
            .geometry
            .comes_to(ahead.next, ahead.limit, ahead.at, now);
        Some((sector, sector < ahead.limit))
    }

    /// The drive stops reading ahead: the arm is needed.
    fn stop(&mut self, now: SimTime) {
        if let Some((sector, _)) = self.come_to(now)
            && let Some(ahead) = self.ahead.take()
        {
            self.segments.extend(ahead.segment, sector);
            self.spot = self.geometry.locate(sector);
        }
    }

    /// Takes a read out that hits the cache as a whole.
    pub(super) fn take_hit(&mut self, now: SimTime) -> Option<Waiting> {
        if let Some((sector, _)) = self.come_to(now)
            && let Some(ahead) = self.ahead
        {
            self.segments.extend(ahead.segment, sector);
        }
        let at = self.queue.iter().position(|one| {
            let read = matches!(one.task, Task::Read(_));
            read && (self.is_cached(one) || self.is_dirty(one))
        })?;
        let hit = self.queue.remove(at);
        if let Some((segment, _)) = self.segments.with(hit.sector) {
            self.segments.touch(segment);
            if let Some(ahead) = self.ahead.filter(|ahead| ahead.segment == segment) {
                self.prolong(ahead_limit(hit.end, self.segments.ahead()), now, ahead);
            }
        }
        Some(hit)
    }

    /// The drive reads ahead up to `limit`, after a command that used sectors which it had read
    /// ahead. If it had stopped, it has to wait for its sector to come round again.
    fn prolong(&mut self, limit: Sector, now: SimTime, was: Ahead) {
        let (next, at) = self.geometry.comes_to(was.next, was.limit, was.at, now);
        let at = if next < was.limit {
            at
        } else {
            let spot = self.geometry.locate(next);
            self.geometry.arrives(spot, spot, now)
        };
        self.ahead = Some(Ahead {
            segment: was.segment,
            next,
            at,
            limit: limit.max(was.limit).min(Sector(self.geometry.sectors())),
        });
    }

    fn is_cached(&self, one: &Waiting) -> bool {
        let found = self.segments.with(one.sector);
        found.is_some_and(|(_, end)| one.end <= end)
    }

    fn is_dirty(&self, one: &Waiting) -> bool {
        let holds = |extent: &Waiting| extent.sector <= one.sector && one.end <= extent.end;
        self.dirty.iter().any(holds)
    }

    /// The arm begins with the next command, if there is one; returns when it will be free.
    /// `flushing`: dirty sectors go first.
    pub(super) fn start(&mut self, flushing: bool, now: SimTime) -> Option<SimTime> {
        let destage = (flushing || self.queue.is_empty()) && !self.dirty.is_empty();
        let list = if destage { &self.dirty } else { &self.queue };
        let next = self.choose(list, now)?;
        let one = match destage {
            true => self.dirty.remove(next),
            false => self.queue.remove(next),
        };
        self.current = Some(one);
        Some(self.serve(&one, now.max(one.ready)))
    }

    fn choose(&self, list: &[Waiting], now: SimTime) -> Option<usize> {
        let oldest = list.first()?;
        let waited = now.since(oldest.since).0 / self.geometry.turn().0;
        if self.order == NcqOrder::Arrival || waited >= PATIENCE {
            return Some(0);
        }
        let from = match self.come_to(now) {
            Some((sector, _)) => self.geometry.locate(sector),
            None => self.spot,
        };
        let arrives = |one: &Waiting| {
            let to = self.geometry.locate(self.first_missing(one));
            self.geometry.arrives(from, to, now.max(one.ready))
        };
        let nearest = list.iter().enumerate().min_by_key(|(_, one)| arrives(one));
        nearest.map(|(at, _)| at)
    }

    /// The first sector that the arm has to seek to: the cache may have the beginning of a read.
    fn first_missing(&self, one: &Waiting) -> Sector {
        match (one.task, self.segments.with(one.sector)) {
            (Task::Read(_), Some((_, end))) if end > one.sector => end,
            _ => one.sector,
        }
    }

    /// When the arm is done with `one`, which it decoded at `now`.
    fn serve(&mut self, one: &Waiting, now: SimTime) -> SimTime {
        if let Task::Read(_) = one.task
            && let Some(passes) = self.reads_on(one, now)
        {
            // It may have passed before the drive has decoded the command.
            return passes.max(now);
        }
        self.stop(now);
        let sector = self.first_missing(one);
        let begins = self
            .geometry
            .arrives(self.spot, self.geometry.locate(sector), now);
        self.geometry.passes(sector, one.end, begins)
    }

    /// The drive is reading towards the command's first sector: when it arrives there.
    fn reads_on(&self, one: &Waiting, now: SimTime) -> Option<SimTime> {
        let (come, reading) = self.come_to(now)?;
        let ahead = self.ahead?;
        let (segment, _) = self.segments.with(one.sector).or_else(|| {
            let within = (come..=ahead.limit).contains(&one.sector);
            within.then_some((ahead.segment, come))
        })?;
        if !reading || segment != ahead.segment {
            return None;
        }
        Some(self.geometry.passes(ahead.next, one.end, ahead.at))
    }

    /// The arm has finished its command. The drive reads ahead after a read. Panics if the arm was
    /// idle.
    pub(super) fn finish(&mut self, now: SimTime) -> Waiting {
        let done = self.current.take().expect("the arm was busy");
        self.spot = self.geometry.locate(done.end);
        self.ahead = match done.task {
            Task::Read(_) => self.begin_ahead(&done, now),
            Task::Write(_) | Task::Destage => {
                self.segments.forget(done.sector, done.end);
                None
            }
        };
        done
    }

    fn begin_ahead(&mut self, done: &Waiting, now: SimTime) -> Option<Ahead> {
        let found = self.segments.with(done.sector);
        let segment = match (self.ahead, found) {
            (Some(ahead), _) => ahead.segment,
            (None, Some((segment, _))) => segment,
            (None, None) => self.segments.replace(done.sector, done.end)?,
        };
        self.segments.touch(segment);
        self.segments.extend(segment, done.end);
        let limit = ahead_limit(done.end, self.segments.ahead());
        let passed = match self.ahead {
            // The drive has been reading all the time, also beyond the sectors asked for.
            Some(ahead) => self.geometry.passes(ahead.next, done.end, ahead.at),
            None => now,
        };
        Some(Ahead {
            segment,
            next: done.end,
            at: self.geometry.goes_on(done.end, passed),
            limit: limit.min(Sector(self.geometry.sectors())),
        })
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "arm {} at cylinder {}, {} commands wait for it",
            if self.is_busy() { "busy" } else { "idle" },
            self.spot.cylinder,
            self.queue.len()
        )
    }
}

fn ahead_limit(end: Sector, sectors: u64) -> Sector {
    Sector(end.0 + sectors)
}
