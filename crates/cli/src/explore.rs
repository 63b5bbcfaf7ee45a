//! `blksim explore`: all states of a configuration of a specification, with the real paths instead
//! of the specification; `blksim replay-schedule`: one schedule, step by step.

use std::fmt::Write as _;
use std::path::Path;

use blkmq::schedule::Schedule;
use explore::spec::{
    Explored, Lived, Options, Replayed, Specification, explore as explore_all, liveness, replay,
};
use explore::tlc::{self, Verdict};
use explore::{Halt, Resources, Spill, bfq_merge, cfq_merge, dispatch, restart, run_recorder};

use crate::args::{ExploreArgs, ReplayScheduleArgs};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::output::{self, OutputFile};
use crate::progress::States;
use crate::spec_tree::{self, Spec};
use crate::{DIFFERENT, OK};

/// Explores a variant and prints the result.
pub(crate) fn explore(args: &ExploreArgs) -> Result<u8, Error> {
    let specs = spec_tree::read(args.specs.as_deref(), None)?;
    let known = |spec: &&Spec| {
        let mut variants = spec.expectations.variant.iter();
        variants.any(|variant| variant.name == args.variant)
    };
    let Some(spec) = specs.iter().find(known) else {
        let what = "no such variant; specs/*/expect.toml list them";
        return Err(Error::usage(&args.variant, what));
    };
    match spec.name.as_str() {
        <restart::Setting as Specification>::NAME => explore_with::<restart::Setting>(args, spec),
        <dispatch::Setting as Specification>::NAME => explore_with::<dispatch::Setting>(args, spec),
        <bfq_merge::Setting as Specification>::NAME => {
            explore_with::<bfq_merge::Setting>(args, spec)
        }
        <cfq_merge::Setting as Specification>::NAME => {
            explore_with::<cfq_merge::Setting>(args, spec)
        }
        name => Err(Error::usage(&args.variant, unwalked(name))),
    }
}

fn unwalked(spec: &str) -> String {
    let names = [
        restart::Setting::NAME,
        dispatch::Setting::NAME,
        bfq_merge::Setting::NAME,
        cfq_merge::Setting::NAME,
    ];
    let names = names.join(", ");
    format!("the real paths are held to {names} only; `blksim check {spec}` checks {spec}")
}

fn explore_with<S: Specification>(args: &ExploreArgs, spec: &Spec) -> Result<u8, Error> {
    let mut configuration = spec.configuration(&args.variant)?;
    for assignment in &args.set {
        configuration = changed(&configuration, assignment)?;
    }
    let file = spec
        .folder
        .join("variants")
        .join(format!("{}.cfg", args.variant));
    let setting = S::of_configuration(&configuration).map_err(|error| match &args.set[..] {
        [] => Error::input(&file, error.to_string()),
        set => Error::usage(format!("--set {}", set.join(" --set ")), error.to_string()),
    })?;
    if let Some(what) = setting.beyond(&configuration) {
        return Err(Error::usage(&args.variant, what));
    }
    let lives = configuration.contains("PROPERT");
    let of_states = args.jobs.is_some() || args.memory.is_some() || args.spill.is_some();
    if lives && (args.whole || args.no_test || of_states) {
        let what = "is judged by its behaviours: --whole, --no-test, --jobs, --memory and --spill \
                    do nothing";
        return Err(Error::usage(&args.variant, what));
    }
    let schedule_file = args.schedule.as_deref().map(OutputFile::open).transpose()?;
    let constants = tlc::settings(&configuration);
    let observed = &spec.expectations.observed;
    let (text, schedule) = if lives {
        let lived = liveness(&setting);
        let waits = lived.waits.as_ref();
        let file = waits.map(|w| w.schedule_file::<S>(&args.variant, &constants, observed));
        (story_of_life(&args.variant, &lived), file)
    } else {
        let found = all_states(&setting, args)?;
        let text = table(&args.variant, &found);
        if let Verdict::Failed(_) = found.verdict {
            output::print(&text)?;
            return Ok(DIFFERENT);
        }
        let violated = found.verdict != Verdict::Holds;
        let file = violated.then(|| found.schedule_file(&args.variant, &constants, observed));
        (text, file)
    };
    output::print(&text)?;
    let Some(schedule) = schedule else {
        if let Some(file) = &args.schedule {
            let file = file.display();
            output::print(&format!("no violation, so {file} is not written\n"))?;
        }
        return Ok(OK);
    };
    output::print(&format!("\n{schedule}"))?;
    if let Some(file) = schedule_file {
        file.put(&schedule.to_string())?.keep()?;
    }
    Ok(DIFFERENT)
}

