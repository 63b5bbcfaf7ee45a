//! Other selectors and the other rotation, judged by the same records: the choices that distinguish
//! them.
//!
//! Where records overlap a wrong selector finds some order, too, and most of its choices pass. Only
//! a choice that one of both makes in no order distinguishes them. Not here: finding an order
//! (`order.rs`).

use std::collections::BTreeSet;

use blkmq::dm::multipath::Multipath;
use blkmq::dm::selector::SelectorKind;
use blkmq::dm::table::Table;
use blkmq::rules::{DeviceMapper, Rotation};

use super::Atom;
use super::order::{self, Apart, Judged};
use super::tags::Tags;
use crate::verdict::{RivalVerdict, Rivals};

/// Selectors that need no argument that a table of another one lacks.
const OTHERS: [SelectorKind; 3] = [
    SelectorKind::RoundRobin,
    SelectorKind::QueueLength,
    SelectorKind::ServiceTime,
];

/// A selector that might have chosen instead.
struct Rival {
    name: &'static str,
    table: Table,
    rules: DeviceMapper,
}

/// Those of a table. None if no group has two paths.
fn of(table: &Table, rules: DeviceMapper) -> Vec<Rival> {
    let chooses = |kinds: &[SelectorKind]| {
        let mut groups = table.groups.iter();
        groups.any(|group| group.paths.len() > 1 && kinds.contains(&group.selector))
    };
    let with = |kind: SelectorKind| {
        let mut other = table.clone();
        for group in &mut other.groups {
            group.selector = kind;
        }
        other
    };
    let others = OTHERS.into_iter().filter_map(|kind| {
        let all = SelectorKind::ALL.into_iter().filter(|&own| own != kind);
        chooses(&all.collect::<Vec<_>>()).then(|| Rival {
            name: kind.name(),
            table: with(kind),
            rules,
        })
    });
    let mut rivals: Vec<Rival> = others.collect();
    if chooses(&[SelectorKind::QueueLength, SelectorKind::ServiceTime]) {
        let (name, rotation) = match rules.rotation {
            Rotation::FirstBefore => ("the rotation of 4.20", Rotation::ChosenBehind),
            Rotation::ChosenBehind => ("the rotation of 4.12", Rotation::FirstBefore),
        };
        rivals.push(Rival {
            name,
            table: table.clone(),
            rules: DeviceMapper { rotation, ..rules },
        });
    }
    rivals
}

/// The choices that distinguish a target from its rivals.
pub(super) fn judge(
    (table, rules): (&Table, DeviceMapper),
    cpus: usize,
    (tags, atoms): (&Tags, &[Atom]),
    judged: &Judged,
) -> Rivals {
    let numbers = |of: &Judged| of.wrong.iter().map(|wrong| wrong.index).collect();
    let own: BTreeSet<u64> = numbers(judged);
    let mut rivals = Rivals::default();
    let mut deciding = BTreeSet::new();
    for rival in of(table, rules) {
        let target = Multipath::new(&rival.table, rival.rules, &vec![0; cpus], 0);
        let explanation = order::explain(target, Apart::of(&rival.table), tags, atoms);
        let wrong: BTreeSet<u64> = numbers(&explanation.choices);
        let differs: BTreeSet<u64> = own.symmetric_difference(&wrong).copied().collect();
        rivals.each.push(RivalVerdict {
            name: rival.name,
            total: differs.len() as u64,
            predicted: differs.difference(&own).count() as u64,
        });
        deciding.extend(differs);
    }
    rivals.total = deciding.len() as u64;
    rivals.predicted = deciding.difference(&own).count() as u64;
    rivals
}
