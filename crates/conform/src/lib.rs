//! Does the reference scheduler decide as a kernel did? A capture's insertions, merges and
//! completions go to the model, and each dispatch is compared.
//!
//! * mode `calls`: a dispatch is one call of dd_dispatch_request() (kprobes; empty ones count)
//! * mode `records`: a dispatch is one `D` of blktrace; the time of the decision is inferred
//! * mode `log`: every line that the scheduler wrote to blktrace, and every call in it
//! * in any mode: every path that a multipath target chose
//!
//! A dispatch is right when direction, start and length agree. After a miss the kernel's choice is
//! imposed, so that each miss counts once. No clock, no printing. Read next: `mode.rs`, then
//! `hypothesis.rs`.
#![forbid(unsafe_code)]

mod capabilities;
mod choices;
mod clones;
mod decision_time;
mod dropped_records;
mod error;
mod event;
#[cfg(test)]
mod fixtures;
mod hypothesis;
mod judge;
mod kernel;
mod lines;
mod mode;
mod priority;
mod scheduler_event;
mod script;
mod setup;
mod stream;
mod submitters;
mod ticks;
mod verdict;
mod world;

use blkmq::rules::Rules;
use blkmq::time::Duration;
use trace::capture::CaptureDir;

pub use error::Error;
pub use event::Place;
pub use mode::Mode;
pub use verdict::{
    ChoiceVerdict, Divergence, LogVerdict, RivalVerdict, Rivals, SchedulerEvents, TargetVerdict,
    Verdict,
};

use capabilities::{followable, strongest};
use clones::without_paths;
use dropped_records::DroppedRecords;
use hypothesis::Search;
use judge::Judge;
use script::Script;
use setup::Setup;

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The unit of comparison. Default: the strongest that the capture allows.
    pub mode: Option<Mode>,
    /// Name of one traced device (`nullb0`), the only one whose dispatches count. Others that were
    /// traced with it are followed, too: a plug may hold requests of several. Default: all.
    pub trace_device: Option<String>,
    /// Rules to apply. Default: those of the kernel that `meta.txt` names.
    pub rules: Option<Rules>,
    /// queue/rotational when the scheduler was chosen. Default: from `meta.txt`.
    pub rotational_when_chosen: Option<bool>,
    /// From the decision of a dispatch call to the record that shows its answer, where no log has
    /// it and the scheduler reads the clock. Default: from `meta.txt`, else the usual value.
    pub decided_before: Option<Duration>,
    /// From the record that causes a dispatch call to its decision, where no record shows that.
    pub decided_after: Option<Duration>,
    /// From the end of a process's last I/O to its exit, where neither a log nor `meta.txt` has it.
    pub exits_after: Option<Duration>,
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
    let stacked = clones::judges_above(&paths, named.as_deref());
    devices.retain(|device| Some(device) != named.as_ref());
    paths.retain(|(device, _)| Some(device) != named.as_ref());
    let hz = setup::hz_of(dir)?;
    let chosen = options.rotational_when_chosen;
    let read = |device: &String| Setup::read(dir, device, options, hz);
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
    must_be_read(chosen, &setups, &capture)?;
    let dropped_records = DroppedRecords::read(dir, &setups)?;
    let (mode, why) = match options.mode {
        Some(mode) => (mode, None),
        None => {
            let (mode, why) = strongest(dir, &setups, &dropped_records)?;
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
    for note in dropped_records.notes() {
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
    let bio_based = choices::judge(dir, (&setups, options), stacked, &mut judge)?;
    if !judge.has_clones() {
        for (path, events) in &paths {
            clones::count(path, events, &mut judge);
        }
    }
    setups.retain(|setup| !bio_based.contains(&setup.device));
    if !setups.is_empty() {
        compare(dir, options, (&setups, mode), &script, &mut judge)?;
    }
    Ok(judge.verdict())
}

/// Compares every dispatch, and the mode's other events.
fn compare(
    dir: &CaptureDir,
    options: &Options,
    (setups, mode): (&[Setup], Mode),
    script: &Script,
    judge: &mut Judge,
) -> Result<(), Error> {
    let mode = match mode {
        Mode::Calls if mode::log::is_logged(dir, setups)? => {
            judge.note("decision times of calls are from the scheduler's log in blktrace");
            Mode::Log
        }
        mode => mode,
    };
    if mode != Mode::Log {
        for setup in setups {
            decision_time::take(dir, options, (setup, mode), judge);
        }
    }
    let (stream, setups) = mode.read((dir, options), setups, script, judge)?;
    Search::new(&stream, &setups).run(&name_of(dir), judge)
}

/// An option about rotation at the choice of the scheduler needs a scheduler that reads it.
fn must_be_read(chosen: Option<bool>, setups: &[Setup], capture: &str) -> Result<(), Error> {
    if chosen.is_none() || setups.iter().any(Setup::reads_rotational) {
        return Ok(());
    }
    let names: Vec<&str> = setups.iter().map(Setup::scheduler_name).collect();
    let names = names.join(", ");
    Err(Error::Unfit {
        capture: capture.to_owned(),
        what: format!(
            "--rotational-when-chosen decides nothing: scheduler {names} does not look at it"
        ),
    })
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

fn name_of(dir: &CaptureDir) -> String {
    let name = dir.path.file_name().unwrap_or(dir.path.as_os_str());
    name.to_string_lossy().into_owned()
}
