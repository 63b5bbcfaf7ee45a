//! The page of a replay: captured and simulated latencies side by side.

use maud::{Markup, html};
use scenario::replay::{Column, Comparison, Spread};
use sim::profile::MachineProfile;

use super::{Cell, as_text, count, figure, list, page, picture, simulated, table, text, trust};
use crate::amount::{Unit, written};
use crate::plot::figures::bars::{Bar, of_bars};
use crate::plot::scene::PALETTE;

/// `name`: the capture; `about`: device, kernel and the like; `terminal`: the text.
pub(crate) fn replay(
    name: &str,
    about: &[String],
    comparison: &Comparison,
    profile: &MachineProfile,
    terminal: &str,
) -> String {
    let columns = comparison.columns.iter();
    let names = columns.map(|column| column.name.as_str());
    let head: Vec<&str> = ["", ""].into_iter().chain(names).collect();
    let happened = html! {
        p {
            (comparison.ios) " I/Os of " (comparison.processes)
            (if comparison.processes == 1 { " process" } else { " processes" }) ", arriving at "
            (comparison.from) ", in " (comparison.pace) " loop. Q2D is the time from submission to \
            issue, D2C from issue to completion, Q2C both; late is the time from the captured \
            arrival to the simulated one."
        }
        (table("Captured and simulated times", &head, rows(comparison)))
        (bars(comparison, "mean", |spread| spread.mean_ns))
        (bars(comparison, "99 %", |spread| spread.p99_ns))
    };
    let mut notes = comparison.notes.clone();
    for column in &comparison.columns {
        let named = |note: &String| format!("{}: {note}", column.name);
        notes.extend(column.notes.iter().map(named));
    }
    let trust = html! {
        p { (comparison.limits) }
        (list("Notes:", &notes))
        (trust::residuals(&profile.name, &profile.hash))
    };
    let sections = [
        ("happened", "Captured and simulated", happened),
        ("next", "What to look at next", list("", &hints(comparison))),
        ("trust", "How far to trust it", trust),
        as_text(terminal),
    ];
    let about = simulated(env!("CARGO_PKG_VERSION"), about);
    page(name, &about, &sections)
}

type OfColumn = fn(&Column) -> Spread;
type OfSpread = fn(&Spread) -> u64;

fn rows(comparison: &Comparison) -> Vec<Vec<Cell>> {
    let spans: [(&str, OfColumn); 4] = [
        ("Q2D", |column| column.q2d),
        ("D2C", |column| column.d2c),
        ("Q2C", |column| column.q2c),
        ("late", |column| {
            column.agreement.map(|of| of.late).unwrap_or_default()
        }),
    ];
    let figures: [(&str, OfSpread); 4] = [
        ("mean", |spread| spread.mean_ns),
        ("50 %", |spread| spread.p50_ns),
        ("99 %", |spread| spread.p99_ns),
        ("longest", |spread| spread.max_ns),
    ];
    // In closed loop no arrival has a captured time.
    let shown = if comparison.pace == "closed" { 3 } else { 4 };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (span, of) in spans.into_iter().take(shown) {
        let named = |name| [text(span), text(name)].into_iter();
        let spreads: Vec<Spread> = comparison.columns.iter().map(of).collect();
        let counts = spreads.iter().map(|spread| count(spread.count));
        rows.push(named("count").chain(counts).collect());
        for (name, get) in figures {
            let cells = spreads.iter().map(|spread| match spread.count {
                0 => Cell::Shown("-".to_owned()),
                _ => figure(get(spread) as f64, Unit::Time),
            });
            rows.push(named(name).chain(cells).collect());
        }
    }
    rows
}

/// The time from the arrival to the completion.
fn whole(comparison: &Comparison) -> (&'static str, OfColumn) {
    match comparison.from {
        "D" => ("D2C", |column| column.d2c),
        _ => ("Q2C", |column| column.q2c),
    }
}

fn bars(comparison: &Comparison, title: &str, of: OfSpread) -> Markup {
    let (what, of_column) = whole(comparison);
    let bar = |(column, colour): (&Column, _)| {
        let value = of(&of_column(column)) as f64;
        Bar {
            name: column.name.clone(),
            colour,
            value,
            half: None,
            text: written(value, Unit::Time),
        }
    };
    let colours = PALETTE.into_iter().cycle();
    let all: Vec<Bar> = comparison.columns.iter().zip(colours).map(bar).collect();
    picture(&of_bars(&format!("{what}, {title}"), Unit::Time, &all))
}

/// What the agreement of each simulated column shows.
fn hints(comparison: &Comparison) -> Vec<String> {
    let (what, _) = whole(comparison);
    let mut hints = Vec::new();
    for column in &comparison.columns {
        let Some(agreement) = &column.agreement else {
            continue;
        };
        let (name, off) = (&column.name, agreement.mean_off_ppm);
        let sign = if off < 0 { '-' } else { '+' };
        let parts = off.unsigned_abs();
        let mut hint = format!(
            "{name}: mean {what} differs from the captured one by {sign}{}.{:02} %, that of a \
             single I/O by {} at the median; {} of {} I/Os were issued in captured order.",
            parts / 10_000,
            parts % 10_000 / 100,
            written(agreement.off.p50_ns as f64, Unit::Time),
            agreement.issued_in_order,
            agreement.issued
        );
        if comparison.pace == "open" && parts >= 100_000 {
            hint.push_str(
                " Arrivals do not wait for completions here: --closed-loop lets them, and \
                 --machine chooses the profile that is nearest to the captured machine.",
            );
        }
        hints.push(hint);
    }
    hints
}
