//! One workload in several variants, with several seeds each: means, intervals, differences.
//!
//! Read next: `compare/statistics.rs` for the intervals. Not here: the table (`cli`).

mod measures;
mod statistics;

pub use measures::Measure;
pub use statistics::Estimate;

use scenario::report::Report;

use measures::MEASURES;

/// A variant under one measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Name of the variant.
    pub name: String,
    pub values: Vec<f64>,
    pub estimate: Estimate,
    /// To the first variant; nothing for that itself, and where its mean is zero.
    pub difference: Option<Estimate>,
}

/// All measures, with a row for each variant, from variants' names and their reports of the same
/// seeds. Panics if there is no variant or no seed.
pub fn compared(variants: &[(String, &[Report])]) -> Vec<(Measure, Vec<Row>)> {
    let first = variants[0].1;
    let measured = |measure: &Measure| {
        let base: Vec<f64> = first.iter().map(measure.of).collect();
        let row = |(index, (name, reports)): (usize, &(String, &[Report]))| {
            let values: Vec<f64> = reports.iter().map(measure.of).collect();
            let difference = if index == 0 {
                None
            } else {
                Estimate::difference(&values, &base, measure.relative)
            };
            Row {
                name: name.clone(),
                estimate: Estimate::new(&values),
                values,
                difference,
            }
        };
        (*measure, variants.iter().enumerate().map(row).collect())
    };
    MEASURES.iter().map(measured).collect()
}
