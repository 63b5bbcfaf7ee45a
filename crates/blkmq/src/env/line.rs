//! Cache lines: which CPUs have a copy, what a miss costs, and which misses of a label overlap.
//!
//! Not here: the layout of data on lines (`solo.rs`, `request/lines.rs`), or any price
//! (`crates/sim/profiles`). A read miss is priced by the nearest copy, a write by the farthest copy
//! that it invalidates. On x86 loads that do not depend on each other overlap; an atomic operation
//! waits for all before it, and nothing passes it.

use core::cell::Cell;
use core::ops::Range;

use crate::request::CpuId;
use sharers::Sharers;

mod sharers;

/// Most CPUs of a machine.
pub const CPUS_MAX: u16 = 1024;

/// CPUs of a word of bits.
const WORD: u16 = 64;

/// How CPUs are numbered: core by core, so that cores that share a cache or a socket are adjacent;
/// second threads of cores follow after all first ones.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    /// CPUs from one thread of a core to its next.
    pub cores: u16,
    /// Threads of a core.
    pub threads: u16,
    /// Of these cores that are adjacent: threads of one core (1), CPUs that share a last-level
    /// cache, CPUs of a socket. Each divides the next one.
    pub adjacent: [u16; 3],
}

impl Default for Numbering {
    fn default() -> Numbering {
        Numbering {
            cores: CPUS_MAX,
            threads: 1,
            adjacent: [1; 3],
        }
    }
}

/// The price of a cache line on one CPU, by the distance of the copies, picoseconds.
///
/// The common case, a line of which one CPU has the only copy, takes two loads.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Near {
    /// By [`Distance`]. Eight, so that a sum of comparisons needs no check.
    prices: [u64; 8],
    /// Among the first CPUs: those of the first three of these sets, each including the one before.
    within: [u64; 3],
    /// The complement of the CPU itself, and of each set: one more for each price.
    outside: [u64; 4],
    own: u16,
    /// The first core of each set.
    first: [u16; 3],
    numbering: Numbering,
    from: ByCpu,
}

/// From a CPU to a copy of a line. A type with few values, so that an index needs no check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
enum Distance {
    /// The CPU itself.
    Own,
    /// A thread of its core.
    Core,
    /// A CPU that shares its last-level cache.
    Cache,
    Socket,
    Farther,
}

/// By number of the CPU.
#[derive(Clone, Debug)]
struct ByCpu([Distance; CPUS_MAX as usize]);

impl Default for ByCpu {
    fn default() -> ByCpu {
        ByCpu([Distance::Own; CPUS_MAX as usize])
    }
}

impl Near {
    /// Prices on `cpu`: from threads of its core, CPUs that share its last-level cache, CPUs of its
    /// socket, and from farther away.
    pub fn new(cpu: CpuId, numbering: Numbering, prices: [u64; 4]) -> Near {
        let core = cpu.0 % numbering.cores;
        let mut near = Near {
            own: cpu.0,
            first: numbering.adjacent.map(|count| core / count * count),
            numbering,
            ..Near::default()
        };
        near.prices[1..5].copy_from_slice(&prices);
        for from in 0..numbering.cores * numbering.threads {
            near.from.0[usize::from(from)] = near.distance(from);
        }
        let set = |is: &dyn Fn(u16) -> bool| {
            (0..WORD).fold(0, |mask, from| mask | u64::from(is(from)) << from)
        };
        near.within = core::array::from_fn(|level| set(&|from| near.is_within(level, from)));
        let [core, cache, socket] = near.within;
        near.outside = [set(&|from| from == cpu.0), core, cache, socket].map(|mask| !mask);
        near
    }

    fn is_within(&self, level: usize, from: u16) -> bool {
        let core = from % self.numbering.cores;
        core.wrapping_sub(self.first[level]) < self.numbering.adjacent[level]
    }

    fn distance(&self, from: u16) -> Distance {
        match from {
            own if own == self.own => Distance::Own,
            _ if self.is_within(0, from) => Distance::Core,
            _ if self.is_within(1, from) => Distance::Cache,
            _ if self.is_within(2, from) => Distance::Socket,
            _ => Distance::Farther,
        }
    }

