//! Tables of explorations: a line each.

use explore::{Config, Report, exhaustive};

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

/// Explores a configuration, which must be clean: its line.
pub(crate) fn clean(config: &Config) -> String {
    let report = exhaustive(config);
    assert_eq!(report.verdict.word(), "clean", "{report}");
    line(&report)
}
