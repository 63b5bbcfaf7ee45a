//! Both logs of one device: the kernel's lines with their times, and those of the model that none
//! of them has been compared with yet.

use std::collections::VecDeque;

use blkmq::time::SimTime;

use super::names::Names;
use crate::verdict::Divergence;

/// The kernel's log of a device.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Texts.
    pub(crate) lines: Vec<String>,
    /// Of each: its event.
    pub(crate) events: Vec<usize>,
    /// Of each: its time.
    pub(crate) times: Vec<SimTime>,
    /// Of each: the next line is of the same section.
    pub(crate) goes_on: Vec<bool>,
}

impl Log {
    /// Where the lines are is not known yet.
    pub(super) fn new(lines: Vec<String>) -> Log {
        Log {
            lines,
            ..Log::default()
        }
    }
}

/// How far a comparison has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sides {
    /// Kernel's lines that were compared.
    pub(super) next: usize,
    /// Lines of the model that wait.
    pub(crate) model: VecDeque<String>,
    pub(super) names: Names,
    /// Lines that both have.
    pub(super) predicted: u64,
    /// The model's lines that the kernel does not have.
    pub(super) alone: u64,
    pub(super) first: Option<Divergence>,
    /// They differ, and where both go on alike is not known yet.
    pub(super) lost: bool,
}

impl Sides {
    /// The kernel's line that the model's next one is to be compared with.
    pub(crate) fn coming(&self) -> usize {
        self.next + self.model.len()
    }
}
