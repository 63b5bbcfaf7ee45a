//! The table against a map, with and without files.

use std::collections::BTreeMap;
use std::io::Cursor;

use super::{Seen, StateId};
use crate::fingerprint::fingerprint;
use crate::resources::Spill;

/// Batches of values of which many come again, in the same batch and later.
fn compare(memory: u64) -> bool {
    let open = || Ok(Box::new(Cursor::new(Vec::new())) as Box<dyn Spill>);
    let mut seen = Seen::new(memory);
    let mut naive: BTreeMap<u64, StateId> = BTreeMap::new();
    let mut value = 1_u64;
    for batch in 0..60_u64 {
        let mut draw = || {
            value = value * 5 % 1_000_003;
            value % (2_000 * (batch + 1))
        };
        let values: Vec<u64> = (0..3_000).map(|_| draw()).collect();
        let prints: Vec<u128> = values.iter().map(fingerprint).collect();
        let base = naive.len() as StateId;
        let mut ids = vec![super::NONE; values.len()];
        seen.insert(base, &mut ids, |at| Some(prints[at]), &open)
            .expect("memory");
        let mut numbers = vec![super::NONE; values.len()];
        for (at, (value, id)) in values.iter().zip(ids).enumerate() {
            let next = naive.len() as StateId;
            let known = *naive.entry(*value).or_insert(next);
            let found = match id {
                new if new == base + at as StateId => next,
                old if old < base => old,
                before => numbers[(before - base) as usize],
            };
            assert_eq!(found, known, "value {value} of batch {batch}");
            numbers[at] = known;
        }
        seen.number(base, &numbers);
    }
    for (value, id) in &naive {
        let recent = seen.recent(fingerprint(value));
        assert!(recent.is_none_or(|recent| recent == *id), "value {value}");
        assert!(seen.has_runs() || recent.is_some(), "value {value}");
    }
    seen.has_runs()
}

#[test]
fn a_table_finds_what_was_inserted_in_memory_and_in_runs() {
    assert!(!compare(u64::MAX));
    assert!(compare(1 << 16));
    assert!(compare(0));
}