    /// Price of a line of which one CPU has the only copy; zero if it is this one.
    #[inline]
    pub fn of_one(&self, cpu: u16) -> u64 {
        self.prices[self.from.0[usize::from(cpu % CPUS_MAX)] as usize]
    }

    /// Price of a line of which these of the first CPUs have copies: from the nearest.
    #[inline]
    fn nearest(&self, copies: u64) -> u64 {
        let beyond = count(&self.within, |set| copies & set == 0);
        self.prices[(1 + beyond) % 8]
    }

    /// Price of invalidating these copies: as far as the farthest. The CPU's own costs nothing.
    #[inline]
    fn farthest(&self, copies: u64) -> u64 {
        let reached = count(&self.outside, |set| copies & set != 0);
        self.prices[reached % 8]
    }

    /// The same as [`Self::nearest`] of any CPUs: `any` says whether one in a range has a copy.
    fn nearest_of(&self, any: impl Fn(Range<u16>) -> bool) -> u64 {
        let within = |level: &usize| {
            let (first, count) = (self.first[*level], self.numbering.adjacent[*level]);
            self.threads()
                .any(|thread| any(thread + first..thread + first + count))
        };
        let beyond = (0..3).find(within).unwrap_or(3);
        self.prices[1 + beyond]
    }

    /// The same as [`Self::farthest`] of any CPUs.
    fn farthest_of(&self, any: impl Fn(Range<u16>) -> bool) -> u64 {
        let outside = |level: &usize| {
            let (first, count) = (self.first[*level], self.numbering.adjacent[*level]);
            self.threads().any(|thread| {
                let end = thread + self.numbering.cores;
                any(thread..thread + first) || any(thread + first + count..end)
            })
        };
        let reached = (0..3).rev().find(outside).map_or_else(
            || u8::from(any(0..self.own) || any(self.own + 1..CPUS_MAX)),
            |level| level as u8 + 2,
        );
        self.prices[usize::from(reached)]
    }

    /// The same as [`Self::nearest`] of at least one other CPU, one by one.
    fn nearest_few(&self, few: impl Iterator<Item = u16>) -> u64 {
        let nearest = self.distances(few).min();
        self.prices[nearest.unwrap_or(Distance::Own) as usize]
    }

    /// The same as [`Self::farthest`], one by one.
    fn farthest_few(&self, few: impl Iterator<Item = u16>) -> u64 {
        let farthest = self.distances(few).max();
        self.prices[farthest.unwrap_or(Distance::Own) as usize]
    }

    /// Numbers of no CPU are left out.
    fn distances(&self, few: impl Iterator<Item = u16>) -> impl Iterator<Item = Distance> {
        few.filter_map(|cpu| self.from.0.get(usize::from(cpu)).copied())
    }

    /// The first CPU of each thread of cores.
    fn threads(&self) -> impl Iterator<Item = u16> {
        let cores = self.numbering.cores;
        (0..self.numbering.threads).map(move |thread| thread * cores)
    }
}

/// The number of sets for which `is` holds. No branch for each: it would be unpredictable.
#[inline]
fn count(sets: &[u64], is: impl Fn(u64) -> bool) -> usize {
    sets.iter().map(|&set| usize::from(is(set))).sum()
}

/// The combined time of misses that do not depend on each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overlap {
    /// They overlap: the longest counts.
    #[default]
    Together,
    /// Each is waited for before the next begins.
    OneByOne,
}

impl Overlap {
    /// Time of two of them.
    #[inline]
    pub fn both(self, a: u64, b: u64) -> u64 {
        match self {
            Overlap::Together => a.max(b),
            Overlap::OneByOne => a + b,
        }
    }
}

/// Lines keep times in units of 64 ps, modulo 0.27 s.
const BEAT: u32 = 6;

/// A time that precedes the last transfer by less than this is an earlier one; by more, the 32-bit
/// clock has wrapped. A millisecond.
const AHEAD: u32 = 1_000_000_000 >> BEAT;

