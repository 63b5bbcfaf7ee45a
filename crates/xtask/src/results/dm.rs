//! Figures of dm-multipath over null_blk: throughput by kernel and number of queues, the effect of
//! each change of the kernel, and whether more queues help.

use serde_json::Value;

use super::blocks::Made;
use super::cfq::picture;
use super::markdown::{columns, table};
use super::runs::{Blksim, iops, number};
use crate::dm_null::{null_alone, replaced, variant};
use crate::step::{Failure, Result};

/// How long a run is measured: a worker that spins until a tick makes the scenario's own 20 ms
/// swing by a quarter.
const RUNTIME: &str = "--set job.runtime=400ms";
/// The same over Fibre Channel: 4.12 puts requests aside for 100 ms.
const LONG: &str = "--set job.ramp_time=200ms --set job.runtime=500ms";

/// The scenario with the 64 tags on top that the posting has; 4.5's code has 128.
const POSTED: &str = "dm-null --set mapped.dm_mq_queue_depth=64";

/// Numbers of hardware queues of the null_blk below.
const QUEUES: [u32; 4] = [1, 2, 4, 12];

fn bio_based() -> Result<String> {
    variant("dm-null-bio", |text| {
        let kept = text.lines().filter(|line| !line.starts_with("use_blk_mq"));
        let kept = kept.map(|line| format!("{line}\n")).collect::<String>();
        replaced(&kept, "multipath 0 0", "multipath 2 queue_mode bio 0")
    })
}

/// One group of so many paths, each a null_blk of its own.
fn paths_of(count: u32) -> Result<String> {
    variant(&format!("dm-null-{count}"), |text| over(count, &text))
}

