//! `blksim check`: TLC runs the specifications, and its results are compared with their promises.
//!
//! Verdicts and counts of `specs/*/expect.toml`, recorded traces with corruptions of them, and
//! mutants. Read next: `spec_tree.rs` for the files, `check/pool.rs` for running TLC.

mod pool;
mod runs;
mod table;
mod tools;

use std::path::Path;

use blkmq::schedule::Schedule;
use explore::tlc::{self, Corruption, Edit, Outcome, Recorded, Variant, Verdict};

use crate::args::CheckArgs;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile};
use crate::spec_tree::{self, Spec};
use crate::{DIFFERENT, OK};
use pool::{Done, Job};
use table::Row;

/// The purpose of a run of TLC.
#[derive(Clone, Copy, Debug)]
enum Task<'a> {
    Variant(&'a Spec, &'a Variant),
    Trace(&'a Spec, &'a Recorded, &'a Schedule),
    Mutant(&'a Spec, &'a Edit),
    /// A wrong trace module, on a trace that it would check if it were right.
    WrongTrace(&'a Spec, &'a Edit, &'a Schedule),
}

/// Runs TLC for all that was asked for and prints a table.
pub(crate) fn check(args: &CheckArgs) -> Result<u8, Error> {
    let specs = spec_tree::read(args.specs.as_deref(), args.spec.as_deref())?;
    if !args.run.is_empty() {
        return runs::check(args, &specs[0]);
    }
    let traces = traces_of(&specs, args)?;
    let tasks = tasks(&specs, &traces, args)?;
    let jobs: Vec<Job> = tasks.iter().map(job).collect::<Result<_, _>>()?;
    if let Some(folder) = &args.schedules {
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::output(folder.display().to_string(), e))?;
    }
    let tools = tools::find(args.tlatools.as_deref())?;
    let interrupt = Interrupt::install()?;
    let (done, seconds) = pool::run(&tools, &jobs, args.jobs.map(usize::from), &interrupt)?;
    let mut rows = Vec::new();
    for (task, done) in tasks.iter().zip(&done) {
        rows.push(judge(task, done, args.schedules.as_deref())?);
    }
    output::print(&table::text(&rows, seconds))?;
    if let ([Task::Variant(spec, variant)], [done]) = (&tasks[..], &done[..]) {
        let outcome = Outcome::parse(&done.output);
        if !outcome.behaviour.is_empty() && !is_by_labels(&variant.name) {
            output::print(&format!("\n{}", counterexample(spec, variant, &outcome)?))?;
        }
    }
    let all = rows.iter().all(|row| row.wrong.is_empty());
    Ok(if all { OK } else { DIFFERENT })
}

fn traces_of(specs: &[Spec], args: &CheckArgs) -> Result<Vec<(usize, usize, Schedule)>, Error> {
    let mut traces = Vec::new();
    if args.variant.is_some() {
        return Ok(traces);
    }
    for (at, spec) in specs.iter().enumerate() {
        for (nth, recorded) in spec.expectations.trace.iter().enumerate() {
            traces.push((at, nth, spec.trace(recorded)?));
        }
    }
    Ok(traces)
}

fn tasks<'a>(
    specs: &'a [Spec],
    traces: &'a [(usize, usize, Schedule)],
    args: &CheckArgs,
) -> Result<Vec<Task<'a>>, Error> {
    let most = args.max_seconds.unwrap_or(f64::INFINITY);
    let mut tasks = Vec::new();
    for (at, spec) in specs.iter().enumerate() {
        if args.mutants {
            for edit in &spec.mutants.mutant {
                let recorded = &spec.expectations.trace;
                let of_trace = traces
                    .iter()
                    .find(|(of, nth, _)| *of == at && recorded[*nth].file == edit.variant);
                tasks.push(match of_trace {
                    Some((_, _, schedule)) => Task::WrongTrace(spec, edit, schedule),
                    None => Task::Mutant(spec, edit),
                });
            }
            continue;
        }
        let chosen = spec
            .expectations
            .variant
            .iter()
            .filter(|variant| match &args.variant {
                Some(name) => *name == variant.name,
                None => variant.quick || args.full && variant.seconds <= most,
            });
        tasks.extend(chosen.map(|variant| Task::Variant(spec, variant)));
        for (_, nth, schedule) in traces.iter().filter(|(of, _, _)| *of == at) {
            let recorded = &spec.expectations.trace[*nth];
            tasks.push(Task::Trace(spec, recorded, schedule));
        }
    }
    if tasks.is_empty() {
        let name = args.variant.clone().unwrap_or_default();
        let what = "no such variant; expect.toml of the specification lists them";
        return Err(Error::usage(name, what));
    }
    Ok(tasks)
}

fn job(task: &Task<'_>) -> Result<Job, Error> {
    Ok(match task {
        Task::Variant(spec, variant) => Job {
            label: variant.name.clone(),
            module: module(spec, &variant.name),
            configuration: spec.configuration(&variant.name)?,
            files: spec.modules.clone(),
            whole: variant.whole,
            coverage: !variant.taken.is_empty(),
            seconds: variant.seconds,
        },
        Task::Trace(spec, recorded, schedule) => {
            trace_job(&recorded.file, spec.modules.clone(), schedule)
        }
        Task::WrongTrace(spec, edit, schedule) => {
            trace_job(&edit.name, spec.mutated(edit)?, schedule)
        }
        Task::Mutant(spec, edit) => Job {
            label: edit.name.clone(),
            module: module(spec, &edit.variant),
            configuration: spec.configuration(&edit.variant)?,
            files: spec.mutated(edit)?,
            whole: false,
            coverage: false,
            seconds: 5.0,
        },
    })
}

