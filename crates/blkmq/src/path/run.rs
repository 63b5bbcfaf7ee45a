//! A run of a hardware queue: whether it has work and may run here, and the order of dispatch list,
//! scheduler and software queues.
//!
//! Kernel: blk_mq_run_hw_queue(), __blk_mq_sched_dispatch_requests() (6.1.192, 6.12.117).

mod check;

use super::ctx::CtxPath;
use super::driver::is_stopped;
use super::list::{Dispatched, ListPath};
use super::pass::PassPath;
use super::{OwnedTags, TagStage};
use crate::env::{Cpu, Effect};
use crate::list::QueueList;
use crate::names::{Label, labels};
use crate::queue::{BlkMq, LockKind, RequestQueue};
use crate::request::{HctxId, Place, QueueId, RequestId};
use crate::rules::{AskAfter, BlockingRun, EmptyRun, RestartRule, WokenRun};
use crate::sbitmap::Woken;
use crate::step::{Cx, Next, Sub, lock, set_places};
use crate::time::Duration;

labels! {
    pub enum At in "run" {
        /// blk_mq_hw_queue_need_run(): is the queue quiesced?
        Quiesced,
        /// Before anything is run, blk_mq_hctx_has_pending(): is the dispatch list non-empty?
        HasDispatch,
        /// The same of the software queues: has any ctx of this word requests?
        HasCtx,
        /// The same of the scheduler, blk_mq_sched_has_work().
        HasElevator,
        /// Has another part of the scheduler work?
        HasSide,
        /// Look again under queue_lock (v6.12).
        Recheck,
        /// kblockd is to run it, blk_mq_delay_run_hw_queue(): is the hctx stopped?
        DelayRun,
        /// It runs here, blk_mq_sched_dispatch_requests(): is the hctx stopped?
        Stopped,
        /// Has the queue been quiesced meanwhile?
        StillQuiesced,
        /// The run begins, __blk_mq_sched_dispatch_requests(): is the dispatch list non-empty?
        PeekDispatch,
        /// Under hctx->lock: take the dispatch list.
        TakeDispatch,
        /// blk_mq_sched_mark_restart_hctx(): will a completion run this hctx again?
        MarkRestart,
        /// Set SCHED_RESTART: a completion will.
        SetRestart,
        /// Count the mark (R0, R2, R2').
        CountMark,
        /// Is the hctx busy?
        Busy,
        /// blk_mq_dispatch_rq_list() of the leftovers.
        Leftovers,
        /// blk_mq_do_dispatch_sched().
        Pass,
        /// blk_mq_do_dispatch_ctx(), or blk_mq_flush_busy_ctxs() for all at once.
        Ctx,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RunPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    hctx: HctxId,
    in_background: bool,
    /// The word of ctx_map, or the part of the scheduler, to be read.
    word: u16,
    retry: bool,
    list: ListPath,
    source: Source,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Source {
    None,
    /// `do_dispatch_sched`.
    Sched(PassPath),
    /// `do_dispatch_ctx` or `flush_busy_ctxs`.
    Ctx(CtxPath),
}

impl RunPath {
    /// blk_mq_run_hw_queue(): `in_background` leaves the work to kblockd (`async`).
    pub fn new(queue: QueueId, hctx: HctxId, in_background: bool) -> RunPath {
        RunPath {
            at: At::Quiesced,
            queue,
            hctx,
            in_background,
            word: 0,
            retry: false,
            list: ListPath::idle(),
            source: Source::None,
        }
    }

    /// blk_mq_run_work_fn(): the kblockd work item of an hctx.
    pub fn work(queue: QueueId, hctx: HctxId) -> RunPath {
        RunPath {
            at: At::Stopped,
            ..RunPath::new(queue, hctx, false)
        }
    }

    pub fn hctx(&self) -> HctxId {
        self.hctx
    }

    /// It has passed the check whether a run is needed, and was not left to kblockd: a run that may
    /// dispatch, or after its end one that could have dispatched. A second run that defers to
    /// kblockd also counts as having run.
    pub fn has_run(&self) -> bool {
        let looks = matches!(
            self.at,
            At::Quiesced
                | At::HasDispatch
                | At::HasCtx
                | At::HasElevator
                | At::HasSide
                | At::Recheck
                | At::DelayRun
        );
        self.retry || !looks
    }

    /// It has seen that the queue is not quiesced, and relies on it.
    pub(super) fn in_section(&self) -> bool {
        !matches!(
            self.at,
            At::Quiesced | At::Recheck | At::DelayRun | At::Stopped | At::StillQuiesced
        )
    }

    /// It has seen that the hctx is not stopped, and relies on it.
    pub(super) fn in_stopped_section(&self) -> bool {
        self.at == At::StillQuiesced || self.in_section()
    }

    pub(super) fn tag_stage(&self) -> Option<TagStage> {
        let pulled = match &self.source {
            Source::Sched(pass) => pass.tag_stage(),
            Source::Ctx(_) | Source::None => None,
        };
        self.list.tag_stage().or(pulled)
    }

    pub(super) fn owned_tags(&self) -> Option<OwnedTags> {
        let hctx = match &self.source {
            Source::Sched(pass) => pass.list_hctx(),
            Source::Ctx(_) | Source::None => self.hctx,
        };
        self.list.owned_tag().map(|bit| OwnedTags {
            hctx,
            driver: Some(bit),
            sched: None,
        })
    }

    pub(super) fn has_leftovers(&self) -> bool {
        matches!(
            self.at,
            At::MarkRestart | At::SetRestart | At::CountMark | At::Leftovers
        )
    }

    pub(super) fn picked(&self) -> Option<RequestId> {
        match &self.source {
            Source::Sched(pass) => pass.owned(),
            Source::Ctx(_) | Source::None => None,
        }
    }

    pub(super) fn all_picked(&self) -> QueueList {
        match &self.source {
            Source::Sched(pass) => pass.all_picked(),
            Source::Ctx(_) | Source::None => QueueList::new(),
        }
    }

    pub(super) fn list_state(&self) -> (QueueList, bool, bool) {
        self.list.state()
    }

    pub(super) fn label(&self) -> Label {
        match self.at {
            At::Pass | At::Ctx => match &self.source {
                Source::Sched(pass) if !pass.in_list() => pass.label(),
                Source::Ctx(ctx) if !ctx.in_list() => ctx.at.label(),
                _ => self.list.at.label(),
            },
            At::Leftovers => self.list.at.label(),
            at => at.label(),
        }
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let (mq, cpu) = (cx.mq, &mut *cx.cpu);
        // Most labels of a run are labels of its source.
        if matches!(self.at, At::Pass | At::Ctx) {
            return self.pull(mq, cpu);
        }
        let q = mq.queue(self.queue);
        let hctx = q.hctx(self.hctx);
        match self.at {
            At::Quiesced => match q.quiesced.test(cpu) {
                true => self.nothing(q),
                false => self.to(At::HasDispatch),
            },
            At::HasDispatch => match hctx.dispatch_pending.test(cpu) {
                true => self.here_or_kblockd(q, cpu),
                false if q.has_elevator() => self.to(At::HasElevator),
                false => self.to(At::HasCtx),
            },
            At::HasCtx => {
                let any = hctx.ctx_map[usize::from(self.word)].load(cpu) != 0;
                self.word += 1;
                let last = usize::from(self.word) == hctx.ctx_map.len();
                if any || last {
                    self.word = 0;
                }
                match (any, last) {
                    (true, _) => self.here_or_kblockd(q, cpu),
                    (false, false) => Next::Step,
                    (false, true) => self.nothing(q),
                }
            }
            At::HasElevator | At::HasSide => {
                let place = core::mem::take(&mut self.word);
                match q.elevator.has_work(self.hctx, place, cpu) {
                    true => self.here_or_kblockd(q, cpu),
                    false if place + 1 < q.elevator.work_places(self.hctx, &q.settings.rules) => {
                        self.word = place + 1;
                        self.to(At::HasSide)
                    }
                    false => self.nothing(q),
                }
            }
            At::Recheck => self.recheck(q, cpu),
            At::DelayRun => self.delay_run(q, cpu),
            At::Stopped => match is_stopped(q, hctx, cpu) {
                true => Next::Done,
                false => self.to(At::StillQuiesced),
            },
            At::StillQuiesced => match q.quiesced.test(cpu) {
                true => Next::Done,
                false => self.to(At::PeekDispatch),
            },
            _ => self.body(mq, q, cpu),
        }
    }

    /// __blk_mq_sched_dispatch_requests().
    fn body(&mut self, mq: &BlkMq, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let hctx = q.hctx(self.hctx);
        match self.at {
            At::PeekDispatch => {
                q.dirty_tags_line(self.hctx, cpu);
                if hctx.dispatch_pending.test(cpu) {
                    self.at = At::TakeDispatch;
                    return lock(self.queue, LockKind::Dispatch, u32::from(self.hctx.0));
                }
                if q.has_elevator() {
                    self.start_pass()
                } else {
                    self.to(At::Busy)
                }
            }
            At::TakeDispatch => self.take_dispatch(q, cpu),
            At::MarkRestart => {
                let marked = hctx.restart.test(cpu);
                self.to(if marked {
                    At::Leftovers
                } else {
                    At::SetRestart
                })
            }
            At::SetRestart => {
                let rule = q.settings.rules.restart.rule;
                if rule == RestartRule::Own || !mq.set_of(self.queue).queue_shared() {
                    hctx.restart.set(cpu);
                    return self.to(At::Leftovers);
                }
                let marked = hctx.restart.test_and_set(cpu);
                self.to(match !marked && rule.counts() {
                    true => At::CountMark,
                    false => At::Leftovers,
                })
            }
            At::CountMark => {
                let set = mq.set_of(self.queue);
                match q.settings.rules.restart.rule {
                    RestartRule::SameQueue => q.restarts.write(cpu, 1),
                    RestartRule::MapCount => {
                        set.restarts[set.driver_index(self.hctx)].add(cpu, 1);
                    }
                    _ => q.restarts.add(cpu, 1),
                }
                self.to(At::Leftovers)
            }
            At::Busy => {
                let busy = hctx.dispatch_busy.read(cpu) != 0;
                self.start_ctx(q, !busy)
            }
            At::Leftovers => self.leftovers(mq, cpu),
            at => unreachable!("{at:?} is a label of the entry"),
        }
    }

    /// One step of pulling requests from the scheduler or from the software queues.
    fn pull(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let (queue, hctx, list) = (self.queue, self.hctx, &mut self.list);
        let step = match &mut self.source {
            Source::Sched(pass) => pass.step(list, mq, queue, hctx, cpu),
            Source::Ctx(ctx) => ctx.step(list, mq, queue, hctx, cpu),
            Source::None => unreachable!("something pulls"),
        };
        let eagain = match step {
            Sub::Wait(next) => return next,
            Sub::Done(eagain) => eagain,
        };
        self.source = Source::None;
        match eagain {
            true => self.try_again(),
            false => Next::Done,
        }
    }

    /// The dispatch list filled meanwhile: once more, or in kblockd.
    fn try_again(&mut self) -> Next {
        if self.retry {
            *self = RunPath {
                retry: true,
                ..RunPath::new(self.queue, self.hctx, true)
            };
            return Next::Step;
        }
        self.retry = true;
        self.to(At::PeekDispatch)
    }

    fn leftovers(&mut self, mq: &BlkMq, cpu: &mut Cpu) -> Next {
        let (whole, moved) = match self.list.step(mq, self.queue, self.hctx, cpu) {
            Sub::Wait(next) => return next,
            Sub::Done(Dispatched { whole, moved }) => (whole, moved),
        };
        self.list = ListPath::idle();
        let q = mq.queue(self.queue);
        let asks = match q.settings.rules.restart.ask {
            AskAfter::Never => false,
            AskAfter::NoneIssued => !moved,
            AskAfter::SomeIssued => moved,
            AskAfter::NoneLeft => whole,
        };
        match asks {
            false => Next::Done,
            true if q.has_elevator() => self.start_pass(),
            true => self.start_ctx(q, false),
        }
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn start_pass(&mut self) -> Next {
        self.source = Source::Sched(PassPath::new());
        self.to(At::Pass)
    }

    /// `all` at once, or one after another.
    fn start_ctx(&mut self, q: &RequestQueue, all: bool) -> Next {
        self.source = Source::Ctx(match all {
            true => CtxPath::all(),
            false => CtxPath::one_by_one(q.hctx(self.hctx).dispatch_from.get()),
        });
        self.to(At::Ctx)
    }

    /// Nothing seems pending.
    fn nothing(&mut self, q: &RequestQueue) -> Next {
        match q.settings.rules.empty_run {
            EmptyRun::Return => Next::Done,
            EmptyRun::RecheckUnderQueueLock => {
                self.at = At::Recheck;
                lock(self.queue, LockKind::Queue, 0)
            }
        }
    }

    /// Under queue_lock, which quiescing takes too: the same check once more.
    fn recheck(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let needed = is_needed(q, self.hctx, cpu);
        q.queue_lock.release(cpu);
        if needed {
            self.here_or_kblockd(q, cpu)
        } else {
            Next::Done
        }
    }

    /// There is work: run here, or in kblockd?
    fn here_or_kblockd(&mut self, q: &RequestQueue, cpu: &Cpu) -> Next {
        let here = q.hctx(self.hctx).serves(cpu.id);
        let may_sleep =
            q.settings.blocking && q.settings.rules.blocking_run == BlockingRun::InBackground;
        self.to(match self.in_background || may_sleep || !here {
            true => At::DelayRun,
            false => At::Stopped,
        })
    }

    /// blk_mq_delay_run_hw_queue() without a delay.
    fn delay_run(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        if is_stopped(q, q.hctx(self.hctx), cpu) {
            return Next::Done;
        }
        let (queue, hctx) = (self.queue, self.hctx);
        cpu.outbox.push(Effect::Kick {
            queue,
            hctx,
            delay: Duration::ZERO,
        });
        Next::Done
    }

    fn take_dispatch(&mut self, q: &RequestQueue, cpu: &mut Cpu) -> Next {
        let hctx = q.hctx(self.hctx);
        let taken = core::mem::take(&mut *hctx.dispatch.held(cpu));
        hctx.dispatch_pending.clear(cpu);
        set_places(q, cpu, taken, Place::Path);
        hctx.dispatch.release(cpu);
        if taken.is_empty() {
            // Another run took it first.
            return if q.has_elevator() {
                self.start_pass()
            } else {
                self.to(At::Busy)
            };
        }
        self.list = ListPath::new(taken, true);
        self.to(At::MarkRestart)
    }
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
