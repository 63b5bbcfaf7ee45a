//! `blksim run`: one simulated run from arguments to reports.

use std::io::IsTerminal as _;
use std::time::Instant;

use sim::machine::{Outcome, Simulator};
use sim::report::Report;

use crate::args::RunArgs;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Progress;
use crate::scenario::{Prepared, prepare};
use crate::trace_out::TraceOut;
use crate::{OK, STALLED};

/// Simulates and reports. Outputs are opened before the run and kept after it.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Error> {
    let Prepared {
        plan,
        profile,
        origin,
    } = prepare(args)?;
    let outputs = Outputs::open(args)?;
    let interrupt = Interrupt::install()?;
    let mut simulator = Simulator::new(&plan, &profile)
        .map_err(|what| Error::usage(format!("machine {}", profile.name), what))?;
    let trace = args
        .blktrace
        .as_deref()
        .map(|dir| TraceOut::create(dir, &plan))
        .transpose()?;
    if trace.is_some() {
        simulator.trace();
    }
    let progress = Progress::new(&plan);
    let started = now();
    let mut interrupted = false;
    let outcome = simulator.run(|now| {
        progress.at(now);
        interrupted = interrupt.came();
        !interrupted
    });
    let taken = started.elapsed();
    progress.finish();
    if interrupted {
        return Err(Error::Interrupted);
    }
    simulator.settle();
    let stall = match &outcome {
        Outcome::Finished => None,
        Outcome::Stalled(stall) => Some(stall.as_ref()),
    };
    let report = Report::new(origin, &plan, &profile, simulator.recorder(), stall);
    if let Some(mut trace) = trace {
        trace.write(&simulator.take_trace(), &interrupt)?;
        interrupt.check()?;
        trace.finish()?;
    }
    outputs.write(&report, &interrupt)?;
    if std::io::stderr().is_terminal() {
        let (steps, events) = simulator.work_done();
        let seconds = taken.as_secs_f64().max(1e-9);
        let slower = seconds / (report.blksim.simulated_ns.max(1) as f64 / 1e9);
        let per_io = seconds * 1e9 / report.blksim.all_ios.max(1) as f64;
        output::tell(&format!(
            "{seconds:.2} s of real time, {slower:.1} times the simulated; {per_io:.0} ns an I/O, \
             {steps} labels, {events} events\n"
        ));
    }
    match stall {
        None => Ok(OK),
        Some(stall) => {
            output::tell(&format!("{stall}"));
            Ok(STALLED)
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user is told how long a run took"
)]
fn now() -> Instant {
    Instant::now()
}

/// Where reports go.
#[derive(Debug)]
struct Outputs {
    json: Option<OutputFile>,
    csv: Option<OutputFile>,
    /// Nothing else goes to standard output.
    text: bool,
}

impl Outputs {
    fn open(args: &RunArgs) -> Result<Outputs, Error> {
        let (json, csv) = (args.json.as_deref(), args.csv.as_deref());
        if json.is_some() && json == csv {
            return Err(Error::usage(
                "--csv",
                "--json goes to the same place; expected another",
            ));
        }
        let json = json.map(OutputFile::open).transpose()?;
        let csv = csv.map(OutputFile::open).transpose()?;
        let text = ![&json, &csv]
            .into_iter()
            .flatten()
            .any(OutputFile::is_stdout);
        Ok(Outputs { json, csv, text })
    }

    /// Writes all of them, then gives them their names.
    fn write(self, report: &Report, interrupt: &Interrupt) -> Result<(), Error> {
        let json = self
            .json
            .map(|file| file.put(&report.to_json()))
            .transpose()?;
        let csv = self
            .csv
            .map(|file| file.put(&report.to_csv()))
            .transpose()?;
        if self.text {
            output::print(&report.to_string())?;
        }
        interrupt.check()?;
        for file in [json, csv].into_iter().flatten() {
            file.keep()?;
        }
        Ok(())
    }
}
