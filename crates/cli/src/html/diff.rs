//! The page of a difference: a table of all figures of both reports.

use maud::html;

use super::{Cell, Section, folded, page, table, text};

/// Two reports by name; settings and figures with the value of each; the figures' rows have six
/// columns: what it is, a mark, A, B, the difference and its standard deviations.
pub(crate) fn diff(
    sides: &[String; 2],
    settings: &[(String, [String; 2])],
    figures: &[[String; 6]],
    terminal: &str,
) -> String {
    let settings = settings
        .iter()
        .map(|(name, [a, b])| vec![text(name), text(a), text(b)]);
    let settings: Vec<Vec<Cell>> = settings.collect();
    let figures = figures.iter().map(|[name, mark, figures @ ..]| {
        let figures = figures.iter().map(|figure| Cell::Shown(figure.clone()));
        [text(name), text(mark)]
            .into_iter()
            .chain(figures)
            .collect()
    });
    let figures: Vec<Vec<Cell>> = figures.collect();
    let head = ["", "", "A", "B", "difference", "standard deviations"];
    let body = html! {
        (table("Reports", &["", "is"], &[
            vec![text("A"), text(&sides[0])],
            vec![text("B"), text(&sides[1])],
        ]))
        (table("Settings that differ", &["", "A", "B"], &settings))
        (table("Figures; differs: by more than the limits", &head, &figures))
    };
    let sections = [
        Section::new("happened", "What differs", body),
        Section::new(
            "text",
            "Everything as text",
            folded("As the terminal shows it", terminal),
        ),
    ];
    page(
        "Difference of A and B",
        "two reports, compared by blksim diff",
        &sections,
    )
}
