//! An observer of running paths: of each label, each grant of a lock, each work item.

use crate::request::QueueId;
use crate::step::Next;
use core::any::Any;
use core::fmt::Debug;

use crate::env::Cpu;
use crate::path::Frame;
use crate::queue::{BlkMq, LockId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    /// The driver's number of the context.
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
    /// The frame after it.
    pub is: &'a Frame,
    /// The path's next request.
    pub next: Next,
}

/// An observer. It reads the block layer and changes neither that nor the requests of paths; only a
/// defect that a test injects is a follower that does.
pub trait Follower: Any + Debug {
    /// Before a label: the last one and its effects are complete.
    fn before(&mut self, mq: &BlkMq, frame: &Frame);
    /// After a label, before its effects are carried out: they are in the CPU's outbox.
    fn after(&mut self, mq: &BlkMq, ran: Ran<'_>, cpu: &mut Cpu);
    /// A context has acquired a lock, though it may continue later.
    fn granted(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    /// A context has tried to get a lock that is held.
    fn contended(&mut self, _mq: &BlkMq, _context: usize, _lock: LockId) {}
    /// The work item of an hctx of this queue is scheduled; `delayed`: with a delay.
    fn item_queued(&mut self, _queue: QueueId, _delayed: bool) {}
    /// This context will run it now.
    fn item_begins(&mut self, _mq: &BlkMq, _context: usize, _queue: QueueId) {}
}
