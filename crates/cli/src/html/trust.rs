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
    let runs_of = reports.iter().map(|report| &report.blksim);
    let machines = distinct(runs_of.map(|of| (of.machine.as_str(), of.machine_hash.as_str())));
    let notes = |of: fn(&Report) -> &Vec<String>| {
        distinct(reports.iter().flat_map(|report| of(report).iter().cloned()))
    };
    let left_out = notes(|report| &report.left_out_options);
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
        (list("Accepted without effect:", &notes(|report| &report.ignored_options)))
        (list("Taken as the kernel takes it:", &notes(|report| &report.adjusted_options)))
    }
}

/// Each once, in the order of the first ones.
fn distinct<T: PartialEq>(of: impl Iterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for one in of {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// Runs that simulate a published job, beside what was published.
fn published(runs: &[Run]) -> Markup {
    let known = Published::of(runs).unwrap_or_default();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for one in &known {
        let same = |run: &&Run| one.is_of(run) && run.threads.total_cmp(&one.threads).is_eq();
        for run in runs.iter().filter(same) {
            let mut add = |name, unit, published: Option<f64>, simulated| {
                let ratio = |published| Cell::Shown(format!("{:.2}", simulated / published));
                rows.extend(published.map(|of| {
                    let figures = [figure(of, unit), figure(simulated, unit), ratio(of)];
                    [text(&one.name), text(name)]
                        .into_iter()
                        .chain(figures)
                        .collect()
                }));
            };
            let waits = "waiting for locks, of busy time";
            add("IOPS", Unit::Number, one.iops, run.iops);
            add(waits, Unit::Percent, one.lock_share, run.lock_share());
        }
    }
    let head = ["measurement", "figure", "published", "simulated", "ratio"];
    html! {
        @if rows.is_empty() { p { "No published measurement is of this job." } }
        (table("Published measurements of the same job", &head, rows))
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
    let tables = block.split("\n\n").map(str::trim);
    let is_of = |of: &&str| {
        of.lines()
            .next()
            .is_some_and(|head| head.ends_with(&ending))
    };
    let tables = tables.filter(is_of).collect::<Vec<&str>>().join("\n\n");
    let count = |end: &str| tables.lines().filter(|line| line.ends_with(end)).count();
    let (within, without) = (count("  in"), count("  out"));
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
                pre tabindex="0" { (tables) }
            }
        }
    }
}
