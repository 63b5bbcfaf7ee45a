//! Steps of a fio thread between two calls of the block layer.

use blkmq::path::{Frame, Plug, PlugPath, Unplug};
use blkmq::request::{CpuId, Op, Status};
use blkmq::time::{Duration, SimTime};

use super::{FioTask, Stage, bio};
use crate::cost::Step;
use crate::machine::RUN_AHEAD;
use crate::machine::cpu::Mode;
use crate::machine::cpus::Cpus;
use crate::machine::flows::Flows;
use crate::machine::layer::Layer;
use crate::machine::lines::OuterLines;
use crate::machine::mappings::Mappings;
use crate::machine::rings::Rings;
use crate::machine::servers::Servers;
use crate::machine::task::{TaskId, Turn};
use crate::machine::tasks::Tasks;
use crate::plan::Engine;
use crate::recorder::{IoRecord, Recorder};
use crate::workload::NextIo;

pub(in crate::machine) struct On<'a> {
    pub(in crate::machine) id: CpuId,
    pub(in crate::machine) task: TaskId,
    pub(in crate::machine) cpus: &'a mut Cpus,
    pub(in crate::machine) tasks: &'a mut Tasks,
    pub(in crate::machine) layer: &'a Layer,
    pub(in crate::machine) lines: &'a OuterLines,
    pub(in crate::machine) mappings: &'a mut Mappings,
    pub(in crate::machine) rings: &'a mut Rings,
    pub(in crate::machine) servers: &'a mut Servers,
    pub(in crate::machine) flows: &'a mut Flows,
    pub(in crate::machine) recorder: &'a mut Recorder,
}

impl FioTask {
    /// Runs steps of the thread until one starts a path, `left` of them are done or its CPU has to
    /// stop: the result of the last one. `None`: it polls.
    #[inline]
    pub(in crate::machine) fn turns(
        &mut self,
        mut on: On<'_>,
        left: &mut u32,
        limit: SimTime,
    ) -> Option<Turn> {
        loop {
            *left -= 1;
            let turn = self.turn(&mut on);
            let again = matches!(turn, Turn::Again) && *left > 0;
            if !again || !on.cpus[on.id].goes_on_between_frames(limit) {
                return Some(turn);
            }
            if self.polls() {
                return None;
            }
        }
    }

    /// One step of the thread, except polling.
    #[inline]
    fn turn(&mut self, on: &mut On<'_>) -> Turn {
        let id = on.id;
        let &mut On {
            ref mut cpus,
            lines,
            ref mut recorder,
            ..
        } = on;
        match self.stage {
            Stage::Prepare if self.t_io_uring.is_some() => self.prep_more_ios(on),
            Stage::Prepare => self.prepare(on),
            Stage::Issue => self.issue(on),
            Stage::Called => self.await_call(on),
            Stage::Cached => self.read_cached(on),
            Stage::HandOver => self.hand_over(on),
            Stage::Enter => self.enter_kernel(cpus, recorder, id),
            Stage::Unplug => {
                self.stage = Stage::Submitted;
                let plug = cpus[id].env.plug;
                if plug.active && !plug.is_empty() {
                    let path = PlugPath::new(plug.queue(), Unplug::Finish);
                    cpus.push(id, Frame::Plug(path));
                }
                Turn::Again
            }
            Stage::Submitted => {
                cpus[id].env.plug = Plug::default();
                if self.cached.is_some() {
                    self.submitted_cached(cpus.at(id));
                }
                if self.t_io_uring.is_some() {
                    return self.wait_in_call(cpus, id);
                }
                let asked = self.full() || self.draining || self.busy;
                let reaps = asked || self.plan.batch_complete_min == 0;
                self.stage = if reaps && self.in_flight > 0 {
                    Stage::Reap
                } else {
                    Stage::Prepare
                };
                Turn::Again
            }
            Stage::Reap => self.reap(cpus, lines, recorder, id),
            Stage::Woken => {
                cpus.charge_as(id, Step::UringWait, Mode::System);
                match self.done_from(self.waiting_for) {
                    None => return Turn::Sleep,
                    Some(from) if from > cpus.at(id) => return Turn::Pause(from),
                    Some(_) => {}
                }
                self.waiting_for = 0;
                self.stage = Stage::Reap;
                Turn::Again
            }
            Stage::Poll => unreachable!("a device is asked then"),
        }
    }

    /// A step of fio's, and the clock read after it.
    #[inline]
    pub(super) fn charge_timed(&self, cpus: &mut Cpus, id: CpuId, step: Step) {
        if self.plan.gtod_reduce {
            cpus.charge_as(id, step, Mode::User);
        } else {
            cpus.charge_all(id, &[step, Step::FioGettime], Mode::User);
        }
    }

