//! Service times of the captured device: D2C by direction and first sector.
//!
//! The k-th request for a place gets the k-th captured time of that place. Read next:
//! `device/captured.rs`, which uses it.

use blkmq::request::{Op, Sector};
use blkmq::time::{Duration, SimTime};

/// Directions that are kept apart: read, write, discard, flush.
const KINDS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Service {
    kind: u8,
    sector: u64,
    /// The sector after its last one.
    end: u64,
    issued: SimTime,
    took: Duration,
    /// In the first service of a place: how many of that place were used.
    given: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// A captured request that starts there and was not used yet.
    Exact(Duration),
    /// The place was requested more often than captured, or lies within a captured request.
    Near(Duration),
    /// Not captured: the mean of the direction.
    Mean(Duration),
}

impl Taken {
    pub fn time(self) -> Duration {
        match self {
            Taken::Exact(time) | Taken::Near(time) | Taken::Mean(time) => time,
        }
    }
}

/// All services of a capture.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Services {
    all: Vec<Service>,
    /// Mean by direction; the mean of all where a direction has none.
    means: [Duration; KINDS],
}

pub fn service_kind(op: Op) -> u8 {
    match op {
        Op::Read => 0,
        Op::Write | Op::WriteZeroes => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

impl Services {
    /// Adds the service of a request. `finish` must follow before the first `take`.
    pub fn add(&mut self, op: Op, sectors: (u64, u64), issued: SimTime, done: SimTime) {
        self.all.push(Service {
            kind: service_kind(op),
            sector: sectors.0,
            end: sectors.1,
            issued,
            took: done.since(issued),
            given: 0,
        });
    }

    /// Sorts, and computes the means.
    pub fn finish(&mut self) {
        self.all
            .sort_by_key(|s| (s.kind, s.sector, s.issued, s.end));
        let mean = |wanted: Option<u8>| {
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
        self.means = core::array::from_fn(|kind| mean(Some(kind as u8)).unwrap_or(overall));
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The time of the next request for a place.
    pub fn take(&mut self, op: Op, sector: Sector) -> Taken {
        let (kind, sector) = (service_kind(op), sector.0);
        let first = self
            .all
            .partition_point(|s| (s.kind, s.sector) < (kind, sector));
        let same = |s: &Service| s.kind == kind && s.sector == sector;
        if self.all.get(first).is_some_and(same) {
            let number = self.all[first].given as usize;
            self.all[first].given += 1;
            return match self.all.get(first + number) {
                Some(service) if same(service) => Taken::Exact(service.took),
                _ => {
                    let last = self.all[first..].partition_point(same);
                    Taken::Near(self.all[first + last - 1].took)
                }
            };
        }
        match first.checked_sub(1).map(|before| self.all[before]) {
            Some(service) if service.kind == kind && sector < service.end => {
                Taken::Near(service.took)
            }
            _ => Taken::Mean(self.means[usize::from(kind)]),
        }
    }
}

#[cfg(test)]
mod tests;
