//! Writes of a scenario to files of queue/iosched/.
//!
//! A scheduler stores some numbers with another value than written: outside its range, rounded to
//! ticks, or raised by another attribute. The kernel does so in silence; a plan reports it.

use blkmq::elevator::{SchedulerKind, SchedulerSettings};

use super::{Asked, names_of};
use crate::Result;

/// `iosched` after all writes. Attributes that show another value than was written are added to
/// `adjusted`, once for all disks that share the line.
pub(super) fn written(
    asked: &Asked<'_>,
    mut iosched: SchedulerSettings,
    adjusted: &mut Vec<String>,
) -> Result<SchedulerSettings> {
    for (name, value) in &asked.queue.iosched {
        store(&mut iosched, name, *value).map_err(|what| asked.error(name, what))?;
    }
    for (name, &value) in &asked.queue.iosched {
        let shown = iosched.show(name);
        let Some(shown) = shown.filter(|&shown| shown != value.into()) else {
            continue;
        };
        let field = asked.field(name);
        let place = asked.scenario.source.place(&field);
        let note = format!("{place}: {field}: {value} is taken as {shown}");
        if !adjusted.contains(&note) {
            adjusted.push(note);
        }
    }
    Ok(iosched)
}

/// A write to an attribute, whose name is returned, or its error.
pub(super) fn store(
    iosched: &mut SchedulerSettings,
    name: &str,
    value: i64,
) -> std::result::Result<&'static str, String> {
    let find = |kind: SchedulerKind| {
        let known = kind.attributes().into_iter();
        known.map(|(known, _)| known).find(|known| *known == name)
    };
    let kind = iosched.kind();
    let Some(known) = find(kind) else {
        let has = |kind: SchedulerKind| find(kind).is_some();
        if !SchedulerKind::ALL.iter().any(|&kind| has(kind)) {
            return Err(format!("no scheduler has an attribute `{name}`"));
        }
        let (whose, own) = (names_of(has), kind.name());
        return Err(format!(
            "an attribute of {whose}, but the scheduler is {own}"
        ));
    };
    let stored = iosched.store(known, &value.to_string());
    stored.map(|()| known).map_err(|e| e.to_string())
}
