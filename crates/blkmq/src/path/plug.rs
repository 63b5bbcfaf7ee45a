//! A task's plug and its flush; direct issue of requests of a queue without scheduler.
//!
//! Kernel: __blk_flush_plug() in block/blk-core.c, blk_mq_flush_plug_list(),
//! blk_mq_try_issue_directly() and the functions between them in block/blk-mq.c (6.1.192,
//! 6.12.117).

mod list;

use super::driver::is_stopped;
use super::insert::insert_ctx;
use super::list::{busy_after, requeue_bookkeeping};
use super::tag::{self, get_driver_tag};
use super::wait::wake_all;
use crate::call::{Call, Inserts, ThenRun, Unplug};
use crate::elevator::{OwnedByInsert, insert_requests};
use crate::env::{Answer, TraceAction};
use crate::list::QueueList;
use crate::not_state::NotState;
use crate::plug::PlugList;
use crate::queue::LockKind;
use crate::request::{HctxId, Place, Plugged, QueueId, RequestId, Status};
use crate::rules::{
    DirectIssue, DirectUnplug, Fix, LastHint, PlugOrder, PlugRun, PlugSeveral, StarvedIssue,
    StoppedIssue, UnplugLetters,
};
use crate::step::{Cx, Label, Next, Steps as _, labels};
use steps::steps;

pub use flush_plug::State as PlugPath;
pub use try_issue_directly::State as IssuePath;

/// BLK_PLUG_FLUSH_SIZE in sectors.
pub(super) const PLUG_FLUSH_SECTORS: u32 = 131_072 / 512;

/// __blk_flush_plug() of the running task's plug: the list, then cached requests. In the middle of
/// a plug, blk_mq_flush_plug_list() alone.
#[steps(path, turns)]
pub fn flush_plug(cx: &mut Cx<'_>, why: Unplug) {
    /// Take the list; choose the kind of issue.
    at!(Take);
    sub!(flush_plug_list(why == Unplug::Schedule));
    // blk_mq_free_plug_rqs(): cached requests that were not used.
    while why != Unplug::Full && !cx.cpu.plug.cached.is_empty() {
        turn_to(cx, cx.cpu.plug.cached_queue);
        let rq = cx.cpu.plug.cached.pop_front(&mut cx.pool());
        let (queue, rq) = (cx.q.id, rq.expect("there was one"));
        /// Free cached requests.
        call!(Cached, Call::Free { queue, rq });
    }
    // In the middle of a plug blk_add_rq_to_plug() does that.
    cx.cpu.plug.clock = NotState(None);
}

/// blk_mq_flush_plug_list().
#[steps]
fn flush_plug_list(cx: &mut Cx<'_>, from_schedule: bool) {
    let mut rest: PlugList = core::mem::take(&mut cx.cpu.plug.list);
    let Some(first) = rest.first() else {
        return;
    };
    turn_to(cx, first.queue);
    set_places(cx, rest);
    if cx.rules().plug_order == PlugOrder::Sorted {
        rest.sort(cx.mq, cx.cpu.id);
        turn_to(cx, rest.first().expect("it has one").queue);
    }
    let plug = &cx.cpu.plug;
    let old = cx.rules().direct_issue != DirectIssue::UnlessBusy;
    let several = plug.multiple_queues && cx.rules().plug_several == PlugSeveral::ByCtx;
    let direct: bool = !(old || several || plug.has_elevator || from_schedule);
    let mut others: PlugList = PlugList::default();
    loop {
        if direct {
            if cx.cpu.plug.multiple_queues {
                others = other_queues(cx, &mut rest);
            }
            if cx.rules().direct_unplug == DirectUnplug::Traced {
                cx.trace_count(TraceAction::Unplug, rest.len() as u64);
            }
            if cx.q.settings.driver_queue_rqs {
                rest = sub!(queue_rqs(rest));
                if !rest.is_empty() {
                    at!(Next);
                    rest = sub!(plug_issue_direct(rest));
                }
            } else {
                rest = sub!(plug_issue_direct(rest));
            }
            at!(Group);
        }
        while !rest.is_empty() {
            rest = sub!(dispatch_plug_list(rest, from_schedule));
        }
        rest = others;
        let Some(first) = rest.first() else {
            return;
        };
        turn_to(cx, first.queue);
    }
}

