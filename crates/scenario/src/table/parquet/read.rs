//! Reads what this module writes: plain values, one page a column of each row group.

use std::borrow::Cow;

use super::super::{Cell, Column, Kind};
use super::{BINARY, BYTE_ARRAY, DOUBLE, INT64, INTEGER, INTEGER_32, LIST, MAGIC, STRUCT};

/// Structs within structs that a file of ours has, and some more.
const DEPTH: u32 = 16;

/// Why a file cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("byte {byte}: {what}; expected a file of `blksim`, as it was written")]
pub struct ReadError {
    pub byte: usize,
    pub what: &'static str,
}

/// A file, by columns.
#[derive(Debug)]
pub struct Parquet<'a> {
    bytes: &'a [u8],
    pub columns: Vec<Column>,
    /// Rows and places of the pages of each row group.
    groups: Vec<(usize, Vec<usize>)>,
}

impl<'a> Parquet<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Parquet<'a>, ReadError> {
        let refuse = |byte, what| ReadError { byte, what };
        let end = bytes.len().saturating_sub(8);
        let length = bytes[end..].first_chunk::<4>();
        let length = length.filter(|_| bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC));
        let length = length.ok_or_else(|| refuse(0, "no Parquet, or a part of one"))?;
        let start = end.checked_sub(u32::from_le_bytes(*length) as usize);
        let start = start.ok_or_else(|| refuse(end, "a footer longer than the file"))?;
        let mut at = Place {
            bytes: &bytes[..end],
            at: start,
        };
        let mut file = Parquet {
            bytes,
            columns: Vec::new(),
            groups: Vec::new(),
        };
        at.fields(|at, field, kind| match field {
            2 => at.list(kind, |at, kind| {
                if let Some(column) = schema(at, kind)? {
                    file.columns.push(column);
                }
                Ok(())
            }),
            4 => at.list(kind, |at, kind| {
                let group = row_group(at, kind)?;
                file.groups.push(group);
                Ok(())
            }),
            _ => at.skip(kind, DEPTH),
        })?;
        let columns = file.columns.len();
        if file.groups.iter().any(|(_, pages)| pages.len() != columns) {
            return Err(refuse(start, "a row group without a page for each column"));
        }
        Ok(file)
    }

    /// The values of a column, which is one of `columns` by its index.
    pub fn values(&self, index: usize) -> Result<Vec<Cell<'a>>, ReadError> {
        let kind = self.columns[index].kind;
        let mut values = Vec::new();
        for (rows, pages) in &self.groups {
            let mut at = Place {
                bytes: self.bytes,
                at: pages[index],
            };
            page(&mut at, *rows, kind, &mut values)?;
        }
        Ok(values)
    }
}

/// An element of the schema; the first one is the table itself.
fn schema(at: &mut Place<'_>, kind: u8) -> Result<Option<Column>, ReadError> {
    at.expect(kind, STRUCT)?;
    let (mut stored, mut name, mut children) = (None, String::new(), false);
    at.fields(|at, field, kind| {
        match field {
            1 => stored = Some(at.integer(kind)?),
            4 => name = at.text(kind)?.into_owned(),
            5 => children = at.integer(kind)? > 0,
            _ => at.skip(kind, DEPTH)?,
        }
        Ok(())
    })?;
    let kind = match stored {
        None if children => return Ok(None),
        Some(INT64) => Kind::Integer,
        Some(DOUBLE) => Kind::Number,
        Some(BYTE_ARRAY) => Kind::Text,
        _ => return Err(at.refuse("a column of another type than int64, double and utf8")),
    };
    Ok(Some(Column::new(name, kind)))
}

fn row_group(at: &mut Place<'_>, kind: u8) -> Result<(usize, Vec<usize>), ReadError> {
    at.expect(kind, STRUCT)?;
    let (mut rows, mut pages) = (0, Vec::new());
    at.fields(|at, field, kind| match field {
        1 => at.list(kind, |at, kind| {
            at.expect(kind, STRUCT)?;
            at.fields(|at, field, kind| match field {
                3 => {
                    at.expect(kind, STRUCT)?;
                    at.fields(|at, field, kind| match field {
                        4 if at.integer(kind)? != 0 => Err(at.refuse("compressed values")),
                        4 => Ok(()),
                        9 => {
                            pages.push(at.integer(kind)? as usize);
                            Ok(())
                        }
                        _ => at.skip(kind, DEPTH),
                    })
                }
                _ => at.skip(kind, DEPTH),
            })
        }),
        3 => {
            rows = at.integer(kind)? as usize;
            Ok(())
        }
        _ => at.skip(kind, DEPTH),
    })?;
    Ok((rows, pages))
}