/// Limit of the lag between CPUs in virtual time, with a margin. A microsecond.
const BEHIND: i32 = 1_000_000 >> BEAT;

/// The CPUs that have a copy of a cache line. Neither hashed nor compared.
#[derive(Clone, Debug)]
pub struct Line {
    /// The CPU that has it exclusively, below [`CPUS_MAX`]; or where the CPUs that share it are.
    sole: Cell<u16>,
    /// Duration of the last back-to-back transfers for atomic operations.
    busy: Cell<u16>,
    /// Begin of these transfers.
    since: Cell<u32>,
    /// The CPUs that share it: see `sharers.rs`.
    copies: Sharers,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            sole: Cell::new(sharers::FIRST),
            busy: Cell::new(0),
            since: Cell::new(0),
            copies: Sharers::default(),
        }
    }
}

impl Line {
    /// True if this CPU has it exclusively: it reads and writes without a miss.
    #[inline]
    pub fn is_of(&self, cpu: CpuId) -> bool {
        self.sole.get() == cpu.0
    }

    /// True if this CPU has a copy: it reads without a miss.
    #[inline]
    pub(crate) fn is_at(&self, cpu: CpuId) -> bool {
        let sole = self.sole.get();
        sole == cpu.0 || sole >= sharers::FIRST && self.copies.has(sole, cpu.0)
    }

    /// A read by `cpu`. Picoseconds.
    #[inline]
    pub fn read(&self, cpu: CpuId, near: &Near) -> u64 {
        if self.is_at(cpu) {
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

    /// A read and a write by `cpu`; the write is not waited for. Picoseconds.
    #[inline]
    pub fn update(&self, cpu: CpuId, near: &Near) -> u64 {
        if self.is_of(cpu) {
            return 0;
        }
        self.missed_update(cpu, near)
    }

    // Not inlined into the labels, which are many; `request/lines.rs` has them in one place.
    #[inline(never)]
    fn missed_read(&self, cpu: CpuId, near: &Near) -> u64 {
        self.fetch(cpu, near)
    }

    #[inline(never)]
    fn missed_write(&self, cpu: CpuId, near: &Near) -> u64 {
        self.take_away(cpu, near)
    }

    #[inline(never)]
    fn missed_update(&self, cpu: CpuId, near: &Near) -> u64 {
        self.claim(cpu, near).0
    }

    /// A read by a CPU that does not have it exclusively.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(crate) fn fetch(&self, cpu: CpuId, near: &Near) -> u64 {
        match self.fetch_among_first(cpu, near) {
            Some(price) => price,
            None => self.fetch_far(cpu, near),
        }
    }

    /// The same if all CPUs that have it are among the first; otherwise nothing happens.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(crate) fn fetch_among_first(&self, cpu: CpuId, near: &Near) -> Option<u64> {
        let sole = self.sole.get();
        if (sole | cpu.0) < WORD {
            self.sole.set(sharers::FIRST);
            self.copies.begin(sole, cpu.0);
            return Some(near.of_one(sole));
        }
        (sole == sharers::FIRST && cpu.0 < WORD).then(|| self.copies.fetch(cpu.0, near))
    }

    #[cold]
    pub(crate) fn fetch_far(&self, cpu: CpuId, near: &Near) -> u64 {
        let sole = self.sole.get();
        let (place, price) = match sole < CPUS_MAX {
            true => (self.copies.begin_far(sole, cpu.0), near.of_one(sole)),
            false => self.copies.fetch_far(sole, cpu.0, near),
        };
        self.sole.set(place);
        price
    }

