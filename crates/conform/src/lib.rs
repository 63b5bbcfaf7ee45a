//! Does the reference scheduler decide as a kernel did? A capture's insertions, merges and
//! completions go to the model, and each dispatch is compared.
//!
//! * mode `calls`: a dispatch is one call of dd_dispatch_request() (kprobes; empty ones count)
//! * mode `records`: a dispatch is one `D` of blktrace; when the decision was made is inferred
//! * mode `log`: every line that the scheduler wrote to blktrace, and every call that it tells of
//!
//! A dispatch is right when direction, start and length agree. After a miss the kernel's choice is
//! imposed, so that each miss counts once. No clock, no printing. Read next: `calls.rs`.
#![forbid(unsafe_code)]

mod calls;
mod event;
mod follow;
mod kept;
mod kernel;
mod log;
mod lost;
mod priority;
mod records;
mod script;
mod setup;
mod stream;
mod submitters;
mod told;
mod verdict;
mod world;

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;
use trace::capture::CaptureDir;

pub use event::Place;
pub use verdict::{Divergence, LogVerdict, Verdict};

use lost::Lost;
use script::Script;
use setup::Setup;
use submitters::Processes;
use verdict::Judge;

/// What counts as a dispatch, and which part of a capture is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The probes of `ftrace.txt`: one call of the scheduler's dispatch function.
    Calls,
    /// The records of blktrace: one `D`.
    Records,
    /// The scheduler's messages in blktrace: each line, and each dispatch call among them.
    Log,
}

impl Mode {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Calls => "calls",
            Mode::Records => "records",
            Mode::Log => "log",
        }
    }

    /// The mode of this name.
    pub fn by_name(name: &str) -> Option<Mode> {
        [Mode::Calls, Mode::Records, Mode::Log]
            .into_iter()
            .find(|mode| mode.name() == name)
    }
}

/// How to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What counts as a dispatch. Default: the strongest that the capture allows.
    pub mode: Option<Mode>,
    /// Name of one traced device (`nullb0`), the only one whose dispatches count. Others that were
    /// traced with it are followed, too: a plug may hold requests of several. Default: all.
    pub trace_device: Option<String>,
    /// Rules to apply. Default: those of the kernel that `meta.txt` names.
    pub rules: Option<Rules>,
    /// queue/rotational when the scheduler was chosen. Default: as `meta.txt` says.
    pub rotational_when_chosen: Option<bool>,
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of the capture is missing or damaged.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// The capture's scheduler has no reference here.
    #[error(
        "{device}: scheduler {scheduler} is not modelled yet; {} are",
        known_schedulers()
    )]
    NotModelled {
        /// Device.
        device: String,
        /// queue/scheduler.
        scheduler: String,
    },
    /// No rules for the capture's kernel.
    #[error("no rules for kernel {kernel}; name the nearest of {}", known_rules())]
    Kernel {
        /// First two numbers of its release.
        kernel: String,
    },
    /// A setting of `queue.txt` makes no sense.
    #[error("queue.txt: {device}: {field}: {what}")]
    Setting {
        /// Device.
        device: String,
        /// File below /sys/block/DEVICE.
        field: String,
        /// What is wrong.
        what: String,
    },
    /// The mode asked for needs what this capture does not have.
    #[error("{capture}: {what}")]
    Unfit {
        /// Name of the capture.
        capture: String,
        /// What is missing and what would do.
        what: String,
    },
    /// The events of the capture contradict each other.
    #[error("{capture}: {device}: {place} at {time}: {what}")]
    Contradiction {
        /// Name of the capture.
        capture: String,
        /// Device.
        device: String,
        /// Line of `ftrace.txt`, or which event of this device's blktrace, first 1.
        place: Place,
        /// When, seconds of the capture's clock.
        time: blkmq::time::SimTime,
        /// What cannot be.
        what: String,
    },
}

fn known_schedulers() -> String {
    let names: Vec<&str> = SchedulerKind::of_path(false)
        .map(SchedulerKind::name)
        .collect();
    names.join(", ")
}

