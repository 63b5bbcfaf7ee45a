//! Effects of labels on the machine, and calls between block layer and device.

use blkmq::env::{Answer, Effect, Slab};
use blkmq::path::{CompleteOn, CompletePath, Frame, RequeueRequest};
use blkmq::request::{BioId, CpuId, HctxId, RequestId, Status};
use blkmq::tags::WaiterId;
use blkmq::time::SimTime;

use super::task::TaskId;
use super::{Event, Of, Simulator, class};
use crate::cost::Step;
use crate::device::{Action, Actions, AnyDevice, Command, Device, EndedBy, Found, Verdict};
use crate::plan::DeviceKind;

impl Simulator {
    /// Does what the label left in the outbox, in order.
    #[inline(never)]
    pub(super) fn drain_outbox(&mut self, id: CpuId) {
        let mut index = 0;
        while let Some(effect) = self.cpu_mut(id).env.outbox.take(index) {
            index += 1;
            match effect {
                Effect::Kick { hctx, delay, .. } => self.kick(id, hctx, delay, false),
                Effect::KickUnlessPending { hctx, delay, .. } => self.kick(id, hctx, delay, true),
                Effect::KickRequeue { .. } => self.kick_requeue(id),
                Effect::BioEnd { queue, bio, status } => self.bio_end(id, queue, bio, status),
                Effect::Wake(WaiterId(task)) => {
                    self.charge(id, Step::Wake);
                    self.wake(TaskId(task), id);
                }
            }
        }
    }

    /// Hands the trace points of a label to the recorder.
    pub(super) fn note_trace(&mut self, id: CpuId) {
        let cpu = &mut self.cpus[usize::from(id.0)];
        let task = cpu.current.map_or(0, |task| task.0 + 1);
        for point in cpu.env.trace.drain(..) {
            self.recorder
                .trace
                .push((cpu.env.traced_at, id, task, point));
        }
    }

    fn bio_end(&mut self, id: CpuId, queue: u8, bio: BioId, status: Status) {
        let owner = {
            let mut pool = self.mq.queue(queue).pool.held(id);
            let owner = pool.bio(bio).owner;
            pool.free_bio(bio);
            owner
        };
        self.progress = self.core.now;
        self.io_done(id, owner, status);
    }