    /// Submits the next I/O of a submission.
    #[inline]
    fn issue(&mut self, on: &mut On<'_>) -> Turn {
        let id = on.id;
        if self.own_plug.flushes(on.cpus, id, Unplug::Finish) {
            return Turn::Again;
        }
        if self.issuing == 0 {
            self.stage = Stage::Unplug;
            return Turn::Again;
        }
        self.issuing -= 1;
        let slot = self.prepared.pop_front().expect("as many as were counted");
        self.in_flight += 1;
        if self.cached.is_some() {
            return self.issue_cached(on, slot);
        }
        if self.plan.engine == Engine::PosixAio {
            return self.ask_for_help(on, slot);
        }
        let io = self.slots[slot as usize].io;
        let uring = self.plan.engine == Engine::IoUring;
        if uring && self.forces_async(slot) {
            return self.force_async(on, slot);
        }
        self.charge_issue(on.cpus, id, self.plan.engine, io.op);
        on.lines
            .touch_io(on.cpus, id, self.row, slot, Step::UringIssue);
        self.slots[slot as usize].issued = on.cpus.at(id);
        if uring && io.op == Op::Flush {
            // REQ_F_FORCE_ASYNC: io_fsync() may block.
            let worker = self.worker.expect("a thread with io_uring has a worker");
            on.tasks.give_to_worker(on.cpus, worker, id, slot);
            return Turn::Again;
        }
        if io.op == Op::Write && !self.plan.passthrough {
            let queue = on.layer.numbers.queue_of(io.disk);
            let rules = &on.layer.mq.queue(queue).settings.rules;
            self.own_plug.start(on.cpus, id, rules, io.op);
        }
        if self.plan.polled {
            self.polled.submitted(slot);
        }
        let path = bio::add(on.layer, id, self, on.task, slot, uring);
        on.cpus.submit(id, path);
        Turn::Again
    }

    /// Waits for its turn, and passes it on.
    fn hand_over(&mut self, on: &mut On<'_>) -> Turn {
        match on.rings.turn_since(self.plan.job, self.plan.clone) {
            None => return Turn::Sleep,
            Some(since) if since > on.cpus.at(on.id) => return Turn::Pause(since),
            Some(_) => on.rings.pass(on.cpus, on.tasks, on.id, self.plan.job),
        }
        self.stage = Stage::Prepare;
        Turn::Again
    }

    /// The thread ends, once it has drained.
    fn end(&mut self, on: &mut On<'_>, at: SimTime) -> Turn {
        if let Some(turn) = self.flush_crew(on) {
            return turn;
        }
        let turn = self.wind_down(on.recorder, at);
        if matches!(turn, Turn::Exit) && self.plan.hands_over {
            let who = (self.plan.job, self.plan.clone);
            on.rings.leave(on.cpus, on.tasks, on.id, who);
        }
        if matches!(turn, Turn::Exit) && self.control.is_some() {
            self.control_ends(on);
        }
        turn
    }

    /// fio lets all I/Os complete before it starts over.
    fn end_round(&mut self, on: &mut On<'_>, at: SimTime) -> Turn {
        self.draining = true;
        if self.drains() {
            return Turn::Again;
        }
        if let Some(turn) = self.flush_crew(on) {
            return turn;
        }
        if !self.stream.tail_goes_on(false) && !self.stream.starts_over() {
            return self.end(on, at);
        }
        self.draining = false;
        Turn::Again
    }

    fn prepare(&mut self, on: &mut On<'_>) -> Turn {
        if self.served.is_some() {
            return self.serve(on);
        }
        if self.hired.is_some() {
            return self.work(on);
        }
        let at = on.cpus.at(on.id);
        if let Some(time) = self.resting {
            return self.rest(on, at, time);
        }
        let over = at >= self.end_at || self.failed;
        if self.control.is_some()
            && !over
            && let Some(turn) = self.controlled(on, at)
        {
            return turn;
        }
        // fio pauses after an I/O, then looks whether its time is over.
        let pauses = !over || self.plan.counts_tail && !self.failed;
        if pauses && self.held.is_none() {
            self.resting = self.stream.pause(at.since(self.started));
            self.spins = self.resting.is_some();
            if self.resting.is_some() {
                return Turn::Again;
            }
        }
        let next = if over {
            self.last_syncs(at)
        } else {
            self.held
                .take()
                .or_else(|| self.stream.next(at.since(self.started)))
        };
        let Some(io) = next else {
            return if over {
                self.end(on, at)
            } else {
                self.end_round(on, at)
            };
        };
        let due = self.started + io.not_before;
        if due > at {
            // Ahead of its rate.
            self.held = Some(io);
            self.resting = Some(due.since(at));
            return Turn::Again;
        }
        match self.crew {
            Some(_) => self.hand_out(on, io),
            None => self.begin(on, io),
        }
    }

