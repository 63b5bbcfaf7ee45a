//! Effects of labels on the machine, and calls between block layer and device.

use blkmq::dm::PathId;
use blkmq::dm::multipath::Uevent;
use blkmq::drive::{Kick, Machine, Offer, one};
use blkmq::env::Answer;
use blkmq::list::QueueList;
use blkmq::path::{BioWork, CompleteOn, EndBatchPath, Frame, RunHow, RunQueuesPath, ToTarget};
use blkmq::queue::QUEUES_MAX;
use blkmq::request::{BioId, CpuId, HctxId, QueueId, RequestId, Status};
use blkmq::rules::SecondEnd;
use blkmq::time::{Duration, SimTime};
use blkmq::waiter::WaiterId;

use super::cpu::{Ended, Irq};
use super::cpus::Cpus;
use super::mapper::MapItem;
use super::numbers::Above;
use super::task::TaskId;
use super::{Event, Of, Simulator, class};
use crate::cost::Step;
use crate::device::{Action, Actions, Charges, Command, Device, EndedBy, Found, Verdict};
use crate::plan::DeviceId;

impl Simulator {
    /// Performs the effects that the label left in the outbox, in order.
    #[inline(never)]
    pub(super) fn drain_outbox(&mut self, id: CpuId) {
        let mut index = 0;
        while let Some(effect) = self.cpus[id].env.outbox.take(index) {
            index += 1;
            one(&mut OnCpu { sim: self, id }, effect);
        }
    }

    fn bio_end(&mut self, id: CpuId, queue: QueueId, bio: BioId, status: Status) {
        let (owner, sector, sectors) = {
            let mut pool = self.layer.mq.queue(queue).pool.held(id);
            let ended = pool.bio(bio);
            let of = (ended.owner, ended.sector, ended.sectors);
            pool.free_bio(bio);
            of
        };
        self.progress.ended = self.cpus.core.now;
        match self.layer.numbers.above(queue) {
            Above::Jobs => match self.replay.as_deref_mut() {
                Some(replay) => replay.io_done(&mut self.cpus, &mut self.tasks, id, owner),
                None if self.tasks.reads_pages(owner) => {
                    let bio = (self.layer.numbers.ends(queue).disk, sector, sectors);
                    let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
                    self.mappings.end_read(cpus, tasks, id, bio, status);
                }
                None => {
                    let lines = &self.outer;
                    self.tasks.io_done(&mut self.cpus, lines, id, owner, status);
                }
            },
            Above::Mapped(above) => unreachable!("a bio of queue {above} ends as its own"),
        }
    }

    /// queue_rq. Separate, so that the loop of turns stays small.
    #[inline(never)]
    pub(super) fn submit(&mut self, id: CpuId, rq: RequestId, last: bool) {
        let queue = self.cpus.asking(id);
        let ends = self.layer.numbers.ends(queue);
        let device = ends.device;
        let charges = self.devices[device].charges;
        let started = charge_queue_rq(&mut self.cpus, id, charges, last);
        let of_plug = self.cpus[id].offers_whole_plug();
        let mut command = self.command(id, Offer { queue, rq, last }, of_plug);
        if let Some(pair) = charges.pair {
            let lead = self.layer.numbers.queues_above(device)[0];
            self.outer
                .touch_submission_queue(&mut self.cpus, id, lead, command.hctx, pair);
        }
        if charges.maps_bios && self.replay.is_none() {
            self.read_bios(id, queue, rq, charges.queue_rq);
        }
        let at = self.cpus.at(id);
        command.since_start = at.since(started);
        let offer = |device: &mut dyn Device, now, out: &mut _| device.queue_rq(&command, now, out);
        let (reply, actions) = self.devices.call(device, at, offer);
        if reply.started {
            let env = &mut self.cpus[id].env;
            // Its work after the start is charged already.
            let end = core::mem::replace(&mut env.at_ps, started.0 * 1000);
            self.layer.mq.start_request(queue, rq, env);
            env.at_ps = end;
            if command.polled && self.replay.is_none() {
                self.note_cookie(id, queue, rq, command.hctx);
            }
            if let Some(replay) = self.replay.as_deref_mut() {
                replay.issued(&self.layer.mq, id, (queue, rq), started);
            }
            if reply.verdict == Verdict::Accepted {
                self.recorder.depth_changes((ends.disk, queue), at, true);
                if self.recorder.seeks.is_some() {
                    self.note_seek(id, queue, rq, at);
                }
            }
            if !self.cpus[id].env.trace.is_empty() {
                self.hand_over_trace(id);
            }
        }
        self.cpus[id].env.answer = match reply.verdict {
            Verdict::Accepted | Verdict::Requeued { .. } => Answer::Ok,
            Verdict::Resource => Answer::Resource,
            Verdict::DevResource => Answer::DevResource,
            Verdict::Error(status) => Answer::Error(status),
        };
        self.act(device, Some(id), actions);
        if let Verdict::Requeued { dontprep } = reply.verdict {
            // Inside queue_rq: before the path that offered the request gets the answer.
            let path = self.layer.mq.gives_back(queue, rq, dontprep);
            self.cpus.push(id, path);
        }
    }

