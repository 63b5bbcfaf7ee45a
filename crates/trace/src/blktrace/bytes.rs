//! Reads one file through one large buffer: records in place, or lines.
//!
//! Neither is parsed here; `packed` undoes the compression.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::record::{self, Magic};
use crate::packed::Packed;
use crate::{Error, Result};

/// Bytes read at once: a few system calls per thousand records, and it stays in the L2 cache. No
/// record and no line is longer.
const BUFFER: usize = 256 << 10;

/// A window onto the file's (decompressed) bytes.
pub(crate) struct Bytes {
    source: Packed,
    path: PathBuf,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the file.
    offset: u64,
    ended: bool,
    /// Damage after `buffer[end]`: its offset in the file, kind and text. Every call that wants
    /// bytes from there reports it.
    damage: Option<(u64, ErrorKind, String)>,
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytes")
            .field("path", &self.path)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Bytes {
    /// Opens a file; reads nothing but its first bytes.
    pub(crate) fn open(path: &Path) -> Result<Bytes> {
        let source = Packed::open(path).map_err(|source| match source.kind() {
            ErrorKind::InvalidData => Error::input(path, source.to_string()),
            _ => Error::io(path, 0, source),
        })?;
        Ok(Bytes {
            source,
            path: path.to_path_buf(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            damage: None,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Offset of the first byte of `have()`.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes in the window. May be fewer than there are in the file.
    #[inline]
    pub(crate) fn have(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Makes the window at least `count` bytes wide, or as wide as the remainder of the file.
    /// Panics if `count` is larger than the buffer.
    #[inline]
    pub(crate) fn want(&mut self, count: usize) -> Result<()> {
        if self.end - self.start < count && !self.ended {
            self.fill(count)?;
        }
        Ok(())
    }

    fn damaged(&self) -> Result<()> {
        match &self.damage {
            Some((offset, kind, text)) => {
                let source = io::Error::new(*kind, text.as_str());
                Err(Error::io(&self.path, *offset, source))
            }
            None => Ok(()),
        }
    }

    /// Whether the window begins with a record of blktrace, of whatever version.
    pub(crate) fn are_records(&self) -> bool {
        let first = self.have().first_chunk();
        first.is_some_and(|first| record::probe(*first) != Magic::None)
    }

    /// Length of the line that the window begins with, with its line feed if it has one. Zero at
    /// the end of the file, nothing for a line that is longer than the buffer.
    pub(crate) fn line(&mut self) -> Result<Option<usize>> {
        let mut searched = 0;
        loop {
            let have = self.have();
            let found = have[searched..].iter().position(|&byte| byte == b'\n');
            if let Some(at) = found {
                return Ok(Some(searched + at + 1));
            }
            searched = have.len();
            if self.ended {
                return Ok(Some(searched));
            }
            if searched == self.buffer.len() {
                return Ok(None);
            }
            self.want(searched + 1)?;
        }
    }

    /// Consumes `count` bytes, which must be in the window.
    #[inline]
    pub(crate) fn skip(&mut self, count: usize) {
        assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    #[cold]
    fn fill(&mut self, count: usize) -> Result<()> {
        assert!(
            count <= self.buffer.len(),
            "a record is smaller than the buffer"
        );
        self.damaged()?;
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < count && !self.ended {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(more) => self.end += more,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    // Bytes before the damage can still be used.
                    let offset = self.offset + self.end as u64;
                    self.damage = Some((offset, e.kind(), e.to_string()));
                    self.damaged()?;
                }
            }
        }
        Ok(())
    }
}
