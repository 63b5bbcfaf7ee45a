//! queue_rq of a mapped queue: a path is chosen, and a clone of the request goes to its queue.
//!
//! Takes the place of a driver (`drive.rs`), and leaves a driver's answer in the CPU; for a mapped
//! queue of the single-queue kind it runs in the device's thread (`Effect::Map`). Not here: the
//! choice itself, which is the target's (`dm/multipath/choose.rs`); the clone (`clone.rs`,
//! `insert.rs`) and its end (`clone_end.rs`, `map_end.rs`). Kernel: dm_mq_queue_rq(), map_request()
//! in drivers/md/dm-rq.c, multipath_clone_and_map() in dm-mpath.c (6.1.192; dm.c of 4.5).

mod choose;
mod clone;

pub(super) use choose::{answer, leave, release, wants};
pub(super) use clone::free_bios;

use super::wait::wake_up;
use crate::call::{BioWork, Call, Inserts, SingleEndHow, ThenRun, WaitQueue};
use crate::dm::multipath::{Ask, Busy, Choice};
use crate::dm::{Incoming, Mapped as ToPath, Mapping, PathId};
use crate::env::{Answer, Cpu, Effect};
use crate::names::labels;
use crate::queue::{BlkMq, LockKind, Mapped, RequestQueue};
use crate::request::{HctxId, Place, QueueId, RequestId};
use crate::rules::{
    BusyPaths, CloneInsertion, InFlight, IoData, MappedRequests, RefusedRun, TargetLock,
    TargetLookUp, Undo,
};
use crate::step::{Cx, Next, lock};
use crate::time::Duration;

labels! {
    pub enum At in "map-rq" {
        /// Is the target busy? Up to 4.6 a later label asks, under m->lock. In the thread of a
        /// mapped queue of the single-queue kind nothing: the choice is next.
        Enter,
        /// Looks up the live table, and the target in it (4.5): here, if the question needs no
        /// m->lock.
        Table,
        /// Under m->lock: is the target busy (4.6)?
        Busy,
        /// The answer of the driver of an active path whether it is busy (5.0).
        PathBusy,
        /// blk_mq_start_request().
        Start,
        /// The device counts it (4.20).
        Pending,
        /// dm_get(): a reference to the device.
        Get,
        /// An answer for the choice of a path; up to 4.6 all of them, under m->lock.
        Choose,
        /// Allocates the target's data per I/O (4.5).
        Data,
        /// The clone was allocated, or not.
        Clone,
        /// start_io(): the selector counts it.
        StartIo,
        /// setup_clone(): the clone gets bios of its own.
        Setup,
        /// The clone went to its queue, or its driver has answered.
        Issued,
        /// The selector counts it no longer.
        Undo,
        /// The clone is freed.
        Freed,
        /// The target's data per I/O is freed (4.5).
        NoData,
        /// It is on the requeue list, or at the head of a single-queue one.
        GivenBack,
        /// The device does not count it any more (4.20).
        NotPending,
        /// Does the device count anything? If not, the waiters for that are woken.
        Fewer,
        /// dm_put().
        Put,
        /// Returns the answer to the caller of queue_rq.
        Tell,
    }
}

/// blk_mq_delay_run_hw_queue() of a request that was not mapped (4.12).
const REFUSED_DELAY: Duration = Duration::from_millis(100);

/// The outcome of the request above after its clone is given up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Then {
    /// The caller of queue_rq keeps it.
    Refuse,
    /// It goes to the requeue list, which is kicked later.
    GiveBack,
}

/// queue_rq of one request of a mapped queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MapPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    rq: RequestId,
    /// The path whose driver is asked whether it is busy.
    asks: Option<PathId>,
    /// The choice in progress, where it is not a single label.
    choice: Option<Choice>,
    /// The chosen path, and its length.
    mapped: Option<ToPath>,
    clone: Option<RequestId>,
    then: Then,
    answer: Answer,
}

