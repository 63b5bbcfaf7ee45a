//! The page of a capture: btt's tables, those of groups, and pictures of what changes over time.

use maud::{Markup, html};
use trace::matching::{BttTable, Latency};
use trace::{Analysis, Bin, DeviceAnalysis, Group, Offsets, OverTime};

use super::{Cell, Section, as_text, count, curves, figure, list, page, picture, table, text};
use crate::amount::Unit;
use crate::capture::text::{counts, facts, left_out, text as as_terminal};
use crate::capture::{PERCENTILES, Read, differ, differences, of_bios, of_btt, overhead};
use crate::plot::figures::Figure;
use crate::plot::panel::{Axis, Curve, Panel, WIDTH};
use crate::plot::scale::Scale;
use crate::plot::scene::{Colour, Dash, PALETTE, Scene};

/// Rows of a long table.
const ROWS: usize = 10;
/// Devices with a picture of their offsets.
const DEVICES: usize = 8;
/// Bins of a picture: more would be noise.
const BINS: usize = 128;
const HEIGHT: i32 = 420;
const OFFSETS_HEIGHT: i32 = 760;
/// Of the names at the right, the same in all pictures over time, so that their times agree.
const ROOM: i32 = 300;

pub(crate) fn analyze(read: &Read) -> String {
    let of = &read.of;
    let sections: [Section; 6] = [
        ("happened", "What happened", happened(of)),
        ("latency", "Latencies", latencies(of)),
        (
            "over-time",
            "Over time",
            html! { @for figure in pictures(of) { (picture(&figure.scene)) } },
        ),
        ("devices", "Devices", devices(of)),
        ("groups", "Processes, CPUs, sizes, directions", groups(of)),
        as_text(&as_terminal(&Read {
            // Equal captures give equal pages.
            seconds: 0.0,
            name: read.name.clone(),
            of: of.clone(),
        })),
    ];
    let about = format!(
        "a capture, analysed by blksim {}",
        env!("CARGO_PKG_VERSION")
    );
    page(&read.name, &about, &sections)
}

fn happened(of: &Analysis) -> Markup {
    let seconds = of.end.since(of.genesis).0 as f64 / 1e9;
    let names = counts(of).into_iter();
    let events = names.map(|(letters, number)| vec![text(letters), count(number)]);
    let warnings: Vec<String> = of.warnings.iter().map(ToString::to_string).collect();
    html! {
        p {
            (of.events) " events over " (format!("{seconds:.6}")) " s: " (of.completed)
            " bios completed, " (of.unfinished) " did not, " (of.in_flight_max)
            " were in flight at most."
        }
        (list("", &left_out(of)))
        (list("", &of.lacks))
        (list("Warnings:", &warnings))
        (table("Events", &["", "number"], events))
    }
}

fn spans(caption: &str, of: Vec<(&str, &Latency)>, btt: Option<&BttTable>) -> Markup {
    let btt = btt.filter(|table| table.q2c.count > 0);
    let mut head = vec!["", "count", "shortest", "mean"];
    head.extend(PERCENTILES.map(|(_, name)| name));
    head.push("longest");
    head.extend(btt.map(|_| "of Q2C"));
    let rows = of.into_iter().map(|(name, latency)| {
        let time = |ns: u64| figure(ns as f64, Unit::Time);
        let mut row = vec![text(name), count(latency.count), time(latency.min.0)];
        row.push(time(latency.mean().0));
        row.extend(PERCENTILES.map(|(percent, _)| time(latency.percentile(percent).0)));
        row.push(time(latency.max.0));
        row.extend(btt.map(|table| match overhead(table, name, latency) {
            Some(percent) => Cell::Part(percent),
            None => Cell::Shown(String::new()),
        }));
        row
    });
    table(caption, &head, rows)
}

fn latencies(of: &Analysis) -> Markup {
    html! {
        (spans("As btt counts", of_btt(&of.btt), Some(&of.btt)))
        @if differ(of) {
            (spans("Bios by their own events", of_bios(&of.latencies), None))
            (list("Why they differ:", &differences(of)))
        }
        (by_percentile(of))
    }
}

