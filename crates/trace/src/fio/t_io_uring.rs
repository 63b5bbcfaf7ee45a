//! t/io_uring, fio's small benchmark: its command line, and the options that its jobs may have.
//!
//! It is not an engine of fio and shares none of its options. Its options have one letter each;
//! here they are spelt as the options of fio that mean the same, so that one grammar serves both.
//! After t/io_uring.c of fio (commit 021ce718f5ae). The simulator implements its behaviour.

use blkmq::time::Duration;

use super::build::{apply, note};
use super::job::{FioEngine, FioJob, ReadWrite};
use super::problem::Problem;
use super::{Ignored, Section, Setting, value};
use crate::Error;

/// Its name, as `ioengine` and as a command.
pub(super) const NAME: &str = "t/io_uring";
/// Most entries of a ring (IORING_MAX_ENTRIES).
const DEPTH_MAX: u32 = 32_768;
/// It runs until it is interrupted, and prints a line each second: this is one line.
const RUNTIME: Duration = Duration::from_secs(1);

/// The option of fio for a letter.
enum Letter {
    /// A number, of this option, and its default.
    Count(&'static str, u32),
    /// A number at least 1, as 0 is taken for 1, and its default.
    Batch(&'static str, u32),
    /// 0, or anything else for 1, the default.
    Switch(&'static str),
    /// `rw`: random or not.
    Random,
    /// Seconds.
    Runtime,
    /// A switch of which one position is modelled, and why the other is not.
    Only(bool, &'static str),
    /// Not modelled in any position.
    Refused(&'static str),
}

use Letter::{Batch, Count, Only, Random, Refused, Runtime, Switch};

/// Its options, as in main().
const LETTERS: &[(char, Letter)] = &[
    ('d', Count("iodepth", 128)),
    ('s', Batch("iodepth_batch", 32)),
    ('c', Batch("iodepth_batch_complete_min", 32)),
    ('b', Count("bs", 4096)),
    ('p', Switch("hipri")),
    ('B', Switch("fixedbufs")),
    ('F', Switch("registerfiles")),
    ('n', Count("numjobs", 1)),
    ('R', Random),
    ('X', Switch("register_ring")),
    ('r', Runtime),
    ('O', Only(true, "buffered I/O")),
    ('N', Only(false, "no-ops do not reach the block layer")),
    (
        't',
        Only(
            false,
            "clock reads for each I/O; the report has latencies without them",
        ),
    ),
    ('T', Refused("a clock rate, which only -t1 uses")),
    (
        'a',
        Only(false, "its libaio loop; use fio with ioengine=libaio"),
    ),
    (
        'S',
        Only(
            false,
            "preadv2(2); use fio with ioengine=psync, which reads with pread(2)",
        ),
    ),
    (
        'D',
        Only(
            false,
            "no modelled kernel has buffers mapped for DMA in advance",
        ),
    ),
    (
        'P',
        Only(
            false,
            "the machine has one node; --set job.cpus_allowed says where threads run",
        ),
    ),
    ('u', Only(false, "passthrough bypasses bios and schedulers")),
];

/// Options that a job of it may have, beside those of `LETTERS`.
pub const BESIDE: &[&str] = &[
    "name",
    "filename",
    "ioengine",
    "kb_base",
    "rw",
    "runtime",
    // Of the model: place and time of the run, and random draws.
    "ramp_time",
    "startdelay",
    "stonewall",
    "cpus_allowed",
    "cpus_allowed_policy",
    "prio",
    "prioclass",
    "randrepeat",
    "randseed",
    "group_reporting",
];

/// Fixed behaviour; the opposite setting is an error.
const ALWAYS: &[&str] = &[
    "direct",
    "time_based",
    "norandommap",
    "thread",
    "gtod_reduce",
];

/// Each option, the option of a job with the same meaning, and its values, for the reference.
pub fn options() -> impl Iterator<Item = (char, Option<&'static str>, String)> {
    LETTERS.iter().map(|(letter, meaning)| {
        let (option, text) = match meaning {
            Count(option, default) => (Some(*option), format!("default {default}")),
            Batch(option, default) => {
                let text = format!("default {default}; 0 is 1, more than the depth is the depth");
                (Some(*option), text)
            }
            Switch(option) => (Some(*option), "0 or 1; default 1".to_owned()),
            Random => (Some("rw"), "1 is randread, 0 is read; default 1".to_owned()),
            Runtime => {
                let text = format!(
                    "seconds, or a time with a unit; default {} s, where the program runs until \
                     it is interrupted",
                    RUNTIME.0 / 1_000_000_000
                );
                (Some("runtime"), text)
            }
            Only(position, why) => {
                let (only, other) = (u8::from(*position), u8::from(!*position));
                (None, format!("only {only}; {other} is not modelled: {why}"))
            }
            Refused(why) => (None, format!("refused: {why}")),
        };
        (*letter, option, text)
    })
}

/// True if a command line begins with this program, in any directory.
pub(super) fn is_command(argument: &str) -> bool {
    let before = argument.strip_suffix(NAME);
    before.is_some_and(|path| path.is_empty() || path.ends_with('/'))
}

/// The job of a command line; its first argument is the program.
pub(super) fn section(arguments: &[&str]) -> Result<Section, Problem> {
    let mut settings = vec![setting("ioengine", NAME, 1)];
    let mut files: Vec<(u64, &str)> = Vec::new();
    let mut rest = (1_u64..).zip(arguments.iter().copied()).skip(1);
    let mut options_end = false;
    while let Some((line, argument)) = rest.next() {
        if argument == "--" && !options_end {
            options_end = true;
            continue;
        }
        let option = argument.strip_prefix('-').filter(|_| !options_end);
        let Some(option) = option.filter(|option| !option.is_empty()) else {
            files.push((line, argument));
            continue;
        };
        let mut letters = option.chars();
        let letter = letters.next().unwrap_or_default();
        let bad = |what: String| Problem::new(line, &format!("-{letter}"), what);
        let Some((_, meaning)) = LETTERS.iter().find(|(known, _)| *known == letter) else {
            return Err(bad(unknown()));
        };
        let tail = letters.as_str();
        let value = match tail {
            "" => rest.next().map(|(_, value)| value),
            tail => Some(tail),
        };
        let value = value.ok_or_else(|| bad("needs a value".to_string()))?;
        if let Some((option, value)) = meaning.setting(value).map_err(bad)? {
            settings.push(setting(option, &value, line));
        }
    }
    for (line, file) in files {
        settings.push(setting("filename", &file.replace(':', "\\:"), line));
    }
    Ok(Section {
        name: NAME.to_string(),
        line: 1,
        settings,
    })
}

/// Turns an error about options of fio into one about the arguments that were given.
pub(super) fn about(arguments: &[&str], error: Error) -> Error {
    let Error::Jobs(mut problems) = error else {
        return error;
    };
    for problem in &mut problems.list {
        let argument = arguments.get((problem.line as usize).saturating_sub(1));
        if let Some(argument) = argument {
            problem.option = format!("{argument} ({})", problem.option);
        }
    }
    Error::Jobs(problems)
}

fn setting(option: &str, value: &str, line: u64) -> Setting {
    Setting {
        option: option.to_string(),
        value: Some(value.to_string()),
        line,
        global: false,
    }
}

fn unknown() -> String {
    let letters: Vec<String> = LETTERS
        .iter()
        .map(|(letter, _)| format!("-{letter}"))
        .collect();
    format!("there is no such option; there are {}", letters.join(" "))
}

impl Letter {
    /// The option of fio and its value; none if it changes nothing.
    fn setting(&self, text: &str) -> Result<Option<(&'static str, String)>, String> {
        if let Refused(why) = self {
            return Err((*why).to_string());
        }
        if let Runtime = self {
            // It counts in seconds. A unit is ours: a second is long for a simulator.
            let time = value::time(text, Duration::from_secs(1))?;
            let bare = text.bytes().all(|byte| byte.is_ascii_digit());
            let unit = if bare { "s" } else { "" };
            return Ok((time > Duration::ZERO).then(|| ("runtime", format!("{text}{unit}"))));
        }
        let number = value::number(text)?;
        let on = number != 0;
        Ok(match self {
            Count(option, _) => Some((*option, number.to_string())),
            Batch(option, _) => Some((*option, number.max(1).to_string())),
            Switch(option) => Some((*option, u8::from(on).to_string())),
            Random => Some(("rw", if on { "randread" } else { "read" }.to_string())),
            Only(position, why) if *position != on => return Err(format!("not modelled: {why}")),
            Only(..) | Refused(_) | Runtime => None,
        })
    }
}

/// True if the section is a job of t/io_uring.
pub(super) fn runs(section: &Section) -> bool {
    engine(section).is_some()
}

/// The setting that makes the section a job of it.
fn engine(section: &Section) -> Option<&Setting> {
    let mut settings = section.settings.iter().rev();
    let last = settings.find(|setting| setting.option == "ioengine");
    last.filter(|setting| setting.value.as_deref() == Some(NAME))
}

/// fio's own job files and command lines have no such engine.
pub(super) fn refuse(sections: &[Section]) -> Option<Problem> {
    let setting = sections.iter().find_map(engine)?;
    let what = "is no engine but a program of its own: run it as `-- t/io_uring -d128`, or write \
                it into a scenario";
    Some(Problem::of(setting, what))
}

pub(super) fn defaults(job: &mut FioJob) {
    job.ioengine = FioEngine::TIoUring;
    job.rw = ReadWrite {
        read: true,
        write: false,
        trim: false,
        random: true,
    };
    for (_, letter) in LETTERS {
        let (option, default) = match letter {
            Count(option, default) | Batch(option, default) => (option, *default),
            Switch(option) => (option, 1),
            Random | Runtime | Only(..) | Refused(_) => continue,
        };
        let applied = apply(job, option, Some(&default.to_string()), 1024);
        applied.expect("the defaults of LETTERS are values of their options");
    }
    job.direct = true;
    job.time_based = true;
    job.norandommap = true;
    job.thread = true;
    job.gtod_reduce = true;
    job.group_reporting = true;
}

/// Checks that a job of it may have this option with this value. `name` is its first name.
pub(super) fn allows(name: &str, setting: &Setting) -> Result<(), String> {
    let text = setting.value.as_deref();
    let of_letter = |meaning: &Letter| match meaning {
        Count(option, _) | Batch(option, _) | Switch(option) => *option == name,
        Random | Runtime | Only(..) | Refused(_) => false,
    };
    if name == "rw" && !matches!(text, Some("read" | "randread")) {
        return Err(format!(
            "{NAME} only reads: randread (-R1, its default) or read (-R0)"
        ));
    }
    if ALWAYS.contains(&name) || name == "buffered" {
        return match value::flag(text)? == (name != "buffered") {
            true => Ok(()),
            false => Err(format!("{NAME} has it always the other way here")),
        };
    }
    if BESIDE.contains(&name) || LETTERS.iter().any(|(_, meaning)| of_letter(meaning)) {
        return Ok(());
    }
    Err(format!("is fio's; {NAME} has nothing of the kind"))
}

/// Limits of main() and of the ring.
pub(super) fn settle(job: &mut FioJob, notes: &mut Vec<Ignored>) -> Result<(), Problem> {
    let depth = job.iodepth;
    if depth > DEPTH_MAX {
        let what = format!("a ring has at most {DEPTH_MAX} entries");
        return Err(Problem::of_job(job, "iodepth", what));
    }
    job.iodepth_batch = job.iodepth_batch.clamp(1, depth);
    job.iodepth_batch_complete_min = job.iodepth_batch_complete_min.clamp(1, depth);
    // It takes all completions that it finds.
    job.iodepth_batch_complete_max = depth;
    job.iodepth_low = depth;
    for option in ALWAYS {
        if let Some(setting) = job.setting(option) {
            notes.push(note(setting, "t/io_uring always does so"));
        }
    }
    if let Some(setting) = job.setting("cpus_allowed_policy")
        && job.cpus_allowed.is_none()
    {
        notes.push(note(setting, "cpus_allowed is not given"));
    }
    if job.runtime.is_none() {
        job.runtime = Some(RUNTIME);
        notes.push(Ignored {
            line: job.line,
            option: "runtime".to_string(),
            why: "not given (-r), and t/io_uring goes on until it is interrupted; here it runs \
                  for a second"
                .to_string(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
