//! `--html FILE`: a page of a run, of several runs, a comparison or a replay, for a browser.
//!
//! One file without scripts, links to other files or a clock: equal reports give equal bytes. All
//! texts go through `maud`, which escapes them; only the style and the figures, whose texts are
//! escaped by `plot/render.rs`, are put in as they are. Read next: `html/run.rs`.

mod analyze;
mod compare;
mod diff;
mod next;
mod replay;
mod run;
mod trust;
mod what_if;

pub(crate) use analyze::{analyze, pictures};
pub(crate) use compare::{Variants, compare};
pub(crate) use diff::diff;
pub(crate) use replay::replay;
pub(crate) use run::{many, run};
pub(crate) use what_if::{Row, what_if};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use scenario::report::{Report, RunReport};

use crate::amount::{Unit, written};
use crate::plot::panel::{Axis, Curve, Panel, WIDTH, room_for};
use crate::plot::render::svg;
use crate::plot::scene::{Item, Scene};

const STYLE: &str = include_str!("html/style.css");

/// A part of a page: its name in links, its title, what it has.
type Section = (&'static str, &'static str, Markup);

/// The line below a page's name: machine, kernel and the like.
fn simulated(version: &str, about: &[String]) -> String {
    format!("simulated by blksim {version}: {}", about.join(", "))
}

/// The whole page. `about`: the line below its name.
fn page(name: &str, about: &str, sections: &[Section]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (name) ", " (about) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a .skip href="#main" { "Skip to the report" }
                header {
                    h1 { (name) }
                    p .about { (about) }
                    nav aria-label="Sections" {
                        ul {
                            @for (id, title, _) in sections {
                                li { a href={ "#" (id) } { (title) } }
                            }
                        }
                    }
                }
                (LINE)
                main #main {
                    @for (id, title, body) in sections {
                        section aria-labelledby=(id) {
                            h2 id=(id) { (title) }
                            (body)
                        }
                        (LINE)
                    }
                }
            }
        }
        (LINE)
    };
    page.into_string()
}

/// Tables end with it, so that pages can be compared line by line.
const LINE: PreEscaped<&str> = PreEscaped("\n");

/// What a page says about the setting of a run.
fn about(run: &RunReport, device: &str) -> Vec<String> {
    vec![
        run.scenario.clone(),
        format!("machine {} with {} CPUs", run.machine, run.cpus),
        format!("kernel {}", run.rules),
        format!("scheduler {}", run.scheduler),
        format!("device {device}"),
        format!("seed {}", run.seed),
    ]
}

/// A cell of a table.
#[derive(Clone, Debug)]
enum Cell {
    Text(String),
    /// The exact value, and as it is shown.
    Figure(f64, String),
    /// A figure as it is shown.
    Shown(String),
    /// Percent, with a bar.
    Part(f64),
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Text(text.into())
}

fn figure(value: f64, unit: Unit) -> Cell {
    Cell::Figure(value, written(value, unit))
}

/// A whole number, with all its digits.
fn count(value: u64) -> Cell {
    Cell::Figure(value as f64, value.to_string())
}

/// A table in which the first cell of a row is its name, a text. Nothing if there is no row.
fn table(caption: &str, head: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> Markup {
    let rows: Vec<Vec<Cell>> = rows.into_iter().collect();
    let is_text = |column: usize| matches!(rows[0].get(column), Some(Cell::Text(_)) | None);
    html! {
        @if !rows.is_empty() {
            div .scroll tabindex="0" role="region" aria-label=(caption) {
                table {
                    caption { span { (caption) } }
                    thead {
                        tr {
                            @for (column, name) in head.iter().enumerate() {
                                th .num[!is_text(column)] scope="col" { (name) }
                            }
                        }
                    }
                    tbody {
                        @for row in &rows {
                            tr {
                                @for (column, cell) in row.iter().enumerate() {
                                    (drawn(cell, column == 0))
                                }
                            }
                            (LINE)
                        }
                    }
                }
            }
        }
    }
}

fn drawn(cell: &Cell, is_name: bool) -> Markup {
    html! {
        @match cell {
            Cell::Text(text) if is_name => { th scope="row" { (text) } },
            Cell::Text(text) => { td { (text) } },
            Cell::Shown(text) => { td .num { (text) } },
            Cell::Figure(value, text) => { td .num { data value=(value) { (text) } } },
            Cell::Part(percent) => {
                td .num .part style=(format!("--part:{:.1}%", percent.clamp(0.0, 100.0))) {
                    data value=(percent) { (format!("{percent:.2} %")) }
                }
            },
        }
    }
}

/// A figure, called by its first text.
fn picture(scene: &Scene) -> Markup {
    let title = scene.items.iter().find_map(|item| match item {
        Item::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    html! {
        figure {
            div .scroll tabindex="0" role="region" aria-label=(title.unwrap_or("figure")) {
                (PreEscaped(svg(scene)))
            }
        }
        (LINE)
    }
}

/// Paragraphs; nothing if there are none.
fn list(title: &str, items: &[String]) -> Markup {
    html! {
        @if !items.is_empty() {
            @if !title.is_empty() { p { (title) } }
            ul { @for item in items { li { (item) } } }
        }
    }
}

/// A text, folded.
fn folded(title: &str, text: &str) -> Markup {
    html! {
        details { summary { (title) } pre tabindex="0" { (text) } }
        (LINE)
    }
}

/// The last section: what the terminal shows.
fn as_text(text: &str) -> Section {
    let body = folded("The report as the terminal shows it", text);
    ("text", "Everything as text", body)
}

/// Curves between two axes, so high.
fn curves(curves: &[Curve], x: &Axis, y: &Axis, height: i32) -> Markup {
    let mut scene = Scene::new(WIDTH, height as u32);
    let room = room_for(curves.iter().map(|of| of.name.as_str()));
    let panel = Panel::new(&mut scene, (0, height), room, x, y);
    panel.curves(&mut scene, curves);
    picture(&scene)
}

/// `read of job x`, and nothing of the job where there is only one.
fn called(report: &Report, jobname: &str, direction: &str) -> String {
    match report.jobs.len() {
        1 => direction.to_owned(),
        _ => format!("{jobname}: {direction}"),
    }
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
