//! docs/reference/kernels.md, from the rows in which blkmq declares the differences.

use blkmq::rules::{
    Axes, AxisValue, DeviceMapper, FairQueueing, MappedRequests, OldTop, QueueMerge, Restart,
    Rules, Series, SingleQueueRules, TimeSlices,
};
use sim::readahead::ReadAheadRules;

use super::{cell, code, section, table};

const INTRO: &str = "\
Every difference between kernels that the model knows, as `blkmq/src/rules*` declares it. \
`queue.rules` and `--rules` choose a release for all tables; `queue.restart` and `queue.series` \
choose a row of theirs. The first table of a section lists what each release changed, the second \
what an axis decides and the release with which each of its values begins.";

const PARTS: &[(&str, &str, Axes)] = &[
    (
        "Block layer",
        "`queue.rules`; axes that v5.13 and older releases do not name are those of v6.1.",
        Rules::AXES,
    ),
    (
        "Restart",
        "What runs an hctx again that could not issue all its requests (`queue.restart`).",
        Restart::AXES,
    ),
    (
        "Series of January 2024",
        "Patches against contention on the lock of a scheduler (`queue.series`).",
        Series::AXES,
    ),
    ("Budget fair queueing", "", FairQueueing::AXES),
    ("Single-queue path", "", SingleQueueRules::AXES),
    ("Scheduler of time slices", "", TimeSlices::AXES),
    (
        "Merging queues of the scheduler of time slices",
        "",
        QueueMerge::AXES,
    ),
    ("dm-multipath", "", DeviceMapper::AXES),
    ("Requests through a mapped queue", "", MappedRequests::AXES),
    ("A mapped queue with use_blk_mq=N", "", OldTop::AXES),
    ("Read-ahead and buffered reading", "", ReadAheadRules::AXES),
];

/// The page.
pub(super) fn page() -> String {
    let mut text = format!("# Kernels\n\n{INTRO}\n\n");
    for (name, about, axes) in PARTS {
        section(&mut text, name, about);
        let releases = axes.presets.iter().map(|(preset, like)| {
            let like = like.map_or("(all axes)".to_owned(), code);
            [code(preset), like, changed(axes, preset)]
        });
        text.push_str(&table(["Release", "Otherwise as", "Changed"], releases));
        let rows = axes.rows.iter().map(|axis| {
            let values: Vec<String> = axis.values.iter().map(value).collect();
            [code(axis.name), cell(&plain(axis.about)), values.join(" ")]
        });
        text.push_str(&table(["Axis", "Decides", "Values"], rows));
    }
    text
}

/// The values that begin with a preset; nothing for one to which the others are compared.
fn changed(axes: &Axes, preset: &str) -> String {
    if axes.presets.contains(&(preset, None)) {
        return String::new();
    }
    let begins = |value: &&AxisValue| value.presets.contains(&preset);
    let changed = axes.rows.iter().filter_map(|axis| {
        let value = axis.values.iter().find(begins)?;
        Some(format!("{} {}", code(axis.name), cell(&bare(value.name))))
    });
    changed.collect::<Vec<_>>().join(", ")
}

/// A value with its releases and meaning, as a sentence.
fn value(value: &AxisValue) -> String {
    let from = match value.presets {
        [] => "no release".to_owned(),
        presets => presets.join(", "),
    };
    let name = code(&bare(value.name));
    let about = plain(value.about);
    match cell(about.trim_end_matches('.')).as_str() {
        "" => format!("{from}: {name}."),
        about => format!("{from}: {name} ({about})."),
    }
}

/// Code of a value without the types of its names: `Some(V4_5)`.
fn bare(value: &str) -> String {
    let (first, last) = value.rsplit_once("::").unwrap_or(("", value));
    let types = first.split("::");
    let types = types.map(|part| part.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_'));
    types.chain([last]).collect()
}

/// Text of a comment without its links.
fn plain(comment: &str) -> String {
    comment.trim().replace("[`", "`").replace("`]", "`")
}
