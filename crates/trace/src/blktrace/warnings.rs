//! Damage that a capture can live with: counted by kind, the first of each with its place.
//!
//! Not errors (`crate::Error`): the events that are left still have their meaning.

use std::fmt;
use std::path::{Path, PathBuf};

use super::event::Location;
use crate::{Error, Result};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Warning {
    /// A file ends inside a record.
    TruncatedRecord,
    /// Event numbers of a CPU do not continue; counts the missing events.
    SequenceGap,
    /// The kernel had no room for events, by the count in blktrace.log.
    Dropped,
    /// A CPU that should have a file has none.
    MissingCpu,
    /// Time goes back by less than 1 ms within one file.
    TimeBackwards,
    /// A line of an I/O whose direction is not there.
    LeftOut,
    /// An offset or a size that is no multiple of 512: its sectors are rounded down.
    NoWholeSectors,
    /// `wait` of a fio iolog v2: its documentation and its code disagree about the unit.
    AmbiguousWait,
    /// The rest of a damaged file was left out because the caller asked for that.
    Salvaged,
    /// A bio that never completed.
    QueueWithoutComplete,
    /// A completion of something that was never queued.
    CompleteWithoutQueue,
    /// Two I/Os fit one event equally well.
    AmbiguousMatch,
    /// More unfinished I/Os than the matcher keeps; the oldest was dropped.
    TooManyUnfinished,
}

impl Warning {
    /// All kinds, in the order of a report.
    pub const ALL: [Warning; 13] = [
        Warning::TruncatedRecord,
        Warning::SequenceGap,
        Warning::Dropped,
        Warning::MissingCpu,
        Warning::TimeBackwards,
        Warning::LeftOut,
        Warning::NoWholeSectors,
        Warning::AmbiguousWait,
        Warning::Salvaged,
        Warning::QueueWithoutComplete,
        Warning::CompleteWithoutQueue,
        Warning::AmbiguousMatch,
        Warning::TooManyUnfinished,
    ];

    /// A few words for a report.
    pub fn text(self) -> &'static str {
        match self {
            Warning::TruncatedRecord => "truncated last record",
            Warning::SequenceGap => "events missing in a CPU's sequence",
            Warning::Dropped => "events dropped by the kernel",
            Warning::MissingCpu => "CPU number without a file",
            Warning::TimeBackwards => "time goes backwards",
            Warning::LeftOut => "line without a direction left out",
            Warning::NoWholeSectors => {
                "offset or size that is no multiple of 512, its sectors rounded down"
            }
            Warning::AmbiguousWait => {
                "`wait` taken for milliseconds since the start, as fio does; its manual has \
                 microseconds since the last one"
            }
            Warning::Salvaged => "rest of a damaged file left out",
            Warning::QueueWithoutComplete => "Q without C",
            Warning::CompleteWithoutQueue => "C without Q",
            Warning::AmbiguousMatch => "ambiguous match",
            Warning::TooManyUnfinished => "too many unfinished I/Os, oldest dropped",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// One kind that did occur.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub warning: Warning,
    /// How often. Never zero.
    pub count: u64,
    /// File of the first one.
    pub file: PathBuf,
    /// Byte offset of the first one, after decompression.
    pub offset: u64,
    /// Of CPUs without a file: which they are, and what shows it.
    pub detail: Option<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row {
            warning,
            count,
            file,
            offset,
            detail,
        } = self;
        if let Some(detail) = detail {
            return f.write_str(detail);
        }
        write!(
            f,
            "{count} x {warning}, first in {} at byte {offset}",
            file.display()
        )
    }
}

/// Counts of all kinds, with the place of the first of each.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Warnings {
    counts: [u64; Warning::ALL.len()],
    first: [Location; Warning::ALL.len()],
    missing: Vec<String>,
}

impl Warnings {
    /// Counts `times` more of a kind. Nothing happens for zero.
    #[inline]
    pub(crate) fn add(&mut self, warning: Warning, times: u64, location: Location) {
        let at = warning as usize;
        if self.counts[at] == 0 {
            self.first[at] = location;
        }
        self.counts[at] += times;
    }

    /// Counts CPUs without a file, with the sentence that a report has.
    pub(crate) fn add_missing(&mut self, cpus: u64, sentence: String, location: Location) {
        self.add(Warning::MissingCpu, cpus, location);
        self.missing.push(sentence);
    }

    pub fn count(&self, warning: Warning) -> u64 {
        self.counts[warning as usize]
    }

    /// Place of the first of a kind, if there was one.
    pub fn first(&self, warning: Warning) -> Option<Location> {
        (self.count(warning) > 0).then_some(self.first[warning as usize])
    }

    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// Adds the warnings of another part of the reading over the same files.
    pub fn merge(&mut self, other: &Warnings) {
        for warning in Warning::ALL {
            if let Some(location) = other.first(warning) {
                self.add(warning, other.count(warning), location);
            }
        }
        self.missing.extend_from_slice(&other.missing);
    }

    /// The kinds that did occur, with the files by name. Panics if `files` is another reader's.
    pub fn rows(&self, files: &[PathBuf]) -> Vec<Row> {
        let row = |warning| {
            let location = self.first(warning)?;
            Some(Row {
                warning,
                count: self.count(warning),
                file: files[location.file()].clone(),
                offset: location.offset(),
                detail: (warning == Warning::MissingCpu).then(|| self.missing.join("; ")),
            })
        };
        Warning::ALL.into_iter().filter_map(row).collect()
    }

    /// An error for the first kind that occurred, if any: the mode `strict`.
    pub fn refuse(&self, files: &[PathBuf]) -> Result<()> {
        match self.rows(files).first() {
            None => Ok(()),
            Some(row) => Err(strict_error(row.warning, &row.file, row.offset)),
        }
    }
}

/// The error that a warning becomes under `strict`.
pub(super) fn strict_error(warning: Warning, file: &Path, offset: u64) -> Error {
    Error::binary(
        file,
        offset,
        format!("{warning}; an error because of strict"),
    )
}
