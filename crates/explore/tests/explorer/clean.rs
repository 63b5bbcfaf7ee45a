//! Tables of explorations: one line each.

use explore::{Config, Mutant, Report, Resources};
use rayon::prelude::*;

/// A line of a table: generated states, distinct states, and the depth.
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

/// One thread, as tests share both CPUs.
pub(crate) fn exhaustive(config: &Config) -> Report {
    explore::exhaustive(config, &Resources::ALONE).expect("nothing stops it")
}

/// Explores configurations, which must be clean, as many at a time as there are CPUs. Returns their
/// lines.
pub(crate) fn all_clean(configs: &[Config]) -> String {
    let one = |config: &Config| {
        let report = exhaustive(config);
        assert_eq!(report.verdict.word(), "clean", "{report}");
        line(&report)
    };
    configs.par_iter().map(one).collect()
}

/// The mutant whose waiting task does not run when a token is put must be found.
pub(crate) fn forgotten_tokens_are_found(config: &Config) {
    for mutant in [Mutant::NoTokenWake, Mutant::NoTokenRetry] {
        let mut config = config.clone();
        config.mutant = Some(mutant);
        let report = exhaustive(&config);
        assert_eq!(report.verdict.word(), "stall", "{mutant:?}: {report}");
        let mut steps = report.schedule.iter().map(ToString::to_string);
        assert!(steps.any(|step| step.contains("token.line")), "{report}");
    }
}
