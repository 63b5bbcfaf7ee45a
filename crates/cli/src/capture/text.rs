//! The text of a capture: the table of latencies, then devices, groups and time.

use std::fmt::Write as _;

use trace::blktrace::Action;
use trace::matching::{Latency, Seeks};
use trace::{Analysis, DeviceAnalysis, Group};

use super::{PERCENTILES, Read, differ, differences, of_bios, of_btt, overhead};

/// Rows of a long table.
const ROWS: usize = 10;

pub(crate) fn text(read: &Read) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = put(&mut text, read);
    text
}

fn put(text: &mut String, read: &Read) -> std::fmt::Result {
    let of = &read.of;
    happened(text, of)?;
    head(text, "As btt counts", true)?;
    for (name, latency) in of_btt(&of.btt) {
        row(text, name, latency, overhead(&of.btt, name, latency))?;
    }
    if differ(of) {
        head(text, "Bios by their events", false)?;
        for (name, latency) in of_bios(&of.latencies) {
            row(text, name, latency, None)?;
        }
        for reason in differences(of) {
            writeln!(text, "  {reason}")?;
        }
    }
    for device in &of.devices {
        put_device(text, of, device)?;
    }
    for (kind, groups) in of.groups.kinds() {
        put_groups(text, kind, &groups)?;
    }
    over_time(text, of)?;
    if !of.warnings.is_empty() {
        writeln!(text, "\nWarnings")?;
        for warning in &of.warnings {
            writeln!(text, "  {warning}")?;
        }
    }
    for lacks in &of.lacks {
        writeln!(text, "\nnote: {lacks}")?;
    }
    let seconds = read.seconds.max(1e-9);
    let (millions, megabytes) = (of.events as f64 / 1e6, of.bytes as f64 / 1e6);
    let (rate, speed) = (millions / seconds, megabytes / seconds);
    writeln!(
        text,
        "\nread in {seconds:.3} s: {rate:.2} million events/s, {speed:.0} MB/s"
    )
}

fn happened(text: &mut String, of: &Analysis) -> std::fmt::Result {
    let span = of.end.since(of.genesis).0 as f64 / 1e9;
    writeln!(text, "{} events over {span:.6} s", of.events)?;
    let counts = counts(of).into_iter();
    let counts: Vec<String> = counts
        .map(|(letters, count)| format!("{letters} {count}"))
        .collect();
    writeln!(text, "  {}", counts.join(", "))?;
    writeln!(
        text,
        "{} bios completed, {} did not, {} in flight at most",
        of.completed, of.unfinished, of.in_flight_max
    )?;
    for (count, what) in [
        (
            of.passthrough,
            "events of passthrough requests, not matched",
        ),
        (of.skipped, "events of other devices, skipped"),
    ] {
        if count > 0 {
            writeln!(text, "{count} {what}")?;
        }
    }
    for what in left_out(of) {
        writeln!(text, "{what}")?;
    }
    Ok(())
}

/// What some tables lack, or leave out.
pub(crate) fn left_out(of: &Analysis) -> Vec<String> {
    let needed = [
        (Action::Queue, "Q"),
        (Action::Issue, "D"),
        (Action::Complete, "C"),
    ];
    let absent = needed
        .into_iter()
        .filter(|(action, _)| of.count(*action) == 0);
    let say = |(_, letter): (Action, &str)| {
        format!("no {letter} in this capture: what is counted from or to {letter} is left out")
    };
    let failed = Some(of.errors()).filter(|errors| *errors > 0);
    let failed = failed.map(|errors| {
        format!(
            "{errors} of the bios ended with an error: bytes, IOPS and MB/s leave them out, \
             latencies do not"
        )
    });
    absent.map(say).chain(failed).collect()
}

/// Actions that occurred, by blkparse's letters; those without letters by name.
pub(crate) fn counts(of: &Analysis) -> Vec<(String, u64)> {
    let name = |action: Action| match action.letters() {
        "?" => format!("{action:?}"),
        letters => letters.to_owned(),
    };
    let all = Action::ALL
        .into_iter()
        .map(|action| (name(action), of.count(action)));
    all.filter(|(_, count)| *count > 0).collect()
}

