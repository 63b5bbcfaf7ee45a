//! Random numbers: one deterministic stream per purpose, whole numbers only.
//!
//! Not for secrets. Floating point is left out on purpose: `ln` differs between C libraries, and a
//! report must not. The generator is xoshiro256** (Blackman and Vigna), seeded by splitmix64 from
//! the scenario's seed and an FNV-1a hash of the stream's name.

#[cfg(test)]
mod tests;

/// A stream of random numbers, named after what it is used for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream called `name` of a run with this seed.
    ///
    /// Streams of different names are independent, so that a further one does not change the
    /// others.
    pub fn stream(seed: u64, name: &str) -> Rng {
        let mut seeder = SplitMix(seed);
        let mut seeder = SplitMix(seeder.next() ^ fnv1a(name.as_bytes()));
        // The all-zero state would stay there, but splitmix64 is a bijection of its counter: four
        // outputs in a row cannot all be zero.
        Rng {
            state: [seeder.next(), seeder.next(), seeder.next(), seeder.next()],
        }
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `n - 1`, each equally likely. Panics if `n` is zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no number is below zero");
        // Lemire's method: the high half of a product, rejecting the few low halves that would
        // make some results likelier.
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let uneven = n.wrapping_neg() % n;
            while (product as u64) < uneven {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// True in `numerator` of `denominator` cases. Panics if the ratio is above one or the
    /// denominator is zero.
    #[inline]
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        assert!(
            numerator <= denominator,
            "a chance of {numerator} in {denominator}"
        );
        self.below(denominator) < numerator
    }

    /// A whole number with an exponential distribution of this mean, in the unit of the mean.
    ///
    /// Exact up to rounding, by von Neumann's method, which only compares: of uniform numbers u1
    /// \> u2 > ... > un, the first that breaks the run comes at an odd n with probability
    /// exp(-u1). Then u1 is the fraction; each even n adds one to the whole part. 4.3 random
    /// numbers on average.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let mut whole = 0u64;
        loop {
            let fraction = self.next_u64();
            if self.falling_run_is_odd(fraction) {
                let part = (u128::from(mean) * u128::from(fraction) + (1 << 63)) >> 64;
                return mean.saturating_mul(whole).saturating_add(part as u64);
            }
            whole += 1;
        }
    }

    fn falling_run_is_odd(&mut self, first: u64) -> bool {
        let mut last = first;
        let mut odd = true;
        loop {
            let next = self.next_u64();
            if next >= last {
                return odd;
            }
            last = next;
            odd = !odd;
        }
    }
}

/// splitmix64 (Steele, Lea, Flood): turns one word into the well mixed words of a state.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// FNV-1a, 64 bits: fixed for ever, unlike the standard library's hash.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Runs of a list, in random order: all of the list before an entry comes again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Runs {
    count: u32,
    length: u32,
    /// Where the first whole run of this round begins: one later each round, so that an entry does
    /// not always fall to the same one of two that draw in turn.
    first: u32,
    left: Vec<u32>,
    rng: Rng,
}

impl Runs {
    /// Of a list with `count` entries, `length` in a run. Panics if `length` is zero.
    pub(crate) fn new(count: u32, length: u32, rng: Rng) -> Runs {
        Runs {
            count,
            length,
            first: 0,
            left: Vec::with_capacity((count / length + 2) as usize),
            rng,
        }
    }

    /// Start and length of the next run. Nothing of an empty list.
    pub(crate) fn draw(&mut self) -> Option<(u32, u32)> {
        if self.left.is_empty() {
            self.first = (self.first + 1) % self.length;
            let whole = (self.first..self.count).step_by(self.length as usize);
            let cut = (self.first > 0 && self.count > 0).then_some(0);
            self.left.extend(whole.chain(cut));
            for last in (1..self.left.len()).rev() {
                let other = self.rng.below(last as u64 + 1) as usize;
                self.left.swap(last, other);
            }
        }
        let start = self.left.pop()?;
        let length = match start < self.first {
            true => self.first,
            false => self.length,
        };
        Some((start, length.min(self.count - start)))
    }
}
