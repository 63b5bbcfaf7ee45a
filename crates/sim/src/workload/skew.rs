//! Ranks of which some are drawn more often: zipf, pareto, normal.
//!
//! As fio 3.33 draws them, lib/zipf.c (Gray et al., Quickly generating billion-record synthetic
//! databases) and lib/gauss.c: uniform numbers of 32 bits, and each rank multiplied by the golden
//! ratio, which spreads the frequent ones over the range. Two ranks may share one place.

use super::power::{ln, pow};
use crate::plan::{Decimal, Shape, Skew};
use crate::rng::Rng;

/// 2^64 (1 - phi), hash.h __hash_u64().
const GOLDEN_RATIO: u64 = 0x61c8_8646_80b5_83eb;
/// Ranks that zeta is summed over at most (ZIPF_MAX_GEN).
const ZETA_TERMS: u64 = 10_000_000;
/// Draws that make a normal one (GAUSS_ITERS).
const NORMAL_DRAWS: u64 = 12;

/// A distribution over 0..n.
#[derive(Clone, Debug)]
pub(super) struct Ranks {
    n: u64,
    /// Place of the first rank.
    first: u64,
    hashed: bool,
    draw: Draw,
}

#[derive(Clone, Copy, Debug)]
enum Draw {
    Zipf {
        zeta: f64,
        /// Up to here, the second rank.
        second: f64,
        alpha: f64,
        eta: f64,
    },
    Pareto {
        power: f64,
    },
    Normal {
        /// Ranks, half of them to each side.
        deviation: u32,
    },
}

impl Ranks {
    /// Ranks of 0..n. `anywhere` is the place of the first one if the skew has no centre. Panics if
    /// n is zero.
    pub(super) fn new(skew: Skew, n: u64, hashed: bool, anywhere: u32) -> Ranks {
        assert!(n > 0, "no rank to draw");
        let center = skew.center.map(Decimal::to_f64);
        let anywhere = u64::from(anywhere);
        let at_center = center.map(|center| (n as f64 * center) as u64);
        let (draw, first) = match skew.shape {
            Shape::Zipf(theta) => (Draw::zipf(n, theta.to_f64()), at_center.unwrap_or(anywhere)),
            Shape::Pareto(h) => {
                let h = h.to_f64();
                let power = ln(h) / ln(1.0 - h);
                (Draw::Pareto { power }, at_center.unwrap_or(anywhere))
            }
            Shape::Normal(percent) => {
                let ranks = (n as f64 * percent.to_f64() / 100.0).ceil();
                let deviation = (ranks as u32).min((n / 2).min(u64::from(u32::MAX)) as u32);
                // fio keeps the distance from the middle in 32 bits without a sign.
                let first = center.map_or(0, |center| (n as f64 * (center - 0.5)) as i64 as u32);
                (Draw::Normal { deviation }, u64::from(first))
            }
        };
        Ranks {
            n,
            first,
            hashed,
            draw,
        }
    }

    pub(super) fn next(&self, rng: &mut Rng) -> u64 {
        self.place(&mut || word(rng))
    }

    /// The place of a rank drawn with these random words.
    fn place(&self, word: &mut impl FnMut() -> u32) -> u64 {
        let rank = match self.draw {
            Draw::Zipf {
                zeta,
                second,
                alpha,
                eta,
            } => {
                let uniform = unit(word());
                if uniform * zeta < 1.0 {
                    0
                } else if uniform * zeta < second {
                    1
                } else {
                    // Above 0 but for rounding.
                    let base = (eta * uniform - eta + 1.0).max(f64::MIN_POSITIVE);
                    (self.n as f64 * pow(base, alpha)) as u64
                }
            }
            Draw::Pareto { power } => {
                let uniform = unit(word());
                let part = if uniform > 0.0 {
                    pow(uniform, power)
                } else {
                    0.0
                };
                ((self.n - 1) as f64 * part) as u64
            }
            Draw::Normal { deviation } => self.normal(deviation, word),
        };
        let place = if self.hashed {
            rank.wrapping_mul(GOLDEN_RATIO)
        } else {
            rank
        };
        place.wrapping_add(self.first) % self.n
    }

    /// gauss_next(): the mean of some uniform draws, moved by a uniform deviation.
    fn normal(&self, deviation: u32, word: &mut impl FnMut() -> u32) -> u64 {
        let draws = (0..NORMAL_DRAWS).map(|_| u64::from(word()) % (self.n + 1));
        let mean = draws.sum::<u64>().div_ceil(NORMAL_DRAWS) as i64;
        if deviation == 0 {
            return mean as u64;
        }
        let part = f64::from(word()) / 4_294_967_296.0;
        let mut moved = (f64::from(deviation) * part) as i64 - i64::from(deviation / 2);
        while moved != 0 && !(0..self.n as i64).contains(&(mean + moved)) {
            moved /= 2;
        }
        (mean + moved) as u64
    }
}

impl Draw {
    fn zipf(n: u64, theta: f64) -> Draw {
        let zeta = zeta(n.min(ZETA_TERMS), theta);
        let second = 1.0 + pow(0.5, theta);
        Draw::Zipf {
            zeta,
            second,
            alpha: 1.0 / (1.0 - theta),
            // Two ranks or one: the other cases take all draws.
            eta: if n > 2 {
                (1.0 - pow(2.0 / n as f64, 1.0 - theta)) / (1.0 - second / zeta)
            } else {
                0.0
            },
        }
    }
}

/// The sum of 1/k^theta over 1 to n: the first terms one by one, the others by Euler and
/// Maclaurin's formula, whose first term left out is below 1e-18.
fn zeta(n: u64, theta: f64) -> f64 {
    const TERMS: u64 = 1000;
    let term = |k: u64| pow(1.0 / k as f64, theta);
    let sum: f64 = (1..=n.min(TERMS)).map(term).sum();
    if n <= TERMS {
        return sum;
    }
    let (from, to) = (TERMS as f64, n as f64);
    let integral = (pow(to, 1.0 - theta) - pow(from, 1.0 - theta)) / (1.0 - theta);
    // The term of `from` is in both parts.
    let ends = (term(n) - term(TERMS)) / 2.0;
    let slopes = theta / 12.0 * (term(TERMS) / from - term(n) / to);
    let third = theta * (theta + 1.0) * (theta + 2.0) / 720.0;
    let bends = third * (term(TERMS) / (from * from * from) - term(n) / (to * to * to));
    sum + integral + ends + slopes - bends
}

/// 32 random bits.
pub(super) fn word(rng: &mut Rng) -> u32 {
    (rng.next_u64() >> 32) as u32
}

/// 0 to 1, both of them possible.
fn unit(word: u32) -> f64 {
    f64::from(word) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
