//! Options that are right each and wrong together.
//!
//! fio overrides some of these in silence; a model that did so would answer another question than
//! was asked.

use blkmq::time::Duration;

use super::engines::{self, Fate};
use super::job::{Extent, FioEngine, FioJob, PerDirection, RateProcess, SizeRange};
use super::problem::Problem;
use super::{Setting, value};

/// Options of the sizes of I/Os.
const SIZES: [&str; 3] = ["bs", "bsrange", "bssplit"];
/// Largest read or write that is believed, bytes.
const BLOCK_MAX: u64 = 1 << 30;
/// Largest trim, bytes: the kernel counts its sectors in 32 bits.
const TRIM_MAX: u64 = 1 << 40;
/// Largest device or region that is believed, bytes.
const SIZE_MAX: u64 = 1 << 62;

/// What is modelled, but not together with the job's other options; the job then has what it would
/// run as without it.
pub(super) fn unmodelled(job: &mut FioJob) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |job: &FioJob, option: &str, what: &str| {
        problems.extend(
            job.setting(option)
                .map(|setting| Problem::unmodelled(setting, what)),
        );
    };
    if let Some((option, what)) = buffered(job) {
        add(job, option, what);
        job.direct = true;
    }
    if job.filenames.is_empty() && job.nrfiles.is_some_and(|count| count > 1) {
        let what = "several files in a file system; filename may name several devices";
        add(job, "nrfiles", what);
        job.nrfiles = None;
    }
    if job.filenames.len() > 1 {
        let few = |setting: &&Setting| {
            let count = value::number(setting.value.as_deref().unwrap_or("1")).unwrap_or(0);
            count > 0 && count < job.filenames.len() as u64
        };
        if job.setting("openfiles").as_ref().is_some_and(few) {
            add(job, "openfiles", "fewer open devices than filename names");
        }
    }
    let control = &job.control;
    if control.latency_target > Duration::ZERO && !control.latency_run && job.numjobs > 1 {
        let what = "with several clones: fio drops what each did before its last window; add \
                    latency_run=1, or use numjobs=1";
        add(job, "latency_target", what);
        job.control.latency_target = Duration::ZERO;
    }
    problems.extend(super::writes::unmodelled(job));
    problems.extend(super::zones::unmodelled(job));
    if job.control.force_async > 0 && job.polls() {
        if let Some(setting) = job.setting("force_async") {
            let what = "workers of a ring that polls; leave hipri out";
            problems.push(Problem::unmodelled(setting, what));
        }
        job.control.force_async = 0;
    }
    problems.extend(offloaded(job));
    problems.extend(passed_through(job));
    if job.hipri
        && !job.polls()
        && job.engine() != Some(engines::PVSYNC2)
        && other_engine(job)
        && let Some(setting) = job.setting("hipri")
    {
        let what = "polling with another engine than io_uring";
        problems.push(Problem::unmodelled(setting, what));
        job.hipri = false;
    }
    problems
}

/// What is not modelled of NVMe commands; the job then is one of io_uring.
fn passed_through(job: &mut FioJob) -> Option<Problem> {
    let writes = &job.writes;
    let syncs = job.fsync > 0 || job.fdatasync > 0 || writes.end_fsync || writes.fsync_on_close;
    let why = match job {
        _ if job.ioengine != FioEngine::IoUringCmd => return None,
        _ if job.rw.trim => "its trims",
        _ if job.rw.write && (syncs || writes.sync) => "its syncs and synchronous writes",
        _ if job.hipri => "with hipri",
        _ if job.control.force_async > 0 => "with force_async",
        _ if job.iodepth_batch > 2 => {
            "with iodepth_batch above 2: a plug gathers passthrough requests then"
        }
        _ => return None,
    };
    job.ioengine = FioEngine::IoUring;
    let setting = job.setting("ioengine")?;
    let what = format!("io_uring_cmd {why}; the nearest engine is io_uring");
    Some(Problem::unmodelled(setting, &what))
}

