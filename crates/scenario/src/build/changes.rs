//! Writes to queue/scheduler during a run.

use super::{Driver, Result, Scenario, microseconds, scheduler_named, single};
use sim::plan::{ChangePlan, DiskId, DiskPlan};

/// Schedulers that one queue may be changed to at most.
const CHANGES_MAX: usize = 255;

/// All of them in order of time; each queue gets its own. `drivers`: of each disk.
pub(super) fn changes(
    scenario: &Scenario,
    drivers: &[Driver],
    disks: &mut [DiskPlan],
    hz: u32,
) -> Result<Vec<ChangePlan>> {
    let mut all = Vec::new();
    for (index, change) in scenario.change.iter().enumerate() {
        let error = |key: &str, what: String| {
            let field = format!("change.{index}.{key}");
            Err(scenario.error(&field, what))
        };
        let wanted = |disk: &DiskPlan| {
            let name = change.device.as_ref();
            name.is_none_or(|name| *name == disk.device.name)
        };
        let at = microseconds(scenario, &format!("change.{index}.at_us"), change.at_us)?;
        let mut found = false;
        for (number, disk) in disks.iter_mut().enumerate() {
            if !wanted(disk) {
                continue;
            }
            found = true;
            let kind = match scheduler_named(&change.scheduler, &drivers[number]) {
                Ok(kind) => kind,
                Err(what) => return error("scheduler", what),
            };
            let single = disk.queue.rules.single_queue.is_some();
            if !kind.serves(single) {
                return error("scheduler", single::wrong_path(kind, single));
            }
            let further = &mut disk.queue.further;
            if further.len() == CHANGES_MAX {
                return error("scheduler", format!("more than {CHANGES_MAX} changes"));
            }
            let nr_requests = blkmq::queue::nr_requests_for(kind, disk.device.queue_depth);
            all.push(ChangePlan {
                at,
                disk: DiskId(number as u16),
                to: further.len() as u8,
                scheduler: kind,
            });
            further.push(kind.defaults(hz, nr_requests));
        }
        if let Some(name) = change.device.as_ref().filter(|_| !found) {
            let names: Vec<&str> = disks.iter().map(|d| d.device.name.as_str()).collect();
            let what = format!("no device `{name}`; there are {}", names.join(", "));
            return error("device", what);
        }
    }
    all.sort_by_key(|change| change.at);
    Ok(all)
}