/// The trace and all corruptions of it in one run: starting TLC takes longer than they do.
fn trace_job(label: &str, mut files: Vec<(String, String)>, schedule: &Schedule) -> Job {
    let wrong = tlc::corruptions(&schedule.steps);
    let wrong = wrong.iter().map(|corruption| corruption.steps.as_slice());
    let all = std::iter::once(schedule.steps.as_slice()).chain(wrong);
    let shows = runs::shows(schedule);
    files.push(("TraceData.tla".to_owned(), tlc::module(shows, all)));
    Job {
        label: label.to_owned(),
        module: format!("Trace{}", schedule.spec),
        configuration: tlc::configuration(schedule),
        files,
        whole: false,
        coverage: false,
        seconds: 3.0,
    }
}

fn judge(task: &Task<'_>, done: &Done, schedules: Option<&Path>) -> Result<Row, Error> {
    let outcome = Outcome::parse(&done.output);
    let mut row = Row {
        seconds: done.seconds,
        generated: outcome.generated,
        distinct: outcome.distinct,
        ..Row::default()
    };
    match task {
        Task::Variant(spec, variant) => {
            row.spec.clone_from(&spec.name);
            row.name.clone_from(&variant.name);
            row.wrong = variant.differences(&outcome);
            row.verdict = outcome.verdict.to_string();
            row.length = Some(outcome.behaviour.len()).filter(|states| *states > 0);
            let none = outcome.behaviour.is_empty() || is_by_labels(&variant.name);
            if let (Some(folder), false) = (schedules, none) {
                let path = folder.join(format!("{}.schedule", variant.name));
                let text = counterexample(spec, variant, &outcome)?;
                OutputFile::open(&path)?.put(&text)?.keep()?;
            }
        }
        Task::Trace(spec, recorded, schedule) => {
            row.spec.clone_from(&spec.name);
            row.name.clone_from(&recorded.file);
            (row.verdict, row.wrong) = judge_trace(schedule, &done.output, &outcome);
        }
        Task::Mutant(spec, edit) => {
            row.spec.clone_from(&spec.name);
            row.name.clone_from(&edit.name);
            row.length = Some(outcome.behaviour.len()).filter(|states| *states > 0);
            let expected = Verdict::Violated(edit.expect.clone());
            if outcome.verdict == expected {
                row.verdict = format!("caught: {}", outcome.verdict);
            } else {
                "survived".clone_into(&mut row.verdict);
                let what = format!(
                    "{} in {}; expected: {expected}",
                    outcome.verdict, edit.variant
                );
                row.wrong = vec![what];
            }
        }
        Task::WrongTrace(spec, edit, schedule) => {
            row.spec.clone_from(&spec.name);
            row.name.clone_from(&edit.name);
            let (_, wrong) = judge_trace(schedule, &done.output, &outcome);
            // It has to run, and to accept a step that a right one rejects or the other way round.
            if outcome.verdict == Verdict::Holds && !wrong.is_empty() {
                row.verdict = format!("caught: {} traces judged wrongly", wrong.len());
            } else {
                "survived".clone_into(&mut row.verdict);
                row.wrong = vec![format!("all of {} judged rightly", edit.variant)];
            }
        }
    }
    Ok(row)
}

/// The trace itself must be accepted to its end, each corruption up to the step before it.
fn judge_trace(schedule: &Schedule, output: &str, outcome: &Outcome) -> (String, Vec<String>) {
    if outcome.verdict != Verdict::Holds {
        return ("not run".to_owned(), vec![outcome.verdict.to_string()]);
    }
    let steps = schedule.steps.len();
    let mut wrong = Vec::new();
    let accepted = tlc::accepted(output, 1);
    if accepted != steps {
        let step = &schedule.steps[accepted];
        wrong.push(format!(
            "step {} of {steps} is rejected: {step}",
            accepted + 1
        ));
    }
    let corruptions = tlc::corruptions(&schedule.steps);
    wrong.extend(accepted_corruptions(&corruptions, 2, output));
    let count = corruptions.len();
    let verdict = format!("accepted, {steps} steps; {count} corruptions rejected at their step");
    (verdict, wrong)
}

/// The variant is of the module in which each label is a step. Its counterexamples are no
/// schedules, unlike those of runs of the simulator.
fn is_by_labels(variant: &str) -> bool {
    variant.ends_with("-labels")
}

/// The module that TLC is started with for a variant.
fn module(spec: &Spec, variant: &str) -> String {
    match is_by_labels(variant) {
        true => format!("MC{}{}", spec.name, spec_tree::BY_LABELS),
        false => format!("MC{}", spec.name),
    }
}

/// Corruptions, the first one trace number `first`, that were not rejected where they are.
fn accepted_corruptions(corruptions: &[Corruption], first: usize, output: &str) -> Vec<String> {
    let wrong = corruptions.iter().enumerate().filter_map(|(index, c)| {
        let accepted = tlc::accepted(output, first + index);
        (accepted + 1 != c.step).then(|| {
            let (at, what) = (c.step, &c.what);
            format!("corrupted at step {at} ({what}): {accepted} steps accepted")
        })
    });
    wrong.collect()
}

fn counterexample(spec: &Spec, variant: &Variant, outcome: &Outcome) -> Result<String, Error> {
    let configuration = spec.configuration(&variant.name)?;
    let observed = &spec.expectations.observed;
    let schedule = tlc::schedule(&spec.name, &variant.name, &configuration, outcome, observed);
    let schedule = schedule.map_err(|what| Error::input(&spec.folder, what))?;
    Ok(schedule.to_string())
}
