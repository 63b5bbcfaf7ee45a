//! Where the CPUs' time goes: a stack for each place on the axis, a panel for each series.

use sim::estimate::Estimate;

use crate::plot::font;
use crate::plot::group::{Groups, Series, estimate};
use crate::plot::input::Times;
use crate::plot::panel::{Axis, HEAD, LEFT, Panel, TICK, WIDTH, page, room_for};
use crate::plot::scale::{Scale, Unit};
use crate::plot::scene::{Anchor, Colour, FAINT, INK, NOTHING, Scene, Style};

const HEIGHT: i32 = 520;
/// Width of a bar with the room around it at most.
const SLOT: i32 = 180;
/// Below this part of the time that is not idle, percent, idle time is not drawn.
const MOSTLY_IDLE: f64 = 60.0;

/// Parts of a stack from below, with a colour for the fill and one for the name.
const PARTS: [(&str, Colour, Colour); 5] = [
    ("user space", Colour(0, 158, 115), Colour(0, 128, 93)),
    (
        "block layer and kernel",
        Colour(0, 114, 178),
        Colour(0, 114, 178),
    ),
    (
        "softirq and interrupts",
        Colour(230, 159, 0),
        Colour(165, 110, 0),
    ),
    ("waiting for locks", Colour(213, 94, 0), Colour(190, 80, 0)),
    ("idle", NOTHING, FAINT),
];

fn parts(times: &Times) -> [f64; 5] {
    let interrupts = times.softirq + times.irq;
    [
        times.user,
        times.system,
        interrupts,
        times.lock_wait,
        times.idle,
    ]
}

pub(super) fn draw(groups: &Groups) -> Scene {
    let panels = groups.panels();
    let height = HEAD + HEIGHT * panels.len() as i32;
    let below = match groups.places().len() {
        1 => groups.common_of_panels(),
        _ => groups.common(panels.len()),
    };
    let mut scene = page("where the CPUs' time goes", &below, height);
    let points = panels.iter().flat_map(|series| &series.points);
    let busy =
        points.map(|point| 100.0 - estimate(point, |run| Estimate::alone(run.times.idle)).mean);
    let busiest = busy.fold(0.0, f64::max);
    for (index, series) in panels.iter().enumerate() {
        let top = HEAD + HEIGHT * index as i32;
        stack(&mut scene, groups, series, (top, busiest));
    }
    scene
}

/// `busiest`: largest part of the time that is not idle, of all runs.
fn stack(scene: &mut Scene, groups: &Groups, series: &Series, (top, busiest): (i32, f64)) {
    // Idle time would be most of a panel: it is what the bars lack.
    let (scale, rest) = match busiest < MOSTLY_IDLE {
        true => (Scale::linear(busiest, Unit::Percent), "; the rest is idle"),
        false => (Scale::percent(), ""),
    };
    let shown = if rest.is_empty() {
        &PARTS[..]
    } else {
        &PARTS[..4]
    };
    let room = room_for(shown.iter().map(|(name, _, _)| *name));
    // Few bars stand side by side at the left, and their names beside them.
    let count = series.points.len() as i32;
    let slot = ((WIDTH as i32 - room - LEFT) / count).min(SLOT);
    let half = (slot * 4 / 10).clamp(1, 90);
    let room = WIDTH as i32 - LEFT - slot * count;
    let x = Axis::new(groups.x_name(), Scale::marks(Vec::new(), true));
    let y = Axis::new(format!("{}: time of all CPUs{rest}", series.name), scale);
    let panel = Panel::new(scene, (top, top + HEIGHT), room, &x, &y);
    let mut names = Vec::new();
    let mut free_from = i32::MIN;
    for (index, point) in series.points.iter().enumerate() {
        let middle = panel.left + slot * index as i32 + slot / 2;
        let mut below = 0.0;
        for (part, (name, fill, ink)) in shown.iter().enumerate() {
            let value = estimate(point, |run| Estimate::alone(parts(&run.times)[part])).mean;
            let (from, to) = (panel.y(below), panel.y(below + value));
            if from > to {
                scene.rect((middle - half, to), (middle + half, from), *fill);
            }
            if index + 1 == series.points.len() && from > to {
                names.push(((middle + half, i32::midpoint(from, to)), *name, *ink));
            }
            below += value;
        }
        let text = groups.x_number(point[0]);
        let width = font::width(&text, TICK);
        if middle - width / 2 > free_from {
            let style = Style::new(TICK, INK, Anchor::Middle);
            scene.text((middle, panel.bottom + 32), &text, style);
            free_from = middle + width / 2 + 14;
        }
    }
    panel.names(scene, &names);
}
