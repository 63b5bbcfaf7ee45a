//! io-affinity: the path of the CPU that maps the request.
//!
//! Kernel: drivers/md/dm-ps-io-affinity.c (6.1.192).

use crate::dm::table::GroupTable;
use crate::request::CpuId;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IoAffinity {
    // Settings.
    /// By CPU: its path, if a mask has it. The first mask with the CPU counts.
    of_cpu: Vec<Option<u16>>,
    nodes: Vec<u16>,

    // State.
    /// By path.
    failed: Vec<bool>,
    /// Requests from CPUs without path (map_misses).
    misses: u32,
}

impl IoAffinity {
    /// With all paths of the group.
    pub fn new(table: &GroupTable, nodes: &[u16]) -> IoAffinity {
        let path_of = |cpu: usize| {
            let has = |mask: &Vec<usize>| mask.contains(&cpu);
            let path = table.paths.iter().position(|path| has(&path.cpumask));
            path.map(|path| path as u16)
        };
        IoAffinity {
            of_cpu: (0..nodes.len()).map(path_of).collect(),
            nodes: nodes.to_vec(),
            failed: vec![false; table.paths.len()],
            misses: 0,
        }
    }

    /// The CPU's own path; else the first of a CPU of its node; else of any CPU.
    pub fn select(&mut self, cpu: CpuId) -> Option<usize> {
        let own = self.of_cpu[usize::from(cpu.0)];
        if own.is_none() {
            self.misses += 1;
        }
        let node = self.nodes[usize::from(cpu.0)];
        let of_node = self.nodes.iter().zip(&self.of_cpu);
        let of_node = of_node.filter(|&(&of, _)| of == node);
        let of_node = of_node.filter_map(|(_, &path)| path);
        let all = self.of_cpu.iter().filter_map(|&path| path);
        let mut tried = own.into_iter().chain(of_node).chain(all).map(usize::from);
        tried.find(|&path| !self.failed[path])
    }

    pub(super) fn set_failed(&mut self, path: usize, failed: bool) {
        self.failed[path] = failed;
    }

    pub(super) fn misses(&self) -> u32 {
        self.misses
    }

    pub(super) fn check(&self, active: impl Fn(usize) -> bool) {
        for (path, &failed) in self.failed.iter().enumerate() {
            assert_eq!(active(path), !failed, "path {path}");
        }
    }
}
