//! benches/growth.toml, what `cargo xtask growth` has measured: its table and its picture.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;

use super::markdown;
use crate::paths;
use crate::step::{Failure, Result};

pub(crate) const FIGURES: &str = "benches/growth.toml";
/// Sizes of each axis.
pub(crate) const SIZES: [u32; 6] = [1, 4, 16, 64, 256, 1024];

/// Beside the page.
pub(super) const PICTURE: &str = "docs/scaling/growth.svg";
/// Width and height of a panel, and its place within the picture.
const PANEL: [f64; 2] = [330.0, 300.0];
const LEFT: f64 = 60.0;
const TOP: f64 = 40.0;
const BETWEEN: f64 = 480.0;
const COLOURS: [&str; 5] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"];

/// An axis, measured: figures of each size.
#[derive(Clone, Default, Debug, Deserialize)]
pub(crate) struct Figures {
    pub(crate) instructions: Vec<u64>,
    pub(crate) mib: Vec<u64>,
}

/// The kept figures, by axis.
pub(crate) fn kept() -> Result<BTreeMap<String, Figures>> {
    let wrong = |e: &dyn std::fmt::Display| Failure(format!("{FIGURES}: {e}"));
    let text = fs::read_to_string(paths::root().join(FIGURES)).map_err(|e| wrong(&e))?;
    toml::from_str(&text).map_err(|e| wrong(&e))
}

/// A row for each axis: instructions per I/O, and MiB.
pub(super) fn table() -> Result<String> {
    let sizes = SIZES.map(|size| size.to_string());
    let header = std::iter::once("instructions per I/O (MiB)".to_owned()).chain(sizes);
    let row = |(name, Figures { instructions, mib }): (String, Figures)| {
        let cells = instructions.iter().zip(mib);
        let cells = cells.map(|(instructions, mib)| format!("{instructions} ({mib})"));
        std::iter::once(name).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = kept()?.into_iter().map(row).collect();
    Ok(markdown::table(&header.collect::<Vec<_>>(), &rows))
}

/// Both figures by size, all axes logarithmic.
pub(super) fn drawn() -> Result<String> {
    let kept = kept()?;
    let panel = |left, title, of: fn(&Figures) -> &[u64]| {
        let curves = kept.iter().map(|(name, figures)| (&**name, of(figures)));
        panel(left, title, &curves.collect::<Vec<_>>())
    };
    let (width, height) = (2.0 * BETWEEN + 20.0, TOP + PANEL[1] + 50.0);
    Ok(format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}{}</svg>\n",
        panel(LEFT, "instructions per I/O", |of| &of.instructions),
        panel(LEFT + BETWEEN, "MiB", |of| &of.mib),
    ))
}

fn panel(left: f64, title: &str, curves: &[(&str, &[u64])]) -> String {
    let values = || curves.iter().flat_map(|(_, values)| *values);
    let (least, most) = (values().min().copied(), values().max().copied());
    let [from, to] = [least, most].map(|end| (end.unwrap_or(1).max(1) as f64).log2());
    let (from, to) = (from.floor(), to.ceil().max(from.floor() + 1.0));
    let doublings = f64::from(SIZES[SIZES.len() - 1]).log2();
    let [width, height] = PANEL;
    let bottom = TOP + height;
    let x = |size: f64| left + width * size.log2() / doublings;
    let y = |value: f64| bottom - height * (value.max(1.0).log2() - from) / (to - from);
    let grid = "stroke=\"#ddd\"";
    let mut drawn = text(left, TOP - 16.0, "", title);
    for size in SIZES {
        let at = x(size.into());
        drawn += &line(&[[at, TOP], [at, bottom]], grid);
        drawn += &text(
            at,
            bottom + 20.0,
            " text-anchor=\"middle\"",
            &size.to_string(),
        );
    }
    for power in from as i32..=to as i32 {
        let value = f64::from(power).exp2();
        drawn += &line(&[[left, y(value)], [left + width, y(value)]], grid);
        let label = format!("{value}");
        drawn += &text(left - 6.0, y(value) + 4.0, " text-anchor=\"end\"", &label);
    }
    // What doubles with the size, from the lower left corner.
    let end = doublings.min(to - from);
    let proportional = [[left, bottom], [x(end.exp2()), y((from + end).exp2())]];
    drawn += &line(&proportional, "stroke=\"#999\" stroke-dasharray=\"4 4\"");
    let mut ends = Vec::new();
    for ((name, values), colour) in curves.iter().zip(COLOURS) {
        let points = SIZES.iter().zip(*values);
        let points = points.map(|(size, value)| [x((*size).into()), y(*value as f64)]);
        let points: Vec<[f64; 2]> = points.collect();
        drawn += &line(&points, &format!("stroke=\"{colour}\" stroke-width=\"2\""));
        ends.push((points[points.len() - 1][1], *name, colour));
    }
    // Names are at the ends of their curves, and none covers another.
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = 0.0_f64;
    for (end, name, colour) in ends {
        above = (end + 4.0).max(above + 16.0);
        drawn += &text(
            left + width + 8.0,
            above,
            &format!(" fill=\"{colour}\""),
            name,
        );
    }
    drawn
        + &text(
            left + width / 2.0,
            bottom + 40.0,
            " text-anchor=\"middle\"",
            "size",
        )
}

fn text(x: f64, y: f64, more: &str, text: &str) -> String {
    format!("<text x=\"{x:.0}\" y=\"{y:.0}\"{more}>{text}</text>\n")
}

fn line(points: &[[f64; 2]], more: &str) -> String {
    let points = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}"));
    let points = points.collect::<Vec<_>>().join(" ");
    format!("<polyline fill=\"none\" points=\"{points}\" {more}/>\n")
}
