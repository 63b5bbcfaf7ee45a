//! Texts that are read as events: which there are, and how each is recognised.
//!
//! A format is a parser that turns one line into events (`lines::Out`). Formats that know an I/O
//! only by its completion give its submission out of order; the reader sorts. Binary records are
//! `stream`'s.

use std::fmt;
use std::str::FromStr;

mod biosnoop;
mod blkparse_text;
mod io_csv;
mod iolog;
mod trace_text;

use super::bytes::Bytes;
use super::lines::Out;
use crate::ftrace::fields::{Malformed, number_wanted};
use crate::{Error, Result};
use blkparse_text::{BlkparseText, Columns};
use trace_text::TraceText;

/// Bytes at the beginning of a text that decide its format.
const HEAD: usize = 16 << 10;
/// UTF-8's, which programs of Windows put at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Characters of a wrong field that an error shows.
const SHOWN: usize = 60;

/// A line that cannot be understood.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) field: &'static str,
    /// What it has, and what would be right.
    pub(crate) what: String,
}

impl Bad {
    pub(crate) fn new(field: &'static str, found: &str, want: &str) -> Bad {
        let what = match found.chars().nth(SHOWN) {
            _ if found.is_empty() => format!("nothing, expected {want}"),
            Some(_) => {
                let first: String = found.chars().take(SHOWN).collect();
                format!("`{}...`, expected {want}", first.escape_debug())
            }
            None => format!("`{}`, expected {want}", found.escape_debug()),
        };
        Bad { field, what }
    }
}

impl From<Malformed> for Bad {
    fn from(bad: Malformed) -> Bad {
        Bad::new(bad.field, &bad.found, bad.want)
    }
}

pub(crate) fn number<T: FromStr>(field: &'static str, text: &str) -> Parsed<T> {
    text.parse()
        .map_err(|_| Bad::new(field, text, number_wanted(text)))
}

pub(crate) type Parsed<T> = std::result::Result<T, Bad>;

/// Turns the lines of a text into events.
pub(crate) trait Parser: fmt::Debug {
    /// One line that is not blank, without its end.
    fn line(&mut self, line: &str, out: &mut Out<'_>) -> Parsed<()>;

    /// What the format does not have, as a sentence.
    fn lacks(&self) -> String;
}

/// A row of the table.
struct Known {
    name: &'static str,
    /// Whether a text that begins with these lines is of this format.
    begins: fn(&[&str]) -> bool,
    parser: fn() -> Box<dyn Parser>,
}

/// All formats of text. The first one that a text fits is taken.
const KNOWN: [Known; 6] = [
    Known {
        name: "iolog",
        begins: iolog::begins,
        parser: || Box::new(iolog::Iolog::default()),
    },
    Known {
        name: "ftrace",
        begins: TraceText::begins,
        parser: || Box::new(TraceText::default()),
    },
    Known {
        name: "biosnoop",
        begins: biosnoop::begins,
        parser: || Box::new(biosnoop::Biosnoop::default()),
    },
    Known {
        name: "msr",
        begins: io_csv::begins_msr,
        parser: || Box::new(io_csv::Msr),
    },
    Known {
        name: "systor",
        begins: io_csv::begins_systor,
        parser: || Box::new(io_csv::Systor),
    },
    Known {
        name: "blkparse",
        begins: BlkparseText::begins,
        parser: || Box::new(BlkparseText::default()),
    },
];

/// Name of the binary records.
const RECORDS: &str = "blktrace";

/// A format that a user names: `blktrace`, `blkparse`, `blkparse:SPEC`, `ftrace`, ...
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    name: String,
    /// Of `blkparse -f SPEC`.
    columns: Option<Columns>,
}

impl Format {
    /// All names, as a user writes them.
    pub fn names() -> String {
        let texts = KNOWN.map(|known| known.name).join(", ");
        format!("{RECORDS}, {texts}, blkparse:SPEC")
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Format, String> {
        let (name, spec) = match text.split_once(':') {
            Some((name, spec)) => (name, Some(spec)),
            None => (text, None),
        };
        if name != RECORDS && KNOWN.iter().all(|known| known.name != name) {
            return Err(format!("expected one of {}", Format::names()));
        }
        if spec.is_some() && name != "blkparse" {
            return Err(format!("{name} takes no `:SPEC`, only blkparse does"));
        }
        Ok(Format {
            name: name.to_owned(),
            columns: spec.map(Columns::new).transpose()?,
        })
    }
}

/// First bytes of files that are often given instead of a text, what they are, and what to do.
const OTHERS: [(&[u8], &str); 10] = [
    (
        b"PERFILE2",
        "perf.data, which is binary; `perf script -i FILE` prints its text",
    ),
    (
        b"\x17\x08\x44tracing",
        "trace.dat of trace-cmd, which is binary; `trace-cmd report FILE` prints its text",
    ),
    (b"\xd4\xc3\xb2\xa1", PCAP),
    (b"\xa1\xb2\xc3\xd4", PCAP),
    (b"\x0a\x0d\x0d\x0a", PCAP),
    (b"\xff\xfe", UTF16),
    (b"\xfe\xff", UTF16),
    (b"\x1f\x8b", "gzip data in compressed data; unpack it once"),
    (b"\xfd7zXZ\0", "xz data in compressed data; unpack it once"),
    (
        b"\x28\xb5\x2f\xfd",
        "zstd data in compressed data; unpack it once",
    ),
];
const PCAP: &str = "a capture of a network, which has no block I/O";
const UTF16: &str = "text in UTF-16; `iconv -f UTF-16 -t UTF-8 FILE` makes UTF-8 of it";

/// What a file is that no format begins like, if that is known, and what makes a text of it.
pub fn other_kind(first: &[u8]) -> Option<&'static str> {
    let known = OTHERS.iter().find(|(begin, _)| first.starts_with(begin));
    known.map(|(_, what)| *what)
}

/// The parser of a file, by its first bytes or the format that is forced; nothing for records.
pub(crate) fn of(bytes: &mut Bytes, forced: Option<&Format>) -> Result<Option<Box<dyn Parser>>> {
    if bytes.want(BYTE_ORDER_MARK.len()).is_ok() && bytes.have().starts_with(BYTE_ORDER_MARK) {
        bytes.skip(BYTE_ORDER_MARK.len());
    }
    let first = bytes.want(16).is_ok();
    if let Some(what) = other_kind(bytes.have()).filter(|_| first) {
        return Err(Error::input(bytes.path(), format!("is {what}")));
    }
    if let Some(Format { name, columns }) = forced {
        let known = KNOWN.iter().find(|known| known.name == *name);
        return Ok(match (columns, known) {
            (Some(columns), _) => Some(Box::new(BlkparseText::of(columns.clone()))),
            (None, Some(known)) => Some((known.parser)()),
            (None, None) => None,
        });
    }
    // Damage of the compression is found again where the file is read.
    if bytes.want(4).is_err() || bytes.have().is_empty() || bytes.are_records() {
        return Ok(None);
    }
    let damage = bytes.want(HEAD);
    let have = bytes.have();
    let text = String::from_utf8_lossy(&have[..have.len().min(HEAD)]);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    for known in &KNOWN {
        if (known.begins)(&lines) {
            return Ok(Some((known.parser)()));
        }
    }
    damage?;
    let what = format!(
        "none of the formats that are read, by its first bytes; --format names one of them: {}",
        Format::names()
    );
    Err(Error::input(bytes.path(), what))
}
