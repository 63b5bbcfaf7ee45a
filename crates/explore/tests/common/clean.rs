//! Tables of explorations: a line each.

use explore::{Config, Report, exhaustive};
use rayon::prelude::*;

/// A line of a table: states generated, distinct ones, and the longest shortest way to one.
pub(crate) fn line(report: &Report) -> String {
    format!(
        "{:<58}{:<7}{:>8} generated {:>7} distinct  depth {}\n",
        report.name,
        report.verdict.word(),
        report.generated,
        report.distinct,
        report.depth
    )
}

/// Explores configurations, which must be clean, as many at a time as there are CPUs: their lines.
pub(crate) fn all_clean(configs: &[Config]) -> String {
    let one = |config: &Config| {
        let report = exhaustive(config);
        assert_eq!(report.verdict.word(), "clean", "{report}");
        line(&report)
    };
    configs.par_iter().map(one).collect()
}
