//! The calls of a scheduler besides merges, insertions and dispatch.
//!
//! [`Hooks`] says which of these a scheduler has: the others cost nothing. Each is a path of its
//! own that the block layer's path calls (`path/hook.rs`), so it may take locks; the exception is
//! prepare, which only touches the request. Left out: activate_req, which multi-queue schedulers do
//! not have. Kernel: block/elevator.h struct elevator_mq_ops (v6.1, v6.12).

use crate::call::Token;
use crate::time::Duration;

/// Which hooks a scheduler has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hooks {
    /// A request is set up (prepare_request), without a lock.
    pub prepare: bool,
    /// [`Hook::Completed`].
    pub completed: bool,
    /// [`Hook::Requeued`].
    pub requeued: bool,
    /// [`Hook::Finished`].
    pub finished: bool,
    /// [`Hook::Exits`].
    pub exits: bool,
}

impl Hooks {
    pub const NONE: Hooks = Hooks {
        prepare: false,
        completed: false,
        requeued: false,
        finished: false,
        exits: false,
    };
}

/// The result of a hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    Nothing,
    /// There may be something to dispatch now: blk_mq_run_hw_queues(), left to kblockd, under the
    /// hook's lock.
    RunQueues,
    /// Some hctxs have left a wait queue, and are run if they have work: those that
    /// [`Scheduler::take_run_of`](super::Scheduler::take_run_of) names.
    RunHctxs,
    /// The token of the request is put (rq_clear_domain_token()): only by `requeued` and
    /// `finished`.
    PutToken(Token),
}

/// Where a timer's function runs, and how exact it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimerContext {
    /// struct timer_list: in a softirq, at a tick.
    Softirq,
    /// struct hrtimer: in a hard interrupt, when it is due.
    Hardirq,
}

#[derive(PartialEq, Eq, Hash, Debug)]
pub struct ElevatorTimer {
    pub name: &'static str,
    /// Where its function runs. A lock that the function takes must disable that context.
    pub context: TimerContext,
}

/// A policy's request for one of its timers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimerAsk {
    /// It expires so much later; an earlier expiry is replaced (mod_timer(), hrtimer_start()).
    Arm {
        timer: u8,
        /// Later than now.
        after: Duration,
    },
    /// It does not expire, unless its function runs already (del_timer(),
    /// hrtimer_try_to_cancel()).
    Cancel { timer: u8 },
}
