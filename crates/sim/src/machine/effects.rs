//! Effects of labels on the machine, and calls between block layer and device.

use blkmq::drive::{Kick, Machine, one};
use blkmq::env::{Answer, Probe, Slab, TraceAction};
use blkmq::path::{ClonePath, CompleteOn, CompletePath, Frame, RequeueRequest};
use blkmq::request::{Bio, BioId, CpuId, HctxId, QueueId, RequestId, Status};
use blkmq::tags::WaiterId;
use blkmq::time::{Duration, SimTime};

use super::cpu::Ended;
use super::numbers::Above;
use super::task::TaskId;
use super::{Event, Of, Simulator, class};
use crate::cost::Step;
use crate::device::{Action, Actions, Charges, Command, Device, EndedBy, Found, Verdict};
use crate::plan::DeviceId;

impl Simulator {
    /// Does what the label left in the outbox, in order.
    #[inline(never)]
    pub(super) fn drain_outbox(&mut self, id: CpuId) {
        let mut index = 0;
        while let Some(effect) = self.cpus[id].env.outbox.take(index) {
            index += 1;
            one(&mut OnCpu { sim: self, id }, effect);
        }
    }

    /// Hands the trace points of a label to the recorder: the first at the label's beginning, the
    /// others spread over it. Each takes the clock of its CPU a nanosecond later at least, as it
    /// does in a kernel.
    pub(super) fn note_trace(&mut self, id: CpuId) {
        let cpu = &mut self.cpus[id];
        let task = cpu.current.map_or(0, |task| task.0 + 1);
        let (from, to) = (cpu.env.traced_at, cpu.at());
        let count = cpu.env.trace.len() as u64;
        for (index, point) in (0..).zip(cpu.env.trace.drain(..)) {
            let returns = matches!(point.action, TraceAction::Probe(Probe::Answer { .. }));
            let at = match returns {
                // The function returns behind its unlock, the end of the label.
                true => to,
                false => from + Duration(to.since(from).0 * index / count),
            };
            let at = at.max(cpu.next_record);
            cpu.next_record = at + Duration(1);
            self.recorder.trace.push((at, id, task, point));
        }
    }

    fn bio_end(&mut self, id: CpuId, queue: QueueId, bio: BioId, status: Status) {
        let owner = {
            let mut pool = self.layer.mq.queue(queue).pool.held(id);
            let owner = pool.bio(bio).owner;
            pool.free_bio(bio);
            owner
        };
        self.progress.ended = self.cpus.core.now;
        match self.layer.numbers.above(queue) {
            Above::Jobs if self.replay.is_some() => self.replay_done(id, owner),
            Above::Jobs => {
                let lines = &self.outer;
                self.tasks.io_done(&mut self.cpus, lines, id, owner, status);
            }
            Above::Device(device) => self.clone_end(id, device, RequestId(owner), status),
        }
    }

    /// end_clone_request(): the clone of a request that `device` has ended. What comes of it runs
    /// when the clone has given its tags back.
    fn clone_end(&mut self, id: CpuId, device: DeviceId, rq: RequestId, status: Status) {
        let ending = self.cpus[id].level_state().stack.pop();
        self.with_device(device, Some(id), |device, now, out| {
            device.ended_below(rq, status, now, out);
        });
        if let Some(ending) = ending {
            self.cpus.push(id, ending);
        }
    }

    /// A clone of a request of `queue` goes to a queue below, and its answer to whoever asked.
    ///
    /// Deviation(D18): it has one bio, and no A is traced.
    fn submit_below(&mut self, id: CpuId, queue: QueueId, rq: RequestId, below: QueueId) {
        let bio = {
            let pool = self.layer.mq.queue(queue).pool.held(id);
            let r = &pool[rq];
            let mut bio = Bio::default();
            bio.op = r.op;
            bio.flags = r.flags;
            bio.sector = r.sector;
            bio.sectors = r.sectors;
            bio.segments = r.segments;
            bio.ioprio = r.ioprio;
            bio.io_context = r.io_context;
            bio.owner = rq.0;
            bio
        };
        let bio = self.layer.mq.queue(below).pool.held(id).add_bio(bio);
        let bio = bio.expect("a request has one clone at a time");
        let path = Frame::Clone(ClonePath::new(below, bio));
        self.cpus.push(id, path);
    }

