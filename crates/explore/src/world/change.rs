//! A change of the scheduler: the contexts that it waits for, and the paths that must be idle.

use super::{Fixed, World};
use crate::config::Mutant;
use blkmq::path::label::{Submit, Switch, Wait};
use blkmq::path::{Frame, Label};
use blkmq::request::QueueId;

/// Labels that read or change the usage counter of the queue, and nothing else that is shared.
const OF_USAGE: [Label; 5] = [
    Submit::Enter.label(),
    Wait::Enter.label(),
    Wait::Look.label(),
    Switch::Freeze.label(),
    Switch::Unfreeze.label(),
];

impl Fixed {
    /// The label has touched a word that a change of the scheduler depends on.
    pub(super) fn is_of_usage(&self, label: Label) -> bool {
        !self.config.changes.is_empty() && OF_USAGE.contains(&label)
    }

    pub(super) fn skips_grace(&self) -> bool {
        self.config.mutant == Some(Mutant::NoGrace)
    }
}

impl World {
    fn frames_of(&self, queue: QueueId) -> impl Iterator<Item = (usize, &Frame)> {
        let contexts = self.contexts.iter().enumerate();
        let frames = contexts
            .flat_map(|(index, context)| context.stack.frames().iter().map(move |f| (index, f)));
        frames.filter(move |(_, frame)| frame.queue() == queue)
    }

    /// Another context needs the scheduler to stay the same.
    pub(super) fn is_read(&self, but: usize, queue: QueueId) -> bool {
        let mut frames = self.frames_of(queue);
        frames.any(|(index, frame)| index != but && frame.reads_scheduler())
    }

    /// Another context is in a section that synchronize_rcu() waits for.
    pub(super) fn in_section(&self, but: usize, queue: QueueId) -> bool {
        let mut frames = self.frames_of(queue);
        frames.any(|(index, frame)| index != but && frame.holds_up_grace())
    }

    /// A hook or a timer's function is running: timers are shut down before an exchange.
    pub(super) fn has_hook(&self, queue: QueueId) -> bool {
        let mut frames = self.frames_of(queue);
        frames.any(|(_, frame)| matches!(frame, Frame::Hook(_)))
    }

    /// Replaces the scheduler.
    ///
    /// # Panics
    /// If another context uses it.
    pub(super) fn exchange(&mut self, index: usize, queue: QueueId, to: usize) {
        let read = self.is_read(index, queue);
        assert!(
            !read,
            "the scheduler is exchanged while another context uses it"
        );
        self.mq.exchange(queue, to, &mut || 0);
        self.outside.timers = 0;
    }
}
