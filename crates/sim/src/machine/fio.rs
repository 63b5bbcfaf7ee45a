//! A fio thread: prepares I/Os, submits them in batches, waits and reaps.
//!
//! What fio and the system call layer do between two calls of the block layer, as one state
//! machine. Where the next I/O goes is `workload.rs`. Sources: fio 3.33 backend.c, io_u.c,
//! engines/io_uring.c, libaio.c, sync.c; io_uring/io_uring.c, fs/aio.c, block/fops.c (v6.1).

mod bio;

use std::collections::VecDeque;

use blkmq::path::{Frame, PlugPath, SubmitPath, Unplug};
use blkmq::request::{CpuId, Op, Sector, Sectors, Status};
use blkmq::time::{Duration, SimTime};

use super::Simulator;
use super::cpu::Mode;
use super::task::{Program, State, TaskId, Turn};
use crate::cost::Step;
use crate::plan::{DiskId, Engine, ThreadPlan};
use crate::recorder::IoRecord;
use crate::workload::{NextIo, Stream};

/// More submissions than this in one call start a plug (io_uring, AIO).
const PLUG_THRESHOLD: usize = 2;

/// What the thread does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Prepare the next I/O.
    Prepare,
    /// Enter the kernel to submit what is prepared.
    Enter,
    /// Submit the next one.
    Issue,
    /// Finish the plug.
    Unplug,
    /// Back in user space.
    Submitted,
    /// Look for completions.
    Reap,
    /// Woken from waiting.
    Woken,
    /// Poll the device.
    Poll,
}

/// One of its I/Os.
#[derive(Clone, Copy, Debug)]
struct Slot {
    io: NextIo,
    issued: SimTime,
    completed: SimTime,
    status: Status,
}

/// A fio thread.
#[derive(Clone, Debug)]
pub(super) struct FioTask {
    /// Index in the plan.
    pub(super) thread: usize,
    pub(super) plan: ThreadPlan,
    stage: Stage,
    stream: Stream,
    slots: Vec<Slot>,
    free: Vec<u32>,
    prepared: VecDeque<u32>,
    issuing: usize,
    in_flight: u32,
    /// Which of its files it polls next.
    polled: usize,
    done: VecDeque<(SimTime, u32)>,
    /// Completions that the sleeping task waits for; 0: it does not wait.
    waiting_for: u32,
    draining: bool,
    /// An I/O failed that must not: nothing more is begun.
    failed: bool,
    /// Drawn, but not due yet.
    held: Option<NextIo>,
    pub(super) worker: Option<TaskId>,
    pub(super) end_at: SimTime,
    pub(super) count_from: SimTime,
    pub(super) started: SimTime,
}

impl FioTask {
    pub(super) fn new(thread: usize, plan: &ThreadPlan) -> FioTask {
        let depth = plan.iodepth as usize;
        let idle = Slot {
            io: NextIo {
                op: Op::Read,
                disk: DiskId(0),
                sector: Sector(0),
                sectors: Sectors(0),
                not_before: Duration::ZERO,
            },
            issued: SimTime::ZERO,
            completed: SimTime::ZERO,
            status: Status::Ok,
        };
        FioTask {
            thread,
            stream: Stream::new(plan),
            plan: plan.clone(),
            stage: Stage::Prepare,
            slots: vec![idle; depth],
            free: (0..depth as u32).rev().collect(),
            prepared: VecDeque::with_capacity(depth),
            issuing: 0,
            in_flight: 0,
            polled: 0,
            done: VecDeque::with_capacity(depth),
            waiting_for: 0,
            draining: false,
            failed: false,
            held: None,
            worker: None,
            end_at: SimTime::NEVER,
            count_from: SimTime::ZERO,
            started: SimTime::ZERO,
        }
    }

    /// I/Os submitted and not reaped, for stall reports.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The disk that it looks at next: one after the other (io_do_iopoll() goes through all that
    /// wait).
    fn next_polled(&mut self) -> DiskId {
        let files = &self.plan.files;
        let disk = files[self.polled % files.len()].disk;
        self.polled = (self.polled + 1) % files.len();
        disk
    }

    /// It looks for completions, again and again.
    pub(super) fn polls(&self) -> bool {
        self.stage == Stage::Poll
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
        self.in_flight + self.prepared.len() as u32 >= self.plan.iodepth
    }

