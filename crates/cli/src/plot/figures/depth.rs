//! Requests with the device over the measured time: mean and maximum of short steps.

use super::{Drawn, NO_DETAILS};
use crate::plot::group::Groups;
use crate::plot::input::Depth;
use crate::plot::panel::{Axis, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Colour, Scene};

const HEIGHT: i32 = 480;

pub(super) fn draw(groups: &Groups) -> Drawn {
    let mut parts = Vec::new();
    for series in groups.panels() {
        if let Some(details) = &series.last().details {
            parts.push((series.name.as_str(), series.colour, &details.depth));
        }
    }
    if parts.is_empty() {
        return Err(NO_DETAILS);
    }
    parts.retain(|(_, _, depth)| !depth.mean.is_empty() && depth.mean.len() == depth.max.len());
    if parts.is_empty() {
        return Err("no time was measured");
    }
    let title = "requests with the device";
    let height = HEAD + HEIGHT * parts.len() as i32;
    let mut scene = page(title, &groups.common_of_panels(), height);
    let depths = parts.iter().flat_map(|(_, _, depth)| depth.max.iter());
    let scale = Scale::linear(depths.copied().fold(0.0, f64::max), Unit::Number);
    for (index, (name, colour, depth)) in parts.into_iter().enumerate() {
        let top = HEAD + HEIGHT * index as i32;
        let y = Axis::new(format!("{name}: requests"), scale.clone());
        panel(&mut scene, top, &y, depth, colour);
    }
    Ok(scene)
}

fn panel(scene: &mut Scene, top: i32, y: &Axis, depth: &Depth, colour: Colour) {
    let step = written(depth.step_ns, Unit::Time);
    let end = depth.step_ns * depth.mean.len() as f64;
    let x = Axis::new(
        format!("time from the end of the ramp (maximum and mean of each {step})"),
        Scale::up_to(end, Unit::Time),
    );
    let names = ["maximum", "mean"];
    let room = room_for(names.into_iter());
    let panel = Panel::new(scene, (top, top + HEIGHT), room, &x, y);
    let steps = |values: &[f64]| -> Vec<(i32, i32)> {
        let each = values.iter().enumerate();
        each.flat_map(|(index, value)| {
            let from = index as f64 * depth.step_ns;
            let y = panel.y(*value);
            [(panel.x(from), y), (panel.x(from + depth.step_ns), y)]
        })
        .collect()
    };
    let (most, mean) = (steps(&depth.max), steps(&depth.mean));
    let mut area = most.clone();
    area.extend([(panel.x(end), panel.bottom), (panel.left, panel.bottom)]);
    scene.area(&area, colour.tint(0.25));
    scene.line(&mean, colour, 3);
    if let (Some(&most), Some(&mean)) = (most.last(), mean.last()) {
        panel.names(
            scene,
            &[(most, names[0], colour.tint(0.8)), (mean, names[1], colour)],
        );
    }
}
