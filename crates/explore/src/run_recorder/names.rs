//! Request numbers of the specification.
//!
//! Requests are interchangeable there, so the number of an ended request is used again. The
//! specification's scheduler is a FIFO, so a request that leaves the scheduler gets the number of
//! the one that arrived first.

use std::collections::BTreeMap;

use blkmq::queue::{BlkMq, RequestQueue};
use blkmq::request::{Place, QueueId, RequestId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bearer {
    Slot(QueueId, RequestId),
    /// A request that put its tag and has still to restart hctxs.
    Freed,
}

#[derive(Debug)]
pub(super) struct Names {
    slots: BTreeMap<(QueueId, u32), u32>,
    bearers: BTreeMap<u32, Bearer>,
    /// The numbers in each queue's scheduler, in the order of arrival.
    scheduled: Vec<Vec<u32>>,
    /// The highest number so far.
    pub(super) most: u32,
    limit: u32,
}

impl Names {
    /// Numbers for so many queues, up to `limit`.
    pub(super) fn new(queues: usize, limit: u32) -> Names {
        Names {
            slots: BTreeMap::new(),
            bearers: BTreeMap::new(),
            scheduled: vec![Vec::new(); queues],
            most: 0,
            limit,
        }
    }

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

    /// A request with a number enters the scheduler of its queue.
    pub(super) fn enters(&mut self, queue: QueueId, rq: RequestId) {
        if let Some(number) = self.of(queue, rq) {
            self.scheduled[queue.index()].push(number);
        }
    }

    /// The scheduler of a queue returned this request, or none.
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

    /// The tag is put: the slot may be used again soon.
    pub(super) fn freed(&mut self, number: u32, queue: QueueId) {
        if let Some(Bearer::Slot(of, rq)) = self.bearers.insert(number, Bearer::Freed) {
            debug_assert_eq!(of, queue, "a request ends on its own queue");
            self.slots.remove(&(of, rq.0));
        }
    }

    /// Whether the request has put its tag.
    pub(super) fn is_freed(&self, number: u32) -> bool {
        self.bearers.get(&number) == Some(&Bearer::Freed)
    }

    /// The request ended; its number is free.
    pub(super) fn done(&mut self, number: u32) {
        if let Some(Bearer::Slot(queue, rq)) = self.bearers.remove(&number) {
            self.slots.remove(&(queue, rq.0));
        }
    }

    /// The numbers in a queue's scheduler, by the places of the requests.
    pub(super) fn scheduled(&self, q: &RequestQueue) -> Vec<u32> {
        let order = &self.scheduled[q.id.index()];
        q.with_pool(|pool| {
            let mut held: Vec<u32> = pool
                .iter()
                .filter(|(_, rq)| rq.place == Place::Elevator)
                .map(|(id, _)| self.of(q.id, id).unwrap_or(0))
                .collect();
            held.sort_by_key(|number| order.iter().position(|known| known == number));
            held
        })
    }

    /// States of the requests under way, by their tags.
    pub(super) fn states(&self, mq: &BlkMq) -> Vec<(u32, &'static str)> {
        let state = |bearer: &Bearer| match *bearer {
            Bearer::Freed => "freed",
            Bearer::Slot(queue, rq) => mq.queue(queue).with_pool(|pool| {
                let rq = &pool[rq];
                // An ending request loses its tag before the map has it back.
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

    /// A request without a number waits in a list of the specification.
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
