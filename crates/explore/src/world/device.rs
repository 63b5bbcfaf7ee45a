//! What the device may say to queue_rq, and what its driver does of its own accord.

use super::{Fixed, Pending, Phase, Slot, World};
use crate::config::{Promises, Refusal, Stops};
use blkmq::env::{Answer, Bit};
use blkmq::path::{Frame, RequeueRequest, RunPath};
use blkmq::request::{HctxId, Place, QueueId};

impl World {
    /// The device's answer to queue_rq.
    pub(super) fn answer(&mut self, fixed: &Fixed, index: usize, slot: Slot, way: u8) {
        if way > self.ways_to_refuse(fixed, slot) {
            self.requeue(index, slot);
            return;
        }
        let full = self.outside.in_device.len() as u32 >= fixed.config.device_limit;
        let answer = match way {
            0 if self.sleeps(fixed, slot) => Answer::Resource,
            0 if full => match fixed.config.when_full {
                _ if fixed.config.stops == Stops::WhenRefusing => Answer::DevResource,
                Refusal::DevResource if self.may_promise(fixed, slot) => Answer::DevResource,
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
            let place = fixed.config.place(slot.queue, self.hctx_of(slot));
            self.outside.promised |= 1 << place;
        }
        self.note(fixed, index, slot, answer);
        let context = &mut self.contexts[index];
        if answer == Answer::Ok {
            self.mq.start_request(slot.queue, slot.rq, &mut context.cpu);
            let at = self
                .outside
                .in_device
                .partition_point(|&other| other < slot);
            self.outside.in_device.insert(at, slot);
        }
        context.cpu.answer = answer;
        context.phase = Phase::Ready;
    }

    /// The driver begins with a request, gives it back inside queue_rq and says that all is well.
    fn requeue(&mut self, index: usize, slot: Slot) {
        self.outside.requeues -= 1;
        let context = &mut self.contexts[index];
        self.mq.start_request(slot.queue, slot.rq, &mut context.cpu);
        // It is in the driver's hands, and no completion will find it.
        self.mq
            .queue(slot.queue)
            .with_pool(|pool| pool[slot.rq].place = Place::Path);
        context.cpu.answer = Answer::Ok;
        let path = RequeueRequest::new(slot.queue, slot.rq, false);
        context.stack.push(Frame::RequeueRequest(path));
        context.phase = Phase::Ready;
    }

    /// Ways in which the device may answer.
    pub(super) fn ways_to_answer(&self, fixed: &Fixed, slot: Slot) -> u8 {
        1 + self.ways_to_refuse(fixed, slot) + u8::from(self.outside.requeues > 0)
    }

    /// Ways in which the device may refuse though it has room.
    fn ways_to_refuse(&self, fixed: &Fixed, slot: Slot) -> u8 {
        let full = self.outside.in_device.len() as u32 >= fixed.config.device_limit;
        if full || self.outside.refusals == 0 {
            return 0;
        }
        1 + u8::from(self.may_promise(fixed, slot))
    }

    fn hctx_of(&self, slot: Slot) -> HctxId {
        self.mq
            .queue(slot.queue)
            .with_pool(|pool| pool[slot.rq].hctx)
    }

    /// BLK_STS_DEV_RESOURCE may be answered.
    fn may_promise(&self, fixed: &Fixed, slot: Slot) -> bool {
        let hctx = self.hctx_of(slot);
        let mut in_flight = self.outside.in_device.iter();
        in_flight.any(|&other| {
            let same = other.queue == slot.queue && self.hctx_of(other) == hctx;
            fixed.config.promises == Promises::AnyHctx || same
        })
    }

    /// A request has ended: the driver runs the hctxs that it refused.
    pub(super) fn keep_promises(&mut self, fixed: &Fixed) {
        let promised = core::mem::take(&mut self.outside.promised);
        for place in (0..fixed.config.all_hctxs()).filter(|place| promised >> place & 1 != 0) {
            self.kick(fixed, place, Pending::Now);
        }
    }

    /// It refuses what is not a passthrough request, until it has had one.
    fn sleeps(&self, fixed: &Fixed, slot: Slot) -> bool {
        fixed.config.needs_passthrough && !self.outside.driver.awake && !self.passes(slot)
    }

    fn passes(&self, slot: Slot) -> bool {
        self.mq
            .queue(slot.queue)
            .with_pool(|pool| pool[slot.rq].passthrough)
    }

    /// What the driver does with its own state when it answers.
    fn note(&mut self, fixed: &Fixed, index: usize, slot: Slot, answer: Answer) {
        let (hctx, passes) = (self.hctx_of(slot), self.passes(slot));
        let stands = self.mq.queue(slot.queue).hctxs[usize::from(hctx.0)]
            .dispatch_pending
            .peek();
        let driver = &mut self.outside.driver;
        match answer {
            Answer::Ok if passes => {
                driver.awake = fixed.config.needs_passthrough;
                driver.overtakes = 0;
            }
            Answer::Ok if stands && fixed.config.overtakes_max.is_some() => driver.overtakes += 1,
            Answer::Ok => {}
            _ => {
                let held = self
                    .mq
                    .queue(slot.queue)
                    .with_pool(|pool| pool[slot.rq].budget.is_some());
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
            let cpu = &mut self.contexts[index].cpu;
            cpu.begin_label();
            self.mq.stop_hctx(slot.queue, hctx, cpu);
        }
    }

    /// get_budget, or put_budget.
    pub(super) fn budget(&mut self, index: usize) {
        let (context, driver) = (&mut self.contexts[index], &mut self.outside.driver);
        if context.phase == Phase::PutBudget {
            driver.budgets += 1;
        } else if driver.budgets > 0 {
            driver.budgets -= 1;
            context.cpu.answer = Answer::Budget(0);
        } else {
            driver.turned_away = true;
            context.cpu.answer = Answer::NoBudget;
        }
        context.phase = Phase::Ready;
    }

    /// A request has come back from the device: so has its budget.
    pub(super) fn take_back(&mut self, fixed: &Fixed, index: usize, slot: Slot) {
        let held = self
            .mq
            .queue(slot.queue)
            .with_pool(|pool| pool[slot.rq].budget.take());
        self.outside.driver.budgets += u32::from(held.is_some());
        self.contexts[index].followed =
            fixed.config.stops != Stops::Never || fixed.config.budgets.is_some();
    }

    /// Behind the end of a request: start what was stopped, run whom a budget was refused
    /// (scsi_run_queue_async).
    pub(super) fn follow_up(&mut self, fixed: &Fixed, index: usize) {
        let all = core::mem::take(&mut self.outside.driver.turned_away);
        assert_eq!(fixed.config.queues, 1, "such a driver has one queue");
        let context = &mut self.contexts[index];
        for hctx in (0..fixed.config.hctxs).rev().map(HctxId) {
            context.cpu.begin_label();
            if self.mq.start_hctx(QueueId(0), hctx, &mut context.cpu) || all {
                context
                    .stack
                    .push(Frame::Run(RunPath::new(QueueId(0), hctx, true)));
            }
        }
        match context.stack.is_empty() {
            true => context.finish(),
            false => context.phase = Phase::Ready,
        }
    }
}
