//! The runs of a command: a scenario under every combination of schedulers, kernels, machines,
//! numbers of threads, values of `--set`, and seeds. The same for `run`, `compare` and `plot`.
//!
//! Not here: making the runs (`study::sweep`), reading a scenario (`scenario.rs`).

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use scenario::Scenario;
use study::sweep::Job;

use crate::args::SweepArgs;
use crate::elevator;
use crate::error::Error;
use crate::scenario::{Input, Point, Prepared, prepare, read};

/// Runs of one command at most: a slip of the hand should not take a day.
const RUNS_MAX: usize = 10_000;
/// Largest number of threads of a job that a scenario may have.
const THREADS_MAX: u32 = 4096;

/// All runs of a command: seeds of one variant follow each other.
#[derive(Debug)]
pub(crate) struct Combinations<'a> {
    args: &'a SweepArgs,
    inputs: &'a [Input],
    read: Vec<(Scenario, String)>,
    points: Vec<Point>,
    /// Seeds of each variant.
    pub(crate) seeds: usize,
}

impl<'a> Combinations<'a> {
    /// Reads the inputs and combines the values of the options: scenarios first, then schedulers,
    /// kernels, machines, values of each `--set`, numbers of threads and seeds. A scheduler and a
    /// kernel of different request paths are no run. `seeds`: if `--seeds` is not given.
    pub(crate) fn new(
        args: &'a SweepArgs,
        inputs: &'a [Input],
        seeds: u16,
    ) -> Result<Combinations<'a>, Error> {
        let names: Vec<String> = inputs.iter().map(Input::name).collect();
        distinct("SCENARIO", &names, "NAME,...")?;
        let seeds = seeds_of(args, args.seeds.unwrap_or(seeds))?;
        let variants = variants(args, inputs.len())?;
        let runs = variants.len() * seeds.len();
        if runs > RUNS_MAX {
            let what = format!("{runs} runs; expected at most {RUNS_MAX}");
            return Err(Error::usage("combinations", what));
        }
        let read = inputs
            .iter()
            .map(|input| read(input, args.ignore_unmodelled));
        let read = read.collect::<Result<Vec<_>, _>>()?;
        let mut points = Vec::new();
        for variant in &variants {
            let has_jobs = read[variant.input].0.has_jobs();
            points.extend(seeds.iter().map(|&seed| Point {
                seed,
                vary: seeds.len() > 1 && has_jobs,
                ..variant.clone()
            }));
        }
        Ok(Combinations {
            args,
            inputs,
            read,
            points,
            seeds: seeds.len(),
        })
    }

    /// Number of runs.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// The scenario of the first run, as it was read.
    pub(crate) fn scenario(&self) -> &Scenario {
        &self.read[0].0
    }

    /// A run, ready to start.
    pub(crate) fn prepare(&self, index: usize) -> Result<Prepared, Error> {
        let point = &self.points[index];
        let input = &self.inputs[point.input];
        prepare_point(&self.read[point.input], input, point, self.args)
    }

    /// All runs, each with the values that the others have different.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, Error> {
        let varied = self.varied();
        let job = |(index, varied)| {
            let Prepared {
                plan,
                profile,
                mut origin,
                ..
            } = self.prepare(index)?;
            origin.varied = varied;
            Ok(Job {
                plan,
                profile,
                origin,
            })
        };
        varied.into_iter().enumerate().map(job).collect()
    }

    /// For each run, names and values of what is not the same in all.
    pub(crate) fn varied(&self) -> Vec<Vec<(String, String)>> {
        let points = self.points.iter();
        let all: Vec<_> = points.map(|point| settings(point, self.inputs)).collect();
        let differs = |index: usize| all.iter().any(|one| one[index] != all[0][index]);
        let differs: Vec<bool> = (0..all[0].len()).map(differs).collect();
        let kept = |one: &Vec<(String, String)>| {
            let kept = one.iter().zip(&differs).filter(|(_, differs)| **differs);
            kept.map(|(setting, _)| setting.clone()).collect()
        };
        all.iter().map(kept).collect()
    }
}

/// A run of a scenario that was read, with its text, from this input; ready to start.
pub(crate) fn prepare_point(
    (scenario, text): &(Scenario, String),
    input: &Input,
    point: &Point,
    args: &SweepArgs,
) -> Result<Prepared, Error> {
    let mut set = point.set.clone();
    if let Some(threads) = point.threads {
        set.push(format!("job.numjobs={threads}"));
    }
    let fixed = |set: &String| set.starts_with("job.randrepeat=");
    if point.vary && !set.iter().any(fixed) {
        set.push("job.randrepeat=0".to_owned());
    }
    // `mq-deadline+v3`: a scheduler and its parts of the January 2024 series.
    let written = point.scheduler.as_deref();
    let parts = written.map(|name| match name.split_once('+') {
        Some(parts) if !elevator::is_file(name) => parts,
        _ => (name, ""),
    });
    if let Some((_, series)) = parts.filter(|(_, series)| !series.is_empty()) {
        set.push(format!("queue.series={series}"));
    }
    let point = Point {
        scheduler: parts.map(|(scheduler, _)| scheduler.to_owned()),
        set,
        ..point.clone()
    };
    prepare((scenario.clone(), text), input, &point, args)
}

