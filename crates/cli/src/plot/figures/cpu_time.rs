//! Where the CPUs' time goes: a stack for each number of threads, a panel for each series.

use crate::plot::group::{Groups, Series};
use crate::plot::input::Times;
use crate::plot::panel::{Axis, HEAD, Panel, TICK, page, room_for};
use crate::plot::scale::Scale;
use crate::plot::scene::{Anchor, Colour, FAINT, INK, NOTHING, Scene, Style};

const HEIGHT: i32 = 520;

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
    let height = HEAD + HEIGHT * groups.series.len() as i32;
    let mut scene = page("Where the CPUs' time goes", &groups.common, height);
    for (index, series) in groups.series.iter().enumerate() {
        let top = HEAD + HEIGHT * index as i32;
        stack(&mut scene, series, top);
    }
    scene
}

fn stack(scene: &mut Scene, series: &Series, top: i32) {
    let room = room_for(PARTS.iter().map(|(name, _, _)| *name));
    let none = Scale::Marks {
        top: 1.0,
        marks: Vec::new(),
    };
    let x = Axis::new("threads", none);
    let y = Axis::new(
        format!("{}: time of all CPUs", series.name),
        Scale::percent(),
    );
    let panel = Panel::new(scene, (top, top + HEIGHT), room, &x, &y);
    let count = series.runs.len() as i32;
    let slot = (panel.right - panel.left) / count;
    let half = (slot * 4 / 10).clamp(2, 90);
    let mut names = Vec::new();
    let mut free_from = i32::MIN;
    for (index, run) in series.runs.iter().enumerate() {
        // Few bars are drawn side by side at the left rather than far apart.
        let slot = slot.min(240);
        let right_aligned = panel.right - slot * (count - index as i32) + slot / 2;
        let mut below = 0.0;
        for ((name, fill, ink), part) in PARTS.iter().zip(parts(&run.times)) {
            let (from, to) = (panel.y(below), panel.y(below + part));
            if from > to {
                let (left, right) = (right_aligned - half, right_aligned + half);
                scene.rect((left, to), (right, from), *fill);
            }
            if index + 1 == series.runs.len() && part >= 0.5 {
                let middle = (right_aligned + half, i32::midpoint(from, to));
                names.push((middle, *name, *ink));
            }
            below += part;
        }
        let text = run.threads.to_string();
        let width = crate::plot::font::width(&text, TICK);
        if right_aligned - width / 2 > free_from {
            let style = Style::new(TICK, INK, Anchor::Middle);
            scene.text((right_aligned, panel.bottom + 32), &text, style);
            free_from = right_aligned + width / 2 + 14;
        }
    }
    panel.names(scene, &names);
}
