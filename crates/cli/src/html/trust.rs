//! How far to trust the figures: the machine profile and its residuals, what was published of the
//! same job, and what is not modelled in these runs.

use maud::{Markup, html};
use scenario::profile;
use scenario::report::Report;

use super::{Cell, figure, list, table, text};
use crate::amount::Unit;
use crate::plot::input::Run;
use crate::plot::published::Published;

/// What `blksim reproduce` prints, as of this tree.
const RESULTS: &str = include_str!("../../../../docs/results/published.md");

/// For reports of one command, and the same as plots see them.
pub(super) fn of(reports: &[&Report], runs: &[Run]) -> Markup {
    let mut machines: Vec<(&str, &str)> = Vec::new();
    let (mut left_out, mut ignored, mut adjusted) = (Vec::new(), Vec::new(), Vec::new());
    for report in reports {
        let machine = (
            report.blksim.machine.as_str(),
            report.blksim.machine_hash.as_str(),
        );
        add(&mut machines, machine);
        for (all, notes) in [
            (&mut left_out, &report.left_out_options),
            (&mut ignored, &report.ignored_options),
            (&mut adjusted, &report.adjusted_options),
        ] {
            for note in notes {
                add(all, note.clone());
            }
        }
    }
    html! {
        p {
            "These are figures of a model, not measurements. Trust directions and factors between \
             variants on one machine more than single figures; docs/explanation/accuracy.md has \
             the comparisons with kernels, docs/explanation/model.md the simplifications."
        }
        (published(runs))
        @for (name, hash) in machines { (residuals(name, hash)) }
        @if left_out.is_empty() { p { "No option of the jobs was left out." } }
        (list("Left out, as it is not modelled:", &left_out))
        (list("Accepted without effect:", &ignored))
        (list("Taken as the scheduler takes it:", &adjusted))
    }
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

/// Runs that simulate a published job, beside what was published.
fn published(runs: &[Run]) -> Markup {
    let known = Published::of(runs).unwrap_or_default();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for one in &known {
        let same = |run: &&Run| one.is_of(run) && run.threads.total_cmp(&one.threads).is_eq();
        for run in runs.iter().filter(same) {
            let figures = [
                ("IOPS", Unit::Number, one.iops, run.iops),
                (
                    "waiting for locks, of busy time",
                    Unit::Percent,
                    one.lock_share,
                    run.lock_share(),
                ),
            ];
            for (name, unit, published, simulated) in figures {
                if let Some(published) = published {
                    rows.push(vec![
                        text(&one.name),
                        text(name),
                        figure(published, unit),
                        figure(simulated, unit),
                        Cell::Shown(format!("{:.2}", simulated / published)),
                    ]);
                }
            }
        }
    }
    let head = ["measurement", "figure", "published", "simulated", "ratio"];
    html! {
        @if rows.is_empty() { p { "No published measurement is of this job." } }
        (table("Published measurements of the same job", &head, &rows))
    }
}

/// The published tables that a profile simulates, as `reproduce` prints them.
pub(super) fn residuals(machine: &str, hash: &str) -> Markup {
    let built_in = profile::built_in(machine).ok();
    let Some(profile) = built_in.filter(|profile| profile.hash == hash) else {
        return html! {
            p {
                "Machine " (machine) " is not built in: nothing is known about how close it is. "
                code { "blksim calibrate" } " fits a profile to measurements and prints residuals."
            }
        };
    };
    let ending = format!(", {machine}");
    let block = RESULTS.split("```").nth(1).unwrap_or_default();
    let tables = block.split("\n\n").map(str::trim_end);
    let tables: Vec<&str> = tables
        .filter(|table| {
            table
                .trim_start()
                .lines()
                .next()
                .is_some_and(|of| of.ends_with(&ending))
        })
        .map(str::trim_start)
        .collect();
    let lines = || tables.iter().flat_map(|table| table.lines());
    let within = lines().filter(|line| line.ends_with("  in")).count();
    let without = lines().filter(|line| line.ends_with("  out")).count();
    html! {
        p { "Machine " (machine) ": " (profile.description) "." }
        @if tables.is_empty() {
            p { "No published measurement is simulated with it." }
        } @else {
            details {
                summary {
                    (within) " of " (within + without)
                    " published figures that are simulated with it are within their tolerance"
                }
                p {
                    "Published, simulated, their ratio, tolerance; as "
                    code { "blksim reproduce" } " prints them."
                }
                pre tabindex="0" { (tables.join("\n\n")) }
            }
        }
    }
}
