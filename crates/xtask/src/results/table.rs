//! A table of the files docs/results/*.toml: its rows, its command lines, and its text.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::blocks::Made;
use super::captures::captures;
use super::definitions::{Definitions, Print, Table};
use super::markdown::{fenced, table};
use super::runs::{Blksim, Report};
use super::template::{self, Problem, Scope, Value, first_that_applies};
use crate::step::{Failure, Result};

#[cfg(test)]
mod tests;

/// Names of a row or of a column, and their texts.
type Names = BTreeMap<String, String>;
/// Row, column and run.
type Place<'a> = (usize, usize, &'a str);

/// Names within names within names: more is a name that refers to itself.
const DEPTH_MAX: u8 = 20;

/// A table with its rows, and with the reports of its runs when it has them.
#[derive(Debug)]
pub(super) struct Grid<'a> {
    definitions: &'a Definitions,
    table: &'a Table,
    rows: Vec<Names>,
    columns: Vec<Names>,
    /// A figure of a report that is not there yet is 1.
    reports: BTreeMap<Place<'a>, Report>,
    /// Rows that are left out.
    hidden: Vec<usize>,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug)]
struct At<'a> {
    grid: &'a Grid<'a>,
    place: Place<'a>,
    depth: u8,
}

impl<'a> Grid<'a> {
    /// Wrong words of the table are reported here, before the runs, which take minutes.
    pub(super) fn new(definitions: &'a Definitions, table: &'a Table) -> Result<Grid<'a>> {
        let mut grid = Grid {
            definitions,
            table,
            rows: Vec::new(),
            columns: Vec::new(),
            reports: BTreeMap::new(),
            hidden: Vec::new(),
        };
        grid.columns = grid.axis("across", &table.across)?;
        let each = grid.axis("each", &table.each)?;
        let repeated = |row: Names| {
            each.iter()
                .map(move |each| row.clone().into_iter().chain(each.clone()).collect())
        };
        grid.rows = grid
            .written_rows()?
            .into_iter()
            .flat_map(repeated)
            .collect();
        grid.body()?;
        Ok(grid)
    }

    /// Rows without `each`.
    fn written_rows(&self) -> Result<Vec<Names>> {
        let table = self.table;
        let named = |(name, value): (&str, String)| (name.to_owned(), value);
        if let Some(wanted) = &table.captures {
            let row = |(capture, device): (String, Option<String>)| {
                let title = device
                    .iter()
                    .fold(capture.clone(), |title, device| title + ", " + device);
                let device =
                    device.map_or_else(String::new, |device| format!("--trace-device {device}"));
                [("capture", capture), ("title", title), ("device", device)]
                    .map(named)
                    .into()
            };
            return Ok(captures(wanted)?.into_iter().map(row).collect());
        }
        if table.rows.is_empty() {
            return Ok(vec![Names::new()]);
        }
        if let Some(at) = table
            .rows
            .iter()
            .position(|row| row.len() != table.row.len())
        {
            let what = format!("number {} has not {} values", at + 1, table.row.len());
            return Err(self.wrong("rows", &what));
        }
        let row = |row: &Vec<toml::Value>| {
            table
                .row
                .iter()
                .cloned()
                .zip(row.iter().map(plain))
                .collect()
        };
        Ok(table.rows.iter().map(row).collect())
    }

    fn axis(&self, key: &str, all: &BTreeMap<String, Vec<toml::Value>>) -> Result<Vec<Names>> {
        let count = all.values().next().map_or(1, Vec::len);
        if let Some((name, _)) = all.iter().find(|(_, values)| values.len() != count) {
            return Err(self.wrong(
                &format!("{key}.{name}"),
                &format!("expected {count} values"),
            ));
        }
        let names = |at: usize| {
            all.iter()
                .map(|(name, values)| (name.clone(), plain(&values[at])))
                .collect()
        };
        Ok((0..count).map(names).collect())
    }

    /// Its command lines, those with many runs of their own first.
    pub(super) fn lines(&self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        for picture in &self.table.pictures {
            lines.push(self.line("pictures", &picture.plot, self.at(0, 0))?);
        }
        if let Some(print) = &self.table.print {
            lines.push(self.line("print", &print.line, self.at(0, 0))?);
        }
        lines.extend(self.cells()?.into_iter().map(|(_, line)| line));
        Ok(lines)
    }

    /// Text and pictures, from the output of the runs.
    pub(super) fn made(mut self, blksim: &Blksim) -> Result<Made> {
        for (place, line) in self.cells()? {
            let report = blksim.report(&line)?;
            if let Report::Refused(why) = &report {
                let (row, _, run) = place;
                let omit = self.table.omit.get(run);
                if omit.is_some_and(|part| why.contains(part)) {
                    self.hidden.push(row);
                } else if self.table.list.is_none() && self.cell_of_refused(why).is_none() {
                    return Err(self.wrong(&format!("row {}, run {run}", row + 1), why));
                }
            }
            self.reports.insert(place, report);
        }
        let mut body = String::new();
        if let Some(print) = &self.table.print {
            let line = self.line("print", &print.line, self.at(0, 0))?;
            body = fenced(&self.excerpt(
                print,
                &match print.stderr {
                    true => blksim.done(&line)?.printed.stderr.clone(),
                    false => blksim.text(&line)?,
                },
            )?);
        }
        body += &self.body()?;
        let mut files = Vec::new();
        for picture in &self.table.pictures {
            let line = self.line("pictures", &picture.plot, self.at(0, 0))?;
            files.push((
                picture.file.clone(),
                blksim.drawn(&line, &format!("{}.svg", picture.figure))?,
            ));
        }
        Ok(Made { body, files })
    }

    fn at(&self, row: usize, column: usize) -> At<'_> {
        // With several runs, a pointer has the name of its run.
        let only = self.table.runs.contains_key("");
        let place = (row, column, if only { "" } else { "?" });
        At {
            grid: self,
            place,
            depth: 0,
        }
    }

    /// Each place that has a run, with its command line.
    fn cells(&self) -> Result<Vec<(Place<'a>, String)>> {
        let mut cells = Vec::new();
        for row in 0..self.rows.len() {
            for column in 0..self.columns.len() {
                for (run, line) in &self.table.runs {
                    let line = self.line("run", line, self.at(row, column))?;
                    let json = if line.starts_with("plot ") {
                        ""
                    } else {
                        " --json"
                    };
                    cells.push(((row, column, run.as_str()), line + json));
                }
            }
        }
        Ok(cells)
    }

    /// A command line of `key`, with the files of its scenarios.
    fn line(&self, key: &str, line: &str, at: At<'_>) -> Result<String> {
        let line = template::text(line, at).map_err(|e| self.wrong(key, &e))?;
        self.definitions.with_files(&line)
    }

    /// The longest text decides: one may be a part of another.
    fn cell_of_refused(&self, why: &str) -> Option<&String> {
        let refused = self
            .table
            .refused
            .iter()
            .filter(|(part, _)| why.contains(*part));
        refused
            .max_by_key(|(part, _)| part.len())
            .map(|(_, cell)| cell)
    }

    /// List, table and text.
    pub(super) fn body(&self) -> Result<String> {
        let mut body = String::new();
        for row in self.shown().filter(|_| self.table.list.is_some()) {
            let item = self.table.list.as_deref().unwrap_or_default();
            match template::text(item, self.at(row, 0)) {
                Ok(line) => body += &(line + "\n"),
                Err(Problem::Missing(_)) => {}
                Err(e) => return Err(self.wrong("list", &e)),
            }
        }
        if !self.table.columns.is_empty() {
            body += &self.columns()?;
        }
        let text = self.table.text.as_deref().unwrap_or_default();
        let text = template::text(text, self.at(0, 0));
        Ok(body + &text.map_err(|e| self.wrong("text", &e))?)
    }

    fn shown(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.rows.len()).filter(|row| !self.hidden.contains(row))
    }

    /// The table. A column is repeated if its header has a name of `across`.
    fn columns(&self) -> Result<String> {
        let before_the_runs = self.reports.is_empty() && !self.table.runs.is_empty();
        let mut header = Vec::new();
        let mut rows: Vec<(usize, Vec<String>)> =
            self.shown().map(|row| (row, Vec::new())).collect();
        for column in &self.table.columns {
            let (head, cell) = column
                .split_first()
                .ok_or_else(|| self.wrong("columns", &"[]"))?;
            let mut across = self.table.across.keys();
            let repeated = across.any(|name| head.contains(&format!("{{{name}}}")));
            for column in 0..if repeated { self.columns.len() } else { 1 } {
                let text = template::text(head, self.at(0, column));
                header.push(text.map_err(|e| self.wrong(&format!("column `{head}`"), &e))?);
                for (row, cells) in &mut rows {
                    let made = match first_that_applies(cell, self.at(*row, column)) {
                        Err(Problem::Missing(_)) if before_the_runs => Ok(String::new()),
                        Err(Problem::Missing(why)) => {
                            let cell = self.cell_of_refused(&why).cloned();
                            cell.ok_or(Problem::Missing(why))
                        }
                        made => made,
                    };
                    let key = format!("column `{head}`, row {}", *row + 1);
                    cells.push(made.map_err(|e| self.wrong(&key, &e))?);
                }
            }
        }
        let rows: Vec<Vec<String>> = rows.into_iter().map(|(_, cells)| cells).collect();
        Ok(table(&header, &rows))
    }

    /// The lines of a printed text that are shown.
    fn excerpt(&self, print: &Print, text: &str) -> Result<String> {
        let mut lines: Vec<&str> = Vec::new();
        let begins = |line: &str| print.lines.iter().any(|begin| line.starts_with(begin));
        for line in text.lines() {
            let ends_part = line.is_empty() && lines.last().is_some_and(|last| !last.is_empty());
            if ends_part || print.lines.is_empty() || begins(line) {
                lines.push(line);
            }
        }
        let absent = |begin: &&String| !lines.iter().any(|line| line.starts_with(*begin));
        if let Some(begin) = print.lines.iter().find(absent) {
            return Err(self.wrong("print.lines", &format!("no line begins with `{begin}`")));
        }
        let text = lines.join("\n");
        let count = print.paragraphs.unwrap_or(usize::MAX);
        Ok(text
            .split("\n\n")
            .take(count)
            .collect::<Vec<_>>()
            .join("\n\n"))
    }

    fn wrong(&self, key: &str, what: &impl std::fmt::Display) -> Failure {
        Failure(format!(
            "{}: table `{}`, {key}: {what}",
            self.table.file, self.table.name
        ))
    }
}

