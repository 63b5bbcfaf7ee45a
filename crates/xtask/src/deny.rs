//! Licences, bans, sources and advisories of the dependencies, by cargo-deny and `deny.toml`.
//!
//! The first three need no network and always run. Advisories need a database: if it cannot be
//! fetched the check reports that and is skipped; an advisory is a failure.

use crate::paths;
use crate::step::{self, Failure, Outcome, Result, Run};

/// Result of cargo-deny's attempt to fetch the advisory database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Database {
    Fetched,
    Unreachable,
    /// Something that is not the network: a broken `deny.toml`, a full disk.
    Broken,
}

/// Check all four parts.
pub(crate) fn run() -> Result {
    if !paths::has_program("cargo-deny") {
        return step::missing_tool("cargo-deny is missing: cargo install cargo-deny --locked");
    }
    Run::cargo("deny --workspace check licenses bans sources").passes()?;

    let fetch = Run::cargo("deny fetch db").printed()?;
    match database(fetch.success, &fetch.stderr) {
        Database::Fetched => {
            Run::cargo("deny --workspace check --disable-fetch advisories").passes()
        }
        Database::Unreachable => {
            println!("skip: advisories: their database cannot be reached");
            Ok(Outcome::Passed)
        }
        Database::Broken => Err(Failure(format!("cargo deny fetch db:\n{}", fetch.stderr))),
    }
}

fn database(success: bool, stderr: &str) -> Database {
    const NETWORK: &[&str] = &[
        "failed to fetch advisory database",
        "failed to clone",
        "IO error occurred while communicating",
        "Could not resolve",
        "could not connect",
        "onnection refused",
        "timed out",
        "network",
    ];
    if success {
        return Database::Fetched;
    }
    if NETWORK.iter().any(|sign| stderr.contains(sign)) {
        return Database::Unreachable;
    }
    Database::Broken
}

#[cfg(test)]
mod tests {
    use super::{Database, database};

    #[test]
    fn a_network_failure_is_distinguished_from_our_own() {
        let unreachable = "failed to fetch advisory database\n  error sending request for url";
        assert_eq!(database(true, ""), Database::Fetched);
        assert_eq!(database(false, unreachable), Database::Unreachable);
        assert_eq!(
            database(false, "unable to parse deny.toml"),
            Database::Broken
        );
    }
}
