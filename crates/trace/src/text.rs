//! Lines of a text file, with their numbers; compressed files are unpacked on the way.
//!
//! Streaming: a line is held, never the file. Bytes that are no UTF-8 (task names can hold any)
//! are replaced, not refused.

use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::packed::Packed;
use crate::{Error, Result};

/// A line longer than this is no text of ours, bytes.
const LINE_MAX: u64 = 1 << 20;

/// Reads a text line by line and counts the lines.
pub struct Lines {
    file: PathBuf,
    reader: Box<dyn BufRead>,
    number: u64,
    offset: u64,
    bytes: Vec<u8>,
    text: String,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines")
            .field("file", &self.file)
            .field("line", &self.number)
            .finish_non_exhaustive()
    }
}

impl Lines {
    /// Opens a file, compressed or not.
    pub fn open(file: &Path) -> Result<Lines> {
        let reader = Packed::open(file).map_err(|e| Error::io(file, 0, e))?;
        Ok(Lines::new(
            file,
            Box::new(BufReader::with_capacity(1 << 16, reader)),
        ))
    }

    /// Reads from memory or a pipe; `file` is only the name used in errors.
    pub fn new(file: &Path, reader: Box<dyn BufRead>) -> Lines {
        Lines {
            file: file.to_path_buf(),
            reader,
            number: 0,
            offset: 0,
            bytes: Vec::new(),
            text: String::new(),
        }
    }

    /// Steps to the next line; false at the end.
    pub fn advance(&mut self) -> Result<bool> {
        self.bytes.clear();
        let n = io::Read::take(&mut self.reader, LINE_MAX)
            .read_until(b'\n', &mut self.bytes)
            .map_err(|e| Error::io(&self.file, self.offset, e))? as u64;
        if n == 0 {
            return Ok(false);
        }
        self.number += 1;
        self.offset += n;
        if n == LINE_MAX && self.bytes.last() != Some(&b'\n') {
            return Err(self.error("line", "longer than 1 MiB; is this a text file?"));
        }
        while matches!(self.bytes.last(), Some(b'\n' | b'\r')) {
            self.bytes.pop();
        }
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.bytes));
        Ok(true)
    }

    /// The line last stepped to, without its end.
    pub fn line(&self) -> &str {
        &self.text
    }

    /// Number of that line, first line 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// An error about that line.
    pub fn error(&self, field: &str, what: impl Into<String>) -> Error {
        Error::text(&self.file, self.number, field, what)
    }
}

#[cfg(test)]
mod tests;
