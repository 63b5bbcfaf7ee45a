//! A random permutation of 0..n in a few words: every number once, in an order of no pattern.
//!
//! Not cryptography: a Feistel network of four rounds over the next power of two, walked until it
//! falls below n (fewer than two steps on average). A bitmap would cost n bits and late searches.

use crate::rng::Rng;

const ROUNDS: usize = 4;

/// A permutation of 0..n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    /// Bits of the two halves, which swap roles each round.
    left_bits: u32,
    right_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A random one of 0..n. Panics if n is zero or above 2^62.
    pub fn new(n: u64, rng: &mut Rng) -> Permutation {
        assert!(n > 0, "nothing to permute");
        assert!(n <= 1 << 62, "too much to permute");
        let bits = u64::BITS - (n - 1).leading_zeros();
        let mut permutation = Permutation {
            n,
            left_bits: bits / 2,
            right_bits: bits - bits / 2,
            keys: [0; ROUNDS],
        };
        permutation.renew(rng);
        permutation
    }

    /// Another one of the same length.
    pub fn renew(&mut self, rng: &mut Rng) {
        self.keys = core::array::from_fn(|_| rng.next_u64());
    }

    /// How many numbers it permutes.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> u64 {
        self.n
    }

    /// The number at this index. Panics if the index is not below the length.
    pub fn at(&self, index: u64) -> u64 {
        assert!(index < self.n, "index {index} of {}", self.n);
        let mut number = self.shuffle(index);
        // The walk returns below n: it follows a cycle that began there.
        while number >= self.n {
            number = self.shuffle(number);
        }
        number
    }

    /// A permutation of all numbers of `left_bits + right_bits` bits.
    fn shuffle(&self, number: u64) -> u64 {
        let (mut left_bits, mut right_bits) = (self.left_bits, self.right_bits);
        let mut left = number >> right_bits;
        let mut right = number & mask(right_bits);
        for key in self.keys {
            let mixed = (left ^ scramble(right ^ key)) & mask(left_bits);
            (left, right) = (right, mixed);
            (left_bits, right_bits) = (right_bits, left_bits);
        }
        left << right_bits | right
    }
}

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The finaliser of splitmix64, from the top bits down.
fn scramble(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
