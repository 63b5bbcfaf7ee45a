//! `blksim compare`: one workload in several variants, with means, intervals and differences.
//!
//! Read next: `study::compare` for the intervals, `compare/table.rs` for the output.

mod table;

use scenario::report::Report;
use study::fleet::Fleet;
use study::sweep::{Collect, run_all};

use crate::args::CompareArgs;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output;
use crate::outputs::Outputs;
use crate::scenario::Input;
use crate::sweep::Sweep;
use crate::{OK, STALLED};
use table::Table;

/// Seeds of each variant, unless `--seeds` is given.
const SEEDS: u16 = 5;

/// Runs every variant with every seed and prints the differences from the first variant.
pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Error> {
    let named = |name: &String| Input::Named(vec![name.clone()]);
    let inputs: Vec<Input> = args.scenarios.iter().map(named).collect();
    let sweep = Sweep::new(&args.sweep, &inputs, SEEDS)?;
    if sweep.len() == sweep.seeds {
        let what = "one variant; expected several scenarios, or several values of --scheduler, \
                    --rules, --machine, --threads or --set KEY=V1,V2";
        return Err(Error::usage("compare", what));
    }
    let outputs = Outputs::open(&args.reports)?;
    let interrupt = Interrupt::install()?;
    let jobs = sweep.jobs()?;
    let run = |fleet: &Fleet| run_all(&jobs, Collect::default(), fleet);
    let runs = with_fleet(&args.sweep.jobs, &interrupt, run)?;
    if let Some(stall) = runs.iter().find_map(|ran| ran.stall.as_ref()) {
        output::print_stderr(stall);
        return Ok(STALLED);
    }
    let reports: Vec<Report> = runs.into_iter().map(|ran| ran.report).collect();
    let variants: Vec<&[Report]> = reports.chunks(sweep.seeds).collect();
    outputs.write(&Table::new(&variants), || Ok(()))?;
    Ok(OK)
}
