//! Many runs at once: a scenario under every combination of schedulers, kernels, machines, numbers
//! of threads and seeds.
//!
//! Not here: making the runs (`study::sweep`).

use study::sweep::Job;

use crate::args::{ReportArgs, RunArgs, SweepArgs, Tune};
use crate::error::Error;
use crate::scenario::prepare;

/// Runs of one command at most: a slip of the hand should not take a day.
const RUNS_MAX: usize = 10_000;

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

/// What all points are to run.
pub(crate) fn jobs(args: &SweepArgs, points: &[Point]) -> Result<Vec<Job>, Error> {
    if points.len() > RUNS_MAX {
        let what = format!("{} runs; expected at most {RUNS_MAX}", points.len());
        return Err(Error::usage("combinations", what));
    }
    let job = |point| {
        let prepared = prepare(&run_args(args, point))?;
        Ok(Job {
            plan: prepared.plan,
            profile: prepared.profile,
            origin: prepared.origin,
        })
    };
    points.iter().map(job).collect()
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
