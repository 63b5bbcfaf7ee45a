//! Throughput, latency, and the part of the busy time that is spent waiting for locks, by number of
//! threads or by a swept value.

use sim::estimate::Estimate;

use super::Drawn;
use crate::plot::group::{Groups, Series, estimate};
use crate::plot::input::Run;
use crate::plot::panel::{Axis, Curve, HEAD, LINE, Panel, page, room_for};
use crate::plot::published::Published;
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::Scene;

const HEIGHT: i32 = 480;
/// Height of a panel without that of its curves.
const AROUND: i32 = 160;
/// The latency that is drawn, percent.
const TAIL: f64 = 99.0;

pub(super) fn draw(groups: &Groups) -> Drawn {
    if groups.places().len() < 2 {
        return Err("all runs have the same number of threads, and no key of --set has numbers");
    }
    // Names of many curves need more room than their curves.
    let height = HEIGHT.max(AROUND + LINE * groups.series.len() as i32);
    let mut scene = page(
        &format!(
            "throughput, latency and waiting for locks by {}",
            groups.x_name()
        ),
        &groups.common(groups.series.len()),
        HEAD + 3 * height,
    );
    let room = room_for(groups.series.iter().map(|s| s.name.as_str()));
    let x = Axis::new(groups.x_name(), groups.x_scale());
    let mut top = HEAD;
    let mut panel = |scene: &mut Scene, name: &str, scale: Scale, curves: &[Curve]| {
        let y = Axis::new(name, scale);
        let panel = Panel::new(scene, (top, top + height), room, &x, &y);
        panel.curves(scene, curves);
        top += height;
        panel
    };

    let drawn = curves(groups, Run::iops_around);
    let mut values: Vec<Vec<f64>> = drawn.iter().map(Curve::heights).collect();
    let published_iops = groups.published.iter().filter_map(|one| one.iops);
    let marks: Vec<f64> = published_iops.filter(|_| groups.of_threads()).collect();
    if let Some(first) = values.first_mut() {
        first.extend(marks);
    }
    let scale = Scale::of_curves(&values, Unit::Number, groups.linear);
    let iops = panel(&mut scene, "IOPS", scale, &drawn);
    published(groups, &mut scene, &iops, Unit::Number, |one| one.iops);

    let drawn = curves(groups, |run| run.latency_at(groups.direction, TAIL));
    let values: Vec<Vec<f64>> = drawn.iter().map(Curve::heights).collect();
    let scale = Scale::of_curves(&values, Unit::Time, groups.linear);
    let of = ["reads", "writes", "trims"][groups.direction];
    let name = format!("latency of {of}, {TAIL}th percentile");
    panel(&mut scene, &name, scale, &drawn);

    let name = "waiting for locks, part of the CPUs' busy time";
    let drawn = curves(groups, |run| Estimate::alone(run.lock_share()));
    let locks = panel(&mut scene, name, Scale::percent(), &drawn);
    published(groups, &mut scene, &locks, Unit::Percent, |one| {
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
    if !groups.of_threads() {
        return;
    }
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

fn curves(groups: &Groups, value: impl Fn(&Run) -> Estimate) -> Vec<Curve> {
    let curve = |series: &Series| {
        let points = series.points.iter();
        let of = |point: &Vec<&Run>| (groups.x_of(point[0]), estimate(point, &value));
        let estimates: Vec<_> = points.map(of).collect();
        let half = |(_, estimate): &(f64, Estimate)| estimate.half;
        let halves = estimates.iter().filter_map(half).collect::<Vec<f64>>();
        Curve {
            name: series.name.clone(),
            colour: series.colour,
            dash: series.dash,
            points: estimates.iter().map(|(x, of)| (*x, of.mean)).collect(),
            // Points of too short runs have no interval, and then none has one.
            halves: match halves.len() == estimates.len() {
                true => halves,
                false => Vec::new(),
            },
            dots: true,
        }
    };
    groups.series.iter().map(curve).collect()
}
