//! Numbers of requests, as the specification counts them.
//!
//! Requests are alike there, so that the number of one that has ended is used again; and the
//! specification's scheduler gives them out in the order of arrival, so that a request that comes
//! out of the scheduler has the number of the one that came first.

use std::collections::BTreeMap;

use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{Place, QueueId, RequestId};
use blkmq::schedule::view;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bearer {
    /// A slot of a queue.
    Slot(QueueId, RequestId),
    /// A request that gave its tag back, and is still to restart hctxs.
    Freed,
}

#[derive(Debug)]
pub(super) struct Names {
    slots: BTreeMap<(QueueId, u32), u32>,
    bearers: BTreeMap<u32, Bearer>,
    /// What each queue's scheduler holds, in the order of arrival.
    scheduled: Vec<Vec<u32>>,
    /// The highest number so far.
    pub(super) most: u32,
    /// The highest that there may be.
    limit: u32,
}

impl Names {
    /// Of so many queues; no number is above `limit`.
    pub(super) fn new(queues: usize, limit: u32) -> Names {
        Names {
            slots: BTreeMap::new(),
            bearers: BTreeMap::new(),
            scheduled: vec![Vec::new(); queues],
            most: 0,
            limit,
        }
    }

    /// The number of a slot.
    pub(super) fn of(&self, queue: QueueId, rq: RequestId) -> Option<u32> {
        self.slots.get(&(queue, rq.0)).copied()
    }

    /// Gives the lowest free number to a slot. None if there are too many.
    pub(super) fn give(&mut self, queue: QueueId, rq: RequestId, scheduled: bool) -> Option<u32> {
        let free = |number: &u32| !self.bearers.contains_key(number);
        let number = (1..=self.limit).find(free)?;
        self.bearers.insert(number, Bearer::Slot(queue, rq));
        self.slots.insert((queue, rq.0), number);
        self.most = self.most.max(number);
        if scheduled {
            self.enters(queue, rq);
        }
        Some(number)
    }

    /// A request with a number comes into the scheduler of its queue.
    pub(super) fn enters(&mut self, queue: QueueId, rq: RequestId) {
        if let Some(number) = self.of(queue, rq) {
            self.scheduled[queue.index()].push(number);
        }
    }

    /// The scheduler of a queue gave this request, or none.
    pub(super) fn picked(&mut self, queue: QueueId, rq: Option<RequestId>) {
        let Some(rq) = rq else { return };
        let list = &mut self.scheduled[queue.index()];
        let Some(own) = self.slots.get(&(queue, rq.0)).copied() else {
            return;
        };
        if list.is_empty() {
            return;
        }
        let first = list.remove(0);
        if first == own {
            return;
        }
        let other = self.bearers[&first];
        self.bearers.insert(first, Bearer::Slot(queue, rq));
        self.bearers.insert(own, other);
        self.slots.insert((queue, rq.0), first);
        if let Bearer::Slot(queue, rq) = other {
            self.slots.insert((queue, rq.0), own);
        }
    }

    /// The tag is back: the slot is another's soon.
    pub(super) fn freed(&mut self, number: u32, queue: QueueId) {
        if let Some(Bearer::Slot(of, rq)) = self.bearers.insert(number, Bearer::Freed) {
            debug_assert_eq!(of, queue, "a request ends on its own queue");
            self.slots.remove(&(of, rq.0));
        }
    }

    /// It gave its tag back.
    pub(super) fn is_freed(&self, number: u32) -> bool {
        self.bearers.get(&number) == Some(&Bearer::Freed)
    }

    /// It is over with the request.
    pub(super) fn done(&mut self, number: u32) {
        if let Some(Bearer::Slot(queue, rq)) = self.bearers.remove(&number) {
            self.slots.remove(&(queue, rq.0));
        }
    }

    /// What a queue's scheduler holds, by the requests' own places.
    pub(super) fn scheduled(&self, q: &RequestQueue) -> String {
        let order = &self.scheduled[q.id.index()];
        q.with_pool(|pool| {
            let mut held: Vec<u32> = pool
                .iter()
                .filter(|(_, rq)| rq.place == Place::Elevator)
                .map(|(id, _)| self.of(q.id, id).unwrap_or(0))
                .collect();
            held.sort_by_key(|number| order.iter().position(|known| known == number));
            view::tuple(held.into_iter().map(|number| number.to_string()))
        })
    }

    /// States of those that are under way, by their tags.
    pub(super) fn states(&self, mq: &BlkMq) -> Vec<(u32, &'static str)> {
        let state = |bearer: &Bearer| match *bearer {
            Bearer::Freed => "freed",
            Bearer::Slot(queue, rq) => mq.queue(queue).with_pool(|pool| {
                let rq = &pool[rq];
                // At its end a request loses the tag before the map has it back.
                let ends = matches!(rq.place, Place::Completing | Place::Free);
                if rq.tag.is_some() || ends {
                    "device"
                } else {
                    "live"
                }
            }),
        };
        let numbers = self.bearers.iter();
        numbers
            .map(|(&number, bearer)| (number, state(bearer)))
            .collect()
    }

    /// A request without number waits where only numbered ones should.
    pub(super) fn unknown(&self, mq: &BlkMq) -> bool {
        mq.queues.iter().any(|q| {
            q.with_pool(|pool| {
                pool.iter().any(|(id, rq)| {
                    matches!(rq.place, Place::Elevator | Place::Dispatch)
                        && self.of(q.id, id).is_none()
                })
            })
        })
    }
}
