//! Probes on the functions of a scheduler: what captures of kernels show beside blktrace's records.
//!
//! One call where the function is entered or left. Off unless asked for; then it costs a look.
//! Kernel: kprobes on blk_mq_sched_try_insert_merge(), dd_dispatch_request(), dd_finish_request()
//! and their like in other schedulers.

use super::{Traced, jiffies};
use crate::env::{Cpu, Env, Probe, Slab, TraceAction, TracePoint};
use crate::queue::RequestQueue;
use crate::request::{HctxId, RequestId, RequestPool};
use crate::time::Jiffies;

/// A request reaches the insertion.
#[inline]
pub(crate) fn arrive<E: Env>(
    q: &RequestQueue<E>,
    pool: &RequestPool,
    rq: RequestId,
    tick: Jiffies,
    cpu: &mut Cpu,
) {
    if cpu.probing {
        let tag = pool[rq].internal_tag.map(|tag| tag.0);
        emit(q, pool, rq, Probe::Arrive { rq, tag, tick }, cpu);
    }
}

/// The dispatch function is called for a run of `hctx`.
#[inline]
pub(super) fn ask<E: Env>(q: &RequestQueue<E>, hctx: HctxId, cpu: &mut Cpu) {
    if cpu.probing {
        let tick = jiffies(q, cpu);
        let pool = q.pool.held(cpu.id);
        emit(q, &pool, RequestId(0), Probe::Ask { hctx, tick }, cpu);
    }
}

/// It returns.
#[inline]
pub(super) fn answer<E: Env>(q: &RequestQueue<E>, rq: Option<RequestId>, cpu: &mut Cpu) {
    if cpu.probing {
        let tick = jiffies(q, cpu);
        let pool = q.pool.held(cpu.id);
        let deadline = rq.map_or(Jiffies::default(), |rq| pool[rq].fifo_time);
        let probe = Probe::Answer { rq, deadline, tick };
        emit(q, &pool, rq.unwrap_or(RequestId(0)), probe, cpu);
    }
}

/// The scheduler hears that a request of its own is over.
#[inline]
pub(super) fn finish<E: Env>(q: &RequestQueue<E>, rq: RequestId, cpu: &mut Cpu) {
    if cpu.probing {
        let tick = jiffies(q, cpu);
        let pool = q.pool.held(cpu.id);
        if pool[rq].use_sched {
            emit(q, &pool, rq, Probe::Finish { rq, tick }, cpu);
        }
    }
}

#[cold]
fn emit<E: Env>(
    q: &RequestQueue<E>,
    pool: &RequestPool,
    rq: RequestId,
    probe: Probe,
    cpu: &mut Cpu,
) {
    let seen = Traced::rq(pool, rq);
    let point = TracePoint {
        action: TraceAction::Probe(probe),
        queue: q.id,
        op: seen.op,
        flags: seen.flags,
        sector: seen.sector,
        sectors: seen.sectors,
        of_request: true,
        status: seen.status,
        ioprio: seen.ioprio,
        payload: 0,
    };
    match probe {
        // The function returns behind its unlock, with the label's end.
        Probe::Answer { .. } => cpu.emit_at_end(point),
        _ => cpu.emit(point),
    }
}
