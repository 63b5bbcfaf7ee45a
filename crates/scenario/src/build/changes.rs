//! Writes to queue/scheduler and to files of queue/iosched/ during a run.

use blkmq::elevator::SchedulerSettings;
use blkmq::rules::{AsyncDepth, Series};

use super::{Driver, Result, Scenario, iosched, microseconds, scheduler_named, single};
use crate::change::Change;
use sim::plan::{ChangePlan, ChangeTo, DiskId, DiskPlan};

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
    // In order of time: an attribute is one of the scheduler that the queue has then.
    let mut written: Vec<(usize, &Change)> = scenario.change.iter().enumerate().collect();
    written.sort_by_key(|(_, change)| change.at_us);
    let mut now: Vec<_> = disks
        .iter()
        .map(|disk| disk.queue.scheduler.clone())
        .collect();
    for (index, change) in written {
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
            let to = match to(change, disk, &drivers[number], &mut now[number], hz) {
                Ok(to) => to,
                Err((key, what)) => return error(key, what),
            };
            let disk = DiskId(number as u16);
            all.push(ChangePlan { at, disk, to });
        }
        if let Some(name) = change.device.as_ref().filter(|_| !found) {
            let names: Vec<&str> = disks.iter().map(|d| d.device.name.as_str()).collect();
            let what = format!("no device `{name}`; there are {}", names.join(", "));
            return error("device", what);
        }
    }
    Ok(all)
}

/// What is written to a queue whose scheduler is `now`, or the key that is wrong.
fn to(
    change: &Change,
    disk: &mut DiskPlan,
    driver: &Driver,
    now: &mut SchedulerSettings,
    hz: u32,
) -> std::result::Result<ChangeTo, (&'static str, String)> {
    let single = disk.queue.rules.single_queue.is_some();
    let name = match (&change.scheduler, &change.attribute, change.value) {
        (Some(name), None, None) => name,
        (None, Some(name), Some(value)) => {
            if single || disk.queue.rules.series != Series::STOCK {
                let what = "attributes change during a run with blk-mq and no series";
                return Err(("attribute", what.to_owned()));
            }
            if disk.queue.rules.async_depth == AsyncDepth::OfQueue && name == "async_depth" {
                let what = "async_depth of v7.2 does not change during a run";
                return Err(("attribute", what.to_owned()));
            }
            let name = iosched::store(now, name, value).map_err(|what| ("attribute", what))?;
            return Ok(ChangeTo::Attribute(name, value));
        }
        _ => {
            let what = "either `scheduler`, or `attribute` and `value`";
            return Err(("at_us", what.to_owned()));
        }
    };
    let kind = scheduler_named(name, driver).map_err(|what| ("scheduler", what))?;
    if !kind.serves(single) {
        return Err(("scheduler", single::wrong_path(kind, single)));
    }
    let further = &mut disk.queue.further;
    if further.len() == CHANGES_MAX {
        let what = format!("more than {CHANGES_MAX} changes");
        return Err(("scheduler", what));
    }
    let nr_requests = blkmq::queue::nr_requests_for(kind, disk.device.queue_depth);
    let rotational = disk.device.rotational;
    *now = kind
        .defaults(hz, nr_requests)
        .of_kernel(&disk.queue.rules, rotational);
    further.push(now.clone());
    Ok(ChangeTo::Scheduler(further.len() as u8 - 1))
}
