//! Errors of the program: a line for each thing that is wrong, with file, line or byte, field, and
//! the expected form.

use std::path::PathBuf;

use scenario::ScenarioError;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A scenario that cannot be used. The text is the scenario's, in the words of the option.
    #[error("{0}")]
    Scenario(String),
    /// fio jobs with problems, a line each, of which so many are options that are not modelled.
    #[error("{text}")]
    Jobs { text: String, unmodelled: usize },
    /// A capture that cannot be used.
    #[error(transparent)]
    Trace(#[from] trace::Error),
    /// A capture that cannot be replayed.
    #[error(transparent)]
    Replay(#[from] scenario::replay::ReadError),
    /// A capture that cannot be compared.
    #[error(transparent)]
    Conform(#[from] conform::Error),
    /// A file that cannot be read or has wrong content.
    #[error("{}: {what}", .file.display())]
    Input {
        /// As it was named.
        file: PathBuf,
        /// The problem, and the expected form.
        what: String,
    },
    /// Arguments that do not go together, or a name that does not exist.
    #[error("{option}: {what}")]
    Usage {
        option: String,
        /// The problem, and the expected form.
        what: String,
    },
    /// An output that cannot be written.
    #[error("{file}: cannot write: {source}; nothing was changed there")]
    Output {
        /// As it was named; `standard output`.
        file: String,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// A simulated run that stalled.
    #[error("{0}")]
    Stalled(String),
    /// A scheduler in C that failed in a call.
    #[error("{0}; no output was written")]
    Scheduler(String),
    #[error("interrupted; no output was written")]
    Interrupted,
    /// A signal came while many runs were made.
    #[error("interrupted after {done} of {all} runs; no output was written")]
    InterruptedRuns { done: usize, all: usize },
    #[error("interrupted after {0} states; no output was written")]
    InterruptedSearch(u64),
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Error {
        let text = error.to_string();
        match error {
            ScenarioError::Fio(trace::Error::Jobs(problems)) if problems.unmodelled() > 0 => {
                let unmodelled = problems.unmodelled();
                Error::Jobs { text, unmodelled }
            }
            _ => Error::Scenario(text),
        }
    }
}

impl From<study::error::Error> for Error {
    fn from(error: study::error::Error) -> Error {
        match error {
            study::error::Error::Wrong { place, what } => Error::usage(place, what),
            study::error::Error::Scenario(text) => Error::Scenario(text),
            study::error::Error::Stopped => Error::Interrupted,
            study::error::Error::Stalled(text) => Error::Stalled(text),
        }
    }
}

impl Error {
    pub(crate) fn usage(option: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Usage {
            option: option.into(),
            what: what.into(),
        }
    }

    /// A file that cannot be used.
    pub(crate) fn input(file: impl Into<PathBuf>, what: impl Into<String>) -> Error {
        Error::Input {
            file: file.into(),
            what: what.into(),
        }
    }

    /// An output that cannot be written.
    pub(crate) fn output(file: impl Into<String>, source: std::io::Error) -> Error {
        Error::Output {
            file: file.into(),
            source,
        }
    }
}
