//! The format of a sweep's file: TOML; docs/reference/formats.md describes it.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::sample::{Among, Method, samples};
use super::{Design, POINTS_MAX, Test};
use crate::compare::measures_of;
use crate::error::Error;

/// Numbers of a range, and samples, at most.
const RANGE_MAX: u64 = 1_000_000;
/// Runs of a point at most.
const SEEDS_MAX: u64 = 1000;
/// Seeds of a point with `precision`, unless the file says so: an interval needs some runs.
const LEAST_MOST: (u32, u32) = (3, 30);

/// Keys that are about the whole sweep.
const TOP: [&str; 4] = ["scenario", "seed", "seeds", "precision"];

/// A value and the line that it begins in.
type Node<'a> = (&'a DeValue<'a>, usize);
type Entry<'a> = (String, Node<'a>);

/// A file, for errors.
#[derive(Clone, Copy, Debug)]
struct File<'a> {
    name: &'a str,
    text: &'a str,
}

impl File<'_> {
    fn line(self, byte: usize) -> usize {
        self.text[..byte].matches('\n').count() + 1
    }

    /// The last line that begins with a key.
    fn line_of(self, key: &str) -> usize {
        let named = |line: &str| {
            let line = line.trim_start().trim_start_matches(['"', '\'']);
            line.starts_with(key)
        };
        let lines = self.text.lines().enumerate();
        lines
            .filter(|(_, line)| named(line))
            .map(|(index, _)| index + 1)
            .last()
            .unwrap_or(1)
    }

    /// An error at a line, about a key.
    fn wrong(self, line: usize, key: &str, what: impl AsRef<str>) -> Error {
        let place = format!("{}:{line}: {key}", self.name);
        Error::wrong(place, what.as_ref())
    }

    /// The entries of a table as they are written, those of tables in it with dotted keys. A table
    /// for which `whole` holds stays a value.
    fn entries<'a>(
        self,
        table: &'a DeTable<'a>,
        whole: fn(&DeTable<'_>) -> bool,
    ) -> Vec<Entry<'a>> {
        let mut placed = self.placed(table, whole);
        placed.sort_by_key(|(at, _)| *at);
        placed.into_iter().map(|(_, entry)| entry).collect()
    }

    /// The same, each with its place in the text.
    fn placed<'a>(
        self,
        table: &'a DeTable<'a>,
        whole: fn(&DeTable<'_>) -> bool,
    ) -> Vec<(usize, Entry<'a>)> {
        let mut entries: Vec<(usize, Entry<'a>)> = Vec::new();
        for (key, value) in table {
            let at = key.span().start;
            let name = key.get_ref().to_string();
            match value.get_ref().as_table().filter(|table| !whole(table)) {
                Some(inner) => {
                    let inner = self.placed(inner, whole).into_iter();
                    let named = |(at, (key, node))| (at, (format!("{name}.{key}"), node));
                    entries.extend(inner.map(named));
                }
                None => entries.push((at, (name, (value.get_ref(), self.line(at))))),
            }
        }
        entries
    }

    fn table<'a>(self, key: &str, (value, line): Node<'a>) -> Result<&'a DeTable<'a>, Error> {
        let table = value.as_table();
        table.ok_or_else(|| self.wrong(line, key, format!("expected a table: [{key}]")))
    }

    /// The values of an array, a range `"1..8"`, or one value.
    fn values(self, key: &str, node: Node<'_>) -> Result<Vec<String>, Error> {
        let (value, line) = node;
        let refuse = |what: &str| Err(self.wrong(line, key, what));
        let range = |text: &str| {
            let (from, to) = text.split_once("..")?;
            Some((from.parse::<u64>().ok()?, to.parse::<u64>().ok()?))
        };
        let values = match value {
            DeValue::Array(items) => {
                let one = |item: &Spanned<DeValue<'_>>| {
                    let line = self.line(item.span().start);
                    text(self, key, (item.get_ref(), line))
                };
                items.iter().map(one).collect::<Result<Vec<_>, _>>()?
            }
            DeValue::String(text) if range(text).is_some() => {
                let (from, to) = range(text).unwrap_or_default();
                if from > to || to - from >= RANGE_MAX {
                    let what = "expected a range such as 1..8, of at most";
                    return refuse(&format!("{what} {RANGE_MAX} numbers"));
                }
                (from..=to).map(|number| number.to_string()).collect()
            }
            _ => vec![text(self, key, node)?],
        };
        if values.is_empty() {
            return refuse("expected at least one value");
        }
        let mut sorted: Vec<&String> = values.iter().collect();
        sorted.sort();
        if let Some([twice, _]) = sorted.array_windows().find(|[one, other]| one == other) {
            return refuse(&format!("{twice} is there twice"));
        }
        Ok(values)
    }

    fn whole(self, key: &str, node: Node<'_>, from: u64, to: u64) -> Result<u64, Error> {
        let number = text(self, key, node)?.parse().ok();
        let number = number.filter(|number| (from..=to).contains(number));
        let what = || format!("expected a whole number from {from} to {to}");
        number.ok_or_else(|| self.wrong(node.1, key, what()))
    }

    fn number(self, key: &str, node: Node<'_>) -> Result<f64, Error> {
        let number = text(self, key, node)?.parse().ok();
        let number = number.filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.wrong(node.1, key, "expected a number"))
    }
}