fn head(text: &mut String, title: &str, share: bool) -> std::fmt::Result {
    write!(
        text,
        "\n{title:<20}{:>10}{:>12}{:>12}",
        "count", "min us", "mean us"
    )?;
    for (_, name) in PERCENTILES {
        write!(text, "{name:>12}")?;
    }
    writeln!(
        text,
        "{:>12}{}",
        "max us",
        if share { "    % of Q2C" } else { "" }
    )
}

fn row(text: &mut String, name: &str, of: &Latency, share: Option<f64>) -> std::fmt::Result {
    let us = |ns: u64| ns as f64 / 1e3;
    write!(
        text,
        "{name:<20}{:>10}{:>12.3}{:>12.3}",
        of.count,
        us(of.min.0),
        us(of.mean().0)
    )?;
    for (percent, _) in PERCENTILES {
        write!(text, "{:>12.3}", us(of.percentile(percent).0))?;
    }
    let share = share.map_or(String::new(), |share| format!("{share:>12.4}"));
    writeln!(text, "{:>12.3}{share}", us(of.max.0))
}

/// btt's other tables.
fn put_device(text: &mut String, of: &Analysis, device: &DeviceAnalysis) -> std::fmt::Result {
    let (btt, seconds) = (&device.btt, of.end.since(of.genesis).0 as f64 / 1e9);
    let (number, name) = (btt.device, &device.name);
    writeln!(text, "\nDevice {name} ({number})")?;
    let good = device.completed - device.errors;
    let rates = (good as f64 / seconds, device.bytes as f64 / 1e6 / seconds);
    let failed = match device.errors {
        0 => String::new(),
        errors => format!("; {errors} more ended with an error"),
    };
    let (iops, speed) = rates;
    writeln!(
        text,
        "  {good} bios, {iops:.0} IOPS, {speed:.3} MB/s{failed}"
    )?;
    let spans = of_btt(&btt.table);
    if of.devices.len() > 1 && !spans.is_empty() {
        head(text, "  as btt counts", true)?;
        for (name, latency) in spans {
            let share = overhead(&btt.table, name, latency);
            row(text, &format!("  {name}"), latency, share)?;
        }
    }
    for (name, value) in facts(of, device) {
        writeln!(text, "  {name}: {value}")?;
    }
    Ok(())
}

/// Names and values of what btt says of a device beside latencies.
pub(crate) fn facts(of: &Analysis, device: &DeviceAnalysis) -> Vec<(&'static str, String)> {
    let (table, activity) = (&device.btt.table, &device.btt.activity);
    let queued = table.q_count + activity.requeues;
    let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
    let mut facts = Vec::new();
    if queued > 0 && table.d_count > 0 {
        let (issued, ratio) = (table.d_count, ratio(queued, table.d_count));
        facts.push((
            "merging",
            format!("{queued} Q or R, {issued} D, ratio {ratio:.2}"),
        ));
    }
    if activity.requeues > 0 {
        facts.push(("requeues", activity.requeues.to_string()));
    }
    if let Some(mean) = waiting_at_q(device) {
        facts.push((
            "requests waiting at each Q",
            format!("{mean:.1} on average"),
        ));
    }
    for (name, seeks) in [
        ("seeks Q to Q", &activity.q2q),
        ("seeks D to D", &activity.d2d),
    ] {
        if seeks.count > 0 {
            facts.push((name, seek_text(seeks)));
        }
    }
    let plugs = &activity.plugs;
    if plugs.explicit + plugs.timed > 0 {
        let requests = ratio(plugs.explicit_requests, plugs.explicit);
        facts.push((
            "plugs",
            format!(
                "{} unplugs, {} more by sleeping tasks, {requests:.1} requests an unplug, plugged \
                 {:.2} % of the time",
                plugs.explicit,
                plugs.timed,
                plugged_percent(device)
            ),
        ));
    }
    let depths = plugs.depths.iter().enumerate();
    let depths = depths.filter(|(_, count)| **count > 0);
    let depths = depths.map(|(depth, count)| format!("{depth}: {count}"));
    let depths = depths.collect::<Vec<_>>().join(", ");
    if !depths.is_empty() {
        facts.push(("unplugs by requests", depths));
    }
    let active = &activity.periods;
    if active.count > 0 {
        let whole = active.last.saturating_sub(of.genesis.0);
        let idle = whole.saturating_sub(active.total_ns) as f64 / 1e3;
        facts.push((
            "active",
            format!(
                "{} periods, {:.2} % of the time, {:.3} us long on average, {:.3} us apart",
                active.count,
                100.0 * ratio(active.total_ns, whole),
                ratio(active.total_ns, active.count) / 1e3,
                idle / active.count.saturating_sub(1).max(1) as f64
            ),
        ));
    }
    facts
}

