//! Places that count references, and the faults that follow from a miscount.

use core::fmt;

use super::QId;

/// A place that takes or puts references.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Account {
    Slot,
    /// An entry of the table of asynchronous queues.
    Table,
    Request,
    /// For all processes that will change to a planned queue, at once.
    Reservation,
    RequestEnd,
    Redirection,
    Split,
    /// A process leaves a shared queue: along the chain.
    SplitChain,
    Exit,
    /// A process exits: along the chain.
    ExitChain,
    /// A process gets another asynchronous queue.
    IoprioChange,
    /// A process changes its group.
    GroupChange,
}

/// A fault that a kernel would not survive, or not notice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// A pointer leads to a freed queue.
    UseAfterFree(QId),
    /// The last reference was put while a request of the queue was allocated.
    FreedWithRequests(QId),
    /// Requests hold more references than the queue has.
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
