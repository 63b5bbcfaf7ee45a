//! What the device may say to queue_rq, and what its driver does of its own accord.

use super::{Fixed, Pending, Phase, World};
use crate::config::{Promises, Refusal, Stops};
use blkmq::env::{Answer, Bit};
use blkmq::path::{Frame, RequeueRequest, RunPath};
use blkmq::request::{HctxId, Place, RequestId};

impl World {
    /// The device's answer to queue_rq.
    pub(super) fn answer(&mut self, fixed: &Fixed, index: usize, rq: RequestId, way: u8) {
        if way > self.ways_to_refuse(fixed, rq) {
            self.requeue(index, rq);
            return;
        }
        let full = self.outside.in_device.len() as u32 >= fixed.config.device_limit;
        let answer = match way {
            0 if self.sleeps(fixed, rq) => Answer::Resource,
            0 if full => match fixed.config.when_full {
                _ if fixed.config.stops == Stops::WhenRefusing => Answer::DevResource,
                Refusal::DevResource if self.may_promise(fixed, rq) => Answer::DevResource,
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
            self.outside.promised |= 1 << self.hctx_of(rq).0;
        }
        self.note(fixed, index, rq, answer);
        let context = &mut self.contexts[index];
        if answer == Answer::Ok {
            self.mq.start_request(0, rq, &mut context.cpu);
            let at = self.outside.in_device.partition_point(|&other| other < rq);
            self.outside.in_device.insert(at, rq);
        }
        context.cpu.answer = answer;
        context.phase = Phase::Ready;
    }

    /// The driver begins with a request, gives it back inside queue_rq and says that all is well.
    fn requeue(&mut self, index: usize, rq: RequestId) {
        self.outside.requeues -= 1;
        let context = &mut self.contexts[index];
        self.mq.start_request(0, rq, &mut context.cpu);
        // It is in the driver's hands, and no completion will find it.
        self.mq
            .queue(0)
            .with_pool(|pool| pool[rq].place = Place::Path);
        context.cpu.answer = Answer::Ok;
        let path = RequeueRequest::new(0, rq, false);
        context.stack.push(Frame::RequeueRequest(path));
        context.phase = Phase::Ready;
    }

    /// Ways in which the device may answer.
    pub(super) fn ways_to_answer(&self, fixed: &Fixed, rq: RequestId) -> u8 {
        1 + self.ways_to_refuse(fixed, rq) + u8::from(self.outside.requeues > 0)
    }

    /// Ways in which the device may refuse though it has room.
    fn ways_to_refuse(&self, fixed: &Fixed, rq: RequestId) -> u8 {
        let full = self.outside.in_device.len() as u32 >= fixed.config.device_limit;
        if full || self.outside.refusals == 0 {
            return 0;
        }
        1 + u8::from(self.may_promise(fixed, rq))
    }

    fn hctx_of(&self, rq: RequestId) -> HctxId {
        self.mq.queue(0).with_pool(|pool| pool[rq].hctx)
    }

    /// BLK_STS_DEV_RESOURCE may be answered.
    fn may_promise(&self, fixed: &Fixed, rq: RequestId) -> bool {
        let hctx = self.hctx_of(rq);
        let mut in_flight = self.outside.in_device.iter();
        in_flight
            .any(|&other| fixed.config.promises == Promises::AnyHctx || self.hctx_of(other) == hctx)
    }

    /// A request has ended: the driver runs the hctxs that it refused.
    pub(super) fn keep_promises(&mut self, fixed: &Fixed) {
        let promised = core::mem::take(&mut self.outside.promised);
        for hctx in (0..fixed.config.hctxs).filter(|hctx| promised >> hctx & 1 != 0) {
            self.kick(fixed, HctxId(hctx), Pending::Now);
        }
    }

    /// It refuses what is not a passthrough request, until it has had one.
    fn sleeps(&self, fixed: &Fixed, rq: RequestId) -> bool {
        fixed.config.needs_passthrough && !self.outside.driver.awake && !self.passes(rq)
    }

    fn passes(&self, rq: RequestId) -> bool {
        self.mq.queue(0).with_pool(|pool| pool[rq].passthrough)
    }

    /// What the driver does with its own state when it answers.
    fn note(&mut self, fixed: &Fixed, index: usize, rq: RequestId, answer: Answer) {
        let (hctx, passes) = (self.hctx_of(rq), self.passes(rq));
        let stands = self.mq.queue(0).hctxs[usize::from(hctx.0)]
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
                let held = self.mq.queue(0).with_pool(|pool| pool[rq].budget.is_some());
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
            self.mq.stop_hctx(0, hctx, cpu);
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
    pub(super) fn take_back(&mut self, fixed: &Fixed, index: usize, rq: RequestId) {
        let held = self.mq.queue(0).with_pool(|pool| pool[rq].budget.take());
        self.outside.driver.budgets += u32::from(held.is_some());
        self.contexts[index].followed =
            fixed.config.stops != Stops::Never || fixed.config.budgets.is_some();
    }

    /// Behind the end of a request: start what was stopped, run whom a budget was refused
    /// (scsi_run_queue_async).
    pub(super) fn follow_up(&mut self, fixed: &Fixed, index: usize) {
        let all = core::mem::take(&mut self.outside.driver.turned_away);
        let context = &mut self.contexts[index];
        for hctx in (0..fixed.config.hctxs).rev().map(HctxId) {
            context.cpu.begin_label();
            if self.mq.start_hctx(0, hctx, &mut context.cpu) || all {
                context.stack.push(Frame::Run(RunPath::new(0, hctx, true)));
            }
        }
        match context.stack.is_empty() {
            true => context.finish(),
            false => context.phase = Phase::Ready,
        }
    }
}
