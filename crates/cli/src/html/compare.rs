//! The page of a comparison: a table and a figure for each measure, with intervals.

use maud::{Markup, html};
use scenario::report::Report;
use study::compare::{ALL, Compared, Estimate, Row, Unit};

use super::{Cell, Section, about, page, picture, simulated, table, text, trust};
use crate::amount::{changed, estimated, written};
use crate::plot::figures::bars::{Bar, of_bars};
use crate::plot::group::numeric;
use crate::plot::input::Run;
use crate::plot::panel::{Axis, Curve, Panel, WIDTH, room_for};
use crate::plot::scale::Scale;
use crate::plot::scene::{Dash, PALETTE, Scene};

/// Height of a figure of curves.
const HEIGHT: i32 = 620;

/// What was compared.
pub(crate) struct Variants<'a> {
    /// A line about the seeds.
    pub(crate) head: String,
    pub(crate) seeds: usize,
    pub(crate) names: Vec<String>,
    /// Of each variant the one of the first seed.
    pub(crate) reports: &'a [Report],
}

pub(crate) fn compare(variants: &Variants, measures: &[&Compared]) -> String {
    let reports: Vec<&Report> = variants.reports.iter().collect();
    let first = reports[0];
    let runs = reports.iter().map(|report| Run::of(report));
    let runs: Vec<Run> = runs.filter_map(Result::ok).collect();
    let swept = Swept::of(&reports);
    let happened = html! {
        p { (variants.head.trim_end()) ". Differences are from " (variants.names[0]) "." }
        @for measure in measures {
            (rows(variants, measure))
            (picture(&match &swept {
                Some(swept) => swept.drawn(measure),
                None => bars(variants, measure),
            }))
        }
    };
    let sections = [
        Section::new("happened", "What differs", happened),
        Section::new("next", "What to look at next", hints(variants, measures)),
        Section::new("trust", "How far to trust it", trust::of(&reports, &runs)),
    ];
    let mut about = about(&first.blksim, first.device.kind);
    // Seeds are in the line below, and settings that differ are names of the variants.
    about.truncate(about.len() - 1);
    let differs = |of: fn(&Report) -> &str| reports.iter().any(|one| of(one) != of(first));
    let same = [
        !differs(|report| &report.blksim.scenario),
        !differs(|report| &report.blksim.machine),
        !differs(|report| report.blksim.rules),
        !differs(|report| report.blksim.scheduler),
        !differs(|report| report.device.kind),
    ];
    let about: Vec<String> = about
        .into_iter()
        .zip(same)
        .filter_map(|(of, same)| same.then_some(of))
        .collect();
    let name = match variants.names.as_slice() {
        [first, second] => format!("Comparison of {first} and {second}"),
        names => format!("Comparison of {} variants", names.len()),
    };
    page(&name, &simulated(&first.blksim.version, &about), &sections)
}

/// As in the text: `read: latency, 99 %`.
fn title(compared: &Compared) -> String {
    match compared.direction {
        ALL => compared.measure.title.to_owned(),
        direction => format!("{direction}: {}", compared.measure.title),
    }
}

fn rows(variants: &Variants, compared: &Compared) -> Markup {
    let measure = compared.measure;
    let unit = if measure.is_relative() { "%" } else { "points" };
    let row = |(name, row): (&String, &Row)| {
        let estimate = Cell::Figure(row.estimate.mean, estimated(&row.estimate, measure.unit));
        let difference = row.difference.as_ref();
        vec![
            text(name),
            estimate,
            Cell::Shown(difference.map_or(String::new(), |of| changed(of, unit))),
            text(match difference {
                Some(of) if of.may_be_nothing() => "may be chance",
                _ => "",
            }),
        ]
    };
    let rows: Vec<Vec<Cell>> = variants.names.iter().zip(&compared.rows).map(row).collect();
    table(
        &title(compared),
        &["variant", "mean", "difference", ""],
        &rows,
    )
}

fn bars(variants: &Variants, compared: &Compared) -> Scene {
    let unit = compared.measure.unit;
    let all = variants.names.iter().zip(&compared.rows);
    let all = all.zip(PALETTE.into_iter().cycle());
    let bar = |((name, row), colour): ((&String, &Row), _)| Bar {
        name: name.clone(),
        colour,
        value: row.estimate.mean,
        half: row.estimate.half,
        text: written(row.estimate.mean, unit),
    };
    of_bars(&title(compared), unit, &all.map(bar).collect::<Vec<_>>())
}

/// A number that variants have different, and curves over it.
struct Swept {
    key: String,
    /// Of each variant: its number, as it was written, and its curve.
    places: Vec<(f64, String, usize)>,
    /// Names of the curves.
    curves: Vec<String>,
}

