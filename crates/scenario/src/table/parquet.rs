//! Tables as Parquet: written whole, and read again.
//!
//! Written here because the crate `parquet` has Apache's licence alone, which this program may not
//! be combined with. Plain encoding without compression, one page a column of each row group; only
//! a row group and the places of all are in memory. Read first: apache/parquet-format, README.md
//! and parquet.thrift (2.9); thrift's compact protocol.

mod read;

pub use read::{Parquet as Read, ReadError};

use super::{Cell, Column, Kind};

/// Rows of a row group.
const ROWS: usize = 1 << 14;

const MAGIC: &[u8] = b"PAR1";
/// Numbers of parquet.thrift: types, and the encoding of levels.
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const RLE: i64 = 3;
/// Types of the compact protocol.
const INTEGER: u8 = 6;
const INTEGER_32: u8 = 5;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A column of the row group that is being filled; a row without a value has a bit less.
#[derive(Debug, Default)]
struct Values {
    has: Vec<bool>,
    bytes: Vec<u8>,
}

/// Place of a column's page, its bytes.
type Place = (u64, u64);

/// A file, as far as it is written.
#[derive(Debug)]
pub struct Parquet {
    columns: Vec<Column>,
    values: Vec<Values>,
    /// Bytes that are done and not yet handed out, after so many that are.
    done: Vec<u8>,
    offset: u64,
    /// Rows and places of each row group.
    groups: Vec<(u64, Vec<Place>)>,
}

impl Parquet {
    pub fn new(columns: Vec<Column>) -> Parquet {
        Parquet {
            values: columns.iter().map(|_| Values::default()).collect(),
            columns,
            done: MAGIC.to_vec(),
            offset: 0,
            groups: Vec::new(),
        }
    }

