//! The command line's grammar: `--name=x --bs=4k --rw=randread ...`.
//!
//! Options before the first `--name` are global; every `--name` begins a job. fio uses
//! getopt_long_only(): one dash does, `--option value` too, and so does the beginning of a name.
//! Arguments that are no options are job files, which follow the jobs of the command line.

use std::path::Path;

use blkmq::time::Duration;

use super::job::FioJob;
use super::options::{Known, Treatment, of_argument};
use super::problem::Problem;
use super::{COMMAND_LINE, Gathered, Reading, Section, Setting, value};

/// Options of the program that take no value.
const BARE: &[&str] = &[
    "minimal",
    "append-terse",
    "bandwidth-log",
    "readonly",
    "warnings-fatal",
    "allow-mounted-write",
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
pub(super) fn read(all: &mut Gathered, arguments: &[&str], reading: &Reading<'_>) {
    all.sources.add(Path::new(COMMAND_LINE));
    let (mut files, mut in_global) = (Vec::new(), true);
    let mut rest = (1_u64..).zip(arguments).peekable();
    while let Some((number, argument)) = rest.next() {
        let bare = argument
            .strip_prefix("--")
            .or_else(|| argument.strip_prefix('-'));
        let Some(bare) = bare.filter(|bare| !bare.is_empty()) else {
            files.push((number, *argument));
            continue;
        };
        let (option, mut value) = match bare.split_once('=') {
            Some((option, value)) => (option, Some(value.to_string())),
            None => (bare, None),
        };
        let mut wrong = |option: &str, what: String| {
            all.problems.push(Problem::new(number, option, what));
        };
        let known = match meant(option) {
            Ok(known) => known,
            Err(what) => {
                wrong(option, what);
                // Its value, if that is an argument of its own, is no job file.
                rest.next_if(|(_, next)| value.is_none() && !next.starts_with('-'));
                continue;
            }
        };
        if value.is_none()
            && takes_value(known)
            && let Some((_, next)) = rest.next_if(|(_, next)| !next.starts_with('-'))
        {
            value = Some((*next).to_string());
        }
        if let Some(what) = wrong_value(known, value.as_deref()) {
            wrong(known.name, what);
            continue;
        }
        // As it was written, unless that is only the beginning of a name.
        let written = known.names().any(|name| name == option);
        let option = if written { option } else { known.name };
        if option == "name" {
            let Some(name) = value.filter(|name| !name.is_empty()) else {
                wrong("name", "expected --name=NAME".to_owned());
                continue;
            };
            in_global = name.starts_with("global");
            if !in_global {
                all.sections.push(Section {
                    name,
                    line: number,
                    settings: all.global.clone(),
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
        match (known.treatment, all.sections.last_mut()) {
            (Treatment::Program(_), _) => all.program.push(setting),
            (_, Some(job)) if !in_global => job.settings.push(setting),
            _ => all.global.push(setting),
        }
    }
    job_files(all, files, reading);
}

/// Adds job files; their arguments and names.
fn job_files(all: &mut Gathered, files: Vec<(u64, &str)>, reading: &Reading<'_>) {
    for (index, (number, name)) in files.into_iter().enumerate() {
        match (reading.read)(Path::new(name)) {
            Ok(text) => all.add_file(index, Path::new(name), &text, reading),
            Err(what) => {
                let what = format!("is no option, and no job file: {what}");
                all.problems.push(Problem::new(number, name, what));
            }
        }
    }
}

/// Why an option of the program does not have this value, also where it has no effect here.
fn wrong_value(known: Known, text: Option<&str>) -> Option<String> {
    let Some(text) = text else {
        let is_of_program = matches!(known.treatment, Treatment::Program(_));
        let needs = is_of_program && takes_value(known) && known.name != "debug";
        return needs.then(|| format!("needs a value: --{}=VALUE", known.name));
    };
    match known.name {
        "output" | "output-format" if text.is_empty() => Some("needs a value".to_owned()),
        "status-interval" | "eta-interval" => match value::time(text, Duration::from_secs(1)) {
            Ok(Duration::ZERO) => Some(format!("`{text}` is too short; expected a time, e.g. 1s")),
            time => time.err(),
        },
        "terse-version" if !["2", "3", "4", "5"].contains(&text) => {
            Some(format!("`{text}` is none of 2, 3, 4, 5"))
        }
        _ => None,
    }
}

/// A job that writes, with `--readonly`.
pub(super) fn read_only(job: &FioJob, program: &[Setting]) -> Option<Problem> {
    let given = program.iter().any(|setting| setting.option == "readonly");
    let what = "writes or trims, which --readonly forbids, in fio too; leave one of them out";
    (given && (job.rw.write || job.rw.trim)).then(|| Problem::of_job(job, "rw", what))
}

fn meant(option: &str) -> Result<Known, String> {
    if OTHER_BUSINESS.contains(&option) {
        return Err("makes fio do something else than its jobs; leave it out".to_owned());
    }
    of_argument(option)
}

/// True if the value may be the next argument.
fn takes_value(known: Known) -> bool {
    // getopt_long_only(3) wants the value of these, which job files may leave out.
    let is_log = known.name.starts_with("write_");
    is_log || !matches!(known.treatment, Treatment::Flag(_)) && !BARE.contains(&known.name)
}