/// __blk_mq_flush_plug_list(): the driver is offered a whole plug, one request after another,
/// whatever it answers to each (null_queue_rqs(), nvme_queue_rqs()). Returns the requests that it
/// refused, which are issued directly afterwards.
///
/// A stack comes newest first (v6.1). The driver may reorder requests of one hctx that follow each
/// other: NVMe reverses them again before the drive sees them.
#[steps]
fn queue_rqs(cx: &mut Cx<'_>, mut rest: PlugList) -> PlugList {
    /// queue_rqs: is the queue quiesced? If not, offer the first request.
    at!(WholeQuiesced);
    if cx.q.quiesced.test(cx.cpu) {
        return rest;
    }
    let mut refused: QueueList = QueueList::new();
    while let Some(Plugged { rq, .. }) = rest.pop_front(cx.mq, cx.cpu.id) {
        let rq: RequestId = rq;
        // `last` (NVMe: the doorbell) where no more of its hctx follows at once.
        let last = ends_run(cx, rest, rq);
        /// queue_rqs: the driver's answer. Then offer the next request.
        let answer = ask!(WholeAnswer, Next::offer(rq, last));
        if answer != Answer::Ok {
            // A refusal is neither counted nor traced: the core will offer the request again.
            refused.push_back(&mut cx.pool(), rq);
            if cx.q.settings.driver_commit_rqs && ends_run(cx, rest, rq) {
                let hctx = cx.pool()[rq].hctx;
                /// queue_rqs: the driver was notified that no more of the hctx follows. Offer the
                /// next request.
                ask!(WholeRung, Next::commit(hctx));
            }
        }
    }
    let queue = cx.q.id;
    while !refused.is_empty() {
        let rq = refused.pop_front(&mut cx.pool());
        let rq = rq.expect("it is not empty");
        rest.push_back(cx.mq, cx.cpu.id, Plugged { queue, rq });
    }
    rest
}

/// blk_mq_dispatch_plug_list(): all requests of one hctx and ctx, oldest first; the group of the
/// newest request first where the plug is a stack. The others keep their order: returns them.
#[steps]
fn dispatch_plug_list(cx: &mut Cx<'_>, mut rest: PlugList, from_schedule: bool) -> PlugList {
    let lead = rest.first().expect("the plug is not empty");
    turn_to(cx, lead.queue);
    let group = gather(cx, &mut rest, lead);
    let hctx: HctxId = cx.pool()[lead.rq].hctx;
    // percpu_ref_get() around the insertion and its run.
    cx.pool().usage.get(1);
    let exchanged = cx.rules().unplug_letters == UnplugLetters::Exchanged;
    let action = match from_schedule != exchanged {
        true => TraceAction::UnplugTimer,
        false => TraceAction::Unplug,
    };
    cx.trace_count(action, group.len() as u64);
    if cx.q.has_elevator() {
        /// The scheduler's insert_requests: its section, where that has no name of its own.
        if sub!(Elevator, insert_requests(group, false)) {
            at!(Run);
        }
        sub!(run_group(hctx, from_schedule));
    } else {
        sub!(insert_group(hctx, group, from_schedule));
    }
    if cx.pool().usage.exit() {
        /// Collect the next group of one hctx and ctx.
        ask!(Group, wake_all(cx.cpu, cx.q.id));
    }
    rest
}

/// blk_mq_insert_requests(), or a part of blk_mq_sched_insert_requests() (v6.1): of a queue without
/// scheduler.
#[steps]
fn insert_group(cx: &mut Cx<'_>, hctx: HctxId, mut list: QueueList, from_schedule: bool) {
    let mut in_background: bool = from_schedule;
    if cx.rules().direct_issue == DirectIssue::UnlessBusy {
        /// Is the hctx busy?
        at!(Busy);
        if cx.hctx(hctx).dispatch_busy.read(cx.cpu) == 0 && !from_schedule {
            list = sub!(try_issue_list_directly(hctx, list));
            if list.is_empty() && cx.rules().plug_run == PlugRun::IfInserted {
                at!(Group);
                return;
            }
        }
    }
    if let Some(first) = list.first() {
        let ctx = cx.pool()[first].ctx;
        /// Under ctx->lock: insert the requests that could not be issued.
        lock!(Ctx, cx.lock(LockKind::Ctx, u32::from(ctx.0)));
        let pool = cx.pool();
        let nowait = list.iter(&pool).any(|rq| pool[rq].flags.nowait);
        drop(pool);
        in_background = from_schedule || nowait && cx.rules().plug_run == PlugRun::Always;
        insert_ctx(cx, &mut list, false);
    }
    /// Run the group's hctx.
    at!(Run);
    sub!(run_group(hctx, in_background));
}

