//! Blocks of pages under docs/ that need a file beside the command.

use std::fs;

use super::markdown::fenced;
use super::runs::Blksim;
use crate::paths;
use crate::step::{Failure, Result};

const GUIDE: &str = "docs/guides/fio.md";
const JOB: &str = "```\n[mix]\n";

/// The job file of the guide, under four schedulers: only throughput.
pub(super) fn fio_mix(blksim: &Blksim) -> Result<String> {
    let failure = |what: &dyn std::fmt::Display| Failure(format!("{GUIDE}: {what}"));
    let guide = fs::read_to_string(paths::root().join(GUIDE)).map_err(|e| failure(&e))?;
    let job = guide
        .split_once(JOB)
        .and_then(|(_, rest)| rest.split_once("```"));
    let (job, _) = job.ok_or_else(|| failure(&"no job file [mix]"))?;
    let folder = paths::target_dir().join("results");
    fs::create_dir_all(&folder).map_err(|e| failure(&e))?;
    let file = folder.join("mix.fio");
    fs::write(&file, format!("[mix]\n{job}")).map_err(|e| failure(&e))?;
    let text = blksim.text(&format!(
        "compare {} --scheduler none,mq-deadline,kyber,bfq",
        file.display()
    ))?;
    let parts: Vec<&str> = text.split("\n\n").take(2).collect();
    Ok(fenced(&parts.join("\n\n")))
}
