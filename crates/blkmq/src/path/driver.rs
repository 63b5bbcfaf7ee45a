//! What a device driver calls: the start of a request, and where its completion runs.
//!
//! Kernel: blk_mq_start_request(), blk_mq_complete_request_remote() (6.1.192, 6.12.117).

use super::{Traced, trace_rq};
use crate::env::{Cpu, Env, Slab, TraceAction};
use crate::queue::BlkMq;
use crate::request::{CpuId, Place, RequestId};
use crate::rules::SingleCtx;

/// Where a completion goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompleteOn {
    /// In the context that noticed it.
    Here,
    /// In the block softirq of this CPU.
    Softirq,
    /// In the block softirq of another CPU, after an interrupt to it.
    Remote(CpuId),
}

impl<E: Env> BlkMq<E> {
    /// blk_mq_start_request(): the driver has the request. Trace D.
    pub fn start_request(&self, queue: u8, rq: RequestId, cpu: &mut Cpu) {
        let mut pool = self.queue(queue).pool.held(cpu.id);
        let r = &mut pool[rq];
        assert!(r.tag.is_some(), "the driver got a request without tag");
        r.in_flight = true;
        r.place = Place::Device;
        r.io_start_time = cpu.now();
        let traced = Traced::rq(&pool, rq);
        drop(pool);
        trace_rq(cpu, queue, TraceAction::Issue, traced);
    }

    /// blk_mq_complete_request_remote(): where the driver's completion goes on. `share_cache`
    /// tells whether two CPUs share their last-level cache.
    pub fn complete_on(
        &self,
        queue: u8,
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
        if q.hctxs.len() == 1 {
            CompleteOn::Softirq
        } else {
            CompleteOn::Here
        }
    }
}
