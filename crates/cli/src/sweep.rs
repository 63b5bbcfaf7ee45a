//! Many runs at once: a scenario under every combination of schedulers, kernels, machines, values
//! of `--set`, numbers of threads and seeds.
//!
//! Not here: making the runs (`study::sweep`).

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use study::sweep::Job;

use crate::args::{ReportArgs, RunArgs, SweepArgs, TextTo, Tune};
use crate::error::Error;
use crate::scenario::prepare;

/// Runs of one command at most: a slip of the hand should not take a day.
const RUNS_MAX: usize = 10_000;

/// The changes of a run to its scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Variant {
    pub(crate) scenario: String,
    pub(crate) scheduler: Option<String>,
    pub(crate) rules: Option<String>,
    pub(crate) machine: Option<String>,
    /// `KEY=VALUE`, one of each `--set`.
    pub(crate) set: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Point {
    pub(crate) variant: Variant,
    pub(crate) threads: Option<u32>,
    pub(crate) seed: Option<u64>,
    /// Positions follow the seed.
    pub(crate) vary: bool,
}

/// Every combination of the arguments, scenarios first, then schedulers, kernels, machines, and
/// values of each `--set`. A scheduler and a kernel of different request paths are none.
pub(crate) fn variants(args: &SweepArgs, scenarios: &[String]) -> Result<Vec<Variant>, Error> {
    let schedulers = or_none("--scheduler", &args.scheduler)?;
    let rules = or_none("--rules", &args.rules)?;
    let machines = or_none("--machine", &args.machine)?;
    or_none("SCENARIO", scenarios)?;
    let sets = sets(&args.set)?;
    let mut all = Vec::new();
    for scenario in scenarios {
        for scheduler in &schedulers {
            let rules = kernels_of(scheduler.as_deref(), &rules)?;
            for rules in &rules {
                for machine in &machines {
                    for set in &sets {
                        all.push(Variant {
                            scenario: scenario.clone(),
                            scheduler: scheduler.clone(),
                            rules: rules.clone(),
                            machine: machine.clone(),
                            set: set.clone(),
                        });
                    }
                }
            }
        }
    }
    Ok(all)
}

/// Those of several kernels that have the scheduler. Unknown kernels fail where they are applied.
fn kernels_of(
    scheduler: Option<&str>,
    rules: &[Option<String>],
) -> Result<Vec<Option<String>>, Error> {
    let bare = scheduler.map(|name| name.split('+').next().unwrap_or(name));
    let Some(kind) = bare.and_then(SchedulerKind::by_name) else {
        return Ok(rules.to_vec());
    };
    let fits = |name: &Option<String>| {
        let known = name.as_deref().and_then(Rules::by_name);
        known.is_none_or(|rules| kind.serves(rules.single_queue.is_some()))
    };
    let fitting: Vec<Option<String>> = rules.iter().filter(|name| fits(name)).cloned().collect();
    match (rules, &fitting[..]) {
        // With a single kernel its own error is better.
        ([_], _) => Ok(rules.to_vec()),
        (_, []) => {
            let kernels: Vec<&str> = rules.iter().flatten().map(String::as_str).collect();
            let what = format!("none of the kernels {} has it", kernels.join(", "));
            Err(Error::usage(format!("--scheduler {}", kind.name()), what))
        }
        _ => Ok(fitting),
    }
}

/// The values of an option, or that it was not given. An empty one, or one twice, is an error.
fn or_none(option: &str, list: &[String]) -> Result<Vec<Option<String>>, Error> {
    distinct(option, list, "NAME,...")?;
    Ok(match list {
        [] => vec![None],
        list => list.iter().cloned().map(Some).collect(),
    })
}

fn distinct(option: &str, list: &[String], expected: &str) -> Result<(), Error> {
    if let Some(index) = list.iter().position(String::is_empty) {
        let what = format!("value {} is empty; expected {expected}", index + 1);
        return Err(Error::usage(option, what));
    }
    for (index, name) in list.iter().enumerate() {
        if list[..index].contains(name) {
            return Err(Error::usage(option, format!("{name} is there twice")));
        }
    }
    Ok(())
}

/// Every combination of the values of all `--set KEY=VALUE,...`.
fn sets(written: &[String]) -> Result<Vec<Vec<String>>, Error> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut keys: Vec<&str> = Vec::new();
    for text in written {
        // Text that is no assignment fails where it is applied.
        let (key, values) = match text.split_once('=') {
            Some((key, values)) => (key.trim(), values_of(values)),
            None => (text.as_str(), Vec::new()),
        };
        if values.len() < 2 {
            for set in &mut all {
                set.push(text.clone());
            }
            continue;
        }
        let option = format!("--set {text}");
        distinct(
            &option,
            &values,
            "KEY=VALUE,...; a comma of a value needs quotes",
        )?;
        if keys.contains(&key) {
            return Err(Error::usage(
                option,
                format!("{key} has several values twice"),
            ));
        }
        keys.push(key);
        if all.len() * values.len() > RUNS_MAX {
            let what = format!("more than {RUNS_MAX} combinations of values");
            return Err(Error::usage(option, what));
        }
        let with = |set: &Vec<String>| -> Vec<Vec<String>> {
            let one = |value: &String| [&set[..], &[format!("{key}={value}")]].concat();
            values.iter().map(one).collect()
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// The parts between commas; a comma inside quotes belongs to a value.
fn values_of(text: &str) -> Vec<String> {
    let mut quote = None;
    let parts = text.split(|c: char| match (quote, c) {
        (None, '"' | '\'') => {
            quote = Some(c);
            false
        }
        (Some(open), c) if open == c => {
            quote = None;
            false
        }
        (open, c) => open.is_none() && c == ',',
    });
    parts.map(|part| part.trim().to_owned()).collect()
}

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
    let mut set = point.variant.set.clone();
    if let Some(threads) = point.threads {
        set.push(format!("job.numjobs={threads}"));
    }
    let fixed = |set: &String| set.starts_with("job.randrepeat=");
    if point.vary && !set.iter().any(fixed) {
        set.push("job.randrepeat=0".to_owned());
    }
    // `mq-deadline+v3`: a scheduler and its parts of the January 2024 series.
    let written = point.variant.scheduler.as_deref();
    let parts = written.map(|name| name.split_once('+').unwrap_or((name, "")));
    if let Some((_, series)) = parts.filter(|(_, series)| !series.is_empty()) {
        set.push(format!("queue.series={series}"));
    }
    RunArgs {
        scenario: vec![point.variant.scenario.clone()],
        scheduler: parts.map(|(scheduler, _)| scheduler.to_owned()),
        device: args.device.clone(),
        drive: None,
        runtime: args.runtime.clone(),
        ramp_time: args.ramp_time.clone(),
        without: Vec::new(),
        tune: Tune {
            machine: point.variant.machine.clone(),
            rules: point.variant.rules.clone(),
            set,
            seed: point.seed,
        },
        reports: ReportArgs {
            json: None,
            csv: None,
            text: TextTo::Stdout,
        },
        ignore_unmodelled: false,
        blktrace: None,
        details: false,
        functions: false,
        trace_perfetto: None,
        trace_window: None,
        schedule: None,
        fio: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
