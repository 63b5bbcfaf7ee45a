//! Confidence intervals of one run: the method of batch means.
//!
//! Figures that follow each other in a run depend on each other, so their scatter is not that of
//! independent values. Sums over batches of equal time hardly do, if the batches are long enough.
//! Found here: how much of the beginning is warm-up, how long batches must be, whether there are
//! enough of them. Not here: what is summed (`recorder/batches.rs`), why these rules
//! (docs/explanation/intervals.md).

use core::fmt;

use crate::estimate::t;

/// Most batches of a run: longer ones take the place of more.
pub const BATCHES_MAX: usize = 256;
/// Batches that the warm-up is found from are means of so many, as the name MSER-5 says.
const GROUP: usize = 5;
/// Fewest batches whose dependence is tested: of fewer the test would not see it.
pub const TESTED_MIN: usize = 32;
/// Batches of an interval: from so many up to twice as many.
const FINAL: usize = 16;
/// 90 % quantile of the normal distribution: a test as strict rejects one in ten series of
/// independent values.
const STRICT: f64 = 1.2816;

/// A mean of a run, and half the length of its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    pub mean: f64,
    pub half: f64,
}

/// Why there is no interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooShort {
    /// The warm-up is longer than half of the run.
    WarmUp,
    /// Too few batches.
    Batches,
    /// Batches that follow each other depend on each other, even the longest.
    Dependent,
    /// Too few I/Os beside the percentile.
    Ios,
}

impl TooShort {
    /// A word for it, in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            TooShort::WarmUp => "warm-up",
            TooShort::Batches => "batches",
            TooShort::Dependent => "dependent",
            TooShort::Ios => "ios",
        }
    }
}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TooShort::WarmUp => "too short: still warming up in its second half",
            TooShort::Batches => "too short: too few batches",
            TooShort::Dependent => "too short: its longest batches still depend on each other",
            TooShort::Ios => "too short: too few I/Os",
        })
    }
}

/// How many values at the beginning are warm-up: MSER-5, the start for which the rest gives its
/// mean with the smallest standard error. Nothing if that is in the second half.
pub fn warm_up(values: impl DoubleEndedIterator<Item = f64> + ExactSizeIterator) -> Option<usize> {
    let groups = values.len() / GROUP;
    // What is left over is at the end.
    let spare = values.len() - groups * GROUP;
    let mut values = values.rev().skip(spare);
    let (mut mean, mut squares) = (0.0, 0.0);
    let (mut best, mut start) = (f64::MAX, 0);
    for count in 1..=groups {
        let value = values.by_ref().take(GROUP).sum::<f64>();
        let of = count as f64;
        let far = value - mean;
        mean += far / of;
        squares += far * (value - mean);
        let error = squares / (of * of);
        if 2 * count >= groups && error <= best {
            (best, start) = (error, groups - count);
        }
    }
    // The last start that is tried would be an earlier or a later one if more were.
    (2 * (start + 1) <= groups).then_some(start * GROUP)
}

/// The mean of `parts` for each one of `wholes`, sums over the same batches: I/Os for each second,
/// latency for each I/O. One of `parts` is at least so much: the interval of a count is not shorter
/// than one to either side.
pub fn interval(parts: &[f64], wholes: &[f64], one: f64) -> Result<Interval, TooShort> {
    assert_eq!(parts.len(), wholes.len(), "sums of the same batches");
    let all = parts.len();
    let (part, whole) = (parts.iter().sum::<f64>(), wholes.iter().sum::<f64>());
    if all < TESTED_MIN || whole <= 0.0 {
        return Err(TooShort::Batches);
    }
    let mean = part / whole;
    let mut far = [0.0; BATCHES_MAX];
    for (far, (part, whole)) in far.iter_mut().zip(parts.iter().zip(wholes)) {
        *far = part - mean * whole;
    }
    // Rounding is not scatter.
    let least = 1e-12 * part.abs();
    let mut far = Merged {
        values: far,
        count: all,
        size: 1,
        least,
    };
    while far.count >= TESTED_MIN && far.is_dependent() {
        far.halve();
    }
    if far.count < TESTED_MIN {
        return Err(TooShort::Dependent);
    }
    while far.count >= 2 * FINAL {
        far.halve();
    }
    Ok(Interval {
        mean,
        half: (far.half() * (all as f64).sqrt()).max(one) / whole,
    })
}

/// How far the sums of batches are from what the mean predicts.
struct Merged {
    values: [f64; BATCHES_MAX],
    count: usize,
    /// Of how many batches each is.
    size: usize,
    least: f64,
}

/// Moments of the batches.
struct Scatter {
    squares: f64,
    /// Of neighbours.
    products: f64,
    steps: f64,
}

impl Merged {
    /// Neighbours become one; of an odd number the first is dropped.
    fn halve(&mut self) {
        let odd = self.count % 2;
        (self.count, self.size) = (self.count / 2, 2 * self.size);
        for index in 0..self.count {
            let at = odd + 2 * index;
            self.values[index] = self.values[at] + self.values[at + 1];
        }
    }

    fn scatter(&self) -> Scatter {
        let values = &self.values[..self.count];
        let mean = values.iter().sum::<f64>() / self.count as f64;
        let mut of = Scatter {
            squares: 0.0,
            products: 0.0,
            steps: 0.0,
        };
        for (index, value) in values.iter().enumerate() {
            of.squares += (value - mean) * (value - mean);
            if let Some(next) = values.get(index + 1) {
                of.products += (value - mean) * (next - mean);
                of.steps += (value - next) * (value - next);
            }
        }
        if of.squares <= self.least * self.least {
            of.squares = 0.0;
        }
        of
    }

    /// Von Neumann's ratio: steps between neighbours are small beside the scatter.
    fn is_dependent(&self) -> bool {
        let (of, count) = (self.scatter(), self.count as f64);
        if of.squares == 0.0 {
            return false;
        }
        let correlation = 1.0 - of.steps / (2.0 * of.squares);
        correlation > STRICT * ((count - 2.0) / (count * count - 1.0)).sqrt()
    }

    /// Half the interval of the sum of all batches, over the root of their number before they were
    /// merged. What correlation is left makes it longer, as if each depended on the one before
    /// only.
    fn half(&self) -> f64 {
        let (of, count) = (self.scatter(), self.count as f64);
        if of.squares == 0.0 {
            return 0.0;
        }
        let left = (of.products / of.squares).max(0.0);
        let variance = of.squares / (count - 1.0) * (1.0 + left) / (1.0 - left);
        t(self.count - 1) * (variance / self.size as f64).sqrt()
    }
}

#[cfg(test)]
mod tests;