    #[inline]
    fn begin(&mut self, on: &mut On<'_>, io: NextIo) -> Turn {
        let id = on.id;
        let is_call = self.is_call(io.op);
        self.busy = is_call && !self.prepared.is_empty() || self.engine_is_busy();
        if self.busy {
            self.held = Some(io);
            self.stage = Stage::Enter;
            return Turn::Again;
        }
        self.charge_timed(on.cpus, id, Step::FioPrepare);
        let slot = self.free.pop().expect("not more than iodepth are alive");
        let at = on.cpus.at(id);
        let of = &mut self.slots[slot as usize];
        (of.io, of.prepared) = (io, at);
        if is_call {
            return match self.cached {
                Some(_) => self.begin_cached(on, slot),
                None => self.begin_call(on, slot),
            };
        }
        self.prepared.push_back(slot);
        if self.prepared.len() as u32 >= self.plan.batch_submit || self.full() {
            self.stage = Stage::Enter;
        }
        Turn::Again
    }

    /// The time is over: the next fsync(2) of end_fsync, when nothing is in flight.
    fn last_syncs(&mut self, at: SimTime) -> Option<NextIo> {
        let idle = self.prepared.is_empty() && self.in_flight == 0 && self.crew_is_idle(at);
        if !idle || self.failed || !self.stream.tail_goes_on(true) {
            return None;
        }
        self.stream.next(Duration::ZERO)
    }

    /// Submits prepared I/Os, waits for those in flight. False: there are neither.
    fn drains(&mut self) -> bool {
        if !self.prepared.is_empty() {
            self.stage = Stage::Enter;
        } else if self.in_flight > 0 {
            self.stage = Stage::Reap;
        } else {
            return false;
        }
        true
    }

    /// io_u_quiesce(), then usec_sleep(): the length was computed before, so that a rate is late
    /// and catches up.
    fn rest(&mut self, on: &mut On<'_>, at: SimTime, time: Duration) -> Turn {
        if self.drains() {
            return Turn::Again;
        }
        if self.control.is_some() {
            self.quiesced(on, at);
        }
        if self.spins && self.plan.control.thinktime_spin > Duration::ZERO {
            return self.spin(on, time);
        }
        let Some((time, left)) = self.sleeps(time) else {
            self.resting = None;
            return Turn::Again;
        };
        self.resting = left;
        // fio sleeps a pause out, but the wait of a rate no longer than its runtime.
        let sleeps_out = self.plan.counts_tail && self.held.is_none();
        let until = if sleeps_out {
            at + time
        } else {
            (at + time).min(self.end_at)
        };
        if until > at {
            Turn::Pause(until)
        } else {
            Turn::Again
        }
    }

    /// usec_spin(): a step of the first part of a pause of this length.
    #[cold]
    fn spin(&mut self, on: &mut On<'_>, time: Duration) -> Turn {
        let whole = self.plan.thinktime.0;
        let spun = whole - time.0;
        let left = self
            .plan
            .control
            .thinktime_spin
            .0
            .min(whole)
            .saturating_sub(spun);
        let step = left.min(RUN_AHEAD.0);
        on.cpus[on.id].spend(step * 1000, Mode::User);
        self.resting = Some(Duration(time.0 - step));
        self.spins = left > step;
        Turn::Again
    }

    /// No more I/Os: drains, then the thread ends.
    pub(super) fn wind_down(&mut self, recorder: &mut Recorder, at: SimTime) -> Turn {
        self.draining = true;
        if self.drains() {
            return Turn::Again;
        }
        if let Some(fio) = &mut recorder.fio {
            fio.depth_is(self.thread, self.depth);
        }
        let until = match self.plan.counts_tail {
            true => at,
            false => at.min(self.end_at.max(self.started)),
        };
        recorder.thread_ended(self.thread, self.count_from..until, at);
        Turn::Exit
    }

