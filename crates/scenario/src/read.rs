//! From text to the untyped scenario: TOML with line numbers, `--set`, `--device`.

use std::collections::BTreeMap;
use std::path::Path;

use blkmq::elevator::SchedulerKind;
use serde::Deserialize as _;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::source::{Place, Source};
use super::{Result, Scenario, ScenarioError};

/// Number of the line of a byte.
fn line_of(text: &str, byte: usize) -> u64 {
    text.as_bytes()
        .iter()
        .take(byte)
        .filter(|b| **b == b'\n')
        .count() as u64
        + 1
}

/// An error of the TOML reader with its line.
pub(super) fn toml_error(file: &Path, text: &str, error: &toml::de::Error) -> ScenarioError {
    let place = match error.span() {
        Some(span) => format!("{}:{}", file.display(), line_of(text, span.start)),
        None => file.display().to_string(),
    };
    let table = DeTable::parse(text);
    if let (Some(span), Ok(table)) = (error.span(), &table)
        && let Some((field, value)) = value_at(table.get_ref(), "", span.start)
    {
        let message = || sentence(error.message());
        let what = too_large(text, value).unwrap_or_else(message) + &range(&field);
        return ScenarioError::Field { place, field, what };
    }
    let line = error
        .span()
        .and_then(|span| text[span.start..].lines().next());
    let what = match line.and_then(|line| line.trim().strip_prefix('[')?.strip_suffix(']')) {
        Some(name)
            if error
                .message()
                .contains("invalid type: map, expected a sequence") =>
        {
            format!("there may be several tables of this name: write [[{name}]]")
        }
        _ => sentence(error.message()),
    };
    ScenarioError::Syntax { place, what }
}

/// The range of a scheduler's attribute, after the text that something else was expected.
fn range(field: &str) -> String {
    let (table, name) = field.rsplit_once('.').unwrap_or(("", field));
    let ranges = SchedulerKind::ALL
        .iter()
        .filter_map(|kind| kind.range(name));
    let range = ranges
        .into_iter()
        .next()
        .filter(|_| table.ends_with("queue"));
    range.map_or(String::new(), |range| format!(" from {range}"))
}

/// The value that begins at this byte and is not a table, with its dotted name.
fn value_at<'a, 'i>(
    table: &'a DeTable<'i>,
    prefix: &str,
    byte: usize,
) -> Option<(String, &'a Spanned<DeValue<'i>>)> {
    let mut all = table.iter();
    all.find_map(|(key, value)| below(value, format!("{prefix}{}", key.get_ref()), byte))
}

fn below<'a, 'i>(
    value: &'a Spanned<DeValue<'i>>,
    name: String,
    byte: usize,
) -> Option<(String, &'a Spanned<DeValue<'i>>)> {
    match value.get_ref() {
        DeValue::Table(inner) => value_at(inner, &format!("{name}."), byte),
        DeValue::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(i, item)| below(item, format!("{name}.{i}"), byte))
        }
        _ => (value.span().start == byte).then_some((name, value)),
    }
}

/// Message for a number that does not fit in TOML's 64 bits with a sign.
fn too_large(text: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let DeValue::Integer(number) = value.get_ref() else {
        return None;
    };
    let fits = i64::from_str_radix(number.as_str(), number.radix()).is_ok();
    let (number, most) = (&text[value.span()], i64::MAX);
    (!fits).then(|| format!("{number} is too large; numbers go up to {most}"))
}

/// What serde says of a wrong number, and its meaning for a user.
const NUMBERS: [(&str, &str); 6] = [
    ("expected u8", "expected a number from 0 to 255"),
    ("expected u16", "expected a number from 0 to 65535"),
    ("expected u32", "expected a number from 0 to 4294967295"),
    (
        "expected u64",
        "expected a number from 0 to 9223372036854775807",
    ),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
];

