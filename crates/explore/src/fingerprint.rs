//! 128-bit fingerprints of states.
//!
//! The functions are fixed: a state has the same fingerprint in every run.

use core::hash::{Hash, Hasher};

const ODD_A: u64 = 0x9e37_79b9_7f4a_7c15;
const ODD_B: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// Packs a value into words, and hashes the words into two independent halves.
#[derive(Clone, Copy, Debug)]
struct Twin {
    a: u64,
    b: u64,
    packed: u64,
    filled: u32,
}

impl Twin {
    fn new() -> Twin {
        Twin {
            a: ODD_B,
            b: ODD_A,
            packed: 0,
            filled: 0,
        }
    }

    #[inline]
    fn word(&mut self, value: u64) {
        self.a = (self.a.rotate_left(5) ^ value).wrapping_mul(ODD_A);
        self.b = (self.b ^ value).wrapping_mul(ODD_B).rotate_left(29);
    }

    /// Appends a value of fewer than 64 bits.
    #[inline]
    fn pack(&mut self, value: u64, bits: u32) {
        self.packed |= value << self.filled;
        self.filled += bits;
        if self.filled >= 64 {
            self.word(self.packed);
            self.filled -= 64;
            self.packed = value >> (bits - self.filled);
        }
    }

    fn finish_both(mut self) -> u128 {
        self.word(self.packed);
        self.word(u64::from(self.filled));
        u128::from(finalize(self.a)) << 64 | u128::from(finalize(self.b))
    }
}

impl Hasher for Twin {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.pack(u64::from(byte), 8);
        }
    }
    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.pack(u64::from(value), 8);
    }
    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.pack(u64::from(value), 16);
    }
    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.pack(u64::from(value), 32);
    }
    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.word(value);
        self.pack(0xff, 8);
    }
    /// Lengths, all small here.
    #[inline]
    fn write_usize(&mut self, value: usize) {
        assert!(value < 1 << 16, "a state with {value} parts of a kind");
        self.pack(value as u64, 16);
    }
    /// Discriminants of enums.
    #[inline]
    fn write_isize(&mut self, value: isize) {
        assert!((0..256).contains(&value), "an enum with {value} variants");
        self.pack(value as u64, 8);
    }
    fn finish(&self) -> u64 {
        self.finish_both() as u64
    }
}

/// Mixes all bits of a half into all others.
fn finalize(half: u64) -> u64 {
    let mut x = half;
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

pub(crate) fn fingerprint(value: &impl Hash) -> u128 {
    let mut twin = Twin::new();
    value.hash(&mut twin);
    twin.finish_both()
}

/// The fingerprint of bytes.
pub(crate) fn fingerprint_of(bytes: &[u8]) -> u128 {
    let mut twin = Twin::new();
    let (words, rest) = bytes.as_chunks();
    for word in words {
        twin.word(u64::from_le_bytes(*word));
    }
    for &byte in rest {
        twin.write_u8(byte);
    }
    twin.word(bytes.len() as u64);
    twin.finish_both()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn neighbours_share_no_half() {
        let mut halves = BTreeMap::new();
        for a in 0..64_u32 {
            for b in 0..64_u8 {
                let print = fingerprint(&(a, b));
                for half in [print as u64, (print >> 64) as u64] {
                    assert_eq!(halves.insert(half, (a, b)), None, "half of {a} {b}");
                }
            }
        }
    }
}
