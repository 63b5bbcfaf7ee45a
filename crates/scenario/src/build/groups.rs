//! Control groups of a scenario: those with a `[group]` table, those that jobs name, and their
//! parents.
//!
//! Weights are attributes of a scheduler, under the name in its info. A weight that no scheduler of
//! the run reads gives a note, not an error: the same scenario is run under others, too.

use std::collections::{BTreeMap, BTreeSet};

use blkmq::elevator::{SchedulerKind, SubmitterGroup, Submitters};
use trace::fio::FioJob;

use super::unread;
use crate::{Result, Scenario};
use sim::plan::{DiskPlan, ThreadPlan};

/// Weights that a group may have.
const WEIGHTS: std::ops::RangeInclusive<u64> = 1..=1000;
/// Weight of a group without a written one.
const WEIGHT: u16 = 100;

/// Each thread is in the group of its job.
pub(super) fn put_in(groups: &[SubmitterGroup], jobs: &[FioJob], threads: &mut [ThreadPlan]) {
    for thread in threads {
        let path = jobs[usize::from(thread.job)].cgroup.as_str();
        let group = groups.iter().position(|group| group.path == path);
        thread.group = group.expect("each job's group is among them") as u16;
    }
}

/// The root, and each group after its parent. Weights that no scheduler reads are added to
/// `ignored`.
pub(super) fn groups(
    scenario: &Scenario,
    jobs: &[FioJob],
    disks: &[DiskPlan],
    ignored: &mut Vec<String>,
) -> Result<Vec<SubmitterGroup>> {
    let kinds = unread::kinds(disks);
    let mut weights = BTreeMap::new();
    for (path, attributes) in &scenario.group {
        let weight = weight(scenario, path, attributes, &kinds, ignored)?;
        let error = |what| scenario.error(&format!("group.{path}"), what);
        let bare = trace::cgroup::bare(path).map_err(error)?.to_owned();
        if bare.is_empty() {
            return Err(error(
                "the root has no attributes: a group below it is named a/b".into(),
            ));
        }
        if weights.insert(bare, weight).is_some() {
            return Err(error(
                "the group has a table already, under another spelling".into(),
            ));
        }
    }
    if let Some(path) = weights.keys().find(|path| !is_used(path, jobs)) {
        let what = "no job is in this group or below it: name it as `cgroup` of a job";
        return Err(scenario.error(&format!("group.{path}"), what));
    }
    let named = jobs.iter().map(|job| job.cgroup.as_str());
    let mut paths = BTreeSet::new();
    for path in weights.keys().map(String::as_str).chain(named) {
        let ends = path.match_indices('/').map(|(end, _)| end);
        paths.extend(ends.chain([path.len()]).map(|end| path[..end].to_owned()));
    }
    let mut groups = Submitters::default().groups;
    // A path sorts after that of its parent.
    for path in paths.into_iter().filter(|path| !path.is_empty()) {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let parent = groups.iter().position(|group| group.path == above);
        groups.push(SubmitterGroup {
            weight: weights.get(&path).copied().unwrap_or(WEIGHT),
            parent: parent.expect("those above come first") as u16,
            path,
        });
    }
    Ok(groups)
}

/// A job is in the group of this path, or in one below it.
fn is_used(path: &str, jobs: &[FioJob]) -> bool {
    jobs.iter().any(|job| {
        let below = job.cgroup.strip_prefix(path);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The weight that one of these schedulers reads, or the default.
fn weight(
    scenario: &Scenario,
    path: &str,
    attributes: &BTreeMap<String, u64>,
    kinds: &[SchedulerKind],
    ignored: &mut Vec<String>,
) -> Result<u16> {
    let read_by = |kind: &SchedulerKind| kind.info().and_then(|info| info.group_weight);
    let known: Vec<&str> = SchedulerKind::ALL.iter().filter_map(read_by).collect();
    let mut weight = WEIGHT;
    for (name, &value) in attributes {
        let field = format!("group.{path}.{name}");
        if !known.contains(&name.as_str()) {
            let what = format!("no attribute of a group; expected {}", known.join(", "));
            return Err(scenario.error(&field, what));
        }
        if !WEIGHTS.contains(&value) {
            let what = format!("{value} is no weight; expected 1 to 1000");
            return Err(scenario.error(&field, what));
        }
        if kinds.iter().any(|kind| read_by(kind) == Some(name)) {
            weight = value as u16;
        } else {
            ignored.push(unread::note(scenario, &field, kinds));
        }
    }
    Ok(weight)
}
