//! Default maps of CPUs to queues. Kernel: block/blk-mq-cpumap.c (v6.1), lib/group_cpus.c (v6.12).

use std::collections::BTreeMap;

use crate::request::HctxId;
use crate::rules::CpuMap;

/// Siblings of each CPU, on which the default maps on one node depend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuTopology {
    /// The core of each CPU.
    pub core: Vec<u16>,
    /// The queue of each CPU where a recorded machine shows it; the maps are not computed then.
    pub given: Option<Vec<HctxId>>,
}

impl CpuTopology {
    /// `cpus` CPUs without siblings.
    pub fn flat(cpus: u16) -> CpuTopology {
        CpuTopology {
            core: (0..cpus).collect(),
            given: None,
        }
    }

    /// CPUs with these queues.
    pub fn given(queues: Vec<HctxId>) -> CpuTopology {
        CpuTopology {
            core: (0..queues.len() as u16).collect(),
            given: Some(queues),
        }
    }

    pub fn cpus(&self) -> usize {
        self.core.len()
    }

    /// The CPUs of each core, ascending.
    fn cores(&self) -> BTreeMap<u16, Vec<usize>> {
        let mut cores: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (cpu, core) in self.core.iter().enumerate() {
            cores.entry(*core).or_default().push(cpu);
        }
        cores
    }
}

/// hctx of each CPU when `count` queues numbered from `first` are spread over all CPUs. All CPUs
/// are present and on one node.
pub fn map_queues(topology: &CpuTopology, count: u16, first: u16, rule: CpuMap) -> Vec<HctxId> {
    if let Some(queues) = &topology.given {
        return queues.clone();
    }
    let queues = match rule {
        CpuMap::Interleaved => interleaved(topology, usize::from(count)),
        CpuMap::Grouped => grouped(topology, usize::from(count)),
    };
    queues
        .into_iter()
        .map(|queue| HctxId(first + queue as u16))
        .collect()
}

/// v6.1: the first CPUs get queues of their own, then siblings follow their first and others
/// continue in turn.
fn interleaved(topology: &CpuTopology, count: usize) -> Vec<usize> {
    let (cores, mut map) = (topology.cores(), vec![0; topology.cpus()]);
    let mut next = 0;
    for cpu in 0..topology.cpus() {
        if next < count {
            map[cpu] = next;
            next += 1;
            continue;
        }
        let sibling = cores[&topology.core[cpu]][0];
        if sibling == cpu {
            map[cpu] = next % count;
            next += 1;
        } else {
            map[cpu] = map[sibling];
        }
    }
    map
}

/// v6.12: groups of near-equal size; a group takes the lowest free CPU, then its free siblings.
fn grouped(topology: &CpuTopology, count: usize) -> Vec<usize> {
    let cpus = topology.cpus();
    let mut order: Vec<usize> = Vec::with_capacity(cpus);
    let cores = topology.cores();
    for cpu in 0..cpus {
        let threads = &cores[&topology.core[cpu]];
        if threads[0] == cpu {
            order.extend(threads);
        }
    }
    let groups = count.min(cpus);
    let (small, larger) = (cpus / groups, cpus % groups);
    let mut map = vec![0; cpus];
    let mut taken = 0;
    for group in 0..groups {
        let size = small + usize::from(group < larger);
        for &cpu in &order[taken..taken + size] {
            map[cpu] = group;
        }
        taken += size;
    }
    map
}