/// Visits all states with the threads, memory and folder that were asked for.
fn all_states<S: Specification>(setting: &S, args: &ExploreArgs) -> Result<Explored, Error> {
    let folder = args.spill.clone().unwrap_or_else(std::env::temp_dir);
    let file = || {
        let file = tempfile::tempfile_in(&folder)?;
        Ok(Box::new(file) as Box<dyn Spill>)
    };
    let no_room = |error: std::io::Error| {
        let what = format!("states that do not fit into memory cannot be kept there: {error}");
        Error::usage(format!("--spill {}", folder.display()), what)
    };
    if args.spill.is_some() {
        file().map_err(no_room)?;
    }
    let interrupt = Interrupt::install()?;
    let progress = States::new();
    let resources = Resources {
        jobs: args.jobs.map_or(0, usize::from),
        memory: args.memory.unwrap_or_else(|| available_memory() / 2),
        file: &file,
        stopped: &|| interrupt.came(),
        progress: &|at| progress.update(at),
    };
    let options = Options {
        whole: args.whole,
        test_one_in: u64::from(!args.no_test),
    };
    let explored = explore_all(setting, options, &resources);
    drop(progress);
    explored.map_err(|halt| match halt {
        Halt::Stopped(states) => Error::InterruptedSearch(states),
        Halt::File(error) => no_room(error),
        Halt::Threads(_) => Error::usage("--jobs", halt.to_string()),
    })
}

/// Bytes that programs can still have, by the kernel or the limit of a container; without either,
/// those of a small machine.
fn available_memory() -> u64 {
    let read = |file: &str| std::fs::read_to_string(file).ok();
    let of_machine = read("/proc/meminfo").and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"));
        let kib: u64 = line?.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib << 10)
    });
    let of_container =
        read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse::<u64>().ok());
    let least = [of_machine, of_container].into_iter().flatten().min();
    least.unwrap_or(4 << 30)
}

/// A configuration with another value of a constant. Text needs no quotes.
fn changed(configuration: &str, assignment: &str) -> Result<String, Error> {
    let (name, value) = assigned(assignment)?;
    let of_line = |line: &str| {
        let (known, old) = line.split_once('=')?;
        (known.trim() == name).then(|| format!("{known}= {}", quoted(value, old.trim())))
    };
    if !configuration.lines().any(|line| of_line(line).is_some()) {
        return Err(Error::usage(name, "the variant has no such constant"));
    }
    let lines = configuration.lines();
    let lines = lines.map(|line| of_line(line).unwrap_or_else(|| line.to_owned()) + "\n");
    Ok(lines.collect())
}

/// Name and value of `NAME=VALUE`.
fn assigned(assignment: &str) -> Result<(&str, &str), Error> {
    let split = assignment.split_once('=');
    split.ok_or_else(|| Error::usage(assignment, "expected NAME=VALUE"))
}

/// A value in quotes, if the old one is.
fn quoted(value: &str, old: &str) -> String {
    match old.starts_with('"') && !value.starts_with('"') {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    }
}

