//! A run of a hardware queue: whether it has work and may run here, and the order of dispatch list,
//! scheduler and software queues.
//!
//! Kernel: blk_mq_run_hw_queue(), __blk_mq_sched_dispatch_requests() (4.5, 4.12, 6.1.192,
//! 6.12.117).

use super::ctx::{do_dispatch_ctx, flush_busy_ctxs};
use super::driver::is_stopped;
use super::list::{Dispatched, dispatch_rq_list};
use super::pass::do_dispatch_sched;
use super::sbitmap::Woken;
use crate::env::Cpu;
use crate::list::QueueList;
use crate::queue::{LockKind, RequestQueue};
use crate::request::{HctxId, Place, QueueId};
use crate::rules::{AskAfter, BlockingRun, EmptyRun, RestartRule, SoftwareQueues, WokenRun};
use crate::step::{Cx, Steps as _, labels};
use crate::time::Duration;
use steps::steps;

pub use run_hw_queue::State as RunPath;

/// blk_mq_run_hw_queue(): `in_background` leaves the work to kblockd (`async`).
#[steps(path, keep(has_run))]
pub fn run_hw_queue(cx: &mut Cx<'_>, hctx: HctxId, in_background: bool) {
    let mut has_run: bool = false;
    loop {
        if !sub!(need_run(hctx)) {
            if cx.rules().empty_run != EmptyRun::RecheckUnderQueueLock {
                return;
            }
            /// Look again under queue_lock, which quiescing takes too (v6.12).
            lock!(Recheck, cx.lock(LockKind::Queue, 0));
            let needed = is_needed(cx.q, hctx, cx.cpu);
            cx.q.queue_lock.release(cx.cpu);
            if !needed {
                return;
            }
        }
        let may_sleep =
            cx.q.settings.blocking && cx.rules().blocking_run == BlockingRun::InBackground;
        if has_run || in_background || may_sleep || !cx.hctx(hctx).serves(cx.cpu.id) {
            /// kblockd is to run it, blk_mq_delay_run_hw_queue(): is the hctx stopped?
            at!(DelayRun);
            if !is_stopped(cx.q, cx.hctx(hctx), cx.cpu) {
                cx.kick(hctx, Duration::ZERO);
            }
            return;
        }
        if !sub!(sched_dispatch_requests(hctx)) {
            return;
        }
        has_run = true;
    }
}

/// blk_mq_hw_queue_need_run().
#[steps(inline)]
fn need_run(cx: &mut Cx<'_>, hctx: HctxId) -> bool {
    /// Is the queue quiesced?
    at!(Quiesced);
    if cx.q.quiesced.test(cx.cpu) {
        return false;
    }
    if cx.rules().empty_run == EmptyRun::Unseen {
        return true;
    }
    sub!(has_pending(hctx))
}

/// blk_mq_hctx_has_pending().
#[steps(inline)]
pub(super) fn has_pending(cx: &mut Cx<'_>, hctx: HctxId) -> bool {
    /// Is the dispatch list non-empty?
    at!(HasDispatch);
    if cx.hctx(hctx).dispatch_pending.test(cx.cpu) {
        return true;
    }
    if !cx.q.has_elevator() {
        let mut word: u16 = 0;
        /// Has any software queue of this word requests?
        at!(HasCtx);
        while cx.hctx(hctx).ctx_map[usize::from(word)].load(cx.cpu) == 0 {
            word += 1;
            if usize::from(word) == cx.hctx(hctx).ctx_map.len() {
                return false;
            }
            at!(HasCtx);
        }
        return true;
    }
    /// blk_mq_sched_has_work(): has the scheduler?
    at!(HasElevator);
    let mut place: u16 = 0;
    while !cx.q.elevator.has_work(hctx, place, cx.cpu) {
        place += 1;
        if place >= cx.q.elevator.work_places(hctx, cx.rules()) {
            return false;
        }
        /// Has another part of the scheduler work?
        at!(HasSide);
    }
    true
}

