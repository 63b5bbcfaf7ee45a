//! From settings as written to a typed job.
//!
//! One option after the other, the last of a name counts; then the defaults that depend on other
//! options, as fio's fixup_options() has them (init.c).

use blkmq::time::Duration;

use super::engines::{self, Fate};
use super::job::{
    ContinueOnError, CpusPolicy, Extent, FadviseHint, FileService, FioEngine, FioJob, PerDirection,
    RateProcess, ReadWrite, Sequencer, SizeRange, ThinktimeBlocks,
};
use super::options::{Known, Treatment, lookup, unknown};
use super::problem::{Fault, Problem};
use super::{
    Ignored, Section, Setting, check, cmdprio, control, draw, settle, t_io_uring, value, writes,
    zones,
};
use crate::ftrace::IoPriority;

/// A section with its settings typed.
pub(super) struct Built {
    pub(super) job: FioJob,
    /// Settings that change nothing.
    pub(super) notes: Vec<Ignored>,
    pub(super) problems: Vec<Problem>,
    /// Its engine does not read or write a device.
    pub(super) without_io: bool,
}

/// Types the settings of a section.
pub(super) fn build(section: &Section) -> Built {
    let mut job = FioJob::defaults(section);
    let (mut notes, mut problems) = (Vec::new(), Vec::new());
    let small = t_io_uring::runs(section);
    if small {
        t_io_uring::defaults(&mut job);
    }
    let mut kb_base = 1024;
    for setting in section
        .settings
        .iter()
        .filter(|setting| setting.option == "kb_base")
    {
        match setting.value.as_deref() {
            Some("1024") => kb_base = 1024,
            Some("1000") => kb_base = 1000,
            _ => problems.push(Problem::of(setting, "expected 1024 or 1000")),
        }
    }
    for (index, setting) in section.settings.iter().enumerate() {
        let Some(known) = lookup(&setting.option) else {
            problems.push(Problem::of(setting, unknown(&setting.option)));
            continue;
        };
        match one(&mut job, known, setting, kb_base, small) {
            Ok(Some(note)) => notes.push(note),
            Ok(None) => {}
            Err(fault) => {
                // A later line sets it to another value.
                let later = &section.settings[index + 1..];
                let again = later.iter().any(|later| known.has_name(&later.option));
                if !(fault.unmodelled && again) {
                    problems.push(fault.at(setting));
                }
            }
        }
    }
    job.output.kb_base = kb_base as u32;
    let engine = job.engine();
    let fate = engine.and_then(|engine| engines::engine(engine).ok());
    if small {
        problems.extend(t_io_uring::settle(&mut job, &mut notes).err());
    } else {
        settle::settle(&mut job, &mut notes);
    }
    // Options without a right value contradict no other.
    let wrong = problems.iter().filter(|problem| !problem.unmodelled);
    let wrong = wrong.filter_map(|problem| lookup(&problem.option));
    let wrong: Vec<&str> = wrong.map(|known| known.name).collect();
    problems.extend(check::unmodelled(&mut job));
    problems.extend(check::contradictions(&job, &wrong));
    Built {
        job,
        notes,
        problems,
        without_io: matches!(fate, Some(Fate::NoIo(_))),
    }
}

/// Sets the fields that a setting means, or returns why it has no effect.
fn one(
    job: &mut FioJob,
    known: Known,
    setting: &Setting,
    kb_base: u64,
    small: bool,
) -> std::result::Result<Option<Ignored>, Fault> {
    let text = setting.value.as_deref();
    match known.treatment {
        Treatment::Refused(_) if known.asks_nothing(text) => return Ok(None),
        Treatment::Refused(why) => {
            let values: Vec<&str> = known.neutral().collect();
            let instead = match values.as_slice() {
                [] => String::new(),
                values => format!(" ({}={} is accepted)", known.name, values.join(" or ")),
            };
            return Err(Fault::unmodelled(&format!("{why}{instead}")));
        }
        Treatment::Ignored(why) | Treatment::Unwritten(why) => {
            return Ok(Some(note(setting, &format!("has no effect: {why}"))));
        }
        Treatment::Program(_) => {
            return Err("is an option of fio's command line, not of a job"
                .to_string()
                .into());
        }
        Treatment::OfEngines(engines) => return of_engines(job, setting, engines),
        Treatment::Value(_) if text.is_none_or(str::is_empty) => {
            return Err("needs a value".to_string().into());
        }
        Treatment::Value(_) | Treatment::Flag(_) => {}
    }
    let expanded = text.map(value::expanded).transpose()?;
    if small {
        t_io_uring::allows(known.name, setting)?;
    } else if known.name == "register_ring" {
        let what = "is an option of t/io_uring; fio has none of the kind";
        return Err(what.to_string().into());
    }
    apply(job, known.name, expanded.as_deref(), kb_base)?;
    Ok(None)
}

