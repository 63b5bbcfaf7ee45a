//! Figures of dm-multipath over null_blk: throughput by kernel and number of queues, what each
//! change of the kernel does, and whether more queues help.

use std::fs;

use serde_json::Value;

use super::blocks::Made;
use super::cfq::picture;
use super::runs::{Blksim, iops, number};
use super::sweeps;
use super::tables::{columns, table};
use crate::paths;
use crate::step::{Failure, Result};

const SCENARIO: &str = "crates/cli/scenarios/dm-null.toml";

/// Numbers of hardware queues of the null_blk below.
const QUEUES: [u32; 4] = [1, 2, 4, 12];

/// The scenario with other text, as a file that a command line can name.
fn variant(name: &str, change: impl Fn(String) -> String) -> Result<String> {
    let folder = paths::target_dir().join("results");
    let file = folder.join(format!("{name}.toml"));
    let text = change(sweeps::read(&paths::root().join(SCENARIO))?);
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text));
    written.map_err(|e| Failure(format!("{}: cannot write: {e}", file.display())))?;
    Ok(file.display().to_string())
}

/// null_blk without dm on top.
fn alone() -> Result<String> {
    variant("null-alone", |text| {
        let (before, rest) = text.split_once("[mapped]").expect("a mapped device");
        let (_, behind) = rest.split_once("[[job]]").expect("a job");
        format!("{before}[[job]]{behind}")
    })
}

/// The same device, bio-based.
fn bio_based() -> Result<String> {
    variant("dm-null-bio", |text| {
        let kept = text.lines().filter(|line| !line.starts_with("use_blk_mq"));
        let kept = kept.map(|line| format!("{line}\n")).collect::<String>();
        kept.replace("multipath 0 0", "multipath 2 queue_mode bio 0")
    })
}

/// One group of so many paths, each a null_blk of its own.
fn paths_of(count: u32) -> Result<String> {
    variant(&format!("dm-null-{count}"), |text| over(count, &text))
}

/// The scenario's text with so many paths.
fn over(count: u32, text: &str) -> String {
    let paths: Vec<String> = (0..count).map(|at| format!("nullb{at} 1 1")).collect();
    let group = format!("service-time 0 {count} 2 {}", paths.join(" "));
    text.replace("service-time 0 1 2 nullb0 1 1", &group)
        .replace(
            "type = \"null_blk\"",
            &format!("type = \"null_blk\"\nnr_devices = {count}"),
        )
}

fn thousands(report: &Value) -> Result<String> {
    Ok(format!("{:.0}", iops(report)? / 1e3))
}

/// Switches of fio's threads for each I/O.
fn switches(report: &Value) -> Result<String> {
    let ios = iops(report)? * number(report, "/blksim/measured_ns")? / 1e9;
    let fio = number(report, "/context_switches/fio")?;
    Ok(format!("{:.3}", fio / ios))
}

/// By kernel and number of null_blk's queues.
pub(super) fn kernels(blksim: &Blksim) -> Result<Made> {
    let (alone, bios) = (alone()?, bio_based()?);
    let tops = [
        ("null_blk alone", format!("run {alone} --json")),
        (
            "4.5, use_blk_mq=0",
            "run dm-null --json --set mapped.use_blk_mq=0 --set mapped.queue.scheduler=deadline"
                .to_owned(),
        ),
        ("4.5", "run dm-null --json".to_owned()),
        (
            "4.6",
            "run dm-null --json --set queue.rules=v4.6".to_owned(),
        ),
        (
            "4.12",
            "run dm-null --json --set queue.rules=v4.12".to_owned(),
        ),
        (
            "6.1",
            "run dm-null --json --set queue.rules=v6.1".to_owned(),
        ),
        (
            "6.12",
            "run dm-null --json --set queue.rules=v6.12".to_owned(),
        ),
        (
            "4.12, queue_mode bio",
            format!("run {bios} --json --set queue.rules=v4.12"),
        ),
        (
            "6.12, queue_mode bio",
            format!("run {bios} --json --set queue.rules=v6.12"),
        ),
    ];
    let with = |line: &str, queues: u32| format!("{line} --set device.submit_queues={queues}");
    let lines = tops
        .iter()
        .flat_map(|(_, line)| QUEUES.map(|queues| with(line, queues)));
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for ((name, _), reports) in tops.iter().zip(found.chunks(QUEUES.len())) {
        let mut row = vec![(*name).to_owned()];
        for report in reports {
            let has_dm = report.get("context_switches").is_some();
            row.push(match has_dm {
                true => format!("{} ({})", thousands(report)?, switches(report)?),
                false => thousands(report)?,
            });
        }
        rows.push(row);
    }
    let header = ["K IOPS (fio's switches an I/O)", "1 queue", "2", "4", "12"];
    let plot = format!(
        "plot {} dm-null --set device.submit_queues=1,4",
        self::alone()?
    );
    Ok(Made {
        body: table(&columns(&header), &rows),
        files: vec![picture(blksim, &plot, "switches", "dm-switches")?],
    })
}

