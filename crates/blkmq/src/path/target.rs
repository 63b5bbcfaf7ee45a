//! Calls of the target of a mapped queue: a message, the end of an activation, a timer.
//!
//! One critical section of m->lock. Not here: the effect (`dm/multipath/fail.rs`, `init.rs`).
//! Kernel: multipath_message(), activate_path_work(), pg_init_done(),
//! queue_if_no_path_timeout_work() in drivers/md/dm-mpath.c (6.1.192).

use super::map::leave;
use super::wait::wake_up;
use crate::call::{ToTarget, WaitQueue};
use crate::dm::multipath::Multipath;
use crate::env::Answer;
use crate::queue::LockKind;
use crate::step::{Cx, Next, labels};
use steps::steps;

pub use call_target::State as TargetPath;

/// A call of the target of a mapped queue.
#[steps(path)]
pub fn call_target(cx: &mut Cx<'_>, what: ToTarget) {
    /// Asks for m->lock.
    at!(Start);
    /// Under it.
    lock!(Locked, cx.lock(LockKind::Target, 0));
    let next = locked(cx, what);
    /// The work that the target asked for was queued.
    at!(Over, next);
}

labels! {
    pub enum At in "target" of call_target
}

/// Under m->lock, which is released.
fn locked(cx: &mut Cx<'_>, what: ToTarget) -> Next {
    let m = cx.q.own_mapped();
    m.fields.write(cx.cpu);
    let mut state = m.state.held(cx.cpu.id);
    cx.cpu.answer = apply(&mut state.target, what);
    let wakes = leave(cx.q.id, &mut state.target, cx.cpu);
    drop(state);
    m.lock.release(cx.cpu);
    match wakes {
        true => wake_up(cx.cpu, cx.q.id, WaitQueue::Activation),
        false => Next::Step,
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
