//! Latencies: the share of I/Os that were not slower, with a stretched tail.
//!
//! The distribution function with its axes exchanged, so that curves end apart and carry names.

use super::{Drawn, percentiles, total};
use crate::plot::group::{Groups, Series};
use crate::plot::panel::{Axis, Curve, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit};

const HEIGHT: i32 = 800;

pub(super) fn draw(groups: &Groups) -> Drawn {
    let curves: Vec<Curve> = groups.series.iter().filter_map(curve).collect();
    if curves.is_empty() {
        return Err("no I/O was measured");
    }
    let most = groups
        .series
        .iter()
        .map(|s| s.last().ios)
        .fold(0.0, f64::max);
    let values = curves.iter().flat_map(|c| c.points.iter().map(|(_, y)| *y));
    let y = Axis::new("latency", Scale::log(values, Unit::Time));
    let x = Axis::new("share of I/Os that took no longer", Scale::tail(most));
    let title = "Latency from submission to completion";
    let mut scene = page(title, &groups.common_of_last(), HEAD + HEIGHT);
    let room = room_for(curves.iter().map(|c| c.name.as_str()));
    let panel = Panel::new(&mut scene, (HEAD, HEAD + HEIGHT), room, &x, &y);
    panel.curves(&mut scene, &curves);
    Ok(scene)
}

fn curve(series: &Series) -> Option<Curve> {
    let run = series.last();
    let points = match &run.details {
        Some(details) if total(&details.latency_ns) > 0.0 => percentiles(&details.latency_ns),
        _ => run.latency.clone(),
    };
    (!points.is_empty()).then(|| Curve {
        name: series.name.clone(),
        colour: series.colour,
        points,
        dots: false,
    })
}
