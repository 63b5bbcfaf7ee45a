//! Files that are read whole, and no longer than is sensible.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use scenario::{Scenario, ScenarioError};
use trace::fio::Reading;

use crate::error::Error;

/// Longest file that is read as a scenario or a profile. The longest sensible one is far shorter;
/// `/dev/zero` is far longer.
const TEXT_MAX: u64 = 1 << 20;

/// Reads a scenario's text in the format that the file's name gives, or else its content.
pub(crate) fn parse(file: &Path, text: &str, ignore: bool) -> Result<Scenario, ScenarioError> {
    match is_job(file, text) {
        true => {
            let files = [(file.to_path_buf(), text.to_owned())];
            Scenario::from_fio_files(&files, &reading(ignore))
        }
        false => Scenario::from_toml(file, text),
    }
}

/// The text is a fio job file.
pub(crate) fn is_job(file: &Path, text: &str) -> bool {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("toml") => false,
        Some("fio") => true,
        _ => !Scenario::is_toml(text),
    }
}

/// How fio's jobs read files and variables; `ignore`: what is not modelled is left out.
pub(crate) fn reading(ignore: bool) -> Reading<'static> {
    Reading {
        read: &|file| {
            read_text(file).map_err(|error| match error {
                Error::Input { what, .. } => what,
                other => other.to_string(),
            })
        },
        variable: &|name| std::env::var(name).ok(),
        ignore_unmodelled: ignore,
    }
}

/// Longest text that a program wrote: a report with details of every kind is a hundredth of it.
const WRITTEN_MAX: u64 = 64 << 20;

/// Longest text of perf: 10 s of a CPU at 4 kHz with stacks of 20 functions are a fifth of it.
const SAMPLES_MAX: u64 = 256 << 20;

/// Reads a scenario or a profile; `-` is standard input.
pub(crate) fn read_text(file: &Path) -> Result<String, Error> {
    read_up_to(or_standard_input(file), TEXT_MAX)
}

/// Reads samples that perf printed; `-` is standard input.
pub(crate) fn read_samples(file: &Path) -> Result<String, Error> {
    read_up_to(or_standard_input(file), SAMPLES_MAX)
}

fn or_standard_input(file: &Path) -> &Path {
    match file == Path::new("-") {
        true => Path::new("/dev/stdin"),
        false => file,
    }
}

/// Reads a report, a schedule or a file of a specification.
pub(crate) fn read_written(file: &Path) -> Result<String, Error> {
    read_up_to(file, WRITTEN_MAX)
}

fn read_up_to(file: &Path, most: u64) -> Result<String, Error> {
    let refuse = |error: std::io::Error| Error::input(file, format!("cannot read: {error}"));
    let mut bytes = Vec::new();
    let mut opened = File::open(file).map_err(refuse)?;
    opened
        .by_ref()
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(refuse)?;
    if bytes.len() as u64 > most {
        return Err(Error::input(
            file,
            format!("longer than {most} bytes: too long to be read"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let other = trace::blktrace::other_kind(error.as_bytes()).map(|what| format!("is {what}"));
        let what = other.unwrap_or_else(|| format!("byte {at}: no UTF-8 text, as it should be"));
        Error::input(file, what)
    })
}