    /// The command of a request that is offered.
    #[inline]
    fn command(&self, id: CpuId, Offer { queue, rq, last }: Offer, of_plug: bool) -> Command {
        let pool = self.layer.mq.queue(queue).pool.held(id);
        let (r, ends) = (&pool[rq], self.layer.numbers.ends(queue));
        Command {
            rq: ends.slot(rq),
            unit: ends.unit,
            hctx: r.hctx,
            cpu: id,
            op: r.op,
            flags: r.flags,
            sector: r.sector,
            sectors: r.sectors,
            polled: r.polled,
            last,
            of_plug,
            budget: r.budget,
            since_start: Duration::ZERO,
        }
    }

    /// The driver maps the data of a request's bios (nvme_map_data(), scsi_alloc_sgtables()).
    fn read_bios(&mut self, id: CpuId, queue: QueueId, rq: RequestId, step: Step) {
        if !matches!(self.layer.numbers.above(queue), Above::Jobs) {
            return;
        }
        let pool = self.layer.mq.queue(queue).pool.held(id);
        for bio in pool.bios_of(rq) {
            if let Some((row, slot)) = self.tasks.io_of(pool.bio(bio).owner) {
                self.outer.read_io(&mut self.cpus, id, row, slot, step);
            }
        }
    }

    /// bi_cookie of a polled request's first bio: where its thread polls.
    fn note_cookie(&mut self, id: CpuId, queue: QueueId, rq: RequestId, hctx: HctxId) {
        if !matches!(self.layer.numbers.above(queue), Above::Jobs) {
            return;
        }
        let owner = {
            let pool = self.layer.mq.queue(queue).pool.held(id);
            pool[rq].bio_first.map(|bio| pool.bio(bio).owner)
        };
        if let Some(owner) = owner {
            self.tasks.polled_io_started(owner, (queue, hctx));
        }
    }

    /// Calls a device and performs its actions.
    #[inline]
    pub(super) fn with_device<R>(
        &mut self,
        device: DeviceId,
        cpu: Option<CpuId>,
        call: impl FnOnce(&mut dyn Device, SimTime, &mut Actions) -> R,
    ) -> R {
        let at = cpu.map_or(self.cpus.core.now, |cpu| self.cpus.at(cpu));
        let (answer, actions) = self.devices.call(device, at, call);
        self.act(device, cpu, actions);
        answer
    }

    #[inline]
    fn act(&mut self, device: DeviceId, cpu: Option<CpuId>, actions: Actions) {
        if actions.is_empty() {
            self.devices.take_back(actions);
        } else {
            self.do_all(device, cpu, actions);
        }
    }

