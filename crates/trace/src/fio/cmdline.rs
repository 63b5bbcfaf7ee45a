//! The command line's grammar: `--name=x --bs=4k --rw=randread ...`.
//!
//! Options before the first `--name` are global; every `--name` begins a job. fio uses
//! getopt_long_only(): one dash does, `--option value` too.

use std::path::Path;

use super::options::{Treatment, lookup};
use super::{COMMAND_LINE, Section, Setting};
use crate::{Error, Result};

/// Options of the program rather than of a job; none of them changes the I/O.
pub(super) const PROGRAM_OPTIONS: &[&str] = &[
    "output",
    "output-format",
    "append-terse",
    "minimal",
    "terse-version",
    "eta",
    "eta-newline",
    "eta-interval",
    "status-interval",
    "bandwidth-log",
    "max-jobs",
    "warnings-fatal",
    "debug",
    "idle-prof",
    "latency-log",
    "alloc-size",
    "readonly",
    "allow-mounted-write",
    "aux-path",
];

/// Options of the program that make it do something else than its jobs.
pub const OTHER_BUSINESS: &[&str] = &[
    "section",
    "client",
    "server",
    "remote-config",
    "daemonize",
    "showcmd",
    "cmdhelp",
    "enghelp",
    "crctest",
    "cpuclock-test",
    "memcpytest",
    "help",
    "version",
    "parse-only",
    "merge-blktrace-only",
    "profile",
    "trigger",
    "trigger-timeout",
    "trigger-file",
    "trigger-remote",
    "inflate-log",
    "blkstat",
];

/// Splits arguments into jobs, the global settings in front of each.
pub(super) fn sections(arguments: &[&str]) -> Result<Vec<Section>> {
    let file = Path::new(COMMAND_LINE);
    let mut global: Vec<Setting> = Vec::new();
    let mut jobs: Vec<Section> = Vec::new();
    let mut in_global = true;
    let mut rest = (1_u64..).zip(arguments).peekable();
    while let Some((number, argument)) = rest.next() {
        let bare = argument
            .strip_prefix("--")
            .or_else(|| argument.strip_prefix('-'));
        let Some(bare) = bare.filter(|bare| !bare.is_empty()) else {
            let what =
                "is no option; a job file is given in place of options, not together with them";
            return Err(Error::text(file, number, argument, what));
        };
        let (option, mut value) = match bare.split_once('=') {
            Some((option, value)) => (option, Some(value.to_string())),
            None => (bare, None),
        };
        if value.is_none()
            && takes_value(option)
            && let Some((_, next)) = rest.next_if(|(_, next)| !next.starts_with('-'))
        {
            value = Some((*next).to_string());
        }
        if OTHER_BUSINESS.contains(&option) {
            let what = "makes fio do something else than its jobs; leave it out";
            return Err(Error::text(file, number, option, what));
        }
        if option == "name" {
            let name = value.filter(|name| !name.is_empty());
            let name =
                name.ok_or_else(|| Error::text(file, number, "name", "expected --name=NAME"))?;
            in_global = name.starts_with("global");
            if !in_global {
                jobs.push(Section {
                    name,
                    line: number,
                    settings: global.clone(),
                });
            }
            continue;
        }
        let setting = Setting {
            option: option.to_string(),
            value,
            line: number,
            global: in_global,
        };
        match jobs.last_mut() {
            Some(job) if !in_global => job.settings.push(setting),
            _ => global.push(setting),
        }
    }
    if jobs.is_empty() {
        let what = "no --name=NAME among the arguments, so there is no job";
        return Err(Error::input(file, what));
    }
    Ok(jobs)
}

/// True if the value may be the next argument.
fn takes_value(option: &str) -> bool {
    option == "name"
        || lookup(option).is_none_or(|known| !matches!(known.treatment, Treatment::Flag(_)))
}
