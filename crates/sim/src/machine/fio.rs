//! A fio thread: prepares I/Os, submits them in batches, waits and reaps. A thread of t/io_uring is
//! one with a loop of its own (`t_io_uring.rs`).
//!
//! The work of fio and of the system call layer between two calls of the block layer, as one state
//! machine. Positions of I/Os: `workload.rs`. Sources: fio 3.33 backend.c, io_u.c,
//! engines/io_uring.c, libaio.c, sync.c; io_uring/io_uring.c, fs/aio.c, block/fops.c (v6.1).

mod bio;
mod cached;
mod call;
mod control;
mod crew;
mod ended;
mod force_async;
mod null;
mod plug;
mod polled;
mod posixaio;
mod served;
mod steps;
mod t_io_uring;

pub(super) use control::Life;
pub(super) use crew::Crew;
pub(super) use plug::OwnPlug;
pub(super) use polled::Place;
pub(super) use steps::On;

use std::collections::VecDeque;

use blkmq::request::{IoContextId, IoPrio, Op, Sector, Sectors, Status};
use blkmq::rules::AioPlug;
use blkmq::time::{Duration, SimTime};

use polled::Polled;
use served::Served;

use super::mappings::PAGES;
use super::task::{TaskId, context_task, io_context_of};
use crate::plan::{DiskId, DiskPlan, Engine, ThreadPlan};
use crate::workload::{NextIo, Stream};
use cached::Cached;
use call::Call;
use control::Control;
use crew::Hired;
use t_io_uring::TIoUring;

/// More submissions than this in one call start a plug (io_uring's and AIO's thresholds).
fn plug_above(plan: &ThreadPlan, disks: &[DiskPlan]) -> usize {
    let rules = &disks[plan.files[0].disk.index()].queue.rules;
    match (plan.engine, rules.aio_plug) {
        (Engine::Libaio, AioPlug::Always) => 0,
        _ => 2,
    }
}

/// The next step of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Prepare,
    /// Enter the kernel to submit the prepared I/Os.
    Enter,
    Issue,
    /// Finish the plug.
    Unplug,
    /// Back in user space.
    Submitted,
    /// In a call that waits for its I/O: the bio is submitted.
    Called,
    /// In a read(2) through the page cache.
    Cached,
    /// It has read its piece: is it its turn to write it out?
    HandOver,
    /// Look for completions.
    Reap,
    Woken,
    Poll,
}

/// One of its I/Os.
#[derive(Clone, Copy, Debug)]
struct Slot {
    io: NextIo,
    prepared: SimTime,
    issued: SimTime,
    completed: SimTime,
    status: Status,
    /// A worker of io_uring submits it (IOSQE_ASYNC).
    forced: bool,
}

#[derive(Clone, Debug)]
pub(super) struct FioTask {
    pub(super) thread: usize,
    /// The first one of its cache lines.
    pub(super) row: usize,
    /// More submissions than this in one call start a plug.
    plug_above: usize,
    pub(super) plan: ThreadPlan,
    stage: Stage,
    stream: Stream,
    slots: Vec<Slot>,
    free: Vec<u32>,
    prepared: VecDeque<u32>,
    issuing: usize,
    in_flight: u32,
    pub(super) polled: Polled,
    done: VecDeque<(SimTime, u32)>,
    /// Completions that the sleeping task waits for; 0: it does not wait.
    waiting_for: u32,
    draining: bool,
    /// Waits until no I/O is in flight, and then for this long.
    resting: Option<Duration>,
    /// A pause of thinktime begins, with a part in which it spins.
    spins: bool,
    /// An I/O failed without continue_on_error: no further I/O begins.
    failed: bool,
    /// I/Os in flight at most: iodepth, unless it follows a latency.
    depth: u32,
    /// How it ends, waits for and paces others: few jobs have such options.
    pub(super) control: Option<Box<Control>>,
    /// Drawn, but not due yet, or held back until the prepared I/Os are submitted.
    held: Option<NextIo>,
    /// The engine is busy: it takes completions first (FIO_Q_BUSY).
    busy: bool,
    /// The I/O that its system call waits for.
    call: Option<Call>,
    /// Reads go through the page cache.
    cached: Option<Box<Cached>>,
    /// A thread of an NFS server, not fio's.
    served: Option<Box<Served>>,
    /// Its workers (io_submit_mode=offload).
    pub(super) crew: Option<Box<Crew>>,
    /// It is a worker of another thread.
    hired: Option<Box<Hired>>,
    /// Its own, or that of the first clone (CLONE_IO).
    io_context: IoContextId,
    /// A plug around one I/O.
    own_plug: OwnPlug,
    /// Runs the loop of t/io_uring instead of fio's.
    t_io_uring: Option<TIoUring>,
    /// The first of io_uring's workers that submit for it.
    pub(super) worker: Option<TaskId>,
    /// Requests since one was handed to a worker (force_async).
    unforced: u32,
    pub(super) end_at: SimTime,
    pub(super) count_from: SimTime,
    pub(super) started: SimTime,
}

