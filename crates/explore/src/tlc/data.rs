//! Traces as data of a trace module, and the module's answers.
//!
//! A step in a schedule lists what it changed; in the data it has all variables known so far, so
//! that TLC checks a step that should change nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use blkmq::schedule::{Argument, Schedule, Step};

use super::value::with_numbers;

/// A trace with a deliberate error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corruption {
    /// The step that must be rejected, counted from 1.
    pub step: usize,
    /// The error that was made.
    pub what: String,
    pub steps: Vec<Step>,
}

/// The constants of a configuration: `Name = value`. Model values become numbers, and their own
/// assignments `r1 = r1` vanish.
pub fn settings(configuration: &str) -> Vec<(String, String)> {
    let pairs = configuration
        .lines()
        .filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.trim(), value.trim()));
    pairs
        .filter(|(name, value)| name != value)
        .map(|(name, value)| (name.to_owned(), with_numbers(value)))
        .collect()
}

/// A configuration of the trace module, with the constants of a schedule.
pub fn configuration(schedule: &Schedule) -> String {
    let mut text = "CONSTANTS\n".to_owned();
    for (name, value) in &schedule.settings {
        // A trace gives the next step, and its steps are recorded for the comparison.
        let value = match name.as_str() {
            "LowestFirst" => "FALSE",
            "Record" => "TRUE",
            _ => value,
        };
        let _ = writeln!(text, "  {name} = {value}");
    }
    text.push_str("SPECIFICATION TraceSpec\nCHECK_DEADLOCK FALSE\n");
    text
}

/// The variables of a step in the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shows {
    /// All known variables, so that TLC checks a step which should change nothing.
    Known,
    /// Those that the step changed; the trace module requires the rest to be unchanged.
    Changes,
}

/// Module TraceData with these traces.
pub fn module<'a>(shows: Shows, traces: impl IntoIterator<Item = &'a [Step]>) -> String {
    let traces = traces.into_iter().map(|steps| trace(shows, steps));
    let traces: Vec<String> = traces.collect();
    format!(
        "---- MODULE TraceData ----\nEXTENDS Integers, TLC\n\nTraces == <<\n{}\n>>\n====\n",
        traces.join(",\n")
    )
}

fn trace(shows: Shows, steps: &[Step]) -> String {
    let mut known = BTreeMap::new();
    let mut lines = Vec::new();
    for step in steps {
        if shows == Shows::Changes {
            known.clear();
        }
        known.extend(step.observed.iter().map(|(name, value)| (name, value)));
        let mut last = format!("[action |-> \"{}\"", step.action);
        for (name, value) in &step.arguments {
            let _ = match value {
                Argument::Number(number) => write!(last, ", {name} |-> {number}"),
                Argument::Hctx(queue, index) => write!(last, ", {name} |-> <<{queue}, {index}>>"),
            };
        }
        let fields = known
            .iter()
            .map(|(name, value)| format!("{name} |-> {value}"));
        let fields: Vec<String> = fields.collect();
        let observed = match fields.is_empty() {
            true => "<<>>".to_owned(),
            false => format!("[{}]", fields.join(", ")),
        };
        lines.push(format!("    [last |-> {last}], observed |-> {observed}]"));
    }
    format!("  <<\n{}\n  >>", lines.join(",\n"))
}

/// Properties that states of trace `number` (from 1) violate, if the module prints them: the step
/// before that state, and the name.
pub fn broken(output: &str, number: usize) -> Vec<(usize, String)> {
    let mark = format!("<<\"broken\", {number}, ");
    let told = output.lines().filter_map(|line| {
        let rest = line.trim().strip_prefix(&mark)?.strip_suffix("\">>")?;
        let (step, name) = rest.split_once(", \"")?;
        Some((step.parse().ok()?, name.to_owned()))
    });
    told.collect()
}

/// How many steps of trace `number` (from 1) the module accepted.
pub fn accepted(output: &str, number: usize) -> usize {
    let mark = format!("<<\"accepted\", {number}, ");
    let steps = output.lines().filter_map(|line| {
        let rest = line.trim().strip_prefix(&mark)?;
        rest.strip_suffix(">>")?.parse().ok()
    });
    steps.max().unwrap_or(0)
}

/// Wrong traces made from a right one: for each step another value after it, another action, and
/// the step left out, as far as the trace has a replacement.
pub fn corruptions(steps: &[Step]) -> Vec<Corruption> {
    let mut wrong = Vec::new();
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        known.extend(step.observed.iter().map(|(n, v)| (n.as_str(), v.as_str())));
        let mut add = |what: String, steps: Vec<Step>| {
            wrong.push(Corruption {
                step: index + 1,
                what,
                steps,
            });
        };
        if let Some((name, value)) = other_value(steps, &known, index) {
            let mut changed = steps.to_vec();
            observe(&mut changed[index], &name, &value);
            add(format!("{name} = {value}"), changed);
        }
        if let Some(action) = other_action(steps, step) {
            let mut changed = steps.to_vec();
            let what = format!("{action} instead of {}", step.action);
            changed[index].action = action;
            add(what, changed);
        }
        if let Some(next) = steps.get(index + 1) {
            let seen_next = |name: &String| next.observed.iter().any(|(other, _)| other == name);
            // A variable that the next step changes too may be right without this step.
            if step.observed.iter().any(|(name, _)| !seen_next(name)) {
                add(format!("{} left out", step.action), left_out(steps, index));
            }
        }
    }
    wrong
}

/// The trace without one step; the next step lists what it changed.
fn left_out(steps: &[Step], index: usize) -> Vec<Step> {
    let mut changed = steps.to_vec();
    let gone = changed.remove(index);
    let next = &mut changed[index].observed;
    for (name, value) in gone.observed {
        if !next.iter().any(|(known, _)| *known == name) {
            next.push((name, value));
        }
    }
    changed
}

/// A value that one of the known variables has elsewhere in the trace, but not here.
fn other_value(
    steps: &[Step],
    known: &BTreeMap<&str, &str>,
    index: usize,
) -> Option<(String, String)> {
    // Begins with another variable at each step, so that all are used.
    let start = index.checked_rem(known.len()).unwrap_or(0);
    let in_turn = known.iter().skip(start).chain(known.iter().take(start));
    for (name, value) in in_turn {
        let seen = steps.iter().flat_map(|step| &step.observed);
        let mut others = seen.filter(|(other, now)| other == name && now != value);
        if let Some((name, other)) = others.next() {
            return Some((name.clone(), other.clone()));
        }
    }
    None
}

/// Another action of the trace that takes the same arguments.
fn other_action(steps: &[Step], step: &Step) -> Option<String> {
    let names = |step: &Step| -> Vec<String> {
        let names = step.arguments.iter().map(|(name, _)| name.clone());
        names.collect()
    };
    let other = steps
        .iter()
        .find(|other| other.action != step.action && names(other) == names(step))?;
    Some(other.action.clone())
}

fn observe(step: &mut Step, name: &str, value: &str) {
    match step.observed.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => value.clone_into(old),
        None => step.observed.push((name.to_owned(), value.to_owned())),
    }
}
