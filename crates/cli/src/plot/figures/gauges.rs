//! What a scheduler told over the whole run: a panel for each of its gauges, a curve for each group
//! of requests.
//!
//! Levels are steps, samples dots, counts steps of their sums. Groups of which nothing changed are
//! left out.

use super::{Drawn, NO_DETAILS};
use crate::plot::group::Groups;
use crate::plot::input::{Form, Gauge, GaugeUnit};
use crate::plot::panel::{Axis, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Colour, INK, PALETTE, Scene};

const HEIGHT: i32 = 420;

/// Gauges of one name, of one run.
struct Part<'a> {
    run: &'a str,
    gauges: Vec<(&'a Gauge, Colour)>,
    /// Groups that there is no colour for.
    more: usize,
}

pub(super) fn draw(groups: &Groups) -> Drawn {
    let (mut parts, mut details) = (Vec::new(), false);
    for series in &groups.series {
        if let Some(found) = &series.last().details {
            details = true;
            parts.extend(parts_of(&series.name, &found.gauges));
        }
    }
    if !details {
        return Err(NO_DETAILS);
    }
    if parts.is_empty() {
        return Err("no scheduler told anything that changed");
    }
    let title = "What the scheduler does over time";
    let height = HEAD + HEIGHT * parts.len() as i32;
    let mut scene = page(title, &groups.common_of_last(), height);
    let names = parts.iter().flat_map(|part| &part.gauges);
    let names = names.map(|(gauge, _)| gauge.group.as_str());
    let room = room_for(names.chain([TARGET]));
    for (index, part) in parts.iter().enumerate() {
        panel(&mut scene, HEAD + HEIGHT * index as i32, room, part);
    }
    Ok(scene)
}

/// What the line at the value that is aimed at is called.
const TARGET: &str = "the target";

/// A part for each name, in the order in which they were first told.
fn parts_of<'a>(run: &'a str, all: &'a [Gauge]) -> Vec<Part<'a>> {
    let mut moving: Vec<&str> = Vec::new();
    for gauge in all.iter().filter(|gauge| changes(gauge)) {
        if !moving.contains(&gauge.group.as_str()) {
            moving.push(&gauge.group);
        }
    }
    let mut parts: Vec<(&str, Part)> = Vec::new();
    for gauge in all {
        let Some(place) = moving.iter().position(|group| *group == gauge.group) else {
            continue;
        };
        let index = parts.iter().position(|(name, _)| *name == gauge.name);
        let index = index.unwrap_or_else(|| {
            let gauges = Vec::new();
            let more = 0;
            parts.push((&gauge.name, Part { run, gauges, more }));
            parts.len() - 1
        });
        let part = &mut parts[index].1;
        match PALETTE.get(place) {
            Some(colour) => part.gauges.push((gauge, *colour)),
            None => part.more += 1,
        }
    }
    let parts = parts.into_iter().map(|(_, part)| part);
    parts.filter(|part| !part.gauges.is_empty()).collect()
}

/// Something happens: a level has two values, samples and counts are not all zero.
fn changes(gauge: &Gauge) -> bool {
    let mut told = gauge.values.iter().flatten();
    match gauge.form {
        Form::Level => told
            .next()
            .is_some_and(|first| told.any(|v| v.total_cmp(first).is_ne())),
        Form::Sample | Form::Count => told.any(|value| *value > 0.0),
    }
}

fn panel(scene: &mut Scene, top: i32, room: i32, part: &Part) {
    let (first, _) = part.gauges[0];
    let ends = part.gauges.iter().map(|(gauge, _)| gauge.end());
    let end = ends.fold(0.0, f64::max);
    let values = part.gauges.iter().flat_map(|(gauge, _)| &gauge.values);
    let aim = (first.unit == GaugeUnit::Target).then_some(1.0);
    let most = values.flatten().copied().chain(aim).fold(0.0, f64::max);
    let unit = match first.unit {
        GaugeUnit::Nanoseconds => Unit::Time,
        GaugeUnit::Number | GaugeUnit::Sectors | GaugeUnit::Target => Unit::Number,
    };
    let x = Axis::new(
        "time from the beginning of the run",
        Scale::up_to(end, Unit::Time),
    );
    let y = Axis::new(called(part, first), Scale::linear(most, unit));
    let panel = Panel::new(scene, (top, top + HEIGHT), room, &x, &y);
    let mut names = Vec::new();
    if let Some(aim) = aim {
        let y = panel.y(aim);
        scene.line(&[(panel.left, y), (panel.right, y)], INK, 2);
        names.push(((panel.right, y), TARGET, INK));
    }
    for (gauge, colour) in &part.gauges {
        if let Some(last) = curve(scene, &panel, gauge, *colour) {
            names.push((last, gauge.group.as_str(), *colour));
        }
    }
    panel.names(scene, &names);
}

fn called(part: &Part, gauge: &Gauge) -> String {
    let unit = match (gauge.unit, gauge.form) {
        (GaugeUnit::Target, _) => ", in parts of its target".to_owned(),
        (_, Form::Count) => format!(", in {}", written(gauge.step_ns, Unit::Time)),
        (GaugeUnit::Sectors, _) => ", sectors".to_owned(),
        (GaugeUnit::Number | GaugeUnit::Nanoseconds, _) => String::new(),
    };
    let more = match part.more {
        0 => String::new(),
        more => format!(" ({more} groups more are not shown)"),
    };
    format!("{}: {}{unit}{more}", part.run, gauge.name)
}

/// Draws a gauge. Where its last value stands, if it has any.
fn curve(scene: &mut Scene, panel: &Panel, gauge: &Gauge, colour: Colour) -> Option<(i32, i32)> {
    let mut last = None;
    let mut line: Vec<(i32, i32)> = Vec::new();
    // The last step may be short: what was counted in it says nothing beside the others.
    let steps = match gauge.form {
        Form::Count => gauge.values.len().saturating_sub(1).max(1),
        Form::Level | Form::Sample => gauge.values.len(),
    };
    for (index, value) in gauge.values.iter().take(steps).enumerate() {
        let (from, to) = (gauge.at(index), gauge.at(index + 1));
        let value = match gauge.form {
            Form::Count => Some(value.unwrap_or(0.0)),
            Form::Level | Form::Sample => *value,
        };
        match (value, gauge.form) {
            (Some(value), Form::Sample) => {
                let at = (panel.x(f64::midpoint(from, to)), panel.y(value));
                scene.dot(at, colour);
                line.push(at);
                last = Some(at);
            }
            (Some(value), Form::Level | Form::Count) => {
                let y = panel.y(value);
                line.extend([(panel.x(from), y), (panel.x(to), y)]);
                last = line.last().copied();
            }
            (None, Form::Sample) => {}
            (None, Form::Level | Form::Count) => {
                scene.line(&core::mem::take(&mut line), colour, 3);
            }
        }
    }
    let (colour, width) = match gauge.form {
        Form::Sample => (colour.tint(0.4), 2),
        Form::Level | Form::Count => (colour, 3),
    };
    scene.line(&line, colour, width);
    last
}
