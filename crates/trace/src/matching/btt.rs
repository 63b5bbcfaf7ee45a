//! Latencies as the tool btt defines them, quirks included, for comparison with its output.
//!
//! `Matcher` gives the true latencies. The differences: btt does not see events with a cgroup id or
//! without data; a second Q at the same start sector replaces the first; D and C apply to every Q
//! of any sender that lies wholly inside their range, so that a Q that was split never completes,
//! and hides later ones that start inside it; a span that is not positive counts as 1 ns. One
//! freedom is left: with three or more Qs overlapping, btt's choice depends on how its tree was
//! rotated; here an older Q always hides a newer one.
//! Read first: btt(1), "All Devices" table; blktrace 1.2.0 and 1.3.0, btt/.

mod tables;

use std::collections::BTreeMap;

use blkmq::time::Duration;

use super::activity::{Activity, Periods};
use super::latency::Latency;
use super::table::{NONE, Table};
use crate::blktrace::{Action, Categories, Device, Event};

pub use tables::{BttDevice, BttTable};

/// Time that was not reached.
const NEVER: u64 = u64::MAX;

/// One Q as btt sees it. Times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Queued {
    start: u64,
    end: u64,
    q: u64,
    g: u64,
    i: u64,
    m: u64,
    d: u64,
    s: u64,
    /// Start and time of an older Q that contains this one's start. While it lives it is above this
    /// one in btt's tree, and searches stop there.
    shadow: Option<(u64, u64)>,
}

/// Keeps the Qs of all devices and fills the tables.
#[derive(Debug)]
pub struct Btt {
    /// Times between Qs of any device.
    q2q: Latency,
    q2q_dm: Latency,
    periods: Periods,
    devices: Vec<PerDevice>,
    numbers: BTreeMap<Device, usize>,
    /// Number of the device of the last event.
    current: usize,
    last_q: u64,
    inside: Vec<u32>,
    limit: usize,
}

#[derive(Debug)]
struct PerDevice {
    of: BttDevice,
    queued: Table<Queued>,
    /// Sectors of the longest Q ever seen: how far back a Q that contains a sector can start.
    longest: u64,
    last_q: u64,
    /// A Q or an A was seen: btt leaves out what comes before.
    begun: bool,
}

impl PerDevice {
    #[inline]
    fn exact(&self, sector: u64) -> u32 {
        let mut id = self.queued.first(sector);
        while id != NONE && self.queued.get(id).start != sector {
            id = self.queued.after(id);
        }
        id
    }

    /// The Q that starts at a sector, else one that contains it, else `NONE`.
    #[inline]
    fn find(&self, sector: u64) -> u32 {
        let id = self.exact(sector);
        if id == NONE {
            return self.containing(sector);
        }
        let hidden_by = self.hidden_by(self.queued.get(id));
        if hidden_by == NONE { id } else { hidden_by }
    }

    /// The Q that hides another one, if it still lives.
    #[inline]
    fn hidden_by(&self, queued: &Queued) -> u32 {
        let Some((start, q)) = queued.shadow else {
            return NONE;
        };
        let id = self.exact(start);
        if id != NONE && self.queued.get(id).q == q {
            id
        } else {
            NONE
        }
    }

    #[cold]
    fn containing(&self, sector: u64) -> u32 {
        self.around(sector).1
    }

    /// The Q that starts at a sector, and of those that contain it the one that starts last.
    #[inline]
    fn around(&self, sector: u64) -> (u32, u32) {
        let mut exact = NONE;
        let mut best: Option<(u64, u32)> = None;
        let from = sector.saturating_sub(self.longest);
        self.queued
            .near(from, sector.saturating_add(1), |id, queued| {
                if queued.start == sector {
                    exact = id;
                } else if queued.start < sector && sector < queued.end {
                    best = best.max(Some((queued.start, id)));
                }
            });
        (exact, best.map_or(NONE, |(_, id)| id))
    }

    /// All Qs wholly inside a range, into `inside`.
    #[inline]
    fn inside(&self, event: &Event, inside: &mut Vec<u32>) {
        inside.clear();
        let (from, to) = (event.sector, event.end());
        self.queued.near(from, to, |id, queued| {
            if queued.start >= from && queued.end <= to {
                let hidden_by = self.hidden_by(queued);
                if hidden_by == NONE || self.queued.get(hidden_by).end <= to {
                    inside.push(id);
                }
            }
        });
    }
}

/// A span as btt counts it.
#[inline]
fn span(from: u64, to: u64) -> Duration {
    Duration(if to > from { to - from } else { 1 })
}

impl Default for Btt {
    fn default() -> Btt {
        Btt::new()
    }
}