    /// The device below the queue whose path asks for something.
    pub(super) fn device_asked(&mut self, id: CpuId) -> DeviceId {
        let queue = self.cpus.asking(id);
        self.layer.numbers.device_of(queue)
    }

    /// queue_rq. Apart, so that the loop of turns stays small.
    #[inline(never)]
    pub(super) fn submit(&mut self, id: CpuId, rq: RequestId, last: bool) {
        let queue = self.cpus.asking(id);
        let device = self.layer.numbers.device_of(queue);
        let charges = self.charges(device);
        let started = self.charge_queue_rq(id, charges, last);
        let mut command = {
            let pool = self.layer.mq.queue(queue).pool.held(id);
            let r = &pool[rq];
            Command {
                rq,
                hctx: r.hctx,
                cpu: id,
                op: r.op,
                flags: r.flags,
                sector: r.sector,
                sectors: r.sectors,
                polled: r.polled,
                last,
                budget: r.budget,
                since_start: Duration::ZERO,
            }
        };
        if let Some(pair) = charges.pair {
            self.outer
                .touch_submission_queue(&mut self.cpus, id, queue, command.hctx, pair);
        }
        let at = self.cpus.at(id);
        command.since_start = at.since(started);
        let mut actions = self.spare_actions.pop().unwrap_or_default();
        let called = &mut self.devices[device.index()];
        called.now = called.now.max(at);
        let reply = called.device.queue_rq(&command, called.now, &mut actions);
        if reply.started {
            let env = &mut self.cpus[id].env;
            // Its work behind the start is charged already.
            let end = core::mem::replace(&mut env.at_ps, started.0 * 1000);
            self.layer.mq.start_request(queue, rq, env);
            env.at_ps = end;
            self.replay_issued(id, rq, started);
            let cpu = &mut self.cpus[id];
            if reply.verdict == Verdict::Accepted {
                let disk = self.layer.numbers.disk_of(queue);
                self.recorder.depth_changes(disk, at, true);
            }
            if !cpu.env.trace.is_empty() {
                self.note_trace(id);
            }
        }
        self.cpus[id].env.answer = match reply.verdict {
            Verdict::Accepted | Verdict::Requeued { .. } => Answer::Ok,
            Verdict::Resource => Answer::Resource,
            Verdict::DevResource => Answer::DevResource,
            Verdict::Error(status) => Answer::Error(status),
            Verdict::Below(below) => {
                self.act(device, Some(id), actions);
                self.submit_below(id, queue, rq, below);
                return;
            }
        };
        self.act(device, Some(id), actions);
        if let Verdict::Requeued { dontprep } = reply.verdict {
            // Inside queue_rq: before whoever offered the request hears of it.
            let path = RequeueRequest::new(queue, rq, dontprep);
            self.cpus.push(id, Frame::RequeueRequest(path));
        }
    }

    /// The driver's own work in queue_rq. Returns when it calls blk_mq_start_request().
    fn charge_queue_rq(&mut self, id: CpuId, charges: Charges, last: bool) -> SimTime {
        let mut started = self.cpus.at(id);
        self.cpus.charge(id, charges.queue_rq);
        if !charges.starts_first {
            started = self.cpus.at(id);
        }
        if let Some(step) = charges.timer {
            self.cpus.charge(id, step);
        }
        if let Some(step) = charges.last
            && last
        {
            self.cpus.charge(id, step);
        }
        started
    }

    /// What the work of a device's driver costs.
    #[inline]
    pub(super) fn charges(&self, device: DeviceId) -> Charges {
        self.devices[device.index()].charges
    }

