//! Where a thread polls for ends of its I/Os: at the hctx to which each was issued.
//!
//! One I/O after another, the oldest first, until a completion is found; then from the beginning.
//! An I/O that is not issued yet has no cookie: bio_poll() returns at once, with or without a plug.
//! Kernel: io_do_iopoll() in io_uring/rw.c, bio_poll() in block/blk-core.c, `bi_cookie` in
//! blk_mq_start_request() (6.1.192, 6.12.117).

use std::collections::VecDeque;

use blkmq::request::{HctxId, QueueId};

pub(in crate::machine) type Place = (QueueId, HctxId);

/// An I/O whose bio has a cookie.
#[derive(Clone, Copy, Debug)]
struct Issued {
    slot: u32,
    place: Place,
}

#[derive(Clone, Debug)]
pub(in crate::machine) struct Polled {
    /// Issued and not ended, in the order of their issue.
    issued: VecDeque<Issued>,
    /// The I/O whose hctx is polled next.
    next: usize,
    /// A completion was just found here, and more may follow.
    here: Option<Place>,
}

impl Polled {
    pub(super) fn with_capacity(depth: usize) -> Polled {
        Polled {
            issued: VecDeque::with_capacity(depth),
            next: 0,
            here: None,
        }
    }

    /// blk_mq_start_request() of the I/O in this slot.
    pub(in crate::machine) fn started(&mut self, slot: u32, place: Place) {
        // Issued again, maybe to another hctx.
        let known = self.issued.iter_mut().find(|issued| issued.slot == slot);
        match known {
            Some(issued) => issued.place = place,
            None => self.issued.push_back(Issued { slot, place }),
        }
    }

    /// The I/O in this slot has ended, if it was issued at all.
    pub(super) fn ended(&mut self, slot: u32) {
        let Some(index) = self.issued.iter().position(|issued| issued.slot == slot) else {
            return;
        };
        self.issued.remove(index);
        if index < self.next {
            self.next -= 1;
        }
    }

    /// The next hctx to poll. `None`: no I/O has a cookie yet.
    pub(in crate::machine) fn look(&self) -> Option<Place> {
        let next = self.issued.get(self.next).or(self.issued.front());
        self.here.or(next.map(|issued| issued.place))
    }

    /// A completion was found there, and more may follow.
    pub(in crate::machine) fn found(&mut self, place: Place) {
        self.here = Some(place);
    }

    /// No completion, or no further one, was found there.
    pub(in crate::machine) fn found_nothing(&mut self) {
        let next = self.next + 1;
        self.next = match self.here.take() {
            None if next < self.issued.len() => next,
            _ => 0,
        };
    }

    /// All hctxs that it polls.
    pub(in crate::machine) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.issued.iter().map(|issued| issued.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hctx: u16) -> Place {
        (QueueId(0), HctxId(hctx))
    }

    #[test]
    fn each_cookie_is_looked_at_in_turn_and_again_from_the_oldest_after_a_find() {
        let mut polled = Polled::with_capacity(4);
        assert_eq!(polled.look(), None);
        polled.found_nothing();
        for (slot, hctx) in [(5, 1), (6, 2), (7, 3)] {
            polled.started(slot, at(hctx));
        }
        for hctx in [1, 2, 3, 1, 2] {
            assert_eq!(polled.look(), Some(at(hctx)));
            polled.found_nothing();
        }
        // It stays at an hctx with completions until there are no more.
        assert_eq!(polled.look(), Some(at(3)));
        polled.found(at(3));
        polled.ended(7);
        assert_eq!(polled.look(), Some(at(3)));
        polled.found_nothing();
        assert_eq!(polled.look(), Some(at(1)));
        polled.ended(5);
        polled.ended(5);
        assert_eq!(polled.look(), Some(at(2)));
        // Refused, and issued again by another hctx.
        polled.started(6, at(4));
        assert_eq!(polled.places().collect::<Vec<_>>(), [at(4)]);
    }
}