    // Separate: most calls of a device request no action.
    #[inline(never)]
    fn do_all(&mut self, device: DeviceId, cpu: Option<CpuId>, mut actions: Actions) {
        let at = cpu.map_or(self.cpus.core.now, |cpu| self.cpus.at(cpu));
        // A device that acts on its own does so on the first CPU.
        let id = cpu.unwrap_or_default();
        let mut all = actions.drain(..).peekable();
        let mut several = false;
        while let Some(action) = all.next() {
            match action {
                Action::End { rq, status } => {
                    let (queue, rq) = self.layer.numbers.request(device, rq);
                    self.end_request(queue, cpu, rq, status);
                }
                Action::Complete { rq, status } => {
                    let (queue, rq) = self.layer.numbers.request(device, rq);
                    match cpu {
                        Some(id) => self.complete(queue, id, rq, status, EndedBy::Complete),
                        None => self.end_request(queue, None, rq, status),
                    }
                }
                Action::Timer { after, mark } => {
                    self.cpus.core.events.push(
                        at + after,
                        class::DEVICE,
                        Event::Timer(with_mark(device, mark)),
                    );
                }
                Action::Interrupt { after, cpu, vector } => {
                    self.cpus.core.events.push(
                        at + after,
                        class::INTERRUPT,
                        Event::Interrupt(Of::part(device.0, cpu.0, vector)),
                    );
                }
                Action::StopQueues => {
                    let env = &mut self.cpus[id].env;
                    self.layer.set_stopped(env, device, true);
                }
                Action::StartQueues => {
                    let env = &mut self.cpus[id].env;
                    self.layer.set_stopped(env, device, false);
                    if self.kick_single(device, None, id, Duration::ZERO) {
                        continue;
                    }
                    self.run_queues(device, None, (id, cpu.is_some()), RunHow::Started);
                }
                Action::RunQueues { unit, delay } if self.kick_single(device, unit, id, delay) => {}
                Action::RunQueues { unit, delay } => {
                    let how = match delay {
                        Duration::ZERO => RunHow::Background,
                        delay => RunHow::Later(delay),
                    };
                    // Frames nest, and the last one runs first: several units have interrupts.
                    several |= matches!(all.peek(), Some(Action::RunQueues { .. }));
                    let at = (id, cpu.is_some() && !several);
                    self.run_queues(device, unit, at, how);
                }
            }
        }
        drop(all);
        self.devices.take_back(actions);
        if (cpu.is_none() || several) && self.cpus[id].interrupted {
            self.notice(id);
        }
    }

    /// The same for single-queue devices, whose queues kblockd runs: the end of a request runs its
    /// own queue. False if the device's queues are of blk-mq.
    fn kick_single(
        &mut self,
        device: DeviceId,
        unit: Option<u16>,
        id: CpuId,
        delay: Duration,
    ) -> bool {
        let queues = self.layer.numbers.queues_above(device);
        if self.layer.mq.queue(queues[0]).single.is_none() {
            return false;
        }
        let wanted =
            |&(number, _): &(usize, &QueueId)| unit.is_none_or(|u| usize::from(u) == number);
        for (_, &queue) in queues.iter().enumerate().filter(wanted) {
            let kick = Kick {
                queue,
                hctx: HctxId(0),
                delay,
                unless_pending: true,
            };
            let (cpus, tasks, mq) = (&mut self.cpus, &mut self.tasks, &self.layer.mq);
            self.work.kick(cpus, tasks, mq, id, kick);
        }
        true
    }

    /// Runs all hctxs of a device's queues, or of a unit's: on this CPU before its current work, or
    /// in interrupts, one after the other. A device that acts by itself does so in its timer's
    /// interrupt.
    fn run_queues(
        &mut self,
        device: DeviceId,
        unit: Option<u16>,
        (id, here): (CpuId, bool),
        how: RunHow,
    ) {
        // Disks of one device follow each other, and so do their queues.
        let queues = self.layer.numbers.queues_above(device);
        let (queue, more) = match unit {
            None => (queues[0], queues.len() as u16 - 1),
            Some(unit) => (queues[usize::from(unit)], 0),
        };
        let path = RunQueuesPath::new(queue, how, more);
        if here {
            return self.cpus.push(id, Frame::RunQueues(path));
        }
        let cpu = &mut self.cpus[id];
        cpu.irqs.push_back(Irq::Runs(path));
        cpu.interrupted = true;
    }