/// serde's message, with "did you mean" in place of a list of all fields.
pub(super) fn sentence(message: &str) -> String {
    let message = message.trim();
    if !message.starts_with("unknown field") {
        let mut numbers = NUMBERS.iter();
        if message.ends_with("`, expected a string") {
            return format!("{message}: write it in quotes");
        }
        return numbers
            .find_map(|(serde, ours)| Some(format!("{}{ours}", message.strip_suffix(serde)?)))
            .unwrap_or_else(|| message.to_owned());
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().unwrap_or("");
    let known: Vec<&str> = quoted.collect();
    let rest = message.rsplit('`').next().unwrap_or("");
    match trace::fio::nearest(unknown, known.iter().copied()) {
        Some(near) => format!("unknown field `{unknown}`; did you mean `{near}`?"),
        None => format!(
            "unknown field `{unknown}`; there are {}{rest}",
            known.join(", ")
        ),
    }
}

/// Lines of all keys of a TOML text, by dotted name.
pub(super) fn places(file: &Path, text: &str) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    if let Ok(table) = DeTable::parse(text) {
        let at = |byte| Place::Line(file.to_path_buf(), line_of(text, byte));
        walk(table.get_ref(), "", &at, &mut places);
    }
    places
}

fn walk(
    table: &DeTable<'_>,
    prefix: &str,
    at: &dyn Fn(usize) -> Place,
    places: &mut BTreeMap<String, Place>,
) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => walk(inner, &format!("{name}."), at, places),
            DeValue::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    if let DeValue::Table(inner) = item.get_ref() {
                        places.insert(format!("{name}.{i}"), at(item.span().start));
                        walk(inner, &format!("{name}.{i}."), at, places);
                    }
                }
            }
            _ => {}
        }
        places.insert(name, at(key.span().start));
    }
}

pub(super) fn assign(source: &mut Source, assignment: &str) -> Result<()> {
    let place = format!("--set {assignment}");
    let bad = |what: String| ScenarioError::Syntax {
        place: place.clone(),
        what,
    };
    let (key, value) = assignment
        .split_once('=')
        .ok_or_else(|| bad("expected KEY=VALUE, e.g. queue.fifo_batch=1".to_string()))?;
    let (key, value) = (key.trim(), value.trim());
    let mut path: Vec<&str> = match key.strip_prefix("group.") {
        Some(group) => of_group(group),
        None => key.split('.').collect(),
    };
    if path.iter().any(|part| part.is_empty()) {
        return Err(bad(format!("`{key}` is no name such as queue.fifo_batch")));
    }
    if value.is_empty() {
        return Err(bad(format!("{key} needs a value")));
    }
    not_alone(&path, value).map_err(bad)?;
    let value = match path[..] {
        // TOML's 6.1 is a number.
        ["queue", "rules"] => Value::String(value.trim_matches('"').to_owned()),
        _ => parse_value(value),
    };
    let mut changed = source.clone();
    if let ["job", option] = path.as_slice()
        && let Some(own) = stands_for(&changed.table, option)
    {
        path = own.to_vec();
    }
    if let ["job", option] = path.as_slice() {
        set_all_jobs(&mut changed, option, &value, &place).map_err(bad)?;
    } else if path[0] == "job" {
        return Err(bad(
            "write job.OPTION=VALUE; it changes all jobs".to_string()
        ));
    } else if let (Some(kind), Some(Value::Array(tables))) = several(&mut changed.table, path[0]) {
        // All of several devices or jobs, unless a number is written.
        let only = path.get(1).and_then(|part| part.parse::<usize>().ok());
        let path = &path[1 + usize::from(only.is_some())..];
        let count = tables.len();
        if let Some(number) = only.filter(|&number| number >= count) {
            let what = format!("`{number}` is no number of one of {count} tables `{kind}`");
            return Err(bad(what));
        }
        for (i, table) in tables.iter_mut().enumerate() {
            if only.is_some_and(|only| only != i) {
                continue;
            }
            let Some(table) = table.as_table_mut().filter(|_| !path.is_empty()) else {
                return Err(bad(format!("write {kind}.PARAMETER=VALUE")));
            };
            set_path(table, path, value.clone()).map_err(bad)?;
            let name = format!("{kind}.{i}.{}", path.join("."));
            placed(&mut changed.places, name, &place);
        }
    } else {
        drop_number(&mut changed.table, &mut path).map_err(bad)?;
        set_path(&mut changed.table, &path, value).map_err(bad)?;
        placed(&mut changed.places, path.join("."), &place);
    }
    check(&changed, &place, key)?;
    *source = changed;
    Ok(())
}

