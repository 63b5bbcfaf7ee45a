//! A schedule: a sequence of steps, as text for people and files.
//!
//! Written by a checker's counterexample or an exploration, read by programs that replay it. Not
//! here: the effect of an action. Steps are named as the specifications name their actions;
//! docs/internals/verification.md has the format and an example.

pub mod labels;
pub mod view;

use core::fmt;

/// First line of every file.
const HEADER: &str = "# blksim schedule 1";

/// Last line: a file without it is truncated.
const END: &str = "end";

/// Steps in order, and their specification.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// Folder below `specs/`.
    pub spec: String,
    /// Variant of the specification.
    pub variant: String,
    /// The property that it breaks.
    pub shows: String,
    /// Constants of the variant, by name, in the specification's syntax.
    pub settings: Vec<(String, String)>,
    pub steps: Vec<Step>,
    /// After the last step the one of this number follows, for ever. Numbers begin with 1.
    pub repeats_from: Option<usize>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    pub action: String,
    /// Objects of the step, by name.
    pub arguments: Vec<(String, Argument)>,
    /// The observed values after it, by name, in the specification's syntax.
    pub observed: Vec<(String, String)>,
}

/// An object that a step is applied to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Argument {
    /// A request, CPU, context: counted from 1.
    Number(u32),
    /// An hctx: queue and index in it, both counted from 1.
    Hctx(u32, u32),
}

/// Why a file is no schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleError {
    /// Line of the file, from 1.
    pub line: usize,
    /// The error, and what is expected.
    pub what: String,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Number(number) => write!(f, "{number}"),
            Argument::Hctx(queue, index) => write!(f, "{queue}.{index}"),
        }
    }
}

impl Argument {
    fn parse(text: &str) -> Option<Argument> {
        let from_one = |text: &str| text.parse().ok().filter(|&number| number > 0);
        match text.split_once('.') {
            Some((queue, index)) => Some(Argument::Hctx(from_one(queue)?, from_one(index)?)),
            None => Some(Argument::Number(from_one(text)?)),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action)?;
        for (name, value) in &self.arguments {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        writeln!(f, "spec {}", self.spec)?;
        writeln!(f, "variant {}", self.variant)?;
        writeln!(f, "shows {}", self.shows)?;
        for (name, value) in &self.settings {
            writeln!(f, "set {name} = {value}")?;
        }
        if let Some(step) = self.repeats_from {
            writeln!(f, "repeats from {step}")?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            let text = step.to_string();
            let width = if step.observed.is_empty() { 0 } else { 36 };
            write!(f, "{:>3} {text:<width$}", index + 1)?;
            for (nth, (name, value)) in step.observed.iter().enumerate() {
                let mark = if nth == 0 { " |" } else { ";" };
                write!(f, "{mark} {name} = {value}")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "{END}")
    }
}

impl Schedule {
    /// Parses a file's text. Lines after the first that begin with `#` are remarks.
    pub fn parse(text: &str) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule::default();
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line.trim_end()) != Some(HEADER) {
            let what = format!("no schedule; expected `{HEADER}`");
            return Err(ScheduleError { line: 1, what });
        }
        let mut ended = false;
        for (index, line) in lines {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let taken = match ended {
                true => Err(format!("`{line}` is after `{END}`")),
                false if line == END => Ok(()),
                false => schedule.take(line),
            };
            ended |= line == END;
            taken.map_err(|what| ScheduleError {
                line: index + 1,
                what,
            })?;
        }
        if !ended {
            let line = text.lines().count();
            let what = format!("the file is cut off: its last line should be `{END}`");
            return Err(ScheduleError { line, what });
        }
        for (word, value) in [
            ("spec", &schedule.spec),
            ("variant", &schedule.variant),
            ("shows", &schedule.shows),
        ] {
            if value.is_empty() {
                let line = text.lines().count();
                let what = format!("the file ends without `{word} NAME`");
                return Err(ScheduleError { line, what });
            }
        }
        let known = |step: usize| (1..=schedule.steps.len()).contains(&step);
        if schedule.repeats_from.is_some_and(|step| !known(step)) {
            let mut lines = text.lines();
            let line = 1 + lines
                .position(|line| line.starts_with("repeats "))
                .unwrap_or(0);
            let steps = schedule.steps.len();
            let what =
                format!("it repeats from a step that it does not have; expected 1 to {steps}");
            return Err(ScheduleError { line, what });
        }
        Ok(schedule)
    }

    fn take(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "spec" => once(word, rest, &mut self.spec)?,
            "variant" => once(word, rest, &mut self.variant)?,
            "shows" => once(word, rest, &mut self.shows)?,
            "set" => {
                let setting = named(rest)?;
                if self.settings.iter().any(|(name, _)| *name == setting.0) {
                    return Err(format!("`{}` is set twice", setting.0));
                }
                self.settings.push(setting);
            }
            "repeats" => {
                let step = rest
                    .strip_prefix("from ")
                    .and_then(|step| step.parse().ok());
                self.repeats_from = Some(step.ok_or("expected `repeats from STEP`")?);
            }
            number => {
                let expected = self.steps.len() + 1;
                if number.parse() != Ok(expected) {
                    return Err(format!(
                        "`{number}` is neither spec, variant, shows, set, repeats or end nor the \
                         next step's number, {expected}"
                    ));
                }
                self.steps.push(step(rest)?);
            }
        }
        Ok(())
    }
}

/// A value that is given once.
fn once(word: &str, value: &str, to: &mut String) -> Result<(), String> {
    if !to.is_empty() || value.is_empty() {
        return Err(format!("expected one `{word} NAME` in the file"));
    }
    value.clone_into(to);
    Ok(())
}

/// `ACTION name=value ... | name = value; ...`
fn step(text: &str) -> Result<Step, String> {
    let (done, observed) = text.split_once('|').unwrap_or((text, ""));
    let mut words = done.split_whitespace();
    let action = words.next().ok_or("a step without action")?.to_owned();
    let mut arguments = Vec::new();
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| format!("`{word}`: expected NAME=VALUE"))?;
        let value = Argument::parse(value)
            .ok_or_else(|| format!("`{word}`: expected a number, or QUEUE.INDEX of an hctx"))?;
        arguments.push((name.to_owned(), value));
    }
    let observed = observed.split(';').map(str::trim);
    let observed = observed.filter(|part| !part.is_empty()).map(named);
    Ok(Step {
        action,
        arguments,
        observed: observed.collect::<Result<_, _>>()?,
    })
}

fn named(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}`: expected NAME = VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests;
