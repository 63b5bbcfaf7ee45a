//! Latencies as the tool btt defines them, quirks included, for comparison with its output.
//!
//! `Matcher` gives the true latencies. The differences: btt does not see events with a cgroup id or
//! without data; a second Q at the same start sector replaces the first; D and C apply to every Q
//! of any sender that lies wholly inside their range, so that a Q that was split never completes,
//! and hides later ones that start inside it; a span that is not positive counts as 1 ns. One
//! freedom is left: with three or more Qs overlapping, btt's choice depends on how its tree was
//! rotated; here an older Q always hides a newer one.
//! Read first: btt(1), "All Devices" table; blktrace 1.2.0 and 1.3.0, btt/.

use std::collections::BTreeMap;

use blkmq::time::Duration;

use super::latency::Latency;
use super::table::{NONE, Table};
use crate::blktrace::{Action, Categories, Device, Event};

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
    /// Start and time of an older Q that contains this one's start. While it lives it is above this
    /// one in btt's tree, and searches stop there.
    shadow: Option<(u64, u64)>,
}

/// btt's "All Devices" table. A span ending in `_dm` is of device-mapper, md or loop devices.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BttTable {
    pub q2q: Latency,
    pub q2q_dm: Latency,
    /// Q on the upper device to A that names it as origin.
    pub q2a_dm: Latency,
    pub q2g: Latency,
    pub g2i: Latency,
    pub q2m: Latency,
    pub i2d: Latency,
    pub m2d: Latency,
    /// Not in btt's table: Q to each D that contains it.
    pub q2d: Latency,
    pub d2c: Latency,
    pub q2c: Latency,
    pub q2c_dm: Latency,
    pub q_count: u64,
    /// Issued requests; their ratio to Q is btt's merge ratio.
    pub d_count: u64,
}

/// Keeps the Qs of all devices and fills the table.
#[derive(Debug)]
pub struct Btt {
    table: BttTable,
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
    device: Device,
    /// loop, device-mapper or md: see btt's remapper_dev().
    remapper: bool,
    queued: Table<Queued>,
    /// Sectors of the longest Q ever seen: how far back a Q that contains a sector can start.
    longest: u64,
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
            table: BttTable::default(),
            devices: Vec::new(),
            numbers: BTreeMap::new(),
            current: 0,
            last_q: NEVER,
            inside: Vec::new(),
            limit: super::LIMIT,
        }
    }

    pub fn table(&self) -> &BttTable {
        &self.table
    }

    /// Takes one event, in the order of the merged trace.
    #[inline]
    pub fn add(&mut self, event: &Event) {
        let unseen = Categories::CGROUP
            .with(Categories::NOTIFY)
            .with(Categories::PC);
        if event.bytes == 0 || event.categories.any(unseen) {
            return;
        }
        match event.action {
            Action::Queue => self.queue(event),
            Action::GetRequest => self.get_request(event),
            Action::Insert => self.insert(event),
            Action::BackMerge | Action::FrontMerge => self.merge(event),
            Action::Issue => self.issue(event),
            Action::Complete => self.complete(event),
            Action::Remap => self.remap(event),
            _ => {}
        }
    }

    #[inline]
    fn device(&mut self, device: Device) -> &mut PerDevice {
        if self
            .devices
            .get(self.current)
            .is_none_or(|current| current.device != device)
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
                device,
                remapper: matches!(device.major(), 9 | 253 | 254),
                queued: Table::new(),
                longest: 0,
            });
        }
    }

    #[inline]
    fn queue(&mut self, event: &Event) {
        let last_q = std::mem::replace(&mut self.last_q, event.time.0);
        let limit = self.limit;
        let device = self.device(event.device);
        let (start, end, q) = (event.sector, event.end(), event.time.0);
        let mut queued = Queued {
            start,
            end,
            q,
            g: NEVER,
            i: NEVER,
            m: NEVER,
            d: NEVER,
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
        }
        device.longest = device.longest.max(end - start);
        let remapper = device.remapper;
        self.table.q_count += 1;
        if last_q != NEVER {
            let q2q = if remapper {
                &mut self.table.q2q_dm
            } else {
                &mut self.table.q2q
            };
            q2q.add(span(last_q, q));
        }
    }

    #[inline]
    fn get_request(&mut self, event: &Event) {
        let device = self.device(event.device);
        let id = device.find(event.sector);
        if id != NONE {
            let queued = device.queued.get_mut(id);
            queued.g = event.time.0;
            let q = queued.q;
            self.table.q2g.add(span(q, event.time.0));
        }
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
                self.table.g2i.add(span(g, event.time.0));
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
            self.table.q2m.add(span(q, event.time.0));
        }
    }

    #[inline]
    fn issue(&mut self, event: &Event) {
        let mut inside = std::mem::take(&mut self.inside);
        self.device(event.device);
        let (table, device) = (&mut self.table, &mut self.devices[self.current]);
        table.d_count += 1;
        device.inside(event, &mut inside);
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
    }

    #[inline]
    fn complete(&mut self, event: &Event) {
        let mut inside = std::mem::take(&mut self.inside);
        self.device(event.device);
        let device = &mut self.devices[self.current];
        device.inside(event, &mut inside);
        let q2c = if device.remapper {
            &mut self.table.q2c_dm
        } else {
            &mut self.table.q2c
        };
        for &id in &inside {
            let queued = *device.queued.get(id);
            device.queued.remove(id);
            q2c.add(span(queued.q, event.time.0));
            if queued.d != NEVER {
                self.table.d2c.add(span(queued.d, event.time.0));
            }
        }
        self.inside = inside;
    }

    #[cold]
    fn remap(&mut self, event: &Event) {
        let device = self.device(event.from);
        let id = device.find(event.extra);
        if id != NONE {
            let q = device.queued.get(id).q;
            self.table.q2a_dm.add(span(q, event.time.0));
        }
    }
}
