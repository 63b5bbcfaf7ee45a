//! The page of a what-if: each group of I/Os as captured and under each choice.

use maud::html;

use super::{Cell, as_text, figure, list, page, picture, simulated, table, text};
use crate::amount::{Unit, written};
use crate::plot::figures::bars::{Bar, of_bars};
use crate::plot::scene::PALETTE;

/// A choice for a group, as it is shown.
pub(crate) struct Row {
    pub(crate) group: String,
    pub(crate) choice: String,
    pub(crate) mean_ns: u64,
    /// Of I/Os, not of the whole run.
    pub(crate) p99_ns: Option<u64>,
    /// Difference from the captured choice as modelled: `-3.1 %`, `no difference`, or nothing.
    pub(crate) mean_said: String,
    pub(crate) p99_said: String,
}

/// `groups`: the rows of each group, that of all I/Os first.
pub(crate) fn what_if(
    name: &str,
    about: &[String],
    groups: &[Vec<Row>],
    sentences: &[String],
    notes: &[String],
    terminal: &str,
) -> String {
    let rows = groups.iter().flatten().map(|row| {
        vec![
            text(&row.group),
            text(&row.choice),
            figure(row.mean_ns as f64, Unit::Time),
            text(&row.mean_said),
            match row.p99_ns {
                Some(ns) => figure(ns as f64, Unit::Time),
                None => text(""),
            },
            text(&row.p99_said),
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let bar = |(row, colour): (&Row, _)| Bar {
        name: row.choice.clone(),
        colour,
        value: row.mean_ns as f64,
        half: None,
        text: written(row.mean_ns as f64, Unit::Time),
    };
    let colours = PALETTE.into_iter().cycle();
    let bars: Vec<Bar> = groups[0].iter().zip(colours).map(bar).collect();
    let head = [
        "I/Os",
        "Choice",
        "Mean Q2C",
        "Difference",
        "99 %",
        "Difference",
    ];
    let happened = html! {
        (list("", sentences))
        (picture(&of_bars("Q2C of all I/Os, mean", Unit::Time, &bars)))
        (table("Time from submission to completion", &head, rows))
    };
    let sections = [
        ("happened", "What other choices would have given", happened),
        ("trust", "How far to trust it", list("", about)),
        ("notes", "Notes", list("", notes)),
        as_text(terminal),
    ];
    page(
        name,
        &simulated(env!("CARGO_PKG_VERSION"), &about[..1]),
        &sections,
    )
}
