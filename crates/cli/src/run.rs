//! `blksim run`: one simulated run from arguments to reports. Several runs: `run/many.rs`.

mod many;

use std::io::IsTerminal as _;
use std::time::Duration;

use scenario::report::{Early, FioReport, FunctionReport, Report, RunReport};
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;

use crate::args::RunArgs;
use crate::combinations::Combinations;
use crate::drive::drive;
use crate::error::Error;
use crate::fio_logs::{self, FioLogs};
use crate::html;
use crate::interrupt::Interrupt;
use crate::output;
use crate::outputs::{Outputs, Reported};
use crate::progress::Progress;
use crate::scenario::{Input, reports, unwritten};
use crate::traces::Traces;
use crate::{INTERRUPTED, OK, STALLED};

/// Simulates and reports. Outputs are opened before the run and kept after it.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Error> {
    let input = match args.fio.is_empty() {
        true => Input::Named(args.scenario.clone()),
        false => Input::Fio(args.fio.clone()),
    };
    let inputs = [input];
    let combinations = Combinations::new(&args.sweep, &inputs, 1)?;
    let unwritten = unwritten(combinations.scenario());
    let reports = reports(combinations.scenario(), args.reports.clone())?;
    if combinations.len() > 1 {
        let jobs = many::jobs(args, &combinations)?;
        output::print_note(&unwritten);
        return many::run(args, &jobs, Outputs::open(&reports)?);
    }
    let prepared = combinations.prepare(0)?;
    let (plan, profile) = (&prepared.plan, &prepared.profile);
    output::print_note(&unwritten);
    let outputs = Outputs::open(&reports)?;
    let interrupt = Interrupt::install()?;
    let mut simulator = Simulator::new(plan, profile)
        .map_err(|what| Error::usage(format!("machine {}", profile.name), what))?;
    fio_logs::check(plan)?;
    collect(args, &outputs, plan, &mut simulator);
    let mut traces = Traces::open(args, &prepared, &mut simulator)?;
    let mut progress = Progress::new(plan);
    let outcome = drive(&mut simulator, &interrupt, |simulator| {
        progress.at(simulator);
        traces.drain(simulator)
    });
    let taken = progress.finish();
    let outcome = outcome?;
    simulator.settle();
    let early = early(outcome.as_ref());
    let origin = prepared.origin.clone();
    let mut report = Report::new(origin, plan, profile, simulator.recorder(), early);
    if args.functions {
        report.functions = Some(FunctionReport::all(simulator.recorder()));
    }
    let fio = report.fio.as_mut();
    if let Some(fio) = fio.filter(|_| !args.details && !outputs.have_bins()) {
        fio.drop_bins();
    }
    let report = &report;
    let one = One { report, args };
    let logs = FioLogs::write(plan, simulator.recorder())?;
    let notes = notes(&outputs, report);
    let Some(outcome) = &outcome else {
        // A trace would not show that it is only a part.
        drop(traces);
        outputs.write(&one, || logs.keep())?;
        output::print_note(&notes);
        output::print_stderr(&cut(args, report));
        return Ok(INTERRUPTED);
    };
    traces.complete(&mut simulator, early.is_some())?;
    outputs.write(&one, || traces.keep().and_then(|()| logs.keep()))?;
    output::print_note(&notes);
    if std::io::stderr().is_terminal() && !output::is_quiet() {
        output::print_stderr(&speed(taken, &report.blksim, simulator.work_done()));
    }
    match outcome {
        Outcome::Finished => Ok(OK),
        Outcome::Stalled(stall) => {
            output::print_stderr(&format!("{stall}"));
            Ok(STALLED)
        }
    }
}

/// Why a run did not get to its end, if it did not; without an outcome a signal came.
fn early(outcome: Option<&Outcome>) -> Option<Early<'_>> {
    match outcome {
        Some(Outcome::Finished) => None,
        Some(Outcome::Stalled(stall)) => Some(Early::Stall(stall)),
        None => Some(Early::Signal),
    }
}

/// How fast the run was, after so many labels and events.
fn speed(taken: Duration, run: &RunReport, (steps, events): (u64, u64)) -> String {
    let seconds = taken.as_secs_f64().max(1e-9);
    let slower = seconds / (run.simulated_ns.max(1) as f64 / 1e9);
    let per_io = seconds * 1e9 / run.all_ios.max(1) as f64;
    format!(
        "{seconds:.2} s of real time, {slower:.1} times the simulated; {per_io:.0} ns per I/O, \
         {steps} labels, {events} events\n"
    )
}

/// Notes on options that no output has: fio's own formats have no place for them.
fn notes(outputs: &Outputs, report: &Report) -> String {
    match outputs.have_notes() {
        true => String::new(),
        false => report.notes().trim_start().to_owned(),
    }
}

/// What Ctrl-C left.
fn cut(args: &RunArgs, report: &Report) -> String {
    let traces = [
        ("--blktrace", args.blktrace.is_some()),
        ("--trace-perfetto", args.trace_perfetto.is_some()),
        ("--schedule", args.schedule.is_some()),
    ];
    let asked = traces.into_iter().filter(|(_, asked)| *asked);
    let asked: Vec<&str> = asked.map(|(option, _)| option).collect();
    let without = match asked.as_slice() {
        [] => String::new(),
        asked => format!("; nothing was written for {}", asked.join(", ")),
    };
    format!(
        "error: interrupted after {} ms of simulated time, which the report is of{without}\n",
        report.blksim.simulated_ns / 1_000_000
    )
}

/// Collects what the outputs need.
fn collect(args: &RunArgs, outputs: &Outputs, plan: &Plan, simulator: &mut Simulator) {
    if outputs.are_whole() {
        simulator.collect_counts();
    }
    if args.details || outputs.are_drawn() {
        simulator.collect_details();
    }
    if outputs.are_of_fio() || fio_logs::are_asked(plan) {
        simulator.collect_fio();
    }
}

/// A run as its outputs have it.
struct One<'a> {
    report: &'a Report,
    args: &'a RunArgs,
}

impl Reported for One<'_> {
    fn text(&self) -> String {
        self.report.text()
    }

    fn json(&self) -> String {
        if self.args.details || self.report.details.is_none() {
            return self.report.to_json();
        }
        let mut report = self.report.clone();
        report.details = None;
        report.to_json()
    }

    fn csv(&self) -> String {
        self.report.csv()
    }

    fn html(&self) -> String {
        html::run(self.report, &self.args.scenario)
    }

    fn terse(&self) -> String {
        self.report.terse()
    }

    fn normal(&self) -> String {
        self.report.normal()
    }
}

impl Reported for Report {
    fn text(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> String {
        self.to_json()
    }

    fn csv(&self) -> String {
        self.to_csv()
    }

    fn html(&self) -> String {
        html::run(self, &[])
    }

    fn terse(&self) -> String {
        self.fio
            .as_ref()
            .map_or_else(String::new, FioReport::to_terse)
    }

    fn normal(&self) -> String {
        let text = self.fio.as_ref();
        let text = text.map_or_else(String::new, FioReport::to_normal);
        match self.blksim.early_end() {
            Some(end) => format!("blksim: {end}\n\n{text}"),
            None => text,
        }
    }
}