impl Swept {
    /// The first setting of which all values are numbers, at least three. None if a curve would
    /// have no colour of its own.
    fn of(reports: &[&Report]) -> Option<Swept> {
        let varied = |report: &&Report| -> Vec<(String, String)> {
            let all = report.blksim.varied.iter();
            all.filter(|(name, _)| name != "seed").cloned().collect()
        };
        let all: Vec<Vec<(String, String)>> = reports.iter().map(varied).collect();
        let numbers = |column: usize| -> Option<Vec<f64>> {
            let values = all.iter().map(|of| numeric(&of.get(column)?.1));
            values.collect()
        };
        let several = |values: &Vec<f64>| {
            let mut distinct = values.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            distinct.len() >= 3
        };
        let columns = 0..all[0].len();
        let mut columns = columns.filter_map(|column| Some((column, numbers(column)?)));
        let (column, values) = columns.find(|(_, values)| several(values))?;
        let (mut places, mut curves) = (Vec::new(), Vec::new());
        for (of, value) in all.iter().zip(values) {
            let others = of.iter().enumerate().filter(|(other, _)| *other != column);
            let others: Vec<&str> = others.map(|(_, (_, value))| value.as_str()).collect();
            let name = others.join(", ");
            let curve = curves.iter().position(|known| *known == name);
            let curve = curve.unwrap_or_else(|| {
                curves.push(name);
                curves.len() - 1
            });
            places.push((value, of[column].1.clone(), curve));
        }
        let key = all[0][column].0.clone();
        (curves.len() <= PALETTE.len()).then_some(Swept {
            key,
            places,
            curves,
        })
    }

    fn drawn(&self, compared: &Compared) -> Scene {
        let unit = compared.measure.unit;
        let mut order: Vec<usize> = (0..self.places.len()).collect();
        order.sort_by(|&a, &b| self.places[a].0.total_cmp(&self.places[b].0));
        let curve = |((index, name), colour): ((usize, &String), _)| {
            let of_curve = order.iter().filter(|&&at| self.places[at].2 == index);
            let estimate = |&at: &usize| compared.rows[at].estimate;
            Curve {
                name: name.clone(),
                colour,
                dash: Dash::Solid,
                points: of_curve
                    .clone()
                    .map(|at| (self.places[*at].0, estimate(at).mean))
                    .collect(),
                halves: of_curve.filter_map(|at| estimate(at).half).collect(),
                dots: true,
            }
        };
        let curves = self.curves.iter().enumerate().zip(PALETTE).map(curve);
        let curves: Vec<Curve> = curves.collect();
        let heights =
            |curve: &Curve| -> Vec<f64> { curve.points.iter().map(|(_, y)| *y).collect() };
        let heights: Vec<Vec<f64>> = curves.iter().map(heights).collect();
        let y = match unit {
            Unit::Percent => Scale::percent(),
            unit => Scale::of_curves(&heights, unit, false),
        };
        let marks = order.iter().map(|&at| &self.places[at]);
        let mut marks: Vec<(f64, String)> = marks.map(|(x, text, _)| (*x, text.clone())).collect();
        marks.dedup_by(|a, b| a.0.total_cmp(&b.0).is_eq());
        let x = Axis::new(self.key.as_str(), Scale::marks(marks, false));
        let y = Axis::new(title(compared), y);
        let mut scene = Scene::new(WIDTH, HEIGHT as u32);
        let room = room_for(self.curves.iter().map(String::as_str));
        let panel = Panel::new(&mut scene, (0, HEIGHT), room, &x, &y);
        panel.curves(&mut scene, &curves);
        scene
    }
}

fn hints(variants: &Variants, measures: &[&Compared]) -> Markup {
    let find = |name: &str| measures.iter().find(|of| of.measure.name == name);
    let mut hints = Vec::new();
    let best = |compared: &Compared, most: bool| {
        let means = compared
            .rows
            .iter()
            .map(|row| row.estimate.mean)
            .enumerate();
        let best = match most {
            true => means.max_by(|a, b| a.1.total_cmp(&b.1)),
            false => means.min_by(|a, b| a.1.total_cmp(&b.1)),
        };
        best.map(|(index, mean)| {
            (
                index,
                format!(
                    "{} ({})",
                    variants.names[index],
                    written(mean, compared.measure.unit)
                ),
            )
        })
    };
    let iops = find("iops").and_then(|compared| best(compared, true));
    let tail = find("clat_p99_ns").and_then(|compared| best(compared, false));
    if let (Some((most, iops)), Some((least, tail))) = (&iops, &tail) {
        hints.push(match most == least {
            true => format!("{iops} has most IOPS, and the shortest latency at 99 %: {tail}."),
            false => format!(
                "{iops} has most IOPS, but the latency at 99 % is shortest with {tail}: which one \
                 is better depends on what the application waits for."
            ),
        });
    }
    let differences = || {
        measures
            .iter()
            .flat_map(|of| &of.rows)
            .filter_map(|row| row.difference)
    };
    let chance = differences().filter(Estimate::may_be_nothing).count();
    match variants.seeds {
        1 => hints.push(
            "One seed shows nothing about chance: the same command with --seeds 5 gives intervals."
                .to_owned(),
        ),
        seeds if chance > 0 => hints.push(format!(
            "{chance} of {} differences may be chance. The same command with --seeds {} makes the \
             intervals about half as long.",
            differences().count(),
            (4 * seeds).min(1000)
        )),
        _ => hints.push("No difference in these tables may be chance alone.".to_owned()),
    }
    hints.push(
        "Where the time of one variant goes: blksim run with its options and --html.".to_owned(),
    );
    html! { ul { @for hint in &hints { li { (hint) } } } }
}
