//! Values over time, a panel for each name and a curve for each group: those of a scheduler over
//! the whole run, by group of requests, and I/Os over the measured time, by job and direction.
//!
//! Levels are steps, samples dots, counts steps of their sums. Groups in which nothing changed are
//! left out. A count with a target is drawn as its sum so far, with its target, thin and pale.

use super::{Drawn, NO_DETAILS};
use crate::plot::group::Groups;
use crate::plot::input::{Counter, CounterUnit, Form};
use crate::plot::panel::{Axis, HEAD, Panel, page, room_for};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Colour, INK, PALETTE, Scene};

const HEIGHT: i32 = 240;
/// The same of the panels of I/Os.
const HIGHER: i32 = 330;
/// Room below a panel.
const GAP: i32 = 20;
/// Height of the numbers of the time axis.
const FOOT: i32 = 80;
/// Panels of the figure at most.
const PANELS: usize = 9;

/// Gauges of one name, of one run.
struct Part<'a> {
    run: &'a str,
    counters: Vec<(&'a Counter, Colour)>,
    aims: Vec<(&'a Counter, Colour)>,
    /// Groups that there is no colour for.
    more: usize,
}

impl<'a> Part<'a> {
    fn of(run: &'a str) -> Part<'a> {
        Part {
            run,
            counters: Vec::new(),
            aims: Vec::new(),
            more: 0,
        }
    }
}

pub(super) fn draw(groups: &Groups) -> Drawn {
    let (mut parts, mut details) = (Vec::new(), false);
    for series in groups.panels() {
        if let Some(found) = &series.last().details {
            details = true;
            parts.extend(parts_of(&series.name, &found.counters));
        }
    }
    if !details {
        return Err(NO_DETAILS);
    }
    if parts.is_empty() {
        return Err("no scheduler recorded a value that changed");
    }
    let title = "what the scheduler does over time";
    let x = "time from the beginning of the run";
    Ok(panels(groups, parts, HEIGHT, (title, x)))
}

/// IOPS, bandwidth and latency.
pub(super) fn rates(groups: &Groups) -> Drawn {
    let (mut parts, mut details) = (Vec::new(), false);
    for series in groups.panels() {
        let Some(found) = &series.last().details else {
            continue;
        };
        details = true;
        let drawn = found.rates.len().min(PALETTE.len());
        for kind in 0..3 {
            let curves = found.rates.iter().map(|rates| &rates[kind]);
            parts.push(Part {
                counters: curves.zip(PALETTE).collect(),
                more: found.rates.len() - drawn,
                ..Part::of(&series.name)
            });
        }
    }
    if !details {
        return Err(NO_DETAILS);
    }
    parts.retain(|part| !part.counters.is_empty());
    if parts.is_empty() {
        return Err("no I/O ended in the measured time");
    }
    let step = written(parts[0].counters[0].0.step_ns, Unit::Time);
    let x = format!("time from the end of the ramp (steps of {step})");
    Ok(panels(groups, parts, HIGHER, ("I/Os over time", &x)))
}

/// A panel of this height for each part. `title`: with the name of the horizontal axis.
fn panels(groups: &Groups, mut parts: Vec<Part>, each: i32, title: (&str, &str)) -> Scene {
    let more = parts.len().saturating_sub(PANELS);
    parts.truncate(PANELS);
    let height = HEAD + each * parts.len() as i32 + FOOT;
    let below = match more {
        0 => groups.common_of_panels(),
        more => format!(
            "{}; {more} values more in the JSON",
            groups.common_of_panels()
        ),
    };
    let mut scene = page(title.0, &below, height);
    let names = parts.iter().flat_map(|part| &part.counters);
    let names = names.map(|(counter, _)| counter.group.as_str());
    let room = room_for(names.chain([TARGET]));
    let counters = parts.iter().flat_map(|part| &part.counters);
    let end = counters
        .map(|(counter, _)| counter.end())
        .fold(0.0, f64::max);
    let x = Axis::new(title.1, Scale::up_to(end, Unit::Time));
    for (index, part) in parts.iter().enumerate() {
        let top = HEAD + each * index as i32;
        // All panels have one time axis: the last one names it.
        let last = index + 1 == parts.len();
        panel(&mut scene, (top, top + each, last), room, (&x, part));
    }
    scene
}

/// Name of the line at the target.
const TARGET: &str = "the target";

/// A part for each name, in the order of their first records.
fn parts_of<'a>(run: &'a str, all: &'a [Counter]) -> Vec<Part<'a>> {
    let mut moving: Vec<&str> = Vec::new();
    for counter in all.iter().filter(|counter| changes(counter)) {
        if !moving.contains(&counter.group.as_str()) {
            moving.push(&counter.group);
        }
    }
    let mut parts: Vec<(&str, Part)> = Vec::new();
    for counter in all {
        let Some(place) = moving.iter().position(|group| *group == counter.group) else {
            continue;
        };
        let colour = PALETTE.get(place).copied();
        if let Some(of) = &counter.beside
            && let Some((_, part)) = parts.iter_mut().find(|(name, _)| name == of)
        {
            part.aims.extend(colour.map(|colour| (counter, colour)));
            continue;
        }
        let index = parts.iter().position(|(name, _)| *name == counter.name);
        let index = index.unwrap_or_else(|| {
            parts.push((&counter.name, Part::of(run)));
            parts.len() - 1
        });
        let part = &mut parts[index].1;
        match colour {
            Some(colour) => part.counters.push((counter, colour)),
            None => part.more += 1,
        }
    }
    let parts = parts.into_iter().map(|(_, part)| part);
    parts.filter(|part| !part.counters.is_empty()).collect()
}

/// Something happens: a level has two values, samples and counts are not all zero.
fn changes(counter: &Counter) -> bool {
    let mut present = counter.values.iter().flatten();
    match counter.form {
        Form::Level => present
            .next()
            .is_some_and(|first| present.any(|v| v.total_cmp(first).is_ne())),
        Form::Sample | Form::Count => present.any(|value| *value > 0.0),
    }
}

fn panel(
    scene: &mut Scene,
    (top, bottom, last): (i32, i32, bool),
    room: i32,
    (x, part): (&Axis, &Part),
) {
    let (first, _) = part.counters[0];
    // Step by step value and target jump about each other.
    let sum = !part.aims.is_empty() && first.form == Form::Count;
    let shown = |all: &[(&Counter, Colour)]| -> Vec<(Counter, Colour)> {
        let counters = all.iter().map(|&(counter, colour)| match sum {
            true => (summed(counter), colour),
            false => (counter.clone(), colour),
        });
        counters.collect()
    };
    let (counters, aims) = (shown(&part.counters), shown(&part.aims));
    let values = counters
        .iter()
        .chain(&aims)
        .flat_map(|(counter, _)| &counter.values);
    let aim = (first.unit == CounterUnit::Target).then_some(1.0);
    let most = values.flatten().copied().chain(aim).fold(0.0, f64::max);
    let unit = match first.unit {
        CounterUnit::Nanoseconds => Unit::Time,
        CounterUnit::Bytes => Unit::Bytes,
        CounterUnit::Number | CounterUnit::Sectors | CounterUnit::Target => Unit::Number,
    };
    let y = Axis::new(called(part, first), Scale::linear(most, unit));
    let panel = match last {
        true => Panel::new(scene, (top, bottom + FOOT), room, x, &y),
        false => Panel::of(scene, (top, bottom - GAP), room, x, &y),
    };
    let mut names = Vec::new();
    if let Some(aim) = aim {
        let y = panel.y(aim);
        scene.line(&[(panel.left, y), (panel.right, y)], INK, 2);
        names.push(((panel.right, y), TARGET, INK));
    }
    for (counter, colour) in &aims {
        curve(scene, &panel, counter, (colour.tint(0.6), 2));
    }
    for (counter, colour) in &counters {
        if let Some(last) = curve(scene, &panel, counter, (*colour, 3)) {
            names.push((last, counter.group.as_str(), *colour));
        }
    }
    panel.names(scene, &names);
}

/// All that was counted up to then, as a level.
fn summed(counter: &Counter) -> Counter {
    let mut sum = 0.0;
    let values = counter.values.iter().map(|value| {
        sum += value.unwrap_or(0.0);
        Some(sum)
    });
    Counter {
        form: Form::Level,
        values: values.collect(),
        ..counter.clone()
    }
}

fn called(part: &Part, counter: &Counter) -> String {
    let sectors = match counter.unit == CounterUnit::Sectors {
        true => ", sectors",
        false => "",
    };
    let (run, name, more) = (part.run, &counter.name, more(part));
    if let Some((aim, _)) = part.aims.first() {
        let aim = &aim.name;
        return format!("{run}: {name}, and thin the {aim}, up to then{sectors}{more}");
    }
    let unit = if counter.unit == CounterUnit::Target {
        ", in parts of its target".to_owned()
    } else if counter.form == Form::Count {
        format!("{sectors}, in {}", written(counter.step_ns, Unit::Time))
    } else {
        sectors.to_owned()
    };
    format!("{run}: {name}{unit}{more}")
}

fn more(part: &Part) -> String {
    match part.more {
        0 => String::new(),
        more => format!(" ({more} groups more are not shown)"),
    }
}

/// Draws a curve. Returns the place of its last value, if it has any.
fn curve(
    scene: &mut Scene,
    panel: &Panel,
    counter: &Counter,
    (colour, width): (Colour, u32),
) -> Option<(i32, i32)> {
    let mut last = None;
    let mut line: Vec<(i32, i32)> = Vec::new();
    // The last step may be short: its count cannot be compared with the others.
    let steps = match counter.form {
        Form::Count => counter.values.len().saturating_sub(1).max(1),
        Form::Level | Form::Sample => counter.values.len(),
    };
    for (index, value) in counter.values.iter().take(steps).enumerate() {
        let (from, to) = (counter.at(index), counter.at(index + 1));
        let value = match counter.form {
            Form::Count => Some(value.unwrap_or(0.0)),
            Form::Level | Form::Sample => *value,
        };
        match (value, counter.form) {
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
    let (colour, width) = match counter.form {
        Form::Sample => (colour.tint(0.4), 2),
        Form::Level | Form::Count => (colour, width),
    };
    scene.line(&line, colour, width);
    last
}
