//! The file of a sweep: which points it has, and with which values.
//!
//! Point k depends on the text alone, so that any machine makes the same one. Order of the points:
//! scenarios, rows of `[[list]]`, keys of `[grid]` as they are written, samples; the last changes
//! fastest. Read next: `design/read.rs` for the format. Not here: making the runs (`cli`).

mod read;
mod sample;

use std::ops::Range;

use crate::compare::{Measure, measures_of};

/// Points of a sweep at most.
const POINTS_MAX: u64 = 10_000_000;

/// Key and value of a scenario, as `--set` takes both, or of an option of `run`.
pub type Setting = (String, String);

/// A sweep as its file has it.
#[derive(Clone, Debug)]
pub struct Design {
    /// Names or files.
    pub scenarios: Vec<String>,
    /// What all points have.
    pub set: Vec<Setting>,
    /// The first seed; without one the scenario's, if there is one run a point.
    pub seed: Option<u64>,
    /// Runs of a point: at least, at most.
    pub seeds: (u32, u32),
    /// Half of the 95 % interval of these figures' means, in parts of the mean, at which no
    /// further seed is run.
    pub precision: Vec<(&'static Measure, f64)>,
    list: Vec<Vec<Setting>>,
    /// The keys of the grid with their values, then those of samples, with one of each sample.
    grid: Vec<(String, Vec<String>)>,
    samples: Vec<(String, Vec<String>)>,
    skip: Vec<Vec<(String, Test)>>,
    /// The points that no `[[skip]]` leaves out, as numbers of combinations.
    kept: Vec<u32>,
}

/// What a value is tested for.
#[derive(Clone, Debug)]
enum Test {
    OneOf(Vec<String>),
    Within(Option<f64>, Option<f64>),
}

impl Test {
    fn holds(&self, value: &str) -> bool {
        let number = value.parse::<f64>().ok();
        let equal = |of: &String| match (number, of.parse::<f64>()) {
            (Some(number), Ok(of)) => number.total_cmp(&of).is_eq(),
            _ => value == of,
        };
        match self {
            Test::OneOf(values) => values.iter().any(equal),
            Test::Within(from, to) => number.is_some_and(|number| {
                from.is_none_or(|from| from <= number) && to.is_none_or(|to| number <= to)
            }),
        }
    }
}

impl Design {
    /// Number of points.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Runs of all points: at least, at most.
    pub fn runs(&self) -> (u64, u64) {
        let points = self.len() as u64;
        let (least, most) = self.seeds;
        (points * u64::from(least), points * u64::from(most))
    }

    /// The points of one of several shards: every so many-th, so that neighbours, which take about
    /// the same time, are dealt out evenly.
    pub fn shard(&self, index: usize, count: usize) -> impl Iterator<Item = usize> {
        (index..self.len()).step_by(count)
    }

    /// Index of a point's scenario, and the values that points have different, by key.
    pub fn point(&self, index: usize) -> (usize, Vec<(&str, &str)>) {
        self.combination(self.kept[index].into())
    }

    fn combination(&self, mut rest: u64) -> (usize, Vec<(&str, &str)>) {
        let mut digit = |count: usize| {
            let digit = rest % count as u64;
            rest /= count as u64;
            digit as usize
        };
        let mut values = Vec::new();
        if let Some((_, all)) = self.samples.first() {
            let sample = digit(all.len());
            let samples = self.samples.iter().rev();
            values.extend(samples.map(|(key, all)| (key.as_str(), all[sample].as_str())));
        }
        for (key, all) in self.grid.iter().rev() {
            values.push((key.as_str(), all[digit(all.len())].as_str()));
        }
        if !self.list.is_empty() {
            let row = &self.list[digit(self.list.len())];
            values.extend(
                row.iter()
                    .rev()
                    .map(|(key, value)| (key.as_str(), value.as_str())),
            );
        }
        values.reverse();
        (digit(self.scenarios.len()), values)
    }

    /// Number of combinations; nothing if there are too many.
    fn combinations(&self) -> Option<u64> {
        let samples = self.samples.first().map(|(_, all)| all.len());
        let counts = self.grid.iter().map(|(_, values)| values.len());
        let list = Some(self.list.len()).filter(|rows| *rows > 0);
        let counts = counts
            .chain(samples)
            .chain(list)
            .chain([self.scenarios.len().max(1)]);
        let all = counts.map(|count| count as u64);
        let product = all.clone().try_fold(1_u64, u64::checked_mul)?;
        (product <= POINTS_MAX).then_some(product)
    }

    /// Numbers of the combinations that no `[[skip]]` leaves out. The error is the index of one
    /// that leaves out none.
    fn keep(&self, combinations: u64) -> Result<Vec<u32>, usize> {
        let mut used = vec![false; self.skip.len()];
        let mut is_kept = |number: &u32| {
            let (scenario, values) = self.combination((*number).into());
            let of = |key: &str| match key {
                "scenario" => Some(self.scenarios[scenario].as_str()),
                _ => values
                    .iter()
                    .find(|(of, _)| *of == key)
                    .map(|(_, value)| *value),
            };
            let mut kept = true;
            for (used, tests) in used.iter_mut().zip(&self.skip) {
                let mut tests = tests.iter();
                let holds = |(key, test): &(String, Test)| of(key).is_some_and(|v| test.holds(v));
                if tests.all(holds) {
                    (*used, kept) = (true, false);
                }
            }
            kept
        };
        let all: Range<u32> = 0..combinations as u32;
        let kept = match self.skip.is_empty() {
            true => all.collect(),
            false => all.filter(|number| is_kept(number)).collect(),
        };
        match used.iter().position(|used| !used) {
            Some(unused) => Err(unused),
            None => Ok(kept),
        }
    }

    /// Keys that points have different, in their order, each with all its values.
    pub fn varied(&self) -> Vec<(&str, Vec<&str>)> {
        let mut keys: Vec<(&str, Vec<&str>)> = Vec::new();
        let mut add = |key, value| match keys.iter_mut().find(|(of, _)| *of == key) {
            Some((_, values)) => values.push(value),
            None => keys.push((key, vec![value])),
        };
        let scenarios = self.scenarios.iter().filter(|_| self.scenarios.len() > 1);
        scenarios.for_each(|name| add("scenario", name.as_str()));
        for (key, value) in self.list.iter().flatten() {
            add(key, value);
        }
        for (key, values) in self.grid.iter().chain(&self.samples) {
            for value in values {
                add(key, value);
            }
        }
        keys
    }

    /// A figure that runs are repeated for.
    fn figure(name: &str) -> Option<&'static Measure> {
        measures_of(true).find(|measure| measure.name == name)
    }
}

#[cfg(test)]
mod tests;
