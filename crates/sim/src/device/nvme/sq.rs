//! A submission queue: a ring whose tail the driver moves and the drive sees late.
//!
//! Not the tags: those keep the ring from overflowing, as one slot more than tags exists.
//! Kernel: nvme_sq_copy_cmd(), nvme_write_sq_db() in drivers/nvme/host/pci.c.

use blkmq::request::RequestId;

#[derive(Debug)]
pub(super) struct SubmissionQueue {
    ring: Vec<RequestId>,
    /// Next slot the drive fetches.
    head: u32,
    /// last_sq_tail: last value written to the doorbell.
    published_tail: u32,
    /// sq_tail: next slot the driver writes.
    tail: u32,
}

impl SubmissionQueue {
    /// An empty ring for this many tags.
    pub(super) fn new(tags: u32) -> SubmissionQueue {
        SubmissionQueue {
            ring: vec![RequestId(0); tags as usize + 1],
            head: 0,
            published_tail: 0,
            tail: 0,
        }
    }

    /// Writes an entry, which the drive does not see yet. Panics if the ring is full: more
    /// commands than tags.
    pub(super) fn push(&mut self, rq: RequestId) {
        self.ring[self.tail as usize] = rq;
        self.tail = self.after(self.tail);
        assert_ne!(self.tail, self.head, "more commands than tags");
    }

    /// The next entry would take the tail onto the last published one, where full and empty
    /// look alike: the doorbell cannot wait.
    pub(super) fn is_full(&self) -> bool {
        self.after(self.tail) == self.published_tail
    }

    pub(super) fn ring(&mut self) {
        self.published_tail = self.tail;
    }

    /// The drive takes the oldest published entry.
    pub(super) fn fetch(&mut self) -> Option<RequestId> {
        if self.head == self.published_tail {
            return None;
        }
        let rq = self.ring[self.head as usize];
        self.head = self.after(self.head);
        Some(rq)
    }

    /// Entries the drive may fetch.
    pub(super) fn published(&self) -> u32 {
        self.distance(self.head, self.published_tail)
    }

    /// Entries that the doorbell does not cover yet.
    pub(super) fn unpublished(&self) -> u32 {
        self.distance(self.published_tail, self.tail)
    }

    fn after(&self, slot: u32) -> u32 {
        if slot + 1 == self.ring.len() as u32 {
            0
        } else {
            slot + 1
        }
    }

    fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from {
            to - from
        } else {
            to + self.ring.len() as u32 - from
        }
    }
}
