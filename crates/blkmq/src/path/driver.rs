//! Functions for device drivers: the start of a request, and the context of its completion.
//!
//! Kernel: blk_mq_start_request(), blk_mq_complete_request_remote(), blk_mq_hctx_stopped(),
//! blk_mq_start_stopped_hw_queue() (6.1.192, 6.12.117).

use super::timeout;
use crate::env::{Cpu, TraceAction, mb};
use crate::queue::{BlkMq, HwQueue, RequestQueue};
use crate::request::{CpuId, HctxId, Place, QueueId, RequestId};
use crate::rules::{Fix, SingleCtx, SingleHctx};
use crate::step::{Traced, trace_rq};

/// The context of a completion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompleteOn {
    /// In the context that noticed it.
    Here,
    /// In the block softirq of this CPU.
    Softirq,
    /// In the block softirq of another CPU, after an interrupt to it.
    Remote(CpuId),
}

impl BlkMq {
    /// blk_mq_start_request(): the driver has the request. Trace D, which the single-queue path has
    /// at the driver's first look at a request.
    pub fn start_request(&self, queue: QueueId, rq: RequestId, cpu: &mut Cpu) {
        // The label that offered the request has ended.
        cpu.outside_labels();
        let mut pool = self.queue(queue).pool.held(cpu.id);
        let r = &mut pool[rq];
        let single = self.queue(queue).single.is_some();
        assert!(
            single || r.tag.is_some(),
            "the driver got a request without tag"
        );
        r.in_flight = true;
        r.place = Place::Device;
        let (stamp, now) = (self.queue(queue).settings.rules.stamp, cpu.now());
        r.io_start_time = cpu.plug.time(stamp, now);
        if self.set_of(queue).queue_shared() {
            timeout::add_timer(self.queue(queue), r, cpu);
        }
        let traced = Traced::rq(cpu.tracing, &pool, rq);
        drop(pool);
        if !single {
            trace_rq(cpu, queue, TraceAction::Issue, traced);
        }
    }

    /// blk_mq_stop_hw_queue(): no run of the hctx begins any more.
    pub fn stop_hctx(&self, queue: QueueId, hctx: HctxId, cpu: &mut Cpu) {
        self.queue(queue).hctx(hctx).stopped.set(cpu);
    }

    /// blk_mq_start_stopped_hw_queue() without the run. False if the hctx was not stopped.
    pub fn start_hctx(&self, queue: QueueId, hctx: HctxId, cpu: &mut Cpu) -> bool {
        let q = self.queue(queue);
        let hctx = q.hctx(hctx);
        if !hctx.stopped.peek() {
            return false;
        }
        hctx.stopped.clear(cpu);
        if q.settings.rules.fixes.has(Fix::StoppedBarrier) {
            // Pairs with the barrier between an insertion and the second read of the bit.
            mb(cpu);
        }
        true
    }

    /// blk_mq_complete_request_remote(): the context of the driver's completion. `share_cache`:
    /// whether two CPUs share their last-level cache.
    pub fn complete_on(
        &self,
        queue: QueueId,
        rq: RequestId,
        cpu: CpuId,
        share_cache: impl FnOnce(CpuId, CpuId) -> bool,
    ) -> CompleteOn {
        let q = self.queue(queue);
        let (ctx, hctx, polled) =
            q.with_pool(|pool| (pool[rq].ctx, pool[rq].hctx, pool[rq].polled));
        let single = q.hctx(hctx).ctxs.len() == 1;
        let single_here = match q.settings.rules.single_ctx {
            SingleCtx::AlwaysHere => single,
            SingleCtx::OnlyOnItsCpu => single && ctx == cpu,
        };
        if polled || single_here {
            return CompleteOn::Here;
        }
        let wanted = ctx != cpu && q.settings.rq_affinity > 0;
        let forced = q.settings.rq_affinity > 1;
        if wanted && (forced || !share_cache(ctx, cpu)) {
            return CompleteOn::Remote(ctx);
        }
        if q.hctxs.len() == 1 && q.settings.rules.single_hctx == SingleHctx::Softirq {
            CompleteOn::Softirq
        } else {
            CompleteOn::Here
        }
    }
}

/// blk_mq_hctx_stopped(): a set bit is read again after a barrier.
pub(super) fn is_stopped(q: &RequestQueue, hctx: &HwQueue, cpu: &mut Cpu) -> bool {
    if !hctx.stopped.test(cpu) {
        return false;
    }
    if !q.settings.rules.fixes.has(Fix::StoppedBarrier) {
        return true;
    }
    // The line is local already: no further access.
    mb(cpu);
    hctx.stopped.peek()
}
