//! Context switches a second over the measured time, stacked by target: a panel
//! for each run, all to one scale.

use super::{Drawn, NO_DETAILS};
use crate::plot::group::Groups;
use crate::plot::input::Switches;
use crate::plot::panel::{Axis, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Colour, Scene};

const HEIGHT: i32 = 420;
/// Points of a curve at most: finer steps are noise.
const POINTS: usize = 128;

/// Parts from below, in the order of [`Switches::counts`].
const PARTS: [(&str, Colour); 5] = [
    ("to tasks", Colour(0, 114, 178)),
    ("to kworkers", Colour(0, 128, 93)),
    ("to kdmwork", Colour(150, 80, 160)),
    ("to ksoftirqd", Colour(190, 80, 0)),
    ("to swapper (idle)", Colour(110, 110, 110)),
];

struct Part<'a> {
    run: &'a str,
    step_ns: f64,
    /// A second, each part with those below it.
    sums: [Vec<f64>; PARTS.len()],
}

pub(super) fn draw(groups: &Groups) -> Drawn {
    let (mut parts, mut details) = (Vec::new(), false);
    for series in groups.panels() {
        if let Some(found) = &series.last().details {
            details = true;
            parts.extend(Part::of(&series.name, &found.switches));
        }
    }
    if !details {
        return Err(NO_DETAILS);
    }
    let most = |part: &Part| {
        part.sums[PARTS.len() - 1]
            .iter()
            .copied()
            .fold(0.0, f64::max)
    };
    let top = parts.iter().map(most).fold(0.0, f64::max);
    if top <= 0.0 {
        return Err("no CPU switched from one task to another");
    }
    let title = "context switches of all CPUs, by target";
    let height = HEAD + HEIGHT * parts.len() as i32;
    let mut scene = page(title, &groups.common_of_panels(), height);
    let scale = Scale::linear(top, Unit::Number);
    for (index, part) in parts.iter().enumerate() {
        let y = Axis::new(format!("{}: switches a second", part.run), scale.clone());
        panel(&mut scene, HEAD + HEIGHT * index as i32, &y, part);
    }
    Ok(scene)
}

impl<'a> Part<'a> {
    /// None of a run without measured time.
    fn of(run: &'a str, switches: &Switches) -> Option<Part<'a>> {
        let steps = switches.counts[0].len();
        let join = steps.div_ceil(POINTS).max(1);
        let step_ns = switches.step_ns * join as f64;
        let mut below = vec![0.0; steps.div_ceil(join)];
        let sums = core::array::from_fn(|part| {
            for (sum, few) in below.iter_mut().zip(switches.counts[part].chunks(join)) {
                let length = switches.step_ns * few.len() as f64;
                *sum += few.iter().sum::<f64>() * 1e9 / length;
            }
            below.clone()
        });
        (steps > 0).then_some(Part { run, step_ns, sums })
    }
}

fn panel(scene: &mut Scene, top: i32, y: &Axis, part: &Part) {
    let step = written(part.step_ns, Unit::Time);
    let end = part.step_ns * part.sums[0].len() as f64;
    let x = Axis::new(
        format!("time from the end of the ramp (steps of {step})"),
        Scale::up_to(end, Unit::Time),
    );
    let room = room_for(PARTS.iter().map(|(name, _)| *name));
    let panel = Panel::new(scene, (top, top + HEIGHT), room, &x, y);
    let mut below = vec![panel.bottom; 2 * part.sums[0].len()];
    let mut names = Vec::new();
    for ((name, colour), sums) in PARTS.iter().zip(&part.sums) {
        let steps = sums.iter().enumerate().flat_map(|(index, value)| {
            let from = index as f64 * part.step_ns;
            let y = panel.y(*value);
            [(panel.x(from), y), (panel.x(from + part.step_ns), y)]
        });
        let line: Vec<(i32, i32)> = steps.collect();
        let under = line.iter().zip(&below).map(|(&(x, _), &y)| (x, y));
        let under: Vec<(i32, i32)> = under.collect();
        // A part without switches is not drawn.
        if under != line {
            let area: Vec<_> = line
                .iter()
                .copied()
                .chain(under.into_iter().rev())
                .collect();
            scene.area(&area, colour.tint(0.6));
            scene.line(&line, *colour, 2);
            let (last, base) = (line[line.len() - 1].1, below[below.len() - 1]);
            names.push((i32::midpoint(last, base), *name, *colour));
        }
        below = line.into_iter().map(|(_, y)| y).collect();
    }
    let names = names
        .into_iter()
        .map(|(y, name, colour)| ((panel.x(end), y), name, colour));
    panel.names(scene, &names.collect::<Vec<_>>());
}