/// What is not modelled with workers.
fn offloaded(job: &mut FioJob) -> Option<Problem> {
    let control = &job.control;
    let none = PerDirection::same(0);
    let says = job.setting("direct").is_some() || job.setting("buffered").is_some();
    let why = match job {
        _ if !job.control.offload || job.ioengine.is_uring() => return None,
        _ if job.ioengine == FioEngine::Null => "with ioengine=null",
        _ if job.ioengine == FioEngine::PosixAio => "with ioengine=posixaio",
        _ if says && !job.direct => "with reads through the page cache; write direct=1",
        _ if job.writes.verify && job.rw.write => "with verify",
        _ if job.number_ios.is_some() => {
            "with number_ios, of which fio then counts only complete I/Os; use io_size"
        }
        _ if control.latency_target > Duration::ZERO => "with latency_target",
        _ if control.max_latency != PerDirection::same(Duration::ZERO) => "with max_latency",
        _ if control.rate_min != none || control.rate_iops_min != PerDirection::same(0) => {
            "with a least rate"
        }
        _ if control.steadystate.is_some() => "with steadystate",
        _ => return None,
    };
    job.control.offload = false;
    let setting = job.setting("io_submit_mode")?;
    Some(Problem::unmodelled(setting, why))
}

/// Its engine is not modelled itself, but may have the option.
fn other_engine(job: &FioJob) -> bool {
    let engine = job.engine();
    let fate = engine.and_then(|engine| engines::engine(engine).ok());
    !matches!(fate, None | Some(Fate::Is(_)))
}

/// Buffered I/O that is not modelled: the option that asks for it, and why.
fn buffered(job: &FioJob) -> Option<(&'static str, &'static str)> {
    let option = ["buffered", "direct"]
        .into_iter()
        .find(|option| job.setting(option).is_some())?;
    let what = match job.ioengine {
        // Another contradiction.
        _ if job.direct || job.polls() => return None,
        FioEngine::Null | FioEngine::IoUringCmd => return None,
        _ if job.rw.write || job.rw.trim => {
            "writes through the page cache, which writeback does later; write direct=1"
        }
        FioEngine::PosixAio => {
            "threads of glibc that read through the page cache; write ioengine=psync or direct=1"
        }
        FioEngine::IoUring | FioEngine::TIoUring => {
            "io_uring's retries of reads through the page cache; write ioengine=psync or direct=1"
        }
        FioEngine::Libaio | FioEngine::Sync | FioEngine::Psync => return None,
    };
    Some((option, what))
}

/// All contradictions of a job. Options of `wrong` have no right value, and contradict nothing.
pub(super) fn contradictions(job: &FioJob, wrong: &[&str]) -> Vec<Problem> {
    let mut found = Found {
        job,
        wrong,
        problems: Vec::new(),
    };
    opposites(&mut found);
    polling(&mut found);
    rates(&mut found);
    blocks(&mut found);
    extents(&mut found);
    places(&mut found);
    let mut problems = found.problems;
    problems.extend(super::control::problems(job));
    if !wrong
        .iter()
        .any(|of| of.starts_with("zone") || SIZES.contains(of))
    {
        problems.extend(super::zones::problem(job));
    }
    if !wrong.contains(&"ioengine") {
        problems.extend(super::cmdprio::problems(job));
    }
    problems
}

struct Found<'a> {
    job: &'a FioJob,
    wrong: &'a [&'a str],
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn are_right(&self, options: &[&str]) -> bool {
        !options.iter().any(|option| self.wrong.contains(option))
    }

    fn add(&mut self, option: &str, what: impl Into<String>) {
        self.problems.push(Problem::of_job(self.job, option, what));
    }
}

