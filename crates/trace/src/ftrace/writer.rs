//! Writes a trace as `/sys/kernel/tracing/trace` shows it: one file, all CPUs merged by time.
//!
//! The file appears under its name only when it is complete. Not a recorder: the caller passes the
//! events of each CPU in the order of time, and the time up to which all of them are there.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use blkmq::time::SimTime;

use super::{HEADER, Record};
use crate::{Error, Result};

/// A trace being written. Dropped without [`Writer::finish`] it leaves nothing.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    partial: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    /// Events that others may still come before.
    waiting: Vec<Record>,
    finished: bool,
}

impl Writer {
    /// Starts `file`, in a directory that exists.
    pub fn create(file: &Path) -> Result<Writer> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let partial = file.with_file_name(format!(".{name}.partial"));
        let made = File::create(&partial).map_err(|source| Error::io(&partial, 0, source))?;
        let mut writer = Writer {
            path: file.to_path_buf(),
            partial,
            file: BufWriter::with_capacity(1 << 16, made),
            offset: 0,
            waiting: Vec::new(),
            finished: false,
        };
        writer.text(HEADER)?;
        Ok(writer)
    }

    pub fn write(&mut self, record: Record) {
        self.waiting.push(record);
    }

    /// No event before `until` comes any more: writes those that there are.
    pub fn settle(&mut self, until: SimTime) -> Result<()> {
        self.waiting.sort_by_key(|record| record.at);
        let count = self.waiting.partition_point(|record| record.at < until);
        let mut waiting = std::mem::take(&mut self.waiting);
        for record in waiting.drain(..count) {
            self.text(&format!("{record}\n"))?;
        }
        self.waiting = waiting;
        Ok(())
    }

    /// Writes everything, so that only the name is missing.
    pub fn flush(&mut self) -> Result<()> {
        self.settle(SimTime::NEVER)?;
        let io = |source| Error::io(&self.partial, self.offset, source);
        self.file.flush().map_err(io)
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        std::fs::rename(&self.partial, &self.path)
            .map_err(|source| Error::io(&self.path, 0, source))?;
        self.finished = true;
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<()> {
        let io = |source| Error::io(&self.partial, self.offset, source);
        self.file.write_all(text.as_bytes()).map_err(io)?;
        self.offset += text.len() as u64;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing more can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}