impl FioTask {
    /// The thread of this number, on these disks.
    pub(super) fn new(thread: usize, plan: &ThreadPlan, disks: &[DiskPlan]) -> FioTask {
        let depth = plan.iodepth as usize;
        let control = Control::of(plan);
        let most = control.as_ref().and_then(|control| control.depth());
        let idle = Slot {
            io: NextIo {
                op: Op::Read,
                disk: DiskId(0),
                prio: IoPrio::default(),
                sector: Sector(0),
                sectors: Sectors(0),
                not_before: Duration::ZERO,
            },
            prepared: SimTime::ZERO,
            issued: SimTime::ZERO,
            completed: SimTime::ZERO,
            status: Status::Ok,
            forced: false,
        };
        FioTask {
            thread,
            row: 0,
            plug_above: plug_above(plan, disks),
            stream: Stream::new(plan),
            plan: plan.clone(),
            stage: Stage::Prepare,
            slots: vec![idle; depth],
            free: (0..depth as u32).rev().collect(),
            prepared: VecDeque::with_capacity(depth),
            issuing: 0,
            in_flight: 0,
            polled: Polled::with_capacity(if plan.polled { depth } else { 0 }),
            done: VecDeque::with_capacity(depth),
            waiting_for: 0,
            draining: false,
            resting: None,
            spins: false,
            failed: false,
            depth: most.unwrap_or(plan.iodepth),
            control,
            held: None,
            busy: false,
            call: None,
            cached: Cached::of(plan, disks),
            served: plan.server.map(Served::of).map(Box::new),
            crew: None,
            hired: None,
            io_context: io_context_of(context_task(thread, plan)),
            own_plug: OwnPlug::default(),
            t_io_uring: TIoUring::of(plan),
            worker: None,
            unforced: 0,
            end_at: SimTime::NEVER,
            count_from: SimTime::ZERO,
            started: SimTime::ZERO,
        }
    }

    pub(super) fn command(&self) -> &'static str {
        if self.t_io_uring.is_some() {
            "io_uring"
        } else if self.served.is_some() {
            "nfsd"
        } else {
            "fio"
        }
    }

    /// I/Os submitted and not reaped, for stall reports.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// For stall reports: its call waits for more completions than can come.
    pub(super) fn asks_for_more(&self) -> String {
        if self.waiting_for > self.in_flight {
            format!(", in a call for {} completions,", self.waiting_for)
        } else {
            String::new()
        }
    }

    /// It polls for completions.
    pub(super) fn polls(&self) -> bool {
        self.stage == Stage::Poll
    }

    /// A poll has found nothing: the thread takes completions that others found, if these are
    /// enough.
    pub(super) fn polled_in_vain(&mut self, now: SimTime) {
        if self.has_done(self.reap_min(), now) {
            self.stage = Stage::Reap;
        }
    }

    /// This is the owner of a bio that reads pages for it, not the bio of one of its I/Os.
    pub(super) fn reads_pages(&self, owner: u32) -> bool {
        self.cached.is_some() && owner & 0xffff == PAGES
    }

    /// The next stage after a call that waited for its I/O.
    fn after_call(&self) -> Stage {
        match self.plan.hands_over {
            true => Stage::HandOver,
            false => Stage::Prepare,
        }
    }

    /// A failed I/O of this kind does not end the thread (td_error_type()).
    fn survives(&self, op: Op) -> bool {
        if op == Op::Read {
            self.plan.survives_read
        } else {
            self.plan.survives_write
        }
    }

    fn full(&self) -> bool {
        self.in_flight + self.prepared.len() as u32 >= self.depth
    }

    /// An I/O is complete; a CPU may note one after later ones of others.
    fn note_done(&mut self, at: SimTime, slot: u32) {
        match self.done.back() {
            Some(&(last, _)) if last > at => {
                let index = self.done.partition_point(|&(other, _)| other <= at);
                self.done.insert(index, (at, slot));
            }
            _ => self.done.push_back((at, slot)),
        }
    }

    /// When the `count`th completion arrived; `None`: fewer are waiting.
    fn done_from(&self, count: u32) -> Option<SimTime> {
        match count {
            0 => Some(SimTime::ZERO),
            _ => self.done.get(count as usize - 1).map(|&(at, _)| at),
        }
    }

    /// At least so many completions wait to be taken at `now`.
    fn has_done(&self, count: u32, now: SimTime) -> bool {
        self.done_from(count).is_some_and(|from| from <= now)
    }

    /// Takes the first completion, if it arrived by `now`.
    fn take_done(&mut self, now: SimTime) -> Option<u32> {
        let &(at, slot) = self.done.front()?;
        if at > now {
            return None;
        }
        self.done.pop_front();
        Some(slot)
    }

    /// Completions that the next look waits for.
    fn reap_min(&self) -> u32 {
        if let Some(count) = self.call_waits_for() {
            return count;
        }
        if self.resting.is_some() {
            return self.in_flight.min(1);
        }
        let min = self.plan.batch_complete_min.min(self.in_flight);
        if self.draining || self.busy || self.full() {
            min.max(1).min(self.in_flight)
        } else {
            min
        }
    }
}