/// A value as `--set` takes it.
fn text(file: File<'_>, key: &str, (value, line): Node<'_>) -> Result<String, Error> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(value) => Ok(value.to_string()),
        _ => Err(file.wrong(line, key, "expected a number, a text, true or false")),
    }
}

/// `{ from = 1, to = 8 }`, of which one may be missing.
fn is_range(table: &DeTable<'_>) -> bool {
    let known = |key: &str| matches!(key, "from" | "to" | "scale");
    table.keys().all(|key| known(key.get_ref()))
}

impl Design {
    /// Reads a file; `name` is for errors.
    pub fn read(name: &str, text: &str) -> Result<Design, Error> {
        let file = File { name, text };
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| file.line(span.start));
            Error::wrong(format!("{name}:{line}"), error.message())
        })?;
        let mut design = Design {
            scenarios: Vec::new(),
            set: Vec::new(),
            seed: None,
            seeds: (1, 1),
            precision: Vec::new(),
            list: Vec::new(),
            grid: Vec::new(),
            samples: Vec::new(),
            skip: Vec::new(),
            kept: Vec::new(),
        };
        for (key, node) in file.entries(table.get_ref(), |_| true) {
            design.member(file, &key, node)?;
        }
        design.check(file, table.get_ref())?;
        let combinations = design.combinations().ok_or_else(|| too_many(name))?;
        design.kept = design.keep(combinations).map_err(|index| {
            let which = index + 1;
            Error::wrong(
                name,
                format!(
                    "[[skip]] number {which} leaves out no point; values are \
                                        compared as they are written, 4k is not 4096"
                ),
            )
        })?;
        match design.is_empty() {
            true => Err(Error::wrong(name, "[[skip]] leaves no point")),
            false => Ok(design),
        }
    }

    /// A key at the top of the file.
    fn member(&mut self, file: File<'_>, key: &str, node: Node<'_>) -> Result<(), Error> {
        match key {
            "scenario" => self.scenarios = file.values(key, node)?,
            "seed" => self.seed = Some(file.whole(key, node, 0, i64::MAX as u64 - SEEDS_MAX)?),
            "seeds" => self.seeds = seeds(file, key, node)?,
            "precision" => self.precision = precision(file, key, node)?,
            "set" => {
                for (of, node) in file.entries(file.table(key, node)?, |_| false) {
                    let value = text(file, &of, node)?;
                    self.set.push((of, value));
                }
            }
            "list" => self.list = rows(file, key, node, text)?,
            "grid" => {
                for (of, node) in file.entries(file.table(key, node)?, is_range) {
                    if node.0.is_table() {
                        let what = "expected values, or a range as a text: \"1..8\"";
                        return Err(file.wrong(node.1, &of, what));
                    }
                    let values = file.values(&of, node)?;
                    self.grid.push((of, values));
                    // Before the texts of further ones take all memory.
                    self.combinations().ok_or_else(|| too_many(file.name))?;
                }
            }
            "random" => self.sample(file, Method::Random, key, node)?,
            "latin_hypercube" => self.sample(file, Method::LatinHypercube, key, node)?,
            "skip" => self.skip = rows(file, key, node, test)?,
            _ => {
                let what = "unknown; expected scenario, seed, seeds, precision, set, list, grid, \
                            random, latin_hypercube or skip";
                return Err(file.wrong(node.1, key, what));
            }
        }
        Ok(())
    }

    fn sample(
        &mut self,
        file: File<'_>,
        method: Method,
        name: &str,
        node: Node<'_>,
    ) -> Result<(), Error> {
        if !self.samples.is_empty() {
            let what = "expected one of [random] and [latin_hypercube]";
            return Err(file.wrong(node.1, name, what));
        }
        let (mut count, mut seed, mut keys) = (None, 1, Vec::new());
        for (key, node) in file.entries(file.table(name, node)?, is_range) {
            match key.as_str() {
                "samples" => count = Some(file.whole(&key, node, 1, RANGE_MAX)?),
                "seed" => seed = file.whole(&key, node, 0, u64::MAX)?,
                _ => {
                    let among = among(file, &key, node)?;
                    keys.push((key, among));
                }
            }
        }
        let count = count.filter(|_| !keys.is_empty());
        let what = "expected `samples = NUMBER` and keys with their ranges or values";
        let count = count.ok_or_else(|| file.wrong(node.1, name, what))?;
        let drawn = |(key, among): (String, Among)| {
            let values = samples(method, &among, count as usize, seed, &key);
            (key, values)
        };
        self.samples = keys.into_iter().map(drawn).collect();
        Ok(())
    }

    /// What one part of the file cannot see.
    fn check(&mut self, file: File<'_>, table: &DeTable<'_>) -> Result<(), Error> {
        if self.scenarios.is_empty() {
            let what = "is missing; expected the name of a scenario, a file, or several";
            return Err(file.wrong(1, "scenario", what));
        }
        if !self.precision.is_empty() && table.keys().all(|key| key.get_ref() != "seeds") {
            self.seeds = LEAST_MOST;
        }
        let (least, most) = self.seeds;
        if self.precision.is_empty() && least != most {
            let what = "expected `precision` with a range of seeds, or one number of seeds";
            return Err(file.wrong(1, "seeds", what));
        }
        if !self.precision.is_empty() && least < 2 {
            let what = "expected at least 2 with `precision`: one run has no interval";
            return Err(file.wrong(1, "seeds", what));
        }
        let parts = [&self.grid, &self.samples].into_iter().flatten();
        let mut known: Vec<&str> = parts.map(|(key, _)| key.as_str()).collect();
        known.extend(self.set.iter().map(|(key, _)| key.as_str()));
        let mut twice = known.clone();
        twice.sort_unstable();
        let twice = twice.array_windows().find(|[one, other]| one == other);
        let mut in_lists = self.list.iter().flatten().map(|(key, _)| key.as_str());
        let twice = twice
            .map(|[key, _]| *key)
            .or_else(|| in_lists.find(|key| known.contains(key)));
        if let Some(key) = twice {
            return Err(file.wrong(file.line_of(key), key, "is there twice"));
        }
        let varied: Vec<&str> = self.varied().iter().map(|(key, _)| *key).collect();
        let mut skipped = self.skip.iter().flatten().map(|(key, _)| key.as_str());
        if let Some(key) = skipped.find(|key| !varied.contains(key)) {
            let what = "is not varied; expected in [[skip]] a key that is";
            return Err(file.wrong(file.line_of(key), key, what));
        }
        let in_lists = self.list.iter().flatten().map(|(key, _)| key.as_str());
        let mut all = known.iter().copied().chain(in_lists);
        match all.find(|key| TOP.contains(key)) {
            Some(key) => {
                let what = "expected at the top of the file, before the tables";
                Err(file.wrong(file.line_of(key), key, what))
            }
            None => Ok(()),
        }
    }
}

