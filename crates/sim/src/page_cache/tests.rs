//! The page cache against a list of pages in order of arrival.

use blkmq::time::SimTime;
use proptest::prelude::*;

use super::{PageCache, PageState};

const AT: SimTime = SimTime(5);

fn with(pages: &[u64]) -> PageCache {
    let mut cache = PageCache::new(100, 8);
    for &page in pages {
        assert!(cache.add(page, false));
        cache.end_read(page, AT, true);
    }
    cache
}

#[test]
fn holes_are_found_on_both_sides() {
    let cache = with(&[0, 1, 2, 4, 5]);
    assert_eq!(cache.next_miss(0, 10), 3);
    assert_eq!(cache.next_miss(0, 2), 2, "none among two: the one after");
    assert_eq!(cache.next_miss(6, 10), 6);
    assert_eq!(cache.run_before(3, 10), 3, "back to the start of the file");
    assert_eq!(cache.run_before(6, 10), 2);
    assert_eq!(cache.run_before(6, 1), 1, "not more than asked");
    assert_eq!(cache.run_before(8, 10), 0);
    assert_eq!(cache.run_before(0, 10), 0);
}

#[test]
fn what_is_under_read_stays() {
    let mut cache = PageCache::new(100, 2);
    assert!(cache.add(0, true));
    assert!(cache.add(1, false));
    assert!(!cache.add(2, false), "no slot is to be had");
    cache.end_read(1, AT, true);
    assert!(cache.add(2, false), "that of page 1");
    assert!(cache.find(0).is_some_and(|page| page.marked));
    assert_eq!(cache.find(1), None);
    assert_eq!(cache.under_read().collect::<Vec<_>>(), [0, 2]);
    assert_eq!(cache.counts().unused, 1, "page 1 was not read");
    cache.check();
}

#[test]
fn a_failed_page_is_read_again() {
    let mut cache = PageCache::new(100, 2);
    assert!(cache.add(7, true));
    cache.end_read(7, AT, false);
    assert_eq!(cache.find(7).unwrap().state, PageState::Failed(AT));
    cache.read_again(7);
    cache.end_read(7, AT, true);
    assert_eq!(cache.find(7).unwrap().state, PageState::UpToDate(AT));
}

#[test]
#[should_panic(expected = "added twice")]
fn a_page_is_there_once() {
    with(&[3, 3]);
}

proptest! {
    #[test]
    fn is_a_queue_of_pages(ops in prop::collection::vec((0_u64..12, 0_u8..4), 1..200)) {
        let mut cache = PageCache::new(12, 5);
        // Pages in order of arrival: number, under read, used.
        let mut naive: Vec<(u64, bool, bool)> = Vec::new();
        let mut hand_order: Vec<Option<(u64, bool, bool)>> = vec![None; 5];
        let mut hand = 0;
        for (index, op) in ops {
            let place = hand_order.iter().position(|slot| slot.is_some_and(|s| s.0 == index));
            match (op, place) {
                (0 | 1, None) => {
                    let free = (0..5).map(|step| (hand + step) % 5)
                        .find(|&slot| hand_order[slot].is_none_or(|s| !s.1));
                    prop_assert_eq!(cache.add(index, op == 1), free.is_some());
                    if let Some(slot) = free {
                        hand_order[slot] = Some((index, true, false));
                        hand = (slot + 1) % 5;
                    }
                }
                (2, Some(slot)) if hand_order[slot].is_some_and(|s| s.1) => {
                    cache.end_read(index, AT, true);
                    hand_order[slot].as_mut().unwrap().1 = false;
                }
                (3, Some(slot)) => {
                    cache.use_page(index);
                    hand_order[slot].as_mut().unwrap().2 = true;
                }
                _ => {}
            }
            cache.check();
            naive.clear();
            naive.extend(hand_order.iter().flatten());
            for page in 0..12 {
                let there = naive.iter().find(|s| s.0 == page);
                let state = cache.find(page).map(|p| p.state == PageState::UnderRead);
                prop_assert_eq!(state, there.map(|s| s.1));
            }
            let unread = naive.iter().filter(|s| !s.2).count() as u64;
            prop_assert_eq!(cache.counts().unread, unread);
        }
    }
}
