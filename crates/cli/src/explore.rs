//! `blksim explore`: all states of a configuration of `specs/Restart`, with the real paths instead
//! of the specification; `blksim replay-schedule`: one schedule, step by step.

use std::fmt::Write as _;

use blkmq::schedule::Schedule;
use explore::restart::{Explored, Options, Replayed, Setting, explore as all_states, replay};
use explore::tlc::{self, Verdict};

use crate::args::{ExploreArgs, ReplayScheduleArgs};
use crate::check::tree;
use crate::error::Error;
use crate::output::{self, OutputFile};
use crate::{DIFFERENT, OK};

/// The specification whose actions the explorer takes with the real paths.
const SPEC: &str = "Restart";

/// Explores a variant and prints what was found.
pub(crate) fn explore(args: &ExploreArgs) -> Result<u8, Error> {
    let specs = tree::read(args.specs.as_deref(), Some(SPEC))?;
    let spec = &specs[0];
    let known = spec.expectations.variant.iter();
    let variant = known.clone().find(|variant| variant.name == args.variant);
    if variant.is_none() {
        let what = "no such variant; specs/Restart/expect.toml lists them";
        return Err(Error::usage(&args.variant, what));
    }
    let configuration = spec.configuration(&args.variant)?;
    let file = spec
        .folder
        .join("variants")
        .join(format!("{}.cfg", args.variant));
    let setting = Setting::of_configuration(&configuration)
        .map_err(|error| Error::input(&file, error.to_string()))?;
    let other = ["PROPERT", "NeverAllDone"];
    if other.iter().any(|word| configuration.contains(word)) || setting.hctxs > 1 {
        let what = "only TLC checks this one: liveness, an end, or several hctxs a queue";
        return Err(Error::usage(&args.variant, what));
    }
    let schedule_file = args.schedule.as_deref().map(OutputFile::open).transpose()?;
    let options = Options {
        whole: args.whole,
        depth_first: args.depth_first,
        test_one_in: u64::from(!args.no_test),
    };
    let found = all_states(&setting, options);
    output::print(&table(&args.variant, &found))?;
    if let Verdict::Failed(_) = found.verdict {
        return Ok(DIFFERENT);
    }
    if !found.schedule.is_empty() {
        let constants = tlc::settings(&configuration);
        let observed = &spec.expectations.observed;
        let schedule = found.schedule_file(&args.variant, &constants, observed);
        output::print(&format!("\n{schedule}"))?;
        if let Some(file) = schedule_file {
            file.put(&schedule.to_string())?.keep()?;
        }
    }
    Ok(if found.verdict == Verdict::Holds {
        OK
    } else {
        DIFFERENT
    })
}

fn table(variant: &str, found: &Explored) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{variant}: {}", found.verdict);
    let _ = writeln!(
        text,
        "{} generated, {} distinct, depth {}; {} more to test projections",
        found.generated, found.distinct, found.depth, found.tested
    );
    for (action, count) in &found.taken {
        let _ = writeln!(text, "  {action:<14} {count:>10}");
    }
    text
}

/// Takes the steps of a file and prints what each did.
pub(crate) fn replay_schedule(args: &ReplayScheduleArgs) -> Result<u8, Error> {
    let path = &args.file;
    let text = std::fs::read_to_string(path)
        .map_err(|e| Error::input(path, format!("cannot be read: {e}")))?;
    let mut schedule =
        Schedule::parse(&text).map_err(|error| Error::input(path, error.to_string()))?;
    if schedule.spec != SPEC {
        let what = format!(
            "spec {0}: only schedules of {SPEC} can be replayed; `blksim check {0}` checks others",
            schedule.spec
        );
        return Err(Error::input(path, what));
    }
    for assignment in &args.set {
        change(&mut schedule, assignment)?;
    }
    let setting =
        Setting::parse(&schedule.settings).map_err(|error| match args.set.as_slice() {
            [] => Error::input(path, error.to_string()),
            // The file was read; what is wrong may be what was changed.
            set => Error::usage(format!("--set {}", set.join(" --set ")), error.to_string()),
        })?;
    let replayed = replay(&setting, &schedule);
    output::print(&story(&schedule, &replayed, args.labels))?;
    let same = replayed.rejected.is_none() && replayed.verdict.to_string() == schedule.shows;
    Ok(if same { OK } else { DIFFERENT })
}

/// `NAME=VALUE`: another constant. Text needs no quotes.
fn change(schedule: &mut Schedule, assignment: &str) -> Result<(), Error> {
    let split = assignment.split_once('=');
    let (name, value) = split.ok_or_else(|| Error::usage(assignment, "expected NAME=VALUE"))?;
    let known = schedule
        .settings
        .iter_mut()
        .find(|(known, _)| known == name);
    let Some((_, old)) = known else {
        return Err(Error::usage(name, "the schedule has no such constant"));
    };
    *old = match old.starts_with('"') && !value.starts_with('"') {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    };
    // What was seen under other constants need not be seen under these.
    for step in &mut schedule.steps {
        step.observed.clear();
    }
    Ok(())
}

fn story(schedule: &Schedule, replayed: &Replayed, labels: bool) -> String {
    let mut text = String::new();
    for (index, (step, ran)) in replayed.steps.iter().enumerate() {
        let _ = writeln!(text, "{:>3} {step}", index + 1);
        if labels {
            let names: Vec<String> = ran.iter().map(|label| label.name()).collect();
            let _ = writeln!(text, "      {}", names.join(" "));
        }
    }
    if let Some(why) = &replayed.rejected {
        let _ = writeln!(text, "step {} is rejected: {why}", replayed.steps.len() + 1);
    }
    let _ = writeln!(
        text,
        "{} of {} steps taken: {}; the file: {}",
        replayed.steps.len(),
        schedule.steps.len(),
        replayed.verdict,
        schedule.shows
    );
    for line in &replayed.left {
        let _ = writeln!(text, "  {line}");
    }
    text
}
