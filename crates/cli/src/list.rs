//! `blksim list` and `blksim show NAME`: the built-in scenarios, machines and drives.

use scenario::profile;
use serde_json::{Map, Value, json};

use crate::builtin::{self, BuiltIn};
use crate::error::Error;
use crate::{OK, output};

/// What is built in: the member of JSON, the title of the text, names with descriptions.
struct Part {
    member: &'static str,
    title: &'static str,
    rows: Vec<(&'static str, String)>,
}

fn parts() -> Result<[Part; 3], Error> {
    let mut scenarios = Vec::new();
    for built_in in builtin::ALL {
        scenarios.push((built_in.name(), description(built_in)?));
    }
    let mut machines = Vec::new();
    for name in profile::names() {
        let profile = profile::built_in(name).map_err(|what| Error::usage(name, what))?;
        machines.push((name, profile.description));
    }
    let drives = scenario::drives();
    Ok([
        Part {
            member: "scenarios",
            title: "Scenarios (blksim run NAME, blksim show NAME)",
            rows: scenarios,
        },
        Part {
            member: "machines",
            title: "Machines (--machine NAME)",
            rows: machines,
        },
        Part {
            member: "drives",
            title: "Drives (--drive NAME, or device.drive in a scenario)",
            rows: drives
                .map(|(name, text)| (name, comment(text).to_owned()))
                .collect(),
        },
    ])
}

pub(crate) fn list(json: bool) -> Result<u8, Error> {
    let parts = parts()?;
    if json {
        let member = |part: &Part| {
            let rows = part
                .rows
                .iter()
                .map(|(name, description)| json!({ "name": name, "description": description }));
            (part.member.to_owned(), rows.collect::<Value>())
        };
        let all: Map<String, Value> = parts.iter().map(member).collect();
        output::print(&format!("{:#}\n", Value::Object(all)))?;
        return Ok(OK);
    }
    let names = parts[0].rows.iter().map(|(name, _)| name.len());
    let width = names.max().unwrap_or(0);
    let text = parts.iter().map(|part| {
        let rows = part.rows.iter();
        let rows = rows.map(|(name, description)| format!("  {name:width$}  {description}\n"));
        format!("{}\n{}", part.title, rows.collect::<String>())
    });
    output::print(&text.collect::<Vec<_>>().join("\n"))?;
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
    if let Some((_, text)) = others.find(|(known, _)| *known == name) {
        output::print(text)?;
        return Ok(OK);
    }
    match builtin::find(name) {
        Ok(found) => output::print(found.text)?,
        Err(error) => {
            let others = profile::texts().chain(scenario::drives());
            let near = trace::fio::nearest(name, others.map(|(known, _)| known));
            return Err(near.map_or(error, |near| {
                Error::usage(name, format!("nothing of this name; did you mean {near}?"))
            }));
        }
    }
    Ok(OK)
}