fn opposites(found: &mut Found<'_>) {
    if found.are_right(&["direct", "buffered"])
        && let Some(setting) = both_ways(found.job)
    {
        let what = "says the opposite of direct, both in the same section; keep one";
        found.problems.push(Problem::of(setting, what));
    }
    if found.are_right(&["rwmixread", "rwmixwrite"])
        && let Some(setting) = mix_is_not_whole(found.job)
    {
        let what = "rwmixread and rwmixwrite, both given, do not add up to 100";
        found.problems.push(Problem::of(setting, what));
    }
}

/// Options of io_uring.
fn polling(found: &mut Found<'_>) {
    let job = found.job;
    let uring = job.ioengine.is_uring() || !found.are_right(&["ioengine"]);
    for (option, on) in [
        ("hipri", job.hipri && job.engine() != Some(engines::PVSYNC2)),
        ("fixedbufs", job.fixedbufs),
        ("registerfiles", job.registerfiles),
        ("force_async", job.control.force_async > 0),
    ] {
        if on && !uring {
            found.add(option, "is an option of ioengine=io_uring");
        }
    }
    if job.setting("cmd_type").is_some() && !uring {
        let what = "is an option of ioengine=io_uring, io_uring_cmd";
        found.add("cmd_type", what);
    }
    if job.control.offload && job.ioengine.is_uring() {
        let what = "offload needs another engine than io_uring, in fio too: libaio, psync";
        found.add("io_submit_mode", what);
    }
    // A job with neither option is direct here.
    let says = job.setting("direct").is_some() || job.setting("buffered").is_some();
    let says = says && found.are_right(&["direct", "buffered"]);
    if job.polls() && !job.direct && says {
        found.add(
            "hipri",
            "polled I/O goes around the page cache: add direct=1",
        );
    }
    // io_uring refuses the operation on a ring with IORING_SETUP_IOPOLL.
    for (option, every) in [("fsync", job.fsync), ("fdatasync", job.fdatasync)] {
        if job.polls() && job.rw.write && every > 0 {
            found.add(
                option,
                "a ring that polls (hipri) takes no sync; fio fails at the first one",
            );
        }
    }
}

/// Limits of throughput that exclude each other, or that no I/O fits under.
fn rates(found: &mut Found<'_>) {
    let job = found.job;
    let none = PerDirection::same(0);
    if job.rate != none && job.rate_iops != PerDirection::same(0) {
        found.add("rate_iops", "rate is given as well; fio takes one of them");
    }
    let directions = [
        (job.rw.read, job.rate.read, job.bs.read),
        (job.rw.write, job.rate.write, job.bs.write),
        (job.rw.trim, job.rate.trim, job.bs.trim),
    ];
    for (used, rate, SizeRange { min, .. }) in directions {
        // fio divides by the number of I/Os per second (usec_for_io()).
        let few = used && rate > 0 && rate < min && found.are_right(&SIZES);
        if few && job.rate_process == RateProcess::Poisson {
            let what = "with rate_process=poisson it is one I/O a second at least";
            found.add("rate", what);
        }
    }
}

/// Positions: conflicts of a gap, a split, a number of files.
fn places(found: &mut Found<'_>) {
    let job = found.job;
    if job.direct && job.rw_gap % 512 != 0 {
        let what = format!("{} bytes are not whole sectors of 512", job.rw_gap);
        found.add("rw", what);
    }
    if let Some(setting) = size_after_split(job) {
        let what = "an earlier line has bssplit, which fio uses; keep one of them";
        found.problems.push(Problem::of(setting, what));
    }
    let align = [
        job.blockalign.read,
        job.blockalign.write,
        job.blockalign.trim,
    ];
    if let Some(bytes) = align.into_iter().find(|bytes| {
        let whole = !job.direct || bytes % 512 == 0;
        job.rw.random && !(whole && *bytes <= SIZE_MAX)
    }) {
        let what = format!("{bytes} bytes are not whole sectors of 512, or more than any device");
        found.add("blockalign", what);
    }
    let offset = match job.offset_increment {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(_) => 0,
    };
    if offset > SIZE_MAX || (job.direct && offset % 512 != 0) {
        let what = format!("{offset} bytes are not whole sectors of 512, or more than any device");
        found.add("offset_increment", what);
    }
}