    fn enter_kernel(&mut self, cpus: &mut Cpus, recorder: &mut Recorder, id: CpuId) -> Turn {
        if self.plan.engine == Engine::Null {
            return self.end_all_in_engine(recorder, cpus.at(id));
        }
        // aio_read(3) is no call of the kernel.
        if self.plan.engine != Engine::PosixAio {
            cpus.charge_as(id, Step::Syscall, Mode::System);
        }
        self.enter_ring(cpus, id);
        let count = self.prepared.len();
        if let Some(fio) = &mut recorder.fio
            && count > 0
        {
            let depth = self.in_flight + count as u32;
            fio.submits(self.thread, cpus.at(id), count as u32, depth);
        }
        if count > self.plug_above && !matches!(self.plan.engine, Engine::Sync | Engine::PosixAio) {
            // io_uring announces how many follow, AIO does not.
            let announced = match self.plan.engine {
                Engine::IoUring => count as u16,
                _ => 1,
            };
            cpus[id].env.plug.start(announced);
        }
        self.issuing = count;
        self.stage = Stage::Issue;
        Turn::Again
    }

    /// Charges the engine's work for one submission, above the block layer.
    pub(super) fn charge_issue(&self, cpus: &mut Cpus, id: CpuId, engine: Engine, op: Op) {
        let engine = match engine {
            Engine::IoUring => Step::UringIssue,
            Engine::Libaio => Step::AioIssue,
            Engine::Sync => Step::SyncIssue,
            Engine::Null | Engine::PosixAio => unreachable!("it issues nothing"),
        };
        let steps = [
            engine,
            Step::Bio,
            Step::IoLocks,
            Step::ClockRead,
            Step::PreemptRcu,
            Step::KernelRest,
        ];
        cpus.charge_all(id, &steps, Mode::System);
        if !self.plan.fixed_buffers && matches!(op, Op::Read | Op::Write) {
            cpus.charge_as(id, Step::PinPages, Mode::System);
        }
        if !self.plan.registered_files {
            cpus.charge_as(id, Step::FileLookup, Mode::System);
        }
    }

    fn reap(
        &mut self,
        cpus: &mut Cpus,
        lines: &OuterLines,
        recorder: &mut Recorder,
        id: CpuId,
    ) -> Turn {
        let min = self.reap_min();
        let now = cpus.at(id);
        if !self.has_done(min, now) {
            if self.plan.polled {
                self.stage = Stage::Poll;
                return Turn::Again;
            }
            cpus.charge_as(id, Step::Syscall, Mode::System);
            cpus.charge_as(id, Step::UringWait, Mode::System);
            self.waiting_for = min;
            self.stage = Stage::Woken;
            return Turn::Again;
        }
        let max = self.takes_at_most();
        let was_full = self.full();
        let mut take = 0;
        while take < max
            && let Some(slot) = self.take_done(now)
        {
            self.reap_one(cpus, lines, recorder, id, slot);
            take += 1;
        }
        if let Some(fio) = &mut recorder.fio {
            fio.completes(self.thread, now, take);
        }
        let low = self.in_flight <= self.plan.iodepth_low.min(self.depth);
        let again = (self.draining || self.resting.is_some()) && self.in_flight > 0;
        if !again && (!was_full || low || take == 0) {
            self.stage = Stage::Prepare;
        }
        Turn::Again
    }

    pub(super) fn reap_one(
        &mut self,
        cpus: &mut Cpus,
        lines: &OuterLines,
        recorder: &mut Recorder,
        id: CpuId,
        slot: u32,
    ) {
        if self.plan.engine == Engine::IoUring {
            cpus.charge_as(id, Step::UringPost, Mode::System);
        }
        lines.touch_ended_io(cpus, id, self.row, slot, Step::UringPost);
        match &mut self.t_io_uring {
            Some(small) => {
                small.reaped(slot);
                cpus.charge_as(id, Step::TReap, Mode::User);
            }
            None => self.charge_timed(cpus, id, Step::FioComplete),
        }
        let now = cpus.at(id);
        let s = self.slots[slot as usize];
        self.in_flight -= 1;
        self.free.push(slot);
        self.stream.completed(&s.io);
        let fatal = s.status != Status::Ok && !self.survives(s.io.op);
        if fatal && !self.failed {
            self.failed = true;
            recorder.thread_failed(self.thread, s.status);
        }
        let prepared = s.issued.since(s.prepared);
        let in_time = now <= self.end_at || self.plan.counts_tail;
        let counts = now >= self.count_from && in_time;
        if self.control.is_some() {
            let what = (s.io.op, u64::from(s.io.sectors.0) * 512);
            self.control_completed(recorder, what, now.since(s.issued), counts);
        }
        recorder.io(&IoRecord {
            thread: self.thread,
            disk: s.io.disk,
            op: s.io.op,
            sector: s.io.sector,
            sectors: s.io.sectors,
            at: now,
            latency: now.since(s.issued),
            prepared,
            slat: (!self.is_call(s.io.op)).then_some(prepared),
            status: s.status,
            counts,
            closes: s.io.op == Op::Flush && self.stream.closes(),
        });
    }
}