/// Latencies by percentile.
fn by_percentile(of: &Analysis) -> Markup {
    let shown = of_bios(&of.latencies);
    let shown = shown
        .into_iter()
        .filter(|(name, _)| ["I2D", "D2C", "Q2C"].contains(name));
    let shown: Vec<(&str, &Latency)> = shown.collect();
    let most = shown
        .iter()
        .map(|(_, latency)| latency.count)
        .max()
        .unwrap_or(0);
    let nines = (1..=6).map(|nine| 100.0 - 100.0 * 10_f64.powi(-nine));
    let percents: Vec<f64> = (0..90).map(f64::from).chain(nines).chain([100.0]).collect();
    let all = shown.iter().zip(PALETTE).map(|((name, latency), colour)| {
        let point = |percent: &f64| (*percent, latency.percentile(*percent).0 as f64);
        curve(name, colour, percents.iter().map(point).collect())
    });
    let all: Vec<Curve> = all.collect();
    let values = all
        .iter()
        .flat_map(|curve| curve.points.iter().map(|(_, ns)| *ns));
    let y = Axis::new("latency by percentile", Scale::log(values, Unit::Time));
    let x = Axis::new("percentile of bios", Scale::tail(most as f64));
    html! { @if !all.is_empty() { (curves(&all, &x, &y, 700)) } }
}

fn curve(name: &str, colour: Colour, points: Vec<(f64, f64)>) -> Curve {
    Curve {
        name: name.to_owned(),
        colour,
        dash: Dash::Solid,
        points,
        halves: Vec::new(),
        dots: false,
    }
}

/// iowatcher's pictures, and one of seeks.
pub(crate) fn pictures(of: &Analysis) -> Vec<Figure> {
    let bins = &of.over_time.coarser(BINS);
    let length = bins.bin_ns as f64;
    // Bins in which there is nothing to be measured are left out.
    let some = |name, value: fn(&Bin) -> f64| {
        let mut points = steps(bins, value);
        points.retain(|(_, value)| *value > 0.0);
        (name, points)
    };
    let scaled = |name, factor: f64, value: fn(&Bin) -> f64| {
        let scale = |(at, value)| (at, value * factor);
        (name, steps(bins, value).into_iter().map(scale).collect())
    };
    let (per_second, mean) = (1e9 / length, 1.0 / length);
    let throughput = [
        scaled("read", per_second, |bin| bin.read_bytes as f64),
        scaled("write", per_second, |bin| bin.write_bytes as f64),
    ];
    let iops = [
        scaled("read", per_second, |bin| bin.reads as f64),
        scaled("write", per_second, |bin| bin.writes as f64),
    ];
    let latency = [
        some("Q2C, mean", |bin| {
            bin.q2c.0 as f64 / bin.q2c.1.max(1) as f64
        }),
        some("D2C, mean", |bin| {
            bin.d2c.0 as f64 / bin.d2c.1.max(1) as f64
        }),
        some("Q2C, longest", |bin| bin.q2c.2 as f64),
    ];
    let depth = [
        scaled("Q to C", mean, |bin| bin.in_flight_ns as f64),
        scaled("D to C", mean, |bin| bin.with_driver_ns as f64),
        some("Q to C, at most", |bin| bin.in_flight_max as f64),
    ];
    let seeks = [scaled("seeks", per_second, |bin| bin.seeks as f64)];
    let seeking = "seeks: requests a second that begin elsewhere than the one before";
    let offsets = of.devices.iter().take(DEVICES).map(|device| {
        let name = format!("offsets-{}", device.name.replace('/', "_"));
        (name, offsets(of, device))
    });
    let over_time = [
        (
            "throughput",
            drawn(of, "throughput", Unit::Bytes, throughput),
        ),
        ("iops", drawn(of, "IOPS", Unit::Number, iops)),
        ("latency", drawn(of, "latency", Unit::Time, latency)),
        (
            "queue-depth",
            drawn(of, "queue depth: bios in flight", Unit::Number, depth),
        ),
        ("seeks", drawn(of, seeking, Unit::Number, seeks)),
    ];
    let over_time = over_time.map(|(name, scene)| (name.to_owned(), scene));
    let all = offsets.chain(over_time);
    all.filter_map(|(name, scene)| scene.map(|scene| Figure { name, scene }))
        .collect()
}

/// A value of each bin, as long as the bin is.
fn steps(of: &OverTime, value: fn(&Bin) -> f64) -> Vec<(f64, f64)> {
    let length = of.bin_ns as f64;
    let ends = |(index, bin): (usize, &Bin)| {
        let from = index as f64 * length;
        [(from, value(bin)), (from + length, value(bin))]
    };
    of.bins.iter().enumerate().flat_map(ends).collect()
}