/// blk_mq_run_hw_queue() of a group.
#[steps]
fn run_group(cx: &mut Cx<'_>, hctx: HctxId, in_background: bool) {
    call!(Group, Call::run(cx.q.id, hctx, in_background));
}

/// What became of a request that was issued directly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Issued {
    Taken,
    /// The queue was stopped or quiesced: it was inserted, and counts as issued.
    Inserted,
    /// No budget or no tag.
    NoResource,
    /// BLK_STS_RESOURCE or BLK_STS_DEV_RESOURCE.
    Refused,
    /// An error: the request ends with it.
    Failed(Status),
}

/// blk_mq_issue_direct() of blk_mq_plug_issue_direct(): the whole plug, or the requests that
/// queue_rqs left. Returns those that were not tried.
#[steps]
fn plug_issue_direct(cx: &mut Cx<'_>, mut rest: PlugList) -> PlugList {
    let mut hctx: HctxId = HctxId(0);
    let mut queued: u32 = 0;
    let mut failed: bool = false;
    loop {
        let Some(Plugged { rq, .. }) = rest.first() else {
            at!(Issued);
            break;
        };
        let rq: RequestId = rq;
        let elsewhere = cx.pool()[rq].hctx != hctx;
        if elsewhere && queued > 0 && cx.q.settings.driver_commit_rqs {
            // The driver was notified that more of the last hctx will come.
            cx.trace_count(TraceAction::Unplug, u64::from(queued));
            queued = 0;
            ask!(Next, Next::commit(hctx));
        }
        hctx = cx.pool()[rq].hctx;
        rest.pop_front(cx.mq, cx.cpu.id);
        match sub!(request_issue_directly(hctx, rq, rest.is_empty())) {
            Issued::Taken => {
                queued += 1;
                failed &= cx.rules().last_hint == LastHint::TagAhead;
            }
            Issued::Inserted => queued += 1,
            Issued::Failed(status) => {
                failed = true;
                let queue = cx.q.id;
                call!(Next, Call::End { queue, rq, status });
            }
            Issued::NoResource | Issued::Refused => {
                failed = true;
                let runs = rest.is_empty() || cx.rules().fixes.has(Fix::RefusedRun);
                sub!(refuse(hctx, rq, runs));
                break;
            }
        }
    }
    // v6.1 calls commit_rqs even if no request was queued.
    let speaks = queued > 0 || cx.rules().last_hint == LastHint::TagAhead;
    if failed && speaks && cx.q.settings.driver_commit_rqs {
        cx.trace_count(TraceAction::Unplug, u64::from(queued));
        ask!(Issued, Next::commit(hctx));
    }
    rest
}

/// blk_mq_try_issue_list_directly(): one group. Returns those that were not tried, which are
/// inserted as any others.
#[steps]
fn try_issue_list_directly(cx: &mut Cx<'_>, hctx: HctxId, mut list: QueueList) -> QueueList {
    let mut queued: u32 = 0;
    let mut failed: bool = false;
    at!(Next);
    loop {
        let Some(rq) = list.pop_front(&mut cx.pool()) else {
            at!(Issued);
            break;
        };
        let rq: RequestId = rq;
        match sub!(request_issue_directly(hctx, rq, list.is_empty())) {
            Issued::Taken => {
                queued += 1;
                failed &= cx.rules().last_hint == LastHint::TagAhead;
            }
            Issued::Inserted => queued += 1,
            Issued::Failed(status) => {
                failed = true;
                let queue = cx.q.id;
                call!(Next, Call::End { queue, rq, status });
            }
            Issued::NoResource | Issued::Refused => {
                failed = true;
                // If more of the group is left, the run after their insertion does that.
                sub!(refuse(hctx, rq, list.is_empty()));
                break;
            }
        }
    }
    if failed && queued > 0 && cx.q.settings.driver_commit_rqs {
        if cx.rules().last_hint == LastHint::ListEmpty {
            cx.trace_count(TraceAction::Unplug, u64::from(queued));
        }
        ask!(Issued, Next::commit(hctx));
    }
    list
}

