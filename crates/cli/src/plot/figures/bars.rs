//! Before and after: a bar for each series, or for each value of a sweep; the first one is the
//! reference of the others.

use sim::estimate::Estimate;

use crate::plot::font;
use crate::plot::group::{Groups, estimate};
use crate::plot::input::Run;
use crate::plot::panel::{HEAD, MARGIN, NAME, WIDTH, page};
use crate::plot::scale::{Scale, Unit, written};
use crate::plot::scene::{Anchor, Colour, FAINT, INK, Scene, Style, fitted};

const BAR: i32 = 44;
const STEP: i32 = 62;
const GAP: i32 = 110;
/// Bars of a measure at most.
const ROWS: usize = 24;

struct Measure {
    name: &'static str,
    unit: Unit,
    of: fn(&Run) -> Estimate,
    /// Differences are parts of the first value; else they are points of percent.
    relative: bool,
}

const MEASURES: [Measure; 3] = [
    Measure {
        name: "IOPS",
        unit: Unit::Number,
        of: Run::iops_around,
        relative: true,
    },
    Measure {
        name: "waiting for locks, part of the CPUs' busy time",
        unit: Unit::Percent,
        of: |run| Estimate::alone(run.lock_share()),
        relative: false,
    },
    Measure {
        name: "CPUs' time in the kernel, waiting included",
        unit: Unit::Percent,
        of: |run| {
            let times = run.times;
            Estimate::alone(times.system + times.lock_wait + times.softirq + times.irq)
        },
        relative: false,
    },
];

/// What a bar shows.
struct Row<'a> {
    name: String,
    colour: Colour,
    /// One for each seed.
    runs: &'a [&'a Run],
}

/// The last run of each series, or if there is room all of those that a swept value distinguishes.
fn rows<'a>(groups: &'a Groups) -> Vec<Row<'a>> {
    let points = groups.series.iter().flat_map(|series| &series.points);
    let all = !groups.of_threads() && points.count() <= ROWS;
    let mut rows = Vec::new();
    for series in &groups.series {
        let skipped = if all { 0 } else { series.points.len() - 1 };
        for runs in &series.points[skipped..] {
            rows.push(Row {
                name: match all {
                    true => format!("{}, {}", series.name, groups.x_text(runs[0])),
                    false => series.name.clone(),
                },
                colour: series.colour,
                runs,
            });
        }
    }
    rows
}

pub(super) fn draw(groups: &Groups) -> Scene {
    let rows = rows(groups);
    let block = GAP + STEP * rows.len() as i32;
    let height = HEAD + block * MEASURES.len() as i32 + 20;
    let title = match rows.as_slice() {
        [one] => one.name.clone(),
        [first, ..] => format!("compared with {}", first.name),
        [] => String::new(),
    };
    let below = match rows.len() > groups.series.len() {
        true => groups.common(groups.series.len()),
        false => groups.common_of_means(),
    };
    let mut scene = page(&title, &below, height);
    for (index, measure) in MEASURES.iter().enumerate() {
        measured(&mut scene, &rows, measure, HEAD + block * index as i32);
    }
    scene
}

fn measured(scene: &mut Scene, rows: &[Row], measure: &Measure, top: i32) {
    let of = |row: &Row| estimate(row.runs, measure.of);
    let first = of(&rows[0]).mean;
    let bar = |(index, row): (usize, &Row)| {
        let Estimate { mean, half } = of(row);
        let mut text = written(mean, measure.unit);
        if index > 0 {
            text.push_str(&difference(mean, first, measure.relative));
        }
        Bar {
            name: row.name.clone(),
            colour: row.colour,
            value: mean,
            half,
            text,
        }
    };
    let bars: Vec<Bar> = rows.iter().enumerate().map(bar).collect();
    draw_bars(scene, top, measure.name, measure.unit, &bars);
}

/// A bar with its interval, and a text at its right.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) colour: Colour,
    pub(crate) value: f64,
    /// Half of the interval's length.
    pub(crate) half: Option<f64>,
    pub(crate) text: String,
}

/// Bars on a sheet of their own.
pub(crate) fn of_bars(title: &str, unit: Unit, bars: &[Bar]) -> Scene {
    let mut scene = Scene::new(WIDTH, (GAP + STEP * bars.len() as i32) as u32);
    draw_bars(&mut scene, 0, title, unit, bars);
    scene
}

fn draw_bars(scene: &mut Scene, top: i32, title: &str, unit: Unit, bars: &[Bar]) {
    let style = Style::new(NAME, INK, Anchor::Left);
    scene.text((MARGIN, top + 20), title, style);
    let widest = bars.iter().map(|bar| font::width(&bar.name, NAME)).max();
    let names = widest.unwrap_or(0).min(600);
    let left = MARGIN + names + 24;
    let right = WIDTH as i32 - 380;
    let ends = bars.iter().map(|bar| bar.value + bar.half.unwrap_or(0.0));
    let scale = match unit {
        Unit::Percent => Scale::percent(),
        unit => Scale::linear(ends.fold(0.0, f64::max), unit),
    };
    let place = |value: f64| left + (scale.place(value) * f64::from(right - left)).round() as i32;
    for (index, bar) in bars.iter().enumerate() {
        let y = top + 80 + STEP * index as i32;
        let style = Style::new(NAME, INK, Anchor::Right);
        scene.text((left - 14, y), &fitted(&bar.name, NAME, names), style);
        let mut end = place(bar.value);
        scene.rect(
            (left, y - BAR / 2),
            (end.max(left + 1), y + BAR / 2),
            bar.colour,
        );
        if let Some(half) = bar.half.filter(|half| *half > 0.0) {
            let (low, high) = (place(bar.value - half), place(bar.value + half));
            scene.line(&[(low, y), (high, y)], INK, 3);
            for x in [low, high] {
                scene.line(&[(x, y - 10), (x, y + 10)], INK, 3);
            }
            end = high;
        }
        let style = Style::new(NAME, INK, Anchor::Left);
        scene.text((end + 14, y), &bar.text, style);
    }
    let bottom = top + 80 + STEP * (bars.len() as i32 - 1) + BAR / 2 + 6;
    scene.line(&[(left, top + 80 - BAR / 2 - 6), (left, bottom)], FAINT, 2);
}

fn difference(value: f64, first: f64, relative: bool) -> String {
    if !relative {
        return format!(" ({:+.1} points)", value - first);
    }
    if first > 0.0 {
        let percent = 100.0 * (value - first) / first;
        return format!(" ({percent:+.1} %)");
    }
    String::new()
}
