//! queue-length: the path with the fewest requests in flight.
//!
//! Kernel: drivers/md/dm-ps-queue-length.c (6.1.192), dm-queue-length.c (4.5 to 4.20).

use super::{Account, Paths};
use crate::dm::table::GroupTable;
use crate::rules::Rotation;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueueLength {
    // Settings.
    rotation: Rotation,
    repeat_counts: Vec<u32>,

    // State.
    pub(super) paths: Paths,
}

impl QueueLength {
    /// With all paths of the group.
    pub fn new(table: &GroupTable, rotation: Rotation) -> QueueLength {
        QueueLength {
            rotation,
            repeat_counts: table.paths.iter().map(|path| path.repeat_count).collect(),
            paths: Paths::new(table.paths.len()),
        }
    }

    /// The first path with the least count. One with nothing in flight ends the search.
    pub fn select(&mut self, accounts: &[Account]) -> Option<usize> {
        if self.rotation == Rotation::FirstBefore {
            self.paths.rotate();
        }
        let mut best: Option<(usize, i32)> = None;
        for path in self.paths.valid() {
            let Account::Requests(count) = accounts[path] else {
                unreachable!("queue-length counts requests")
            };
            if best.is_none_or(|(_, least)| count < least) {
                best = Some((path, count));
            }
            if best.is_some_and(|(_, least)| least == 0) {
                break;
            }
        }
        let (path, _) = best?;
        if self.rotation == Rotation::ChosenBehind {
            self.paths.to_end(path);
        }
        Some(path)
    }

    pub(super) fn repeat_count(&self, path: usize) -> u32 {
        self.repeat_counts[path]
    }
}
