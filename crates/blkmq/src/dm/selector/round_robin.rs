//! round-robin: one path after the other.
//!
//! In 4.6 it counts how often a path is chosen in a row, with a counter of which each CPU has a
//! share that it adds up only now and then (`lib/percpu_counter.c`); before and after it counts
//! nothing. Kernel: drivers/md/dm-ps-round-robin.c (6.1.192), dm-round-robin.c (4.5 to 4.20).

use super::Paths;
use crate::dm::table::GroupTable;
use crate::request::CpuId;
use crate::rules::{DeviceMapper, Repeat};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RoundRobin {
    // Settings.
    /// By path.
    repeat_counts: Vec<u32>,

    // State.
    pub(super) paths: Paths,
    /// Choices in a row, where the selector counts them.
    turns: Option<Turns>,
}

/// Requests left for the current path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Turns {
    /// The current path; each CPU has a pointer to it, and all change together.
    current: Option<usize>,
    /// percpu_counter: the value that is read.
    count: i64,
    /// Counts of each CPU since it added them up last.
    own: Vec<i32>,
}

impl RoundRobin {
    /// With all paths of the group, on a machine of so many CPUs.
    pub fn new(table: &GroupTable, rules: &DeviceMapper, cpus: usize) -> RoundRobin {
        let counts = rules.repeat == Repeat::ByRoundRobin;
        RoundRobin {
            repeat_counts: table.paths.iter().map(|path| path.repeat_count).collect(),
            paths: Paths::new(table.paths.len()),
            turns: counts.then(|| Turns::new(cpus)),
        }
    }

    /// The head of the list, which goes to its end; or the current path, as long as it has turns.
    pub fn select(&mut self, cpu: CpuId) -> Option<usize> {
        if let Some(turns) = &mut self.turns
            && let Some(current) = turns.current
        {
            turns.count_down(cpu);
            if turns.count > 0 {
                return Some(current);
            }
        }
        let path = self.paths.first()?;
        self.paths.rotate();
        if let Some(turns) = &mut self.turns {
            turns.begin(path, self.repeat_counts[path]);
        }
        Some(path)
    }

    /// The current path has no turn any more, if it is this one.
    pub(super) fn fail(&mut self, path: usize) {
        if let Some(turns) = &mut self.turns
            && turns.current == Some(path)
        {
            turns.current = None;
        }
        self.paths.fail(path);
    }

    pub(super) fn repeat_count(&self, path: usize) -> u32 {
        self.repeat_counts[path]
    }
}

impl Turns {
    fn new(cpus: usize) -> Turns {
        Turns {
            current: None,
            count: 0,
            own: vec![0; cpus],
        }
    }

    /// percpu_counter_batch.
    fn batch(&self) -> i32 {
        (self.own.len() as i32 * 2).max(32)
    }

    /// percpu_counter_dec().
    fn count_down(&mut self, cpu: CpuId) {
        let batch = self.batch();
        let own = &mut self.own[usize::from(cpu.0)];
        *own -= 1;
        if *own <= -batch {
            self.count += i64::from(core::mem::take(own));
        }
    }

    /// percpu_counter_set(), set_percpu_current_path().
    fn begin(&mut self, path: usize, repeat_count: u32) {
        self.own.fill(0);
        self.count = i64::from(repeat_count);
        self.current = Some(path);
    }
}
