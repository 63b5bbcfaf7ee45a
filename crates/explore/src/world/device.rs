//! What the device may say to queue_rq, and what its driver does of its own accord.

use super::{Fixed, Pending, Phase, World};
use crate::config::{Promises, Refusal};
use blkmq::env::Answer;
use blkmq::path::{Frame, RequeueRequest};
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
            0 if full => match fixed.config.when_full {
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
}