/// An option of engines that are not modelled: their jobs have a problem already, or run as those
/// of another engine.
fn of_engines(
    job: &FioJob,
    setting: &Setting,
    engines: &str,
) -> std::result::Result<Option<Ignored>, Fault> {
    let engine = job.engine();
    match engine.filter(|engine| engines.split(' ').any(|other| other == *engine)) {
        Some(engine) if matches!(engines::engine(engine), Ok(Fate::Is(_))) => Ok(Some(note(
            setting,
            &format!("has no effect with {engine}, in fio too"),
        ))),
        Some(engine) => Ok(Some(note(
            setting,
            &format!("has no effect: {engine} is not modelled"),
        ))),
        None => {
            let engines: Vec<&str> = engines.split(' ').collect();
            Err(format!("is an option of ioengine={}", engines.join(", ")).into())
        }
    }
}

/// Takes what is not modelled out of a job's settings; notes on that. Its fields have what it runs
/// as already.
/// `replaced` gets the settings that have another value then.
pub(super) fn leave_out(
    job: &mut FioJob,
    problems: &[Problem],
    replaced: &mut Vec<Setting>,
) -> Vec<Ignored> {
    let left_out = |setting: &Setting| {
        problems
            .iter()
            .find(|problem| (problem.line, &problem.option) == (setting.line, &setting.option))
    };
    let engine = engines::name(job.ioengine);
    let is_out = |option: &str| job.setting(option).is_some_and(|of| left_out(of).is_some());
    let (other_engine, unzoned) = (is_out("ioengine"), is_out("zonemode"));
    let mut notes = Vec::new();
    job.written.retain_mut(|setting| {
        let known = lookup(&setting.option);
        let Some(problem) = left_out(setting) else {
            // The engine that runs in place of its own does not have its options.
            return match known.map(|known| known.treatment) {
                Some(Treatment::OfEngines(engines)) if other_engine => {
                    let engines = engines.replace(' ', ", ");
                    notes.push(note(setting, &format!("an option of {engines}")));
                    false
                }
                _ if unzoned && zones::OPTIONS.contains(&setting.option.as_str()) => {
                    notes.push(note(setting, "counts with zonemode"));
                    false
                }
                _ => true,
            };
        };
        let instead = match known.map_or("", |known| known.name) {
            "ioengine" if problem.what.ends_with(engines::WITHOUT_IO) => None,
            "ioengine" => Some(engine),
            "direct" => Some("1"),
            "buffered" => Some("0"),
            _ => None,
        };
        let mut why = problem.what.clone();
        if let Some(value) = instead {
            // Not what to write: that is done.
            let reason = why
                .split_once("; write ")
                .map_or(&*why, |(reason, _)| reason);
            why = format!("{reason}; run with {}={value}", setting.option);
            replaced.push(setting.clone());
            setting.value = Some(value.to_owned());
        }
        notes.push(note(setting, &why));
        instead.is_some()
    });
    notes
}

pub(super) fn note(setting: &Setting, why: &str) -> Ignored {
    Ignored {
        line: setting.line,
        option: setting.option.clone(),
        why: why.to_string(),
    }
}

type Applied = std::result::Result<(), Fault>;

