//! Default maps of CPUs to queues, against tables worked out from the kernel's rules.

use super::{CpuTopology, HctxCounts, HctxType, TagSet, TagSetConfig, map_queues};
use crate::request::{HctxId, Op};
use crate::rules::{CpuMap, Rules};

fn map(core: &[u16], count: u16, rule: CpuMap) -> Vec<u16> {
    let topology = CpuTopology {
        core: core.to_vec(),
        given: None,
    };
    map_queues(&topology, count, 0, rule)
        .into_iter()
        .map(|HctxId(queue)| queue)
        .collect()
}

const FLAT_4: &[u16] = &[0, 1, 2, 3];
const FLAT_10: &[u16] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
/// Siblings are CPUs c and c + 4.
const SMT_FAR: &[u16] = &[0, 1, 2, 3, 0, 1, 2, 3];
/// Siblings are neighbours.
const SMT_NEAR: &[u16] = &[0, 0, 1, 1, 2, 2, 3, 3];

#[test]
fn v6_1_interleaves_and_lets_siblings_follow() {
    let rule = CpuMap::Interleaved;
    assert_eq!(map(FLAT_4, 1, rule), [0, 0, 0, 0]);
    assert_eq!(map(FLAT_4, 2, rule), [0, 1, 0, 1]);
    assert_eq!(map(FLAT_4, 3, rule), [0, 1, 2, 0]);
    assert_eq!(map(FLAT_4, 4, rule), [0, 1, 2, 3]);
    assert_eq!(map(FLAT_10, 4, rule), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    assert_eq!(map(SMT_FAR, 2, rule), [0, 1, 0, 1, 0, 1, 0, 1]);
    // CPUs 4 to 7 copy their first sibling, so queue 3 has CPUs 3 and 7.
    assert_eq!(map(SMT_FAR, 4, rule), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(map(SMT_FAR, 6, rule), [0, 1, 2, 3, 4, 5, 2, 3]);
    // The first pass gives queues to siblings too: CPU 1 has one of its own.
    assert_eq!(map(SMT_NEAR, 3, rule), [0, 1, 2, 2, 0, 0, 1, 1]);
}

#[test]
fn v6_12_groups_neighbours_and_keeps_siblings_together() {
    let rule = CpuMap::Grouped;
    assert_eq!(map(FLAT_4, 1, rule), [0, 0, 0, 0]);
    assert_eq!(map(FLAT_4, 2, rule), [0, 0, 1, 1]);
    assert_eq!(map(FLAT_4, 3, rule), [0, 0, 1, 2]);
    assert_eq!(map(FLAT_4, 4, rule), [0, 1, 2, 3]);
    // 10 mod 4 groups of three, then groups of two.
    assert_eq!(map(FLAT_10, 4, rule), [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]);
    assert_eq!(map(SMT_FAR, 2, rule), [0, 0, 1, 1, 0, 0, 1, 1]);
    assert_eq!(map(SMT_FAR, 4, rule), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(map(SMT_NEAR, 4, rule), [0, 0, 1, 1, 2, 2, 3, 3]);
    // Three groups of 3, 3, 2: the second CPU of core 1 is in the next group.
    assert_eq!(map(SMT_NEAR, 3, rule), [0, 0, 0, 1, 1, 1, 2, 2]);
}

#[test]
fn every_queue_has_a_cpu_and_sizes_differ_by_one_at_most() {
    for cpus in 1..40_u16 {
        let topology = CpuTopology::flat(cpus);
        for count in 1..=cpus {
            for rule in [CpuMap::Interleaved, CpuMap::Grouped] {
                let mut sizes = vec![0; usize::from(count)];
                for HctxId(queue) in map_queues(&topology, count, 0, rule) {
                    sizes[usize::from(queue)] += 1;
                }
                let (least, most) = (sizes.iter().min(), sizes.iter().max());
                let (least, most) = (least.expect("a queue"), most.expect("a queue"));
                assert!(
                    *least >= 1,
                    "{cpus} CPUs, {count} queues, {rule:?}: {sizes:?}"
                );
                assert!(
                    most - least <= 1,
                    "{cpus} CPUs, {count} queues, {rule:?}: {sizes:?}"
                );
            }
        }
    }
}

#[test]
fn queues_of_a_type_are_numbered_from_its_first() {
    let read = map_queues(&CpuTopology::flat(4), 2, 3, CpuMap::Grouped);
    assert_eq!(read, [3, 3, 4, 4].map(HctxId));
}

#[test]
fn a_poll_wish_goes_before_the_operation() {
    assert_eq!(HctxType::of(Op::Read, false), HctxType::Read);
    assert_eq!(HctxType::of(Op::Write, false), HctxType::Default);
    assert_eq!(HctxType::of(Op::Discard, false), HctxType::Default);
    assert_eq!(HctxType::of(Op::Flush, false), HctxType::Default);
    assert_eq!(HctxType::of(Op::Read, true), HctxType::Poll);
    assert_eq!(HctxType::of(Op::Write, true), HctxType::Poll);
}

/// NVMe under v6.1: the affinity of interrupt vectors decides, and polled queues have none.
#[test]
fn vectors_decide_the_maps_of_queues_that_interrupt() {
    let map = |vectors: bool, rules: &Rules| {
        let config = TagSetConfig {
            counts: HctxCounts {
                default: 2,
                read: 2,
                poll: 2,
            },
            vectors,
            ..TagSetConfig::plain(2, 4)
        };
        let set: TagSet = TagSet::new(&config, &CpuTopology::flat(4), rules, 0..1, &mut || 0);
        set.map
            .map(|of_type| of_type.iter().map(|hctx| hctx.0).collect::<Vec<u16>>())
    };
    let (old, new) = (Rules::v6_1(), Rules::v6_12());
    assert_eq!(map(true, &old), [[0, 0, 1, 1], [2, 2, 3, 3], [4, 5, 4, 5]]);
    assert_eq!(map(false, &old), [[0, 1, 0, 1], [2, 3, 2, 3], [4, 5, 4, 5]]);
    assert_eq!(map(true, &new), [[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]);
}
