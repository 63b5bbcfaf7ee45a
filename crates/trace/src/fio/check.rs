//! Options that are right each and wrong together.
//!
//! fio overrides some of these in silence; a model that did so would answer another question than
//! was asked.

use std::path::Path;

use super::job::{Extent, FioJob, PerDirection, RateProcess, SizeRange};
use super::{Setting, value};
use crate::{Error, Result};

/// Largest I/O that is believed, bytes.
const BLOCK_MAX: u64 = 1 << 30;
/// Largest device or region that is believed, bytes.
const SIZE_MAX: u64 = 1 << 62;

/// The first contradiction of a job, with the line of the option at fault.
pub(super) fn contradictions(file: &Path, job: &FioJob) -> Result<()> {
    let bad = |option: &str, what: String| -> Result<()> {
        Err(Error::text(file, job.line_of(option), option, what))
    };
    if let Some(setting) = both_ways(job) {
        let what = "says the opposite of direct, both in the same section; keep one".to_string();
        return Err(super::build::error(file, setting, what));
    }
    if let Some(setting) = mix_is_not_whole(job) {
        let what = "rwmixread and rwmixwrite, both given, do not add up to 100".to_string();
        return Err(super::build::error(file, setting, what));
    }
    let uring = job.ioengine.is_uring();
    for (option, on) in [
        ("hipri", job.hipri),
        ("fixedbufs", job.fixedbufs),
        ("registerfiles", job.registerfiles),
    ] {
        if on && !uring {
            return bad(option, "is an option of ioengine=io_uring".to_string());
        }
    }
    // A job with neither option is direct here.
    let says = job.setting("direct").is_some() || job.setting("buffered").is_some();
    if job.hipri && !job.direct && says {
        return bad(
            "hipri",
            "polled I/O goes around the page cache: add direct=1".to_string(),
        );
    }
    // io_uring refuses the operation on a ring with IORING_SETUP_IOPOLL.
    for (option, every) in [("fsync", job.fsync), ("fdatasync", job.fdatasync)] {
        if job.hipri && job.rw.write && every > 0 {
            let what = "a ring that polls (hipri) takes no sync; fio fails at the first one";
            return bad(option, what.to_string());
        }
    }
    if job.time_based && job.runtime.is_none() {
        return bad("time_based", "needs a runtime".to_string());
    }
    rates(file, job)?;
    sizes(file, job)?;
    places(file, job)
}

/// Limits of throughput that exclude each other, or that no I/O fits under.
fn rates(file: &Path, job: &FioJob) -> Result<()> {
    let bad = |option: &str, what: &str| -> Result<()> {
        Err(Error::text(file, job.line_of(option), option, what))
    };
    let none = PerDirection::same(0);
    if job.rate != none && job.rate_iops != PerDirection::same(0) {
        return bad("rate_iops", "rate is given as well; fio takes one of them");
    }
    let directions = [
        (job.rw.read, job.rate.read, job.bs.read),
        (job.rw.write, job.rate.write, job.bs.write),
        (job.rw.trim, job.rate.trim, job.bs.trim),
    ];
    for (used, rate, SizeRange { min, .. }) in directions {
        // fio divides by the number of I/Os per second (usec_for_io()).
        if used && rate > 0 && rate < min && job.rate_process == RateProcess::Poisson {
            return bad(
                "rate",
                "with rate_process=poisson it is one I/O a second at least",
            );
        }
    }
    Ok(())
}

/// Positions: conflicts of a gap, a split, a number of files.
fn places(file: &Path, job: &FioJob) -> Result<()> {
    let bad = |option: &str, what: String| -> Result<()> {
        Err(Error::text(file, job.line_of(option), option, what))
    };
    if job.direct && job.rw_gap % 512 != 0 {
        let what = format!("{} bytes are not whole sectors of 512", job.rw_gap);
        return bad("rw", what);
    }
    if job.filenames.is_empty() && job.nrfiles.is_some_and(|count| count > 1) {
        let what = "files in a file system are not modelled; filename may name several devices";
        return bad("nrfiles", what.to_string());
    }
    if let Some(setting) = size_after_split(job) {
        let what = "an earlier line has bssplit, which fio uses; keep one of them";
        return Err(super::build::error(file, setting, what));
    }
    let offset = match job.offset_increment {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(_) => 0,
    };
    if offset > SIZE_MAX || (job.direct && offset % 512 != 0) {
        let what = format!("{offset} bytes are not whole sectors of 512, or more than any device");
        return bad("offset_increment", what);
    }
    Ok(())
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

fn sizes(file: &Path, job: &FioJob) -> Result<()> {
    let option = job.size_option();
    let bad = |option: &str, what: String| -> Result<()> {
        Err(Error::text(file, job.line_of(option), option, what))
    };
    let directions = [
        (job.rw.read, job.bs.read),
        (job.rw.write, job.bs.write),
        (job.rw.trim, job.bs.trim),
    ];
    for (used, SizeRange { min, max }) in directions {
        if !used {
            continue;
        }
        if min == 0 {
            return bad(option, "an I/O of 0 bytes".to_string());
        }
        if max > BLOCK_MAX {
            return bad(
                option,
                format!("an I/O of {max} bytes is absurd; at most {BLOCK_MAX}"),
            );
        }
        if job.direct && (min % 512 != 0 || max % 512 != 0) {
            let what =
                format!("{min} to {max} bytes are not whole sectors of 512, as direct=1 needs");
            return bad(option, what);
        }
        if let Extent::Bytes(size) = job.size
            && size < max
        {
            return bad("size", format!("{size} bytes do not hold one I/O of {max}"));
        }
    }
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
                return bad(
                    option,
                    format!("{bytes} bytes are more than any device has"),
                );
            }
            Extent::Bytes(bytes) if job.direct && bytes % 512 != 0 => {
                return bad(
                    option,
                    format!("{bytes} bytes are not whole sectors of 512"),
                );
            }
            Extent::Percent(0) if option != "offset" => {
                return bad(option, "0% of a device hold no I/O".to_string());
            }
            Extent::Bytes(_) | Extent::Percent(_) => {}
        }
    }
    Ok(())
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