/// Curves over time, without those that are always zero.
fn drawn<const N: usize>(
    of: &Analysis,
    name: &str,
    unit: Unit,
    all: [(&str, Vec<(f64, f64)>); N],
) -> Option<Scene> {
    let all = all.into_iter().zip(PALETTE);
    let all = all.filter(|((_, points), _)| points.iter().any(|(_, value)| *value > 0.0));
    let all: Vec<Curve> = all
        .map(|((name, points), colour)| curve(name, colour, points))
        .collect();
    let values = |curve: &Curve| curve.points.iter().map(|(_, value)| *value).collect();
    let values: Vec<Vec<f64>> = all.iter().map(values).collect();
    let y = Axis::new(name, Scale::of_curves(&values, unit, unit != Unit::Time));
    let mut scene = Scene::new(WIDTH, HEIGHT as u32);
    let panel = Panel::new(&mut scene, (0, HEIGHT), ROOM, &time(of), &y);
    panel.curves(&mut scene, &all);
    (!all.is_empty()).then_some(scene)
}

/// The axis of all pictures over time.
fn time(of: &Analysis) -> Axis {
    let end = of.over_time.bins.len() as u64 * of.over_time.bin_ns;
    let name = "time from the first event";
    Axis::new(name, Scale::up_to(end as f64, Unit::Time))
}

/// Where I/O went: a cell has the colour of the direction that has most of it.
fn offsets(of: &Analysis, device: &DeviceAnalysis) -> Option<Scene> {
    let grid = &device.offsets;
    let rows = || grid.cells.chunks(Offsets::COLUMNS as usize).enumerate();
    let used = rows().filter(|(_, row)| row.iter().any(|cell| *cell != [0; 2]));
    let used: Vec<u64> = used.map(|(row, _)| row as u64).collect();
    let (lowest, highest) = (used.first()?, used.last()?);
    let from = grid.from + lowest * grid.row_sectors;
    let height = (highest + 1 - lowest) * grid.row_sectors;
    let mut scene = Scene::new(WIDTH, OFFSETS_HEIGHT as u32);
    let name = match from {
        0 => format!("{}: sector", device.name),
        from => format!("{}: sectors after sector {from}", device.name),
    };
    let y = Axis::new(name, Scale::up_to(height as f64, Unit::Number));
    let names = ["read", "write"];
    let panel = Panel::new(&mut scene, (0, OFFSETS_HEIGHT), ROOM, &time(of), &y);
    let mut last = [None; 2];
    for (row, cells) in rows() {
        for (column, cell) in cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| **cell != [0; 2])
        {
            let left = panel.x(column as f64 * grid.column_ns as f64);
            let right = panel.x((column + 1) as f64 * grid.column_ns as f64);
            let sector = (row as u64 - lowest) * grid.row_sectors;
            let (top, bottom) = (
                panel.y((sector + grid.row_sectors) as f64),
                panel.y(sector as f64),
            );
            let write = usize::from(cell[1] > cell[0]);
            // At least as large as a dot.
            let to = (right.max(left + 4), bottom.max(top + 4));
            scene.rect((left, top), to, PALETTE[write]);
            last[write] = last[write].max(Some((right, top)));
        }
    }
    let ends = last.into_iter().zip(names).zip(PALETTE);
    let ends: Vec<((i32, i32), &str, Colour)> = ends
        .filter_map(|((at, name), colour)| Some((at?, name, colour)))
        .collect();
    panel.names(&mut scene, &ends);
    Some(scene)
}

fn devices(of: &Analysis) -> Markup {
    html! {
        @for device in &of.devices {
            h3 { (device.name) " (" (device.btt.device) ")" }
            @if of.devices.len() > 1 {
                (spans("As btt counts", of_btt(&device.btt.table), Some(&device.btt.table)))
            }
            (table(
                "Requests, seeks, plugs, active periods",
                &["", "value"],
                facts(of, device).into_iter().map(|(name, value)| vec![text(name), text(value)]),
            ))
        }
    }
}

fn groups(of: &Analysis) -> Markup {
    let row = |group: &&Group| {
        let time = |of: &Latency, ns: u64| match of.count {
            0 => Cell::Shown("-".to_owned()),
            _ => figure(ns as f64, Unit::Time),
        };
        let (d2c, q2c) = (&group.d2c, &group.q2c);
        vec![
            text(&group.name),
            count(group.ios),
            count(group.errors),
            Cell::Figure(
                group.bytes as f64,
                format!("{:.3} MB", group.bytes as f64 / 1e6),
            ),
            time(d2c, d2c.mean().0),
            time(d2c, d2c.percentile(99.0).0),
            time(q2c, q2c.mean().0),
            time(q2c, q2c.percentile(99.0).0),
            time(q2c, q2c.max.0),
        ]
    };
    let head = [
        "", "bios", "errors", "data", "D2C mean", "p99", "Q2C mean", "p99", "longest",
    ];
    html! {
        @for (kind, groups) in of.groups.kinds() {
            (table(&format!("By {kind}"), &head, groups.iter().take(ROWS).map(row)))
            @if groups.len() > ROWS { p { (groups.len() - ROWS) " more are in --json." } }
        }
    }
}