/// The result for a property of behaviours, not of states.
fn story_of_life(variant: &str, lived: &Lived) -> String {
    let what = match &lived.waits {
        None => "every request ends".to_owned(),
        Some(waits) => format!(
            "liveness violated: request {} may wait for ever, in {} states",
            waits.request, waits.states
        ),
    };
    format!(
        "{variant}: {what}\n{} states, {} steps between them\n",
        lived.states, lived.edges
    )
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

/// Takes the steps of a file and prints the result of each.
pub(crate) fn replay_schedule(args: &ReplayScheduleArgs) -> Result<u8, Error> {
    let path = &args.file;
    let mut schedule = spec_tree::schedule(path)?;
    for assignment in &args.set {
        change(&mut schedule, assignment)?;
    }
    match schedule.spec.as_str() {
        <restart::Setting as Specification>::NAME => {
            replay_with::<restart::Setting>(args, &schedule)
        }
        <dispatch::Setting as Specification>::NAME => {
            replay_with::<dispatch::Setting>(args, &schedule)
        }
        <bfq_merge::Setting as Specification>::NAME => {
            replay_with::<bfq_merge::Setting>(args, &schedule)
        }
        <cfq_merge::Setting as Specification>::NAME => {
            replay_with::<cfq_merge::Setting>(args, &schedule)
        }
        cfq_merge::RUNS => replay_run::<cfq_merge::Setting>(args, &schedule),
        bfq_merge::RUNS => replay_run::<bfq_merge::Setting>(args, &schedule),
        restart::RUNS => Err(only_tlc(path, restart::Setting::NAME)),
        dispatch::RUNS => Err(only_tlc(path, dispatch::Setting::NAME)),
        name => Err(Error::input(
            path,
            format!("spec {name}: {}", unwalked(name)),
        )),
    }
}

fn replay_with<S: Specification>(
    args: &ReplayScheduleArgs,
    schedule: &Schedule,
) -> Result<u8, Error> {
    let setting = S::parse(&schedule.settings).map_err(|error| match args.set.as_slice() {
        [] => Error::input(&args.file, error.to_string()),
        // The file was read; the error may be in the change.
        set => Error::usage(format!("--set {}", set.join(" --set ")), error.to_string()),
    })?;
    if let Some(what) = setting.beyond("") {
        return Err(match args.set.as_slice() {
            [] => Error::input(&args.file, what),
            set => Error::usage(format!("--set {}", set.join(" --set ")), what),
        });
    }
    judged(&args.file, schedule, &S::properties())?;
    report(args, schedule, &replay(&setting, schedule))
}

/// The same for a run of the simulator.
fn replay_run<S: Specification>(
    args: &ReplayScheduleArgs,
    schedule: &Schedule,
) -> Result<u8, Error> {
    if let [assignment, ..] = &args.set[..] {
        let what = "a run of the simulator has its constants; `blksim run --set` makes another";
        return Err(Error::usage(assignment, what));
    }
    check_run(&args.file, schedule)?;
    let setting = S::parse(&schedule.settings)
        .map_err(|error| Error::input(&args.file, error.to_string()))?;
    report(args, schedule, &replay(&setting, schedule))
}

/// The steps of the schedule are single labels of a run.
fn only_tlc(file: &Path, spec: &str) -> Error {
    let file_name = file.display();
    let what = format!(
        "each label is a step, and only TLC takes those: `blksim check {spec} --run {file_name}`"
    );
    Error::input(file, what)
}

/// Requirements on a schedule of a run before its steps are looked at: an error names the missing
/// one.
pub(crate) fn check_run(file: &Path, schedule: &Schedule) -> Result<(), Error> {
    let properties =
        run_recorder::properties_of_run(schedule).map_err(|what| Error::input(file, what))?;
    let merging = [cfq_merge::RUNS, bfq_merge::RUNS].contains(&schedule.spec.as_str());
    if !merging || schedule.shows != Verdict::Holds.to_string() {
        judged(file, schedule, &properties)?;
    }
    if schedule.repeats_from.is_some() || schedule.shows == "liveness violated" {
        let what = "a run of the simulator comes to an end: nothing repeats for ever";
        return Err(Error::input(file, what));
    }
    Ok(())
}

/// True if a schedule has steps and shows something that can be judged.
fn judged(file: &Path, schedule: &Schedule, properties: &[&str]) -> Result<(), Error> {
    if schedule.steps.is_empty() {
        return Err(Error::input(file, "expected at least one step, `1 ACTION`"));
    }
    let shows = &schedule.shows;
    let property = shows.strip_suffix(" violated");
    if property.is_some_and(|name| properties.contains(&name)) {
        return Ok(());
    }
    let names = properties.join(", ");
    let what = format!("shows {shows}: expected `PROPERTY violated`, of {names}");
    Err(Error::input(file, what))
}

fn report(
    args: &ReplayScheduleArgs,
    schedule: &Schedule,
    replayed: &Replayed,
) -> Result<u8, Error> {
    output::print(&story(schedule, replayed, args.labels))?;
    let same = replayed.rejected.is_none() && replayed.verdict.to_string() == schedule.shows;
    Ok(if same { OK } else { DIFFERENT })
}

/// `NAME=VALUE`: another constant. Text needs no quotes.
fn change(schedule: &mut Schedule, assignment: &str) -> Result<(), Error> {
    let (name, value) = assigned(assignment)?;
    let known = schedule
        .settings
        .iter_mut()
        .find(|(known, _)| known == name);
    let Some((_, old)) = known else {
        return Err(Error::usage(name, "the schedule has no such constant"));
    };
    *old = quoted(value, old);
    // Observations under other constants need not be possible under these.
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
            let names: Vec<&str> = ran.iter().map(|label| label.name()).collect();
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
