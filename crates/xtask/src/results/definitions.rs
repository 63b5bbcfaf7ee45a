//! The files docs/results/*.toml: tables, and the names and scenarios that they share.
//!
//! Read next: docs/results/common.toml for the keys, `table.rs` for a table's text, `template.rs`
//! for the language of its cells.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::paths;
use crate::step::{Failure, Result};

const FOLDER: &str = "docs/results";
const SCENARIOS: &str = "crates/cli/scenarios";

/// A file, or all of them together.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Definitions {
    #[serde(rename = "let")]
    pub(super) expressions: BTreeMap<String, String>,
    #[serde(rename = "text")]
    pub(super) texts: BTreeMap<String, Vec<String>>,
    data: BTreeMap<String, String>,
    #[serde(rename = "scenario")]
    scenarios: BTreeMap<String, Variant>,
    #[serde(rename = "table")]
    written: Vec<toml::Table>,
    #[serde(skip)]
    pub(super) tables: Vec<Table>,
}

/// A scenario, or a part of another file, with other words.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
struct Variant {
    of: String,
    /// Only the text from the first to the second of these.
    part: Option<(String, String)>,
    #[serde(default)]
    replace: BTreeMap<String, String>,
}

/// A generated block.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Table {
    #[serde(skip)]
    pub(super) file: String,
    pub(super) name: String,
    /// Its runs take more than seconds: `--quick` leaves it out.
    pub(super) slow: bool,
    /// Made by Rust (`blocks.rs`).
    pub(super) calculated: bool,
    pub(super) print: Option<Print>,
    pub(super) run: Option<String>,
    pub(super) runs: BTreeMap<String, String>,
    pub(super) captures: Option<Captures>,
    pub(super) row: Vec<String>,
    pub(super) rows: Vec<Vec<toml::Value>>,
    pub(super) each: BTreeMap<String, Vec<toml::Value>>,
    pub(super) across: BTreeMap<String, Vec<toml::Value>>,
    /// Header, and the templates of which the first that applies is the cell.
    pub(super) columns: Vec<Vec<String>>,
    pub(super) list: Option<String>,
    pub(super) text: Option<String>,
    pub(super) pictures: Vec<Picture>,
    /// By a part of the message, the cell of a run that fails with it.
    pub(super) refused: BTreeMap<String, String>,
    /// By run, a part of the message of those whose rows are left out.
    pub(super) omit: BTreeMap<String, String>,
}

/// A block that is the output of a command.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Print {
    pub(super) line: String,
    /// Standard error instead of standard output.
    #[serde(default)]
    pub(super) stderr: bool,
    /// Only so many paragraphs.
    pub(super) paragraphs: Option<usize>,
    /// Only lines that begin so, and the empty ones between them.
    #[serde(default)]
    pub(super) lines: Vec<String>,
}

/// Captures as rows, with the names `capture`, `title` and `device`.
#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Captures {
    /// How their names begin, or must not begin. All if both are empty.
    pub(super) begin: Vec<String>,
    pub(super) except: Vec<String>,
    /// Only those with a stacked device.
    pub(super) stacked: bool,
    /// A row of each device of those.
    pub(super) devices: bool,
}

/// A figure of `blksim plot`, and its file beside the page.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Picture {
    pub(super) file: String,
    pub(super) figure: String,
    pub(super) plot: String,
}

impl Definitions {
    /// The committed ones.
    pub(super) fn read() -> Result<Definitions> {
        let mut definitions = Definitions::default();
        for path in paths::files_under(&paths::root().join(FOLDER)) {
            if path.extension().is_some_and(|kind| kind == "toml") {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                definitions.add(
                    &format!("{FOLDER}/{name}"),
                    &text(&format!("{FOLDER}/{name}"))?,
                )?;
            }
        }
        Ok(definitions)
    }