    /// Calls a device and does what it asks for.
    #[inline]
    pub(super) fn with_device(
        &mut self,
        device: DeviceId,
        cpu: Option<CpuId>,
        call: impl FnOnce(&mut dyn Device, SimTime, &mut Actions),
    ) {
        let at = cpu.map_or(self.cpus.core.now, |cpu| self.cpus.at(cpu));
        let mut actions = self.spare_actions.pop().unwrap_or_default();
        let called = &mut self.devices[device.index()];
        called.now = called.now.max(at);
        call(&mut *called.device, called.now, &mut actions);
        self.act(device, cpu, actions);
    }

    #[inline]
    fn act(&mut self, device: DeviceId, cpu: Option<CpuId>, actions: Actions) {
        if actions.is_empty() {
            self.spare_actions.push(actions);
        } else {
            self.do_all(device, cpu, actions);
        }
    }

    // Apart: most calls of a device ask for nothing.
    #[inline(never)]
    fn do_all(&mut self, device: DeviceId, cpu: Option<CpuId>, mut actions: Actions) {
        let queue = self.layer.numbers.queue_above(device);
        let at = cpu.map_or(self.cpus.core.now, |cpu| self.cpus.at(cpu));
        for action in actions.drain(..) {
            match action {
                Action::End { rq, status } => self.end_request(queue, cpu, rq, status, false),
                Action::Complete { rq, status } => self.complete_request(queue, cpu, rq, status),
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
                Action::StopQueues => self.set_stopped(queue, cpu, true),
                Action::StartQueues => {
                    self.set_stopped(queue, cpu, false);
                    self.run_queues(queue, cpu, Duration::ZERO);
                }
                Action::RunQueues { delay } => self.run_queues(queue, cpu, delay),
            }
        }
        self.spare_actions.push(actions);
    }

    fn set_stopped(&mut self, queue: QueueId, cpu: Option<CpuId>, stopped: bool) {
        let id = cpu.unwrap_or(CpuId(0));
        let env = &mut self.cpus[id].env;
        for hctx in &self.layer.mq.queue(queue).hctxs {
            env.begin_label();
            if stopped {
                blkmq::env::Bit::set(&hctx.stopped, env);
            } else {
                blkmq::env::Bit::clear(&hctx.stopped, env);
            }
        }
        env.begin_label();
        env.meter.take();
    }

    fn run_queues(&mut self, queue: QueueId, cpu: Option<CpuId>, delay: Duration) {
        let id = cpu.unwrap_or(CpuId(0));
        for hctx in 0..self.layer.mq.queue(queue).hctxs.len() as u16 {
            let kick = Kick {
                queue,
                hctx: HctxId(hctx),
                delay,
                unless_pending: delay.0 > 0,
            };
            let (cpus, tasks) = (&mut self.cpus, &mut self.tasks);
            self.work.kick(cpus, tasks, &self.layer.mq, id, kick);
        }
    }

    /// blk_mq_end_request() in the running level of `cpu`; a device that acts on its own does it
    /// in the softirq of the CPU that submitted.
    fn end_request(
        &mut self,
        queue: QueueId,
        cpu: Option<CpuId>,
        rq: RequestId,
        status: Status,
        batched: bool,
    ) {
        let Some(id) = cpu else {
            let ctx = self.layer.mq.queue(queue).pool.held(CpuId(0))[rq].ctx;
            self.redirect(queue, ctx, ctx, rq, status);
            return;
        };
        self.with_device_over(queue, id, rq);
        let path = if batched {
            CompletePath::end_batched(queue, rq)
        } else {
            CompletePath::end(queue, rq, status)
        };
        self.cpus.push(id, Frame::Complete(path));
    }

    /// A request of a queue is about to be ended on `id`: it is with the device no longer.
    pub(super) fn with_device_over(&mut self, queue: QueueId, id: CpuId, rq: RequestId) {
        let at = self.cpus.at(id);
        let device = self.layer.numbers.device_of(queue);
        if !self.devices[device.index()].stacked {
            let disk = self.layer.numbers.disk_of(queue);
            self.recorder.depth_changes(disk, at, false);
        }
        self.replay_completed(id, rq);
        self.with_device(device, Some(id), |device, now, out| {
            device.ended(rq, now, out);
        });
    }

