//! Defaults that depend on other options, and options that others leave without effect.
//!
//! After fio's fixup_options() (init.c, 3.33). Contradictions are found in `check.rs`.

use blkmq::time::Duration;

use super::Ignored;
use super::build::note;
use super::engines::{self, Fate};
use super::job::{FioEngine, FioJob, PerDirection};

/// Options that divide up the I/Os in flight.
const DEPTH_OPTIONS: [&str; 4] = [
    "iodepth_batch",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
    "iodepth_low",
];

/// Options for random positions.
const RANDOM_OPTIONS: [&str; 7] = [
    "blockalign",
    "norandommap",
    "randrepeat",
    "randseed",
    "random_distribution",
    "percentage_random",
    "rw_sequencer",
];

/// Defaults that depend on other options, as fio's fixup_options() has them, and options that the
/// others leave without effect.
pub(super) fn settle(job: &mut FioJob, notes: &mut Vec<Ignored>) {
    let mut idle = |job: &FioJob, option: &str, why: &str| {
        if let Some(setting) = job.setting(option) {
            notes.push(note(setting, why));
        }
    };
    synchronous(job, &mut idle);
    if job.runtime.is_none() {
        // fio warns and goes on.
        idle(job, "time_based", "there is no runtime");
        job.time_based = false;
    }
    let says = job.setting("direct").is_some() || job.setting("buffered").is_some();
    if job.direct || !says {
        idle(
            job,
            "fadvise_hint",
            "has no effect on I/O around the page cache",
        );
    }
    directions(job, &mut idle);
    match job.nrfiles {
        // fio takes the first ones.
        Some(count) if (count as usize) < job.filenames.len() => {
            job.filenames.truncate(count as usize);
        }
        _ => idle(job, "nrfiles", "filename names the devices"),
    }
    if job.filenames.len() < 2 {
        idle(job, "file_service_type", "there is one file");
    }
    if job.cpus_allowed.is_none() {
        idle(job, "cpus_allowed_policy", "cpus_allowed is not given");
    }
    if job.rate == PerDirection::same(0) && job.rate_iops == PerDirection::same(0) {
        idle(job, "rate_process", "there is no rate");
    }
    controls(job, &mut idle);
    if job.thinktime == Duration::ZERO {
        for option in [
            "thinktime_blocks",
            "thinktime_blocks_type",
            "thinktime_spin",
            "thinktime_iotime",
            "rate_ignore_thinktime",
        ] {
            idle(job, option, "there is no thinktime");
        }
    }
    if job.time_based {
        for option in ["io_size", "loops"] {
            idle(job, option, "time_based goes on until the runtime is over");
        }
        job.loops = 1;
    }
    if job.numjobs == 1 {
        idle(job, "offset_increment", "it moves clones after the first");
    }
    split(job, &mut idle);
    depths(job);
}

/// Options that only count with another one.
fn controls(job: &FioJob, idle: &mut impl FnMut(&FioJob, &str, &str)) {
    let c = &job.control;
    for (without, options, why) in [
        (
            c.rate_min == PerDirection::same(0) && c.rate_iops_min == PerDirection::same(0),
            ["rate_cycle"].as_slice(),
            "there is no rate_min or rate_iops_min",
        ),
        (
            c.latency_target == Duration::ZERO,
            &["latency_window", "latency_percentile", "latency_run"],
            "there is no latency_target",
        ),
        (
            !job.writes.verify,
            &["do_verify", "verify_backlog", "verify_backlog_batch"],
            "there is no verify",
        ),
        (
            job.writes.verify && !job.rw.write,
            &["verify"],
            "reads are checked, which costs no time here",
        ),
        (
            !job.control.zones.strided,
            &["zonerange", "zoneskip"],
            "there is no zonemode=strided",
        ),
        (c.flow == 0, &["flow_id", "flow_sleep"], "there is no flow"),
        (
            c.steadystate.is_none(),
            &["steadystate_duration", "steadystate_ramp_time"],
            "there is no steadystate",
        ),
        (
            c.ss_dur == Duration::ZERO,
            &["steadystate"],
            "there is no steadystate_duration, and fio has no default for it",
        ),
    ] {
        for option in options.iter().filter(|_| without) {
            idle(job, option, why);
        }
    }
}

/// Options of directions and positions that `rw` does not have.
fn directions(job: &FioJob, idle: &mut impl FnMut(&FioJob, &str, &str)) {
    if !job.rw.write {
        for option in ["fsync", "fdatasync"] {
            idle(job, option, "it counts writes, and rw has none");
        }
        for option in ["sync", "end_fsync", "fsync_on_close"] {
            idle(job, option, "rw has no writes");
        }
    }
    if !(job.rw.read && job.rw.write) {
        for option in ["rwmixread", "rwmixwrite"] {
            idle(job, option, "rw does not mix reads and writes");
        }
    }
    if !job.rw.random {
        for option in RANDOM_OPTIONS {
            idle(job, option, "positions are sequential");
        }
    } else if job.rw_every == 1 {
        let why = "rw names no number of I/Os from one random position to the next";
        idle(job, "rw_sequencer", why);
    }
}

fn synchronous(job: &mut FioJob, idle: &mut impl FnMut(&FioJob, &str, &str)) {
    let engine = job.engine().map(engines::engine);
    if let Some(Ok(Fate::As(engine, why))) = engine {
        let why = format!("run as {}: {why}", engines::name(engine));
        idle(job, "ioengine", &why);
    }
    if job.ioengine == FioEngine::IoUring {
        idle(job, "cmd_type", "has no effect with io_uring, in fio too");
    }
    if job.hipri && job.engine() == Some(engines::PVSYNC2) {
        let why = "has no effect: kernels since 5.19 sleep in preadv2(2) with RWF_HIPRI, too";
        idle(job, "hipri", why);
    }
    if !job.ioengine.is_synchronous() {
        return;
    }
    if job.control.offload {
        return;
    }
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

/// Sizes that bssplit takes from bs, and shares that it gives to the most frequent size.
fn split(job: &FioJob, idle: &mut impl FnMut(&FioJob, &str, &str)) {
    let sides = [&job.bssplit.read, &job.bssplit.write, &job.bssplit.trim];
    if sides.iter().all(|side| !side.is_empty()) {
        for option in ["bs", "bsrange"] {
            idle(job, option, "bssplit has the sizes");
        }
    }
    for (number, side) in sides.iter().enumerate() {
        let sum: u32 = side.iter().map(|size| u32::from(size.percent)).sum();
        let Some(most) = side.last().filter(|_| sum < 100) else {
            continue;
        };
        let why = format!(
            "the shares add up to {sum} percent; {} bytes get the other {}, as in fio",
            most.bytes,
            100 - sum
        );
        if !sides[..number].contains(side) {
            idle(job, "bssplit", &why);
        }
    }
}

fn depths(job: &mut FioJob) {
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