fn known_rules() -> String {
    Rules::PRESETS.map(|rules| rules.name).join(", ")
}

/// Compares a capture with the reference.
pub fn run(dir: &CaptureDir, options: &Options) -> Result<Verdict, Error> {
    let capture = name_of(dir);
    let named = match &options.trace_device {
        Some(name) => Some(dir.queue(Some(name))?.name.clone()),
        None => None,
    };
    let devices = dir.devices.iter().map(|device| device.name.clone());
    let devices = without_idle(dir, devices.collect())?;
    let (mut devices, mut paths) = without_paths(dir, devices)?;
    devices.retain(|device| Some(device) != named.as_ref());
    paths.retain(|(device, _)| Some(device) != named.as_ref());
    let hz = setup::hz_of(dir)?;
    let chosen = options.rotational_when_chosen;
    let read = |device: &String| Setup::read(dir, device, options.rules, (hz, chosen));
    let mut setups = Vec::new();
    for device in named
        .iter()
        .chain(devices.iter().filter(|_| named.is_none()))
    {
        setups.push(read(device)?);
    }
    let Some(first) = setups.first() else {
        let what = "queue.txt names no device".to_owned();
        return Err(Error::Unfit { capture, what });
    };
    let lost = Lost::read(dir, &setups)?;
    let (mode, why) = match options.mode {
        Some(mode) => (mode, None),
        None => {
            let (mode, why) = strongest(dir, &setups, &lost)?;
            (mode, Some(why))
        }
    };
    let mut judge = Judge::new(&capture, first, mode);
    judge.chosen(why);
    for setup in &setups {
        judge.takes(setup.taken());
        for note in setup.changed_meanwhile(dir)? {
            judge.note(&note);
        }
    }
    for note in lost.notes() {
        judge.note(&note);
    }
    for key in &dir.meta.unknown {
        judge.note(&format!("meta.txt: {key} is no key that is read"));
    }
    if named.is_some() {
        let others = devices.iter().filter_map(|device| read(device).ok());
        setups.extend(followable(dir, others.collect(), mode)?);
        judge.only(named);
    }
    let script = Script::read(dir, mode, &mut judge)?;
    for (path, events) in &paths {
        clones(path, events, &mut judge);
    }
    match mode {
        Mode::Calls if log::is_told(dir, &setups)? => {
            judge.note("when a call was decided is told by the scheduler's log in blktrace");
            log::judge(dir, &setups, &script, &mut judge)?;
        }
        Mode::Calls => calls::judge(dir, &setups, &script, &mut judge)?,
        Mode::Log => log::judge(dir, &setups, &script, &mut judge)?,
        Mode::Records => judge_records(dir, &setups, &script, &mut judge)?,
    }
    Ok(judge.verdict())
}

fn judge_records(
    dir: &CaptureDir,
    setups: &[Setup],
    script: &Script,
    judge: &mut Judge,
) -> Result<(), Error> {
    let mut traces = Vec::new();
    for setup in setups {
        let mut events = event::of_blktrace(dir, &setup.device)?;
        if is_path(dir, &events) {
            clones(&setup.device, &events, judge);
            events.list.clear();
        }
        priority::fill(dir, &setup.device, script, &mut events)?;
        traces.push(events);
    }
    let names = traces.iter().flat_map(|trace| trace.names.clone());
    let processes = Processes::of_script(dir, script, &names.collect())?;
    records::judge(&name_of(dir), setups, &traces, &processes, judge)
}

/// Of several devices those with records, if there are any.
fn without_idle(dir: &CaptureDir, devices: Vec<String>) -> Result<Vec<String>, Error> {
    if devices.len() < 2 {
        return Ok(devices);
    }
    let mut busy = Vec::new();
    for device in &devices {
        if !event::is_idle(dir, device)? {
            busy.push(device.clone());
        }
    }
    Ok(if busy.is_empty() { devices } else { busy })
}

/// A path below a stacked device, with its trace.
type Path = (String, event::Events);