/// Changes that came between 4.5 and 4.6 and later, each alone, by null_blk's queues.
pub(super) fn changes(blksim: &Blksim) -> Result<String> {
    let all = [
        ("4.5", ""),
        ("queue depth 2048", "--set mapped.dm_mq_queue_depth=2048"),
        (
            "data in the request",
            "--set mapped.kernel.io_data=in-request",
        ),
        (
            "no re-run at completion",
            "--set mapped.kernel.end_run=nothing",
        ),
        ("target known", "--set mapped.kernel.target=known"),
        (
            "second end where the block layer places it",
            "--set mapped.kernel.second_end=placed",
        ),
        (
            "path without m->lock",
            "--set mapped.kernel.target_lock=changes",
        ),
        (
            "clones inserted at once",
            "--set mapped.kernel.insertion=at-once",
        ),
    ];
    let queues = [1, 4];
    let lines = all.iter().flat_map(|(_, set)| {
        queues.map(|queues| format!("run dm-null --json --set device.submit_queues={queues} {set}"))
    });
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for ((name, set), reports) in all.iter().zip(found.chunks(queues.len())) {
        let set = set.trim_start_matches("--set ");
        let set = if set.is_empty() {
            String::new()
        } else {
            format!("`{set}`")
        };
        let mut row = vec![(*name).to_owned(), set];
        for (at, report) in reports.iter().enumerate() {
            let ratio = iops(report)? / iops(&found[at])?;
            row.push(format!(
                "{} x {ratio:.2} ({})",
                thousands(report)?,
                switches(report)?
            ));
        }
        rows.push(row);
    }
    let header = ["change", "switch", "1 queue", "4 queues"];
    Ok(table(&columns(&header), &rows))
}

/// More hardware queues of dm, over one path and over more.
pub(super) fn queues(blksim: &Blksim) -> Result<Made> {
    let counts = [1, 2, 4, 12];
    let mut tops = Vec::new();
    for rules in ["v4.5", "v4.6", "v6.1"] {
        for paths in [1, 2, 4] {
            let file = paths_of(paths)?;
            let line =
                format!("run {file} --json --set queue.rules={rules} --set device.submit_queues=4");
            tops.push((rules, paths, line));
        }
    }
    let lines = tops.iter().flat_map(|(.., line)| {
        counts.map(|count| format!("{line} --set mapped.dm_mq_nr_hw_queues={count}"))
    });
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for ((rules, paths, _), reports) in tops.iter().zip(found.chunks(counts.len())) {
        let mut row = vec![(*rules).to_owned(), paths.to_string()];
        for report in reports {
            row.push(format!("{} ({})", thousands(report)?, switches(report)?));
        }
        rows.push(row);
    }
    let header = ["rules", "paths", "dm_mq_nr_hw_queues 1", "2", "4", "12"];
    let drawn = |rules: &str| {
        let mut plot = format!("plot --rules {rules}");
        for (paths, queues) in [(1, 1), (1, 2), (1, 4), (4, 1), (4, 2), (4, 4)] {
            let name = format!("{paths}-paths-{queues}-queues");
            let file = variant(&name, |text| {
                over(paths, &text)
                    .replace("[device]\n", "[device]\nsubmit_queues = 4\n")
                    .replace(
                        "[mapped]\n",
                        &format!("[mapped]\ndm_mq_nr_hw_queues = {queues}\n"),
                    )
            })?;
            plot = format!("{plot} {file}");
        }
        picture(blksim, &plot, "bars", &format!("dm-queues-{rules}"))
    };
    Ok(Made {
        body: table(&columns(&header), &rows),
        files: vec![drawn("v4.5")?, drawn("v6.1")?],
    })
}
