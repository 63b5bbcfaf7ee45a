use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Add(u64),
    Remove(usize),
    Move(usize, u64),
    Find(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few regions, so that chains and collisions happen; some at the end of the range.
    let sector = prop_oneof![
        0..2_000_u64,
        (u64::MAX - 500)..u64::MAX,
        (0..40_u64).prop_map(|n| n << 40)
    ];
    let step = prop_oneof![
        4 => sector.clone().prop_map(Step::Add),
        3 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), sector.clone()).prop_map(|(at, to)| Step::Move(at, to)),
        3 => (sector, 0..3_000_u64).prop_map(|(from, n)| Step::Find(from, n)),
    ];
    proptest::collection::vec(step, 1..400)
}

proptest! {
    /// Compared with a plain list, which also gives the order of age.
    #[test]
    fn agrees_with_a_list(steps in steps()) {
        let mut table = Table::new();
        let mut list: Vec<(u32, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Add(sector) => {
                    let id = table.add(sector);
                    table.attach(id, sector);
                    list.push((id, sector));
                }
                Step::Remove(at) if !list.is_empty() => {
                    let (id, _) = list.remove(at % list.len());
                    table.remove(id);
                }
                Step::Move(at, to) if !list.is_empty() => {
                    let at = at % list.len();
                    list[at].1 = to;
                    table.detach(list[at].0);
                    *table.get_mut(list[at].0) = to;
                    table.attach(list[at].0, to);
                }
                Step::Remove(_) | Step::Move(..) => {}
                Step::Find(from, count) => {
                    let to = from.saturating_add(count);
                    let mut found = Vec::new();
                    table.near(from, to, |id, &sector| {
                        if (from..to).contains(&sector) {
                            found.push(id);
                        }
                    });
                    found.sort_unstable();
                    let inside = list.iter().filter(|(_, sector)| (from..to).contains(sector));
                    let mut want: Vec<u32> = inside.map(|(id, _)| *id).collect();
                    want.sort_unstable();
                    prop_assert_eq!(found, want);
                }
            }
            table.check();
            prop_assert_eq!(table.len(), list.len());
            let mut id = table.oldest();
            for (want, _) in &list {
                prop_assert_eq!(id, *want);
                id = table.newer(id);
            }
            prop_assert_eq!(id, NONE);
        }
    }
}

#[test]
fn a_free_number_is_used_again() {
    let mut table = Table::new();
    for round in 0..1000_u64 {
        let id = table.add(round);
        table.attach(id, round * 1000);
        assert_eq!(id, 0);
        table.remove(id);
    }
    assert_eq!(table.nodes.len(), 1);
    assert_eq!(table.slots.len(), FIRST_SLOTS);
}