    /// A write by a CPU that does not have it exclusively.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(crate) fn take_away(&self, cpu: CpuId, near: &Near) -> u64 {
        let sole = self.sole.replace(cpu.0);
        if sole < CPUS_MAX {
            return near.of_one(sole);
        }
        self.copies.farthest(sole, near)
    }

    /// An atomic operation of another CPU needs the line at `at_ps` for a transfer of `price`.
    /// Returns the wait for the transfers before it. CPUs run ahead of each other in virtual time,
    /// so `at_ps` may lie before that of earlier calls: such an operation goes first, and the waits
    /// that were returned already do not change. The next call waits for all of them.
    fn stand_in_line(&self, at_ps: u64, price: u64) -> u64 {
        let beats = |ps: u64| (ps >> BEAT) as u32;
        let (begins, takes) = (beats(at_ps), beats(price));
        let busy = u32::from(self.busy.get());
        let behind = begins.wrapping_sub(self.since.get()) as i32;
        let (since, all, wait) = if (0..busy as i32).contains(&behind) {
            (self.since.get(), busy + takes, busy - behind as u32)
        } else if behind < 0 && behind.unsigned_abs() < takes {
            (begins, busy + takes, 0)
        } else if behind < 0 && behind.unsigned_abs() < AHEAD {
            return 0;
        } else {
            (begins, takes, 0)
        };
        // No CPU lags this far: older transfers are over.
        let old = (begins.wrapping_sub(since) as i32 - BEHIND).clamp(0, all as i32) as u32;
        self.since.set(since.wrapping_add(old));
        self.busy.set((all - old).min(u32::from(u16::MAX)) as u16);
        u64::from(wait) << BEAT
    }

    /// A read and a write by a CPU that does not have it exclusively: the price of the load, and
    /// that of the store after it.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(crate) fn claim(&self, cpu: CpuId, near: &Near) -> (u64, u64) {
        let sole = self.sole.replace(cpu.0);
        if sole < CPUS_MAX {
            let price = near.of_one(sole);
            return (price, price);
        }
        let had = self.copies.has(sole, cpu.0);
        let load = if had {
            0
        } else {
            self.copies.nearest(sole, near)
        };
        (load, self.copies.farthest(sole, near))
    }
}

/// Prices of the operations of a label on one CPU, besides the price of the label itself, in
/// picoseconds. All zero: nothing has a price (explorer, scripts).
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Tariff {
    /// An atomic read-modify-write operation.
    pub atomic: u64,
    /// A container operation: a tree node visited, a list or hash operation.
    pub container_op: u64,
    /// A failed try-lock touches no line.
    pub blind_tries: bool,
    /// How several misses add up.
    pub overlap: Overlap,
    /// Capacity of a CPU's caches for a table. `None`: unlimited.
    pub caches: Option<Room>,
    pub near: Near,
}

/// Capacity of the caches of a CPU for lines of a table, one of each object. A walk over more lines
/// than a cache holds misses on all of them: each was evicted before its next use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Lines that fit into a core's own cache.
    pub own: u32,
    /// Lines that fit into the last-level cache.
    pub last_level: u32,
    /// Price of a line that is in the last-level cache only. Picoseconds.
    pub from_last_level: u64,
    /// Price of a line that is in no cache. Picoseconds.
    pub from_memory: u64,
}

impl Room {
    /// Price of one line of a walk over `lines` lines of a table.
    fn price(&self, lines: usize) -> u64 {
        if lines <= self.own as usize {
            0
        } else if lines <= self.last_level as usize {
            self.from_last_level
        } else {
            self.from_memory
        }
    }
}

/// Time of cache misses, picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Misses {
    /// Dependent misses: each is waited for.
    pub chain: u64,
    /// The longest of those that overlap.
    pub together: u64,
    /// The longest miss of a store: it overlaps with the loads and is complete at the end of the
    /// label. The release of a lock is one of them.
    pub stores: u64,
}

impl Misses {
    /// The time of these misses if no other meter counted for the same label.
    #[inline]
    pub fn alone(self) -> u64 {
        self.chain + self.together + self.stores
    }

    /// Combined with the misses of another meter for the same label.
    #[inline]
    pub fn with(self, other: Misses, overlap: Overlap) -> Misses {
        Misses {
            chain: self.chain + other.chain,
            together: overlap.both(self.together, other.together),
            stores: overlap.both(self.stores, other.stores),
        }
    }
}

