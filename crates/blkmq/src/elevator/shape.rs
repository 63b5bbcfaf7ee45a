//! The CPUs and hctxs of the queue that a scheduler is created for, for schedulers with state for
//! each of them.

use crate::request::CpuId;

/// CPUs and hctxs of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueShape {
    /// Number of CPUs that may submit.
    pub cpus: usize,
    /// Number of ctxs of each hctx (nr_ctx).
    pub ctxs: Vec<usize>,
    /// The CPU of each of them.
    pub cpus_of: Vec<Vec<CpuId>>,
}

impl QueueShape {
    pub fn one() -> QueueShape {
        QueueShape {
            cpus: 1,
            ctxs: vec![1],
            cpus_of: vec![vec![CpuId(0)]],
        }
    }
}
