//! `blksim record`: the script that records a capture on the machine to be studied.

use std::ffi::OsString;
use std::process::Command;

use crate::error::Error;
use crate::{BAD_INPUT, OK, output};

const SCRIPT: &str = include_str!("../../../docs/guides/record.sh");

/// Prints the script, or runs it with arguments. Its exit code is ours.
pub(crate) fn record(arguments: &[OsString]) -> Result<u8, Error> {
    if arguments.is_empty() {
        output::print(SCRIPT)?;
        return Ok(OK);
    }
    let run = Command::new("sh")
        .args(["-c", SCRIPT, "record.sh"])
        .args(arguments)
        .status();
    let status = run.map_err(|error| Error::usage("sh", format!("cannot start: {error}")))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(BAD_INPUT))
}