/// blk_mq_try_issue_directly(): one request without plug.
#[steps(path)]
pub fn try_issue_directly(cx: &mut Cx<'_>, rq: RequestId) {
    /// Direct issue: next request.
    at!(Next);
    let hctx: HctxId = cx.pool()[rq].hctx;
    match sub!(request_issue_directly(hctx, rq, true)) {
        Issued::Taken | Issued::Inserted => {}
        Issued::NoResource => {
            let nowait = cx.pool()[rq].flags.nowait;
            let run = match cx.rules().starved_issue {
                StarvedIssue::NowaitInBackground if nowait => ThenRun::Background,
                _ => ThenRun::Here,
            };
            call!(Next, Call::Insert(Inserts::new(cx.q.id, rq, false, run)));
        }
        Issued::Failed(status) => {
            let queue = cx.q.id;
            call!(Next, Call::End { queue, rq, status });
        }
        Issued::Refused if cx.rules().direct_issue == DirectIssue::UnlessBusy => {
            sub!(refuse(hctx, rq, true));
            return;
        }
        Issued::Refused => {
            let run = match cx.rules().direct_issue {
                DirectIssue::OfSeveral => ThenRun::Background,
                _ => ThenRun::Here,
            };
            call!(Next, Call::Insert(Inserts::new(cx.q.id, rq, false, run)));
        }
    }
    at!(Issued);
}

/// A refused request keeps its driver tag and waits on the dispatch list; `runs`: the hctx is run
/// for it.
#[steps]
fn refuse(cx: &mut Cx<'_>, hctx: HctxId, rq: RequestId, runs: bool) {
    let queue = cx.q.id;
    let to_tail = Inserts::bypass(queue, rq, false, ThenRun::No);
    /// Run the hctx whose dispatch list has the refused request.
    call!(Refused, Call::Insert(to_tail));
    if runs {
        /// Direct issue has ended.
        call!(Issued, Call::run(cx.q.id, hctx, false));
    } else {
        at!(Issued);
    }
}

/// blk_mq_request_issue_directly(); `last`: no other follows.
#[steps]
fn request_issue_directly(cx: &mut Cx<'_>, hctx: HctxId, rq: RequestId, last: bool) -> Issued {
    /// Is its hctx stopped?
    at!(Stopped);
    let seen = cx.rules().stopped_issue != StoppedIssue::Unseen;
    if is_stopped(cx.q, cx.hctx(hctx), cx.cpu) && seen {
        call!(Next, Call::Insert(Inserts::insert_stopped(cx.q, rq)));
        return Issued::Inserted;
    }
    /// Is the queue quiesced? If not, and it has its tag, offer it.
    at!(Quiesced);
    if cx.q.quiesced.test(cx.cpu) {
        call!(Next, Call::Insert(Inserts::insert_stopped(cx.q, rq)));
        return Issued::Inserted;
    }
    // blk_mq_get_budget_and_tag()
    if cx.q.settings.driver_budget {
        /// Was there a budget?
        let Answer::Budget(token) = ask!(Budget, Next::Budget) else {
            return Issued::NoResource;
        };
        cx.pool()[rq].budget = Some(token);
    }
    if tag::wants_driver_tag(&cx.pool()[rq]) {
        /// Take a driver tag, then offer it.
        at!(Tag);
        if !sub!(Tag, get_driver_tag(rq, hctx)) {
            let token = cx.pool()[rq].budget.take();
            /// Release the budget.
            ask!(NoTag, token.map_or(Next::Step, Next::PutBudget));
            return Issued::NoResource;
        }
    }
    // __blk_mq_issue_directly()
    /// The driver's answer. Read the moving average.
    let answer: Answer = ask!(Answer, Next::offer(rq, last));
    // blk_mq_update_dispatch_busy(): before anything else.
    let refused = !matches!(answer, Answer::Ok | Answer::Error(_));
    if let Some(busy) = busy_after(cx, hctx, refused) {
        let busy: i32 = busy;
        /// Write the moving average.
        at!(BusyWrite);
        cx.hctx(hctx).dispatch_busy.write(cx.cpu, busy);
    }
    match answer {
        Answer::Ok => Issued::Taken,
        Answer::Error(status) => Issued::Failed(status),
        _ => {
            let mut pool = cx.pool();
            pool[rq].budget = None;
            requeue_bookkeeping(&mut pool, rq);
            drop(pool);
            cx.trace_rq(TraceAction::Requeue, rq);
            Issued::Refused
        }
    }
}

labels! {
    pub enum At in "plug" of
        flush_plug dispatch_plug_list insert_group queue_rqs try_issue_directly
        request_issue_directly refuse
}

/// Goes on with requests of this queue.
fn turn_to(cx: &mut Cx<'_>, queue: QueueId) {
    cx.q = cx.mq.queue(queue);
}