/// blk_mq_sched_dispatch_requests(). True: something landed on the dispatch list twice, which is
/// left to kblockd.
#[steps(inline)]
pub(super) fn sched_dispatch_requests(cx: &mut Cx<'_>, hctx: HctxId) -> bool {
    /// It runs here: is the hctx stopped?
    at!(Stopped);
    if is_stopped(cx.q, cx.hctx(hctx), cx.cpu) {
        return false;
    }
    /// Has the queue been quiesced meanwhile?
    at!(StillQuiesced);
    if cx.q.quiesced.test(cx.cpu) {
        return false;
    }
    let as_one = cx.rules().restart.software_queues == SoftwareQueues::WithDispatchList;
    if as_one && !cx.q.has_elevator() {
        sub!(dispatch_as_one_list(hctx));
        return false;
    }
    if !sub!(dispatch_requests(hctx)) {
        return false;
    }
    sub!(dispatch_requests(hctx))
}

/// __blk_mq_run_hw_queue() up to v4.10: all software queues, after the dispatch list.
#[steps]
pub(super) fn dispatch_as_one_list(cx: &mut Cx<'_>, hctx: HctxId) {
    let mut list: QueueList = sub!(flush_busy_ctxs(hctx));
    at!(PeekDispatch);
    if cx.hctx(hctx).dispatch_pending.test(cx.cpu) {
        lock!(TakeDispatch, cx.lock(LockKind::Dispatch, u32::from(hctx.0)));
        let mut leftovers = take_dispatch(cx, hctx);
        list.splice_front(&mut cx.pool(), &mut leftovers);
    }
    if !list.is_empty() {
        sub!(dispatch_rq_list(hctx, list, true, None));
    }
}

/// __blk_mq_sched_dispatch_requests(). True for -EAGAIN.
#[steps(inline)]
pub(super) fn dispatch_requests(cx: &mut Cx<'_>, hctx: HctxId) -> bool {
    /// The run begins: is the dispatch list non-empty?
    at!(PeekDispatch);
    cx.q.dirty_tags_line(hctx, cx.cpu);
    let mut list: QueueList = QueueList::new();
    if cx.hctx(hctx).dispatch_pending.test(cx.cpu) {
        /// Take the dispatch list.
        lock!(TakeDispatch, cx.lock(LockKind::Dispatch, u32::from(hctx.0)));
        list = take_dispatch(cx, hctx);
    }
    // None as well where another run took them first.
    let leftovers: bool = !list.is_empty();
    if leftovers {
        sub!(mark_restart(hctx));
        let Dispatched { whole, moved } = sub!(dispatch_rq_list(hctx, list, true, None));
        let asks = match cx.rules().restart.ask {
            AskAfter::Never => false,
            AskAfter::NoneIssued => !moved,
            AskAfter::SomeIssued => moved,
            AskAfter::NoneLeft => whole,
        };
        if !asks {
            return false;
        }
    }
    if cx.q.has_elevator() {
        return sub!(do_dispatch_sched(hctx));
    }
    if !leftovers {
        /// Is the hctx busy?
        at!(Busy);
        // Never where the average is not kept.
        if cx.hctx(hctx).dispatch_busy.read(cx.cpu) == 0 {
            list = sub!(flush_busy_ctxs(hctx));
            if !list.is_empty() {
                sub!(dispatch_rq_list(hctx, list, true, None));
            }
            return false;
        }
    } else if cx.rules().restart.software_queues != SoftwareQueues::OneByOneIfBusy {
        return false;
    }
    sub!(do_dispatch_ctx(hctx))
}