impl Btt {
    pub fn new() -> Btt {
        Btt {
            q2q: Latency::default(),
            q2q_dm: Latency::default(),
            periods: Periods::default(),
            devices: Vec::new(),
            numbers: BTreeMap::new(),
            current: 0,
            last_q: NEVER,
            inside: Vec::new(),
            limit: super::LIMIT,
        }
    }

    /// The table of all devices.
    pub fn table(&self) -> BttTable {
        let mut all = BttTable {
            q2q: self.q2q.clone(),
            q2q_dm: self.q2q_dm.clone(),
            ..BttTable::default()
        };
        for device in &self.devices {
            all.merge(&device.of.table);
        }
        all
    }

    /// The devices in the order of their first events, and the active periods of all together.
    pub fn finish(self) -> (Vec<BttDevice>, Periods) {
        let devices = self.devices.into_iter().map(|mut device| {
            let end = device.of.activity.span.map_or(0, |(_, end)| end);
            device.of.activity.plugs.finish(end);
            device.of
        });
        (devices.collect(), self.periods)
    }

    /// Takes one event, in the order of the merged trace. Says whether the issue of a request was
    /// elsewhere than the one before on that device.
    #[inline]
    pub fn add(&mut self, event: &Event) -> bool {
        let unseen = Categories::CGROUP
            .with(Categories::NOTIFY)
            .with(Categories::PC);
        if event.bytes == 0 || event.categories.any(unseen) {
            self.add_empty(event);
            return false;
        }
        let begins = matches!(event.action, Action::Queue | Action::Remap);
        let device = self.device(event.device);
        device.begun |= begins;
        let known = event.action <= Action::Complete
            || matches!(event.action, Action::Insert | Action::Remap);
        if !known {
            return false;
        }
        let first = device
            .of
            .activity
            .span
            .map_or(event.time.0, |(first, _)| first);
        // btt knows a device from its first event, and its end from the first Q or A on.
        let end = if device.begun { event.time.0 } else { first };
        device.of.activity.span = Some((first, end));
        if !device.begun {
            return false;
        }
        match event.action {
            Action::Queue => self.queue(event),
            Action::GetRequest => self.get_request(event),
            Action::SleepRequest => self.sleep(event),
            Action::Insert => self.insert(event),
            Action::BackMerge | Action::FrontMerge => self.merge(event),
            Action::Requeue => self.requeue(event),
            Action::Issue => return self.issue(event),
            Action::Complete => self.complete(event),
            Action::Remap => self.remap(event),
            _ => {}
        }
        false
    }

    /// Events that have no data, or that btt skips.
    #[cold]
    fn add_empty(&mut self, event: &Event) {
        let skipped = Categories::CGROUP.with(Categories::PC);
        let device = self.device(event.device);
        if event.categories.any(skipped) {
            let cgroup = event.categories.any(Categories::CGROUP);
            let note = event.categories.any(Categories::NOTIFY);
            device.of.table.with_cgroup += u64::from(cgroup && !note);
            return;
        }
        let now = event.time.0;
        match (event.action, device.of.activity.span) {
            (Action::Message, None) => device.of.activity.span = Some((now, now)),
            (Action::Message, Some((first, _))) if device.begun => {
                device.of.activity.span = Some((first, now));
            }
            (Action::Plug, Some(_)) => device.of.activity.plugs.plug(now),
            (Action::Unplug, _) => device.of.activity.plugs.unplug(event, false),
            (Action::UnplugTimer, _) => device.of.activity.plugs.unplug(event, true),
            (Action::Requeue, Some((first, _))) if device.begun => {
                device.of.activity.span = Some((first, now));
                self.requeue(event);
            }
            _ => {}
        }
    }

    #[inline]
    fn device(&mut self, device: Device) -> &mut PerDevice {
        if self
            .devices
            .get(self.current)
            .is_none_or(|current| current.of.device != device)
        {
            self.select(device);
        }
        &mut self.devices[self.current]
    }

    #[cold]
    fn select(&mut self, device: Device) {
        let next = self.devices.len();
        self.current = *self.numbers.entry(device).or_insert(next);
        if self.current == next {
            self.devices.push(PerDevice {
                of: BttDevice {
                    device,
                    remapper: matches!(device.major(), 9 | 253 | 254),
                    table: BttTable::default(),
                    activity: Activity::default(),
                },
                queued: Table::new(),
                longest: 0,
                last_q: NEVER,
                begun: false,
            });
        }
    }

