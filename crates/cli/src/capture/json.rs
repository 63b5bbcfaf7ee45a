//! A capture as JSON, and its tables as CSV. Documented in docs/reference/formats.md.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use trace::matching::{Latencies, Latency, Periods, Seeks};
use trace::{Analysis, Bin, DeviceAnalysis, Group};

use super::text::{counts, plugged_percent, waiting_at_q};
use super::{PERCENTILES, Read, of_bios, of_btt, overhead};

/// JSON, with a line feed at the end.
pub(crate) fn json(read: &Read) -> String {
    let of = &read.of;
    let actions: Map<String, Value> = counts(of)
        .into_iter()
        .map(|(letters, count)| (letters, count.into()))
        .collect();
    let warnings = of.warnings.iter().map(|row| {
        let file = row.file.display().to_string();
        let what = row.warning.text();
        let (count, offset, detail) = (row.count, row.offset, row.detail.as_deref());
        json!({"warning": what, "count": count, "file": file, "offset": offset, "detail": detail})
    });
    let groups = of.groups.kinds().into_iter().map(|(kind, groups)| {
        let groups: Vec<Value> = groups.into_iter().map(group).collect();
        (kind.to_owned(), groups.into())
    });
    let value = json!({
        "events": of.events,
        "notes": of.notes,
        "skipped": of.skipped,
        "bytes": of.bytes,
        "genesis_ns": of.genesis.0,
        "span_ns": of.end.since(of.genesis).0,
        "actions": actions,
        "completed": of.completed,
        "errors": of.errors(),
        "unfinished": of.unfinished,
        "split": of.split,
        "in_flight_max": of.in_flight_max,
        "passthrough": of.passthrough,
        "btt": spans(of_btt(&of.btt)),
        "btt_overhead_percent": overheads(&of.btt),
        "btt_replaced": of.btt.replaced,
        "btt_with_cgroup": of.btt.with_cgroup,
        "bios": bios(&of.latencies),
        "active": active(of, &of.periods),
        "devices": of.devices.iter().map(|device| device_of(of, device)).collect::<Vec<_>>(),
        "groups": groups.collect::<Map<String, Value>>(),
        "over_time": over_time(of),
        "warnings": warnings.collect::<Vec<_>>(),
        "lacks": of.lacks,
    });
    format!("{value:#}\n")
}