/// Sets the fields that an option means. `name` is the option's first name.
pub(super) fn apply(job: &mut FioJob, name: &str, text: Option<&str>, kb_base: u64) -> Applied {
    let value = text.unwrap_or("");
    let seconds = Duration::from_secs(1);
    match name {
        "filename" => job.filenames.extend(filenames(value)?),
        "file_service_type" => job.file_service = file_service(value)?,
        "rw" => read_write(job, value, kb_base)?,
        "rwmixread" => job.rwmixread = percent(value)?,
        "rwmixwrite" => job.rwmixread = 100 - percent(value)?,
        "bs" | "bsrange" => block_sizes(job, name, value, kb_base)?,
        "bssplit" => split_sizes(job, value, kb_base)?,
        "thread" => job.thread = value::flag(text)?,
        "direct" => job.direct = value::flag(text)?,
        "buffered" => job.direct = !value::flag(text)?,
        "fadvise_hint" => job.fadvise_hint = fadvise_hint(value)?,
        "ioengine" => engine(job, value)?,
        "hipri" => job.hipri = value::flag(text)?,
        "fixedbufs" => job.fixedbufs = value::flag(text)?,
        "registerfiles" => job.registerfiles = value::flag(text)?,
        "register_ring" => job.register_ring = value::flag(text)?,
        "norandommap" => job.norandommap = value::flag(text)?,
        "randrepeat" => job.randrepeat = value::flag(text)?,
        "randseed" => job.randseed = Some(value::number(value)?),
        "runtime" => {
            let time = value::time(value, seconds)?;
            job.runtime = (time > Duration::ZERO).then_some(time);
        }
        "ramp_time" => job.ramp_time = value::time(value, seconds)?,
        "startdelay" if value.contains('-') => {
            return Err(Fault::unmodelled("a range of start delays"));
        }
        "startdelay" => job.startdelay = value::time(value, seconds)?,
        "thinktime" => job.thinktime = value::time(value, Duration::from_micros(1))?,
        "time_based" => job.time_based = value::flag(text)?,
        "stonewall" => job.stonewall = value::flag(text)?,
        "group_reporting" => job.group_reporting = value::flag(text)?,
        "new_group" => job.new_group = value::flag(text)?,
        "gtod_reduce" => job.gtod_reduce = value::flag(text)?,
        "invalidate" => job.invalidate = value::flag(text)?,
        "number_ios" => job.number_ios = Some(value::bytes(value, kb_base)?).filter(|&ios| ios > 0),
        "size" => job.size = some_of(value, kb_base)?.unwrap_or(Extent::Percent(100)),
        "io_size" => job.io_size = some_of(value, kb_base)?,
        "offset" => job.offset = value::size(value, kb_base)?,
        "offset_increment" => job.offset_increment = value::size(value, kb_base)?,
        "filesize" if value.contains('-') => {
            return Err(Fault::unmodelled("a range of file sizes"));
        }
        "filesize" => job.filesize = Some(at_least_one(value::bytes(value, kb_base)?)?),
        "prioclass" | "prio" => priority(job, name, value)?,
        "continue_on_error" => job.continue_on_error = continue_on_error(value)?,
        "cgroup" => crate::cgroup::bare(value)?.clone_into(&mut job.cgroup),
        "cpus_allowed" => job.cpus_allowed = Some(value::cpus(value)?),
        "cpus_allowed_policy" => {
            job.cpus_allowed_policy = match value {
                "shared" => CpusPolicy::Shared,
                "split" => CpusPolicy::Split,
                _ => return Err(format!("`{value}` is neither shared nor split").into()),
            };
        }
        "cpumask" => job.cpus_allowed = Some(value::cpu_mask(value)?),
        // The queue's, not the job's.
        "kb_base" | "ioscheduler" => {}
        "name" => job.name = value.to_string(),
        _ if control::apply(&mut job.control, name, text, kb_base)? => {}
        _ if writes::apply(&mut job.writes, name, text, kb_base)? => {}
        _ if cmdprio::apply(&mut job.cmdprio, name, value, kb_base)? => {}
        _ => return drawn(job, name, value, kb_base),
    }
    Ok(())
}

/// Options of fio's output, and for positions, sizes and times that are drawn.
fn drawn(job: &mut FioJob, name: &str, value: &str, kb_base: u64) -> Applied {
    if job.output.apply(name, value)? || zones::apply(&mut job.control.zones, name, value, kb_base)?
    {
        return Ok(());
    }
    match name {
        "random_distribution" => job.random_distribution = draw::distribution(value, kb_base)?,
        "blockalign" => job.blockalign = each(value, 0, |text| value::bytes(text, kb_base))?,
        "percentage_random" => job.percentage_random = each(value, 100, percent)?,
        "cmd_type" => one_of(value, [("nvme", ())])?,
        "rw_sequencer" => {
            let words = [
                ("sequential", Sequencer::Sequential),
                ("identical", Sequencer::Identical),
            ];
            job.rw_sequencer = one_of(value, words)?;
        }
        "rate" => job.rate = each(value, 0, |text| value::bytes(text, kb_base))?,
        "rate_iops" => job.rate_iops = each(value, 0, |text| count(text, kb_base))?,
        "rate_process" => {
            let words = [
                ("linear", RateProcess::Linear),
                ("poisson", RateProcess::Poisson),
            ];
            job.rate_process = one_of(value, words)?;
        }
        "io_submit_mode" => {
            job.control.offload = one_of(value, [("inline", false), ("offload", true)])?;
        }
        "thinktime_blocks_type" => {
            let words = [
                ("complete", ThinktimeBlocks::Complete),
                ("issue", ThinktimeBlocks::Issue),
            ];
            job.thinktime_blocks_type = one_of(value, words)?;
        }
        _ => return counts(job, name, value, kb_base),
    }
    Ok(())
}