    /// blk_mq_end_request() in the running level of `cpu`; a device that acts on its own does it
    /// in the softirq of the CPU that submitted.
    pub(super) fn end_request(
        &mut self,
        queue: QueueId,
        cpu: Option<CpuId>,
        rq: RequestId,
        status: Status,
    ) {
        let Some(id) = cpu else {
            let ctx = self.layer.mq.queue(queue).pool.held(CpuId(0))[rq].ctx;
            let ended = Ended::new(queue, rq, status);
            self.cpus.raise_softirq(ctx, ctx, ended);
            return;
        };
        self.push_end(queue, id, rq, status);
    }

    /// A request of a queue of either kind has completed at its device, and ends on `id`.
    pub(super) fn push_end(&mut self, queue: QueueId, id: CpuId, rq: RequestId, status: Status) {
        self.with_device_over(queue, id, rq);
        if status != Status::Ok {
            self.recorder.failed_below(queue);
        }
        let path = self.layer.mq.ends(queue, rq, status);
        self.cpus.push(id, path);
    }

    /// blk_mq_end_request_batch() of the batch of the CPU's level, last first. False if the batch
    /// is empty.
    pub(super) fn end_batch(&mut self, id: CpuId) -> bool {
        let Some(&(queue, _)) = self.cpus[id].batch.last() else {
            return false;
        };
        let mut list = QueueList::new();
        while let Some((_, rq)) = self.cpus[id].batch.pop_if(|(of, _)| *of == queue) {
            self.with_device_over(queue, id, rq);
            let mut pool = self.layer.mq.queue(queue).pool.held(id);
            list.push_back(&mut pool, rq);
        }
        let path = EndBatchPath::new(queue, list);
        self.cpus.push(id, Frame::EndBatch(path));
        true
    }

    /// A request of a queue is about to end on `id`: it has left the device.
    pub(super) fn with_device_over(&mut self, queue: QueueId, id: CpuId, rq: RequestId) {
        let at = self.cpus.at(id);
        let ends = self.layer.numbers.ends(queue);
        // Requests of mapped devices are counted below, at their clones.
        if !self.devices[ends.device].mapped {
            self.recorder.depth_changes((ends.disk, queue), at, false);
        }
        if self.recorder.fio.is_some() {
            self.note_request(queue, id, rq, at);
        }
        if let Some(replay) = self.replay.as_deref_mut() {
            replay.completed(&self.layer.mq, id, (queue, rq), at);
        }
        self.cpus.steal_after_completion(id);
        self.with_device(ends.device, Some(id), |device, now, out| {
            device.ended(ends.slot(rq), now, out);
        });
    }

    /// Ends a request on `id`, in its level or where blk_mq_complete_request() says.
    fn complete(&mut self, queue: QueueId, id: CpuId, rq: RequestId, status: Status, by: EndedBy) {
        let on = match by {
            EndedBy::End => CompleteOn::Here,
            EndedBy::Complete | EndedBy::Batch => self.layer.complete_on(&self.cpus, queue, id, rq),
        };
        let ended = Ended::new(queue, rq, status);
        match on {
            CompleteOn::Here if by == EndedBy::Batch && self.layer.may_batch(id, ended) => {
                self.cpus[id].batch.push((queue, rq));
            }
            CompleteOn::Here => self.end_request(queue, Some(id), rq, status),
            CompleteOn::Softirq => self.cpus.raise_softirq(id, id, ended),
            CompleteOn::Remote(target) => self.cpus.raise_softirq(id, target, ended),
        }
    }

