//! What a scheduler told over the whole run: a panel for each of its gauges, a curve for each group
//! of requests.
//!
//! Levels are steps, samples dots, counts steps of their sums. Groups of which nothing changed are
//! left out. A count with an aim is drawn as all that there was up to then, and its aim beside it,
//! thin and pale.

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
    aims: Vec<(&'a Gauge, Colour)>,
    /// Groups that there is no colour for.
    more: usize,
}

impl<'a> Part<'a> {
    fn of(run: &'a str) -> Part<'a> {
        Part {
            run,
            gauges: Vec::new(),
            aims: Vec::new(),
            more: 0,
        }
    }
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
        let colour = PALETTE.get(place).copied();
        if let Some(of) = &gauge.beside
            && let Some((_, part)) = parts.iter_mut().find(|(name, _)| name == of)
        {
            part.aims.extend(colour.map(|colour| (gauge, colour)));
            continue;
        }
        let index = parts.iter().position(|(name, _)| *name == gauge.name);
        let index = index.unwrap_or_else(|| {
            parts.push((&gauge.name, Part::of(run)));
            parts.len() - 1
        });
        let part = &mut parts[index].1;
        match colour {
            Some(colour) => part.gauges.push((gauge, colour)),
            None => part.more += 1,
        }
    }
    let parts = parts.into_iter().map(|(_, part)| part);
    parts.filter(|part| !part.gauges.is_empty()).collect()
}

/// Something happens: a level has two values, samples and counts are not all zero.
fn changes(gauge: &Gauge) -> bool {
    let mut present = gauge.values.iter().flatten();
    match gauge.form {
        Form::Level => present
            .next()
            .is_some_and(|first| present.any(|v| v.total_cmp(first).is_ne())),
        Form::Sample | Form::Count => present.any(|value| *value > 0.0),
    }
}

fn panel(scene: &mut Scene, top: i32, room: i32, part: &Part) {
    let (first, _) = part.gauges[0];
    // Step by step what was and what was aimed at jump about each other.
    let sum = !part.aims.is_empty() && first.form == Form::Count;
    let shown = |all: &[(&Gauge, Colour)]| -> Vec<(Gauge, Colour)> {
        let gauges = all.iter().map(|&(gauge, colour)| match sum {
            true => (summed(gauge), colour),
            false => (gauge.clone(), colour),
        });
        gauges.collect()
    };
    let (gauges, aims) = (shown(&part.gauges), shown(&part.aims));
    let ends = gauges.iter().map(|(gauge, _)| gauge.end());
    let end = ends.fold(0.0, f64::max);
    let values = gauges
        .iter()
        .chain(&aims)
        .flat_map(|(gauge, _)| &gauge.values);
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
    for (gauge, colour) in &aims {
        curve(scene, &panel, gauge, (colour.tint(0.6), 2));
    }
    for (gauge, colour) in &gauges {
        if let Some(last) = curve(scene, &panel, gauge, (*colour, 3)) {
            names.push((last, gauge.group.as_str(), *colour));
        }
    }
    panel.names(scene, &names);
}

/// All that was counted up to then, as a level.
fn summed(gauge: &Gauge) -> Gauge {
    let mut sum = 0.0;
    let values = gauge.values.iter().map(|value| {
        sum += value.unwrap_or(0.0);
        Some(sum)
    });
    Gauge {
        form: Form::Level,
        values: values.collect(),
        ..gauge.clone()
    }
}

fn called(part: &Part, gauge: &Gauge) -> String {
    let sectors = match gauge.unit {
        GaugeUnit::Sectors => ", sectors",
        GaugeUnit::Number | GaugeUnit::Nanoseconds | GaugeUnit::Target => "",
    };
    let (run, name, more) = (part.run, &gauge.name, more(part));
    if let Some((aim, _)) = part.aims.first() {
        let aim = &aim.name;
        return format!("{run}: {name}, and thin the {aim}, up to then{sectors}{more}");
    }
    let unit = match (gauge.unit, gauge.form) {
        (GaugeUnit::Target, _) => ", in parts of its target".to_owned(),
        (GaugeUnit::Sectors | GaugeUnit::Number | GaugeUnit::Nanoseconds, Form::Count) => {
            format!("{sectors}, in {}", written(gauge.step_ns, Unit::Time))
        }
        (GaugeUnit::Sectors | GaugeUnit::Number | GaugeUnit::Nanoseconds, _) => sectors.to_owned(),
    };
    format!("{run}: {name}{unit}{more}")
}

fn more(part: &Part) -> String {
    match part.more {
        0 => String::new(),
        more => format!(" ({more} groups more are not shown)"),
    }
}

/// Draws a gauge. Where its last value stands, if it has any.
fn curve(
    scene: &mut Scene,
    panel: &Panel,
    gauge: &Gauge,
    (colour, width): (Colour, u32),
) -> Option<(i32, i32)> {
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
                scene.line(&core::mem::take(&mut line), colour, width);
            }
        }
    }
    let (colour, width) = match gauge.form {
        Form::Sample => (colour.tint(0.4), 2),
        Form::Level | Form::Count => (colour, width),
    };
    scene.line(&line, colour, width);
    last
}
