//! What is shown of a capture, whatever the form: `capture/text.rs`, `capture/json.rs`, and the
//! page `html/analyze.rs`.

pub(crate) mod json;
pub(crate) mod text;

use trace::Analysis;
use trace::matching::{BttTable, Latencies, Latency};

/// A capture, read.
#[derive(Debug)]
pub(crate) struct Read {
    /// The files as they were named.
    pub(crate) name: String,
    pub(crate) of: Analysis,
    /// Wall-clock time it took; only the text has it, so that equal files give equal bytes.
    pub(crate) seconds: f64,
}

/// Percentiles of every table, with their names.
pub(crate) const PERCENTILES: [(f64, &str); 4] =
    [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9")];

/// Spans of bios by their own events, without those that never occurred.
pub(crate) fn of_bios(of: &Latencies) -> Vec<(&'static str, &Latency)> {
    let all = [
        ("Q2G", &of.q2g),
        ("G2I", &of.g2i),
        ("Q2M", &of.q2m),
        ("I2D", &of.i2d),
        ("M2D", &of.m2d),
        ("Q2D", &of.q2d),
        ("D2C", &of.d2c),
        ("Q2C", &of.q2c),
    ];
    all.into_iter()
        .filter(|(_, latency)| latency.count > 0)
        .collect()
}

/// Spans as btt counts them, without those that never occurred.
pub(crate) fn of_btt(table: &BttTable) -> Vec<(&'static str, &Latency)> {
    table
        .rows()
        .into_iter()
        .filter(|(_, latency)| latency.count > 0)
        .collect()
}

/// Percent of Q2C, for the spans that btt gives it for.
pub(crate) fn overhead(table: &BttTable, name: &str, latency: &Latency) -> Option<f64> {
    let parts = ["Q2G", "G2I", "Q2M", "I2D", "D2C"];
    let whole = table.q2c.total_ns;
    let known = parts.contains(&name) && whole > 0;
    known.then(|| 100.0 * latency.total_ns as f64 / whole as f64)
}

/// Why btt's figures are not those of the bios; nothing if they agree.
pub(crate) fn differences(of: &Analysis) -> Vec<String> {
    let [.., (_, directions)] = of.groups.kinds();
    let flushes = directions.into_iter().find(|group| group.name == "flush");
    let requeues = of.devices.iter().map(|of| of.btt.activity.requeues).sum();
    let without_q = of.completed - of.latencies.q2c.count;
    let reasons = [
        (
            of.btt.with_cgroup,
            "events with a cgroup id, which btt does not see",
        ),
        (
            of.split,
            "bios cut into parts, of which btt finds no completion",
        ),
        (
            of.btt.replaced,
            "bios that btt forgets because another one begins at the same sector",
        ),
        (
            flushes.map_or(0, |group| group.ios),
            "flushes without data, which btt leaves out",
        ),
        (
            requeues,
            "requeues: btt counts I2D for each issue, here it is for the last",
        ),
        (
            without_q,
            "requests without a Q, such as clones by device-mapper, unknown to btt",
        ),
    ];
    let found = reasons.into_iter().filter(|(count, _)| *count > 0);
    found
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
}

/// Some span of the bios is not what btt says.
pub(crate) fn differ(of: &Analysis) -> bool {
    let btt = of_btt(&of.btt);
    of_bios(&of.latencies)
        .into_iter()
        .filter(|(name, _)| *name != "Q2D")
        .any(|(name, own)| {
            !btt.iter()
                .any(|(other, latency)| *other == name && *latency == own)
        })
}
