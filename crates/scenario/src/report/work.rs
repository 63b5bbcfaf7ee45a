//! CPU time by component.

use serde::Serialize;

use sim::cost::Component;
use sim::recorder::Recorder;

/// Time of one component of the kernel, or of user space, on all CPUs, without lock waits.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct WorkReport {
    /// Name of the component.
    pub component: &'static str,
    /// Time, ns.
    pub ns: u64,
    /// The same in clock cycles, for each measured I/O.
    pub cycles_per_io: f64,
}

impl WorkReport {
    pub(super) fn all(recorder: &Recorder, clock_mhz: u64) -> Vec<WorkReport> {
        let directions = recorder.jobs.iter().flat_map(|job| &job.directions);
        let ios: u64 = directions.map(|direction| direction.ios).sum();
        if ios == 0 {
            return Vec::new();
        }
        let times = Component::ALL
            .into_iter()
            .zip(recorder.spent.by_component());
        times
            .filter(|&(_, ps)| ps > 0)
            .map(|(component, ps)| WorkReport {
                component: component.name(),
                ns: ps / 1000,
                cycles_per_io: ps as f64 * clock_mhz as f64 / 1e6 / ios as f64,
            })
            .collect()
    }
}
