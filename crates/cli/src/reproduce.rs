//! `blksim reproduce`: published tables next to the results of the committed profiles.
//!
//! Read next: `reproduce/ablation.rs` (profiles without a mechanism), `reproduce/expected.rs`
//! (figures that must stay within their tolerance).

mod ablation;
mod expected;

use std::fmt::Write as _;

use study::ablation::profiles_without;
use study::fleet::Fleet;
use study::reproduce::{Done, Figure, built_in, named, run_all};

use crate::args::ReproduceArgs;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::interrupt::Interrupt;
use crate::scenario::loaded;
use crate::without::mechanism;
use crate::{OK, output};

/// Runs every row and prints every figure. With a list of figures that are known to be within their
/// tolerance, exit code 1 if one of these is not.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<u8, Error> {
    let interrupt = Interrupt::install()?;
    if args.ablations {
        let text = |fleet: &Fleet| ablation::matrix_of_all(args.quick, fleet);
        output::print(&with_fleet(&args.jobs, &interrupt, text)?)?;
        return Ok(OK);
    }
    let expected = args.expect.as_deref().map(expected::read);
    let expected = expected.transpose()?;
    let without = args.without.as_deref().map(mechanism).transpose()?;
    let done = with_fleet(&args.jobs, &interrupt, |fleet| {
        let sets = match without {
            Some(mechanism) => profiles_without(&[mechanism], &loaded, fleet)?,
            None => vec![built_in()?],
        };
        run_all(&sets, args.quick, &loaded, fleet)
    })?;
    let done = done.concat();
    for one in &done {
        output::print(&text_of(one))?;
    }
    let figures: Vec<(String, Figure)> = named(&done);
    let within = figures.iter().filter(|(_, figure)| figure.within).count();
    let all = figures.len();
    output::print(&format!("{within} of {all} within tolerance\n"))?;
    if let (Some(file), Some(expected)) = (&args.expect, &expected) {
        return expected::compare(file, expected, &figures);
    }
    Ok(OK)
}

fn text_of(done: &Done) -> String {
    let table = &done.table;
    let mut text = format!("{}: {}\n", table.name, table.title);
    for (row, report) in table.rows.iter().zip(&done.reports) {
        if report.is_none() {
            let what = row.waits_for.as_deref().unwrap_or_default();
            let _ = writeln!(text, "  {:<36} not modelled yet: {what}", row.name);
        }
    }
    text + &lines(&done.figures()) + "\n"
}

fn lines(figures: &[Figure]) -> String {
    let mut text = String::new();
    for f in figures {
        let digits = if f.figure.contains("ratio") { 3 } else { 1 };
        let _ = writeln!(
            text,
            "  {:<36} {:<9} {:>12.digits$} {:>12.digits$} {:>6.2} {:>9}  {}",
            f.row,
            f.figure,
            f.published,
            f.simulated,
            f.simulated / f.published,
            f.tolerance,
            if f.within { "in" } else { "out" }
        );
    }
    text
}
