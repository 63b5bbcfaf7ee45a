//! The expectations of a folder below `specs/`: `expect.toml` and `mutants.toml`.

use serde::Deserialize;

use super::{Outcome, Verdict};

/// Replaces the name of a violated temporal property, which TLC does not print.
pub(super) const LIVENESS: &str = "liveness";

/// Why one of the files cannot be used: the parser's message, with line and column.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SpecError(pub String);

/// `expect.toml`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Variables in schedules and traces.
    pub observed: Vec<String>,
    /// Configurations and their expected results.
    pub variant: Vec<Variant>,
    /// Recorded behaviours that the trace module accepts.
    #[serde(default)]
    pub trace: Vec<Recorded>,
}

/// One configuration, `variants/NAME.cfg`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// File name without `.cfg`.
    pub name: String,
    /// The purpose of the configuration, in a few words.
    pub what: String,
    /// TLC's verdict.
    pub verdict: Expected,
    /// The violated property; `liveness` for a temporal one.
    #[serde(default)]
    pub property: Option<String>,
    /// Generated states with one worker.
    pub generated: u64,
    /// Distinct states with one worker.
    pub distinct: u64,
    /// Depth of the search, where TLC prints it.
    #[serde(default)]
    pub depth: Option<u64>,
    /// States of the counterexample. None for a cycle: TLC finds another one each time.
    #[serde(default)]
    pub length: Option<usize>,
    /// Seconds on the machine that README.md names, for orientation.
    pub seconds: f64,
    /// Part of `check --quick`.
    pub quick: bool,
    /// TLC continues after a violation, so that the counts are those of the whole space.
    #[serde(default)]
    pub whole: bool,
    /// Actions that some behaviour takes; otherwise a property would hold of what never happens.
    #[serde(default)]
    pub taken: Vec<String>,
}

/// An expected verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// All properties hold.
    Holds,
    /// `property` does not hold.
    Violated,
}

/// A recorded behaviour, `traces/FILE`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its schedule file.
    pub file: String,
    /// The content of the behaviour, in a few words.
    pub what: String,
}

/// `mutants.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutants {
    /// Edits, one per mutant.
    pub mutant: Vec<Edit>,
}

/// A wrong specification: one edit, and the variant that must find it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    pub name: String,
    /// The edited file in the folder.
    pub file: String,
    /// Text that the file contains once.
    pub search: String,
    /// The replacement.
    pub replace: String,
    /// The variant to run; for an edit of the trace module the recorded trace.
    pub variant: String,
    /// The property that must be violated; `liveness` for a temporal one, `corruptions` for a
    /// trace.
    pub expect: String,
}

impl Expectations {
    /// Reads `expect.toml`.
    pub fn parse(text: &str) -> Result<Expectations, SpecError> {
        let read: Expectations = parse(text)?;
        for (index, variant) in read.variant.iter().enumerate() {
            let violated = variant.verdict == Expected::Violated;
            let cycle = variant.property.as_deref() == Some(LIVENESS);
            let measured = variant.length.is_some();
            if violated != variant.property.is_some() || (violated && !cycle) != measured {
                let what = format!(
                    "variant {}: `property` belongs to verdict `violated`, and `length` too \
                     unless the property is `{LIVENESS}`",
                    variant.name
                );
                return Err(SpecError(what));
            }
            let before = &read.variant[..index];
            if before.iter().any(|other| other.name == variant.name) {
                let what = format!("variant {} is there twice", variant.name);
                return Err(SpecError(what));
            }
        }
        Ok(read)
    }
}

impl Mutants {
    /// Reads `mutants.toml`.
    pub fn parse(text: &str) -> Result<Mutants, SpecError> {
        parse(text)
    }
}

impl Edit {
    /// Applies the edit to a file.
    pub fn apply(&self, text: &str) -> Result<String, SpecError> {
        match text.matches(&self.search).count() {
            1 => Ok(text.replacen(&self.search, &self.replace, 1)),
            count => Err(SpecError(format!(
                "mutant {}: `search` occurs {count} times in {}; expected once",
                self.name, self.file
            ))),
        }
    }
}

impl Variant {
    /// Differences between TLC's result and the expected one; empty if there are none.
    pub fn differences(&self, outcome: &Outcome) -> Vec<String> {
        let expected = match (&self.verdict, &self.property) {
            (Expected::Violated, Some(property)) => Verdict::Violated(property.clone()),
            _ => Verdict::Holds,
        };
        if outcome.verdict != expected {
            return vec![format!("{}; expected: {expected}", outcome.verdict)];
        }
        let states = outcome.behaviour.len() as u64;
        let cycle = self.property.as_deref() == Some(LIVENESS);
        let length = (states > 0 && !cycle).then_some(states);
        let rows = [
            ("generated", Some(self.generated), Some(outcome.generated)),
            ("distinct", Some(self.distinct), Some(outcome.distinct)),
            ("depth", self.depth, outcome.depth),
            ("length", self.length.map(|n| n as u64), length),
        ];
        let differs = rows
            .into_iter()
            .filter(|(_, expected, got)| expected != got);
        let shown = |count: Option<u64>| count.map_or("none".to_owned(), |n| n.to_string());
        let counts = differs.map(|(what, expected, got)| {
            format!("{what} {}; expected {}", shown(got), shown(expected))
        });
        let never = self.taken.iter();
        let never = never.filter(|name| !outcome.taken.contains(name));
        let never = never.map(|name| format!("{name} is never taken"));
        counts.chain(never).collect()
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, SpecError> {
    toml::from_str(text).map_err(|error| SpecError(error.to_string().trim_end().to_owned()))
}
