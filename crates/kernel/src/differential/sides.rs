//! Two sides that carry out the commands of a script: blkmq's world and C, or C of two trees.

use crate::library::{Library, Part};
use crate::policy::fault;
use crate::script::World;
use std::ffi::CString;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

enum Side {
    Model(Box<dyn World>),
    InC(Part),
}

/// What C says of a first line that makes no sense.
const REFUSED: [&str; 2] = ["the target refuses its table", "expected: flush "];

pub(super) struct Sides {
    both: [Side; 2],
    /// Commands that show what is compared besides what a command prints.
    shown: &'static [&'static str],
    /// A side has stopped for good.
    failed: bool,
}

impl Sides {
    /// Both as the first line of a script says; none if the line is wrong. The last library is the
    /// second side; the first one is another, or the model.
    pub(super) fn begin(
        libraries: &[Arc<Library>],
        line: &str,
        shown: &'static [&'static str],
        model: impl Fn() -> Option<Box<dyn World>>,
    ) -> Option<Sides> {
        let in_c = |library: &Arc<Library>| {
            let script = format!("`{line}`");
            let line = CString::new(line).expect("without a zero");
            match Part::of_script(library, &line) {
                Ok(part) => Some(Side::InC(part)),
                // A wrong line, as shrinking tries them.
                Err(text) if REFUSED.iter().any(|refused| text.contains(refused)) => None,
                Err(text) => resume_unwind(Box::new(fault(library, &script, &text))),
            }
        };
        let other = in_c(libraries.last()?)?;
        let one = match libraries {
            [_] => Side::Model(model()?),
            _ => in_c(&libraries[0])?,
        };
        Some(Sides {
            both: [one, other],
            shown,
            failed: false,
        })
    }

    /// What both print for a command and show after it, each line of that after a `|`. None: the
    /// command makes no sense here, as C knows, which is asked first.
    pub(super) fn command(&mut self, line: &str) -> Option<[String; 2]> {
        if self.failed {
            return None;
        }
        let [one, other] = &mut self.both;
        let theirs = other.all(line, self.shown).transpose()?;
        let ours = one.all(line, self.shown);
        self.failed = theirs.is_err() || ours.is_err();
        let ours = ours.unwrap_or_else(Some);
        let ours = ours.unwrap_or_else(|| "refused".to_owned());
        Some([ours, theirs.unwrap_or_else(|error| error)])
    }
}

impl Side {
    /// What a command prints. None: it makes no sense here. An error: the side stops.
    fn run(&mut self, line: &str) -> Result<Option<String>, String> {
        match self {
            Side::InC(part) => {
                let text = part.command(&CString::new(line).expect("without a zero"))?;
                Ok((!text.starts_with('?')).then_some(text))
            }
            Side::Model(world) => {
                let ran = catch_unwind(AssertUnwindSafe(|| world.command(line)));
                let lines = ran.map_err(|payload| {
                    let text = payload.downcast::<String>().unwrap_or_default();
                    format!("the model stops: {text}")
                })??;
                Ok(Some(lines.iter().map(|line| line.clone() + "\n").collect()))
            }
        }
    }

    fn all(&mut self, line: &str, shown: &[&str]) -> Result<Option<String>, String> {
        let Some(mut text) = self.run(line)? else {
            return Ok(None);
        };
        for what in shown {
            let shown = self.run(what)?.unwrap_or_default();
            for line in shown.lines() {
                let _ = writeln!(text, "| {line}");
            }
        }
        Ok(Some(text))
    }
}
