//! The page of a comparison: a table and a figure for each measure, with intervals.

use maud::{Markup, html};
use scenario::report::Report;
use sim::estimate::Estimate;
use study::compare::{ALL, Compared, Row, Unit};

use super::{Cell, about, curves, list, page, picture, simulated, table, text, trust};
use crate::amount::{changed, estimated, written};
use crate::plot::figures::bars::{Bar, of_bars};
use crate::plot::group::Groups;
use crate::plot::input::Run;
use crate::plot::panel::{Axis, Curve};
use crate::plot::scale::Scale;
use crate::plot::scene::PALETTE;

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
    let runs = reports.iter().map(|report| Run::of(report));
    let runs: Vec<Run> = runs.filter_map(Result::ok).collect();
    // Numbers that variants have different are an axis, if there are three at least.
    let groups = Groups::new(&runs, false).ok();
    let groups = groups.filter(|of| of.places().len() > 2 && of.left_out.is_empty());
    let groups = groups.filter(|_| runs.len() == reports.len());
    let happened = html! {
        p { (variants.head.trim_end()) ". Differences are from " (variants.names[0]) "." }
        @for measure in measures {
            (rows(variants, measure))
            @match &groups {
                Some(groups) => { (swept(groups, &runs, measure)) },
                None => { (bars(variants, measure)) },
            }
        }
    };
    let sections = [
        ("happened", "What differs", happened),
        ("next", "What to look at next", hints(variants, measures)),
        ("trust", "How far to trust it", trust::of(&reports, &runs)),
    ];
    let all = reports.iter().map(|of| about(&of.blksim, of.device.kind));
    let all: Vec<Vec<String>> = all.collect();
    // Seeds are in the line below, and settings that differ are names of the variants.
    let settings = all[0].iter().enumerate().take(all[0].len() - 1);
    let same = settings.filter(|(place, of)| all.iter().all(|other| other[*place] == **of));
    let same: Vec<String> = same.map(|(_, of)| of.clone()).collect();
    let name = match variants.names.as_slice() {
        [first, second] => format!("Comparison of {first} and {second}"),
        names => format!("Comparison of {} variants", names.len()),
    };
    page(
        &name,
        &simulated(&reports[0].blksim.version, &same),
        &sections,
    )
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
    let head = ["variant", "mean", "difference", ""];
    let rows = variants.names.iter().zip(&compared.rows).map(row);
    table(&title(compared), &head, rows)
}

fn bars(variants: &Variants, compared: &Compared) -> Markup {
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
    let bars: Vec<Bar> = all.map(bar).collect();
    picture(&of_bars(&title(compared), unit, &bars))
}

/// Curves over a number that variants have different; `runs` are theirs.
fn swept(groups: &Groups, runs: &[Run], compared: &Compared) -> Markup {
    let estimate = |of: &Run| {
        let place = runs.iter().position(|run| core::ptr::eq(run, of));
        compared.rows[place.expect("groups are of these runs")].estimate
    };
    let of_series = groups.series.iter().map(|series| {
        let points = || {
            series
                .points
                .iter()
                .map(|runs| (runs[0], estimate(runs[0])))
        };
        Curve {
            name: series.name.clone(),
            colour: series.colour,
            dash: series.dash,
            points: points()
                .map(|(run, of)| (groups.x_of(run), of.mean))
                .collect(),
            halves: points().filter_map(|(_, of)| of.half).collect(),
            dots: true,
        }
    });
    let all: Vec<Curve> = of_series.collect();
    let heights = all
        .iter()
        .map(|of| of.points.iter().map(|(_, y)| *y).collect());
    let heights: Vec<Vec<f64>> = heights.collect();
    let y = match compared.measure.unit {
        Unit::Percent => Scale::percent(),
        unit => Scale::of_curves(&heights, unit, false),
    };
    let x = Axis::new(groups.x_name(), groups.x_scale());
    curves(&all, &x, &Axis::new(title(compared), y), HEIGHT)
}

fn hints(variants: &Variants, measures: &[&Compared]) -> Markup {
    // The variant with the largest or smallest mean of a measure.
    let best = |name: &str, sign: f64| {
        let compared = measures.iter().find(|of| of.measure.name == name)?;
        let means = compared
            .rows
            .iter()
            .map(|row| row.estimate.mean)
            .enumerate();
        let (index, mean) = means.max_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)))?;
        let (name, mean) = (&variants.names[index], written(mean, compared.measure.unit));
        let of = match compared.direction {
            ALL => String::new(),
            direction => format!(" of {direction}s"),
        };
        Some((index, format!("{name} ({mean})"), of))
    };
    let mut hints = Vec::new();
    if let (Some((most, iops, _)), Some((least, tail, of))) =
        (best("iops", 1.0), best("clat_p99_ns", -1.0))
    {
        hints.push(match most == least {
            true => format!("{iops} has most IOPS, and the shortest latency{of} at 99 %: {tail}."),
            false => format!(
                "{iops} has most IOPS, but the latency{of} at 99 % is shortest with {tail}: which \
                 one is better depends on what the application waits for."
            ),
        });
    }
    let rows = measures.iter().flat_map(|of| &of.rows);
    let differences: Vec<Estimate> = rows.filter_map(|row| row.difference).collect();
    let chance = differences.iter().filter(|of| of.may_be_nothing()).count();
    hints.push(match variants.seeds {
        1 => "Intervals are of one run each, from its batches: --seeds 5 shows how far runs with \
              other random numbers are from each other."
            .to_owned(),
        seeds if chance > 0 => format!(
            "{chance} of {} differences may be chance. The same command with --seeds {} makes the \
             intervals about half as long.",
            differences.len(),
            (4 * seeds).min(1000)
        ),
        _ => "No difference in these tables may be chance alone.".to_owned(),
    });
    hints.push(
        "Where the time of one variant goes: blksim run with its options and --html.".to_owned(),
    );
    list("", &hints)
}
