//! A hook of a scheduler under way, and the run of the hardware queues that it may ask for.
//!
//! What the hook does is the scheduler's (`elevator/hook.rs`). Whoever calls names no label of it:
//! a hook costs the same wherever it is called. Kernel: blk_mq_run_hw_queues() (6.1.192,
//! 6.12.117).

use super::run::run_one_of_all;
use super::{Call, Label, Next, labels};
use crate::elevator::{After, Hook, HookPath, HookStep, Token};
use crate::env::{Cpu, Env, Slab};
use crate::queue::{BlkMq, RequestQueue};
use crate::request::{HctxId, QueueId};

labels! {
    /// Labels of a hook.
    pub enum At in "hook" {
        /// The hook is called.
        Enter,
        /// What it does; a scheduler behind one lock does it under that.
        Section,
        /// The request's token is back.
        TokenBack,
        /// Run this hctx, if it is the CPU's own or has leftovers, in the background.
        Run,
    }
}

/// A hook of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HookFrame {
    at: At,
    pub(super) queue: QueueId,
    hook: Hook,
    path: HookPath,
    /// The next hctx that may run.
    hctx: HctxId,
}

impl HookFrame {
    /// This hook of the queue's scheduler.
    pub fn new(queue: QueueId, hook: Hook) -> HookFrame {
        HookFrame {
            at: At::Enter,
            queue,
            hook,
            path: HookPath::default(),
            hctx: HctxId(0),
        }
    }

    pub(super) fn label(&self) -> Label {
        match self.at {
            At::Section => self.path.label().unwrap_or(At::Section.label()),
            at => at.label(),
        }
    }

    pub(super) fn check<E: Env>(&self, mq: &BlkMq<E>, _cpu: &Cpu) {
        let (at, hctx) = (self.at, usize::from(self.hctx.0));
        assert!(hctx == 0 || at == At::Run, "{at:?} at another hctx");
        let q = mq.queue(self.queue);
        assert!(q.has_elevator(), "{at:?} of no scheduler");
        assert!(hctx <= q.hctxs.len(), "{at:?} of hctx {hctx}");
    }

    pub(super) fn check_over(&self) {
        assert_ne!(self.at, At::Enter, "the scheduler was not told");
    }

    pub(super) fn step<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        match self.at {
            At::Enter => {
                self.path = q.elevator.start_hook();
                self.at = At::Section;
                self.step(mq, cpu)
            }
            At::Section => match q.elevator.hook(&mut self.path, self.hook, q, cpu) {
                HookStep::Wait(next) => next,
                HookStep::Done(After::Nothing) => Next::Done,
                HookStep::Done(After::RunQueues) => {
                    self.at = At::Run;
                    Next::Step
                }
                HookStep::Done(After::PutToken(token)) => self.put_token(token, q, cpu),
            },
            At::TokenBack => Next::Done,
            At::Run => self.run(mq, cpu),
        }
    }

    /// rq_clear_domain_token() of the request that the hook is about.
    fn put_token<E: Env>(&mut self, token: Token, q: &RequestQueue<E>, cpu: &mut Cpu) -> Next {
        let (Hook::Requeued(rq) | Hook::Finished(rq)) = self.hook else {
            panic!("{:?} is of no request that goes", self.hook);
        };
        let owner = q.pool.held(cpu.id)[rq].ctx;
        self.at = At::TokenBack;
        let queue = self.queue;
        let call = Call::PutToken {
            queue,
            token,
            owner,
        };
        Next::call(cpu, call)
    }

    /// blk_mq_run_hw_queues(): one hctx a label.
    fn run<E: Env>(&mut self, mq: &BlkMq<E>, cpu: &mut Cpu) -> Next {
        let q = mq.queue(self.queue);
        let hctx = self.hctx;
        if usize::from(hctx.0) == q.hctxs.len() {
            return Next::Done;
        }
        self.hctx.0 += 1;
        run_one_of_all(mq, self.queue, hctx, true, cpu)
    }
}
