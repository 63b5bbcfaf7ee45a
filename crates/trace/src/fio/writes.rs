//! Options of writes: how they are synchronous, and what follows a job's writes.
//!
//! After fio 3.33 options.c; what they do is in the simulator (`workload/tail.rs`).

use super::build::{count, one_of};
use super::job::FioJob;
use super::problem::{Fault, Problem};
use super::value;

/// Fields bear fio's names; `options/table.rs` has units and defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writes {
    /// O_SYNC or O_DSYNC.
    pub sync: bool,
    pub end_fsync: bool,
    pub fsync_on_close: bool,
    /// Anything but 0.
    pub verify: bool,
    pub do_verify: bool,
    /// 0: none.
    pub verify_backlog: u32,
    /// 0: as verify_backlog.
    pub verify_backlog_batch: u32,
}

impl Default for Writes {
    fn default() -> Writes {
        Writes {
            sync: false,
            end_fsync: false,
            fsync_on_close: false,
            verify: false,
            do_verify: true,
            verify_backlog: 0,
            verify_backlog_batch: 0,
        }
    }
}

/// Kinds of `verify`. All of them read the same.
const KINDS: [&str; 19] = [
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "pattern_hdr",
    "null",
];

/// Sets the field of an option. False: it is none of these.
pub(super) fn apply(
    writes: &mut Writes,
    name: &str,
    text: Option<&str>,
    kb_base: u64,
) -> Result<bool, Fault> {
    let value = text.unwrap_or("");
    let number = || count(value, kb_base);
    match name {
        "sync" => {
            let words = [
                ("none", false),
                ("0", false),
                ("sync", true),
                ("1", true),
                ("dsync", true),
            ];
            writes.sync = one_of(value, words)?;
        }
        "end_fsync" => writes.end_fsync = value::flag(text)?,
        "fsync_on_close" => writes.fsync_on_close = value::flag(text)?,
        "verify" if value == "0" => writes.verify = false,
        "verify" => {
            // `meta:...`, of old scripts.
            let kind = value.split_once(':').map_or(value, |(kind, _)| kind);
            if !KINDS.contains(&kind) {
                let kinds = KINDS.join(", ");
                return Err(format!("`{value}` is none of 0, {kinds}").into());
            }
            writes.verify = true;
        }
        "do_verify" => writes.do_verify = value::flag(text)?,
        "verify_backlog" => writes.verify_backlog = number()?,
        "verify_backlog_batch" => writes.verify_backlog_batch = number()?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// What is not modelled together with other options; the job then runs without it.
pub(super) fn unmodelled(job: &mut FioJob) -> Vec<Problem> {
    let mut problems = Vec::new();
    if job.writes.verify && job.rw.trim && job.rw.write {
        let what = "verify of trimmed and written blocks; use rw=write or rw=randwrite";
        if let Some(setting) = job.setting("verify") {
            problems.push(Problem::unmodelled(setting, what));
        }
        job.writes.verify = false;
    }
    problems
}
