//! Processes of a capture: the process of the script for each task, its direct writes, and its
//! groups.
//!
//! A task is known by its name. Several processes of one name were started one after the other: the
//! lowest pid is the first of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::io_txt::{Call, IoKind, Process};
use crate::meta::Cgroup;

/// Default io.bfq.weight of a group.
const WEIGHT: u16 = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Path below the root, without a slash in front; empty: the root.
    pub path: String,
    /// Place of the group that it is in; of the root itself 0.
    pub parent: u16,
    /// io.bfq.weight, 1 to 1000.
    pub weight: u16,
}

/// Number of the process of each pid, by the names of tasks.
pub fn tasks(processes: &[Process], names: &BTreeMap<u32, String>) -> BTreeMap<u32, usize> {
    let mut of_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, process) in processes.iter().enumerate() {
        of_name.entry(&process.name).or_default().push(number);
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut tasks = BTreeMap::new();
    for (&pid, name) in names {
        let Some(same) = of_name.get(name.as_str()) else {
            continue;
        };
        let before = seen.entry(name).or_default();
        tasks.insert(pid, same[(*before).min(same.len() - 1)]);
        *before += 1;
    }
    tasks
}

/// The root, and each group after its parent: those of `meta.txt`, and those that processes
/// entered, by path. Weights are those on this device, by major and minor number.
pub fn groups<'a>(
    written: &'a [Cgroup],
    entered: impl IntoIterator<Item = &'a str>,
    device: Option<(u32, u32)>,
) -> Vec<Group> {
    let mut groups = vec![Group {
        path: String::new(),
        parent: 0,
        weight: WEIGHT,
    }];
    let weight = |group: &Cgroup| {
        let own = device.and_then(|device| group.weight_on.get(&device));
        own.copied().unwrap_or(group.weight) as u16
    };
    let written: Vec<(&str, u16)> = written
        .iter()
        .map(|group| (group.path.trim_matches('/'), weight(group)))
        .collect();
    let named = entered
        .into_iter()
        .chain(written.iter().map(|(path, _)| *path));
    // The parents of a group exist even if no line names them.
    let levels = named.filter(|path| !path.is_empty()).flat_map(|path| {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        above.chain([path])
    });
    let mut paths: BTreeMap<&str, u16> = levels.map(|path| (path, WEIGHT)).collect();
    paths.extend(written);
    // A path sorts after that of its parent.
    for (path, weight) in paths {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let parent = groups.iter().position(|group| group.path == above);
        groups.push(Group {
            path: path.to_owned(),
            parent: parent.unwrap_or(0) as u16,
            weight,
        });
    }
    groups
}

/// Place of the group of this path; the root's if it is not among them.
pub fn place_of(path: &str, groups: &[Group]) -> u16 {
    let own = groups.iter().position(|group| group.path == path);
    own.unwrap_or(0) as u16
}

impl Process {
    /// Starts and lengths of its direct writes. Its other writes are writeback, which without the
    /// memory controller belongs to the root group (wbc_init_bio()).
    pub fn direct_writes(&self) -> BTreeSet<(u64, u32)> {
        let writes = self.expand().into_iter().filter_map(|call| match call {
            Call::Queue(io) if matches!(io.kind, IoKind::Write | IoKind::WriteDsync) => {
                Some((io.sector, io.sectors))
            }
            _ => None,
        });
        writes.collect()
    }
}

#[cfg(test)]
mod tests;
