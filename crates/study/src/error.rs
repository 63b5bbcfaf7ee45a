//! The reasons why a study fails: one line each, with the place and the expected form.

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Something that was given cannot be used.
    #[error("{place}: {what}")]
    Wrong {
        /// The machine, row or option at fault.
        place: String,
        what: String,
    },
    /// A scenario that cannot be used; the text names the place.
    #[error("{0}")]
    Scenario(String),
    /// A simulated run stalled; the text says which and where.
    #[error("{0}")]
    Stalled(String),
    /// The caller stopped the runs.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// Something that was given cannot be used.
    pub fn wrong(place: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Wrong {
            place: place.into(),
            what: what.into(),
        }
    }
}

impl From<scenario::ScenarioError> for Error {
    fn from(error: scenario::ScenarioError) -> Error {
        Error::Scenario(error.to_string())
    }
}
