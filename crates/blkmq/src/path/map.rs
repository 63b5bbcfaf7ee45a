//! queue_rq of a mapped queue: a path is chosen, and a clone of the request goes to its queue.
//!
//! Takes the place of a driver (`drive.rs`), and leaves a driver's answer in the CPU; for a mapped
//! queue of the single-queue kind it runs in the device's thread (`Effect::Map`). Not here: the
//! choice itself, which is the target's (`dm/multipath/choose.rs`); the clone (`clone.rs`,
//! `insert.rs`) and its end (`clone_end.rs`, `map_end.rs`). Kernel: dm_mq_queue_rq(), map_request()
//! in drivers/md/dm-rq.c, multipath_clone_and_map() in dm-mpath.c (6.1.192; dm.c of 4.5).

mod choose;
mod clone;

pub(super) use choose::{Io, choose_path, leave};
pub(super) use clone::free_bios;

use super::wait::wake_up;
use crate::call::{Call, SingleEndHow, WaitQueue};
use crate::dm::multipath::{Ask, Busy};
use crate::dm::{Mapped as ToPath, Mapping, PathId};
use crate::env::{Answer, Cpu, Effect};
use crate::queue::{LockKind, Mapped, RequestQueue};
use crate::request::{QueueId, RequestId};
use crate::rules::{
    BusyPaths, CloneInsertion, InFlight, IoData, MappedRequests, RefusedRun, TargetLock,
    TargetLookUp,
};
use crate::step::{Cx, Next, Steps as _, labels};
use crate::time::Duration;
use steps::steps;

pub use map_rq::State as MapPath;

/// blk_mq_delay_run_hw_queue() of a request that was not mapped (4.12).
const REFUSED_DELAY: Duration = Duration::from_millis(100);

/// What becomes of the request above without a clone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Then {
    /// The caller of queue_rq keeps it.
    #[default]
    Refuse,
    /// It goes to the requeue list, which is kicked later.
    GiveBack,
}

/// The driver's function of a mapped queue, for a request that holds a driver tag of it.
#[steps(path, keep(rq))]
pub fn map_rq(cx: &mut Cx<'_>, rq: RequestId) {
    /// Is the target busy? Up to 4.6 a later label asks, under m->lock. In the thread of a mapped
    /// queue of the single-queue kind nothing: the choice is next.
    at!(Enter);
    let answer: Answer = sub!(dm_mq_queue_rq(rq));
    /// Returns the answer to the caller of queue_rq.
    at!(Tell);
    if cx.q.single.is_none() {
        cx.cpu.answer = answer;
    }
}

/// dm_mq_queue_rq(), or map_tio_request() of one that was started under its queue's lock
/// (`single/run.rs`).
#[steps]
fn dm_mq_queue_rq(cx: &mut Cx<'_>, rq: RequestId) -> Answer {
    if cx.q.single.is_none() {
        if rules(cx.q).target == TargetLookUp::Table {
            /// Looks up the live table, and the target in it (4.5): here, if the question needs no
            /// m->lock.
            at!(Table);
        }
        if sub!(multipath_busy()) {
            return Answer::Resource;
        }
        // dm_start_request()
        /// blk_mq_start_request().
        at!(Start);
        cx.mq.start_request(cx.q.id, rq, cx.cpu);
        if rules(cx.q).in_flight == InFlight::Counted {
            /// The device counts it (4.20).
            at!(Pending);
            cx.q.own_mapped().pending.add(cx.cpu, 1);
        }
        /// dm_get(): a reference to the device.
        at!(Get);
        cx.q.own_mapped().holders.add(cx.cpu, 1);
    }
    let Some(then) = sub!(map_request(rq)) else {
        return Answer::Ok;
    };
    let mut answer: Answer = Answer::Ok;
    let queue = cx.q.id;
    if cx.q.single.is_some() {
        // dm_requeue_original_request(), at once whatever the target says.
        let how = SingleEndHow::Requeued;
        /// It is on the requeue list, or at the head of a single-queue one.
        call!(GivenBack, Call::SingleEnd { queue, rq, how });
    } else if then == Then::GiveBack {
        let after = delay(cx.q);
        call!(GivenBack, Call::GiveBack { queue, rq, after });
    } else {
        answer = Answer::Resource;
    }
    // rq_completed()
    let mut is_last: bool = false;
    if rules(cx.q).in_flight == InFlight::Counted {
        /// The device does not count it any more (4.20).
        at!(NotPending);
        cx.q.own_mapped().pending.add(cx.cpu, -1);
        /// Does the device count anything? If not, the waiters for that are woken.
        at!(Fewer);
        is_last = cx.q.own_mapped().pending.read(cx.cpu) == 0;
    }
    if is_last {
        /// dm_put().
        at!(Put, wake_up(cx.cpu, cx.q.id, WaitQueue::InFlight));
    } else {
        at!(Put);
    }
    cx.q.own_mapped().holders.add(cx.cpu, -1);
    if answer == Answer::Resource && rules(cx.q).refused_run == RefusedRun::Later {
        let hctx = cx.pool()[rq].hctx;
        cx.kick(hctx, REFUSED_DELAY);
    }
    answer
}