impl MapPath {
    /// For a request that holds a driver tag of the mapped queue.
    pub fn new(queue: QueueId, rq: RequestId) -> MapPath {
        MapPath {
            at: At::Enter,
            queue,
            rq,
            asks: None,
            choice: None,
            mapped: None,
            clone: None,
            then: Then::Refuse,
            answer: Answer::None,
        }
    }

    /// The request that found no path, and that may still fail for it.
    pub fn finds_no_path(&self) -> Option<RequestId> {
        let asked = self.choice.map(|choice| choice.ask());
        matches!(asked, Some(Ok(Ask::MustPushBack))).then_some(self.rq)
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let m = cx.q.mapped.as_ref().expect("the queue is mapped");
        match self.at {
            At::Enter => self.enter(cx, m),
            At::Table => self.ask_target(cx, m),
            At::Busy => {
                let busy = is_busy(m, cx.cpu);
                m.lock.release(cx.cpu);
                self.unless_busy(busy)
            }
            At::PathBusy => self.asked(cx, m),
            At::Start => {
                cx.mq.start_request(self.queue, self.rq, cx.cpu);
                self.to(match rules(cx.q).in_flight {
                    InFlight::Counted => At::Pending,
                    InFlight::Tags => At::Get,
                })
            }
            At::Pending => {
                m.pending.add(cx.cpu, 1);
                self.to(At::Get)
            }
            At::Get => {
                m.holders.add(cx.cpu, 1);
                self.begin_choice(cx, m)
            }
            At::Choose => self.choose(cx, m),
            At::Data => self.want_clone(m, cx.cpu),
            At::Clone => self.cloned(cx, m),
            At::StartIo => self.start_io(m, cx.cpu),
            At::Setup => self.set_up(cx, m),
            At::Issued => self.issued(cx, m),
            At::Undo => self.undo(cx, m),
            At::Freed => self.freed(cx),
            At::NoData => self.without_clone(cx),
            At::GivenBack => self.over(cx.q, Answer::Ok),
            At::NotPending => {
                m.pending.add(cx.cpu, -1);
                self.to(At::Fewer)
            }
            At::Fewer => {
                self.at = At::Put;
                match m.pending.read(cx.cpu) {
                    0 => wake_up(cx.cpu, self.queue, WaitQueue::InFlight),
                    _ => Next::Step,
                }
            }
            At::Put => self.put(cx, m),
            At::Tell => {
                let answer = core::mem::take(&mut self.answer);
                if cx.q.single.is_none() {
                    cx.cpu.answer = answer;
                }
                Next::Done
            }
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let at = self.at;
        let asks = self.asks.is_some();
        assert_eq!(asks, at == At::PathBusy, "{at:?} of a busy path");
        let choosing = self.choice.is_none() || at == At::Choose;
        assert!(choosing, "{at:?} with a choice");
        let with_clone = matches!(at, At::StartIo | At::Setup | At::Issued | At::Undo);
        assert_eq!(self.clone.is_some(), with_clone, "{at:?}: a clone");
        let held = !matches!(
            at,
            At::Issued | At::GivenBack | At::NotPending | At::Fewer | At::Put | At::Tell
        );
        if held {
            let pool = mq.queue(self.queue).pool.held(cpu.id);
            let offered = matches!(
                at,
                At::Enter | At::Table | At::Busy | At::PathBusy | At::Start
            );
            let started = !offered || mq.queue(self.queue).single.is_some();
            let place = pool[self.rq].place;
            assert_eq!(place == Place::Device, started, "{at:?} of {:?}", self.rq);
        }
    }

    pub(super) fn check_over(&self) {
        assert!(self.clone.is_none(), "it has a clone");
        assert!(self.mapped.is_none(), "it has a path");
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn locked(&mut self, at: At) -> Next {
        self.at = at;
        lock(self.queue, LockKind::Target, 0)
    }

    fn enter(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        if cx.q.single.is_some() {
            // map_tio_request(): it was started under the queue's lock (`single/run.rs`).
            return self.begin_choice(cx, m);
        }
        match rules(cx.q).target {
            TargetLookUp::Table => self.to(At::Table),
            TargetLookUp::Known => self.ask_target(cx, m),
        }
    }

    /// Asks whether the target is busy: now, or under m->lock.
    fn ask_target(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        if cx.rules().device_mapper.target_lock == TargetLock::Whole {
            return self.locked(At::Busy);
        }
        m.fields.read_among(1, cx.cpu);
        let busy = m.state.held(cx.cpu.id).target.busy();
        match busy {
            Busy::Yes => self.unless_busy(true),
            Busy::No => self.unless_busy(false),
            Busy::Ask(path) => self.ask(cx.mq, cx.q, path),
        }
    }

    /// pgpath_busy(): a driver without an answer is not busy.
    fn ask(&mut self, mq: &BlkMq, q: &RequestQueue, path: PathId) -> Next {
        let Some(below) = asks_driver(mq, q, path) else {
            return self.unless_busy(false);
        };
        self.asks = Some(path);
        self.at = At::PathBusy;
        Next::AskBusy(below)
    }

    /// The driver of a path has answered; if it is busy the next path is asked.
    fn asked(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let asked = self.asks.take().expect("a path was asked");
        if core::mem::take(&mut cx.cpu.answer) != Answer::Busy {
            return self.unless_busy(false);
        }
        let next = m.state.held(cx.cpu.id).target.active_after(asked);
        match next {
            Some(path) => self.ask(cx.mq, cx.q, path),
            None => self.unless_busy(true),
        }
    }

    fn unless_busy(&mut self, busy: bool) -> Next {
        if busy {
            self.answer = Answer::Resource;
        }
        self.to(match busy {
            true => At::Tell,
            false => At::Start,
        })
    }

    /// The request is done for this path: dm_put(), unless its end calls that.
    fn over(&mut self, q: &RequestQueue, answer: Answer) -> Next {
        self.answer = answer;
        self.mapped = None;
        self.to(match rules(q).in_flight {
            InFlight::Counted => At::NotPending,
            InFlight::Tags => At::Put,
        })
    }

    /// dm_put(), and the run after a refused request.
    fn put(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        m.holders.add(cx.cpu, -1);
        if self.answer == Answer::Resource && rules(cx.q).refused_run == RefusedRun::Later {
            let hctx = cx.pool()[self.rq].hctx;
            cx.kick(hctx, REFUSED_DELAY);
        }
        self.to(At::Tell)
    }

    /// The request of the mapped queue has no clone, or none any more.
    fn without_clone(&mut self, cx: &mut Cx<'_>) -> Next {
        let then = core::mem::replace(&mut self.then, Then::Refuse);
        if cx.q.single.is_some() {
            // dm_requeue_original_request(), at once whatever the target says.
            self.at = At::GivenBack;
            let path = Call::SingleEnd {
                queue: self.queue,
                rq: self.rq,
                how: SingleEndHow::Requeued,
            };
            return cx.call(path);
        }
        match then {
            Then::Refuse => self.over(cx.q, Answer::Resource),
            Then::GiveBack => {
                self.at = At::GivenBack;
                let path = Call::GiveBack {
                    queue: self.queue,
                    rq: self.rq,
                    after: delay(cx.q),
                };
                cx.call(path)
            }
        }
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
fn asks_driver(mq: &BlkMq, q: &RequestQueue, path: PathId) -> Option<QueueId> {
    let below = q.own_mapped().queue_of(path);
    let lower = mq.queue(below);
    let heard = rules(q).busy_paths == BusyPaths::Asked;
    (heard && lower.settings.driver_budget).then_some(below)
}

/// multipath_busy() of kernels in which no driver of a blk-mq queue answers blk_lld_busy().
pub(super) fn is_busy(m: &Mapped, cpu: &mut Cpu) -> bool {
    m.fields.read_among(1, cpu);
    m.state.held(cpu.id).target.is_busy(|_| false)
}

#[cfg(test)]
mod tests;