/// A size; none for 0, which is fio's default.
fn some_of(text: &str, kb_base: u64) -> std::result::Result<Option<Extent>, String> {
    let size = value::size(text, kb_base)?;
    Ok(Some(size).filter(|size| !matches!(size, Extent::Bytes(0) | Extent::Percent(0))))
}

/// Values of reads, writes and trims.
pub(super) fn each<T: Clone>(
    text: &str,
    default: T,
    parse: impl FnMut(&str) -> std::result::Result<T, String>,
) -> std::result::Result<PerDirection<T>, String> {
    let [read, write, trim] = value::per_direction(text, default, parse)?;
    Ok(PerDirection { read, write, trim })
}

/// Parses one of some words.
pub(super) fn one_of<T, const N: usize>(
    text: &str,
    words: [(&str, T); N],
) -> std::result::Result<T, String> {
    let names = words.each_ref().map(|(word, _)| *word);
    let found = words.into_iter().find(|(word, _)| *word == text);
    found
        .map(|(_, value)| value)
        .ok_or_else(|| match names.as_slice() {
            [first, second] => format!("`{text}` is neither {first} nor {second}"),
            names => none_of(text, names),
        })
}

/// A word that is not among these, and the nearest of them.
pub(super) fn none_of(text: &str, names: &[&str]) -> String {
    let near = super::nearest(text, names.iter().copied());
    let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("`{text}` is none of {}{hint}", names.join(", "))
}

fn block_sizes(job: &mut FioJob, name: &str, value: &str, kb_base: u64) -> Applied {
    let range = |(min, max)| SizeRange { min, max };
    job.bs = each(value, range((4096, 4096)), |text| {
        let sizes = match name {
            "bs" if value::range(text, kb_base).is_ok_and(|(min, max)| min < max) => {
                Err(format!("`{text}` is a range: write bsrange={text}"))
            }
            "bs" => value::bytes(text, kb_base).map(|n| (n, n)),
            _ => value::range(text, kb_base),
        };
        sizes.map(range)
    })?;
    Ok(())
}

/// A direction that `bssplit` does not name keeps its `bs`.
fn split_sizes(job: &mut FioJob, value: &str, kb_base: u64) -> Applied {
    job.bssplit = draw::sizes(value, kb_base)?;
    let (split, bs) = (&job.bssplit, &mut job.bs);
    let directions = [
        (&split.read, &mut bs.read),
        (&split.write, &mut bs.write),
        (&split.trim, &mut bs.trim),
    ];
    for (sizes, range) in directions {
        let bytes = || sizes.iter().map(|size| size.bytes);
        if let (Some(min), Some(max)) = (bytes().min(), bytes().max()) {
            *range = SizeRange { min, max };
        }
    }
    Ok(())
}

/// Options that are plain counts.
fn counts(job: &mut FioJob, name: &str, value: &str, kb_base: u64) -> Applied {
    let number = count(value, kb_base)?;
    let limited = |most: u32| match number {
        0 => Err("is at least 1".to_string()),
        n if n > most => Err(format!("{n} is too many; expected 1 to {most}")),
        n => Ok(n),
    };
    match name {
        "iodepth" => job.iodepth = limited(1 << 16)?,
        "loops" => job.loops = number.max(1),
        "numjobs" => job.numjobs = limited(4096)?,
        "iodepth_batch" => job.iodepth_batch = number,
        "iodepth_batch_complete_min" => job.iodepth_batch_complete_min = number,
        "iodepth_batch_complete_max" => job.iodepth_batch_complete_max = number,
        "iodepth_low" => job.iodepth_low = number,
        "fsync" => job.fsync = number,
        "fdatasync" => job.fdatasync = number,
        "nrfiles" if number == 0 => {
            return Err("without files fio does no I/O; leave it out"
                .to_string()
                .into());
        }
        "nrfiles" => job.nrfiles = Some(number),
        "thinktime_blocks" => job.thinktime_blocks = number.max(1),
        "force_async" => job.control.force_async = number,
        _ => unreachable!("{name} is listed as modelled but no field takes it"),
    }
    Ok(())
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
    let kind = if kind == "gauss" { "normal" } else { kind };
    if let Some(skew) = draw::skew(kind, count)? {
        return Ok(FileService::Skewed(skew));
    }
    let make = match (kind, count) {
        ("sequential", None) => return Ok(FileService::Sequential),
        ("roundrobin", _) => FileService::RoundRobin,
        ("random", _) => FileService::Random,
        _ => {
            return Err(
                "expected roundrobin, random (:N, each N I/Os), sequential, zipf:THETA, pareto:H \
                 or normal:PERCENT"
                    .to_string(),
            );
        }
    };
    let ios = count.map_or(Ok(1), value::number)?;
    let ios = u32::try_from(ios).ok().filter(|&ios| ios > 0);
    ios.map(make)
        .ok_or_else(|| "the number of I/Os after `:` is at least 1".to_string())
}