/// The `bs` or `bsrange` after the `bssplit` that counts.
fn size_after_split(job: &FioJob) -> Option<&Setting> {
    let split = job.setting("bssplit")?;
    let later = ["bs", "bsrange"].map(|option| job.setting(option));
    // A scenario's table has no order: there, lines are numbers of settings.
    let place = |setting: &Setting| job.written.iter().position(|other| other == setting);
    later
        .into_iter()
        .flatten()
        .find(|setting| place(setting) > place(split))
}

/// Sizes of I/Os.
fn blocks(found: &mut Found<'_>) {
    let job = found.job;
    let option = job.size_option();
    if !found.are_right(&SIZES) {
        return;
    }
    let directions = [
        (job.rw.read, job.bs.read, BLOCK_MAX),
        (job.rw.write, job.bs.write, BLOCK_MAX),
        (job.rw.trim, job.bs.trim, TRIM_MAX),
    ];
    for (_, SizeRange { min, max }, most) in directions.into_iter().filter(|(used, ..)| *used) {
        if min == 0 {
            found.add(option, "an I/O of 0 bytes");
        } else if max > most {
            let what = format!("an I/O of {max} bytes is too large; expected at most {most} bytes");
            found.add(option, what);
        } else if job.direct && (min % 512 != 0 || max % 512 != 0) {
            let sizes = match min == max {
                true => min.to_string(),
                false => format!("{min} to {max}"),
            };
            let what = format!("{sizes} bytes are not whole sectors of 512, as direct=1 needs");
            found.add(option, what);
        }
        if let Extent::Bytes(size) = job.size
            && size < min
        {
            found.add("size", format!("{size} bytes do not hold one I/O of {min}"));
        }
    }
}

/// Where the region begins and ends.
fn extents(found: &mut Found<'_>) {
    let job = found.job;
    let io_size = job.io_size.unwrap_or(Extent::Percent(100));
    let filesize = job.filesize.map_or(Extent::Percent(100), Extent::Bytes);
    let extents = [
        ("size", job.size),
        ("offset", job.offset),
        ("io_size", io_size),
        ("filesize", filesize),
    ];
    for (option, extent) in extents {
        match extent {
            Extent::Bytes(bytes) if bytes > SIZE_MAX => {
                found.add(
                    option,
                    format!("{bytes} bytes are more than any device has"),
                );
            }
            // Backwards, I/Os are aligned to the end.
            Extent::Bytes(bytes)
                if job.direct && bytes % 512 != 0 && (option == "offset" || job.rw_gap < 0) =>
            {
                found.add(
                    option,
                    format!("{bytes} bytes are not whole sectors of 512"),
                );
            }
            Extent::Bytes(_) | Extent::Percent(_) => {}
        }
    }
}

/// `direct` and `buffered` of one section that contradict each other.
fn both_ways(job: &FioJob) -> Option<&Setting> {
    let direct = job.setting("direct")?;
    let buffered = job.setting("buffered")?;
    let same = value::flag(direct.value.as_deref()) == value::flag(buffered.value.as_deref());
    (same && direct.global == buffered.global).then_some(buffered)
}

/// `rwmixread` and `rwmixwrite` of one section that are not parts of one whole.
fn mix_is_not_whole(job: &FioJob) -> Option<&Setting> {
    let share = |setting: &Setting| {
        let text = setting.value.as_deref().unwrap_or("");
        value::number(text.strip_suffix('%').unwrap_or(text)).unwrap_or(0)
    };
    let (reads, writes) = (job.setting("rwmixread")?, job.setting("rwmixwrite")?);
    (reads.global == writes.global && share(reads) + share(writes) != 100).then_some(writes)
}
