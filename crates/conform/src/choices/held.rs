//! Driver tags that other targets hold over time, between bounds.
//!
//! A tag is allocated and freed between two records each. The tags of the target itself are
//! followed in `tags.rs`.

use blkmq::dm::PathId;
use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::{Atom, What};

/// The records before and after an event.
pub(super) type Window = (SimTime, SimTime);

/// From when to when a clone has a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) path: PathId,
    pub(super) cpu: CpuId,
    pub(super) taken: Window,
    pub(super) given: Window,
}

/// Those of all clones of a target. The events of one request are in a row.
pub(super) fn spans(atoms: &[Atom]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut open: Option<Span> = None;
    for atom in atoms {
        let window = (atom.after, atom.before);
        match atom.what {
            What::Map { io, path } => {
                open = path.map(|path| Span {
                    path,
                    cpu: io.cpu,
                    taken: window,
                    given: window,
                });
            }
            What::Tag { .. } => {
                if let Some(span) = &mut open {
                    span.taken = window;
                }
            }
            What::Undo { no_tag: true, .. } => open = None,
            What::Undo { .. } | What::End { .. } => {
                if let Some(span) = open.take() {
                    spans.push(Span {
                        given: window,
                        ..span
                    });
                }
            }
            What::Start { .. } => {}
        }
    }
    spans
}

/// Tags in use over time. Each list is in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    taken_after: Vec<SimTime>,
    taken_before: Vec<SimTime>,
    given_after: Vec<SimTime>,
    given_before: Vec<SimTime>,
}

impl Held {
    pub(super) fn add(&mut self, span: &Span) {
        self.taken_after.push(span.taken.0);
        self.taken_before.push(span.taken.1);
        self.given_after.push(span.given.0);
        self.given_before.push(span.given.1);
    }

    pub(super) fn sort(&mut self) {
        self.taken_after.sort_unstable();
        self.taken_before.sort_unstable();
        self.given_after.sort_unstable();
        self.given_before.sort_unstable();
    }

    /// So many were in use all the while at least, and at some moment of it at most.
    pub(super) fn bounds(&self, (from, to): Window) -> (u32, u32) {
        let count = |list: &[SimTime], until: &dyn Fn(SimTime) -> bool| {
            list.partition_point(|&time| until(time)) as u32
        };
        let surely = count(&self.taken_before, &|time| time <= from);
        let ended = count(&self.given_after, &|time| time < to);
        let begun = count(&self.taken_after, &|time| time < to);
        let over = count(&self.given_before, &|time| time <= from);
        (surely.saturating_sub(ended), begun.saturating_sub(over))
    }
}
