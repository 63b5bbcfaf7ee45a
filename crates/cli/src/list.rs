//! `blksim list` and `blksim show NAME`: the built-in scenarios, machines and tables.

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
    for name in scenario::drive_names() {
        let _ = writeln!(text, "  {name}");
    }
    output::print(&text)?;
    Ok(OK)
}

/// A TOML file's description; of a fio job, which has none, the first line of its comment.
fn description(built_in: &BuiltIn) -> Result<String, Error> {
    let scenario = built_in.scenario()?;
    if !scenario.description.is_empty() {
        return Ok(scenario.description);
    }
    let comment = built_in
        .text
        .lines()
        .next()
        .unwrap_or("")
        .trim_start_matches([';', '#', ' ']);
    Ok(comment
        .split_once(':')
        .map_or(comment, |(head, _)| head)
        .to_owned())
}

pub(crate) fn show(name: &str) -> Result<u8, Error> {
    output::print(builtin::find(name)?.text)?;
    Ok(OK)
}
