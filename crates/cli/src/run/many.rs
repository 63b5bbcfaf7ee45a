//! `blksim run` with several values of an option: a report of each run, and a table of all.

use scenario::report::Report;
use study::compare::{Measure, busy_directions, measures_of};
use study::fleet::Fleet;
use study::sweep::{Collect, Job, Ran, run_ended};

use crate::amount::written;
use crate::args::RunArgs;
use crate::combinations::Combinations;
use crate::error::Error;
use crate::fleet::with_fleet;
use crate::html;
use crate::interrupt::Interrupt;
use crate::outputs::{Outputs, Reported};
use crate::{INTERRUPTED, OK, STALLED, fio_logs, output};

/// The runs. An error for outputs that have one run only.
pub(super) fn jobs(args: &RunArgs, combinations: &Combinations<'_>) -> Result<Vec<Job>, Error> {
    let given = [
        ("--blktrace", args.blktrace.is_some()),
        ("--trace-perfetto", args.trace_perfetto.is_some()),
        ("--schedule", args.schedule.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        let what = format!(
            "{} runs; expected one, as this file is of one",
            combinations.len()
        );
        return Err(Error::usage(*option, what));
    }
    combinations.jobs()
}

/// Makes all runs and reports them, also those that stalled.
pub(super) fn run(args: &RunArgs, jobs: &[Job], outputs: Outputs) -> Result<u8, Error> {
    let collect = Collect {
        counts: outputs.are_whole(),
        details: args.details,
        functions: args.functions,
        fio: outputs.are_of_fio(),
    };
    if jobs.iter().any(|job| fio_logs::are_asked(&job.plan)) {
        output::print_note("note: logs of fio are of one run; none is written\n");
    }
    let interrupt = Interrupt::install()?;
    let work = |fleet: &Fleet| run_ended(jobs, collect, fleet);
    let ended = with_fleet(&args.sweep.jobs, &interrupt, work)?;
    let mut runs = Runs {
        all: jobs.len(),
        ended: ended.into_iter().flatten().collect(),
    };
    let (done, all) = (runs.ended.len(), runs.all);
    if done == 0 {
        return Err(Error::InterruptedRuns { done, all });
    }
    if !args.details && !outputs.have_bins() {
        for fio in runs
            .ended
            .iter_mut()
            .filter_map(|ran| ran.report.fio.as_mut())
        {
            fio.drop_bins();
        }
    }
    outputs.write(&runs, || Ok(()))?;
    let stalls = runs.ended.iter().filter_map(|ran| ran.stall.as_ref());
    let stalls: Vec<&String> = stalls.collect();
    for stall in &stalls {
        output::print_stderr(stall);
    }
    if done < all {
        let what = format!("error: interrupted after {done} of {all} runs, which the output has\n");
        output::print_stderr(&what);
        return Ok(INTERRUPTED);
    }
    Ok(if stalls.is_empty() { OK } else { STALLED })
}

#[derive(Debug)]
struct Runs {
    /// Those that a signal did not end, of so many.
    ended: Vec<Ran>,
    all: usize,
}

impl Runs {
    fn reports(&self) -> impl Iterator<Item = &Report> + Clone {
        self.ended.iter().map(|ran| &ran.report)
    }

    /// A row for each direction of each run, after names of the columns.
    fn rows(&self) -> Vec<Vec<String>> {
        let first = &self.ended[0].report.blksim;
        let names = first.varied.iter().map(|(name, _)| name.clone());
        let mut head: Vec<String> = names.chain(["I/O".to_owned()]).collect();
        let measures: Vec<&Measure> = measures_of(true).chain(measures_of(false)).collect();
        head.extend(measures.iter().map(|measure| measure.short.to_owned()));
        let mut rows = vec![head];
        for Ran { report, stall } in &self.ended {
            let mut of_run: Vec<&str> = busy_directions(report).collect();
            if of_run.is_empty() {
                of_run.push("none");
            }
            for direction in of_run {
                let values = report.blksim.varied.iter().map(|(_, value)| value.clone());
                let mut row: Vec<String> = values.chain([direction.to_owned()]).collect();
                let value =
                    |measure: &&Measure| written((measure.of)(report, direction), measure.unit);
                row.extend(measures.iter().map(value));
                if stall.is_some() {
                    row.push("STALLED".to_owned());
                }
                rows.push(row);
            }
        }
        rows
    }
}

impl Reported for Runs {
    fn text(&self) -> String {
        let first = &self.ended[0].report.blksim;
        let mut title = format!(
            "{}: {} runs, a row for each direction of all jobs together; more in --json, --csv\n",
            first.scenario, self.all
        );
        if self.ended.len() < self.all {
            title += &format!("CUT by a signal: {} of the runs\n", self.ended.len());
        }
        title + "\n" + &aligned(&self.rows(), first.varied.len() + 1)
    }

    /// An array with the report of each run.
    fn json(&self) -> String {
        let reports: Vec<_> = self.reports().map(Report::to_value).collect();
        let text = serde_json::to_string_pretty(&reports);
        text.expect("keys are texts, and every figure is finite") + "\n"
    }

    fn csv(&self) -> String {
        Report::csv_of_all(self.reports())
    }

    fn html(&self) -> String {
        let texts = self.ended[0].report.blksim.varied.len() + 1;
        html::many(&self.ended, &self.rows(), texts)
    }

    fn terse(&self) -> String {
        self.reports().map(Reported::terse).collect()
    }

    fn normal(&self) -> String {
        self.reports().map(Reported::normal).collect()
    }
}

/// Rows in columns: so many texts, then figures.
fn aligned(rows: &[Vec<String>], texts: usize) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = widths.get(column).copied().unwrap_or(0);
            match column < texts {
                true => format!("{cell:width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}
