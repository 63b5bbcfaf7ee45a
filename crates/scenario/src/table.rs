//! Tables: rows of cells, as CSV and as Parquet.

pub mod parquet;

use std::borrow::Cow;

use csv::{Terminator, WriterBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a column has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Whole numbers of 64 bits with a sign.
    Integer,
    /// Floating point of 64 bits.
    Number,
    Text,
}

/// Name and content of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    pub name: Cow<'static, str>,
    pub kind: Kind,
}

impl Column {
    pub fn new(name: impl Into<Cow<'static, str>>, kind: Kind) -> Column {
        let name = name.into();
        Column { name, kind }
    }
}

/// A value of a row. In JSON a number, a text or null.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
// `untagged` alone would make a text of an error for each kind that a value is not.
#[serde(untagged, try_from = "Value")]
pub enum Cell<'a> {
    Integer(i64),
    Number(f64),
    Text(Cow<'a, str>),
    Missing,
}

impl Cell<'_> {
    /// The column has no such values. A missing value fits all, a whole number that of numbers.
    pub fn fits(&self, kind: Kind) -> bool {
        match self {
            Cell::Missing => true,
            Cell::Integer(_) => kind != Kind::Text,
            Cell::Number(_) => kind == Kind::Number,
            Cell::Text(_) => kind == Kind::Text,
        }
    }

    /// The number that it is.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Integer(value) => Some(*value as f64),
            Cell::Number(value) => Some(*value),
            Cell::Text(_) | Cell::Missing => None,
        }
    }

    /// As CSV has it: nothing if it is missing.
    pub fn text(&self) -> String {
        match self {
            Cell::Integer(value) => value.to_string(),
            Cell::Number(value) => value.to_string(),
            Cell::Text(value) => value.to_string(),
            Cell::Missing => String::new(),
        }
    }
}

impl TryFrom<Value> for Cell<'_> {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Null => Ok(Cell::Missing),
            Value::String(text) => Ok(text.into()),
            Value::Number(number) => {
                let whole = number.as_i64().map(Cell::Integer);
                let cell = whole.or_else(|| number.as_f64().map(Cell::Number));
                cell.ok_or("a number out of range")
            }
            _ => Err("expected a number, a text or null"),
        }
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Cell::Integer(value as i64)
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Cell::Integer(value.into())
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        Cell::Number(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Cell::Text(value.into())
    }
}

impl From<String> for Cell<'_> {
    fn from(value: String) -> Self {
        Cell::Text(value.into())
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Missing, Into::into)
    }
}

/// Rows of a file: quoting follows RFC 4180, line ends are LF. Panics if they are not of one
/// length.
pub fn csv_of<R>(rows: &[R]) -> String
where
    for<'a> &'a R: IntoIterator<Item = &'a String>,
{
    let mut builder = WriterBuilder::new();
    builder.terminator(Terminator::Any(b'\n'));
    let mut writer = builder.from_writer(Vec::new());
    for row in rows {
        let written = writer.write_record(row);
        written.expect("memory takes all, and rows are as long as their header");
    }
    let bytes = writer.into_inner().expect("memory takes all");
    String::from_utf8(bytes).expect("cells are texts")
}
