//! The CPUs that share a line, in eight bytes where they are few or near each other, else in a
//! set of all CPUs that is allocated once.
//!
//! Not here: what a copy costs (`line.rs`). The place of the CPUs is a number from [`FIRST`] on,
//! which the line keeps where it has its only owner otherwise.

use core::cell::{Cell, OnceCell};
use core::ops::Range;

use super::{CPUS_MAX, Near, WORD};

/// Bits of the first CPUs; plus n: of the CPUs from 64 * n on. None at all: bits without any.
pub(super) const FIRST: u16 = 0x8000;
/// Up to four CPUs by their numbers.
const FEW: u16 = FIRST + WORDS as u16;
/// Bits of all CPUs.
const MANY: u16 = FEW + 1;

const WORDS: usize = (CPUS_MAX / WORD) as usize;
/// An entry of `FEW` without a CPU.
const FREE: u16 = u16::MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Sharers {
    word: Cell<u64>,
    all: OnceCell<Box<[Cell<u64>; WORDS]>>,
}

impl Sharers {
    /// Whether `cpu` is one of them.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(super) fn has(&self, place: u16, cpu: u16) -> bool {
        if place == FIRST | (cpu / WORD) {
            return self.word.get() >> (cpu % WORD) & 1 == 1;
        }
        place >= FEW && self.has_far(place, cpu)
    }

    #[cold]
    fn has_far(&self, place: u16, cpu: u16) -> bool {
        self.any(place, cpu..cpu + 1)
    }

    /// Two of the first CPUs, and no other.
    #[inline]
    pub(super) fn begin(&self, a: u16, b: u16) {
        self.word.set(1 << a | 1 << b);
    }

    /// Two CPUs, and no other. Returns their place.
    pub(super) fn begin_far(&self, a: u16, b: u16) -> u16 {
        self.word.set(0);
        let place = self.add(FIRST, a);
        self.add(place, b)
    }

    /// Adds one of the first CPUs to others of them. Returns the price of its copy.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(super) fn fetch(&self, cpu: u16, near: &Near) -> u64 {
        let (copies, bit) = (self.word.get(), 1 << cpu);
        self.word.set(copies | bit);
        match copies & bit != 0 || copies == 0 {
            true => 0,
            false => near.nearest(copies),
        }
    }

    /// Adds any CPU. Returns their place, and the price of its copy.
    pub(super) fn fetch_far(&self, place: u16, cpu: u16, near: &Near) -> (u16, u64) {
        if self.has(place, cpu) {
            return (place, 0);
        }
        let price = self.nearest(place, near);
        (self.add(place, cpu), price)
    }

    /// Price of another copy: from the nearest.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(super) fn nearest(&self, place: u16, near: &Near) -> u64 {
        match self.word.get() {
            _ if place != FIRST => self.nearest_far(place, near),
            0 => 0,
            copies => near.nearest(copies),
        }
    }

    #[cold]
    fn nearest_far(&self, place: u16, near: &Near) -> u64 {
        match place {
            MANY => near.nearest_of(|cpus| self.any(place, cpus)),
            FEW => near.nearest_few(self.few().into_iter()),
            _ => near.nearest_few(self.group(place)),
        }
    }

    /// Price of invalidating all copies.
    #[expect(clippy::inline_always, reason = "a call in each miss, measured")]
    #[inline(always)]
    pub(super) fn farthest(&self, place: u16, near: &Near) -> u64 {
        match place {
            FIRST => near.farthest(self.word.get()),
            _ => self.farthest_far(place, near),
        }
    }

    #[cold]
    fn farthest_far(&self, place: u16, near: &Near) -> u64 {
        match place {
            MANY => near.farthest_of(|cpus| self.any(place, cpus)),
            FEW => near.farthest_few(self.few().into_iter()),
            _ => near.farthest_few(self.group(place)),
        }
    }

    /// Whether any of these CPUs is one of them.
    fn any(&self, place: u16, cpus: Range<u16>) -> bool {
        match place {
            MANY => {
                let all = self.all.get().expect("there are many");
                let words = usize::from(cpus.start / WORD)..usize::from(cpus.end.div_ceil(WORD));
                let mut words = words.map(|word| all[word].get() & bits_of(word, &cpus));
                words.any(|bits| bits != 0)
            }
            FEW => self.few().iter().any(|cpu| cpus.contains(cpu)),
            _ => self.word.get() & bits_of(usize::from(place - FIRST), &cpus) != 0,
        }
    }

    /// The CPUs of one word.
    fn group(&self, place: u16) -> impl Iterator<Item = u16> {
        let (first, mut rest) = ((place - FIRST) * WORD, self.word.get());
        core::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as u16;
            rest &= rest.wrapping_sub(1);
            (bit < WORD).then_some(first + bit)
        })
    }

    /// The entries of `FEW`.
    fn few(&self) -> [u16; 4] {
        let word = self.word.get();
        core::array::from_fn(|entry| (word >> (16 * entry)) as u16)
    }

    fn set_few(&self, few: [u16; 4]) {
        let word = few.iter().rev();
        self.word
            .set(word.fold(0, |word, &cpu| word << 16 | u64::from(cpu)));
    }

    /// Adds one that is none of them. Returns their place.
    fn add(&self, place: u16, cpu: u16) -> u16 {
        let (group, bit) = (FIRST | (cpu / WORD), 1 << (cpu % WORD));
        let word = self.word.get();
        match place {
            MANY => {
                let all = self.all.get().expect("there are many");
                let word = &all[usize::from(cpu / WORD)];
                word.set(word.get() | bit);
                MANY
            }
            FEW => {
                let mut few = self.few();
                match few.iter_mut().find(|entry| **entry == FREE) {
                    Some(entry) => *entry = cpu,
                    None => return self.spread(few.into_iter().chain([cpu])),
                }
                self.set_few(few);
                FEW
            }
            _ if word == 0 || place == group => {
                self.word.set(word | bit);
                group
            }
            _ => {
                let mut all = self.group(place).chain([cpu]);
                if word.count_ones() > 3 {
                    return self.spread(all);
                }
                self.set_few(core::array::from_fn(|_| all.next().unwrap_or(FREE)));
                FEW
            }
        }
    }

    /// Bits of these, among all CPUs.
    fn spread(&self, cpus: impl Iterator<Item = u16>) -> u16 {
        let all = self.all.get_or_init(Box::default);
        all.iter().for_each(|word| word.set(0));
        for cpu in cpus {
            self.add(MANY, cpu);
        }
        MANY
    }
}

/// The bits of a range of CPUs in word number `word`.
fn bits_of(word: usize, cpus: &Range<u16>) -> u64 {
    let first = word as u16 * WORD;
    let below = |cpu: u16| match cpu.saturating_sub(first) {
        WORD.. => u64::MAX,
        bits => (1 << bits) - 1,
    };
    below(cpus.end) & !below(cpus.start)
}
