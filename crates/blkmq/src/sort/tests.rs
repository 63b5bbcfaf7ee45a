//! The tree against `BTreeMap`, and its shape against the kernel's.

use super::{LEFT, NIL, RIGHT, SortTree, node};
use crate::request::{RequestId, RequestPool, Sector};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SLOTS: u32 = 64;

fn set_sector(pool: &mut RequestPool, slot: u32, sector: u64) {
    pool[RequestId(slot)].sector = Sector(sector);
}

proptest! {
    /// Toggles slots in and out of the tree; few distinct sectors make many equal ones.
    #[test]
    fn behaves_like_an_ordered_map(actions in prop::collection::vec((0..SLOTS, 0u64..24), 0..400)) {
        let mut pool = RequestPool::new(SLOTS as usize, 0);
        let mut tree = SortTree::new();
        let mut naive = BTreeMap::new();
        let mut key_of = BTreeMap::new();
        for (sequence, &(slot, sector)) in actions.iter().enumerate() {
            let rq = RequestId(slot);
            if let Some(key) = key_of.remove(&slot) {
                naive.remove(&key);
                tree.remove(&mut pool, rq);
            } else {
                set_sector(&mut pool, slot, sector);
                naive.insert((sector, sequence), rq);
                key_of.insert(slot, (sector, sequence));
                tree.insert(&mut pool, rq, Sector(sector));
            }
            tree.check(&pool);
            let order: Vec<RequestId> = naive.values().copied().collect();
            prop_assert_eq!(tree.iter(&pool).collect::<Vec<_>>(), order);
            prop_assert_eq!(tree.len(), naive.len());
            prop_assert_eq!(tree.last(&pool), naive.values().next_back().copied());
            let from = naive.range((sector, 0)..).next().map(|(_, &rq)| rq);
            prop_assert_eq!(tree.first_at_or_after(&pool, Sector(sector)), from);
            let found = tree.find(&pool, Sector(sector)).map(|rq| pool[rq].sector);
            let any = naive.keys().any(|&(key, _)| key == sector).then_some(Sector(sector));
            prop_assert_eq!(found, any);
            for (before, after) in naive.values().zip(naive.values().skip(1)) {
                prop_assert_eq!(tree.next(&pool, *before), Some(*after));
                prop_assert_eq!(tree.prev(&pool, *after), Some(*before));
            }
        }
        for slot in 0..SLOTS {
            let linked = pool.slots[slot as usize].sort.is_linked();
            prop_assert_eq!(linked, key_of.contains_key(&slot));
        }
    }
}

/// FNV-1a over the tree in pre-order: slot and colour of each node, 255 for a missing one.
fn mix_shape(pool: &RequestPool, at: u32, digest: &mut u64) {
    let value = match at {
        NIL => 255,
        at => u64::from(at) * 2 + u64::from(node(pool, at).rb.is_red()),
    };
    *digest = (*digest ^ value).wrapping_mul(0x0100_0000_01b3);
    if at != NIL {
        mix_shape(pool, node(pool, at).rb.child[LEFT], digest);
        mix_shape(pool, node(pool, at).rb.child[RIGHT], digest);
    }
}

/// Digests of every shape on the way through 100,000 insertions and removals, computed with
/// lib/rbtree.c and the descent of elv_rb_add() of Linux 6.12.117 from the same random numbers.
#[test]
fn takes_every_shape_that_the_kernel_takes() {
    let kernel: [(u32, u64); 5] = [
        (10, 0x601e_0c8f_b6f8_0102),
        (100, 0x6333_2c8d_1655_d0aa),
        (1000, 0xa4a2_81f5_1448_580c),
        (10_000, 0xca30_05fa_5071_6b46),
        (100_000, 0x4fc0_f910_39ad_8d06),
    ];
    let mut pool = RequestPool::new(SLOTS as usize, 0);
    let mut tree = SortTree::new();
    let (mut state, mut digest) = (1u64, 0xcbf2_9ce4_8422_2325);
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut seen = Vec::new();
    for step in 1..=100_000 {
        let slot = (random() % u64::from(SLOTS)) as u32;
        let sector = random() % 16;
        if pool.slots[slot as usize].sort.is_linked() {
            tree.remove(&mut pool, RequestId(slot));
        } else {
            set_sector(&mut pool, slot, sector);
            tree.insert(&mut pool, RequestId(slot), Sector(sector));
        }
        mix_shape(&pool, tree.0.root(), &mut digest);
        if kernel.iter().any(|&(at, _)| at == step) {
            seen.push((step, digest));
        }
    }
    assert_eq!(seen, kernel);
}

#[test]
fn the_first_of_equals_on_the_way_down_is_found() {
    let mut pool = RequestPool::new(3, 0);
    let mut tree = SortTree::new();
    for slot in 0..3 {
        set_sector(&mut pool, slot, 7);
        tree.insert(&mut pool, RequestId(slot), Sector(7));
    }
    // Three equal ones balance with the second at the root: neither oldest nor newest.
    assert_eq!(tree.find(&pool, Sector(7)), Some(RequestId(1)));
    assert_eq!(tree.first_at_or_after(&pool, Sector(7)), Some(RequestId(0)));
}

#[test]
fn visits_are_counted_and_not_compared() {
    let mut pool = RequestPool::new(8, 0);
    let mut tree = SortTree::new();
    for slot in 0..7 {
        set_sector(&mut pool, slot, u64::from(slot));
        tree.insert(&mut pool, RequestId(slot), Sector(u64::from(slot)));
    }
    assert!(tree.take_touched() > 7);
    let before = tree;
    assert_eq!(tree.find(&pool, Sector(3)), Some(RequestId(3)));
    assert_eq!(tree, before);
    // Seven nodes inserted in ascending order: 3 lies one below the root, 1.
    assert_eq!(tree.take_touched(), 2);
    assert_eq!(tree.take_touched(), 0);
}

#[test]
#[should_panic(expected = "in a tree already")]
fn a_request_is_in_one_tree() {
    let mut pool = RequestPool::new(1, 0);
    let (mut a, mut b) = (SortTree::new(), SortTree::new());
    a.insert(&mut pool, RequestId(0), Sector(0));
    b.insert(&mut pool, RequestId(0), Sector(0));
}
