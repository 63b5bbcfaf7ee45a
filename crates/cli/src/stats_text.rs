//! Statistics of a capture as text and as JSON.
//!
//! `q2c` and `d2c` of the JSON follow btt's definitions and can be compared with its table; those
//! under `bios` are ours (the differences are in `trace::matching::Latencies`).

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use trace::ImportStats;
use trace::blktrace::Action;
use trace::matching::Latency;

/// Text, with the speed of reading in its last line.
pub(crate) fn text(stats: &ImportStats, seconds: f64) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = put(&mut text, stats, seconds);
    text
}

fn put(text: &mut String, stats: &ImportStats, seconds: f64) -> std::fmt::Result {
    let span = stats.end.since(stats.genesis);
    writeln!(
        text,
        "{} events over {:.6} s",
        stats.events,
        span.0 as f64 / 1e9
    )?;
    let counts: Vec<String> = counts(stats)
        .into_iter()
        .map(|(letters, count)| format!("{letters} {count}"))
        .collect();
    writeln!(text, "  {}", counts.join(", "))?;
    writeln!(
        text,
        "{} bios completed, {} did not, {} in flight at most",
        stats.completed, stats.unfinished, stats.in_flight_max
    )?;
    for (count, what) in [
        (
            stats.passthrough,
            "events of passthrough requests, not matched",
        ),
        (stats.skipped, "events of other devices, skipped"),
    ] {
        if count > 0 {
            writeln!(text, "{count} {what}")?;
        }
    }
    writeln!(
        text,
        "\n                  count      min us     mean us      max us"
    )?;
    let btt = &stats.btt;
    for (name, latency) in [
        ("Q2C by btt's rules", &btt.q2c),
        ("D2C by btt's rules", &btt.d2c),
    ] {
        row(text, name, latency)?;
    }
    for (name, latency) in ours(stats) {
        if latency.count > 0 {
            row(text, &name.to_uppercase(), &latency)?;
        }
    }
    if !stats.warnings.is_empty() {
        writeln!(text, "\nWarnings")?;
        for warning in &stats.warnings {
            writeln!(text, "  {warning}")?;
        }
    }
    let seconds = seconds.max(1e-9);
    let (millions, megabytes) = (stats.events as f64 / 1e6, stats.bytes as f64 / 1e6);
    writeln!(
        text,
        "\nread in {seconds:.3} s: {:.2} million events/s, {:.0} MB/s",
        millions / seconds,
        megabytes / seconds
    )
}

fn row(text: &mut String, name: &str, latency: &Latency) -> std::fmt::Result {
    let us = |ns: u64| ns as f64 / 1e3;
    let (min, mean, max) = (us(latency.min.0), us(latency.mean().0), us(latency.max.0));
    let count = latency.count;
    writeln!(
        text,
        "{name:<18}{count:>9}{min:>12.3}{mean:>12.3}{max:>12.3}"
    )
}

/// JSON, with a line feed at the end.
pub(crate) fn json(stats: &ImportStats) -> String {
    let counts: Map<String, Value> = counts(stats)
        .into_iter()
        .map(|(letters, count)| (letters, count.into()))
        .collect();
    let bios: Map<String, Value> = ours(stats)
        .into_iter()
        .map(|(name, latency)| (name.into(), figures(&latency)))
        .collect();
    let warnings: Vec<Value> = stats
        .warnings
        .iter()
        .map(|row| {
            let file = row.file.display().to_string();
            let what = row.warning.text();
            json!({"warning": what, "count": row.count, "file": file, "offset": row.offset})
        })
        .collect();
    let value = json!({
        "events": stats.events,
        "notes": stats.notes,
        "skipped": stats.skipped,
        "bytes": stats.bytes,
        "genesis_ns": stats.genesis.0,
        "span_ns": stats.end.since(stats.genesis).0,
        "actions": counts,
        "completed": stats.completed,
        "unfinished": stats.unfinished,
        "in_flight_max": stats.in_flight_max,
        "passthrough": stats.passthrough,
        "q2c": figures(&stats.btt.q2c),
        "d2c": figures(&stats.btt.d2c),
        "bios": bios,
        "warnings": warnings,
    });
    format!("{value:#}\n")
}

/// Actions that occurred, by blkparse's letters; those without letters by name.
fn counts(stats: &ImportStats) -> Vec<(String, u64)> {
    let name = |action: Action| match action.letters() {
        "?" => format!("{action:?}"),
        letters => letters.to_owned(),
    };
    let all = Action::ALL
        .into_iter()
        .map(|action| (name(action), stats.count(action)));
    all.filter(|(_, count)| *count > 0).collect()
}

fn ours(stats: &ImportStats) -> [(&'static str, Latency); 8] {
    let of = &stats.latencies;
    [
        ("q2g", of.q2g),
        ("g2i", of.g2i),
        ("q2m", of.q2m),
        ("i2d", of.i2d),
        ("m2d", of.m2d),
        ("q2d", of.q2d),
        ("d2c", of.d2c),
        ("q2c", of.q2c),
    ]
}

fn figures(latency: &Latency) -> Value {
    let mean = latency.total_ns as f64 / latency.count.max(1) as f64;
    json!({
        "count": latency.count,
        "min_ns": latency.min.0,
        "mean_ns": mean,
        "max_ns": latency.max.0,
    })
}
