//! States that are kept to go back to.
//!
//! A decision may have been made at another moment than the first that is tried. Then a state from
//! before is taken, and all events since once more. States are kept every so many events, in
//! proportion to their size, so that time stays linear in the events.

use super::Hypothesis;
use crate::setup::Setup;

/// States that are kept, at most.
const KEPT_MOST: usize = 64;

/// A state and the event that comes next.
#[derive(Debug)]
struct At {
    next: usize,
    state: Hypothesis,
}

#[derive(Debug)]
pub(super) struct Checkpoints {
    states: Vec<At>,
    /// Events between two of them.
    stride: usize,
}

impl Checkpoints {
    pub(super) fn new(setups: &[Setup]) -> Checkpoints {
        let slots: u32 = setups
            .iter()
            .map(|setup| setup.nr_requests * setup.hctxs.len() as u32)
            .sum();
        Checkpoints {
            states: Vec::new(),
            stride: (slots as usize / 32).max(8),
        }
    }

    /// Keeps a state now and then. The search does not go back beyond event `oldest`.
    pub(super) fn keep(&mut self, state: &Hypothesis, index: usize, oldest: usize) {
        let last = self.states.last();
        if last.is_some_and(|checkpoints| index < checkpoints.next + self.stride) {
            return;
        }
        if self.states.len() == KEPT_MOST {
            let needed = self
                .states
                .iter()
                .rposition(|checkpoints| checkpoints.next <= oldest);
            self.states.drain(..needed.unwrap_or(0));
        }
        if self.states.len() == KEPT_MOST {
            // For long ways back: the first, and every second.
            let mut number = 0;
            self.states.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
        let state = state.clone();
        self.states.push(At { next: index, state });
    }

    /// The latest state that is kept from before an event, and the event that comes next.
    pub(super) fn before(&self, index: usize) -> (Hypothesis, usize) {
        let checkpoints = self
            .states
            .iter()
            .rev()
            .find(|checkpoints| checkpoints.next <= index);
        let checkpoints = checkpoints
            .or(self.states.first())
            .expect("the first state is kept");
        (checkpoints.state.clone(), checkpoints.next)
    }

    /// Checkpoints after an event had another past.
    pub(super) fn forget_after(&mut self, index: usize) {
        self.states.retain(|checkpoints| checkpoints.next <= index);
    }
}
