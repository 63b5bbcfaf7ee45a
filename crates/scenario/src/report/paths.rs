//! Paths of mapped devices: their requests, and when they were out of use.

use core::fmt;

use blkmq::time::SimTime;
use serde::Serialize;

use super::{DeviceReport, as_map};
use sim::plan::{DiskPlan, MappedPlan, Plan};
use sim::recorder::{PathStats, Recorder};

/// Most paths in the table.
const SHOWN: usize = 16;

/// A path of a mapped device.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct PathReport {
    /// Name of the mapped device.
    pub device: String,
    /// Name of the path's device.
    pub path: String,
    /// Type of that device.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Hardware queues of all types.
    pub hw_queues: u16,
    /// Driver tags of each hardware queue, or of all together if they share one map.
    pub queue_depth: u32,
    /// Scheduler of its queue.
    pub scheduler: &'static str,
    /// Parameters, by their names in a scenario.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(&'static str, String)>,
    /// Priority group, from 1.
    pub group: u16,
    /// `active` or `failed` at the end of the run.
    pub state: &'static str,
    /// Requests that the path's device took in the measured time.
    pub requests: u64,
    /// Requests that ended with an error in the measured time: clones, or requests of bios of a
    /// bio-based device. Failed clones are tried again.
    pub errors: u64,
    /// Requests with the path's device, mean over the measured time.
    pub depth_mean: f64,
    /// Largest number of them.
    pub depth_max: u32,
    /// Times that the path failed, over the whole run, as in `dmsetup status`.
    pub fail_count: u64,
    /// Time in which the path was failed, over the whole run, ns.
    pub failed_ns: u64,
    /// Time of the last failure, ns from the start of the run. Null if there was none.
    pub last_failed_ns: Option<u64>,
    /// Time of the reinstatement after it, ns. Null if there was none.
    pub reinstated_ns: Option<u64>,
}

impl PathReport {
    /// Those of all mapped devices, in the order of their tables.
    pub(super) fn all(plan: &Plan, recorder: &Recorder) -> Vec<PathReport> {
        let first = plan.disks.len();
        let mut all = Vec::new();
        for (disk, mapped) in plan.mapped_disks() {
            let name = &plan.disks[disk.index()].device.name;
            let stats = plan.queues_below(disk);
            let stats = stats.into_iter().map(|queue| queue.index() - first);
            let stats = stats.map(|path| &recorder.paths[path]);
            let paths = mapped.below.iter().zip(groups(mapped)).zip(stats);
            all.extend(paths.map(|((lower, group), stats)| {
                PathReport::new(name, (lower, group), stats, recorder.until)
            }));
        }
        all
    }

    fn new(
        device: &str,
        (lower, group): (&DiskPlan, u16),
        stats: &PathStats,
        until: SimTime,
    ) -> PathReport {
        let own = DeviceReport::of(lower, &stats.depth);
        PathReport {
            device: device.to_owned(),
            path: own.name,
            kind: own.kind,
            hw_queues: own.hw_queues,
            queue_depth: own.queue_depth,
            scheduler: lower.queue.scheduler.kind().name(),
            parameters: own.parameters,
            group,
            state: match stats.is_active() {
                true => "active",
                false => "failed",
            },
            requests: stats.requests,
            errors: stats.errors,
            depth_mean: own.depth_mean,
            depth_max: own.depth_max,
            fail_count: stats.fail_count,
            failed_ns: stats.out_of_use(until).0,
            last_failed_ns: stats.failed.map(|at| at.0),
            reinstated_ns: stats.reinstated.map(|at| at.0),
        }
    }

    /// A table of them, and the failures of each.
    pub(super) fn write_all(all: &[PathReport], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if all.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\nPaths                     group  requests    errors  requests mean     most  failed"
        )?;
        for path in all.iter().take(SHOWN) {
            writeln!(f, "{path}")?;
        }
        match all.len().checked_sub(SHOWN) {
            Some(more @ 1..) => writeln!(f, "  and {more} more, see --json"),
            _ => Ok(()),
        }
    }
}

/// The group of each path, the first 1.
fn groups(mapped: &MappedPlan) -> impl Iterator<Item = u16> {
    let groups = (1..).zip(&mapped.table.groups);
    groups.flat_map(|(number, group)| group.paths.iter().map(move |_| number))
}

impl fmt::Display for PathReport {
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{} {}", self.device, self.path);
        write!(
            f,
            "  {name:<22} {:>6} {:>9} {:>9} {:>14.1} {:>8}  ",
            self.group, self.requests, self.errors, self.depth_mean, self.depth_max
        )?;
        let Some(last) = self.last_failed_ns else {
            return write!(f, "never");
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        match self.fail_count {
            1 => write!(f, "from {:.6} s ", seconds(last))?,
            count => write!(
                f,
                "{count} times, {:.6} s in all, last from {:.6} s ",
                seconds(self.failed_ns),
                seconds(last)
            )?,
        }
        match self.reinstated_ns {
            Some(back) => write!(f, "to {:.6} s", seconds(back)),
            None => write!(f, "on"),
        }
    }
}
