//! `blksim list` and `blksim show NAME`: the built-in scenarios, machines and drives.

use std::fmt::Write as _;

use scenario::profile;

use crate::builtin::{self, BuiltIn};
use crate::error::Error;
use crate::{OK, output};

pub(crate) fn list() -> Result<u8, Error> {
    let mut text = "Scenarios (blksim run NAME, blksim show NAME)\n".to_owned();
    let width = builtin::ALL
        .iter()
        .map(|scenario| scenario.name().len())
        .max()
        .unwrap_or(0);
    for built_in in builtin::ALL {
        let description = description(built_in)?;
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {:width$}  {description}", built_in.name());
    }
    text.push_str("\nMachines (--machine NAME)\n");
    for name in profile::names() {
        let profile = profile::built_in(name).map_err(|what| Error::usage(name, what))?;
        let _ = writeln!(text, "  {name:width$}  {}", profile.description);
    }
    text.push_str("\nDrives (--drive NAME, or device.drive in a scenario)\n");
    for (name, drive) in scenario::drives() {
        let _ = writeln!(text, "  {name:width$}  {}", comment(drive));
    }
    output::print(&text)?;
    Ok(OK)
}

/// A TOML file's description; a fio job has only its comment.
fn description(built_in: &BuiltIn) -> Result<String, Error> {
    let scenario = built_in.scenario()?;
    Ok(match scenario.description.is_empty() {
        true => comment(built_in.text).to_owned(),
        false => scenario.description,
    })
}

/// The first line of a file's comment, up to a colon or the end of a sentence.
fn comment(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_start_matches([';', '#', ' ']);
    let ends = [": ", ". "].into_iter().filter_map(|end| line.find(end));
    &line[..ends.min().unwrap_or(line.len())]
}

/// Prints the text of what is built in under this name.
pub(crate) fn show(name: &str) -> Result<u8, Error> {
    let mut others = profile::texts().chain(scenario::drives());
    match others.find(|(known, _)| *known == name) {
        Some((_, text)) => output::print(text)?,
        None => output::print(builtin::find(name)?.text)?,
    }
    Ok(OK)
}
