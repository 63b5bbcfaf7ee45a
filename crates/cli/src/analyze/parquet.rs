//! `--parquet FILE`: a row for each bio, in the order of completions.
//!
//! Written here because the crate `parquet` has Apache's licence alone, which this program may not
//! be combined with. Plain encoding without compression, one page a column of each row group; only
//! a row group and the places of all are in memory. Read first: apache/parquet-format, README.md
//! and parquet.thrift (2.9); thrift's compact protocol.

use blkmq::time::SimTime;
use trace::direction;
use trace::matching::Io;

use crate::error::Error;
use crate::output::{OutputFile, Written};

/// Rows of a row group.
const ROWS: usize = 1 << 14;

const MAGIC: &[u8] = b"PAR1";
/// Numbers of parquet.thrift: types, and the encoding of levels.
const INT64: i64 = 2;
const BYTE_ARRAY: i64 = 6;
const RLE: i64 = 3;
/// Types of the compact protocol.
const INTEGER: u8 = 6;
const INTEGER_32: u8 = 5;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Columns with numbers, and what a row has in them. Times are ns after the first event.
const NUMBERS: [&str; 13] = [
    "queued_ns",
    "got_request_ns",
    "merged_ns",
    "inserted_ns",
    "issued_ns",
    "completed_ns",
    "sector",
    "bytes",
    "error",
    "pid",
    "cpu",
    "parts",
    "requeues",
];
/// Columns with texts.
const TEXTS: [&str; 4] = ["device", "process", "op", "direction"];

/// A column of the row group that is being filled; a row without a value has a bit less.
#[derive(Debug, Default)]
struct Column {
    has: Vec<bool>,
    values: Vec<u8>,
}

/// Place of a column's page, its bytes.
type Place = (u64, u64);

/// The file, as far as it is written.
#[derive(Debug)]
pub(super) struct Parquet {
    file: OutputFile,
    columns: Vec<Column>,
    offset: u64,
    /// Rows and places of each row group.
    groups: Vec<(u64, Vec<Place>)>,
}

impl Parquet {
    pub(super) fn new(file: OutputFile) -> Parquet {
        let columns = NUMBERS.iter().chain(&TEXTS).map(|_| Column::default());
        Parquet {
            file,
            columns: columns.collect(),
            offset: 0,
            groups: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        io: &Io,
        process: Option<&str>,
        genesis: SimTime,
    ) -> Result<(), Error> {
        let since = |time: Option<SimTime>| time.map(|time| time.since(genesis).0);
        let numbers = [
            since(io.queued),
            since(io.got_request),
            since(io.merged),
            since(io.inserted),
            since(io.issued),
            since(io.completed),
            Some(io.sector),
            Some(io.bytes.into()),
            io.completed.map(|_| io.error.into()),
            Some(io.pid.into()),
            Some(io.cpu.into()),
            Some(io.parts.into()),
            Some(io.requeues.into()),
        ];
        let (device, op) = (io.device.to_string(), io.rwbs());
        let texts = [
            Some(device.as_str()),
            process,
            Some(op.as_str()),
            Some(direction(io)),
        ];
        let (of_numbers, of_texts) = self.columns.split_at_mut(NUMBERS.len());
        for (column, value) in of_numbers.iter_mut().zip(numbers) {
            column.has.push(value.is_some());
            column
                .values
                .extend(value.iter().flat_map(|value| value.to_le_bytes()));
        }
        for (column, value) in of_texts.iter_mut().zip(texts) {
            column.has.push(value.is_some());
            let bytes = value.unwrap_or_default().as_bytes();
            if value.is_some() {
                column.values.extend((bytes.len() as u32).to_le_bytes());
                column.values.extend(bytes);
            }
        }
        match self.columns[0].has.len() < ROWS {
            true => Ok(()),
            false => self.end_group(),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.offset += bytes.len() as u64;
        self.file.append(bytes)
    }

    fn end_group(&mut self) -> Result<(), Error> {
        if self.groups.is_empty() {
            self.put(MAGIC)?;
        }
        let rows = self.columns[0].has.len() as u64;
        let mut places = Vec::new();
        for index in 0..self.columns.len() {
            let Column { has, values } = std::mem::take(&mut self.columns[index]);
            // Levels as one bit-packed run: 1 for a value.
            let mut levels = Thrift::default();
            levels.number((has.len().div_ceil(8) as u64) << 1 | 1);
            let bits = |bits: &[bool]| {
                let bits = bits.iter().rev();
                bits.fold(0, |all, bit| all << 1 | u8::from(*bit))
            };
            levels.bytes.extend(has.chunks(8).map(bits));
            let levels = levels.bytes;
            let size = (4 + levels.len() + values.len()) as i64;
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
            let place = self.offset;
            self.put(&header.bytes)?;
            self.put(&(levels.len() as u32).to_le_bytes())?;
            self.put(&levels)?;
            self.put(&values)?;
            places.push((place, self.offset - place));
        }
        self.groups.push((rows, places));
        Ok(())
    }

    /// The last rows and the footer.
    pub(super) fn finish(mut self) -> Result<Written, Error> {
        if self.groups.is_empty() || !self.columns[0].has.is_empty() {
            self.end_group()?;
        }
        let mut footer = Thrift::default();
        footer.integer(1, INTEGER_32, 1);
        schema(&mut footer);
        let rows: u64 = self.groups.iter().map(|(rows, _)| rows).sum();
        footer.integer(3, INTEGER, rows as i64);
        footer.list(4, STRUCT, self.groups.len());
        for (rows, places) in &self.groups {
            row_group(&mut footer, *rows, places);
        }
        footer.text(6, concat!("blksim ", env!("CARGO_PKG_VERSION")));
        footer.end();
        let length = (footer.bytes.len() as u32).to_le_bytes();
        self.put(&footer.bytes)?;
        self.put(&length)?;
        self.put(MAGIC)?;
        self.file.put("")
    }
}

fn columns() -> impl Iterator<Item = (&'static str, i64)> {
    let numbers = NUMBERS.into_iter().map(|name| (name, INT64));
    numbers.chain(TEXTS.into_iter().map(|name| (name, BYTE_ARRAY)))
}

fn schema(footer: &mut Thrift) {
    let count = NUMBERS.len() + TEXTS.len();
    footer.list(2, STRUCT, count + 1);
    footer.element();
    footer.text(4, "bios");
    footer.integer(5, INTEGER_32, count as i64);
    footer.end();
    for (name, kind) in columns() {
        footer.element();
        footer.integer(1, INTEGER_32, kind);
        // Optional.
        footer.integer(3, INTEGER_32, 1);
        footer.text(4, name);
        if kind == BYTE_ARRAY {
            // UTF8.
            footer.integer(6, INTEGER_32, 0);
        }
        footer.end();
    }
}

fn row_group(footer: &mut Thrift, rows: u64, places: &[Place]) {
    footer.element();
    footer.list(1, STRUCT, places.len());
    for ((name, kind), (offset, size)) in columns().zip(places) {
        footer.element();
        footer.integer(2, INTEGER, *offset as i64);
        footer.begin(3);
        footer.integer(1, INTEGER_32, kind);
        footer.list(2, INTEGER_32, 2);
        footer.number(0);
        footer.number(zigzag(RLE));
        footer.list(3, BINARY, 1);
        footer.string(name);
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
