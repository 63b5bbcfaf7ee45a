//! Settings of a scheduler that no queue of the run has: noted, not refused, as the same scenario
//! is run under others, too.

use blkmq::elevator::{SchedulerInfo, SchedulerKind};

use super::disks::Disk;
use crate::queue::Queue;
use crate::{Result, Scenario};
use sim::plan::DiskPlan;

/// Schedulers that these disks have during the run, each once.
pub(super) fn kinds(disks: &[DiskPlan]) -> Vec<SchedulerKind> {
    let mut kinds = Vec::new();
    for disk in disks {
        let queue = &disk.queue;
        for settings in std::iter::once(&queue.scheduler).chain(&queue.further) {
            if !kinds.contains(&settings.kind()) {
                kinds.push(settings.kind());
            }
        }
    }
    kinds
}

/// Notes that none of these schedulers reads a field.
pub(super) fn note(scenario: &Scenario, field: &str, kinds: &[SchedulerKind]) -> String {
    let place = scenario.source.place(field);
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("{place}: {field}: not read by {}", names.join(", "))
}

/// `rotational_when_chosen` is written, but the scheduler does not read it: a note for each such
/// table.
pub(super) fn rotational(
    scenario: &Scenario,
    written: &[Disk<'_>],
    disks: &[DiskPlan],
    ignored: &mut Vec<String>,
) {
    for (written, disk) in written.iter().zip(disks) {
        if written.device.rotational_when_chosen.is_some() {
            let field = format!("{}.rotational_when_chosen", written.field);
            let disks = std::slice::from_ref(disk);
            unless(
                |info| info.reads_rotational,
                scenario,
                &field,
                disks,
                ignored,
            );
        }
    }
}

/// The same for `stable_merge` and `repairs`, in the common queue table or a device's own; an error
/// if a drive has more access ranges than the scheduler survives.
pub(super) fn fair_queueing(
    scenario: &Scenario,
    written: &[Disk<'_>],
    disks: &[DiskPlan],
    ignored: &mut Vec<String>,
) -> Result<()> {
    let mut check = |table: &str, queue: &Queue, disks: &[DiskPlan]| {
        for (key, value) in [
            ("stable_merge", &queue.stable_merge),
            ("repairs", &queue.repairs),
        ] {
            if value.is_some() {
                let field = format!("{table}.{key}");
                unless(|info| info.fair_queueing, scenario, &field, disks, ignored);
            }
        }
    };
    check("queue", &scenario.queue, disks);
    for (written, disk) in written.iter().zip(disks) {
        let table = format!("{}.queue", written.field);
        check(&table, &written.device.queue, std::slice::from_ref(disk));
    }
    too_many_ranges(scenario, written, disks)
}

fn too_many_ranges(scenario: &Scenario, written: &[Disk<'_>], disks: &[DiskPlan]) -> Result<()> {
    for (written, disk) in written.iter().zip(disks) {
        let (rules, ranges) = (&disk.queue.rules, disk.device.access_ranges.len());
        let most = rules.fair_queueing.ranges_max();
        let has = kinds(std::slice::from_ref(disk)).into_iter();
        let dies = |kind: &SchedulerKind| kind.info().is_some_and(|info| info.fair_queueing);
        if let Some(kind) = has.filter(|_| ranges > most).find(dies) {
            let (kernel, name) = (rules.name, kind.name());
            let what = format!(
                "{name} of {kernel} crashes at the first dispatch with more than {most} access \
                 ranges, as it sets up no more lists (docs/findings/0005); use {most}, or \
                 queue.repairs = \"active-lists\""
            );
            return Err(scenario.error(&format!("{}.actuators", written.field), what));
        }
    }
    Ok(())
}

/// A note once, unless a scheduler of these disks `reads` the field.
fn unless(
    reads: impl Fn(&SchedulerInfo) -> bool,
    scenario: &Scenario,
    field: &str,
    disks: &[DiskPlan],
    ignored: &mut Vec<String>,
) {
    let kinds = kinds(disks);
    if kinds.iter().filter_map(|kind| kind.info()).any(reads) {
        return;
    }
    let note = note(scenario, field, &kinds);
    if !ignored.contains(&note) {
        ignored.push(note);
    }
}
