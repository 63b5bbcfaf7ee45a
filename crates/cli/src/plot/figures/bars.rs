//! Before and after: a bar for each series; the first one is the reference of the others.

use crate::plot::font;
use crate::plot::group::Groups;
use crate::plot::input::Run;
use crate::plot::panel::{HEAD, MARGIN, NAME, WIDTH, page};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Anchor, FAINT, INK, Scene, Style, fitted};

const BAR: i32 = 44;
const STEP: i32 = 62;
const GAP: i32 = 110;

struct Measure {
    name: &'static str,
    unit: Unit,
    of: fn(&Run) -> f64,
    /// Differences are parts of the first value; else they are points of percent.
    relative: bool,
}

const MEASURES: [Measure; 3] = [
    Measure {
        name: "IOPS",
        unit: Unit::Number,
        of: |run| run.iops,
        relative: true,
    },
    Measure {
        name: "waiting for locks, part of the CPUs' busy time",
        unit: Unit::Percent,
        of: Run::lock_share,
        relative: false,
    },
    Measure {
        name: "CPUs' time in the kernel, waiting included",
        unit: Unit::Percent,
        of: |run| {
            let times = run.times;
            times.system + times.lock_wait + times.softirq + times.irq
        },
        relative: false,
    },
];

pub(super) fn draw(groups: &Groups) -> Scene {
    let rows = groups.series.len() as i32;
    let block = GAP + STEP * rows;
    let height = HEAD + block * MEASURES.len() as i32 + 20;
    let title = match groups.series.as_slice() {
        [one] => one.name.clone(),
        [first, ..] => format!("Compared with {}", first.name),
        [] => String::new(),
    };
    let mut scene = page(&title, &groups.common_of_last(), height);
    for (index, measure) in MEASURES.iter().enumerate() {
        measured(&mut scene, groups, measure, HEAD + block * index as i32);
    }
    scene
}

fn measured(scene: &mut Scene, groups: &Groups, measure: &Measure, top: i32) {
    let style = Style::new(NAME, INK, Anchor::Left);
    scene.text((MARGIN, top + 20), measure.name, style);
    let widest = groups
        .series
        .iter()
        .map(|s| font::width(&s.name, NAME))
        .max();
    let names = widest.unwrap_or(0).min(600);
    let left = MARGIN + names + 24;
    let right = WIDTH as i32 - 380;
    let values = groups.series.iter().map(|s| (measure.of)(s.last()));
    let scale = match measure.unit {
        Unit::Percent => Scale::percent(),
        unit => Scale::linear(values.fold(0.0, f64::max), unit),
    };
    let first = (measure.of)(groups.series[0].last());
    for (index, series) in groups.series.iter().enumerate() {
        let value = (measure.of)(series.last());
        let y = top + 80 + STEP * index as i32;
        let style = Style::new(NAME, INK, Anchor::Right);
        scene.text((left - 14, y), &fitted(&series.name, NAME, names), style);
        let end = left + (scale.place(value) * f64::from(right - left)).round() as i32;
        scene.rect(
            (left, y - BAR / 2),
            (end.max(left + 1), y + BAR / 2),
            series.colour,
        );
        let mut text = written(value, measure.unit);
        if index > 0 {
            text.push_str(&difference(value, first, measure.relative));
        }
        let style = Style::new(NAME, INK, Anchor::Left);
        scene.text((end + 14, y), &text, style);
    }
    let bottom = top + 80 + STEP * (groups.series.len() as i32 - 1) + BAR / 2 + 6;
    scene.line(&[(left, top + 80 - BAR / 2 - 6), (left, bottom)], FAINT, 2);
}

fn difference(value: f64, first: f64, relative: bool) -> String {
    if !relative {
        return format!("   {:+.1} points", value - first);
    }
    if first > 0.0 {
        let percent = 100.0 * (value - first) / first;
        return format!("   {percent:+.1} %");
    }
    String::new()
}