    /// An I/O is complete; earlier ones, of a CPU that is behind, may be noted later.
    fn note_done(&mut self, at: SimTime, slot: u32) {
        match self.done.back() {
            Some(&(last, _)) if last > at => {
                let index = self.done.partition_point(|&(other, _)| other <= at);
                self.done.insert(index, (at, slot));
            }
            _ => self.done.push_back((at, slot)),
        }
    }

    /// Since when at least so many completions wait to be taken; `None`: fewer do.
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

    /// Takes the first of them, if it was complete by `now`.
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
        let min = self.plan.batch_complete_min.min(self.in_flight);
        if self.draining || self.full() {
            min.max(1).min(self.in_flight)
        } else {
            min
        }
    }
}

impl Simulator {
    /// One step of a fio thread.
    pub(super) fn fio_turn(&mut self, id: CpuId, task: TaskId, fio: &mut FioTask) -> Turn {
        match fio.stage {
            Stage::Prepare => self.prepare(id, fio),
            Stage::Enter => self.enter_kernel(id, fio),
            Stage::Issue => {
                if fio.issuing == 0 {
                    fio.stage = Stage::Unplug;
                    return Turn::Again;
                }
                if fio.plan.files.len() > 1 && self.turns_to_another_disk(id, fio) {
                    return Turn::Again;
                }
                fio.issuing -= 1;
                let slot = fio.prepared.pop_front().expect("as many as were counted");
                fio.in_flight += 1;
                self.charge_issue(id, fio);
                self.touch_io(id, fio.thread, slot, Step::UringIssue);
                fio.slots[slot as usize].issued = self.at(id);
                let nowait = fio.plan.engine == Engine::IoUring;
                self.submit_io(id, task, fio, slot, nowait);
                Turn::Again
            }
            Stage::Unplug => {
                fio.stage = Stage::Submitted;
                let plug = self.cpu(id).env.plug;
                if plug.active && !plug.is_empty() {
                    let path = PlugPath::unplug(plug.queue, Unplug::Finish);
                    self.cpu_mut(id).level_state().stack.push(Frame::Plug(path));
                }
                Turn::Again
            }
            Stage::Submitted => {
                self.cpu_mut(id).env.plug = blkmq::path::Plug::default();
                let reaps = fio.full() || fio.draining || fio.plan.batch_complete_min == 0;
                fio.stage = if reaps && fio.in_flight > 0 {
                    Stage::Reap
                } else {
                    Stage::Prepare
                };
                Turn::Again
            }
            Stage::Reap => self.reap(id, fio),
            Stage::Woken => {
                self.charge_as(id, Step::UringWait, Mode::System);
                match fio.done_from(fio.waiting_for) {
                    None => return Turn::Sleep,
                    Some(from) if from > self.at(id) => return Turn::Pause(from),
                    Some(_) => {}
                }
                fio.waiting_for = 0;
                fio.stage = Stage::Reap;
                Turn::Again
            }
            Stage::Poll => self.poll(id, fio),
        }
    }

    /// The next I/O is for another disk than what is plugged: the plug is flushed first (deviation
    /// D1).
    fn turns_to_another_disk(&mut self, id: CpuId, fio: &FioTask) -> bool {
        let plug = &self.cpu(id).env.plug;
        let next = fio.prepared.front().expect("as many as were counted");
        let queue = plug.queue;
        let other = self.numbers.queue_of(fio.slots[*next as usize].io.disk);
        let turns = plug.active && queue != other && !plug.is_empty();
        if turns {
            let path = PlugPath::unplug(queue, Unplug::Finish);
            self.cpu_mut(id).level_state().stack.push(Frame::Plug(path));
        }
        turns
    }

    fn prepare(&mut self, id: CpuId, fio: &mut FioTask) -> Turn {
        let at = self.at(id);
        let next = if at >= fio.end_at || self.stopping || fio.failed {
            None
        } else {
            fio.held
                .take()
                .or_else(|| fio.stream.next(at.since(fio.started)))
        };
        let Some(io) = next else {
            return self.wind_down(at, fio);
        };
        let due = fio.stream.earliest(io, fio.started);
        if due > at {
            // Paced: what is prepared goes out and completions are taken meanwhile.
            fio.held = Some(io);
            if fio.prepared.is_empty() && fio.in_flight == 0 {
                return Turn::Pause(due.min(fio.end_at));
            }
            fio.stage = if fio.prepared.is_empty() {
                Stage::Reap
            } else {
                Stage::Enter
            };
            return Turn::Again;
        }
        self.charge_as(id, Step::FioPrepare, Mode::User);
        if !fio.plan.gtod_reduce {
            self.charge_as(id, Step::FioGettime, Mode::User);
        }
        let slot = fio.free.pop().expect("not more than iodepth are alive");
        fio.slots[slot as usize].io = io;
        fio.prepared.push_back(slot);
        if fio.prepared.len() as u32 >= fio.plan.batch_submit || fio.full() {
            fio.stage = Stage::Enter;
        }
        Turn::Again
    }