fn too_many(name: &str) -> Error {
    Error::wrong(
        name,
        format!("more than {POINTS_MAX} combinations of values"),
    )
}

/// A number of seeds, or `{ from = 3, to = 30 }`.
fn seeds(file: File<'_>, key: &str, node: Node<'_>) -> Result<(u32, u32), Error> {
    let Some(range) = node.0.as_table() else {
        let count = file.whole(key, node, 1, SEEDS_MAX)? as u32;
        return Ok((count, count));
    };
    let (mut from, mut to) = (u64::from(LEAST_MOST.0), u64::from(LEAST_MOST.1));
    for (of, node) in file.entries(range, |_| true) {
        match of.as_str() {
            "from" => from = file.whole(&of, node, 1, SEEDS_MAX)?,
            "to" => to = file.whole(&of, node, 1, SEEDS_MAX)?,
            _ => return Err(file.wrong(node.1, &of, "unknown; expected from and to")),
        }
    }
    match from <= to {
        true => Ok((from as u32, to as u32)),
        false => Err(file.wrong(node.1, key, "expected from to be at most to")),
    }
}

/// `"1%"` of IOPS, or figures with a percentage each.
fn precision(
    file: File<'_>,
    key: &str,
    node: Node<'_>,
) -> Result<Vec<(&'static crate::compare::Measure, f64)>, Error> {
    let part = |key: &str, node: Node<'_>| {
        let text = text(file, key, node)?;
        let percent = text
            .strip_suffix('%')
            .and_then(|text| text.trim().parse().ok());
        let percent = percent.filter(|percent: &f64| *percent > 0.0 && *percent <= 100.0);
        let part = percent.map(|percent| percent / 100.0);
        part.ok_or_else(|| file.wrong(node.1, key, "expected percent of the mean, e.g. \"1%\""))
    };
    let Some(figures) = node.0.as_table() else {
        let iops = Design::figure("iops").expect("it is a measure");
        return Ok(vec![(iops, part(key, node)?)]);
    };
    let figure = |(name, node): Entry<'_>| {
        let measure = Design::figure(&name).ok_or_else(|| {
            let known: Vec<&str> = measures_of(true).map(|of| of.name).collect();
            let what = format!("unknown; expected some of {}", known.join(", "));
            file.wrong(node.1, &name, what)
        })?;
        Ok((measure, part(&name, node)?))
    };
    let figures: Vec<_> = file
        .entries(figures, |_| true)
        .into_iter()
        .map(figure)
        .collect();
    match figures.is_empty() {
        true => Err(file.wrong(node.1, key, "expected a figure with its percentage")),
        false => figures.into_iter().collect(),
    }
}