/// blk_mq_sched_mark_restart_hctx(): a completion is to run this hctx again.
#[steps(inline)]
pub(super) fn mark_restart(cx: &mut Cx<'_>, hctx: HctxId) {
    /// Will a completion run this hctx again?
    at!(MarkRestart);
    if cx.hctx(hctx).restart.test(cx.cpu) {
        return;
    }
    /// Set SCHED_RESTART: a completion will.
    at!(SetRestart);
    let rule = cx.rules().restart.rule;
    if rule == RestartRule::Own || !cx.set().queue_shared() {
        cx.hctx(hctx).restart.set(cx.cpu);
    } else if !cx.hctx(hctx).restart.test_and_set(cx.cpu) && rule.counts() {
        /// Count the mark (R0, R2, R2').
        at!(CountMark);
        match cx.rules().restart.rule {
            RestartRule::SameQueue => cx.q.restarts.write(cx.cpu, 1),
            RestartRule::MapCount => {
                let set = cx.set();
                set.restarts[set.driver_index(hctx)].add(cx.cpu, 1);
            }
            _ => cx.q.restarts.add(cx.cpu, 1),
        }
    }
}

labels! {
    pub enum At in "run" of
        run_hw_queue need_run has_pending sched_dispatch_requests dispatch_requests mark_restart
        dispatch_as_one_list
}

/// Under hctx->lock.
fn take_dispatch(cx: &mut Cx<'_>, hctx: HctxId) -> QueueList {
    let hctx = cx.hctx(hctx);
    let taken = core::mem::take(&mut *hctx.dispatch.held(cx.cpu));
    hctx.dispatch_pending.clear(cx.cpu);
    cx.set_places(taken, Place::Path);
    hctx.dispatch.release(cx.cpu);
    taken
}

/// blk_mq_hw_queue_need_run() where a lock is held anyway.
///
/// Deviation(D12): its words are read as one step, though the lock guards none of them.
fn is_needed(q: &RequestQueue, id: HctxId, cpu: &mut Cpu) -> bool {
    let hctx = q.hctx(id);
    let quiesced = q.quiesced.test(cpu);
    let mut pending = hctx.dispatch_pending.test(cpu);
    let places = q.elevator.work_places(id, &q.settings.rules);
    pending = pending || (0..places).any(|place| q.elevator.has_work(id, place, cpu));
    let mut words = hctx.ctx_map.iter();
    pending = pending || words.any(|word| word.load(cpu) != 0);
    pending && !quiesced
}

/// blk_mq_run_hw_queue() of an hctx that leaves a wait queue, under that queue's lock
/// (blk_mq_dispatch_wake(), kyber_domain_wake()): whether kblockd is to run it.
pub(super) fn wake(q: &RequestQueue, hctx: HctxId, cpu: &mut Cpu) -> Woken {
    let runs = match q.settings.rules.restart.woken {
        WokenRun::Always => true,
        WokenRun::IfNeeded => is_needed(q, hctx, cpu) && !is_stopped(q, q.hctx(hctx), cpu),
    };
    match runs {
        true => Woken::Dequeued,
        false => Woken::Idle,
    }
}

impl RunPath {
    /// blk_mq_run_work_fn(): the kblockd work item of an hctx.
    pub fn work(queue: QueueId, hctx: HctxId) -> RunPath {
        let runs = sched_dispatch_requests::State::first(hctx);
        RunPath::inside_sched_dispatch_requests(queue, hctx, false, runs)
    }

    pub fn hctx(&self) -> HctxId {
        self.hctx
    }

    /// It has passed the check whether a run is needed, and was not left to kblockd: a run that may
    /// dispatch, or after its end one that could have dispatched. A second run that defers to
    /// kblockd also counts as having run.
    pub fn has_run(&self) -> bool {
        self.has_run || self.find::<sched_dispatch_requests::State>().is_some()
    }

    /// It has seen that the queue is not quiesced, and relies on it.
    pub(super) fn in_section(&self) -> bool {
        self.in_stopped_section() && !self.is_at(At::StillQuiesced)
    }

    /// It has seen that the hctx is not stopped, and relies on it.
    pub(super) fn in_stopped_section(&self) -> bool {
        let outside = [At::Quiesced, At::Recheck, At::DelayRun, At::Stopped];
        !outside.into_iter().any(|at| self.is_at(at))
    }

    fn is_at(&self, at: At) -> bool {
        self.label() == Some(at.label())
    }
}
