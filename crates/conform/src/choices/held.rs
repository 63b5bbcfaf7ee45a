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

/// Tags in use over time: for each, the records around its allocation and its end. Each list is in
/// order.
#[derive(Clone, Debug, Default)]
pub(super) struct Held([Vec<SimTime>; 4]);

impl Held {
    pub(super) fn add(&mut self, span: &Span) {
        let times = [span.taken.0, span.taken.1, span.given.0, span.given.1];
        for (list, time) in self.0.iter_mut().zip(times) {
            list.push(time);
        }
    }

    pub(super) fn sort(&mut self) {
        self.0.iter_mut().for_each(|list| list.sort_unstable());
    }

    /// So many were in use all the while at least, and at some moment of it at most.
    pub(super) fn bounds(&self, (from, to): Window) -> (u32, u32) {
        let [taken_after, taken_before, given_after, given_before] = &self.0;
        let by = |list: &[SimTime], end| list.partition_point(|&time| time <= end) as u32;
        let before = |list: &[SimTime], end| list.partition_point(|&time| time < end) as u32;
        let (surely, ended) = (by(taken_before, from), before(given_after, to));
        let (begun, over) = (before(taken_after, to), by(given_before, from));
        (surely.saturating_sub(ended), begun.saturating_sub(over))
    }
}
