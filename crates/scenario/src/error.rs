//! Errors of a scenario.

/// A scenario that cannot be used: place, field, and the values that would be right.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("{place}: {field}: {what}")]
    Field {
        /// `file:line`, `--set ...` or `--device ...`; only the file if the field is not written.
        place: String,
        /// Dotted name, e.g. `queue.fifo_batch`.
        field: String,
        /// The error, and the values that would be right.
        what: String,
    },
    /// The text is no TOML, or a value has the wrong type.
    #[error("{place}: {what}")]
    Syntax {
        /// `file:line`, `--set ...` or `--device ...`.
        place: String,
        /// The error, and the values that would be right.
        what: String,
    },
    /// Several values that cannot be used, a line of the text for each.
    #[error("{}", lines(.0))]
    Several(Vec<ScenarioError>),
    /// A fio job file or command line is wrong.
    #[error(transparent)]
    Fio(#[from] trace::Error),
}

fn lines(errors: &[ScenarioError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