/// A value as text: a string without its quotes.
fn plain(value: &toml::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

impl Scope for At<'_> {
    fn name(mut self, name: &str) -> template::Result<Value> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Problem::Wrong(format!("`{name}` refers to itself")));
        }
        let (row, column, _) = self.place;
        let (grid, definitions) = (self.grid, self.grid.definitions);
        let of_cell = grid.columns[column].get(name);
        if let Some(text) = of_cell.or_else(|| grid.rows.get(row)?.get(name)) {
            return template::text(text, self).map(Value::Text);
        }
        if let Some(expression) = definitions.expressions.get(name) {
            return template::value(expression, self);
        }
        if let Some(text) = definitions.texts.get(name) {
            return first_that_applies(text, self).map(Value::Text);
        }
        match (name, grid.reports.get(&self.place)) {
            ("column", _) => Ok(Value::Number(column as f64)),
            ("refused", Some(Report::Refused(why))) => Ok(Value::Text(why.clone())),
            ("refused", _) => Err(Problem::Missing("not refused".to_owned())),
            _ => Err(Problem::Wrong(format!("there is no name `{name}`"))),
        }
    }

    fn pointer(self, run: &str, pointer: &str) -> template::Result<Vec<Value>> {
        let wrong = |what: &str| Problem::Wrong(format!("`{run}{pointer}`: {what}"));
        let data = self.grid.definitions.data(run).transpose();
        let data = data.map_err(|failure| wrong(&failure.0))?;
        let report = match (&data, run) {
            (Some(data), _) => Some(data),
            (None, "") if !self.grid.table.runs.contains_key(self.place.2) => {
                return Err(wrong("of which run?"));
            }
            (None, "") => match self.grid.reports.get(&self.place) {
                Some(Report::Json(report)) => Some(report),
                Some(Report::Refused(why)) => return Err(Problem::Missing(why.clone())),
                None => None,
            },
            (None, run) => {
                let scopes = self
                    .select(run)
                    .ok_or_else(|| wrong("no such run or data"))?;
                return scopes[0].pointer("", pointer);
            }
        };
        let missing = || Problem::Missing(format!("the report has nothing at {pointer}"));
        let mut found: Vec<&Json> = report.into_iter().collect();
        for step in pointer.split('/').skip(1) {
            let step = match step.strip_prefix('$') {
                Some(name) => self.name(name)?.text(),
                None => step.replace("~1", "/"),
            };
            let all = found.into_iter().map(|value| members(value, &step));
            found = all
                .collect::<Option<Vec<_>>>()
                .ok_or_else(missing)?
                .concat();
        }
        if report.is_none() {
            return Ok(vec![Value::Number(1.0)]);
        }
        let values = found.into_iter().map(|value| match value {
            Json::String(text) => Some(Value::Text(text.clone())),
            value => value.as_f64().map(Value::Number),
        });
        values.collect::<Option<Vec<Value>>>().ok_or_else(missing)
    }

    fn select(self, selector: &str) -> Option<Vec<Self>> {
        let (row, column, run) = self.place;
        let to = |place| At { place, ..self };
        Some(match selector {
            "first" => vec![to((self.grid.shown().next()?, column, run))],
            "last" => vec![to((self.grid.shown().next_back()?, column, run))],
            "total" => (0..self.grid.columns.len())
                .map(|column| to((row, column, run)))
                .collect(),
            named => vec![to((
                row,
                column,
                self.grid.table.runs.get_key_value(named)?.0,
            ))],
        })
    }
}

/// The members of a value that a step of a pointer leads to.
fn members<'a>(value: &'a Json, step: &str) -> Option<Vec<&'a Json>> {
    let number = |one: &Json, key: &str| one.get(key).and_then(Json::as_f64).unwrap_or_default();
    let one = match step.split_once('=') {
        None if step == "*" => return Some(value.as_array()?.iter().collect()),
        None => match (value.as_array(), step.parse::<usize>()) {
            (Some(all), Ok(index)) => all.get(index)?,
            _ => value.get(step)?,
        },
        Some((key, "max")) => {
            let above = value
                .as_array()?
                .iter()
                .filter(|one| number(one, key) > 0.0);
            // The first of equal ones.
            let above = above.rev();
            above.max_by(|a, b| number(a, key).total_cmp(&number(b, key)))?
        }
        Some((key, wanted)) => value.as_array()?.iter().find(|one| match one.get(key) {
            Some(Json::String(text)) => text == wanted,
            Some(other) => wanted.parse().is_ok_and(|number: u64| *other == number),
            None => false,
        })?,
    };
    Some(vec![one])
}
