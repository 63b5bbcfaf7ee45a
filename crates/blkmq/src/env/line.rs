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
#[derive(Clone, Debug, Default)]
pub struct Near {
    /// Threads of its core; CPUs that share its last-level cache; CPUs of its socket.
    masks: [u128; 3],
    /// Price from each of them, and from farther away.
    prices: [u64; 4],
    /// Price from each CPU of the socket.
    from: Vec<u64>,
    /// Misses never overlap.
    pub one_by_one: bool,
}

impl Near {
    /// Prices on a CPU: from threads of its core, CPUs that share its last-level cache, CPUs of
    /// its socket (each set has the one before), and from farther away.
    pub fn new(masks: [u128; 3], prices: [u64; 4]) -> Near {
        let mut near = Near {
            masks,
            prices,
            ..Near::default()
        };
        let socket = 128 - masks[2].leading_zeros();
        near.from = (0..socket as u16)
            .map(|cpu| near.nearest(bit_of(CpuId(cpu))))
            .collect();
        near
    }

    /// Time of two misses that do not need each other's answer.
    #[inline]
    pub fn both(&self, a: u64, b: u64) -> u64 {
        if self.one_by_one { a + b } else { a.max(b) }
    }

    /// Price of a line that one CPU has.
    #[inline]
    fn of_one(&self, cpu: u16) -> u64 {
        let price = self.from.get(usize::from(cpu));
        price.copied().unwrap_or(self.prices[3])
    }

    /// Price of a line of which these others have copies: from the nearest.
    fn nearest(&self, copies: u128) -> u64 {
        let within = self.masks.iter().position(|mask| copies & mask != 0);
        self.prices[within.unwrap_or(3)]
    }

    /// Price of taking the copies of these others away: as far as the farthest.
    fn farthest(&self, copies: u128) -> u64 {
        let within = self.masks.iter().position(|mask| copies & !mask == 0);
        self.prices[within.unwrap_or(3)]
    }
}

/// No CPU.
const NOBODY: u16 = u16::MAX;

/// Which CPUs have a copy of a cache line. Neither hashed nor compared.
#[derive(Clone, Debug)]
pub struct Line {
    /// The CPU that has it to itself.
    sole: Cell<u16>,
    /// Those that share it, one bit each; none if somebody has it to itself.
    copies: [Cell<u64>; 2],
}

impl Default for Line {
    fn default() -> Line {
        Line {
            sole: Cell::new(NOBODY),
            copies: [Cell::new(0), Cell::new(0)],
        }
    }
}

impl Line {
    /// True if this CPU has it to itself: it reads and writes without a miss.
    #[inline]
    pub fn is_of(&self, cpu: CpuId) -> bool {
        self.sole.get() == cpu.0
    }

    /// A read by `cpu`. Picoseconds.
    #[inline]
    pub fn read(&self, cpu: CpuId, near: &Near) -> u64 {
        let shared = self.copies[usize::from(cpu.0 / 64 % 2)].get();
        if self.is_of(cpu) || shared >> (cpu.0 % 64) & 1 == 1 {
            return 0;
        }
        self.missed_read(cpu, near)
    }

    /// A write by `cpu`. Picoseconds.
    #[inline]
    pub fn write(&self, cpu: CpuId, near: &Near) -> u64 {
        if self.is_of(cpu) {
            return 0;
        }
        self.missed_write(cpu, near)
    }

    // Kept out of the labels, which are many; `request/lines.rs` has them in one place.
    #[inline(never)]
    fn missed_read(&self, cpu: CpuId, near: &Near) -> u64 {
        self.fetch(cpu, near)
    }

    #[inline(never)]
    fn missed_write(&self, cpu: CpuId, near: &Near) -> u64 {
        self.take_away(cpu, near)
    }

    /// A read by a CPU that does not have it to itself.
    #[inline]
    pub(crate) fn fetch(&self, cpu: CpuId, near: &Near) -> u64 {
        let sole = self.sole.replace(NOBODY);
        if sole != NOBODY {
            self.share(bit_of(CpuId(sole)) | bit_of(cpu));
            return near.of_one(sole);
        }
        let (copies, bit) = (self.sharers(), bit_of(cpu));
        if copies == 0 || copies & bit != 0 {
            self.share(copies | bit);
            return 0;
        }
        self.share(copies | bit);
        near.nearest(copies)
    }

    /// A write by a CPU that does not have it to itself.
    #[inline]
    pub(crate) fn take_away(&self, cpu: CpuId, near: &Near) -> u64 {
        let sole = self.sole.replace(cpu.0);
        if sole != NOBODY {
            return near.of_one(sole);
        }
        let others = self.sharers() & !bit_of(cpu);
        self.share(0);
        if others == 0 {
            return 0;
        }
        near.farthest(others)
    }

    fn sharers(&self) -> u128 {
        u128::from(self.copies[1].get()) << 64 | u128::from(self.copies[0].get())
    }

    fn share(&self, copies: u128) {
        self.copies[0].set(copies as u64);
        self.copies[1].set((copies >> 64) as u64);
    }
}

/// Prices on one CPU of what a label does besides being a label, in picoseconds. All of them zero:
/// nothing has a price (explorer, scripts).
#[derive(Clone, Debug, Default)]
pub struct Tariff {
    /// An atomic read-modify-write operation.
    pub atomic: u64,
    /// A container operation: a tree node visited, a list or hash operation.
    pub container_op: u64,
    /// A failed try-lock touches no line.
    pub blind_tries: bool,
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
    /// If nobody else counted for the same label.
    #[inline]
    pub fn alone(self) -> u64 {
        self.chain + self.together
    }

    /// With what somebody else counted for the same label: what overlaps, overlaps.
    #[inline]
    pub fn with(self, other: Misses, near: &Near) -> u64 {
        self.chain + other.chain + near.both(self.together, other.together)
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
    pub fn atomic(&mut self, line: &Line, cpu: CpuId) {
        self.misses.chain += core::mem::take(&mut self.misses.together);
        self.misses.chain += line.write(cpu, &self.tariff.near);
        self.work += self.tariff.atomic;
    }

    /// A load from a line.
    #[inline]
    pub fn load(&mut self, line: &Line, cpu: CpuId) {
        let near = &self.tariff.near;
        self.misses.together = near.both(self.misses.together, line.read(cpu, near));
    }

    /// A load from a line that is also written.
    #[inline]
    pub fn update(&mut self, line: &Line, cpu: CpuId) {
        let near = &self.tariff.near;
        self.misses.together = near.both(self.misses.together, line.write(cpu, near));
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
