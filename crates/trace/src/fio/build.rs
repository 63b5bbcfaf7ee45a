//! From settings as written to a typed job.
//!
//! One option after the other, the last of a name counts; then the defaults that depend on other
//! options, as fio's fixup_options() has them (init.c).

use std::path::Path;

use blkmq::time::Duration;

use super::job::{
    ContinueOnError, CpusPolicy, FileService, FioEngine, FioJob, PerDirection, ReadWrite, SizeRange,
};
use super::options::{Treatment, lookup, unknown};
use super::{Ignored, Section, Setting, value};
use crate::ftrace::IoPriority;
use crate::{Error, Result};

/// Types the settings of a section, and tells which of them change nothing.
pub(super) fn build(file: &Path, section: &Section) -> Result<(FioJob, Vec<Ignored>)> {
    let mut job = FioJob::defaults(section);
    let mut notes = Vec::new();
    let mut kb_base = 1024;
    for setting in &section.settings {
        if setting.option == "kb_base" {
            kb_base = match setting.value.as_deref() {
                Some("1024") => 1024,
                Some("1000") => 1000,
                _ => return Err(error(file, setting, "expected 1024 or 1000")),
            };
        }
    }
    for setting in &section.settings {
        let Some(known) = lookup(&setting.option) else {
            return Err(error(file, setting, unknown(&setting.option)));
        };
        match known.treatment {
            Treatment::Refused(why) => {
                return Err(error(file, setting, format!("not modelled: {why}")));
            }
            Treatment::Ignored => {
                notes.push(note(setting, "has no effect on a model of the block layer"));
                continue;
            }
            Treatment::Value(_) if setting.value.as_ref().is_none_or(String::is_empty) => {
                return Err(error(file, setting, "needs a value"));
            }
            Treatment::Value(_) | Treatment::Flag(_) => {}
        }
        if setting
            .value
            .as_ref()
            .is_some_and(|value| value.contains('$'))
        {
            let what = "write the value itself: variables and keywords ($) are not expanded";
            return Err(error(file, setting, what));
        }
        apply(&mut job, known.name, setting.value.as_deref(), kb_base)
            .map_err(|what| error(file, setting, what))?;
    }
    settle(&mut job, &mut notes);
    Ok((job, notes))
}

pub(super) fn error(file: &Path, setting: &Setting, what: impl Into<String>) -> Error {
    Error::text(file, setting.line, &setting.option, what)
}

fn note(setting: &Setting, why: &str) -> Ignored {
    Ignored {
        line: setting.line,
        option: setting.option.clone(),
        why: why.to_string(),
    }
}

type Applied = std::result::Result<(), String>;

/// Sets the fields that an option means. `name` is the option's first name.
fn apply(job: &mut FioJob, name: &str, text: Option<&str>, kb_base: u64) -> Applied {
    let value = text.unwrap_or("");
    let seconds = Duration::from_secs(1);
    match name {
        "filename" => job.filenames.extend(filenames(value)?),
        "file_service_type" => job.file_service = file_service(value)?,
        "rw" => job.rw = read_write(value)?,
        "rwmixread" => job.rwmixread = percent(value)?,
        "rwmixwrite" => job.rwmixread = 100 - percent(value)?,
        "bs" | "bsrange" => {
            let sizes = |text: &str| match name {
                "bs" => value::bytes(text, kb_base).map(|n| (n, n)),
                _ => value::range(text, kb_base),
            };
            let [read, write, trim] = value::per_direction(value, (4096, 4096), sizes)?;
            let range = |(min, max)| SizeRange { min, max };
            job.bs = PerDirection {
                read: range(read),
                write: range(write),
                trim: range(trim),
            };
        }
        "thread" => job.thread = value::flag(text)?,
        "direct" => job.direct = value::flag(text)?,
        "buffered" => job.direct = !value::flag(text)?,
        "ioengine" => job.ioengine = engine(value)?,
        "hipri" => job.hipri = value::flag(text)?,
        "fixedbufs" => job.fixedbufs = value::flag(text)?,
        "registerfiles" => job.registerfiles = value::flag(text)?,
        "norandommap" => job.norandommap = value::flag(text)?,
        "randrepeat" => job.randrepeat = value::flag(text)?,
        "randseed" => job.randseed = Some(value::number(value)?),
        "runtime" => {
            let time = value::time(value, seconds)?;
            job.runtime = (time > Duration::ZERO).then_some(time);
        }
        "ramp_time" => job.ramp_time = value::time(value, seconds)?,
        "startdelay" if value.contains('-') => {
            return Err("a range of start delays is not modelled".to_string());
        }
        "startdelay" => job.startdelay = value::time(value, seconds)?,
        "thinktime" => job.thinktime = value::time(value, Duration::from_micros(1))?,
        "time_based" => job.time_based = value::flag(text)?,
        "stonewall" => job.stonewall = value::flag(text)?,
        "group_reporting" => job.group_reporting = value::flag(text)?,
        "gtod_reduce" => job.gtod_reduce = value::flag(text)?,
        "invalidate" => job.invalidate = value::flag(text)?,
        "number_ios" => job.number_ios = Some(at_least_one(value::bytes(value, kb_base)?)?),
        "size" => job.size = value::size(value, kb_base)?,
        "offset" => job.offset = value::size(value, kb_base)?,
        "prioclass" | "prio" => priority(job, name, value)?,
        "continue_on_error" => job.continue_on_error = continue_on_error(value)?,
        "rate_iops" => {
            let [read, write, trim] = value::per_direction(value, 0, |text| count(text, kb_base))?;
            job.rate_iops = PerDirection { read, write, trim };
        }
        "cpus_allowed" => job.cpus_allowed = Some(value::cpus(value)?),
        "cpus_allowed_policy" => {
            job.cpus_allowed_policy = match value {
                "shared" => CpusPolicy::Shared,
                "split" => CpusPolicy::Split,
                _ => return Err(format!("`{value}` is neither shared nor split")),
            };
        }
        "kb_base" => {}
        "name" => job.name = value.to_string(),
        _ => return counts(job, name, value, kb_base),
    }
    Ok(())
}

