//! Strided zones: zonemode, zonesize, zonerange, zoneskip.
//!
//! After fio 3.33 init.c fixup_options(); what they do is in the simulator (`workload/zones.rs`).

use super::build::one_of;
use super::draw::Distribution;
use super::job::FioJob;
use super::problem::{Fault, Problem};
use super::value;

/// Fields bear fio's names, without `zone`; bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    /// zonemode
    pub strided: bool,
    pub size: u64,
    /// 0: the same as the size.
    pub range: u64,
    pub skip: u64,
}

/// Options that count with zonemode.
pub(super) const OPTIONS: [&str; 3] = ["zonesize", "zonerange", "zoneskip"];

impl Zones {
    pub fn range(&self) -> u64 {
        match self.range {
            0 => self.size,
            range => range,
        }
    }
}

/// Sets the field of an option. False: it is none of these.
pub(super) fn apply(
    zones: &mut Zones,
    name: &str,
    value: &str,
    kb_base: u64,
) -> Result<bool, Fault> {
    let bytes = || value::bytes(value, kb_base);
    match name {
        "zonemode" if value == "zbd" => return Err(Fault::unmodelled("zoned devices")),
        "zonemode" => {
            let words = [("none", false), ("strided", true), ("zbd", false)];
            zones.strided = one_of(value, words)?;
        }
        "zoneskip" if value.ends_with('z') => {
            return Err(Fault::unmodelled("a number of zones of a zoned device"));
        }
        "zonesize" => zones.size = bytes()?,
        "zonerange" => zones.range = bytes()?,
        "zoneskip" => zones.skip = bytes()?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// What is not modelled together with other options; the job then runs without zones.
pub(super) fn unmodelled(job: &mut FioJob) -> Option<Problem> {
    let writes = job.rw.write;
    let uniform = job.random_distribution == Distribution::Uniform;
    let why = match job {
        _ if !job.control.zones.strided => return None,
        _ if job.rw.random && !uniform => {
            "with a random_distribution of all of the file; use random"
        }
        _ if writes && job.rw.trim => "with trims before writes, which fio may put in other zones",
        _ if writes && (job.fsync > 0 || job.fdatasync > 0) => {
            "with syncs, which fio counts as I/O of a zone, with the length of an earlier one"
        }
        _ if writes && job.writes.verify => "with verify of zones that are written again",
        _ => return None,
    };
    job.control.zones.strided = false;
    let setting = job.setting("zonemode")?;
    Some(Problem::unmodelled(setting, why))
}

/// A contradiction, or a zone that is not whole sectors.
pub(super) fn problem(job: &FioJob) -> Option<Problem> {
    let zones = &job.control.zones;
    let bad = |option: &str, what: String| Some(Problem::of_job(job, option, what));
    let mode = job.setting("zonemode").and_then(|set| set.value.as_deref());
    if zones.size > 0 && matches!(mode, None | Some("none")) {
        return bad("zonesize", "needs zonemode=strided".to_string());
    }
    if !zones.strided {
        return None;
    }
    if zones.size == 0 {
        return bad("zonemode", "needs zonesize".to_string());
    }
    for (option, bytes) in [("zonerange", zones.range()), ("zoneskip", zones.skip)] {
        if bytes % 512 != 0 || bytes > 1 << 62 {
            let written = job.setting(option).is_some();
            let option = if written { option } else { "zonesize" };
            let what =
                format!("{bytes} bytes are not whole sectors of 512, or more than any device");
            return bad(option, what);
        }
    }
    let sizes = [
        (job.rw.read, job.bs.read),
        (job.rw.write, job.bs.write),
        (job.rw.trim, job.bs.trim),
    ];
    let least = sizes.into_iter().filter(|(used, _)| *used);
    let least = least.map(|(_, size)| size.min).max().unwrap_or(0);
    if job.rw.random && zones.range() < least {
        let option = if zones.range > 0 {
            "zonerange"
        } else {
            "zonesize"
        };
        let what = format!("{} bytes hold no I/O of {least}", zones.range());
        return bad(option, what);
    }
    None
}