/// They are in the plug no more.
fn set_places(cx: &Cx<'_>, list: PlugList) {
    let mut next = list.first();
    while let Some(entry) = next {
        let mut pool = cx.mq.queue(entry.queue).pool.held(cx.cpu.id);
        pool[entry.rq].place = Place::Path;
        next = pool.next_plugged(entry.rq);
    }
}

/// The next request, if there is one, is of another hctx than `rq`.
fn ends_run(cx: &Cx<'_>, rest: PlugList, rq: RequestId) -> bool {
    let pool = cx.pool();
    let next = rest.first();
    next.is_none_or(|next| pool[next.rq].hctx != pool[rq].hctx)
}

/// Moves the requests of other queues than the first one's out of the rest
/// (blk_mq_extract_queue_requests()).
fn other_queues(cx: &Cx<'_>, rest: &mut PlugList) -> PlugList {
    let (mut own, mut others) = (PlugList::default(), PlugList::default());
    while let Some(entry) = rest.pop_front(cx.mq, cx.cpu.id) {
        let list = match entry.queue == cx.q.id {
            true => &mut own,
            false => &mut others,
        };
        list.push_back(cx.mq, cx.cpu.id, entry);
    }
    *rest = own;
    others
}

/// Moves the requests that are issued with `lead` out of the rest.
fn gather(cx: &Cx<'_>, rest: &mut PlugList, lead: Plugged) -> QueueList {
    let cpu = cx.cpu.id;
    let key = {
        let pool = cx.pool();
        (pool[lead.rq].hctx, pool[lead.rq].ctx)
    };
    let (mut group, mut others) = (QueueList::new(), PlugList::default());
    while let Some(entry) = rest.pop_front(cx.mq, cpu) {
        let mut pool = cx.pool();
        let same = entry.queue == lead.queue && (pool[entry.rq].hctx, pool[entry.rq].ctx) == key;
        if !same {
            drop(pool);
            others.push_back(cx.mq, cpu, entry);
            continue;
        }
        match cx.rules().plug_order {
            PlugOrder::Lifo => group.push_front(&mut pool, entry.rq),
            PlugOrder::Fifo | PlugOrder::Sorted => group.push_back(&mut pool, entry.rq),
        }
    }
    *rest = others;
    group
}

/// At this label a path has seen that the hctx is not stopped, and relies on it.
fn is_in_section(label: Option<Label>) -> bool {
    let inside = [At::Quiesced, At::Budget, At::Tag, At::NoTag, At::Answer];
    inside.into_iter().any(|at| Some(at.label()) == label)
}

impl IssuePath {
    /// It has not looked at its request yet.
    pub fn begins(&self) -> bool {
        self.label() == Some(At::Next.label())
    }

    pub(super) fn in_section(&self) -> bool {
        is_in_section(self.label())
    }
}

impl PlugPath {
    pub(super) fn in_section(&self) -> bool {
        is_in_section(self.label())
    }

    /// It offers a whole plug: the driver takes a request together with those that follow, up to
    /// `last`.
    pub fn offers_whole(&self) -> bool {
        self.label() == Some(At::WholeAnswer.label())
    }

    /// No request follows the current one.
    pub fn is_last(&self) -> bool {
        let flush = self.find::<flush_plug_list::State>();
        let whole = self.find::<queue_rqs::State>();
        let direct = self.find::<plug_issue_direct::State>();
        let groups = self.find::<dispatch_plug_list::State>();
        let rests = [
            flush.map(|state| state.rest),
            flush.map(|state| state.others),
            whole.map(|state| state.rest),
            direct.map(|state| state.rest),
            groups.map(|state| state.rest),
        ];
        let mut rests = rests.into_iter().flatten();
        rests.all(|rest| rest.is_empty()) && self.owned().list.is_empty()
    }

    /// The requests that it inserts now; else those of the group, or those that queue_rqs refused.
    pub(super) fn owned(&self) -> OwnedByInsert {
        if let Some(insertion) = self.find::<insert_requests::State>() {
            return insertion.owned();
        }
        let whole = self.find::<queue_rqs::State>();
        let group = self.find::<insert_group::State>();
        let direct = self.find::<try_issue_list_directly::State>();
        let lists = [
            whole.map(|state| state.refused),
            group.map(|state| state.list),
            direct.map(|state| state.list),
        ];
        OwnedByInsert {
            list: lists
                .into_iter()
                .flatten()
                .find(|list| !list.is_empty())
                .unwrap_or_default(),
            seq: 0,
            bucket: 0,
            filled: false,
        }
    }
}
