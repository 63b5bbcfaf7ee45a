//! The names of queues in BFQ's messages in blktrace.
//!
//! Not here: how messages are written and kept (`messages.rs` of schedulers). Kernel:
//! bfq_log_bfqq(), bfq_bfqq_name() in block/bfq-iosched.h (6.1.192, 6.12.117).

use core::fmt;

use super::Bfq;
use super::ids::QId;

#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pid: i32,
    sync: bool,
}

impl Name {
    pub(super) fn of(queue: &super::queue::Queue) -> Name {
        Name {
            pid: queue.pid,
            sync: queue.flags.sync,
        }
    }
}

impl Bfq {
    pub(super) fn line_name(&self, q: QId) -> Name {
        Name::of(&self.queues[q])
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.sync { 'S' } else { 'A' };
        match self.pid {
            -1 => write!(f, "bfqSHARED-{kind}"),
            pid => write!(f, "bfq{pid}{kind}"),
        }
    }
}
