//! Lists against `VecDeque`.

use super::{List, QueueLink, QueueList};
use crate::request::{RequestId, RequestPool};
use proptest::prelude::*;
use std::collections::VecDeque;

const SLOTS: u32 = 12;

#[derive(Clone, Debug)]
enum Action {
    PushBack(usize, u32),
    PushFront(usize, u32),
    PopFront(usize),
    PopBack(usize),
    Remove(u32),
    InsertBefore(u32, u32),
    Replace(u32, u32),
    SpliceBack(usize),
    SpliceFront(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let slot = 0..SLOTS;
    let list = 0usize..2;
    prop_oneof![
        4 => (list.clone(), slot.clone()).prop_map(|(l, s)| Action::PushBack(l, s)),
        4 => (list.clone(), slot.clone()).prop_map(|(l, s)| Action::PushFront(l, s)),
        1 => list.clone().prop_map(Action::PopFront),
        1 => list.clone().prop_map(Action::PopBack),
        2 => slot.clone().prop_map(Action::Remove),
        2 => (slot.clone(), slot.clone()).prop_map(|(a, b)| Action::InsertBefore(a, b)),
        2 => (slot.clone(), slot).prop_map(|(a, b)| Action::Replace(a, b)),
        1 => list.clone().prop_map(Action::SpliceBack),
        1 => list.prop_map(Action::SpliceFront),
    ]
}

/// Two lists over one pool, and what they should hold.
struct Pair {
    pool: RequestPool,
    lists: [QueueList; 2],
    naive: [VecDeque<u32>; 2],
}

impl Pair {
    fn home(&self, slot: u32) -> Option<(usize, usize)> {
        (0..2).find_map(|l| Some((l, self.naive[l].iter().position(|&s| s == slot)?)))
    }

    fn apply(&mut self, action: &Action) {
        let Pair { pool, lists, naive } = self;
        let home = |naive: &[VecDeque<u32>; 2], slot: u32| {
            (0..2).find_map(|l| Some((l, naive[l].iter().position(|&s| s == slot)?)))
        };
        match *action {
            Action::PushBack(l, s) if home(naive, s).is_none() => {
                lists[l].push_back(pool, RequestId(s));
                naive[l].push_back(s);
            }
            Action::PushFront(l, s) if home(naive, s).is_none() => {
                lists[l].push_front(pool, RequestId(s));
                naive[l].push_front(s);
            }
            Action::PopFront(l) => {
                assert_eq!(lists[l].pop_front(pool).map(|r| r.0), naive[l].pop_front());
            }
            Action::PopBack(l) => {
                assert_eq!(lists[l].pop_back(pool).map(|r| r.0), naive[l].pop_back());
            }
            Action::Remove(s) => {
                if let Some((l, at)) = home(naive, s) {
                    lists[l].remove(pool, RequestId(s));
                    naive[l].remove(at);
                }
            }
            Action::InsertBefore(at, s) | Action::Replace(at, s) => {
                let (Some((l, index)), None) = (home(naive, at), home(naive, s)) else {
                    return;
                };
                if matches!(action, Action::Replace(..)) {
                    lists[l].replace(pool, RequestId(at), RequestId(s));
                    naive[l][index] = s;
                } else {
                    lists[l].insert_before(pool, RequestId(at), RequestId(s));
                    naive[l].insert(index, s);
                }
            }
            Action::SpliceBack(l) => {
                let mut other = core::mem::take(&mut lists[1 - l]);
                lists[l].splice_back(pool, &mut other);
                assert!(other.is_empty());
                let moved = core::mem::take(&mut naive[1 - l]);
                naive[l].extend(moved);
            }
            Action::SpliceFront(l) => {
                let mut other = core::mem::take(&mut lists[1 - l]);
                lists[l].splice_front(pool, &mut other);
                assert!(other.is_empty());
                let mut moved = core::mem::take(&mut naive[1 - l]);
                moved.append(&mut naive[l]);
                naive[l] = moved;
            }
            Action::PushBack(..) | Action::PushFront(..) => {}
        }
    }

    fn check(&self) {
        for (list, naive) in self.lists.iter().zip(&self.naive) {
            list.check(&self.pool);
            let forward: Vec<u32> = list.iter(&self.pool).map(|r| r.0).collect();
            let mut backward: Vec<u32> = list.iter_rev(&self.pool).map(|r| r.0).collect();
            backward.reverse();
            assert_eq!(forward, Vec::from(naive.clone()));
            assert_eq!(forward, backward);
            assert_eq!(list.len(), naive.len());
            assert_eq!(list.is_empty(), naive.is_empty());
        }
        for slot in 0..SLOTS {
            let linked = self.pool.slots[slot as usize].queue.is_linked();
            assert_eq!(linked, self.home(slot).is_some(), "slot {slot}");
        }
    }
}

proptest! {
    #[test]
    fn behaves_like_a_deque(actions in prop::collection::vec(action(), 0..120)) {
        let mut pair = Pair {
            pool: RequestPool::new(SLOTS as usize, 0),
            lists: [List::new(); 2],
            naive: [VecDeque::new(), VecDeque::new()],
        };
        for action in &actions {
            pair.apply(action);
            pair.check();
        }
    }
}

#[test]
#[should_panic(expected = "on a list already")]
fn an_entry_is_on_one_list_of_a_kind() {
    let mut pool = RequestPool::new(2, 0);
    let (mut a, mut b) = (List::<QueueLink>::new(), List::<QueueLink>::new());
    a.push_back(&mut pool, RequestId(0));
    b.push_back(&mut pool, RequestId(0));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "not on this list")]
fn removing_from_the_wrong_list_is_caught() {
    let mut pool = RequestPool::new(2, 0);
    let (mut a, mut b) = (List::<QueueLink>::new(), List::<QueueLink>::new());
    a.push_back(&mut pool, RequestId(0));
    b.push_back(&mut pool, RequestId(1));
    b.remove(&mut pool, RequestId(0));
}
