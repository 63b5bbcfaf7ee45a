//! `blksim record`: the script that records a capture on the machine to be studied.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::error::Error;
use crate::{OK, output};

const SCRIPT: &str = include_str!("../../../docs/guides/record.sh");

/// Prints the script, or becomes it, with arguments.
pub(crate) fn record(arguments: &[OsString]) -> Result<u8, Error> {
    if arguments.is_empty() {
        output::print(SCRIPT)?;
        return Ok(OK);
    }
    // In our place, so that a signal to us ends it and it removes its probes.
    let error = Command::new("sh")
        .args(["-c", SCRIPT, "record.sh"])
        .args(arguments)
        .exec();
    Err(Error::usage("sh", format!("cannot start: {error}")))
}
