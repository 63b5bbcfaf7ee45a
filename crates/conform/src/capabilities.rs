//! Capabilities of a capture: the mode it allows, and the devices that can be followed in it.

use trace::capture::CaptureDir;

use super::dropped_records::DroppedRecords;
use super::event::{self, Event, Kind, Traces};
use super::mode::log;
use super::setup::Setup;
use super::{Error, Mode, name_of};

/// The default mode for a capture, and the reason. Calls give the scheduler's decisions one by one,
/// with the events of each CPU; records only their results.
pub(super) fn strongest(
    dir: &CaptureDir,
    setups: &[Setup],
    dropped_records: &DroppedRecords,
) -> Result<(Mode, &'static str), Error> {
    if setups.iter().any(|setup| !setup.has_scheduler()) {
        return Ok((Mode::Records, "a scheduler none makes no dispatch calls"));
    }
    if log::is_logged(dir, setups)? {
        return Ok((Mode::Log, "the scheduler's log is in the blktrace files"));
    }
    if !dir.files.contains_key("ftrace.txt") {
        return Ok((Mode::Records, "there is no ftrace.txt with dispatch calls"));
    }
    if dropped_records.only_ftrace() {
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

/// Calls of this device's scheduler are among the events.
fn has_calls(dir: &CaptureDir, traces: &Traces, setup: &Setup) -> Result<bool, Error> {
    let events = traces.devices.get(&event::number_of(dir, &setup.device)?);
    let answers = |e: &Event| matches!(e.kind, Kind::Answer { .. });
    Ok(events.is_some_and(|events| events.list.iter().any(answers)))
}

/// Of devices whose dispatches do not count: those that can be followed in this mode.
pub(super) fn followable(
    dir: &CaptureDir,
    setups: Vec<Setup>,
    mode: Mode,
) -> Result<Vec<Setup>, Error> {
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
