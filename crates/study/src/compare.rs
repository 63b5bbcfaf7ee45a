//! One workload in several variants, with several seeds each: means, intervals, differences. With
//! one seed the intervals are those of each run, from its batches.
//!
//! Intervals: `estimate.rs` and `batch_means.rs` of `sim`. Not here: the table (`cli`).

mod measures;

pub use measures::{ALL, Measure, Unit, busy_directions, measures_of};

use scenario::report::Report;
use sim::estimate::Estimate;

/// A variant under one measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Of each seed.
    pub values: Vec<f64>,
    pub estimate: Estimate,
    /// To the first variant; nothing for that itself, and where its mean is zero.
    pub difference: Option<Estimate>,
}

/// A row for each variant.
#[derive(Clone, Debug)]
pub struct Compared {
    pub measure: &'static Measure,
    /// `read`, `write` or `trim`, or [`ALL`].
    pub direction: &'static str,
    pub rows: Vec<Row>,
}

/// All measures of all directions together, then of each direction that did I/O, from the variants'
/// reports of the same seeds. Panics if there is no variant or no seed.
pub fn compared(variants: &[&[Report]]) -> Vec<Compared> {
    let all = measures_of(true).chain(measures_of(false));
    let mut done: Vec<Compared> = all.map(|of| Compared::new(of, ALL, variants)).collect();
    for direction in ["read", "write", "trim"] {
        let reports = variants.iter().copied().flatten();
        if reports.flat_map(busy_directions).any(|of| of == direction) {
            done.extend(measures_of(true).map(|of| Compared::new(of, direction, variants)));
        }
    }
    done
}

impl Compared {
    fn new(measure: &'static Measure, direction: &'static str, variants: &[&[Report]]) -> Compared {
        let values = |reports: &&[Report]| -> Vec<f64> {
            let values = reports.iter().map(|report| (measure.of)(report, direction));
            values.collect()
        };
        let all: Vec<Vec<f64>> = variants.iter().map(values).collect();
        let estimate = |index: usize| match variants[index] {
            [one] => measure.estimate(one, direction),
            _ => Estimate::new(&all[index]),
        };
        let relative = measure.is_relative();
        let row = |(index, values): (usize, &Vec<f64>)| Row {
            estimate: estimate(index),
            difference: match (index, values.len()) {
                (0, _) => None,
                (_, 1) => estimate(index).minus(estimate(0), relative),
                _ => Estimate::difference(values, &all[0], relative),
            },
            values: values.clone(),
        };
        let rows = all.iter().enumerate().map(row).collect();
        Compared {
            measure,
            direction,
            rows,
        }
    }
}