/// Requests that were neither issued nor merged, on average over all Q and R. Nothing without D:
/// none would ever leave.
pub(crate) fn waiting_at_q(device: &DeviceAnalysis) -> Option<f64> {
    let (table, activity) = (&device.btt.table, &device.btt.activity);
    let queued = table.q_count + activity.requeues;
    let known = queued > 0 && table.d_count > 0 && !device.btt.remapper;
    known.then(|| activity.waiting_total as f64 / queued as f64)
}

/// Of the time from the device's first event to its last.
pub(crate) fn plugged_percent(device: &DeviceAnalysis) -> f64 {
    let activity = &device.btt.activity;
    let span = activity
        .span
        .map_or(0, |(first, last)| last.saturating_sub(first));
    100.0 * activity.plugs.plugged_ns as f64 / span.max(1) as f64
}

fn seek_text(seeks: &Seeks) -> String {
    let (mode, times) = seeks.mode();
    format!(
        "{}, {} of them elsewhere, mean {:.1} sectors, median {}, mode {mode} ({times})",
        seeks.count,
        seeks.moved,
        seeks.mean(),
        seeks.median()
    )
}

fn put_groups(text: &mut String, kind: &str, groups: &[&Group]) -> std::fmt::Result {
    if groups.is_empty() {
        return Ok(());
    }
    let title = format!("By {kind}");
    write!(
        text,
        "\n{title:<20}{:>10}{:>8}{:>12}",
        "bios", "errors", "MB"
    )?;
    for name in [
        "D2C mean us",
        "D2C p99",
        "Q2C mean us",
        "Q2C p99",
        "Q2C max",
    ] {
        write!(text, "{name:>13}")?;
    }
    writeln!(text)?;
    for group in groups.iter().take(ROWS) {
        let megabytes = group.bytes as f64 / 1e6;
        write!(
            text,
            "{:<20}{:>10}{:>8}{megabytes:>12.3}",
            group.name, group.ios, group.errors
        )?;
        let (d2c, q2c) = (&group.d2c, &group.q2c);
        let spans = [
            (d2c, d2c.mean()),
            (d2c, d2c.percentile(99.0)),
            (q2c, q2c.mean()),
            (q2c, q2c.percentile(99.0)),
            (q2c, q2c.max),
        ];
        for (of, span) in spans {
            match of.count {
                0 => write!(text, "{:>13}", "-")?,
                _ => write!(text, "{:>13.3}", span.0 as f64 / 1e3)?,
            }
        }
        writeln!(text)?;
    }
    match groups.len().saturating_sub(ROWS) {
        0 => Ok(()),
        more => writeln!(text, "{more} more: --json has all"),
    }
}

/// Ten parts of the capture.
fn over_time(text: &mut String, of: &Analysis) -> std::fmt::Result {
    let parts = of.over_time.coarser(ROWS);
    if parts.bins.is_empty() {
        return Ok(());
    }
    write!(text, "\n{:<20}{:>10}", "Over time, from s", "IOPS")?;
    for name in [
        "read MB/s",
        "write MB/s",
        "D2C mean us",
        "Q2C mean us",
        "in flight",
        "at most",
    ] {
        write!(text, "{name:>12}")?;
    }
    writeln!(text)?;
    let ns = parts.bin_ns as f64;
    let mean = |(total, count, _): (u64, u64, u64)| total as f64 / count.max(1) as f64 / 1e3;
    for (index, bin) in parts.bins.iter().enumerate() {
        writeln!(
            text,
            "{:<20.6}{:>10.0}{:>12.3}{:>12.3}{:>12.3}{:>12.3}{:>12.1}{:>12}",
            index as f64 * ns / 1e9,
            (bin.reads + bin.writes) as f64 * 1e9 / ns,
            bin.read_bytes as f64 * 1e3 / ns,
            bin.write_bytes as f64 * 1e3 / ns,
            mean(bin.d2c),
            mean(bin.q2c),
            bin.in_flight_ns as f64 / ns,
            bin.in_flight_max
        )?;
    }
    Ok(())
}
