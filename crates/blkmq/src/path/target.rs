//! Calls of the target of a mapped queue: a message, the end of an activation, a timer.
//!
//! One critical section of m->lock. Not here: the effect (`dm/multipath/fail.rs`, `init.rs`).
//! Kernel: multipath_message(), activate_path_work(), pg_init_done(),
//! queue_if_no_path_timeout_work() in drivers/md/dm-mpath.c (6.1.192).

use super::map::leave;
use super::wait::wake_up;
use crate::call::{ToTarget, WaitQueue};
use crate::dm::multipath::Multipath;
use crate::env::{Answer, Cpu};
use crate::names::labels;
use crate::queue::{BlkMq, LockKind};
use crate::request::QueueId;
use crate::step::{Cx, Next};

labels! {
    pub enum At in "target" {
        /// Asks for m->lock.
        Start,
        /// Under it.
        Locked,
        /// The work that the target asked for was queued.
        Over,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TargetPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    what: ToTarget,
}

impl TargetPath {
    pub fn new(queue: QueueId, what: ToTarget) -> TargetPath {
        TargetPath {
            at: At::Start,
            queue,
            what,
        }
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let m = cx.q.mapped.as_ref();
        let m = m.expect("the queue is mapped");
        match self.at {
            At::Start => {
                self.at = At::Locked;
                cx.lock(LockKind::Target, 0)
            }
            At::Locked => {
                m.fields.write(cx.cpu);
                let mut state = m.state.held(cx.cpu.id);
                cx.cpu.answer = apply(&mut state.target, self.what);
                let wakes = leave(self.queue, &mut state.target, cx.cpu);
                drop(state);
                m.lock.release(cx.cpu);
                self.at = At::Over;
                match wakes {
                    true => wake_up(cx.cpu, self.queue, WaitQueue::Activation),
                    false => Next::Step,
                }
            }
            At::Over => Next::Done,
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let mapped = mq.queue(self.queue).mapped.is_some();
        assert!(mapped, "queue {} has a target", self.queue);
    }

    pub(super) fn check_over(&self) {
        assert_eq!(self.at, At::Over, "it is not over");
    }
}

/// [`Answer::GoOn`]: the device of a path must be activated now, or activations must be waited for.
fn apply(target: &mut Multipath, what: ToTarget) -> Answer {
    let more = |more: bool| match more {
        true => Answer::GoOn,
        false => Answer::None,
    };
    match what {
        ToTarget::Message(what) => {
            if !target.message(what) {
                return Answer::Resource;
            }
        }
        ToTarget::Activate(path) => return more(target.begin_activation(path)),
        ToTarget::Activated(path, result) => target.init_done(path, result),
        ToTarget::TimerExpires => target.timer_expires(),
        ToTarget::Suspend { noflush } => target.suspend(noflush),
        ToTarget::Suspended => target.suspended(),
        ToTarget::StopActivations => return more(target.stop_initialising()),
        ToTarget::AllowActivations => target.may_initialise(),
        ToTarget::Resume => target.resume(),
    }
    Answer::None
}