/// Options that are plain counts.
fn counts(job: &mut FioJob, name: &str, value: &str, kb_base: u64) -> Applied {
    let number = count(value, kb_base)?;
    let limited = |most: u32| match number {
        0 => Err("is at least 1".to_string()),
        n if n > most => Err(format!("{n} is absurd; at most {most}")),
        n => Ok(n),
    };
    match name {
        "iodepth" => job.iodepth = limited(1 << 16)?,
        "numjobs" => job.numjobs = limited(4096)?,
        "iodepth_batch" => job.iodepth_batch = number,
        "iodepth_batch_complete_min" => job.iodepth_batch_complete_min = number,
        "iodepth_batch_complete_max" => job.iodepth_batch_complete_max = number,
        "iodepth_low" => job.iodepth_low = number,
        "fsync" => job.fsync = number,
        "fdatasync" => job.fdatasync = number,
        "thinktime_blocks" => job.thinktime_blocks = limited(u32::MAX)?,
        _ => unreachable!("{name} is listed as modelled but no field takes it"),
    }
    Ok(())
}

/// Options that divide up what is in flight.
const DEPTH_OPTIONS: [&str; 4] = [
    "iodepth_batch",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "iodepth_low",
];

/// Defaults that depend on other options, as fio's fixup_options() has them, and options that the
/// others leave without effect.
fn settle(job: &mut FioJob, notes: &mut Vec<Ignored>) {
    let mut idle = |job: &FioJob, option: &str, why: &str| {
        if let Some(setting) = job.setting(option) {
            notes.push(note(setting, why));
        }
    };
    if job.ioengine.is_synchronous() {
        if job.iodepth > 1 {
            idle(
                job,
                "iodepth",
                "a synchronous ioengine has one I/O in flight",
            );
        }
        job.iodepth = 1;
        for option in DEPTH_OPTIONS {
            idle(job, option, "a synchronous ioengine has one I/O in flight");
        }
    }
    if !job.rw.write {
        for option in ["fsync", "fdatasync"] {
            idle(job, option, "it counts writes, and rw has none");
        }
    }
    if !(job.rw.read && job.rw.write) {
        for option in ["rwmixread", "rwmixwrite"] {
            idle(job, option, "rw does not mix reads and writes");
        }
    }
    if !job.rw.random {
        for option in ["norandommap", "randrepeat", "randseed"] {
            idle(job, option, "positions are sequential");
        }
    }
    if job.filenames.len() < 2 {
        idle(job, "file_service_type", "there is one file");
    }
    if job.cpus_allowed.is_none() {
        idle(job, "cpus_allowed_policy", "cpus_allowed is not given");
    }
    let depth = job.iodepth;
    if job.iodepth_batch == 0 || job.iodepth_batch > depth {
        job.iodepth_batch = depth;
    }
    if job.iodepth_low == 0 || job.iodepth_low > depth {
        job.iodepth_low = depth;
    }
    job.iodepth_batch_complete_min = job.iodepth_batch_complete_min.min(depth);
    job.iodepth_batch_complete_max = job
        .iodepth_batch_complete_max
        .max(job.iodepth_batch_complete_min);
}

/// Names of one line; further lines add to them (add_file()), those of `[global]` come first.
fn filenames(text: &str) -> std::result::Result<Vec<String>, String> {
    // fio separates names with `:`; a colon of a name is written `\:`.
    let names: Vec<String> = text
        .replace("\\:", "\u{0}")
        .split(':')
        .map(|name| name.replace('\u{0}', ":"))
        .collect();
    if names.iter().any(String::is_empty) {
        return Err("has an empty file name".to_string());
    }
    Ok(names)
}

