//! Seeks of rotational disks: the first commands of the measured time, each with its thread.
//!
//! Bounded memory that is not thinned out when it is full: of two readers served in turn, every
//! second command would be all of one of them.

use blkmq::request::{Sector, Sectors};
use blkmq::time::SimTime;

use crate::plan::DiskId;

pub const SEEKS_MAX: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seek {
    pub at: SimTime,
    pub disk: DiskId,
    /// Index in the plan of the thread that owns its first bio, if a thread does.
    pub thread: Option<usize>,
    pub sector: Sector,
    pub sectors: Sectors,
}

/// Commands of all rotational disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seeks {
    /// The first ones, in the order of simulation: those of different CPUs need not be in the order
    /// of their times.
    pub first: Vec<Seek>,
    pub count: u64,
}

impl Seeks {
    /// Allocates all memory that it needs.
    pub(crate) fn new() -> Seeks {
        Seeks {
            first: Vec::with_capacity(SEEKS_MAX),
            count: 0,
        }
    }

    /// Measuring begins: earlier commands are dropped.
    pub(super) fn begin(&mut self) {
        self.first.clear();
        self.count = 0;
    }

    /// A disk accepts a command.
    pub(crate) fn add(&mut self, seek: Seek) {
        self.count += 1;
        if self.first.len() < SEEKS_MAX {
            self.first.push(seek);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seek(number: u64) -> Seek {
        Seek {
            at: SimTime(number),
            disk: DiskId(0),
            thread: None,
            sector: Sector(8 * number),
            sectors: Sectors(8),
        }
    }

    #[test]
    fn the_first_are_kept_and_all_are_counted() {
        let mut seeks = Seeks::new();
        let room = seeks.first.capacity();
        seeks.add(seek(9));
        seeks.begin();
        let all = SEEKS_MAX as u64 + 10;
        (0..all).for_each(|number| seeks.add(seek(number)));
        assert_eq!(seeks.count, all);
        assert_eq!(seeks.first.len(), SEEKS_MAX);
        assert_eq!(seeks.first.first(), Some(&seek(0)));
        assert_eq!(seeks.first.last(), Some(&seek(SEEKS_MAX as u64 - 1)));
        assert_eq!(seeks.first.capacity(), room, "nothing is allocated later");
    }
}