/// Of several devices those that are no paths below another one, if there are any, and the paths.
fn without_paths(
    dir: &CaptureDir,
    devices: Vec<String>,
) -> Result<(Vec<String>, Vec<Path>), Error> {
    if dir.meta.dm_tables.is_empty() {
        return Ok((devices, Vec::new()));
    }
    let (mut others, mut paths) = (Vec::new(), Vec::new());
    for device in &devices {
        let events = event::of_blktrace(dir, device)?;
        match is_path(dir, &events) {
            true => paths.push((device.clone(), events)),
            false => others.push(device.clone()),
        }
    }
    Ok(match others.is_empty() {
        true => (devices, Vec::new()),
        false => (others, paths),
    })
}

/// The mode for a capture of which nobody named one, and why. Calls tell the scheduler's decisions
/// one by one, with what each CPU was doing; records only what came of them.
fn strongest(
    dir: &CaptureDir,
    setups: &[Setup],
    lost: &Lost,
) -> Result<(Mode, &'static str), Error> {
    if setups.iter().any(|setup| !setup.has_scheduler()) {
        return Ok((Mode::Records, "a scheduler none makes no dispatch calls"));
    }
    if log::is_told(dir, setups)? {
        return Ok((Mode::Log, "the scheduler's log is in the blktrace files"));
    }
    if !dir.files.contains_key("ftrace.txt") {
        return Ok((Mode::Records, "there is no ftrace.txt with dispatch calls"));
    }
    if lost.only_ftrace() {
        let why = "ftrace.txt has lost events, and the blktrace files have not";
        return Ok((Mode::Records, why));
    }
    let traces = event::of_ftrace(dir)?;
    if traces.devices.is_empty() && traces.unread.is_empty() {
        let capture = name_of(dir);
        let what = "ftrace.txt has no event: restore it, or remove it to compare with mode records";
        let what = what.to_owned();
        return Err(Error::Unfit { capture, what });
    }
    for setup in setups {
        if !has_calls(dir, &traces, setup)? {
            let why = "ftrace.txt has no dispatch calls of each device";
            return Ok((Mode::Records, why));
        }
    }
    Ok((Mode::Calls, "ftrace.txt has the dispatch calls"))
}

/// Of devices whose dispatches do not count: those that can be followed in this mode.
fn followable(dir: &CaptureDir, setups: Vec<Setup>, mode: Mode) -> Result<Vec<Setup>, Error> {
    if mode != Mode::Calls || setups.is_empty() {
        return Ok(setups);
    }
    let traces = event::of_ftrace(dir)?;
    let mut followed = Vec::new();
    for setup in setups {
        if setup.has_scheduler() && has_calls(dir, &traces, &setup)? {
            followed.push(setup);
        }
    }
    Ok(followed)
}

/// Calls of this device's scheduler are among the events.
fn has_calls(dir: &CaptureDir, traces: &event::Traces, setup: &Setup) -> Result<bool, Error> {
    let events = traces.devices.get(&event::number_of(dir, &setup.device)?);
    let answers = |e: &event::Event| matches!(e.kind, event::Kind::Answer { .. });
    Ok(events.is_some_and(|events| events.list.iter().any(answers)))
}

/// A path below a stacked device: its requests are clones that nobody queued here.
fn is_path(dir: &CaptureDir, events: &event::Events) -> bool {
    use event::Kind;
    let arrives = |e: &event::Event| matches!(e.kind, Kind::Queue | Kind::Get | Kind::Insert);
    !dir.meta.dm_tables.is_empty() && !events.list.iter().any(arrives)
}

/// Clones are handed over by blk_insert_cloned_request(): no scheduler of the path chose them.
fn clones(device: &str, events: &event::Events, judge: &mut Judge) {
    let issues = events.list.iter().filter(|e| e.kind == event::Kind::Issue);
    if let Some(first) = events.list.first() {
        judge.start(device, first.time);
    }
    for _ in issues {
        judge.unjudged(verdict::Unjudged::Clone);
    }
}

fn name_of(dir: &CaptureDir) -> String {
    let name = dir.path.file_name().unwrap_or(dir.path.as_os_str());
    name.to_string_lossy().into_owned()
}
