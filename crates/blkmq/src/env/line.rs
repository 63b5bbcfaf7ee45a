//! Cache lines: who has a copy, what a miss costs, and which misses of a label overlap.
//!
//! Not here: what lies on which line (`solo.rs`, `request/lines.rs`), or any price
//! (`crates/sim/profiles`). A miss is priced by the nearest copy, a write by the farthest copy that
//! it takes away. On x86 loads that do not need each other's answer are under way together; an
//! atomic operation waits for all before it, and nothing passes it.

use core::cell::Cell;

use crate::request::CpuId;

/// The bit of a CPU in masks of CPUs.
pub const fn bit_of(cpu: CpuId) -> u128 {
    1 << (cpu.0 & 127)
}

/// What a cache line costs on one CPU, by where the copies are, picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Near {
    /// Threads of its core; CPUs that share its last-level cache; CPUs of its socket.
    pub masks: [u128; 3],
    /// Price from each of them, and from farther away.
    pub prices: [u64; 4],
}

impl Near {
    /// Price of a line of which these others have copies: from the nearest.
    #[inline]
    pub fn nearest(&self, copies: u128) -> u64 {
        let within = self.masks.iter().position(|mask| copies & mask != 0);
        self.prices[within.unwrap_or(3)]
    }

    /// Price of taking the copies of these others away: as far as the farthest.
    #[inline]
    pub fn farthest(&self, copies: u128) -> u64 {
        let within = self.masks.iter().position(|mask| copies & !mask == 0);
        self.prices[within.unwrap_or(3)]
    }
}

/// Which CPUs have a copy of a cache line. Neither hashed nor compared.
#[derive(Clone, Debug, Default)]
pub struct Line {
    copies: Cell<u128>,
}

impl Line {
    /// A read by the CPU with this bit. Picoseconds.
    #[inline]
    pub fn read(&self, bit: u128, near: &Near) -> u64 {
        let copies = self.copies.get();
        if copies & bit != 0 {
            return 0;
        }
        self.copies.set(copies | bit);
        if copies == 0 {
            return 0;
        }
        near.nearest(copies)
    }

    /// A write by the CPU with this bit. Picoseconds.
    #[inline]
    pub fn write(&self, bit: u128, near: &Near) -> u64 {
        let copies = self.copies.get();
        if copies == bit {
            return 0;
        }
        self.copies.set(bit);
        match copies & !bit {
            0 => 0,
            others => near.farthest(others),
        }
    }
}

/// Prices on one CPU of what a label does besides being a label, in picoseconds. All of them zero:
/// nothing has a price (explorer, scripts).
#[derive(Clone, Copy, Debug, Default)]
pub struct Tariff {
    /// An atomic read-modify-write operation.
    pub atomic: u64,
    /// A container operation: a tree node visited, a list or hash operation.
    pub container_op: u64,
    /// Cache lines.
    pub near: Near,
}

/// What cache lines have cost, picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Misses {
    /// One after the other: each waited for.
    pub chain: u64,
    /// The longest of those that are under way together.
    pub together: u64,
}

impl Misses {
    /// With what somebody else counted for the same label: what overlaps, overlaps.
    #[inline]
    pub fn with(self, other: Misses) -> u64 {
        self.chain + other.chain + self.together.max(other.together)
    }
}

/// What a label did, priced as it happens.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// The prices.
    pub tariff: Tariff,
    work: u64,
    misses: Misses,
}

impl Meter {
    /// An atomic read-modify-write operation on a line.
    #[inline]
    pub fn atomic(&mut self, line: &Line, bit: u128) {
        self.misses.chain += core::mem::take(&mut self.misses.together);
        self.misses.chain += line.write(bit, &self.tariff.near);
        self.work += self.tariff.atomic;
    }

    /// A load from a line.
    #[inline]
    pub fn load(&mut self, line: &Line, bit: u128) {
        let price = line.read(bit, &self.tariff.near);
        self.misses.together = self.misses.together.max(price);
    }

    /// A load from a line that is also written.
    #[inline]
    pub fn update(&mut self, line: &Line, bit: u128) {
        let price = line.write(bit, &self.tariff.near);
        self.misses.together = self.misses.together.max(price);
    }

    /// So many container operations.
    #[inline]
    pub fn container_ops(&mut self, count: u32) {
        self.work += u64::from(count) * self.tariff.container_op;
    }

    /// Takes the work that has come up since the last call, and the misses. Picoseconds.
    #[inline]
    pub fn take(&mut self) -> (u64, Misses) {
        let misses = core::mem::take(&mut self.misses);
        (core::mem::take(&mut self.work), misses)
    }
}

#[cfg(test)]
mod tests;
