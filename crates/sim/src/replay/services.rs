//! Service times of the captured device: D2C by direction and first sector, or drawn.
//!
//! The k-th request for a place gets the k-th captured time of that place. A fitted drive draws
//! from the captured times of requests of the kind and size at that depth. Read next:
//! `device/captured.rs`, which uses it.

use std::collections::BTreeMap;

use blkmq::request::{Op, Sector};
use blkmq::time::{Duration, SimTime};

use crate::plan::{ServiceKind, ServiceTime};
use crate::rng::{Rng, Runs};

/// Kinds that are kept apart.
const KINDS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Service {
    kind: ServiceKind,
    sector: u64,
    /// The sector after its last one.
    end: u64,
    issued: SimTime,
    took: Duration,
    /// Requests with the device when it came, itself included.
    depth: u32,
    /// In the first service of a place: how many of that place were used.
    given: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// A captured request that starts there and was not used yet.
    Exact(Duration),
    /// The place was requested more often than captured, or lies within a captured request.
    Near(Duration),
    /// Not captured: the mean of the direction.
    Mean(Duration),
}

impl Lookup {
    pub fn time(self) -> Duration {
        match self {
            Lookup::Exact(time) | Lookup::Near(time) | Lookup::Mean(time) => time,
        }
    }
}

/// All services of a capture.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Services {
    all: Vec<Service>,
    /// Mean by direction; the mean of all where a direction has none.
    means: [Duration; KINDS],
    drawn: Option<Drawn>,
}

/// Kind, and size and depth to the next power of two.
type Cell = (ServiceKind, u32, u32);

/// Requests in a row whose times are drawn together.
const RUN: u32 = 32;

/// Times that are drawn. Slow times come in bursts, as a rule: a request gets the time of the
/// next captured one of its cell after that of the request before it, and from time to time of
/// one anywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Drawn {
    /// By cell: place in the order of issue, and time.
    cells: BTreeMap<Cell, Vec<(u32, Duration)>>,
    place: u32,
    /// The place after the run.
    end: u32,
    runs: Runs,
}

impl Drawn {
    /// A time of the nearest cell of this kind: depth counts less than size.
    fn draw(&mut self, (kind, size, depth): Cell) -> Duration {
        if self.place >= self.end {
            let (start, length) = self.runs.draw().unwrap_or((0, 1));
            (self.place, self.end) = (start, start + length);
        }
        let far = |&&(_, of_size, of_depth): &&Cell| {
            let steps = |a: u32, b: u32| a.leading_zeros().abs_diff(b.leading_zeros());
            (steps(size, of_size), steps(depth, of_depth))
        };
        let of_kind = self.cells.range((kind, 0, 0)..=(kind, u32::MAX, u32::MAX));
        let near = of_kind.map(|(cell, _)| cell).min_by_key(far);
        let near = near.or_else(|| self.cells.keys().min_by_key(far));
        let Some(times) = near.and_then(|cell| self.cells.get(cell)) else {
            return Duration::ZERO;
        };
        let next = times.partition_point(|(place, _)| *place < self.place);
        let (place, time) = times[next.min(times.len() - 1)];
        // A time from far away is of a rare cell: the others go on where they were.
        self.place = match place.checked_sub(self.place) {
            Some(distance) if distance < RUN => place + 1,
            _ => self.place + 1,
        };
        time
    }
}

/// The next power of two.
fn class(number: u32) -> u32 {
    number.min(1 << 31).next_power_of_two()
}

impl Services {
    /// Adds the service of a request. `finish` must follow before the first `take`.
    pub fn add(
        &mut self,
        op: Op,
        sectors: (u64, u64),
        (issued, done): (SimTime, SimTime),
        depth: u32,
    ) {
        self.all.push(Service {
            kind: ServiceKind::of(op),
            sector: sectors.0,
            end: sectors.1,
            issued,
            took: done.since(issued),
            depth,
            given: 0,
        });
    }

    /// Sorts, and computes the means.
    pub fn finish(&mut self) {
        self.all
            .sort_by_key(|s| (s.kind, s.sector, s.issued, s.end));
        let mean = |wanted: Option<ServiceKind>| {
            let of_kind = self
                .all
                .iter()
                .filter(|s| wanted.is_none_or(|kind| s.kind == kind));
            let (count, total) = of_kind.fold((0_u128, 0_u128), |(count, total), s| {
                (count + 1, total + u128::from(s.took.0))
            });
            (count > 0).then(|| Duration((total / count) as u64))
        };
        let overall = mean(None).unwrap_or(Duration::ZERO);
        let kinds = [
            ServiceKind::Read,
            ServiceKind::Write,
            ServiceKind::Trim,
            ServiceKind::Flush,
        ];
        self.means = kinds.map(|kind| mean(Some(kind)).unwrap_or(overall));
    }

    /// The times of some of the requests in the order of issue: `of` says which, by their place
    /// there. Without `by_depth` all are as if alone with the drive.
    pub fn times(&self, of: impl Fn(usize) -> bool, by_depth: bool) -> Vec<ServiceTime> {
        let mut in_order: Vec<&Service> = self.all.iter().collect();
        in_order.sort_by_key(|service| service.issued);
        let time = |service: &Service| ServiceTime {
            kind: service.kind,
            sectors: (service.end - service.sector) as u32,
            depth: if by_depth { service.depth } else { 1 },
            ns: service.took.0,
        };
        let of = in_order
            .into_iter()
            .enumerate()
            .filter(|(place, _)| of(*place));
        of.map(|(_, service)| time(service)).collect()
    }

    /// Those of a drive that draws from these times.
    pub fn drawn(times: &[ServiceTime], rng: Rng) -> Services {
        let mut cells: BTreeMap<Cell, Vec<(u32, Duration)>> = BTreeMap::new();
        for (place, time) in times.iter().enumerate() {
            let cell = (time.kind, class(time.sectors), class(time.depth));
            let of_cell = cells.entry(cell).or_default();
            of_cell.push((place as u32, Duration(time.ns)));
        }
        Services {
            drawn: Some(Drawn {
                cells,
                place: 0,
                end: 0,
                runs: Runs::new(times.len() as u32, RUN, rng),
            }),
            ..Services::default()
        }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The time of the next request for a place, with so many sectors; `depth` requests are with
    /// the device then.
    pub fn take(&mut self, op: Op, (sector, sectors): (Sector, u32), depth: u32) -> Lookup {
        let (kind, sector) = (ServiceKind::of(op), sector.0);
        if let Some(drawn) = &mut self.drawn {
            return Lookup::Exact(drawn.draw((kind, class(sectors), class(depth))));
        }
        let first = self
            .all
            .partition_point(|s| (s.kind, s.sector) < (kind, sector));
        let same = |s: &Service| s.kind == kind && s.sector == sector;
        if self.all.get(first).is_some_and(same) {
            let number = self.all[first].given as usize;
            self.all[first].given += 1;
            return match self.all.get(first + number) {
                Some(service) if same(service) => Lookup::Exact(service.took),
                _ => {
                    let last = self.all[first..].partition_point(same);
                    Lookup::Near(self.all[first + last - 1].took)
                }
            };
        }
        match first.checked_sub(1).map(|before| self.all[before]) {
            Some(service) if service.kind == kind && sector < service.end => {
                Lookup::Near(service.took)
            }
            _ => Lookup::Mean(self.means[kind as usize]),
        }
    }
}

#[cfg(test)]
mod tests;