/// Rows of `[[list]]` or `[[skip]]`.
fn rows<T>(
    file: File<'_>,
    name: &str,
    (value, line): Node<'_>,
    one: impl Fn(File<'_>, &str, Node<'_>) -> Result<T, Error>,
) -> Result<Vec<Vec<(String, T)>>, Error> {
    let refuse = || file.wrong(line, name, format!("expected tables: [[{name}]]"));
    let items = value.as_array().ok_or_else(refuse)?;
    let mut rows = Vec::new();
    for item in items {
        let table = item.get_ref().as_table().filter(|table| !table.is_empty());
        let mut row: Vec<(String, T)> = Vec::new();
        for (key, node) in file.entries(table.ok_or_else(refuse)?, is_range) {
            row.push((key.clone(), one(file, &key, node)?));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// A value, one of several, or `{ from = 1, to = 8 }`.
fn test(file: File<'_>, key: &str, node: Node<'_>) -> Result<Test, Error> {
    let Some(range) = node.0.as_table() else {
        return Ok(Test::OneOf(file.values(key, node)?));
    };
    let (mut from, mut to) = (None, None);
    for (of, node) in file.entries(range, |_| true) {
        match of.as_str() {
            "from" => from = Some(file.number(key, node)?),
            "to" => to = Some(file.number(key, node)?),
            _ => return Err(file.wrong(node.1, &of, "unknown; expected from and to")),
        }
    }
    match from.zip(to).is_none_or(|(from, to)| from <= to) {
        true => Ok(Test::Within(from, to)),
        false => Err(file.wrong(node.1, key, "expected from to be at most to")),
    }
}

/// `{ from = 1, to = 256, scale = "log" }`, or values.
fn among(file: File<'_>, key: &str, node: Node<'_>) -> Result<Among, Error> {
    let Some(range) = node.0.as_table() else {
        return Ok(Among::Values(file.values(key, node)?));
    };
    let (mut from, mut to, mut log) = (None, None, false);
    let mut whole = true;
    for (of, node) in file.entries(range, |_| true) {
        match of.as_str() {
            "from" => from = Some(file.number(key, node)?),
            "to" => to = Some(file.number(key, node)?),
            "scale" => {
                log = node.0.as_str() == Some("log");
                if !log && node.0.as_str() != Some("linear") {
                    return Err(file.wrong(node.1, key, "scale: expected \"linear\" or \"log\""));
                }
                continue;
            }
            _ => return Err(file.wrong(node.1, &of, "unknown; expected from, to and scale")),
        }
        whole &= node.0.is_integer();
    }
    let bounds = from.zip(to).filter(|(from, to)| {
        let small = !whole || from.abs().max(to.abs()) < (1_u64 << 53) as f64;
        from < to && small && (!log || *from >= f64::MIN_POSITIVE)
    });
    let what = match log {
        true => "expected from and to, both above 0, from below to",
        false => "expected from and to, from below to",
    };
    let (from, to) = bounds.ok_or_else(|| file.wrong(node.1, key, what))?;
    Ok(Among::Range {
        from,
        to,
        whole,
        log,
    })
}
