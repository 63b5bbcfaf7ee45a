//! What is written for a scheduler that no queue of the run has: it is noted, not refused, as the
//! same scenario is run under others, too.

use blkmq::elevator::SchedulerKind;

use super::disks::Disk;
use crate::plan::DiskPlan;
use crate::scenario::Scenario;

/// Schedulers that these disks have at some time, each once.
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

/// Says that none of these schedulers reads a field.
pub(super) fn note(scenario: &Scenario, field: &str, kinds: &[SchedulerKind]) -> String {
    let place = scenario.source.place(field);
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("{place}: {field}: not read by {}", names.join(", "))
}

/// Whether a disk rotated when its scheduler was chosen is told, but that does not ask: a note for
/// each table that says so.
pub(super) fn rotational(
    scenario: &Scenario,
    written: &[Disk<'_>],
    disks: &[DiskPlan],
    ignored: &mut Vec<String>,
) {
    for (written, disk) in written.iter().zip(disks) {
        let kinds = kinds(std::slice::from_ref(disk));
        let mut facts = kinds.iter().filter_map(|kind| kind.facts());
        let told = written.device.rotational_when_chosen.is_some();
        if !told || facts.any(|facts| facts.reads_rotational) {
            continue;
        }
        let note = note(
            scenario,
            &format!("{}.rotational_when_chosen", written.field),
            &kinds,
        );
        if !ignored.contains(&note) {
            ignored.push(note);
        }
    }
}
