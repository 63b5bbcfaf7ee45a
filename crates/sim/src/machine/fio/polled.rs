//! Where a thread polls for ends of its I/Os: at the hctx to which each was issued.
//!
//! One I/O after another, in the order of submission, until a completion is found; then from the
//! beginning. An I/O that the driver has not started has no cookie: bio_poll() returns at once,
//! with or without a plug. Kernel: io_iopoll_req_issued() in io_uring/io_uring.c, io_do_iopoll() in
//! io_uring/rw.c, bio_poll() in block/blk-core.c, `bi_cookie` in blk_mq_start_request() (6.1.192,
//! 6.12.117).

use std::collections::VecDeque;

use blkmq::request::{HctxId, QueueId};

pub(in crate::machine) type Place = (QueueId, HctxId);

#[derive(Clone, Copy, Debug)]
struct Submitted {
    slot: u32,
    /// Its bio's cookie, if it has one.
    place: Option<Place>,
}

#[derive(Clone, Debug)]
pub(in crate::machine) struct Polled {
    /// Not ended, in the order of their submission (iopoll_list).
    list: VecDeque<Submitted>,
    /// The I/O from which on the next one with a cookie is looked for.
    next: usize,
    /// A completion was just found here, and more may follow.
    here: Option<Place>,
}

impl Polled {
    pub(super) fn with_capacity(depth: usize) -> Polled {
        Polled {
            list: VecDeque::with_capacity(depth),
            next: 0,
            here: None,
        }
    }

    /// The thread submits the I/O in this slot.
    pub(super) fn submitted(&mut self, slot: u32) {
        self.list.push_back(Submitted { slot, place: None });
    }

    /// blk_mq_start_request() of the I/O in this slot.
    pub(in crate::machine) fn started(&mut self, slot: u32, place: Place) {
        let place = Some(place);
        // Maybe started before, by another hctx; or submitted by a worker.
        match self.list.iter_mut().find(|io| io.slot == slot) {
            Some(io) => io.place = place,
            None => self.list.push_back(Submitted { slot, place }),
        }
    }

    /// The I/O in this slot has ended, or is left to a worker.
    pub(super) fn ended(&mut self, slot: u32) {
        let Some(index) = self.list.iter().position(|io| io.slot == slot) else {
            return;
        };
        self.list.remove(index);
        if index < self.next {
            self.next -= 1;
        }
    }

    /// The next hctx to poll. `None`: no I/O has a cookie yet.
    pub(in crate::machine) fn look(&self) -> Option<Place> {
        let from = |index| self.list.iter().skip(index).find_map(|io| io.place);
        self.here.or_else(|| from(self.next).or_else(|| from(0)))
    }

    /// A completion was found there, and more may follow.
    pub(in crate::machine) fn found(&mut self, place: Place) {
        self.here = Some(place);
    }

    /// No completion, or no further one, was found there.
    pub(in crate::machine) fn found_nothing(&mut self) {
        let mut later = self.list.iter().skip(self.next);
        let looked = later.position(|io| io.place.is_some());
        self.next = match (self.here.take(), looked) {
            (None, Some(looked)) if later.any(|io| io.place.is_some()) => self.next + looked + 1,
            _ => 0,
        };
    }

    /// All hctxs that it polls.
    pub(in crate::machine) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.list.iter().filter_map(|io| io.place)
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

    /// A plug of v6.1 is a stack: the driver starts the newest first, and another hctx's.
    #[test]
    fn the_first_submitted_is_looked_at_first() {
        let mut polled = Polled::with_capacity(4);
        (5..9).for_each(|slot| polled.submitted(slot));
        assert_eq!(polled.look(), None, "none has a cookie");
        polled.started(8, at(4));
        polled.started(6, at(2));
        for hctx in [2, 4, 2] {
            assert_eq!(polled.look(), Some(at(hctx)));
            polled.found_nothing();
        }
        polled.started(5, at(1));
        for hctx in [4, 1, 2] {
            assert_eq!(polled.look(), Some(at(hctx)));
            polled.found_nothing();
        }
    }
}
