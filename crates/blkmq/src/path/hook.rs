//! A hook of a scheduler, and the run of the hardware queues that it may ask for.
//!
//! The hook's own steps are the scheduler's (`elevator/path.rs`). Its labels do not depend on the
//! caller: a hook costs the same wherever it is called. Kernel: blk_mq_run_hw_queues() (6.1.192,
//! 6.12.117).

use super::run::wake;
use super::sbitmap::Woken;
use crate::call::{Call, Hook, RunHow};
use crate::elevator::{self, After};
use crate::request::HctxId;
use crate::step::{Cx, labels};
use crate::time::Duration;
use steps::steps;

pub use call_hook::State as HookFrame;

/// Calls this hook of the queue's scheduler, and does what it asks for.
#[steps(path)]
pub fn call_hook(cx: &mut Cx<'_>, hook: Hook) {
    /// The hook is called.
    at!(Enter);
    /// Its section; of a scheduler with one lock, under that lock.
    let after = sub!(Section, elevator::call_hook(hook));
    match after {
        After::Nothing => {}
        After::PutToken(token) => {
            // rq_clear_domain_token() of the hook's request.
            let (Hook::Requeued(rq) | Hook::Finished(rq)) = hook else {
                panic!("{:?} is of no request that goes", hook);
            };
            let (queue, owner) = (cx.q.id, cx.pool()[rq].ctx);
            /// The request's token is freed.
            call!(
                TokenBack,
                Call::PutToken {
                    queue,
                    token,
                    owner
                }
            );
        }
        After::RunHctxs => {
            at!(Ran);
            while let Some(hctx) = cx.q.elevator.take_run_of() {
                if wake(cx.q, hctx, cx.cpu) == Woken::Dequeued {
                    cx.kick(hctx, Duration::ZERO);
                }
            }
        }
        After::RunQueues if cx.q.single.is_some() => {
            at!(Ran);
            // kblockd_schedule_work() of a single-queue one.
            cx.kick(HctxId(0), Duration::ZERO);
        }
        After::RunQueues => {
            let (queue, how) = (cx.q.id, RunHow::Background);
            /// The hardware queues were run, in the background; the lock is released.
            call!(Ran, Call::RunQueues { queue, how });
            if elevator::runs_under_lock(cx.q, hook) {
                cx.q.elevator.unlock(cx.cpu);
            }
        }
    }
}

labels! {
    pub enum At in "hook" of call_hook
}

#[cfg(test)]
mod tests;