/// Appends the values of a page with so many rows.
fn page<'a>(
    at: &mut Place<'a>,
    rows: usize,
    kind: Kind,
    values: &mut Vec<Cell<'a>>,
) -> Result<(), ReadError> {
    let mut plain = false;
    at.fields(|at, field, kind| match field {
        5 => {
            at.expect(kind, STRUCT)?;
            at.fields(|at, field, kind| match field {
                1 if at.integer(kind)? as usize != rows => Err(at.refuse("another number of rows")),
                2 => {
                    plain = at.integer(kind)? == 0;
                    Ok(())
                }
                1 => Ok(()),
                _ => at.skip(kind, DEPTH),
            })
        }
        _ => at.skip(kind, DEPTH),
    })?;
    let length = at.take(4)?.first_chunk().expect("four bytes");
    let length = u32::from_le_bytes(*length) as usize;
    let mut levels = Place {
        bytes: at.take(length)?,
        at: 0,
    };
    let run = levels.number();
    if !plain || run != Ok((rows.div_ceil(8) as u64) << 1 | 1) {
        return Err(at.refuse("values with another encoding than ours"));
    }
    let bits = levels
        .take(rows.div_ceil(8))
        .map_err(|_| at.refuse("too few levels"))?;
    for row in 0..rows {
        let has = bits[row / 8] >> (row % 8) & 1 == 1;
        values.push(match kind {
            _ if !has => Cell::Missing,
            Kind::Integer => Cell::Integer(i64::from_le_bytes(at.eight()?)),
            Kind::Number => Cell::Number(f64::from_le_bytes(at.eight()?)),
            Kind::Text => {
                let length = at.take(4)?.first_chunk().expect("four bytes");
                Cell::Text(at.utf8(u32::from_le_bytes(*length) as usize)?)
            }
        });
    }
    Ok(())
}

/// A place in the bytes, and thrift's compact protocol from there on.
#[derive(Debug)]
struct Place<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Place<'a> {
    fn refuse(&self, what: &'static str) -> ReadError {
        let byte = self.at;
        ReadError { byte, what }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.refuse("the file ends too early"))?;
        self.at += count;
        Ok(taken)
    }

    fn eight(&mut self) -> Result<[u8; 8], ReadError> {
        Ok(*self.take(8)?.first_chunk().expect("eight bytes"))
    }

    fn number(&mut self) -> Result<u64, ReadError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.refuse("a number of more than ten bytes"))
    }

    fn expect(&self, kind: u8, expected: u8) -> Result<(), ReadError> {
        match kind == expected {
            true => Ok(()),
            false => Err(self.refuse("a field of another type")),
        }
    }

    fn integer(&mut self, kind: u8) -> Result<i64, ReadError> {
        if kind != INTEGER {
            self.expect(kind, INTEGER_32)?;
        }
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn utf8(&mut self, length: usize) -> Result<Cow<'a, str>, ReadError> {
        let text = std::str::from_utf8(self.take(length)?);
        text.map(Cow::Borrowed)
            .map_err(|_| self.refuse("a text that is no UTF-8"))
    }

    fn text(&mut self, kind: u8) -> Result<Cow<'a, str>, ReadError> {
        self.expect(kind, BINARY)?;
        let length = self.number()? as usize;
        self.utf8(length)
    }

    /// Calls `each` at the value of each field of a struct, with its number and type.
    fn fields(
        &mut self,
        mut each: impl FnMut(&mut Self, i16, u8) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let mut field = 0_i16;
        loop {
            let head = self.take(1)?[0];
            if head == 0 {
                return Ok(());
            }
            let next = match head >> 4 {
                0 => Some(self.integer(INTEGER)? as i16),
                more => field.checked_add(more.into()),
            };
            field = next.ok_or_else(|| self.refuse("a field without a number"))?;
            each(self, field, head & 0xf)?;
        }
    }

    fn list(
        &mut self,
        kind: u8,
        mut each: impl FnMut(&mut Self, u8) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        self.expect(kind, LIST)?;
        let head = self.take(1)?[0];
        let count = match head >> 4 {
            15 => self.number()?,
            count => count.into(),
        };
        (0..count).try_for_each(|_| each(self, head & 0xf))
    }

    /// Passes over a value; `depth` bounds structs in structs.
    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), ReadError> {
        let depth = depth.checked_sub(1);
        let depth = depth.ok_or_else(|| self.refuse("too many structs in each other"))?;
        match kind {
            // True and false have no bytes.
            1 | 2 => {}
            3 => drop(self.take(1)?),
            4..=INTEGER => drop(self.number()?),
            7 => drop(self.eight()?),
            BINARY => drop(self.text(kind)?),
            // In a list they have one.
            LIST => self.list(kind, |at, kind| match kind {
                1 | 2 => at.take(1).map(drop),
                _ => at.skip(kind, depth),
            })?,
            STRUCT => self.fields(|at, _, kind| at.skip(kind, depth))?,
            _ => return Err(self.refuse("an unknown type")),
        }
        Ok(())
    }
}
