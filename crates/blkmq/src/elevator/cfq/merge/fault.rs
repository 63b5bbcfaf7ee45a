//! Where references are counted, and what goes wrong where one is miscounted.

use core::fmt;

use super::QId;

/// A place where references are taken or dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Account {
    /// Of a process that gets its queue.
    Slot,
    /// Of the table of asynchronous queues.
    Table,
    /// Of a request that is set up.
    Request,
    /// For processes that will be redirected, all at once.
    Reservation,
    /// A request is freed.
    RequestEnd,
    /// A process goes to the queue that its own is to become part of.
    Redirection,
    /// A process leaves a shared queue.
    Split,
    /// The same along the chain.
    SplitChain,
    /// A process exits.
    Exit,
    /// The same along the chain.
    ExitChain,
    /// A process gets another asynchronous queue.
    IoprioChange,
    /// A process changes its group.
    GroupChange,
}

/// What a kernel would not survive, or not notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// A pointer leads to a queue that has been freed.
    UseAfterFree(QId),
    /// The last reference went while a request of the queue was allocated.
    FreedWithRequests(QId),
    /// More references of requests than references.
    Underflow(QId),
    /// A chain leads back to itself.
    Loop(QId),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UseAfterFree(QId(q)) => write!(f, "queue {q} is used after it was freed"),
            Fault::FreedWithRequests(QId(q)) => {
                write!(f, "queue {q} is freed while requests of it are allocated")
            }
            Fault::Underflow(QId(q)) => {
                write!(f, "queue {q} has fewer references than requests")
            }
            Fault::Loop(QId(q)) => write!(f, "the chain of queue {q} leads back to itself"),
        }
    }
}

impl core::error::Error for Fault {}