    /// An interrupt handler or poller has found a completion of a device.
    pub(super) fn end_found(&mut self, device: DeviceId, id: CpuId, found: Found) {
        let charges = self.devices[device].charges;
        if let Some(step) = charges.completion {
            self.cpus.charge(id, step);
        }
        let (queue, rq) = self.layer.numbers.request(device, found.rq);
        if let Some(pair) = charges.pair {
            let hctx = self.layer.mq.queue(queue).pool.held(id)[rq].hctx;
            let lead = self.layer.numbers.queues_above(device)[0];
            self.outer
                .touch_completion_queue(&mut self.cpus, id, lead, hctx, pair);
        }
        self.complete(queue, id, rq, found.status, found.by);
    }
}

/// The driver's own work in queue_rq. Returns when it calls blk_mq_start_request().
fn charge_queue_rq(cpus: &mut Cpus, id: CpuId, charges: Charges, last: bool) -> SimTime {
    let mut started = cpus.at(id);
    cpus.charge(id, charges.queue_rq);
    if !charges.starts_first {
        started = cpus.at(id);
    }
    if let Some(step) = charges.timer {
        cpus.charge(id, step);
    }
    if let Some(step) = charges.last
        && last
    {
        cpus.charge(id, step);
    }
    started
}

/// Bits of a timer's event below the number of its device.
const DEVICE_SHIFT: u32 = 48;
/// The bits of that number; marks have bits above them, too.
const DEVICE_BITS: u64 = (QUEUES_MAX as u64 - 1) << DEVICE_SHIFT;

fn with_mark(device: DeviceId, mark: u64) -> u64 {
    assert_eq!(mark & DEVICE_BITS, 0, "mark {mark:#x} of a device");
    mark | u64::from(device.0) << DEVICE_SHIFT
}

pub(super) fn split_mark(mark: u64) -> (DeviceId, u64) {
    let device = (mark & DEVICE_BITS) >> DEVICE_SHIFT;
    (DeviceId(device as u16), mark & !DEVICE_BITS)
}

/// The machine, for effects of a label of one CPU.
struct OnCpu<'a> {
    sim: &'a mut Simulator,
    id: CpuId,
}

