//! What every path works with: its request to the driver ([`Next`]), outcomes of its parts
//! ([`Sub`]), calls of other paths, and trace points.
//!
//! Below the paths and the schedulers, which use it; it knows none of them.

#[cfg(mutants)]
mod mutant;
pub(crate) mod probe;

use core::hint::cold_path;
use core::ops::DerefMut;

use crate::call::Call;
use crate::env::{Cpu, Effect, TraceAction, TraceMsg, TracePoint, TracedRequest, mb};
use crate::list::QueueList;
pub(crate) use crate::names::{Label, labels};
use crate::queue::{BlkMq, HwQueue, LockId, LockKind, RequestQueue};
use crate::request::{
    BioId, HctxId, IoPrio, Op, OpFlags, Place, QueueId, RequestId, RequestPool, Sector, Sectors,
    Status,
};
use crate::rules::Rules;
use crate::tags::TagSet;
use crate::time::{Duration, Jiffies};
#[cfg(mutants)]
pub(crate) use mutant::Mutant;

/// The request of a path to its driver before the next label. A tag and one number, so that a label
/// returns it in two registers: docs/decisions/0002.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(align(8))]
pub enum Next {
    /// Nothing: continue.
    Step,
    Lock(LockId),
    /// spin_trylock() of this lock: the driver puts `Answer::Locked` or `Answer::Contended` into
    /// the CPU. An access to shared memory of its own.
    TryLock(LockId),
    /// Continue, no earlier than at the CPU's time: the next label accesses a word on which other
    /// CPUs decide now. The same as `Step` for a driver without a clock.
    InTime,
    /// The path in `cpu.call` runs to its end first.
    Call,
    /// get_budget: the driver puts `Answer::Budget` or `Answer::NoBudget` into the CPU.
    Budget,
    /// queue_rq of a request that holds a driver tag, with others to follow: the driver asks the
    /// device and puts its answer into the CPU.
    Submit(RequestId),
    /// The same with `bd.last`.
    SubmitLast(RequestId),
    /// put_budget of a request that was never offered.
    PutBudget(u32),
    /// blk_lld_busy() of that queue, whose driver has budgets: the driver puts `Answer::Busy` or
    /// `Answer::GoOn` into the CPU.
    AskBusy(QueueId),
    /// commit_rqs of the hctx with this number.
    Commit(u32),
    /// io_schedule() until the driver wakes this context for a tag.
    Park,
    /// synchronize_rcu(): time passes, then the driver puts `Answer::GoOn` into the CPU if no other
    /// context is in a section of the path's queue (see `Frame::holds_up_grace`).
    Grace,
    /// The queue's scheduler is replaced by this one of its further ones: the driver calls
    /// `BlkMq::exchange`, after timers and hooks of the old one have ended.
    Exchange(u32),
    /// The path has ended.
    Done,
}

impl Next {
    pub(crate) fn call(cpu: &mut Cpu, path: Call) -> Next {
        cpu.call = Some(path);
        Next::Call
    }

    pub(crate) fn commit(hctx: HctxId) -> Next {
        Next::Commit(u32::from(hctx.0))
    }

    pub(crate) fn offer(rq: RequestId, last: bool) -> Next {
        if last {
            return Next::SubmitLast(rq);
        }
        Next::Submit(rq)
    }
}

/// Outcome of one label of a part of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
pub(crate) enum Sub<T> {
    /// The path asks its driver for this; the part goes on at the next label.
    Wait(Next),
    /// The part has ended, in this label.
    Done(T),
}

/// What a path has at hand. Fields, so that the queue and the CPU borrow apart.
pub(crate) struct Cx<'a> {
    pub(crate) mq: &'a BlkMq,
    /// The path's queue.
    pub(crate) q: &'a RequestQueue,
    pub(crate) cpu: &'a mut Cpu,
    /// The label that the next step executes: noted where a path stops, so that drivers need not
    /// ask for it.
    pub(crate) label: Label,
}

