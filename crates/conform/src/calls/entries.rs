//! Calls of which a capture has only the return: the possible place of their entry.

use std::collections::BTreeMap;

use crate::event::{Event, Kind};

/// The events of a device with an entry for each return: right after the event before it on its
/// CPU, which is the earliest possible place.
pub(super) fn with_entries(events: Vec<Event>) -> Vec<Event> {
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
