//! `blksim compare`: one workload in several variants, with means, intervals and differences.
//!
//! Read next: `study::compare` for the intervals, `compare/table.rs` for the output.

mod table;

use study::fleet::Fleet;
use study::sweep::run_all;

use crate::args::CompareArgs;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output;
use crate::outputs::Outputs;
use crate::scenario::load;
use crate::sweep::{self, Point, Variant};
use crate::{OK, STALLED};
use table::Table;

/// Runs every variant with every seed and prints the differences from the first variant.
pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Error> {
    let variants = sweep::variants(&args.sweep, &args.scenarios)?;
    if variants.len() < 2 {
        let what = "one variant; expected several scenarios, or several values of --scheduler, \
                    --rules, --machine or --set KEY=V1,V2";
        return Err(Error::usage("compare", what));
    }
    let outputs = Outputs::open(&args.reports)?;
    let last = u64::from(args.seeds) - 1;
    let end = args
        .seed
        .checked_add(last)
        .filter(|end| i64::try_from(*end).is_ok());
    if end.is_none() {
        let what = format!(
            "expected {} seeds from there on up to {}",
            args.seeds,
            i64::MAX
        );
        return Err(Error::usage(format!("--seed {}", args.seed), what));
    }
    let mut points = Vec::new();
    for variant in &variants {
        let has_jobs = load(&variant.scenario)?.0.has_jobs();
        for index in 0..u64::from(args.seeds) {
            points.push(Point {
                variant: variant.clone(),
                threads: None,
                seed: Some(args.seed + index),
                vary: args.seeds > 1 && has_jobs,
            });
        }
    }
    let interrupt = Interrupt::install()?;
    let jobs = sweep::jobs(&args.sweep, &points)?;
    let run = |fleet: &Fleet| run_all(&jobs, false, fleet);
    let reports = match with_fleet(&args.sweep.jobs, &interrupt, run)? {
        Ok(reports) => reports,
        Err(stall) => {
            output::print_stderr(&stall);
            return Ok(STALLED);
        }
    };
    let names = names(&variants);
    let groups = reports.chunks(usize::from(args.seeds));
    let groups: Vec<_> = names.into_iter().zip(groups).collect();
    let table = Table::new(args.seed, &groups);
    outputs.write(&table, &interrupt, || Ok(()))?;
    Ok(OK)
}

/// The settings that distinguish each variant from the others.
fn names(variants: &[Variant]) -> Vec<String> {
    let parts = |variant: &Variant| -> Vec<Option<String>> {
        let named = [
            Some(variant.scenario.clone()),
            variant.scheduler.clone(),
            variant.rules.clone(),
            variant.machine.clone(),
        ];
        let set = variant.set.iter().cloned().map(Some);
        named.into_iter().chain(set).collect()
    };
    let first = parts(&variants[0]);
    let all: Vec<_> = variants.iter().map(parts).collect();
    let differs: Vec<bool> = (0..first.len())
        .map(|part| all.iter().any(|parts| parts[part] != first[part]))
        .collect();
    let name = |parts: &Vec<Option<String>>| -> String {
        let wanted = parts.iter().zip(&differs).filter(|(_, differs)| **differs);
        let wanted: Vec<&str> = wanted.filter_map(|(part, _)| part.as_deref()).collect();
        wanted.join(", ")
    };
    all.iter().map(name).collect()
}