    /// No more I/Os: what is prepared goes out, what is in flight is waited for.
    fn wind_down(&mut self, at: SimTime, fio: &mut FioTask) -> Turn {
        fio.draining = true;
        if !fio.prepared.is_empty() {
            fio.stage = Stage::Enter;
            return Turn::Again;
        }
        if fio.in_flight > 0 {
            fio.stage = Stage::Reap;
            return Turn::Again;
        }
        self.recorder
            .thread_ended(fio.thread, at.min(fio.end_at.max(fio.started)));
        Turn::Exit
    }

    fn enter_kernel(&mut self, id: CpuId, fio: &mut FioTask) -> Turn {
        self.charge_as(id, Step::Syscall, Mode::System);
        let count = fio.prepared.len();
        if count > PLUG_THRESHOLD && fio.plan.engine != Engine::Sync {
            // io_uring announces how many come, AIO does not. On several disks nothing is allocated
            // ahead: a plug has one queue (deviation D1).
            let one_disk = fio
                .plan
                .files
                .iter()
                .all(|f| f.disk == fio.plan.files[0].disk);
            let announced = match fio.plan.engine {
                Engine::IoUring if one_disk => count as u16,
                _ => 1,
            };
            self.cpu_mut(id).env.plug.start(announced);
        }
        fio.issuing = count;
        fio.stage = Stage::Issue;
        Turn::Again
    }

    /// The engine's work for one submission, above the block layer.
    fn charge_issue(&mut self, id: CpuId, fio: &FioTask) {
        let engine = match fio.plan.engine {
            Engine::IoUring => Step::UringIssue,
            Engine::Libaio => Step::AioIssue,
            Engine::Sync => Step::SyncIssue,
        };
        let steps = [
            engine,
            Step::Bio,
            Step::IoLocks,
            Step::ClockRead,
            Step::PreemptRcu,
            Step::KernelRest,
        ];
        self.charge_all(id, &steps, Mode::System);
        if !fio.plan.fixed_buffers {
            self.charge_as(id, Step::PinPages, Mode::System);
        }
        if !fio.plan.registered_files {
            self.charge_as(id, Step::FileLookup, Mode::System);
        }
    }

    /// Submits an I/O of a thread from another task.
    pub(super) fn submit_slot(&mut self, id: CpuId, owner: TaskId, slot: u32, nowait: bool) {
        let Program::Fio(fio) = &self.tasks[owner.index()].program else {
            unreachable!("only fio threads own I/Os")
        };
        let path = bio::add(&self.mq, &self.numbers, id, fio, owner, slot, nowait);
        self.push_bio(id, path);
    }

    fn submit_io(&mut self, id: CpuId, task: TaskId, fio: &FioTask, slot: u32, nowait: bool) {
        let path = bio::add(&self.mq, &self.numbers, id, fio, task, slot, nowait);
        self.push_bio(id, path);
    }

    fn push_bio(&mut self, id: CpuId, path: SubmitPath) {
        self.cpu_mut(id)
            .level_state()
            .stack
            .push(Frame::Submit(path));
    }

    /// The block layer has ended an I/O.
    pub(super) fn io_done(&mut self, id: CpuId, owner: u32, status: Status) {
        if self.replay.is_some() {
            return self.replay_done(id, owner);
        }
        let (task, slot) = (TaskId(owner >> 16), owner & 0xffff);
        let Program::Fio(fio) = &self.tasks[task.index()].program else {
            unreachable!("only fio threads own I/Os")
        };
        if status == Status::Again {
            let at = self.at(id);
            let worker = fio
                .worker
                .expect("only io_uring asks not to wait, and it has a worker");
            if let Program::IoWorker(io_worker) = &mut self.tasks[worker.index()].program {
                io_worker.queue.give(at, slot);
            }
            self.charge(id, Step::Wake);
            self.wake(worker, id, SimTime::ZERO);
            return;
        }
        let step = match fio.plan.engine {
            Engine::IoUring => Step::UringComplete,
            Engine::Libaio => Step::AioComplete,
            Engine::Sync => Step::SyncComplete,
        };
        let thread = fio.thread;
        self.charge(id, step);
        self.touch_ended_io(id, thread, slot, step);
        let at = self.at(id);
        let Program::Fio(fio) = &mut self.tasks[task.index()].program else {
            unreachable!("checked above")
        };
        let io = &mut fio.slots[slot as usize];
        io.status = status;
        io.completed = at;
        fio.note_done(at, slot);
        if fio.waiting_for > 0
            && let Some(from) = fio.done_from(fio.waiting_for)
            && self.tasks[task.index()].state == State::Sleeping
        {
            self.charge(id, Step::Wake);
            self.wake(task, id, from);
        }
    }

