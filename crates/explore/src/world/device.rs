//! The device's answers to queue_rq, and the actions of its driver.

use super::steps::Steps;
use super::{DriverState, Fixed, Outside, Pending, Phase, Slot, World};
use crate::config::{Promises, Refusal, Stops};
use blkmq::drive::Context;
use blkmq::env::{Answer, Cpu};
use blkmq::path::{Frame, RunHow, RunPath, RunQueuesPath};
use blkmq::queue::BlkMq;
use blkmq::request::{HctxId, Place, QueueId};

impl Steps<'_> {
    pub(super) fn answer(&mut self, slot: Slot, way: u8, at: &mut Context<'_>) {
        let fixed = self.fixed;
        if way > self.outside.ways_to_refuse(self.mq, fixed, slot) {
            self.requeue(slot, at);
            return;
        }
        let full = self.outside.in_device.len() as u32 >= fixed.config.device_limit;
        let promises = || self.outside.may_promise(self.mq, fixed, slot);
        let answer = match way {
            0 if self.outside.sleeps(self.mq, fixed, slot) => Answer::Resource,
            0 if full => match fixed.config.when_full {
                _ if fixed.config.stops == Stops::WhenRefusing => Answer::DevResource,
                Refusal::DevResource if promises() => Answer::DevResource,
                _ => Answer::Resource,
            },
            0 => Answer::Ok,
            1 => Answer::Resource,
            _ => Answer::DevResource,
        };
        if way > 0 {
            self.outside.refusals -= 1;
        }
        if answer == Answer::DevResource && fixed.config.promises == Promises::AnyHctx {
            let place = fixed.config.place(slot.queue, hctx_of(self.mq, slot));
            self.outside.promised |= 1 << place;
        }
        self.note(slot, answer, at.cpu);
        if answer == Answer::Ok {
            self.take(slot, at.cpu);
        }
        at.cpu.answer = answer;
    }

    pub(super) fn take(&mut self, slot: Slot, cpu: &mut Cpu) {
        self.mq.start_request(slot.queue, slot.rq, cpu);
        let in_device = &mut self.outside.in_device;
        in_device.insert(in_device.partition_point(|&other| other < slot), slot);
    }

    /// The driver starts a request, requeues it inside queue_rq and returns BLK_STS_OK.
    fn requeue(&mut self, slot: Slot, at: &mut Context<'_>) {
        self.outside.requeues -= 1;
        let q = self.mq.queue(slot.queue);
        self.mq.start_request(slot.queue, slot.rq, at.cpu);
        // The driver holds the request, and no completion will find it.
        q.with_pool(|pool| pool[slot.rq].place = Place::Path);
        at.cpu.answer = Answer::Ok;
        let path = self.mq.gives_back(slot.queue, slot.rq, false);
        at.stack.push(path);
    }

    /// Updates the driver's state with its answer.
    fn note(&mut self, slot: Slot, answer: Answer, cpu: &mut Cpu) {
        let (fixed, q) = (self.fixed, self.mq.queue(slot.queue));
        let (hctx, passes) = (hctx_of(self.mq, slot), passes(self.mq, slot));
        let stands = q.hctxs[usize::from(hctx.0)].dispatch_pending.peek();
        let driver = &mut self.outside.driver;
        match answer {
            Answer::Ok if passes => {
                driver.awake = fixed.config.needs_passthrough;
                driver.overtakes = 0;
            }
            Answer::Ok if stands && fixed.config.overtakes_max.is_some() => driver.overtakes += 1,
            Answer::Ok => {}
            _ => {
                let held = q.with_pool(|pool| pool[slot.rq].budget.is_some());
                driver.budgets += u32::from(held);
            }
        }
        let fills = self.outside.in_device.len() as u32 + 1 == fixed.config.device_limit;
        let stops = match fixed.config.stops {
            Stops::Never => false,
            Stops::WhenFilled => fills && answer == Answer::Ok,
            Stops::WhenRefusing => answer == Answer::DevResource,
        };
        if stops {
            cpu.begin_label();
            self.mq.stop_hctx(slot.queue, hctx, cpu);
        }
    }
}

