//! Throughput, and what part of the busy time goes to waiting for locks, by number of threads.

use super::Drawn;
use crate::plot::group::{Groups, Series};
use crate::plot::input::Run;
use crate::plot::panel::{Axis, Curve, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit};

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
    let most = runs.map(|run| run.iops).fold(0.0, f64::max);
    let y = Axis::new("I/Os a second", Scale::linear(most, Unit::Number));
    let panel = Panel::new(&mut scene, (HEAD, HEAD + UPPER), room, &x, &y);
    panel.curves(&mut scene, &curves(groups, |run| run.iops));
    let y = Axis::new(
        "waiting for locks, part of the CPUs' busy time",
        Scale::percent(),
    );
    let edges = (HEAD + UPPER, HEAD + UPPER + LOWER);
    let panel = Panel::new(&mut scene, edges, room, &x, &y);
    panel.curves(&mut scene, &curves(groups, Run::lock_share));
    Ok(scene)
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