fn file_service(text: &str) -> std::result::Result<FileService, String> {
    let (kind, count) = match text.split_once(':') {
        Some((kind, count)) => (kind, Some(count)),
        None => (text, None),
    };
    let make = match (kind, count) {
        ("sequential", None) => return Ok(FileService::Sequential),
        ("roundrobin", _) => FileService::RoundRobin,
        ("random", _) => FileService::Random,
        ("zipf" | "pareto" | "normal" | "gauss", _) => {
            let what = "only uniform choices are modelled: roundrobin, random, sequential";
            return Err(what.to_string());
        }
        _ => return Err("expected roundrobin, random (:N, each N I/Os) or sequential".to_string()),
    };
    let ios = count.map_or(Ok(1), value::number)?;
    let ios = u32::try_from(ios).ok().filter(|&ios| ios > 0);
    ios.map(make)
        .ok_or_else(|| "the number of I/Os behind `:` is at least 1".to_string())
}

fn read_write(text: &str) -> std::result::Result<ReadWrite, String> {
    let mut rw = ReadWrite {
        read: false,
        write: false,
        trim: false,
        random: false,
    };
    match text {
        "read" | "randread" => rw.read = true,
        "write" | "randwrite" => rw.write = true,
        "trim" | "randtrim" => rw.trim = true,
        "rw" | "readwrite" | "randrw" => (rw.read, rw.write) = (true, true),
        "trimwrite" | "randtrimwrite" => (rw.trim, rw.write) = (true, true),
        _ if text.contains(':') => {
            return Err("a sequence number behind `:` is not modelled".to_string());
        }
        _ => {
            return Err(format!(
                "`{text}` is none of read, write, trim, randread, randwrite, randtrim, rw, randrw, \
                 trimwrite, randtrimwrite"
            ));
        }
    }
    rw.random = text.starts_with("rand");
    Ok(rw)
}

/// Nothing is verified here, so `verify` allows nothing.
fn continue_on_error(value: &str) -> std::result::Result<ContinueOnError, String> {
    let (read, write) = match value {
        "none" | "0" | "verify" => (false, false),
        "read" => (true, false),
        "write" => (false, true),
        "io" | "all" | "1" => (true, true),
        _ => {
            return Err(format!(
                "`{value}`, expected none, read, write, io, verify or all"
            ));
        }
    };
    Ok(ContinueOnError { read, write })
}

fn engine(text: &str) -> std::result::Result<FioEngine, String> {
    Ok(match text {
        "io_uring" => FioEngine::IoUring,
        "libaio" | "linuxaio" => FioEngine::Libaio,
        "sync" => FioEngine::Sync,
        "psync" => FioEngine::Psync,
        "vsync" | "pvsync" | "pvsync2" | "posixaio" | "mmap" | "splice" | "sg" | "null" | "net"
        | "io_uring_cmd" | "cpuio" | "rdma" | "xnvme" | "libblkio" | "e4defrag" | "falloc" => {
            return Err(format!(
                "{text} is not modelled; io_uring, libaio, sync, psync are"
            ));
        }
        _ => {
            let near = super::nearest(text, ["io_uring", "libaio", "sync", "psync"]);
            let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(format!("`{text}` is no ioengine of fio{hint}"));
        }
    })
}

/// Without a class a priority is best effort, as in fio's ioprio_value().
fn priority(job: &mut FioJob, name: &str, text: &str) -> Applied {
    let number = value::number(text)?;
    let mut priority = job.priority.unwrap_or(IoPriority {
        class: 2,
        hint: 0,
        level: 0,
    });
    match name {
        "prioclass" if number > 3 => return Err(format!("`{text}` is not 0 to 3")),
        "prioclass" => priority.class = if number == 0 { 2 } else { number as u8 },
        _ if number > 7 => return Err(format!("`{text}` is not 0 to 7")),
        _ => priority.level = number as u8,
    }
    job.priority = Some(priority);
    Ok(())
}

fn percent(text: &str) -> std::result::Result<u8, String> {
    match value::number(text.strip_suffix('%').unwrap_or(text))? {
        n @ 0..=100 => Ok(n as u8),
        n => Err(format!("{n} is more than 100 percent")),
    }
}

fn count(text: &str, kb_base: u64) -> std::result::Result<u32, String> {
    u32::try_from(value::bytes(text, kb_base)?).map_err(|_| format!("`{text}` is absurd"))
}

fn at_least_one(number: u64) -> std::result::Result<u64, String> {
    if number == 0 {
        Err("is at least 1".to_string())
    } else {
        Ok(number)
    }
}

#[cfg(test)]
mod tests;
