//! Throughput, and the part of the busy time that is spent waiting for locks, by number of threads.

use super::Drawn;
use crate::plot::group::{Groups, Series};
use crate::plot::input::Run;
use crate::plot::panel::{Axis, Curve, HEAD, Panel, page, room_for};
use crate::plot::published::Published;
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::Scene;

const UPPER: i32 = 620;
const LOWER: i32 = 460;

pub(super) fn draw(groups: &Groups) -> Drawn {
    let threads = groups.threads();
    if threads.len() < 2 {
        return Err("all runs have the same number of threads");
    }
    let mut scene = page(
        "Throughput and waiting for locks by number of threads",
        &groups.common,
        HEAD + UPPER + LOWER,
    );
    let room = room_for(groups.series.iter().map(|s| s.name.as_str()));
    let marks = Scale::Marks {
        top: threads[threads.len() - 1],
        marks: threads,
    };
    let x = Axis::new("threads", marks);
    let runs = groups.series.iter().flat_map(|s| &s.runs);
    let published_iops = groups.published.iter().filter_map(|one| one.iops);
    let most = runs
        .map(|run| run.iops)
        .chain(published_iops)
        .fold(0.0, f64::max);
    let y = Axis::new("IOPS", Scale::linear(most, Unit::Number));
    let panel = Panel::new(&mut scene, (HEAD, HEAD + UPPER), room, &x, &y);
    panel.curves(&mut scene, &curves(groups, |run| run.iops));
    published(groups, &mut scene, &panel, Unit::Number, |one| one.iops);
    let y = Axis::new(
        "waiting for locks, part of the CPUs' busy time",
        Scale::percent(),
    );
    let edges = (HEAD + UPPER, HEAD + UPPER + LOWER);
    let panel = Panel::new(&mut scene, edges, room, &x, &y);
    panel.curves(&mut scene, &curves(groups, Run::lock_share));
    published(groups, &mut scene, &panel, Unit::Percent, |one| {
        one.lock_share
    });
    Ok(scene)
}

/// Marks published figures of the jobs that the curves simulate.
fn published(
    groups: &Groups,
    scene: &mut Scene,
    panel: &Panel,
    unit: Unit,
    value: impl Fn(&Published) -> Option<f64>,
) {
    for series in &groups.series {
        let of_series = groups
            .published
            .iter()
            .filter(|one| one.is_of(series.last()));
        for one in of_series.filter(|one| one.threads <= series.last().threads) {
            if let Some(value) = value(one) {
                let text = format!("published {}", written(value, unit));
                panel.mark(scene, (one.threads, value), &text, series.colour);
            }
        }
    }
}

fn curves(groups: &Groups, value: impl Fn(&Run) -> f64) -> Vec<Curve> {
    let curve = |series: &Series| Curve {
        name: series.name.clone(),
        colour: series.colour,
        points: series
            .runs
            .iter()
            .map(|run| (run.threads, value(run)))
            .collect(),
        dots: true,
    };
    groups.series.iter().map(curve).collect()
}
