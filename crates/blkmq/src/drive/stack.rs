//! Frames of one context: a path, and those that called it.

use crate::env::Cpu;
use crate::path::Frame;
use crate::request::QueueId;

/// Frames nest this deep at most: a task's submission, the plug, a run, a clone of it, an
/// inline completion of both, the end of a flush sequence and the insertion it causes.
pub const DEPTH: usize = 16;

#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Stack(Vec<Frame>);

impl Default for Stack {
    fn default() -> Stack {
        Stack(Vec::with_capacity(DEPTH))
    }
}

impl Clone for Stack {
    fn clone(&self) -> Stack {
        let mut stack = Stack::default();
        stack.0.extend_from_slice(&self.0);
        stack
    }

    /// Allocates nothing.
    fn clone_from(&mut self, source: &Stack) {
        self.0.clone_from(&source.0);
    }
}

impl Stack {
    pub fn of(frame: Frame) -> Stack {
        let mut stack = Stack::default();
        stack.push(frame);
        stack
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// A path begins. Panics if frames nest deeper than [`DEPTH`].
    #[inline]
    pub fn push(&mut self, frame: Frame) {
        assert!(
            self.0.len() < DEPTH,
            "frames nest deeper than any kernel path does"
        );
        self.0.push(frame);
    }

    /// The innermost path is at its end.
    #[inline]
    pub fn pop(&mut self) -> Option<Frame> {
        self.0.pop()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    pub fn top(&mut self) -> Option<&mut Frame> {
        self.0.last_mut()
    }

    /// The innermost frame, to read.
    #[inline]
    pub fn last(&self) -> Option<&Frame> {
        self.0.last()
    }

    /// All frames, the innermost last.
    pub fn frames(&self) -> &[Frame] {
        &self.0
    }

    /// Pushes the path that a label calls. Not inlined, so that the loop of labels stays small.
    #[inline(never)]
    pub(super) fn push_called(&mut self, cpu: &mut Cpu) {
        cpu.take_call().begin(|frame| self.push(frame));
    }

    /// Queue of the innermost path. Panics if no path runs.
    #[inline]
    pub fn asking(&self) -> QueueId {
        self.last().expect("a frame asks").queue()
    }
}