/// Names and values of all that may differ between the runs of a command.
fn settings(point: &Point, inputs: &[Input]) -> Vec<(String, String)> {
    let named = [
        ("scenario", inputs.get(point.input).map(Input::name)),
        ("scheduler", point.scheduler.clone()),
        ("rules", point.rules.clone()),
        ("machine", point.machine.clone()),
        ("threads", point.threads.map(|threads| threads.to_string())),
    ];
    let named = named.map(|(name, value)| (name.to_owned(), value.unwrap_or_default()));
    let set = point.set.iter().map(|assignment| {
        let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
        let value = value.trim().trim_matches(['"', '\'']);
        (key.trim().to_owned(), value.to_owned())
    });
    let seed = point.seed.map(|seed| seed.to_string()).unwrap_or_default();
    let seed = [("seed".to_owned(), seed)];
    named.into_iter().chain(set).chain(seed).collect()
}

/// Every combination but of seeds.
fn variants(args: &SweepArgs, inputs: usize) -> Result<Vec<Point>, Error> {
    if let Some(wrong) = args.elevator.iter().find(|file| !elevator::is_file(file)) {
        let what = "expected the C file of a scheduler";
        return Err(Error::usage(format!("--elevator {wrong}"), what));
    }
    distinct("--scheduler", &args.scheduler, "NAME,...")?;
    let schedulers = [args.scheduler.as_slice(), &args.elevator].concat();
    let schedulers = or_none("--elevator", &schedulers)?;
    let rules = or_none("--rules", &args.rules)?;
    let machines = or_none("--machine", &args.machine)?;
    let threads = threads(args.threads.as_deref())?;
    let sets = sets(&args.set)?;
    let mut all = Vec::new();
    for input in 0..inputs {
        for scheduler in &schedulers {
            for rules in &kernels_of(scheduler.as_deref(), &rules)? {
                for machine in &machines {
                    for set in &sets {
                        all.extend(threads.iter().map(|&threads| Point {
                            input,
                            scheduler: scheduler.clone(),
                            rules: rules.clone(),
                            machine: machine.clone(),
                            threads,
                            set: set.clone(),
                            seed: None,
                            vary: false,
                        }));
                        if all.len() > RUNS_MAX {
                            let what = format!("more than {RUNS_MAX} runs");
                            return Err(Error::usage("combinations", what));
                        }
                    }
                }
            }
        }
    }
    Ok(all)
}

/// Seeds from `--seed` on; of a single run without `--seed` the scenario's.
fn seeds_of(args: &SweepArgs, count: u16) -> Result<Vec<Option<u64>>, Error> {
    if count == 1 {
        return Ok(vec![args.seed]);
    }
    let first = args.seed.unwrap_or(1);
    let last = first.checked_add(u64::from(count) - 1);
    match last.filter(|last| i64::try_from(*last).is_ok()) {
        Some(last) => Ok((first..=last).map(Some).collect()),
        None => {
            let what = format!("expected {count} seeds from there on up to {}", i64::MAX);
            Err(Error::usage(format!("--seed {first}"), what))
        }
    }
}

/// `1,2,4` and `1..8`; nothing leaves the scenario's own.
fn threads(text: Option<&str>) -> Result<Vec<Option<u32>>, Error> {
    let Some(text) = text else {
        return Ok(vec![None]);
    };
    let refuse = |part: &str| {
        let what = format!("`{part}`; expected numbers from 1 to {THREADS_MAX}: 1,2,4,8 or 1..8");
        Error::usage("--threads", what)
    };
    let number = |part: &str| -> Result<u32, Error> {
        let number = part.trim().parse().ok();
        number
            .filter(|n| (1..=THREADS_MAX).contains(n))
            .ok_or_else(|| refuse(part))
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to)?);
                if from > to {
                    return Err(refuse(part));
                }
                all.extend((from..=to).map(Some));
            }
            None => all.push(Some(number(part)?)),
        }
    }
    all.sort_unstable();
    all.dedup();
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
            Some((key, values)) => (key.trim(), counted(text, values_of(values))?),
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

/// `1..8` is each number from 1 to 8.
fn counted(set: &str, values: Vec<String>) -> Result<Vec<String>, Error> {
    let range = |value: &str| {
        let (from, to) = value.split_once("..")?;
        Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?))
    };
    let mut all = Vec::new();
    for value in values {
        match range(&value) {
            Some((from, to)) if from > to || to - from >= RUNS_MAX as u64 => {
                let what = format!(
                    "`{value}`; expected a range such as 1..8, of at most {RUNS_MAX} numbers"
                );
                return Err(Error::usage(format!("--set {set}"), what));
            }
            Some((from, to)) => all.extend((from..=to).map(|number| number.to_string())),
            None => all.push(value),
        }
    }
    Ok(all)
}

/// The parts between commas; a comma inside quotes or brackets belongs to a value.
fn values_of(text: &str) -> Vec<String> {
    let mut quote = None;
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') => return depth == 0,
            _ => {}
        }
        false
    });
    parts.map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests;