/// The scenario's text with so many paths.
fn over(count: u32, text: &str) -> Result<String> {
    let paths: Vec<String> = (0..count).map(|at| format!("nullb{at} 1 1")).collect();
    let group = format!("service-time 0 {count} 2 {}", paths.join(" "));
    let text = replaced(text, "service-time 0 1 2 nullb0 1 1", &group)?;
    let devices = format!("type = \"null_blk\"\nnr_devices = {count}");
    replaced(&text, "type = \"null_blk\"", &devices)
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
    let (alone, bios) = (null_alone()?, bio_based()?);
    let tops = [
        ("null_blk only", format!("run {alone} --json")),
        (
            "4.5, use_blk_mq=0",
            "run dm-null --json --set mapped.use_blk_mq=0 --set mapped.queue.scheduler=deadline"
                .to_owned(),
        ),
        ("4.5", "run dm-null --json".to_owned()),
        ("4.5, 64 tags", format!("run {POSTED} --json")),
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
    let with =
        |line: &str, queues: u32| format!("{line} {RUNTIME} --set device.submit_queues={queues}");
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
    let header = ["K IOPS (fio's switches per I/O)", "1 queue", "2", "4", "12"];
    let plot = format!(
        "plot {} dm-null --set device.submit_queues=1,4 --set job.runtime=40ms",
        null_alone()?
    );
    Ok(Made {
        body: table(&columns(&header), &rows),
        files: vec![picture(blksim, &plot, "switches", "dm-switches")?],
    })
}

/// Published next to the throughput: shares of fio's threads, and their switches in 10 s.
pub(super) fn shares(blksim: &Blksim) -> Result<String> {
    let tops = [
        ("null_blk only", null_alone()?),
        ("4.5", "dm-null".to_owned()),
        ("4.5, 64 tags", POSTED.to_owned()),
    ];
    let raw = [("25.5 / 74.4", "1,970"), ("26.8 / 73.2", "2,067")];
    let dm = [("11.07 / 33.90", "667,784"), ("15.22 / 48.44", "2,314,901")];
    let published = [raw, dm, dm];
    let queues = [1, 4];
    let lines = tops.iter().flat_map(|(_, file)| {
        let line = format!("run {file} --json {RUNTIME} --set device.submit_queues");
        queues.map(|queues| format!("{line}={queues}"))
    });
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for (((name, _), reports), published) in tops.iter().zip(found.chunks(2)).zip(published) {
        for ((queues, report), (shares, switches)) in queues.iter().zip(reports).zip(published) {
            let of = |field: &str| number(report, &format!("/jobs/0/{field}"));
            let seconds = number(report, "/blksim/measured_ns")? / 1e9;
            rows.push(vec![
                (*name).to_owned(),
                queues.to_string(),
                format!("{:.1} / {:.1}", of("usr_cpu")?, of("sys_cpu")?),
                shares.to_owned(),
                format!("{:.0}", of("ctx")? / seconds * 10.0),
                switches.to_owned(),
            ]);
        }
    }
    let header = [
        "",
        "queues",
        "usr / sys, %",
        "published",
        "switches in 10 s",
        "published",
    ];
    Ok(table(&columns(&header), &rows))
}

/// Switches of all CPUs per I/O, by the next task.
pub(super) fn switched_to(blksim: &Blksim) -> Result<String> {
    const TO: [&str; 4] = ["ksoftirqd", "kworker", "task", "idle"];
    let tops = [
        ("null_blk only", null_alone()?),
        ("4.5", "dm-null".to_owned()),
        ("4.5, 64 tags", POSTED.to_owned()),
        ("4.6", "dm-null --set queue.rules=v4.6".to_owned()),
    ];
    let queues = [1, 4];
    let lines = tops.iter().flat_map(|(_, file)| {
        let line = format!("run {file} --json --details {RUNTIME} --set device.submit_queues");
        queues.map(|queues| format!("{line}={queues}"))
    });
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for ((name, _), reports) in tops.iter().zip(found.chunks(queues.len())) {
        for (queues, report) in queues.iter().zip(reports) {
            let ios = iops(report)? * number(report, "/blksim/measured_ns")? / 1e9;
            let mut row = vec![(*name).to_owned(), queues.to_string()];
            for to in TO {
                let steps = report.pointer(&format!("/details/switches/{to}"));
                let steps = steps.and_then(Value::as_array);
                let steps = steps.ok_or_else(|| Failure(format!("{name}: no switches to {to}")))?;
                let sum: f64 = steps.iter().filter_map(Value::as_f64).sum();
                row.push(format!("{:.3}", sum / ios));
            }
            rows.push(row);
        }
    }
    let header = [
        "switches per I/O",
        "queues",
        "to ksoftirqd",
        "kworkers",
        "tasks",
        "swapper",
    ];
    Ok(table(&columns(&header), &rows))
}

/// Changes that came between 4.5 and 4.6 and later, by name.
const CHANGES: [(&str, &str); 7] = [
    ("queue depth 2048", "mapped.dm_mq_queue_depth=2048"),
    ("data in the request", "mapped.kernel.io_data=in-request"),
    ("no re-run at completion", "mapped.kernel.end_run=nothing"),
    ("target known", "mapped.kernel.target=known"),
    (
        "second end where the block layer places it",
        "mapped.kernel.second_end=placed",
    ),
    ("path without m->lock", "mapped.kernel.target_lock=changes"),
    ("clones inserted at once", "mapped.kernel.insertion=at-once"),
];

/// The effect of the changes, each separately and all together, by null_blk's queues.
pub(super) fn changes(blksim: &Blksim) -> Result<String> {
    let mut all: Vec<(&str, Vec<&str>)> = vec![("4.5", Vec::new())];
    all.extend(CHANGES.map(|(name, set)| (name, vec![set])));
    all.push(("all of them", CHANGES.map(|(_, set)| set).to_vec()));
    let on = [("dm-null", 1), (POSTED, 1), ("dm-null", 4)];
    let lines = all.iter().flat_map(|(_, sets)| {
        on.map(|(file, queues)| {
            // A change of the depth takes the place of the posting's.
            let own_depth = sets.iter().any(|set| set.contains("dm_mq_queue_depth"));
            let file = if own_depth { "dm-null" } else { file };
            let sets: String = sets.iter().map(|set| format!(" --set {set}")).collect();
            format!("run {file} --json {RUNTIME} --set device.submit_queues={queues}{sets}")
        })
    });
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for ((name, sets), reports) in all.iter().zip(found.chunks(on.len())) {
        let set = match sets[..] {
            [set] => format!("`{set}`"),
            _ => String::new(),
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
    let header = [
        "change",
        "switch",
        "1 queue",
        "1 queue, 64 tags on top",
        "4 queues",
    ];
    Ok(table(&columns(&header), &rows))
}

/// By fio's depth and number of null_blk's queues.
pub(super) fn depths(blksim: &Blksim) -> Result<String> {
    let depths = [1, 4, 16, 32, 64, 128];
    let mut tops = Vec::new();
    let all = [
        ("null_blk only", null_alone()?),
        ("4.5", "dm-null".to_owned()),
        ("4.5, 64 tags", POSTED.to_owned()),
    ];
    for (name, file) in all {
        for queues in [1, 4] {
            let line = format!("run {file} --json {RUNTIME} --set device.submit_queues={queues}");
            let s = if queues == 1 { "" } else { "s" };
            tops.push((format!("{name}, {queues} queue{s}"), line));
        }
    }
    let lines = tops
        .iter()
        .flat_map(|(_, line)| depths.map(|depth| format!("{line} --set job.iodepth={depth}")));
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let rows = tops.into_iter().zip(found.chunks(depths.len()));
    let rows = rows.map(|((name, _), reports)| {
        let figures = reports.iter().map(thousands);
        core::iter::once(Ok(name)).chain(figures).collect()
    });
    let mut header = vec!["K IOPS by iodepth".to_owned()];
    header.extend(depths.map(|depth| depth.to_string()));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = rows.collect::<Result<Vec<Vec<String>>>>()?;
    Ok(table(&columns(&header), &rows))
}

/// Two hosts with four units: by kernel and by the limit of a host.
pub(super) fn hosts(blksim: &Blksim) -> Result<String> {
    let depths = [64, 256, 2000];
    let kernels = [
        ("4.5", "v4.5"),
        ("4.12", "v4.12"),
        ("6.1", "v6.1"),
        ("6.12", "v6.12"),
    ];
    let lines = kernels.iter().flat_map(|(_, rules)| {
        depths.map(|depth| {
            format!(
                "run dm-fc --json --set queue.rules={rules} --set queue.scheduler=none \
                 --set mapped.use_blk_mq=1 {LONG} --set device.can_queue={depth}"
            )
        })
    });
    let found = blksim.all(&lines.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for ((name, _), reports) in kernels.iter().zip(found.chunks(depths.len())) {
        let mut row = vec![(*name).to_owned()];
        for report in reports {
            let mean = number(report, "/jobs/0/read/clat_ns/mean")? / 1e3;
            let most = number(report, "/device/depth_max")?;
            row.push(format!("{} ({mean:.0} us, {most})", thousands(report)?));
        }
        rows.push(row);
    }
    let header = [
        "K IOPS (mean clat, most in flight)",
        "can_queue 64",
        "256",
        "2000",
    ];
    Ok(table(&columns(&header), &rows))
}

/// More hardware queues of dm, over one path and over more.
pub(super) fn queues(blksim: &Blksim) -> Result<Made> {
    let counts = [1, 2, 4, 12];
    let mut tops = Vec::new();
    for rules in ["v4.5", "v4.6", "v6.1"] {
        for paths in [1, 2, 4] {
            let file = paths_of(paths)?;
            let line = format!(
                "run {file} --json {RUNTIME} --set queue.rules={rules} \
                 --set device.submit_queues=4"
            );
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
                let text = over(paths, &text)?;
                let text = replaced(&text, "[device]\n", "[device]\nsubmit_queues = 4\n")?;
                let mapped = format!("[mapped]\ndm_mq_nr_hw_queues = {queues}\n");
                replaced(&text, "[mapped]\n", &mapped)
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