/// The work of a label, priced as it happens.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Meter {
    work: u64,
    /// A miss was counted: most labels miss nothing.
    missed: bool,
    misses: Misses,
    pub tariff: Tariff,
}

impl Meter {
    /// An atomic read-modify-write operation on a line, in a label that began at `at_ps`.
    #[inline]
    pub fn atomic(&mut self, line: &Line, cpu: CpuId, at_ps: u64) {
        if self.missed || !line.is_of(cpu) {
            self.missed_atomic(line, cpu, at_ps);
        }
        self.work += self.tariff.atomic;
    }

    /// A load from a line.
    #[inline]
    pub fn load(&mut self, line: &Line, cpu: CpuId) {
        if !line.is_at(cpu) {
            self.missed_load(line, cpu);
        }
    }

    /// A load from one line of a walk over `lines` lines of a table: a line that was evicted from
    /// the CPU's own cache comes from the last-level cache, or from memory.
    pub fn load_among(&mut self, lines: usize, line: &Line, cpu: CpuId) {
        let tariff = &self.tariff;
        let miss = match tariff.caches {
            Some(room) if line.is_at(cpu) => room.price(lines),
            None if line.is_at(cpu) => 0,
            _ => line.fetch(cpu, &tariff.near),
        };
        if miss > 0 {
            self.miss(miss, 0);
        }
    }

    /// A load from a line that is also written: the load copies it from the nearest CPU, and the
    /// store invalidates the other copies.
    #[inline]
    pub fn update(&mut self, line: &Line, cpu: CpuId) {
        if !line.is_of(cpu) {
            self.missed_update(line, cpu);
        }
    }

    /// A store to a line.
    #[inline]
    pub fn store(&mut self, line: &Line, cpu: CpuId) {
        if !line.is_of(cpu) {
            self.missed_store(line, cpu);
        }
    }

    // Not inlined into the labels: less code where nothing misses.
    #[inline(never)]
    fn missed_atomic(&mut self, line: &Line, cpu: CpuId, at_ps: u64) {
        let Misses {
            chain,
            together,
            stores,
        } = self.misses;
        let before = chain + together + stores;
        let own = match line.is_of(cpu) {
            true => 0,
            false => {
                let price = line.take_away(cpu, &self.tariff.near);
                line.stand_in_line(at_ps + before, price) + price
            }
        };
        self.misses = Misses {
            chain: before + own,
            ..Misses::default()
        };
        self.missed = true;
    }

    #[inline(never)]
    fn missed_load(&mut self, line: &Line, cpu: CpuId) {
        let load = line.fetch(cpu, &self.tariff.near);
        self.miss(load, 0);
    }

    #[inline(never)]
    fn missed_update(&mut self, line: &Line, cpu: CpuId) {
        let (load, store) = line.claim(cpu, &self.tariff.near);
        self.miss(load, store);
    }

    #[inline(never)]
    fn missed_store(&mut self, line: &Line, cpu: CpuId) {
        let store = line.take_away(cpu, &self.tariff.near);
        self.miss(0, store);
    }

    #[inline]
    fn miss(&mut self, load: u64, store: u64) {
        let (misses, overlap) = (&mut self.misses, self.tariff.overlap);
        misses.together = overlap.both(misses.together, load);
        misses.stores = overlap.both(misses.stores, store);
        self.missed = true;
    }

    #[inline]
    pub fn container_ops(&mut self, count: u32) {
        self.work += u64::from(count) * self.tariff.container_op;
    }

    /// Takes the work since the last call, and the misses. Picoseconds.
    #[inline]
    pub fn take(&mut self) -> (u64, Misses) {
        (self.take_work(), self.take_misses().unwrap_or_default())
    }

    #[inline]
    pub fn take_work(&mut self) -> u64 {
        core::mem::take(&mut self.work)
    }

    /// Takes the misses since the last call, if there are any.
    #[inline]
    pub fn take_misses(&mut self) -> Option<Misses> {
        core::mem::take(&mut self.missed).then(|| core::mem::take(&mut self.misses))
    }
}

#[cfg(test)]
mod tests;