    /// blk_mq_complete_request().
    fn complete_request(
        &mut self,
        queue: QueueId,
        cpu: Option<CpuId>,
        rq: RequestId,
        status: Status,
    ) {
        let Some(id) = cpu else {
            self.end_request(queue, None, rq, status, false);
            return;
        };
        match self.complete_on(queue, id, rq) {
            CompleteOn::Here => self.end_request(queue, Some(id), rq, status, false),
            CompleteOn::Softirq => self.redirect(queue, id, id, rq, status),
            CompleteOn::Remote(target) => self.redirect(queue, id, target, rq, status),
        }
    }

    fn complete_on(&self, queue: QueueId, id: CpuId, rq: RequestId) -> CompleteOn {
        self.layer
            .mq
            .complete_on(queue, rq, id, |a, b| self.cpus.core.costs.share_cache(a, b))
    }

    /// Puts a completion on a CPU's softirq list.
    fn redirect(&mut self, queue: QueueId, from: CpuId, to: CpuId, rq: RequestId, status: Status) {
        let ended = Ended {
            queue,
            rq,
            status,
            announced: false,
        };
        self.cpus.raise_softirq(from, to, ended);
    }

    /// Ends what an interrupt handler or poller found, in its own level.
    pub(super) fn end_found(&mut self, queue: QueueId, id: CpuId, found: Found) {
        let Found { rq, status, by } = found;
        if let Some(pair) = self.charges(self.layer.numbers.device_of(queue)).pair {
            let hctx = self.layer.mq.queue(queue).with_pool(|pool| pool[rq].hctx);
            let lines = &self.outer;
            lines.touch_completion_queue(&mut self.cpus, id, queue, hctx, pair);
        }
        match by {
            EndedBy::End => self.end_request(queue, Some(id), rq, status, false),
            EndedBy::Complete => self.complete_request(queue, Some(id), rq, status),
            EndedBy::Batch => match self.complete_on(queue, id, rq) {
                CompleteOn::Here => {
                    let alone = {
                        let pool = self.layer.mq.queue(queue).pool.held(id);
                        pool[rq].internal_tag.is_some() || pool[rq].flush_seq
                    };
                    if alone || status != Status::Ok {
                        self.end_request(queue, Some(id), rq, status, false);
                    } else {
                        self.cpus[id].batch.push((queue, rq));
                    }
                }
                CompleteOn::Softirq => self.redirect(queue, id, id, rq, status),
                CompleteOn::Remote(target) => self.redirect(queue, id, target, rq, status),
            },
        }
    }

    /// Ends one request of the batch, last added first. False if it is empty.
    pub(super) fn end_one_of_batch(&mut self, id: CpuId) -> bool {
        let Some((queue, rq)) = self.cpus[id].batch.pop() else {
            return false;
        };
        self.end_request(queue, Some(id), rq, Status::Ok, true);
        true
    }
}

/// Where a timer's event has the number of its device.
const DEVICE_SHIFT: u32 = 48;

/// A device's mark with its number.
fn with_mark(device: DeviceId, mark: u64) -> u64 {
    assert_eq!(
        (mark >> DEVICE_SHIFT) as u8,
        0,
        "mark {mark:#x} of a device"
    );
    mark | u64::from(device.0) << DEVICE_SHIFT
}

/// The device and its mark.
pub(super) fn split_mark(mark: u64) -> (DeviceId, u64) {
    (
        DeviceId((mark >> DEVICE_SHIFT) as u8),
        mark & !(0xff << DEVICE_SHIFT),
    )
}

/// The machine as a CPU whose label left something has it.
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
        self.sim.work.kick_requeue(cpus, tasks, self.id, queue);
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

    fn arm(&mut self, queue: QueueId, timer: u8, after: Duration) {
        let (cpus, mq) = (&mut self.sim.cpus, &self.sim.layer.mq);
        let timers = &mut self.sim.timers;
        timers.arm(cpus, mq, self.id, queue, timer, after);
    }

    fn cancel(&mut self, queue: QueueId, timer: u8) {
        self.sim.timers.cancel(queue, timer);
    }
}

#[cfg(test)]
mod tests;
