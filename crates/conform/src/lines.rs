//! Both logs of one device: the kernel's lines with their times, and those of the model that none
//! of them has been compared with yet.
//!
//! Not here: how they are compared (`hypothesis/log.rs`).

mod names;

use std::collections::{BTreeMap, VecDeque};

use blkmq::time::SimTime;

use super::verdict::Divergence;
pub(super) use names::{Names, is_pointer, parts, words};

/// The kernel's log of a device.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) lines: Vec<String>,
    pub(super) events: Vec<usize>,
    pub(super) times: Vec<SimTime>,
    /// For each: the next line is of the same section.
    pub(super) goes_on: Vec<bool>,
    /// Lines written without the scheduler's lock, by task: they have an order only among the
    /// events of their task.
    pub(super) unlocked: BTreeMap<usize, Vec<Unlocked>>,
}

/// A line that its task wrote without the lock, while it allocated.
#[derive(Debug)]
pub(super) struct Unlocked {
    /// The last Q of its task before it.
    pub(super) asked: usize,
    pub(super) event: usize,
    pub(super) line: String,
}

/// How far a comparison has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Sides {
    /// Kernel's lines that were compared.
    pub(super) next: usize,
    /// Lines of the model that wait.
    pub(super) model: VecDeque<String>,
    pub(super) names: Names,
    /// By task, of its lines without the lock: how many were compared.
    pub(super) unlocked: BTreeMap<usize, usize>,
    pub(super) predicted: u64,
    /// The model's lines that the kernel does not have.
    pub(super) alone: u64,
    pub(super) first: Option<Divergence>,
    /// They differ, and where both go on alike is not known yet.
    pub(super) lost: bool,
}

impl Sides {
    /// The kernel's line that the model's next one is to be compared with.
    pub(super) fn coming(&self) -> usize {
        self.next + self.model.len()
    }
}