    /// Appends a row. The bytes are the next ones of the file, mostly none. Panics if the cells do
    /// not fit the columns.
    pub fn add(&mut self, row: &[Cell<'_>]) -> Vec<u8> {
        assert_eq!(row.len(), self.columns.len(), "a cell for each column");
        for ((column, values), cell) in self.columns.iter().zip(&mut self.values).zip(row) {
            assert!(cell.fits(column.kind), "{cell:?} in column {}", column.name);
            values.has.push(*cell != Cell::Missing);
            match cell {
                Cell::Missing => {}
                Cell::Integer(value) if column.kind == Kind::Integer => {
                    values.bytes.extend(value.to_le_bytes());
                }
                Cell::Integer(value) => values.bytes.extend((*value as f64).to_le_bytes()),
                Cell::Number(value) => values.bytes.extend(value.to_le_bytes()),
                Cell::Text(text) => {
                    values.bytes.extend((text.len() as u32).to_le_bytes());
                    values.bytes.extend(text.as_bytes());
                }
            }
        }
        if self.values[0].has.len() == ROWS {
            self.end_group();
        }
        self.hand_out()
    }

    fn hand_out(&mut self) -> Vec<u8> {
        self.offset += self.done.len() as u64;
        std::mem::take(&mut self.done)
    }

    fn end_group(&mut self) {
        let rows = self.values[0].has.len() as u64;
        let mut places = Vec::new();
        for values in &mut self.values {
            let Values { has, bytes } = std::mem::take(values);
            // Levels as one bit-packed run: 1 for a value.
            let mut levels = Thrift::default();
            levels.number((has.len().div_ceil(8) as u64) << 1 | 1);
            let bits = |bits: &[bool]| {
                let bits = bits.iter().rev();
                bits.fold(0, |all, bit| all << 1 | u8::from(*bit))
            };
            levels.bytes.extend(has.chunks(8).map(bits));
            let levels = levels.bytes;
            let size = (4 + levels.len() + bytes.len()) as i64;
            let mut header = Thrift::default();
            for (field, value) in [(1, 0), (2, size), (3, size)] {
                header.integer(field, INTEGER_32, value);
            }
            header.begin(5);
            for (field, value) in [(1, rows as i64), (2, 0), (3, RLE), (4, RLE)] {
                header.integer(field, INTEGER_32, value);
            }
            header.end();
            header.end();
            let place = self.offset + self.done.len() as u64;
            self.done.extend(&header.bytes);
            self.done.extend((levels.len() as u32).to_le_bytes());
            self.done.extend(&levels);
            self.done.extend(&bytes);
            let end = self.offset + self.done.len() as u64;
            places.push((place, end - place));
        }
        self.groups.push((rows, places));
    }

    /// The last bytes of the file: the last rows and the footer.
    pub fn finish(mut self) -> Vec<u8> {
        if self.groups.is_empty() || !self.values[0].has.is_empty() {
            self.end_group();
        }
        let mut footer = Thrift::default();
        footer.integer(1, INTEGER_32, 1);
        schema(&mut footer, &self.columns);
        let rows: u64 = self.groups.iter().map(|(rows, _)| rows).sum();
        footer.integer(3, INTEGER, rows as i64);
        footer.list(4, STRUCT, self.groups.len());
        for (rows, places) in &self.groups {
            row_group(&mut footer, &self.columns, *rows, places);
        }
        footer.text(6, concat!("blksim ", env!("CARGO_PKG_VERSION")));
        footer.end();
        let length = (footer.bytes.len() as u32).to_le_bytes();
        self.done.extend(&footer.bytes);
        self.done.extend(length);
        self.done.extend(MAGIC);
        self.hand_out()
    }
}

/// As parquet.thrift numbers it.
fn number_of(kind: Kind) -> i64 {
    match kind {
        Kind::Integer => INT64,
        Kind::Number => DOUBLE,
        Kind::Text => BYTE_ARRAY,
    }
}

fn schema(footer: &mut Thrift, columns: &[Column]) {
    footer.list(2, STRUCT, columns.len() + 1);
    footer.element();
    footer.text(4, "rows");
    footer.integer(5, INTEGER_32, columns.len() as i64);
    footer.end();
    for column in columns {
        footer.element();
        footer.integer(1, INTEGER_32, number_of(column.kind));
        // Optional.
        footer.integer(3, INTEGER_32, 1);
        footer.text(4, &column.name);
        if column.kind == Kind::Text {
            // UTF8.
            footer.integer(6, INTEGER_32, 0);
        }
        footer.end();
    }
}

fn row_group(footer: &mut Thrift, columns: &[Column], rows: u64, places: &[Place]) {
    footer.element();
    footer.list(1, STRUCT, places.len());
    for (column, (offset, size)) in columns.iter().zip(places) {
        footer.element();
        footer.integer(2, INTEGER, *offset as i64);
        footer.begin(3);
        footer.integer(1, INTEGER_32, number_of(column.kind));
        footer.list(2, INTEGER_32, 2);
        footer.number(0);
        footer.number(zigzag(RLE));
        footer.list(3, BINARY, 1);
        footer.string(&column.name);
        footer.integer(4, INTEGER_32, 0);
        footer.integer(5, INTEGER, rows as i64);
        footer.integer(6, INTEGER, *size as i64);
        footer.integer(7, INTEGER, *size as i64);
        footer.integer(9, INTEGER, *offset as i64);
        footer.end();
        footer.end();
    }
    let size: u64 = places.iter().map(|(_, size)| size).sum();
    footer.integer(2, INTEGER, size as i64);
    footer.integer(3, INTEGER, rows as i64);
    footer.end();
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Structs in thrift's compact protocol: the outermost one is open from the start.
#[derive(Debug, Default)]
struct Thrift {
    bytes: Vec<u8>,
    /// Last field of the innermost open struct, and of those around it.
    last: u8,
    around: Vec<u8>,
}

impl Thrift {
    fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn field(&mut self, field: u8, kind: u8) {
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    fn integer(&mut self, field: u8, kind: u8, value: i64) {
        self.field(field, kind);
        self.number(zigzag(value));
    }

    fn string(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn text(&mut self, field: u8, text: &str) {
        self.field(field, BINARY);
        self.string(text);
    }

    fn list(&mut self, field: u8, kind: u8, count: usize) {
        self.field(field, LIST);
        match count {
            0..15 => self.bytes.push((count as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                self.number(count as u64);
            }
        }
    }

    /// A struct that is an element of a list.
    fn element(&mut self) {
        self.around.push(std::mem::take(&mut self.last));
    }

    fn begin(&mut self, field: u8) {
        self.field(field, STRUCT);
        self.element();
    }

    fn end(&mut self) {
        self.bytes.push(0);
        self.last = self.around.pop().unwrap_or_default();
    }
}