impl Outside {
    /// The number of answers that the device may give.
    pub(super) fn ways_to_answer(&self, mq: &BlkMq, fixed: &Fixed, slot: Slot) -> u8 {
        1 + self.ways_to_refuse(mq, fixed, slot) + u8::from(self.requeues > 0)
    }

    /// The number of refusals that the device may give though it has room.
    fn ways_to_refuse(&self, mq: &BlkMq, fixed: &Fixed, slot: Slot) -> u8 {
        let full = self.in_device.len() as u32 >= fixed.config.device_limit;
        if full || self.refusals == 0 {
            return 0;
        }
        1 + u8::from(self.may_promise(mq, fixed, slot))
    }

    fn may_promise(&self, mq: &BlkMq, fixed: &Fixed, slot: Slot) -> bool {
        let hctx = hctx_of(mq, slot);
        let mut in_flight = self.in_device.iter();
        in_flight.any(|&other| {
            let same = other.queue == slot.queue && hctx_of(mq, other) == hctx;
            fixed.config.promises == Promises::AnyHctx || same
        })
    }

    /// A request has ended: the driver runs the hctxs that it refused.
    pub(super) fn keep_promises(&mut self, fixed: &Fixed) {
        let promised = core::mem::take(&mut self.promised);
        for place in (0..fixed.config.all_hctxs()).filter(|place| promised >> place & 1 != 0) {
            self.kick(fixed, place, Pending::Now);
        }
    }

    /// The device sleeps: it refuses the request until it has taken a passthrough request.
    fn sleeps(&self, mq: &BlkMq, fixed: &Fixed, slot: Slot) -> bool {
        fixed.config.needs_passthrough && !self.driver.awake && !passes(mq, slot)
    }
}

impl DriverState {
    /// get_budget.
    pub(super) fn get_budget(&mut self) -> Answer {
        if self.budgets == 0 {
            self.turned_away = true;
            return Answer::NoBudget;
        }
        self.budgets -= 1;
        Answer::Budget(0)
    }
}

fn hctx_of(mq: &BlkMq, slot: Slot) -> HctxId {
    mq.queue(slot.queue).with_pool(|pool| pool[slot.rq].hctx)
}

fn passes(mq: &BlkMq, slot: Slot) -> bool {
    let q = mq.queue(slot.queue);
    q.with_pool(|pool| pool[slot.rq].passthrough)
}

impl World {
    /// The device has ended a request: its budget comes back.
    pub(super) fn take_back(&mut self, fixed: &Fixed, index: usize, slot: Slot) {
        let held = self
            .mq
            .queue(slot.queue)
            .with_pool(|pool| pool[slot.rq].budget.take());
        self.outside.driver.budgets += u32::from(held.is_some());
        self.contexts[index].followed =
            fixed.config.stops != Stops::Never || fixed.config.budgets.is_some();
    }

    /// After the end of a request: starts stopped queues, and runs those that got no budget
    /// (scsi_run_queue_async). A step of its own, followed by the runs.
    pub(super) fn follow_up(&mut self, fixed: &Fixed, index: usize) {
        let all = core::mem::take(&mut self.outside.driver.turned_away);
        assert_eq!(fixed.config.queues, 1, "such a driver has one queue");
        let context = &mut self.contexts[index];
        for hctx in (0..fixed.config.hctxs).rev().map(HctxId) {
            context.cpu.begin_label();
            if self.mq.start_hctx(QueueId(0), hctx, &mut context.cpu) {
                let run = RunPath::new(QueueId(0), hctx, true);
                context.stack.push(Frame::Run(run));
            }
        }
        if all {
            let runs = RunQueuesPath::new(QueueId(0), RunHow::Background, 0);
            context.stack.push(Frame::RunQueues(runs));
        }
        context.phase = match context.stack.is_empty() {
            true => Phase::Idle,
            false => Phase::Ready,
        };
    }
}
