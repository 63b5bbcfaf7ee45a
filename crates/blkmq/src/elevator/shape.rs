//! The CPUs and hctxs of the queue that a scheduler is created for, for schedulers with state for
//! each of them.

/// CPUs and hctxs of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueShape {
    /// Number of CPUs that may submit.
    pub cpus: usize,
    /// Number of ctxs of each hctx (nr_ctx).
    pub ctxs: Vec<usize>,
}

impl QueueShape {
    pub fn one() -> QueueShape {
        QueueShape {
            cpus: 1,
            ctxs: vec![1],
        }
    }
}