impl<'a> Cx<'a> {
    /// Of a path of this queue.
    #[inline]
    pub(crate) fn of(mq: &'a BlkMq, queue: QueueId, cpu: &'a mut Cpu) -> Cx<'a> {
        let (q, label) = (mq.queue(queue), Label(0));
        Cx { mq, q, cpu, label }
    }

    #[inline]
    pub(crate) fn queue(&self) -> QueueId {
        self.q.id
    }

    /// The path stops at this label.
    #[inline]
    pub(crate) fn stop_at(&mut self, label: Label) {
        self.label = label;
    }

    #[inline]
    pub(crate) fn hctx(&self, hctx: HctxId) -> &'a HwQueue {
        self.q.hctx(hctx)
    }

    /// The requests and bios of the queue.
    #[inline]
    pub(crate) fn pool(&self) -> impl DerefMut<Target = RequestPool> + use<'a> {
        self.q.pool.held(self.cpu.id)
    }

    #[inline]
    pub(crate) fn rules(&self) -> &'a Rules {
        &self.q.settings.rules
    }

    #[inline]
    pub(crate) fn set(&self) -> &'a TagSet {
        &self.mq.sets[self.q.set.index()]
    }

    /// The time in ticks of the queue's HZ.
    #[inline]
    pub(crate) fn jiffies(&mut self) -> Jiffies {
        jiffies(self.q, self.cpu)
    }

    #[inline]
    pub(crate) fn lock(&self, kind: LockKind, index: u32) -> Next {
        lock(self.q.id, kind, index)
    }

    #[inline]
    pub(crate) fn call(&mut self, path: Call) -> Next {
        Next::call(self.cpu, path)
    }

    /// blk_mq_run_hw_queue().
    #[inline]
    pub(crate) fn run(&mut self, hctx: HctxId, in_background: bool) -> Next {
        call_run(self.cpu, self.q.id, hctx, in_background)
    }

    /// [`free_request()`].
    #[inline]
    pub(crate) fn free(&mut self, rq: RequestId) -> Next {
        free_request(self.cpu, self.q.id, rq)
    }

    /// blk_mq_delay_run_hw_queue(): kblockd runs the hctx after `delay`.
    #[inline]
    pub(crate) fn kick(&mut self, hctx: HctxId, delay: Duration) {
        self.cpu.outbox.push(Effect::Kick {
            queue: self.q.id,
            hctx,
            delay,
        });
    }

    /// The same unless its work item is pending, as in blk_mq_delay_run_hw_queues().
    #[inline]
    pub(crate) fn kick_unless_pending(&mut self, hctx: HctxId, delay: Duration) {
        self.cpu.outbox.push(Effect::KickUnlessPending {
            queue: self.q.id,
            hctx,
            delay,
        });
    }

    /// blk_mq_run_hw_queues() in the background, by a scheduler that has requests, under its lock:
    /// part of the label, so that what it reads costs nothing.
    #[cold]
    pub(crate) fn kick_all(&mut self) {
        let own = self.set().hctx_for(self.cpu.id, Op::Write, false);
        let runs_own = !self.hctx(own).stopped.peek();
        let one = self.q.settings.runs_one_for_all() && runs_own;
        for hctx in (0..self.q.hctxs.len()).map(|hctx| HctxId(hctx as u16)) {
            let runs = !one || hctx == own || self.hctx(hctx).dispatch_pending.peek();
            if runs && !self.hctx(hctx).stopped.peek() {
                self.kick(hctx, Duration::ZERO);
            }
        }
    }

    #[inline]
    pub(crate) fn set_places(&self, list: QueueList, place: Place) {
        set_places(self.q, self.cpu, list, place);
    }

    /// smp_mb(): a full barrier.
    #[inline]
    pub(crate) fn mb(&mut self) {
        mb(self.cpu);
    }

    /// A trace point of a request, as it is now.
    #[inline]
    pub(crate) fn trace_rq(&mut self, action: TraceAction, rq: RequestId) {
        let traced = match self.cpu.tracing {
            true => Traced::rq(true, &self.pool(), rq),
            false => None,
        };
        trace_rq(self.cpu, self.q.id, action, traced);
    }

    /// A trace point without address: P, U, UT.
    #[inline]
    pub(crate) fn trace_count(&mut self, action: TraceAction, count: u64) {
        trace_count(self.cpu, self.q.id, action, count);
    }
}

/// A function with `#[steps]`, while it runs.
pub(crate) trait Steps: Copy + 'static {
    type Done;

    /// Runs to its next label, or to its end.
    fn step(&mut self, cx: &mut Cx<'_>) -> Sub<Self::Done>;

    /// The label that the next step executes, or after the end the last one; none if that is its
    /// caller's.
    fn label(&self) -> Option<Label> {
        None
    }

    /// The name of its stage within that label, if it has stages there: `tag-get.merge`.
    fn stage(&self) -> Option<&'static str> {
        None
    }

    /// The state of a function that it runs, or its own.
    fn find<S: 'static>(&self) -> Option<&S> {
        (self as &dyn core::any::Any).downcast_ref()
    }
}

/// A local in scope at a label is plain data: a guard does not compile.
#[inline]
pub(crate) fn may_end_here<T: Copy>(_: &T) {}

/// The time in ticks of the queue's HZ.
pub(crate) fn jiffies(q: &RequestQueue, cpu: &mut Cpu) -> Jiffies {
    cpu.jiffies(q.settings.hz)
}

#[inline]
pub(crate) fn lock(queue: QueueId, kind: LockKind, index: u32) -> Next {
    Next::Lock(LockId::new(queue, kind, index))
}

/// A run as a call of another path.
pub(crate) fn call_run(cpu: &mut Cpu, queue: QueueId, hctx: HctxId, in_background: bool) -> Next {
    Next::call(
        cpu,
        Call::Run {
            queue,
            hctx,
            in_background,
        },
    )
}

/// blk_mq_free_request() of a request whose bios are now in another request, or that never had one.
pub(crate) fn free_request(cpu: &mut Cpu, queue: QueueId, rq: RequestId) -> Next {
    Next::call(cpu, Call::Free { queue, rq })
}