    /// queue_rq.
    pub(super) fn submit(&mut self, id: CpuId, rq: RequestId, last: bool) {
        let frame = self.cpu_mut(id).level_state().stack.top();
        let queue = frame.expect("a frame offered it").queue();
        let command = {
            let pool = self.mq.queue(queue).pool.held(id);
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
            }
        };
        self.charge_queue_rq(id, last);
        self.touch_submission_queue(id, command.hctx);
        self.device_now = self.device_now.max(self.at(id));
        let mut actions = self.spare_actions.pop().unwrap_or_default();
        let reply = self
            .device
            .queue_rq(&command, self.device_now, &mut actions);
        if reply.started {
            let at = self.at(id);
            let cpu = &mut self.cpus[usize::from(id.0)];
            self.mq.start_request(queue, rq, &mut cpu.env);
            self.replay_issued(id, rq, at);
            let cpu = &mut self.cpus[usize::from(id.0)];
            if reply.verdict == Verdict::Accepted {
                self.recorder.device_depth.change(at, true);
            }
            if !cpu.env.trace.is_empty() {
                self.note_trace(id);
            }
        }
        self.cpu_mut(id).env.answer = match reply.verdict {
            Verdict::Accepted | Verdict::Requeued { .. } => Answer::Ok,
            Verdict::Resource => Answer::Resource,
            Verdict::DevResource => Answer::DevResource,
            Verdict::Error(status) => Answer::Error(status),
        };
        self.act(Some(id), actions);
        if let Verdict::Requeued { dontprep } = reply.verdict {
            // Inside queue_rq: before whoever offered the request hears of it.
            let path = RequeueRequest::new(queue, rq, dontprep);
            let level = self.cpu_mut(id).level_state();
            level.stack.push(Frame::RequeueRequest(path));
        }
    }

    /// The driver's own work in queue_rq.
    fn charge_queue_rq(&mut self, id: CpuId, last: bool) {
        match &self.plan.device.kind {
            DeviceKind::NullBlk(plan) => {
                let timer = plan.irqmode == crate::plan::IrqMode::Timer;
                self.charge(id, Step::NullBlkQueueRq);
                if timer {
                    self.charge(id, Step::HrtimerStart);
                }
            }
            DeviceKind::Nvme(_) => {
                self.charge(id, Step::NvmeQueueRq);
                if last {
                    self.charge(id, Step::NvmeDoorbell);
                }
            }
            DeviceKind::ScsiDebug(_) => {
                self.charge(id, Step::ScsiQueueRq);
                self.charge(id, Step::HrtimerStart);
            }
        }
    }

    /// Calls the device and does what it asks for.
    pub(super) fn with_device(
        &mut self,
        cpu: Option<CpuId>,
        call: impl FnOnce(&mut AnyDevice, SimTime, &mut Actions),
    ) {
        let at = cpu.map_or(self.core.now, |cpu| self.at(cpu));
        self.device_now = self.device_now.max(at);
        let mut actions = self.spare_actions.pop().unwrap_or_default();
        call(&mut self.device, self.device_now, &mut actions);
        self.act(cpu, actions);
    }

    #[inline]
    fn act(&mut self, cpu: Option<CpuId>, actions: Actions) {
        if actions.is_empty() {
            self.spare_actions.push(actions);
        } else {
            self.do_all(cpu, actions);
        }
    }

    fn do_all(&mut self, cpu: Option<CpuId>, mut actions: Actions) {
        let at = cpu.map_or(self.core.now, |cpu| self.at(cpu));
        for action in actions.drain(..) {
            match action {
                Action::End { rq, status } => self.end_request(cpu, rq, status, false),
                Action::Complete { rq, status } => self.complete_request(cpu, rq, status),
                Action::Timer { after, mark } => {
                    self.core
                        .events
                        .push(at + after, class::DEVICE, Event::Timer(mark));
                }
                Action::Interrupt { after, cpu, vector } => {
                    self.core.events.push(
                        at + after,
                        class::INTERRUPT,
                        Event::Interrupt(Of::cpu(cpu, vector)),
                    );
                }
                Action::StopQueues => self.set_stopped(cpu, true),
                Action::StartQueues => {
                    self.set_stopped(cpu, false);
                    self.run_queues(cpu, blkmq::time::Duration::ZERO);
                }
                Action::RunQueues { delay } => self.run_queues(cpu, delay),
            }
        }
        self.spare_actions.push(actions);
    }

    fn set_stopped(&mut self, cpu: Option<CpuId>, stopped: bool) {
        let id = cpu.unwrap_or(CpuId(0));
        let env = &mut self.cpus[usize::from(id.0)].env;
        for hctx in &self.mq.queue(0).hctxs {
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

    fn run_queues(&mut self, cpu: Option<CpuId>, delay: blkmq::time::Duration) {
        let id = cpu.unwrap_or(CpuId(0));
        for hctx in 0..self.mq.queue(0).hctxs.len() as u16 {
            self.kick(id, HctxId(hctx), delay, delay.0 > 0);
        }
    }

    /// blk_mq_end_request() in the running level of `cpu`; a device that acts on its own does it
    /// in the softirq of the CPU that submitted.
    fn end_request(&mut self, cpu: Option<CpuId>, rq: RequestId, status: Status, batched: bool) {
        let Some(id) = cpu else {
            let ctx = self.mq.queue(0).pool.held(CpuId(0))[rq].ctx;
            self.redirect(ctx, ctx, rq, status);
            return;
        };
        self.recorder.device_depth.change(self.at(id), false);
        self.replay_completed(id, rq);
        self.with_device(Some(id), |device, now, out| device.ended(rq, now, out));
        let path = if batched {
            CompletePath::end_batched(0, rq)
        } else {
            CompletePath::end(0, rq, status)
        };
        self.cpu_mut(id)
            .level_state()
            .stack
            .push(Frame::Complete(path));
    }

    /// blk_mq_complete_request().
    fn complete_request(&mut self, cpu: Option<CpuId>, rq: RequestId, status: Status) {
        let Some(id) = cpu else {
            self.end_request(None, rq, status, false);
            return;
        };
        match self.complete_on(id, rq) {
            CompleteOn::Here => self.end_request(Some(id), rq, status, false),
            CompleteOn::Softirq => self.redirect(id, id, rq, status),
            CompleteOn::Remote(target) => self.redirect(id, target, rq, status),
        }
    }

    fn complete_on(&self, id: CpuId, rq: RequestId) -> CompleteOn {
        self.mq
            .complete_on(0, rq, id, |a, b| self.core.costs.share_cache(a, b))
    }

    /// Puts a completion on a CPU's softirq list.
    fn redirect(&mut self, from: CpuId, to: CpuId, rq: RequestId, status: Status) {
        let target = self.cpu_mut(to);
        let first = target.softirq_list.is_empty();
        target.softirq_list.push_back((rq, status));
        target.softirq_raised = true;
        if !first || (from == to && !self.cpu(to).is_idle()) {
            return;
        }
        if from != to {
            self.charge(from, Step::IpiSend);
        }
        let at = self.at(from) + self.core.costs.delay(Step::IpiLatency);
        self.core
            .events
            .push(at, class::INTERRUPT, Event::Ipi(Of::cpu(to, 0)));
    }

    /// Ends what an interrupt handler or poller found, in its own level.
    pub(super) fn end_found(&mut self, id: CpuId, found: Found) {
        self.touch_completion_queue(id, found.rq);
        match found.by {
            EndedBy::End => self.end_request(Some(id), found.rq, found.status, false),
            EndedBy::Complete => self.complete_request(Some(id), found.rq, found.status),
            EndedBy::Batch => match self.complete_on(id, found.rq) {
                CompleteOn::Here => {
                    let alone = {
                        let pool = self.mq.queue(0).pool.held(id);
                        pool[found.rq].internal_tag.is_some() || pool[found.rq].flush_seq
                    };
                    if alone || found.status != Status::Ok {
                        self.end_request(Some(id), found.rq, found.status, false);
                    } else {
                        self.cpu_mut(id).batch.push(found.rq);
                    }
                }
                CompleteOn::Softirq => self.redirect(id, id, found.rq, found.status),
                CompleteOn::Remote(target) => self.redirect(id, target, found.rq, found.status),
            },
        }
    }

    /// Ends one request of the batch, last added first. False if it is empty.
    pub(super) fn end_one_of_batch(&mut self, id: CpuId) -> bool {
        let Some(rq) = self.cpu_mut(id).batch.pop() else {
            return false;
        };
        self.end_request(Some(id), rq, Status::Ok, true);
        true
    }
}

#[cfg(test)]
mod tests;