    fn reap(&mut self, id: CpuId, fio: &mut FioTask) -> Turn {
        let min = fio.reap_min();
        let now = self.at(id);
        if !fio.has_done(min, now) {
            if fio.plan.polled {
                fio.stage = Stage::Poll;
                return Turn::Again;
            }
            self.charge_as(id, Step::Syscall, Mode::System);
            self.charge_as(id, Step::UringWait, Mode::System);
            fio.waiting_for = min;
            fio.stage = Stage::Woken;
            return Turn::Again;
        }
        let max = fio.plan.batch_complete_max.max(1);
        let was_full = fio.full();
        let mut take = 0;
        while take < max
            && let Some(slot) = fio.take_done(now)
        {
            self.reap_one(id, fio, slot);
            take += 1;
        }
        let low = fio.in_flight <= fio.plan.iodepth_low;
        let again = fio.draining && fio.in_flight > 0;
        if !again && (!was_full || low || take == 0) {
            fio.stage = Stage::Prepare;
            if take == 0 && fio.held.is_some() {
                return self.wait_for_pace(id, fio);
            }
        }
        Turn::Again
    }

    /// Nothing completed and the next I/O is not due yet: pause until it is.
    fn wait_for_pace(&mut self, id: CpuId, fio: &FioTask) -> Turn {
        let Some(io) = fio.held else {
            return Turn::Again;
        };
        let allowed = fio.stream.earliest(io, fio.started).min(fio.end_at);
        if allowed > self.at(id) {
            Turn::Pause(allowed)
        } else {
            Turn::Again
        }
    }

    fn reap_one(&mut self, id: CpuId, fio: &mut FioTask, slot: u32) {
        if fio.plan.engine == Engine::IoUring {
            self.charge_as(id, Step::UringPost, Mode::System);
        }
        self.touch_ended_io(id, fio.thread, slot, Step::UringPost);
        self.charge_as(id, Step::FioComplete, Mode::User);
        if !fio.plan.gtod_reduce {
            self.charge_as(id, Step::FioGettime, Mode::User);
        }
        let now = self.at(id);
        let s = fio.slots[slot as usize];
        fio.in_flight -= 1;
        fio.free.push(slot);
        fio.stream.completed(s.io, s.completed);
        let fatal = s.status != Status::Ok && !fio.survives(s.io.op);
        if fatal && !fio.failed {
            fio.failed = true;
            self.recorder.thread_failed(fio.thread, s.status);
        }
        let counts = now >= fio.count_from && now <= fio.end_at;
        self.recorder.io(&IoRecord {
            thread: fio.thread,
            disk: s.io.disk,
            op: s.io.op,
            sectors: s.io.sectors,
            latency: now.since(s.issued),
            status: s.status,
            counts,
        });
    }

    /// One look at the poll queue.
    fn poll(&mut self, id: CpuId, fio: &mut FioTask) -> Turn {
        let queue = self.numbers.queue_of(fio.next_polled());
        let device = self.numbers.device_of(queue);
        if let Some(step) = self.charges(device).poll {
            self.charge_as(id, step, Mode::System);
        }
        let hctx = self.mq.set_of(queue).hctx_for(id, Op::Read, true);
        let mut found = None;
        let now = self.at(id);
        self.with_device(device, Some(id), |device, _, out| {
            found = device.poll(hctx, now, out);
        });
        match found {
            Some(found) => {
                self.charge_completion(id, device);
                self.end_found(queue, id, found);
            }
            None => {
                self.end_one_of_batch(id);
                if fio.has_done(fio.reap_min(), self.at(id)) && self.cpu(id).batch.is_empty() {
                    fio.stage = Stage::Reap;
                }
            }
        }
        Turn::Again
    }
}