impl Machine for OnCpu<'_> {
    fn kick(&mut self, kick: Kick) {
        let (cpus, tasks) = (&mut self.sim.cpus, &mut self.sim.tasks);
        self.sim
            .work
            .kick(cpus, tasks, &self.sim.layer.mq, self.id, kick);
    }

    fn kick_requeue(&mut self, queue: QueueId) {
        let (cpus, tasks) = (&mut self.sim.cpus, &mut self.sim.tasks);
        let mq = &self.sim.layer.mq;
        self.sim.work.kick_requeue(cpus, tasks, mq, self.id, queue);
    }

    fn bio_end(&mut self, queue: QueueId, bio: BioId, status: Status) {
        self.sim.bio_end(self.id, queue, bio, status);
    }

    fn wake(&mut self, waiter: WaiterId) {
        self.sim.cpus.charge(self.id, Step::Wake);
        self.sim
            .tasks
            .wake(&mut self.sim.cpus, TaskId(waiter.0), self.id, SimTime::ZERO);
    }

    /// Whole ticks, as in msleep().
    fn wake_later(&mut self, waiter: WaiterId, after: Duration) {
        let (cpus, tasks) = (&mut self.sim.cpus, &mut self.sim.tasks);
        let until = cpus.tick_after(cpus.at(self.id), after);
        tasks.sleep_until(cpus, TaskId(waiter.0), until);
    }

    fn time_out(&mut self, queue: QueueId, after: Duration) {
        let cpus = &mut self.sim.cpus;
        self.sim.work.set_timeout(cpus, self.id, queue, after);
    }

    fn arm(&mut self, queue: QueueId, timer: u8, after: Duration) {
        let (cpus, mq) = (&mut self.sim.cpus, &self.sim.layer.mq);
        let timers = &mut self.sim.timers;
        timers.arm(cpus, mq, self.id, queue, timer, after);
    }

    fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.sim.timers.cancel(queue, timer);
    }

    fn complete(&mut self, queue: QueueId, rq: RequestId) {
        let rules = self.sim.layer.mq.queue(queue).settings.rules;
        match rules.device_mapper.requests.second_end {
            SecondEnd::Placed => {
                let by = EndedBy::Complete;
                self.sim.complete(queue, self.id, rq, Status::Ok, by);
            }
            SecondEnd::Softirq => {
                let (sim, ended) = (&mut *self.sim, Ended::new(queue, rq, Status::Ok));
                // blk_complete_request(): a request of blk-mq does not know its CPU.
                let single = sim.layer.mq.queue(queue).single.is_some();
                let on = sim.layer.complete_on(&sim.cpus, queue, self.id, rq);
                let target = match on {
                    CompleteOn::Remote(target) if single => target,
                    _ => self.id,
                };
                sim.cpus.raise_softirq(self.id, target, ended);
            }
        }
    }

    fn map(&mut self, queue: QueueId, rq: RequestId) {
        let (cpus, tasks) = (&mut self.sim.cpus, &mut self.sim.tasks);
        let item = (queue, MapItem::Map(rq));
        self.sim.mappers.give(cpus, tasks, self.id, item);
    }

    fn flush_mapper(&mut self, queue: QueueId, waiter: WaiterId) {
        let (cpus, tasks) = (&mut self.sim.cpus, &mut self.sim.tasks);
        let item = (queue, MapItem::Flush(waiter));
        self.sim.mappers.give(cpus, tasks, self.id, item);
    }

    fn kick_requeue_later(&mut self, queue: QueueId, after: Duration) {
        let (cpus, mq) = (&mut self.sim.cpus, &self.sim.layer.mq);
        let work = &mut self.sim.work;
        work.kick_requeue_later(cpus, mq, self.id, (queue, after));
    }

    fn run_queue(&mut self, queue: QueueId) {
        let q = self.sim.layer.mq.queue(queue);
        if q.single.as_ref().is_some_and(|own| own.stopped.peek()) {
            return;
        }
        // blk_mq_run_hw_queue() of 6.1 and blk_run_queue_async() take an item from its timer.
        for hctx in 0..q.hctxs.len() as u16 {
            self.kick(Kick {
                queue,
                hctx: HctxId(hctx),
                delay: Duration::ZERO,
                unless_pending: false,
            });
        }
    }

    fn activate(&mut self, queue: QueueId, path: PathId, after: Duration) {
        let what = ToTarget::Activate(path);
        self.sim
            .targets
            .later(&mut self.sim.cpus, self.id, (queue, what), after);
    }

    fn bio_work(&mut self, queue: QueueId, what: BioWork) {
        let (cpus, tasks) = (&mut self.sim.cpus, &mut self.sim.tasks);
        let workers = &mut self.sim.bio_workers;
        workers.queue(cpus, tasks, self.id, (queue, what));
    }

    fn path_timer(&mut self, queue: QueueId, after: Option<Duration>) {
        self.sim
            .targets
            .timer(&mut self.sim.cpus, self.id, queue, after);
    }

    fn uevent(&mut self, queue: QueueId, event: Uevent) {
        let (path, failed) = match event {
            Uevent::PathFailed(path) => (path, true),
            Uevent::PathReinstated(path) => (path, false),
        };
        let numbers = &self.sim.layer.numbers;
        let below = numbers.below(numbers.ends(queue).disk)[path.index()];
        let at = self.sim.cpus.at(self.id);
        self.sim.recorder.path_changes(below, at, failed);
        if failed {
            let (cpus, id) = (&mut self.sim.cpus, self.id);
            self.sim.targets.path_failed(cpus, id, queue, path);
        }
    }
}

#[cfg(test)]
mod tests;
