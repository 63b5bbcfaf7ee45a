//! Who looks on while paths run: at each label, each grant of a lock, each work item.

use crate::request::QueueId;
use core::any::Any;
use core::fmt::Debug;

use crate::env::Cpu;
use crate::path::{Frame, Next};
use crate::queue::{BlkMq, LockId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// Number of the context, as its driver counts them.
    pub context: usize,
    /// Frames below.
    pub depth: usize,
}

/// A label that has run, before its effects are carried out.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    pub who: Who,
    /// The frame before it.
    pub was: &'a Frame,
    /// And behind it.
    pub is: &'a Frame,
    /// What the path wants now.
    pub next: Next,
}

/// Looks on. It sees the block layer and changes nothing of it, nor of what paths want; a defect
/// that a test makes on purpose is a follower that does change it.
pub trait Follower: Any + Debug {
    /// Before a label: what the last one and its effects left is complete.
    fn before(&mut self, mq: &BlkMq, frame: &Frame);
    /// Behind a label, before its effects are carried out: they are in the CPU's outbox.
    fn behind(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu);
    /// A context has a lock from now on, though it may go on later.
    fn granted(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    /// A context has tried to get a lock, in vain.
    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    /// The work item of an hctx of this queue is to run; `delayed`: after a time.
    fn item_queued(&mut self, _queue: QueueId, _delayed: bool) {}
    /// This context is about to run it.
    fn item_begins(&mut self, _mq: &BlkMq, _context: usize, _queue: QueueId) {}
}