/// A key without its table is an error that names the table.
fn not_alone(path: &[&str], value: &str) -> std::result::Result<(), String> {
    match path {
        ["global", ..] => {
            Err("options of [global] are the jobs': write job.OPTION=VALUE".to_owned())
        }
        [alone] => match whole_name(alone) {
            Some(whole) => Err(format!("no such key; write {whole}={value}")),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The dotted name of a key that was written without its table.
fn whole_name(key: &str) -> Option<String> {
    const TOP: [&str; 4] = ["seed", "description", "count_tail", "precision"];
    const QUEUE: [&str; 3] = ["scheduler", "rules", "nr_requests"];
    if TOP.contains(&key) {
        return None;
    }
    let attribute = |kind: &SchedulerKind| kind.range(key).is_some();
    if QUEUE.contains(&key) || SchedulerKind::ALL.iter().any(attribute) {
        return Some(format!("queue.{key}"));
    }
    if trace::fio::lookup(key).is_some() {
        return Some(format!("job.{key}"));
    }
    let parameters = super::device_types().flat_map(|(_, parameters)| parameters);
    let known = parameters.into_iter().any(|known| known.name == key);
    known.then(|| format!("device.{key}"))
}

/// The only one of a list needs no number, and may have it.
fn drop_number(table: &mut Table, path: &mut Vec<&str>) -> std::result::Result<(), String> {
    let only = path.get(1).and_then(|part| part.parse::<usize>().ok());
    if let (Some(kind), Some(number)) = (several(table, path[0]).0, only) {
        if number > 0 {
            return Err(format!(
                "`{number}` is no number of one of 1 table `{kind}`"
            ));
        }
        path.remove(1);
    }
    Ok(())
}

/// A value, and everything in it, gets the place of an option.
fn placed(places: &mut BTreeMap<String, Place>, name: String, option: &str) {
    let inside = format!("{name}.");
    places.retain(|other, _| !other.starts_with(&inside));
    places.insert(name, Place::Option(option.to_string()));
}

/// `group.PATH.ATTRIBUTE`: dots are in the attribute's name, and may be in the path.
fn of_group(key: &str) -> Vec<&str> {
    let attributes = SchedulerKind::ALL
        .iter()
        .filter_map(|kind| kind.info()?.group_weight);
    let mut paths = attributes.filter_map(|attribute| {
        let path = key.strip_suffix(attribute)?.strip_suffix('.')?;
        Some(vec!["group", path, &key[key.len() - attribute.len()..]])
    });
    let other = || ["group"].into_iter().chain(key.splitn(2, '.')).collect();
    paths.next().unwrap_or_else(other)
}

/// The key that an option of jobs sets if there are no jobs but other readers: options `--runtime`,
/// `--ramp-time` and `plot --threads`.
fn stands_for<'a>(table: &Table, option: &'a str) -> Option<[&'a str; 2]> {
    let kinds = ["interleaved", "nfsd"];
    let there = |kind: &&str| table.contains_key(*kind) && !table.contains_key("job");
    let kind = kinds.into_iter().find(there)?;
    match (kind, option) {
        (_, "runtime" | "ramp_time") => Some([kind, option]),
        ("interleaved", "numjobs") => Some([kind, "processes"]),
        ("nfsd", "numjobs") => Some([kind, "threads"]),
        _ => None,
    }
}

/// The tables that a change may refer to, if there may be several: the name of the kind, and the
/// number of tables.
fn several<'a>(table: &'a mut Table, name: &str) -> (Option<&'static str>, Option<&'a mut Value>) {
    let kind = match name {
        "device" => "device",
        "interleaved" => "interleaved",
        "nfsd" => "nfsd",
        "mapped" => "mapped",
        _ => return (None, None),
    };
    (Some(kind), table.get_mut(kind))
}

/// A TOML value, or a string if it does not parse (`1/100`, `mq-deadline`).
fn parse_value(text: &str) -> Value {
    let line = format!("value = {text}");
    match toml::from_str::<Table>(&line) {
        Ok(mut table) if table.len() == 1 => table
            .remove("value")
            .unwrap_or_else(|| Value::String(text.to_string())),
        _ => Value::String(text.to_string()),
    }
}

fn set_path(table: &mut Table, path: &[&str], value: Value) -> std::result::Result<(), String> {
    let (first, rest) = path.split_first().ok_or("expected a name")?;
    if rest.is_empty() {
        if matches!(value, Value::Table(_)) || matches!(table.get(*first), Some(Value::Table(_))) {
            return Err(format!("`{first}` is a table; set its fields one by one"));
        }
        table.insert((*first).to_string(), value);
        return Ok(());
    }
    let new = || Value::Table(Table::new());
    match table.entry(*first).or_insert_with(new) {
        Value::Table(inner) => set_path(inner, rest, value),
        // One of several tables, by its number.
        Value::Array(items) => {
            let count = items.len();
            let number: Option<usize> = rest[0].parse().ok();
            let item = number.and_then(|number| items.get_mut(number));
            let item = item.and_then(Value::as_table_mut).ok_or_else(|| {
                format!(
                    "`{}` is no number of one of {count} tables `{first}`",
                    rest[0]
                )
            })?;
            set_path(item, &rest[1..], value)
        }
        _ => Err(format!("`{first}` is a value, not a table")),
    }
}

fn set_all_jobs(
    source: &mut Source,
    option: &str,
    value: &Value,
    place: &str,
) -> std::result::Result<(), String> {
    let jobs = source.table.get_mut("job").and_then(Value::as_array_mut);
    let jobs = jobs
        .filter(|jobs| !jobs.is_empty())
        .ok_or("there is no job to change")?;
    let known = super::jobs::canonical(option).unwrap_or(option);
    for (i, job) in jobs.iter_mut().enumerate() {
        let Some(job) = job.as_table_mut() else {
            continue;
        };
        // The same option under another name, or its opposite, would contradict it.
        job.retain(|key, _| !super::jobs::overrides(known, key));
        job.insert(known.to_string(), value.clone());
        source
            .places
            .insert(format!("job.{i}.{known}"), Place::Option(place.to_string()));
    }
    Ok(())
}

pub(super) fn assign_device(source: &mut Source, text: &str) -> Result<()> {
    let place = format!("--device {text}");
    let bad = |what: String| ScenarioError::Syntax {
        place: place.clone(),
        what,
    };
    let mut parts = text.split(',').map(str::trim);
    let kind = parts
        .next()
        .filter(|kind| !kind.is_empty() && !kind.contains('='));
    let kind = kind.ok_or_else(|| {
        bad("expected TYPE,PARAMETER=VALUE,... e.g. null_blk,irqmode=2".to_string())
    })?;
    let mut device = Table::new();
    device.insert("type".to_string(), Value::String(kind.to_string()));
    for part in parts {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| bad(format!("`{part}` is not PARAMETER=VALUE")))?;
        let path: Vec<&str> = key.split('.').collect();
        if value.is_empty() || path.iter().any(|part| part.is_empty()) {
            return Err(bad(format!("`{part}` is not PARAMETER=VALUE")));
        }
        if path == ["type"] || device.contains_key(key) {
            return Err(bad(format!("{key} is given twice")));
        }
        set_path(&mut device, &path, parse_value(value)).map_err(bad)?;
    }
    let mut changed = source.clone();
    changed
        .places
        .retain(|name, _| name != "device" && !name.starts_with("device."));
    changed
        .places
        .insert("device".to_string(), Place::Option(place.clone()));
    changed
        .table
        .insert("device".to_string(), Value::Table(device));
    check(&changed, &place, "")?;
    *source = changed;
    Ok(())
}

/// The change must leave a scenario of the right types; an error is that of the option.
fn check(source: &Source, place: &str, key: &str) -> Result<()> {
    match Scenario::deserialize(source.table.clone()) {
        Ok(_) => Ok(()),
        Err(e) => Err(ScenarioError::Syntax {
            place: place.to_string(),
            what: sentence(e.message()) + &range(key),
        }),
    }
}
