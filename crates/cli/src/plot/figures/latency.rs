//! Latencies: the share of I/Os that were not slower, with a stretched tail.
//!
//! The distribution function with its axes exchanged, so that curves end apart and carry names.

use super::{Drawn, percentiles, total};
use crate::plot::group::{Groups, Series};
use crate::plot::panel::{Axis, Curve, HEAD, LINE, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit};

const HEIGHT: i32 = 800;
/// Height of the panel without that of its curves.
const AROUND: i32 = 160;

pub(super) fn draw(groups: &Groups) -> Drawn {
    let curves: Vec<Curve> = groups
        .series
        .iter()
        .filter_map(|series| curve(series, groups.direction))
        .collect();
    if curves.is_empty() {
        return Err("no I/O was measured");
    }
    let most = groups
        .series
        .iter()
        .map(|s| s.last().ios)
        .fold(0.0, f64::max);
    let values = curves.iter().flat_map(|c| c.points.iter().map(|(_, y)| *y));
    let scale = match groups.linear {
        true => Scale::linear(values.fold(0.0, f64::max), Unit::Time),
        false => Scale::log(values, Unit::Time),
    };
    let y = Axis::new("latency", scale);
    let x = Axis::new("percentile of I/Os", Scale::tail(most));
    let title = "latency from submission to completion";
    // Names of many curves need more room than their curves.
    let height = HEIGHT.max(AROUND + LINE * curves.len() as i32);
    let mut scene = page(title, &groups.common_of_last(), HEAD + height);
    let room = room_for(curves.iter().map(|c| c.name.as_str()));
    let panel = Panel::new(&mut scene, (HEAD, HEAD + height), room, &x, &y);
    panel.curves(&mut scene, &curves);
    Ok(scene)
}

fn curve(series: &Series, direction: usize) -> Option<Curve> {
    let run = series.last();
    let points = match &run.details {
        Some(details) if total(&details.latency_ns) > 0.0 => percentiles(&details.latency_ns),
        _ => run.latencies[direction].percentiles.clone(),
    };
    (!points.is_empty()).then(|| Curve {
        name: series.name.clone(),
        colour: series.colour,
        dash: series.dash,
        points,
        halves: Vec::new(),
        dots: false,
    })
}
