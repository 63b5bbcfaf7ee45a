//! Many runs at once: a scenario under every combination of schedulers, kernels, machines, numbers
//! of threads and seeds.
//!
//! Each run is one thread and repeats bit by bit; results are in the order of the combinations,
//! whatever the number of threads that ran them.

use std::sync::{Mutex, PoisonError};

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use sim::machine::{Outcome, Simulator};
use sim::report::Report;

use crate::args::{ReportArgs, RunArgs, SweepArgs, Tune};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::scenario::{Prepared, prepare};

/// Events between two looks at Ctrl-C.
const PIECE: u32 = 1 << 12;
/// Runs of one command at most: a slip of the hand should not take a day.
const RUNS_MAX: usize = 10_000;

/// Ctrl-C as all threads see it: the signal, and whether it came.
#[derive(Debug)]
pub(crate) struct Shared(Mutex<(Interrupt, bool)>);

impl Shared {
    /// From now on a signal no longer ends the process by itself. Once in a process.
    pub(crate) fn install() -> Result<Shared, Error> {
        Ok(Shared(Mutex::new((Interrupt::install()?, false))))
    }

    /// For one thread again.
    pub(crate) fn into_inner(self) -> Interrupt {
        self.0
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn check(&self) -> Result<(), Error> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (interrupt, came) = &mut *shared;
        *came |= interrupt.came();
        if *came {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}

/// What makes a run differ from the scenario as it is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Variant {
    pub(crate) scenario: String,
    pub(crate) scheduler: Option<String>,
    pub(crate) rules: Option<String>,
    pub(crate) machine: Option<String>,
}

/// One run to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Point {
    pub(crate) variant: Variant,
    pub(crate) threads: Option<u32>,
    pub(crate) seed: Option<u64>,
    /// Positions follow the seed.
    pub(crate) vary: bool,
}

/// Every combination of what was asked for, scenarios first, then schedulers, kernels, machines.
pub(crate) fn variants(args: &SweepArgs, scenarios: &[String]) -> Result<Vec<Variant>, Error> {
    let or_none = |option: &str, list: &[String]| -> Result<Vec<Option<String>>, Error> {
        if let Some(index) = list.iter().position(String::is_empty) {
            let what = format!("value {} is empty; expected NAME,...", index + 1);
            return Err(Error::usage(option, what));
        }
        for (index, name) in list.iter().enumerate() {
            if list[..index].contains(name) {
                return Err(Error::usage(option, format!("{name} is there twice")));
            }
        }
        Ok(match list {
            [] => vec![None],
            list => list.iter().cloned().map(Some).collect(),
        })
    };
    let schedulers = or_none("--scheduler", &args.scheduler)?;
    let rules = or_none("--rules", &args.rules)?;
    let machines = or_none("--machine", &args.machine)?;
    or_none("SCENARIO", scenarios)?;
    let mut all = Vec::new();
    for scenario in scenarios {
        for scheduler in &schedulers {
            for rules in &rules {
                for machine in &machines {
                    all.push(Variant {
                        scenario: scenario.clone(),
                        scheduler: scheduler.clone(),
                        rules: rules.clone(),
                        machine: machine.clone(),
                    });
                }
            }
        }
    }
    Ok(all)
}

/// Runs all points. `Err` of the inner result: the first run, in their order, that stalled.
pub(crate) fn run_all(
    args: &SweepArgs,
    points: &[Point],
    details: bool,
    shared: &Shared,
) -> Result<Result<Vec<Report>, String>, Error> {
    if points.len() > RUNS_MAX {
        let what = format!("{} runs; expected at most {RUNS_MAX}", points.len());
        return Err(Error::usage("combinations", what));
    }
    let prepared: Vec<Prepared> = points
        .iter()
        .map(|point| prepare(&run_args(args, point)))
        .collect::<Result<_, Error>>()?;
    let done: Vec<Result<Result<Report, String>, Error>> = prepared
        .par_iter()
        .map(|prepared| run_one(prepared, details, shared))
        .collect();
    let mut reports = Vec::new();
    let mut stalled = None;
    for one in done {
        match one? {
            Ok(report) => reports.push(report),
            Err(stall) => stalled = stalled.or(Some(stall)),
        }
    }
    shared.check()?;
    Ok(stalled.map_or(Ok(reports), Err))
}

fn run_one(
    prepared: &Prepared,
    details: bool,
    shared: &Shared,
) -> Result<Result<Report, String>, Error> {
    let (plan, profile) = (&prepared.plan, &prepared.profile);
    let mut simulator = Simulator::new(plan, profile)
        .map_err(|what| Error::usage(format!("machine {}", profile.name), what))?;
    if details {
        simulator.collect_details();
    }
    let outcome = loop {
        shared.check()?;
        if let Some(outcome) = simulator.run_some(PIECE) {
            break outcome;
        }
    };
    simulator.settle();
    let origin = prepared.origin.clone();
    Ok(match outcome {
        Outcome::Finished => Ok(Report::new(
            origin,
            plan,
            profile,
            simulator.recorder(),
            None,
        )),
        Outcome::Stalled(stall) => {
            let options = origin.options.join(" ");
            Err(format!("{} {options}: {stall}", plan.name))
        }
    })
}

/// The arguments of `run` that make this run.
fn run_args(args: &SweepArgs, point: &Point) -> RunArgs {
    let mut set = args.set.clone();
    if let Some(threads) = point.threads {
        set.push(format!("job.numjobs={threads}"));
    }
    let fixed = |set: &String| set.starts_with("job.randrepeat=");
    if point.vary && !set.iter().any(fixed) {
        set.push("job.randrepeat=0".to_owned());
    }
    // `mq-deadline+v3`: a scheduler and what of the January 2024 series it has.
    let written = point.variant.scheduler.as_deref();
    let parts = written.map(|name| name.split_once('+').unwrap_or((name, "")));
    if let Some((_, series)) = parts.filter(|(_, series)| !series.is_empty()) {
        set.push(format!("queue.series={series}"));
    }
    RunArgs {
        scenario: Some(point.variant.scenario.clone()),
        scheduler: parts.map(|(scheduler, _)| scheduler.to_owned()),
        device: args.device.clone(),
        runtime: args.runtime.clone(),
        ramp_time: args.ramp_time.clone(),
        tune: Tune {
            machine: point.variant.machine.clone(),
            rules: point.variant.rules.clone(),
            set,
            seed: point.seed,
        },
        reports: ReportArgs {
            json: None,
            csv: None,
        },
        blktrace: None,
        details: false,
        functions: false,
        trace_perfetto: None,
        trace_window: None,
        schedule: None,
        fio: Vec::new(),
    }
}
