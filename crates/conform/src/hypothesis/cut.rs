//! Splits of bios, by the X of the capture.
//!
//! They depend on the bio's segments, which are not recorded. So while a task submits a bio, the
//! limit of its queue is the length of the next part. Merges of others keep the limits that
//! `setup.rs` knows.

use blkmq::env::{TraceAction, TracePoint};
use blkmq::request::{Op, QueueId};
use blkmq::rules::QueueLimits;

use super::{Hypotheses, Hypothesis};
use crate::event::{Event, Kind};
use crate::world::Goal;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) queue: QueueId,
    /// The limits for its next part.
    pub(crate) limits: QueueLimits,
    op: Op,
    /// Sectors that have not been cut off.
    left: u32,
}

impl Hypotheses<'_> {
    /// X: the front part goes on.
    pub(super) fn split(&self, state: &mut Hypothesis, index: usize) {
        let task = self.at(state, index);
        self.show_split(state, index);
        self.next_cut(state, task, index);
    }

    fn show_split(&self, state: &mut Hypothesis, index: usize) {
        let task = self.stream.task[index];
        // The trace has the length of the part in one format and of the whole in the other.
        let queue = self.stream.queue[index];
        for _ in 0..2 {
            let shown = &mut state.world.actors[task].shown;
            let is_cut = |p: &TracePoint| p.action == TraceAction::Split && p.queue == queue;
            if let Some(at) = shown.iter().position(is_cut) {
                shown.remove(at);
                return;
            }
            let rest = state.world.actors[task].stack.is_empty();
            if rest || !state.world.actors[task].shown.is_empty() {
                return;
            }
            state.world.go(task, Goal::UntilTracePoint);
        }
    }

    /// After a Q.
    pub(super) fn begin_cuts(&self, state: &mut Hypothesis, index: usize) {
        let (event, queue) = (&self.stream.events[index], self.stream.queue[index]);
        let cut = Cut {
            queue,
            limits: self.setups[queue.index()].limits,
            op: event.op,
            left: event.sectors.0,
        };
        let next = self.stream.next[index].map(|next| &self.stream.events[next]);
        let next = next.filter(|next| matches!(next.kind, Kind::Split { .. }));
        let task = self.stream.task[index];
        state.world.actors[task].cut = Some(self.cut(cut, next));
    }

    /// After an X: the remainder may be split, too.
    pub(super) fn next_cut(&self, state: &mut Hypothesis, task: usize, index: usize) {
        let Some(cut) = state.world.actors[task].cut else {
            return;
        };
        let left = cut
            .left
            .saturating_sub(part(&self.stream.events[index]).unwrap_or(0));
        let after = core::iter::successors(self.stream.next[index], |&at| self.stream.next[at]);
        let cuts = |event: &&Event| matches!(event.kind, Kind::Split { .. } | Kind::Queue);
        let next = after.map(|at| &self.stream.events[at]).find(cuts);
        state.world.actors[task].cut = Some(self.cut(Cut { left, ..cut }, next));
    }

    /// The limits for the remainder, if `next` is the event that may split it.
    fn cut(&self, mut cut: Cut, next: Option<&Event>) -> Cut {
        cut.limits = self.setups[cut.queue.index()].limits;
        let most = match cut.op {
            Op::Discard => &mut cut.limits.max_discard_sectors,
            _ => &mut cut.limits.max_sectors,
        };
        match next.and_then(part) {
            Some(part) if part < cut.left => *most = part,
            _ if *most > 0 => *most = (*most).max(cut.left),
            _ => {}
        }
        cut
    }
}

/// Length of the part that an X cuts off.
fn part(event: &Event) -> Option<u32> {
    let Kind::Split { rest } = event.kind else {
        return None;
    };
    // The record has the low half of the number.
    Some((rest as u32).wrapping_sub(event.sector.0 as u32))
}
