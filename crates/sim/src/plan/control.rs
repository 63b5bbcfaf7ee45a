//! How threads end, wait for, pace and hold back each other: options of fio that few jobs have.

use blkmq::time::Duration;

use super::PerDirection;

pub use trace::fio::{ExitWhat, SteadyState};

/// The options of one thread. The default has none of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ControlPlan {
    /// fio's number of its group: a new one from each stonewall and new_group.
    pub group: u16,
    /// The threads that end with it (exitall, exit_what).
    pub ends: Option<ExitWhat>,
    /// It starts when all threads of this job have ended.
    pub waits_for: Option<u16>,
    /// Threads wait for its job.
    pub is_awaited: bool,
    pub flow: Option<FlowPlan>,
    pub floor: Option<FloorPlan>,
    /// An I/O that takes longer fails the thread; zero: no limit.
    pub max_latency: Option<PerDirection<Duration>>,
    pub latency: Option<LatencyPlan>,
    pub steady: Option<SteadyPlan>,
    /// The part of a pause in which it burns CPU time, at its start.
    pub thinktime_spin: Duration,
    /// A pause after so long since the last one, too; zero: none (thinktime_iotime).
    pub thinktime_iotime: Duration,
    /// A rate does not catch up with a pause.
    pub rate_ignores_thinktime: bool,
}

/// Its share of the I/Os of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowPlan {
    /// Number of the flow, from 0.
    pub number: u16,
    pub weight: u32,
    /// A thread that is held back sleeps for so long; zero: it spins.
    pub sleep: Duration,
}

/// The least that it must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloorPlan {
    /// Bytes a second; 0: none.
    pub bytes: PerDirection<u64>,
    /// I/Os a second; 0: none.
    pub ios: PerDirection<u32>,
    /// From one look to the next.
    pub cycle: Duration,
}

/// Its depth follows a latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyPlan {
    pub target: Duration,
    pub window: Duration,
    /// I/Os of 10^11 that must not be slower.
    pub share: u64,
    /// It searches until it ends.
    pub goes_on: bool,
}

/// It ends at a steady state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteadyPlan {
    pub state: SteadyState,
    pub seconds: u32,
    pub ramp: Duration,
    /// The threads of its group are watched together (group_reporting).
    pub grouped: bool,
}
