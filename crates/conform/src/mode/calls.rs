//! Mode calls: every dispatch call of the scheduler that the probes saw. A call decides between its
//! entry and its return, which are both outside the scheduler's lock.

use std::collections::BTreeMap;

use trace::capture::CaptureDir;
use trace::ftrace::DeviceNumber;

use crate::event::{self, Event, Events, Kind};
use crate::judge::Judge;
use crate::setup::Setup;
use crate::{Error, Options, decision_time, name_of};

/// The events of `ftrace.txt` by device.
pub(super) fn probed(
    dir: &CaptureDir,
    setups: &[Setup],
    judge: &mut Judge,
) -> Result<BTreeMap<DeviceNumber, Events>, Error> {
    if setups.iter().any(|setup| !setup.has_scheduler()) {
        let what = "scheduler none makes no dispatch calls; compare with mode records".to_owned();
        let capture = name_of(dir);
        return Err(Error::Unfit { capture, what });
    }
    let traces = event::of_ftrace(dir)?;
    for (name, count) in &traces.unread {
        let name = if name.is_empty() { "no name" } else { name };
        judge.note(&format!(
            "ftrace.txt: {count} events that are not read: {name}"
        ));
    }
    if traces.erases > 0 {
        let erases = traces.erases;
        judge.note(&format!(
            "ftrace.txt: {erases} events of secure erases are taken as write zeroes"
        ));
    }
    Ok(traces.devices)
}

pub(super) fn of_device(
    (dir, options): (&CaptureDir, &Options),
    setup: &Setup,
    probed: &mut BTreeMap<DeviceNumber, Events>,
    judge: &mut Judge,
) -> Result<Events, Error> {
    let device = &setup.device;
    let number = event::number_of(dir, device)?;
    let mut trace = probed.remove(&number).unwrap_or_default();
    event::mark_sleeps(dir, device, &mut trace)?;
    event::mark_refused(dir, device, &mut trace)?;
    decision_time::add_exits(dir, options, setup, &mut trace, judge);
    let answer = |e: &Event| matches!(e.kind, Kind::Answer { .. });
    if !trace.list.iter().any(answer) {
        let what = format!(
            "ftrace.txt has no dispatch calls (probe dd) of {device}; compare with mode records"
        );
        let capture = name_of(dir);
        return Err(Error::Unfit { capture, what });
    }
    if !trace
        .list
        .iter()
        .any(|e| matches!(e.kind, Kind::Ask { .. }))
    {
        trace.list = with_entries(trace.list);
        judge.note(&format!(
            "{device}: no probe at the entry of dispatch calls: each may have begun after the \
             last event of its CPU, and one without a request is unknown"
        ));
    }
    Ok(trace)
}

/// The events of a device with an entry for each return: right after the event before it on its
/// CPU, which is the earliest possible place.
fn with_entries(events: Vec<Event>) -> Vec<Event> {
    let mut later: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
    let mut last: BTreeMap<u16, usize> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        if let Kind::Answer { at, .. } = event.kind {
            let before = last.get(&event.cpu).copied();
            let mut entry = event.clone();
            entry.kind = Kind::Ask { at, hctx: None };
            if let Some(before) = before {
                entry.place = events[before].place;
                entry.time = events[before].time;
            }
            let at = before.map_or(index, |before| before + 1);
            later.entry(at).or_default().push(entry);
        }
        last.insert(event.cpu, index);
    }
    let mut all = Vec::with_capacity(events.len() + later.len());
    for (index, event) in events.into_iter().enumerate() {
        all.extend(later.remove(&index).unwrap_or_default());
        all.push(event);
    }
    all
}
