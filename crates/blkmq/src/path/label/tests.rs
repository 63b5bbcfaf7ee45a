//! Names against variants, numbers against indices.

use super::{Complete, Ctx, List, Run, SeriesInsert, SingleEnd, Submit};
use crate::names::{Label, stands_for};
use std::collections::BTreeSet;

#[test]
fn a_name_is_the_group_and_the_variant_in_kebab_case() {
    assert_eq!(crate::names::length("list", "WaitARun"), 15);
    assert_eq!(
        &crate::names::spell::<15>("list", "WaitARun"),
        b"list.wait-a-run"
    );
    assert_eq!(Submit::Enter.label().name(), "submit.enter");
    assert_eq!(List::TagInLine.label().name(), "list.tag-in-line");
    assert_eq!(Run::Busy.label().parts(), ("run", "busy"));
}

#[test]
fn groups_follow_one_another() {
    const LAST: Label = SingleEnd::Done.label();
    assert_eq!(Submit::Enter.label(), Label(0));
    assert_eq!(usize::from(LAST.0), super::OWN - 1);
    assert_eq!(
        SeriesInsert::Enter.label().0,
        LAST.0 + 1,
        "a scheduler's own"
    );
    assert!(SeriesInsert::Enter.label().is_of_scheduler());
    assert!(!LAST.is_of_scheduler());
    assert_eq!(Complete::End.label().0, Ctx::Withheld.label().0 + 1);
    assert_eq!(LAST.name(), "single-end.done");
}

#[test]
fn every_label_has_a_name_of_its_own() {
    let names: BTreeSet<&str> = Label::all().map(Label::name).collect();
    assert_eq!(names.len(), Label::COUNT);
    for label in Label::all() {
        assert_eq!(Label::by_name(label.name()), Some(label));
    }
    assert_eq!(Label::by_name("list.offer"), None, "it was once");
}

#[test]
fn a_group_has_one_name() {
    assert!(stands_for("SeriesInsert", "series-insert"));
    assert!(stands_for("List", "list"));
    for wrong in [
        "seriesinsert",
        "series-inser",
        "series-inserts",
        "series_insert",
        "",
    ] {
        assert!(!stands_for("SeriesInsert", wrong), "{wrong}");
    }
}
