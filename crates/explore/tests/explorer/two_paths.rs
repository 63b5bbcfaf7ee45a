//! Configurations of a mapped queue over two paths, and their lines in a table.

use crate::clean::exhaustive;
use blkmq::dm::PathId;
use blkmq::dm::multipath::Message;
use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use explore::{Config, Mutant, Paths, Report};
use rayon::prelude::*;

pub(crate) const FIRST: PathId = PathId(0);
pub(crate) const SECOND: PathId = PathId(1);

/// The name, and the changes to the configuration.
pub(crate) type Row = (&'static str, fn(&mut Config, &mut Paths));

/// A mutant, the rules and the configuration that must find it, and the verdict.
pub(crate) type Found = (Mutant, Rules, Row, &'static str);

pub(crate) fn both_fail_one_comes_back() -> Vec<Message> {
    vec![
        Message::Fail(FIRST),
        Message::Fail(SECOND),
        Message::Reinstate(FIRST),
    ]
}

pub(crate) fn config(rules: Rules, tasks: usize, (name, change): Row) -> Config {
    let mut config = Config::new(name, rules, SchedulerKind::None, tasks);
    let mut paths = Paths::two();
    config.tags = 2;
    config.delayed_runs = true;
    config.one_worker = true;
    config.must_end = true;
    change(&mut config, &mut paths);
    config.paths = Some(paths);
    config
}

fn line(config: &Config, report: &Report) -> String {
    format!(
        "{:<48}{:<6}{:<11}{:>8} generated {:>7} distinct  depth {}\n",
        report.name,
        config.rules.name,
        report.verdict.word(),
        report.generated,
        report.distinct,
        report.depth
    )
}

/// Explores all rows in each kernel, as many at a time as there are CPUs.
pub(crate) fn table(
    rows: &[Row],
    kernels: &[Rules],
    config: impl Fn(Row, Rules) -> Config + Sync,
) -> String {
    let all: Vec<(Row, Rules)> = (rows.iter())
        .flat_map(|&row| kernels.iter().map(move |&rules| (row, rules)))
        .collect();
    let one = |&(row, rules): &(Row, Rules)| {
        let config = config(row, rules);
        line(&config, &exhaustive(&config))
    };
    all.par_iter().with_max_len(1).map(one).collect()
}

/// So many requests, some of which are with their devices at the beginning.
pub(crate) fn under_way(tasks: usize, prefilled: usize) -> impl Fn(Row, Rules) -> Config + Sync {
    move |row, rules| {
        let mut config = config(rules, tasks, row);
        config.prefilled = prefilled;
        config
    }
}
