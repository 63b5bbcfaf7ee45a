//! Time: of CPUs by mode, of tasks, of locks by kind.

use blkmq::time::Duration;

use super::{SwitchCounts, WaitStats};

/// Time by mode, picoseconds.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Usage {
    pub user: u64,
    /// Kernel, for a task, without waiting for locks.
    pub system: u64,
    pub softirq: u64,
    pub irq: u64,
    /// Waiting for a lock, in any mode.
    pub spin: u64,
    pub idle: u64,
    pub switches: SwitchCounts,
    /// Work items that kblockd ran.
    pub items: WorkItems,
}

/// Work items that kblockd ran, by kind.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct WorkItems {
    /// Runs of mapped queues.
    pub runs_above: u64,
    pub runs: u64,
    /// Looks at the requeue list of a queue.
    pub requeues: u64,
    /// Timeouts, and calls to targets.
    pub others: u64,
}

impl WorkItems {
    pub fn add(&mut self, other: WorkItems) {
        self.runs_above += other.runs_above;
        self.runs += other.runs;
        self.requeues += other.requeues;
        self.others += other.others;
    }
}

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct TaskUsage {
    /// User space, picoseconds.
    pub user_ps: u64,
    /// Kernel on its behalf, waiting for locks included, picoseconds.
    pub system_ps: u64,
    /// Times it was switched in, after ksoftirqd as well.
    pub switches: u64,
}

impl TaskUsage {
    pub(crate) fn add(&mut self, other: TaskUsage) {
        self.user_ps += other.user_ps;
        self.system_ps += other.system_ps;
        self.switches += other.switches;
    }
}

/// Statistics of all locks of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockStats {
    pub name: &'static str,
    pub acquisitions: u64,
    /// Acquisitions that had to wait.
    pub contended: u64,
    /// Try-locks that found it taken.
    pub tries_failed: u64,
    pub wait: Duration,
    pub hold: Duration,
    pub wait_max: Duration,
    pub hold_max: Duration,
    /// Waits by caller, and distances of hand-offs, if requested.
    pub waits: Option<WaitStats>,
}