    #[inline]
    fn queue(&mut self, event: &Event) {
        let last_q = std::mem::replace(&mut self.last_q, event.time.0);
        let limit = self.limit;
        let device = &mut self.devices[self.current];
        let (start, end, q) = (event.sector, event.end(), event.time.0);
        let mut queued = Queued {
            start,
            end,
            q,
            g: NEVER,
            i: NEVER,
            m: NEVER,
            d: NEVER,
            s: NEVER,
            shadow: None,
        };
        let (old, container) = device.around(start);
        if old == NONE {
            if container != NONE {
                let Queued { start, q, .. } = *device.queued.get(container);
                queued.shadow = Some((start, q));
            }
            let id = device.queued.add(queued);
            device.queued.attach(id, start);
            if device.queued.len() > limit {
                device.queued.remove(device.queued.oldest());
            }
        } else {
            *device.queued.get_mut(old) = queued;
            device.of.table.replaced += 1;
        }
        device.longest = device.longest.max(end - start);
        device.of.activity.q2q.add(event);
        device.of.activity.enter();
        let table = &mut device.of.table;
        table.q_count += 1;
        let remapper = device.of.remapper;
        let (own, all) = match remapper {
            true => (&mut table.q2q_dm, &mut self.q2q_dm),
            false => (&mut table.q2q, &mut self.q2q),
        };
        if device.last_q != NEVER {
            own.add(span(device.last_q, q));
        }
        device.last_q = q;
        if last_q != NEVER {
            all.add(span(last_q, q));
        }
    }

    #[inline]
    fn get_request(&mut self, event: &Event) {
        let device = self.device(event.device);
        let id = device.find(event.sector);
        if id != NONE {
            let queued = device.queued.get_mut(id);
            queued.g = event.time.0;
            let (q, s) = (queued.q, queued.s);
            device.of.table.q2g.add(span(q, event.time.0));
            if s != NEVER {
                device.of.table.s2g.add(span(s, event.time.0));
            }
        }
    }

    #[cold]
    fn sleep(&mut self, event: &Event) {
        let device = self.device(event.device);
        let id = device.find(event.sector);
        if id != NONE {
            device.queued.get_mut(id).s = event.time.0;
        }
    }

    #[cold]
    fn requeue(&mut self, event: &Event) {
        let activity = &mut self.device(event.device).of.activity;
        activity.requeues += 1;
        activity.enter();
    }

    #[inline]
    fn insert(&mut self, event: &Event) {
        let device = self.device(event.device);
        let id = device.find(event.sector);
        if id != NONE {
            let queued = device.queued.get_mut(id);
            queued.i = event.time.0;
            let g = queued.g;
            if g != NEVER {
                device.of.table.g2i.add(span(g, event.time.0));
            }
        }
    }

    #[inline]
    fn merge(&mut self, event: &Event) {
        let device = self.device(event.device);
        let id = device.find(event.sector);
        if id != NONE {
            let queued = device.queued.get_mut(id);
            queued.m = event.time.0;
            let q = queued.q;
            device.of.table.q2m.add(span(q, event.time.0));
        }
        device.of.activity.leave();
    }

    #[inline]
    fn issue(&mut self, event: &Event) -> bool {
        let mut inside = std::mem::take(&mut self.inside);
        let device = &mut self.devices[self.current];
        device.inside(event, &mut inside);
        device.of.activity.leave();
        let moved = device.of.activity.d2d.add(event);
        let table = &mut device.of.table;
        table.d_count += 1;
        for &id in &inside {
            let queued = device.queued.get_mut(id);
            queued.d = event.time.0;
            table.q2d.add(span(queued.q, event.time.0));
            if queued.i != NEVER {
                table.i2d.add(span(queued.i, event.time.0));
            } else if queued.m != NEVER {
                table.m2d.add(span(queued.m, event.time.0));
            }
        }
        self.inside = inside;
        moved
    }

    #[inline]
    fn complete(&mut self, event: &Event) {
        let mut inside = std::mem::take(&mut self.inside);
        let device = &mut self.devices[self.current];
        device.inside(event, &mut inside);
        let table = &mut device.of.table;
        let q2c = match device.of.remapper {
            true => &mut table.q2c_dm,
            false => &mut table.q2c,
        };
        device.of.activity.complete(event.sectors());
        for &id in &inside {
            let queued = *device.queued.get(id);
            device.queued.remove(id);
            q2c.add(span(queued.q, event.time.0));
            if queued.d != NEVER {
                table.d2c.add(span(queued.d, event.time.0));
                device.of.activity.periods.add(queued.d, event.time.0);
                self.periods.add(queued.d, event.time.0);
            }
        }
        self.inside = inside;
    }

    #[cold]
    fn remap(&mut self, event: &Event) {
        let Some(at) = self.numbers.get(&event.from) else {
            return;
        };
        let device = &mut self.devices[*at];
        let id = device.find(event.extra);
        if id != NONE {
            let q = device.queued.get(id).q;
            let q2a = match device.of.remapper {
                true => &mut device.of.table.q2a_dm,
                false => &mut device.of.table.q2a,
            };
            q2a.add(span(q, event.time.0));
        }
    }
}