/// Records a new place for every request of a list.
pub(crate) fn set_places(q: &RequestQueue, cpu: &Cpu, list: QueueList, place: Place) {
    let mut pool = q.pool.held(cpu.id);
    let mut next = list.first();
    while let Some(rq) = next {
        pool[rq].place = place;
        next = list.next(&pool, rq);
    }
}

/// A trace point of a bio or request, depending on the action.
#[inline]
pub(crate) fn trace_rq(
    cpu: &mut Cpu,
    queue: QueueId,
    action: TraceAction,
    snapshot: Option<Traced>,
) {
    let of_bio = matches!(
        action,
        TraceAction::Queue
            | TraceAction::GetRq
            | TraceAction::BackMerge
            | TraceAction::FrontMerge
            | TraceAction::Split
    );
    trace(cpu, queue, action, snapshot, !of_bio);
}

/// A request was absorbed by its neighbour: M of a request.
#[inline]
pub(crate) fn trace_swallowed(cpu: &mut Cpu, queue: QueueId, snapshot: Option<Traced>) {
    trace(cpu, queue, TraceAction::BackMerge, snapshot, true);
}

/// A trace point of a bio or a clone with a payload: X, A.
#[inline]
pub(crate) fn trace_with(
    cpu: &mut Cpu,
    queue: QueueId,
    action: TraceAction,
    snapshot: Option<Traced>,
    payload: u64,
) {
    cpu.goes_on();
    if let Some(snapshot) = snapshot {
        cpu.emit(TracePoint {
            payload,
            ..point(queue, action, snapshot, false)
        });
    }
}

/// R of a request whose tag was just freed: the path may have released a lock, which ends the
/// label.
#[inline]
pub(crate) fn trace_returned(cpu: &mut Cpu, queue: QueueId, snapshot: Option<Traced>) {
    if let Some(snapshot) = snapshot {
        cpu.emit_at_end(point(queue, TraceAction::Requeue, snapshot, true));
    }
}

#[inline]
pub(crate) fn trace(
    cpu: &mut Cpu,
    queue: QueueId,
    action: TraceAction,
    snapshot: Option<Traced>,
    of_request: bool,
) {
    cpu.goes_on();
    if let Some(snapshot) = snapshot {
        cpu.emit(point(queue, action, snapshot, of_request));
    }
}

fn point(queue: QueueId, action: TraceAction, snapshot: Traced, of_request: bool) -> TracePoint {
    TracePoint {
        action,
        queue,
        op: snapshot.op,
        flags: snapshot.flags,
        sector: snapshot.sector,
        sectors: snapshot.sectors,
        of_request,
        request: snapshot.request,
        status: snapshot.status,
        ioprio: snapshot.ioprio,
        payload: 0,
    }
}

/// A trace point without address: P, U, UT.
pub(crate) fn trace_count(cpu: &mut Cpu, queue: QueueId, action: TraceAction, count: u64) {
    cpu.emit(TracePoint {
        action,
        queue,
        op: Op::Read,
        flags: OpFlags::default(),
        sector: Sector(0),
        sectors: Sectors(0),
        of_request: false,
        request: None,
        status: Status::Ok,
        ioprio: IoPrio::default(),
        payload: count,
    });
}

/// A message of a scheduler.
pub(crate) fn trace_message(cpu: &mut Cpu, queue: QueueId, said: TraceMsg) {
    trace_count(cpu, queue, TraceAction::Message(said), 0);
}

/// The data of a bio or request in a trace point; by default none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traced {
    pub(crate) op: Op,
    pub(crate) flags: OpFlags,
    pub(crate) sector: Sector,
    pub(crate) sectors: Sectors,
    pub(crate) status: Status,
    pub(crate) ioprio: IoPrio,
    pub(crate) request: Option<TracedRequest>,
}

impl Traced {
    /// None without `tracing`, [`Cpu::tracing`]: then no one reads it.
    #[inline]
    pub(crate) fn rq(tracing: bool, pool: &RequestPool, id: RequestId) -> Option<Traced> {
        if !tracing {
            return None;
        }
        cold_path();
        let rq = &pool[id];
        Some(Traced {
            op: rq.op,
            flags: rq.flags,
            sector: rq.sector,
            sectors: rq.sectors,
            status: rq.status,
            ioprio: rq.ioprio,
            request: Some(TracedRequest {
                id,
                hctx: rq.hctx,
                tag: rq.tag,
                internal_tag: rq.internal_tag,
            }),
        })
    }

    /// The same of a bio.
    #[inline]
    pub(crate) fn bio(tracing: bool, pool: &RequestPool, bio: BioId) -> Option<Traced> {
        if !tracing {
            return None;
        }
        cold_path();
        let bio = pool.bio(bio);
        Some(Traced {
            op: bio.op,
            flags: bio.flags,
            sector: bio.sector,
            sectors: bio.sectors,
            status: Status::Ok,
            ioprio: bio.ioprio,
            request: None,
        })
    }
}