fn spans(all: Vec<(&'static str, &Latency)>) -> Value {
    let all = all.into_iter();
    let all = all.map(|(name, latency)| (name.to_lowercase(), figures(latency)));
    all.collect::<Map<String, Value>>().into()
}

fn bios(of: &Latencies) -> Value {
    spans(of_bios(of))
}

fn figures(of: &Latency) -> Value {
    let mean = of.total_ns as f64 / of.count.max(1) as f64;
    let mut value = json!({
        "count": of.count,
        "min_ns": of.min.0,
        "mean_ns": mean,
        "max_ns": of.max.0,
    });
    for (percent, name) in PERCENTILES {
        value[format!("{name}_ns")] = of.percentile(percent).0.into();
    }
    value
}

fn overheads(table: &trace::matching::BttTable) -> Value {
    let all = table.rows().into_iter();
    let known = all.filter_map(|(name, latency)| {
        Some((name.to_lowercase(), overhead(table, name, latency)?.into()))
    });
    known.collect::<Map<String, Value>>().into()
}

fn active(of: &Analysis, periods: &Periods) -> Value {
    json!({
        "periods": periods.count,
        "total_ns": periods.total_ns,
        "last_ns": periods.last.saturating_sub(of.genesis.0),
    })
}

fn seeks(of: &Seeks) -> Value {
    let (mode, times) = of.mode();
    json!({
        "count": of.count,
        "moved": of.moved,
        "mean_sectors": of.mean(),
        "median_sectors": of.median(),
        "mode_sectors": mode,
        "mode_count": times,
    })
}

fn device_of(of: &Analysis, device: &DeviceAnalysis) -> Value {
    let (table, activity) = (&device.btt.table, &device.btt.activity);
    let queued = table.q_count + activity.requeues;
    let (least, most, all) = activity.blocks;
    let plugs = &activity.plugs;
    let number = device.btt.device.to_string();
    json!({
        "name": device.name,
        "device": number,
        "completed": device.completed,
        "errors": device.errors,
        "completed_bytes": device.bytes,
        "btt": spans(of_btt(table)),
        "btt_overhead_percent": overheads(table),
        "bios": bios(&device.latencies),
        "q": queued,
        "d": table.d_count,
        "requeues": activity.requeues,
        "completed_sectors": {"min": least, "max": most, "total": all},
        "waiting_at_q_mean": waiting_at_q(device),
        "seeks": {"q2q": seeks(&activity.q2q), "d2d": seeks(&activity.d2d)},
        "plugs": {
            "unplugs": plugs.explicit,
            "requests": plugs.explicit_requests,
            "timer_unplugs": plugs.timed,
            "timer_requests": plugs.timed_requests,
            "plugged_percent": plugged_percent(device),
            "depths": plugs.depths,
        },
        "active": active(of, &activity.periods),
    })
}

fn group(of: &Group) -> Value {
    json!({
        "name": of.name,
        "completed": of.ios,
        "completed_bytes": of.bytes,
        "errors": of.errors,
        "d2c": figures(&of.d2c),
        "q2c": figures(&of.q2c),
    })
}

/// An array for each value, so that a data frame is made of it at once.
fn over_time(of: &Analysis) -> Value {
    let bins = &of.over_time.bins;
    let all = |value: &dyn Fn(&Bin) -> Value| bins.iter().map(value).collect::<Vec<Value>>();
    let length = of.over_time.bin_ns;
    let mean = |(total, count, _): (u64, u64, u64)| match count {
        0 => Value::Null,
        _ => (total as f64 / count as f64).into(),
    };
    let from = (0..bins.len() as u64).map(|index| index * length);
    json!({
        "bin_ns": length,
        "from_ns": from.collect::<Vec<u64>>(),
        "reads": all(&|bin| bin.reads.into()),
        "writes": all(&|bin| bin.writes.into()),
        "read_bytes": all(&|bin| bin.read_bytes.into()),
        "write_bytes": all(&|bin| bin.write_bytes.into()),
        "d2c_mean_ns": all(&|bin| mean(bin.d2c)),
        "d2c_max_ns": all(&|bin| bin.d2c.2.into()),
        "q2c_mean_ns": all(&|bin| mean(bin.q2c)),
        "q2c_max_ns": all(&|bin| bin.q2c.2.into()),
        "in_flight_mean": all(&|bin| (bin.in_flight_ns as f64 / length as f64).into()),
        "in_flight_max": all(&|bin| bin.in_flight_max.into()),
        "with_driver_mean": all(&|bin| (bin.with_driver_ns as f64 / length as f64).into()),
        "seeks": all(&|bin| bin.seeks.into()),
    })
}

/// A row for each span of all devices, of each device and of each group.
pub(crate) fn csv(of: &Analysis) -> String {
    let mut csv =
        "kind,name,rules,span,count,min_ns,mean_ns,max_ns,p50_ns,p90_ns,p99_ns,p99.9_ns\n"
            .to_owned();
    let mut put = |kind: &str, name: &str, rules: &str, spans: Vec<(&str, &Latency)>| {
        // As the reports of runs do: quotes around what has a comma, a quote or a line break.
        let quoted = match name.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", name.replace('"', "\"\"")),
            false => name.to_owned(),
        };
        for (span, latency) in spans.into_iter().filter(|(_, latency)| latency.count > 0) {
            let mean = latency.total_ns as f64 / latency.count as f64;
            let (count, min, max) = (latency.count, latency.min.0, latency.max.0);
            let begin = format!("{kind},{quoted},{rules},{span},{count},{min},{mean:.3},{max}");
            // Writing into a string cannot fail.
            let _ = write!(csv, "{begin}");
            for (percent, _) in PERCENTILES {
                let _ = write!(csv, ",{}", latency.percentile(percent).0);
            }
            csv.push('\n');
        }
    };
    put("all", "", "btt", of_btt(&of.btt));
    put("all", "", "bios", of_bios(&of.latencies));
    for device in &of.devices {
        put("device", &device.name, "btt", of_btt(&device.btt.table));
        put("device", &device.name, "bios", of_bios(&device.latencies));
    }
    for (kind, groups) in of.groups.kinds() {
        for group in groups {
            put(
                kind,
                &group.name,
                "bios",
                vec![("D2C", &group.d2c), ("Q2C", &group.q2c)],
            );
        }
    }
    csv
}