    /// Adds a file's. A name that another file has is an error.
    pub(super) fn add(&mut self, file: &str, text: &str) -> Result<()> {
        let wrong = |what: &str| Failure(format!("{file}: {what}"));
        let read: Definitions = toml::from_str(text).map_err(|e| wrong(&e.to_string()))?;
        once(&mut self.expressions, read.expressions).map_err(|e| wrong(&e))?;
        once(&mut self.texts, read.texts).map_err(|e| wrong(&e))?;
        once(&mut self.data, read.data).map_err(|e| wrong(&e))?;
        once(&mut self.scenarios, read.scenarios).map_err(|e| wrong(&e))?;
        for written in &read.written {
            let name = written.get("name").and_then(toml::Value::as_str);
            let name = name.ok_or_else(|| wrong("a table without `name`"))?;
            let wrong = |what: &str| wrong(&format!("table `{name}`: {what}"));
            // A table has the keys of the one that it is `like`, where it has none of its own.
            let mut table = written.clone();
            if let Some(base) = table.remove("like") {
                let base = read
                    .written
                    .iter()
                    .find(|other| other.get("name") == Some(&base));
                for (key, value) in base.ok_or_else(|| wrong("like: there is no such table"))? {
                    table.entry(key).or_insert_with(|| value.clone());
                }
            }
            let mut table = Table::deserialize(table).map_err(|e| wrong(&e.to_string()))?;
            // The only run of a table has no name.
            let run = table.run.iter().map(|line| (String::new(), line.clone()));
            table.runs.extend(run);
            if self.tables.iter().any(|other| other.name == name) {
                return Err(wrong("there are two of this name"));
            }
            let file = file.to_owned();
            self.tables.push(Table { file, ..table });
        }
        Ok(())
    }

    /// The content of a data file.
    pub(super) fn data(&self, name: &str) -> Option<Result<serde_json::Value>> {
        let path = self.data.get(name)?;
        let wrong = |e: toml::de::Error| Failure(format!("{path}: {e}"));
        Some(text(path).and_then(|text| toml::from_str(&text).map_err(wrong)))
    }

    /// A command line with the files of its scenarios.
    pub(super) fn with_files(&self, line: &str) -> Result<String> {
        let words = line
            .split_whitespace()
            .map(|word| match self.scenarios.contains_key(word) {
                true => Ok(self.scenario(word)?.display().to_string()),
                false => Ok(word.to_owned()),
            });
        Ok(words.collect::<Result<Vec<_>>>()?.join(" "))
    }

    /// Writes a scenario's file.
    pub(super) fn scenario(&self, name: &str) -> Result<PathBuf> {
        let text = self.scenario_text(name)?;
        let folder = paths::target_dir().join("results");
        let name = if name.contains('.') {
            name.to_owned()
        } else {
            format!("{name}.toml")
        };
        let file = folder.join(name);
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text));
        written.map_err(|e| Failure(format!("{}: cannot write: {e}", file.display())))?;
        Ok(file)
    }

    /// Words that the text does not have are an error: else a row would be of another scenario.
    fn scenario_text(&self, name: &str) -> Result<String> {
        let Some(variant) = self.scenarios.get(name) else {
            let path = if name.contains('/') {
                name.to_owned()
            } else {
                format!("{SCENARIOS}/{name}.toml")
            };
            return text(&path);
        };
        let mut text = self.scenario_text(&variant.of)?;
        let of = &variant.of;
        let wrong = |word: &str| Failure(format!("scenario `{name}`: {of} has no `{word}`"));
        if let Some((from, to)) = &variant.part {
            let at = text.find(from).ok_or_else(|| wrong(from))?;
            let (part, _) = text[at..].split_once(to).ok_or_else(|| wrong(to))?;
            text = part.to_owned();
        }
        for (from, to) in &variant.replace {
            match text.contains(from) {
                true => text = text.replace(from, to),
                false => return Err(wrong(from)),
            }
        }
        Ok(text)
    }
}

/// Adds the entries to all; one that is there is an error.
fn once<T>(
    all: &mut BTreeMap<String, T>,
    more: BTreeMap<String, T>,
) -> std::result::Result<(), String> {
    for (name, value) in more {
        if all.insert(name.clone(), value).is_some() {
            return Err(format!("`{name}` is defined twice"));
        }
    }
    Ok(())
}

fn text(path: &str) -> Result<String> {
    let text = fs::read_to_string(paths::root().join(path));
    text.map_err(|e| Failure(format!("{path}: cannot read: {e}")))
}
