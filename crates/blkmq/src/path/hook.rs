//! A hook of a scheduler in progress, and the run of the hardware queues that it may ask for.
//!
//! The hook's own steps are the scheduler's (`elevator/hook.rs`). Its labels do not depend on the
//! caller: a hook costs the same wherever it is called. Kernel: blk_mq_run_hw_queues() (6.1.192,
//! 6.12.117).

use super::run_queues::call_run_queues;
use crate::call::{Call, Hook, RunHow, Token};
use crate::elevator::{After, HookPath};
use crate::env::Cpu;
use crate::names::{Label, labels};
use crate::queue::BlkMq;
use crate::request::{HctxId, QueueId};
use crate::step::{Cx, Next, Sub};
use crate::time::Duration;

labels! {
    pub enum At in "hook" {
        /// The hook is called.
        Enter,
        /// Its section; of a scheduler with one lock, under that lock.
        Section,
        /// The request's token is freed.
        TokenBack,
        /// The hardware queues were run, in the background.
        Ran,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HookFrame {
    at: At,
    pub(super) queue: QueueId,
    hook: Hook,
    path: HookPath,
    kicks: bool,
}

impl HookFrame {
    /// Calls this hook of the queue's scheduler.
    pub fn new(queue: QueueId, hook: Hook) -> HookFrame {
        HookFrame {
            at: At::Enter,
            queue,
            hook,
            path: HookPath::default(),
            kicks: false,
        }
    }

    pub(super) fn label(&self) -> Label {
        match self.at {
            At::Section => self.path.label().unwrap_or(At::Section.label()),
            at => at.label(),
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let q = mq.queue(self.queue);
        assert!(q.has_elevator(), "{:?} of no scheduler", self.at);
    }

    pub(super) fn check_over(&self) {
        assert_ne!(self.at, At::Enter, "the scheduler's hook was not called");
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::Enter => {
                self.path = cx.q.elevator.start_hook();
                self.at = At::Section;
                self.step(cx)
            }
            At::Section => match cx.q.elevator.hook(&mut self.path, self.hook, cx.q, cx.cpu) {
                Sub::Wait(next) => next,
                Sub::Done(After::Nothing) => Next::Done,
                Sub::Done(After::RunQueues) if cx.q.single.is_some() => {
                    self.at = At::Ran;
                    self.kicks = true;
                    Next::Step
                }
                Sub::Done(After::RunQueues) => {
                    self.at = At::Ran;
                    call_run_queues(cx.cpu, self.queue, RunHow::Background)
                }
                Sub::Done(After::PutToken(token)) => self.put_token(cx, token),
            },
            At::TokenBack | At::Ran => {
                if core::mem::take(&mut self.kicks) {
                    // kblockd_schedule_work() of a single-queue one.
                    cx.kick(HctxId(0), Duration::ZERO);
                }
                Next::Done
            }
        }
    }

    /// rq_clear_domain_token() of the hook's request.
    fn put_token(&mut self, cx: &mut Cx<'_>, token: Token) -> Next {
        let (Hook::Requeued(rq) | Hook::Finished(rq)) = self.hook else {
            panic!("{:?} is of no request that goes", self.hook);
        };
        let owner = cx.pool()[rq].ctx;
        self.at = At::TokenBack;
        let queue = self.queue;
        let call = Call::PutToken {
            queue,
            token,
            owner,
        };
        cx.call(call)
    }
}