/// `rw`, and the value after its colon: I/Os from one random position to the next, or the gap
/// between sequential ones (str_rw_cb()).
fn read_write(job: &mut FioJob, text: &str, kb_base: u64) -> Applied {
    let (kind, modifier) = match text.split_once(':') {
        Some((kind, modifier)) => (kind.trim(), Some(modifier.trim())),
        None => (text, None),
    };
    let mut rw = ReadWrite {
        read: false,
        write: false,
        trim: false,
        random: kind.starts_with("rand"),
    };
    match kind {
        "read" | "randread" => rw.read = true,
        "write" | "randwrite" => rw.write = true,
        "trim" | "randtrim" => rw.trim = true,
        "rw" | "readwrite" | "randrw" => (rw.read, rw.write) = (true, true),
        "trimwrite" | "randtrimwrite" => (rw.trim, rw.write) = (true, true),
        _ => {
            let names = [
                "read",
                "write",
                "trim",
                "randread",
                "randwrite",
                "randtrim",
                "rw",
                "randrw",
                "trimwrite",
                "randtrimwrite",
            ];
            return Err(none_of(kind, &names).into());
        }
    }
    (job.rw, job.rw_every, job.rw_gap) = (rw, 1, 0);
    match modifier {
        None => {}
        Some(_) if rw.trim && rw.write => {
            let what = "trimwrite takes no modifier here: each block is written once";
            return Err(what.to_string().into());
        }
        Some(modifier) if rw.random => {
            let ios = value::number(modifier)?;
            let ios = u32::try_from(ios).ok().filter(|&ios| ios > 0);
            let wrong = || format!("`{modifier}` is no number of I/Os, at least 1");
            job.rw_every = ios.ok_or_else(wrong)?;
        }
        Some(modifier) => job.rw_gap = value::distance(modifier, kb_base)?,
    }
    Ok(())
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

fn fadvise_hint(text: &str) -> std::result::Result<FadviseHint, String> {
    Ok(match text {
        "0" | "none" => FadviseHint::None,
        "1" => FadviseHint::ByType,
        "random" => FadviseHint::Random,
        "sequential" => FadviseHint::Sequential,
        _ => {
            return Err(format!(
                "`{text}` is none of 0, 1, none, random, sequential"
            ));
        }
    })
}

fn engine(job: &mut FioJob, text: &str) -> Applied {
    let (nearest, why) = match engines::engine(text)? {
        Fate::Is(engine) | Fate::As(engine, _) => {
            job.ioengine = engine;
            return Ok(());
        }
        Fate::Not(nearest, why) => {
            let name = engines::name(nearest);
            (
                nearest,
                format!("{text} ({why}); the nearest engine is {name}"),
            )
        }
        Fate::NoIo(why) => (
            FioEngine::Psync,
            format!("{text} {why}{}", engines::WITHOUT_IO),
        ),
    };
    job.ioengine = nearest;
    Err(Fault::unmodelled(&why))
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
        "prioclass" if number > 3 => return Err(format!("`{text}` is not 0 to 3").into()),
        "prioclass" => priority.class = if number == 0 { 2 } else { number as u8 },
        _ if number > 7 => return Err(format!("`{text}` is not 0 to 7").into()),
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

pub(super) fn count(text: &str, kb_base: u64) -> std::result::Result<u32, String> {
    u32::try_from(value::bytes(text, kb_base)?)
        .map_err(|_| format!("`{text}` is too large; expected at most {}", u32::MAX))
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
