//! Why a study ends without an answer: one line each, with the place and what would be right.

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Something that was given cannot be used.
    #[error("{place}: {what}")]
    Wrong {
        /// What it is: a machine, a row, an option.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// A scenario that cannot be used; the text names the place.
    #[error("{0}")]
    Scenario(String),
    /// Whoever asked no longer wants to know.
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
