//! `blksim run`: one simulated run from arguments to reports. Several runs: `run/many.rs`.

mod many;

use std::io::IsTerminal as _;
use std::time::Instant;

use scenario::report::{FunctionReport, Report};
use sim::machine::{Outcome, Simulator};

use crate::args::RunArgs;
use crate::drive::drive;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::output;
use crate::outputs::{Outputs, Reported};
use crate::progress::Progress;
use crate::scenario::{Input, reports, unwritten};
use crate::sweep::Sweep;
use crate::traces::Traces;
use crate::{OK, STALLED};

/// Simulates and reports. Outputs are opened before the run and kept after it.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Error> {
    let input = match args.fio.is_empty() {
        true => Input::Named(args.scenario.clone()),
        false => Input::Fio(args.fio.clone()),
    };
    let inputs = [input];
    let sweep = Sweep::new(&args.sweep, &inputs, 1)?;
    let unwritten = unwritten(sweep.scenario());
    let reports = reports(sweep.scenario(), args.reports.clone())?;
    if sweep.len() > 1 {
        let jobs = many::jobs(args, &sweep)?;
        output::print_stderr(&unwritten);
        return many::run(args, &jobs, Outputs::open(&reports)?);
    }
    let prepared = sweep.prepare(0)?;
    let (plan, profile) = (&prepared.plan, &prepared.profile);
    output::print_stderr(&unwritten);
    let outputs = Outputs::open(&reports)?;
    let interrupt = Interrupt::install()?;
    let mut simulator = Simulator::new(plan, profile)
        .map_err(|what| Error::usage(format!("machine {}", profile.name), what))?;
    if outputs.are_whole() {
        simulator.collect_counts();
    }
    if args.details {
        simulator.collect_details();
    }
    let mut traces = Traces::open(args, &prepared, &mut simulator)?;
    let progress = Progress::new(plan);
    let started = now();
    let outcome = drive(&mut simulator, &interrupt, |simulator| {
        progress.at(simulator.now());
        traces.drain(simulator)
    });
    let taken = started.elapsed();
    progress.finish();
    let outcome = outcome?;
    simulator.settle();
    let stall = match &outcome {
        Outcome::Finished => None,
        Outcome::Stalled(stall) => Some(stall.as_ref()),
    };
    let origin = prepared.origin.clone();
    let mut report = Report::new(origin, plan, profile, simulator.recorder(), stall);
    if args.functions {
        report.functions = Some(FunctionReport::all(simulator.recorder()));
    }
    traces.complete(&mut simulator, stall.is_some())?;
    outputs.write(&report, &interrupt, || traces.keep())?;
    if std::io::stderr().is_terminal() {
        let (steps, events) = simulator.work_done();
        let seconds = taken.as_secs_f64().max(1e-9);
        let slower = seconds / (report.blksim.simulated_ns.max(1) as f64 / 1e9);
        let per_io = seconds * 1e9 / report.blksim.all_ios.max(1) as f64;
        output::print_stderr(&format!(
            "{seconds:.2} s of real time, {slower:.1} times the simulated; {per_io:.0} ns per I/O, \
             {steps} labels, {events} events\n"
        ));
    }
    match stall {
        None => Ok(OK),
        Some(stall) => {
            output::print_stderr(&format!("{stall}"));
            Ok(STALLED)
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the output has the duration of a run"
)]
fn now() -> Instant {
    Instant::now()
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
}