/// multipath_busy().
#[steps]
fn multipath_busy(cx: &mut Cx<'_>) -> bool {
    if cx.rules().device_mapper.target_lock == TargetLock::Whole {
        /// Under m->lock: is the target busy (4.6)?
        lock!(Busy, cx.lock(LockKind::Target, 0));
        let busy = is_busy(cx.q.own_mapped(), cx.cpu);
        cx.q.own_mapped().lock.release(cx.cpu);
        return busy;
    }
    cx.q.own_mapped().fields.read_among(1, cx.cpu);
    let busy = cx.q.own_mapped().state.held(cx.cpu.id).target.busy();
    let mut asks: Option<PathId> = match busy {
        Busy::Ask(path) => Some(path),
        Busy::Yes => None,
        Busy::No => return false,
    };
    while let Some(path) = asks {
        // pgpath_busy(): a driver without an answer is not busy.
        let Some(below) = asks_driver(cx, path) else {
            return false;
        };
        /// The answer of the driver of an active path whether it is busy (5.0).
        let answer = ask!(PathBusy, Next::AskBusy(below));
        if answer != Answer::Busy {
            return false;
        }
        let asked = asks.expect("a path was asked");
        let state = cx.q.own_mapped().state.held(cx.cpu.id);
        asks = state.target.active_after(asked);
    }
    true
}

/// map_request(), multipath_clone_and_map(). None: a path has the request, or it was killed.
#[steps]
fn map_request(cx: &mut Cx<'_>, rq: RequestId) -> Option<Then> {
    /// An answer for the choice of a path; up to 4.6 all of them, under m->lock.
    let mapping = sub!(Choose, choose_path(Io::Rq(rq)));
    let to: ToPath = match mapping {
        Mapping::To(to) => to,
        Mapping::Requeue => return Some(Then::Refuse),
        Mapping::DelayRequeue => return Some(Then::GiveBack),
        Mapping::Kill(_) => return None,
        Mapping::Held => unreachable!("a request is not held by its target"),
    };
    if rules(cx.q).io_data == IoData::Mempool {
        /// Allocates the target's data per I/O (4.5).
        at!(Data);
    }
    let then: Option<Then> = sub!(map_clone(rq, to));
    if then.is_some() && rules(cx.q).io_data == IoData::Mempool {
        /// The target's data per I/O is freed (4.5).
        at!(NoData);
    }
    then
}

/// The clone of a request that has a path: allocated, set up, issued, or given up.
#[steps]
fn map_clone(cx: &mut Cx<'_>, rq: RequestId, to: ToPath) -> Option<Then> {
    let (queue, above) = (cx.q.own_mapped().queue_of(to.path), rq);
    // blk_mq_alloc_request() in the queue of the path.
    /// The clone was allocated, or not.
    let Answer::Clone(clone) = ask!(Clone, cx.call(Call::AllocateClone { queue, above })) else {
        return Some(clone::without(cx, rq, to));
    };
    let clone: RequestId = clone;
    /// start_io(): the selector counts it.
    at!(StartIo);
    cx.q.own_mapped().accounts[to.path.index()].write(cx.cpu);
    let mut state = cx.q.own_mapped().state.held(cx.cpu.id);
    state.target.start(to);
    drop(state);
    /// setup_clone(): the clone gets bios of its own.
    at!(Setup);
    if let Some(insertion) = clone::set_up(cx, rq, to, clone) {
        /// The clone went to its queue, or its driver has answered.
        call!(Issued, insertion);
        let answer = match rules(cx.q).insertion {
            CloneInsertion::Direct => core::mem::take(&mut cx.cpu.answer),
            _ => Answer::Ok,
        };
        // It may have ended already.
        match answer {
            Answer::Resource | Answer::DevResource => {}
            Answer::Error(status) => {
                let m = cx.q.own_mapped();
                m.state.held(cx.cpu.id).tios[rq.0 as usize].status = status;
                let queue = cx.q.id;
                cx.cpu.outbox.push(Effect::Complete { queue, rq });
                return None;
            }
            _ => return None,
        }
    }
    // multipath_release_clone()
    /// The selector counts it no longer.
    at!(Undo);
    let queue = clone::undo(cx, rq, to, clone);
    /// The clone is freed.
    call!(Freed, Call::Free { queue, rq: clone });
    Some(Then::Refuse)
}

labels! {
    pub enum At in "map-rq" of map_rq dm_mq_queue_rq multipath_busy map_request map_clone
}

impl MapPath {
    /// The request that found no path, and that may still fail for it.
    pub fn finds_no_path(&self) -> Option<RequestId> {
        let asked = self.find::<choose_path::State>()?.asks();
        (asked == Some(Ask::MustPushBack)).then_some(self.rq)
    }
}

pub(super) fn rules(q: &RequestQueue) -> MappedRequests {
    q.settings.rules.device_mapper.requests
}

/// The delay of the kick of the list of delayed requests.
pub(super) fn delay(q: &RequestQueue) -> Duration {
    Duration::from_millis(u64::from(q.settings.rules.device_mapper.delay_ms))
}

/// The queue of a path whose driver answers blk_lld_busy(). Those of SCSI do, from 5.0 on.
fn asks_driver(cx: &Cx<'_>, path: PathId) -> Option<QueueId> {
    let below = cx.q.own_mapped().queue_of(path);
    let lower = cx.mq.queue(below);
    let heard = rules(cx.q).busy_paths == BusyPaths::Asked;
    (heard && lower.settings.driver_budget).then_some(below)
}

/// multipath_busy() of kernels in which no driver of a blk-mq queue answers blk_lld_busy().
pub(super) fn is_busy(m: &Mapped, cpu: &mut Cpu) -> bool {
    m.fields.read_among(1, cpu);
    m.state.held(cpu.id).target.is_busy(|_| false)
}

#[cfg(test)]
mod tests;
