//! service-time: the path that would be idle first, by its bytes in flight and its throughput.
//!
//! Kernel: drivers/md/dm-ps-service-time.c (6.1.192), dm-service-time.c (4.5 to 4.20).

use super::{Account, Paths};
use crate::dm::table::GroupTable;
use crate::rules::Rotation;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ServiceTime {
    // Settings.
    rotation: Rotation,
    arguments: Vec<Arguments>,

    // State.
    pub(super) paths: Paths,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Arguments {
    repeat_count: u32,
    /// relative_throughput.
    throughput: u32,
}

/// Bytes of which no product with a throughput fits into 64 bits (ST_MAX_INFLIGHT_SIZE).
const TOO_MANY: u64 = u64::MAX >> SHIFT;
/// Bits of a relative throughput.
const SHIFT: u32 = 7;

impl ServiceTime {
    /// With all paths of the group.
    pub fn new(table: &GroupTable, rotation: Rotation) -> ServiceTime {
        let arguments = table.paths.iter().map(|path| Arguments {
            repeat_count: path.repeat_count,
            throughput: path.relative_throughput,
        });
        ServiceTime {
            rotation,
            arguments: arguments.collect(),
            paths: Paths::new(table.paths.len()),
        }
    }

    /// The path with the least service time; of equals the first.
    pub fn select(&mut self, accounts: &[Account], bytes: u32) -> Option<usize> {
        if self.rotation == Rotation::FirstBefore {
            self.paths.rotate();
        }
        let mut best: Option<usize> = None;
        for path in self.paths.valid() {
            if best.is_none_or(|best| self.compare(accounts, path, best, bytes) < 0) {
                best = Some(path);
            }
        }
        let path = best?;
        if self.rotation == Rotation::ChosenBehind {
            self.paths.to_end(path);
        }
        Some(path)
    }

    /// st_compare_load(): negative if the first path is better. The kernel computes in 64 bits and
    /// returns an int, so that a difference of 2 GiB (times throughput) has the wrong sign.
    fn compare(&self, accounts: &[Account], first: usize, second: usize, bytes: u32) -> i32 {
        let size = |path: usize| match accounts[path] {
            Account::Bytes(bytes) => i64::from(bytes) as u64,
            _ => unreachable!("service-time counts bytes"),
        };
        let throughput = |path: usize| self.arguments[path].throughput;
        let (mut size1, mut size2) = (size(first), size(second));
        let (of1, of2) = (throughput(first), throughput(second));
        if of1 == of2 {
            return size1.wrapping_sub(size2) as i32;
        }
        let higher = of2 as i32 - of1 as i32;
        if size1 == size2 || of1 == 0 || of2 == 0 {
            return higher;
        }
        size1 = size1.wrapping_add(u64::from(bytes));
        size2 = size2.wrapping_add(u64::from(bytes));
        if size1 >= TOO_MANY || size2 >= TOO_MANY {
            size1 >>= SHIFT;
            size2 >>= SHIFT;
        }
        let time1 = size1.wrapping_mul(u64::from(of2));
        let time2 = size2.wrapping_mul(u64::from(of1));
        match time1 == time2 {
            true => higher,
            false => time1.wrapping_sub(time2) as i32,
        }
    }

    pub(super) fn repeat_count(&self, path: usize) -> u32 {
        self.arguments[path].repeat_count
    }

    pub(super) fn throughput(&self, path: usize) -> u32 {
        self.arguments[path].throughput
    }
}
