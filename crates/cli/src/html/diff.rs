//! The page of a difference: a table of all figures of both reports.

use maud::html;

use super::{Cell, as_text, page, table, text};

/// Two reports by name; settings and figures with the value of each; the figures' rows have six
/// columns: what it is, a mark, A, B, the difference and its standard deviations.
pub(crate) fn diff(
    sides: &[String; 2],
    settings: &[(String, [String; 2])],
    figures: &[[String; 6]],
    terminal: &str,
) -> String {
    let sides = ["A", "B"].into_iter().zip(sides);
    let sides = sides.map(|(side, of)| vec![text(side), text(of)]);
    let settings = settings.iter();
    let settings = settings.map(|(name, [a, b])| vec![text(name), text(a), text(b)]);
    let figures = figures.iter().map(|[name, mark, figures @ ..]| {
        let figures = figures.iter().map(|figure| Cell::Shown(figure.clone()));
        let names = [text(name), text(mark)].into_iter();
        names.chain(figures).collect()
    });
    let head = ["", "", "A", "B", "difference", "standard deviations"];
    let body = html! {
        (table("Reports", &["", "is"], sides))
        (table("Settings that differ", &["", "A", "B"], settings))
        (table("Figures; differs: by more than the limits", &head, figures))
    };
    let sections = [("happened", "What differs", body), as_text(terminal)];
    let about = "two reports, compared by blksim diff";
    page("Difference of A and B", about, &sections)
}
