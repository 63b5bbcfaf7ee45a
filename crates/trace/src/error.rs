//! The one error type of the crate.
//!
//! Damage that a reader can live with is not here: see the counted warnings of each reader.

use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// Why an input cannot be used. Every variant names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A binary file is damaged or has wrong content.
    #[error("{}: byte {offset}: {what}", .file.display())]
    Binary {
        /// File as it was named by the caller.
        file: PathBuf,
        /// Offset of the record in question, after decompression.
        offset: u64,
        /// The problem, and the expected form.
        what: String,
    },
    /// A line of a text file cannot be understood.
    #[error("{}:{line}: {field}: {what}", .file.display())]
    Text {
        /// File as it was named by the caller.
        file: PathBuf,
        /// Line number, first line 1.
        line: u64,
        field: String,
        /// The problem, and the expected form.
        what: String,
    },
    /// The operating system or a decompressor refuses.
    #[error("{}: byte {offset}: {source}", .file.display())]
    Io {
        /// File as it was named by the caller.
        file: PathBuf,
        /// Bytes (after decompression) that were read or written before.
        offset: u64,
        source: std::io::Error,
    },
    /// Options of fio's jobs that are wrong or not modelled, a line of the text for each.
    #[error("{0}")]
    Jobs(crate::fio::Problems),
    /// The set of files makes no sense, though each of them may.
    #[error("{}: {what}", .path.display())]
    Input {
        /// The directory or file in question.
        path: PathBuf,
        /// The problem, and the expected form.
        what: String,
    },
}

impl Error {
    /// Damage in a binary file at a byte offset.
    pub fn binary(file: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Binary {
            file: file.to_path_buf(),
            offset,
            what: what.into(),
        }
    }

    /// A line that cannot be understood. `line` counts from 1.
    pub fn text(file: &Path, line: u64, field: &str, what: impl Into<String>) -> Error {
        Error::Text {
            file: file.to_path_buf(),
            line,
            field: field.to_string(),
            what: what.into(),
        }
    }

    /// A refusal of the operating system or of a decompressor.
    pub fn io(file: &Path, offset: u64, source: std::io::Error) -> Error {
        Error::Io {
            file: file.to_path_buf(),
            offset,
            source,
        }
    }

    /// A set of files that makes no sense.
    pub fn input(path: &Path, what: impl Into<String>) -> Error {
        Error::Input {
            path: path.to_path_buf(),
            what: what.into(),
        }
    }
}
