//! `blksim compare`: one workload in several variants, with means, intervals and differences.
//!
//! Read next: `study::compare` for the intervals, `compare/table.rs` for the output.

mod table;

use scenario::report::Report;
use study::fleet::Fleet;
use study::sweep::{Collect, Ran, run_ended};

use crate::args::CompareArgs;
use crate::combinations::Combinations;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::output;
use crate::outputs::Outputs;
use crate::scenario::Input;
use crate::{INTERRUPTED, OK, STALLED};
use table::Table;

/// Seeds of each variant, unless `--seeds` is given.
const SEEDS: u16 = 5;

/// Runs every variant with every seed and prints the differences from the first variant.
pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Error> {
    let named = |name: &String| Input::Named(vec![name.clone()]);
    let inputs: Vec<Input> = args.scenarios.iter().map(named).collect();
    let combinations = Combinations::new(&args.sweep, &inputs, SEEDS)?;
    if combinations.len() == combinations.seeds {
        let what = "one variant; expected several scenarios, or several values of --scheduler, \
                    --rules, --machine, --threads or --set KEY=V1,V2";
        return Err(Error::usage("compare", what));
    }
    let outputs = Outputs::open(&args.reports)?;
    let interrupt = Interrupt::install()?;
    let jobs = combinations.jobs()?;
    let run = |fleet: &Fleet| run_ended(&jobs, Collect::default(), fleet);
    let runs = with_fleet(&args.sweep.jobs, &interrupt, run)?;
    let ended = || runs.iter().flatten();
    if let Some(stall) = ended().find_map(|ran| ran.stall.as_ref()) {
        output::print_stderr(stall);
        return Ok(STALLED);
    }
    let (done, all) = (ended().count(), runs.len());
    // Ctrl-C leaves the variants of which all seeds have ended.
    let report = |ran: &Option<Ran>| Some(ran.as_ref()?.report.clone());
    let whole = |of: &[Option<Ran>]| of.iter().map(report).collect::<Option<Vec<Report>>>();
    let variants: Vec<Vec<Report>> = runs.chunks(combinations.seeds).filter_map(whole).collect();
    if variants.is_empty() {
        return Err(Error::InterruptedRuns { done, all });
    }
    let cut = (done < all).then(|| {
        let (whole, all) = (variants.len(), all / combinations.seeds);
        format!("{whole} of {all} variants")
    });
    let slices: Vec<&[Report]> = variants.iter().map(Vec::as_slice).collect();
    outputs.write(&Table::new(&slices, cut.clone()), || Ok(()))?;
    let Some(cut) = cut else {
        return Ok(OK);
    };
    let text = format!("error: interrupted after {done} of {all} runs; the output has {cut}\n");
    output::print_stderr(&text);
    Ok(INTERRUPTED)
}
