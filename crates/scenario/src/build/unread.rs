//! Settings of a scheduler that no queue of the run has: noted, not refused, as the same scenario
//! is run under others, too.

use blkmq::elevator::{SchedulerInfo, SchedulerKind};

use super::disks::Disk;
use crate::Scenario;
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

/// The same for `stable_merge`, in the common queue table or a device's own.
pub(super) fn stable_merge(
    scenario: &Scenario,
    written: &[Disk<'_>],
    disks: &[DiskPlan],
    ignored: &mut Vec<String>,
) {
    let mut check = |field: &str, disks: &[DiskPlan]| {
        unless(
            |info| info.has_stable_merge,
            scenario,
            field,
            disks,
            ignored,
        );
    };
    if scenario.queue.stable_merge.is_some() {
        check("queue.stable_merge", disks);
    }
    for (written, disk) in written.iter().zip(disks) {
        if written.device.queue.stable_merge.is_some() {
            let field = format!("{}.queue.stable_merge", written.field);
            check(&field, std::slice::from_ref(disk));
        }
    }
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
