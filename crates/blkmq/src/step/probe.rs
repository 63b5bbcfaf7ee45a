//! Probes on the functions of a scheduler, which captures of kernels have besides blktrace's
//! records.
//!
//! One call at the entry or the return of a function. Off by default; then it costs one check.
//! Kernel: kprobes on blk_mq_sched_try_insert_merge(), dd_dispatch_request(), dd_finish_request()
//! and their counterparts in other schedulers.

use super::{Traced, jiffies};
use crate::env::{Cpu, Percentile, Probe, Reading, TraceAction, TracePoint};
use crate::queue::RequestQueue;
use crate::request::{HctxId, RequestId, RequestPool};
use crate::time::Jiffies;

/// A request reaches the insertion.
#[inline]
pub(crate) fn arrive(
    q: &RequestQueue,
    pool: &RequestPool,
    rq: RequestId,
    tick: Jiffies,
    cpu: &mut Cpu,
) {
    if cpu.probing {
        let tag = pool[rq].internal_tag.map(|tag| tag.0);
        emit(
            q,
            Traced::rq(cpu.tracing, pool, rq),
            Probe::Arrive { rq, tag, tick },
            cpu,
        );
    }
}

/// The dispatch function is called for a run of `hctx`.
#[inline]
pub(crate) fn ask(q: &RequestQueue, hctx: HctxId, cpu: &mut Cpu) {
    if cpu.probing {
        let tick = jiffies(q, cpu);
        emit(q, None, Probe::Ask { hctx, tick }, cpu);
    }
}

#[inline]
pub(crate) fn answer(q: &RequestQueue, rq: Option<RequestId>, cpu: &mut Cpu) {
    if cpu.probing {
        let tick = jiffies(q, cpu);
        let pool = q.pool.held(cpu.id);
        let deadline = rq.map_or(Jiffies::default(), |rq| pool[rq].fifo_time);
        let tag = rq.and_then(|rq| pool[rq].internal_tag.map(|tag| tag.0));
        let probe = Probe::Answer {
            rq,
            deadline,
            tag,
            tick,
        };
        let seen = rq.and_then(|rq| Traced::rq(cpu.tracing, &pool, rq));
        emit(q, seen, probe, cpu);
    }
}

/// A request needs a token of this kind, and none is free.
#[inline]
pub(crate) fn throttled(q: &RequestQueue, group: &'static str, cpu: &mut Cpu) {
    report(q, Probe::Throttled { group }, cpu);
}

/// A percentile of latencies was calculated.
#[inline]
pub(crate) fn percentile(q: &RequestQueue, found: Percentile, cpu: &mut Cpu) {
    report(q, Probe::Percentile(found), cpu);
}

/// The number of tokens of a kind has changed.
#[inline]
pub(crate) fn depth(q: &RequestQueue, group: &'static str, depth: u32, cpu: &mut Cpu) {
    report(q, Probe::Depth { group, depth }, cpu);
}

/// A reading of one of the scheduler's counters. Not while a lock's guard lives: a policy with one
/// lock returns its readings later, as it does with its log.
#[inline]
pub(crate) fn reading(q: &RequestQueue, reading: Reading, cpu: &mut Cpu) {
    if cpu.counting {
        report(q, Probe::Reading(reading), cpu);
    }
}

/// An event of the scheduler without a request: reads none, as that would move cache lines.
#[inline]
fn report(q: &RequestQueue, probe: Probe, cpu: &mut Cpu) {
    if cpu.probing || cpu.reporting || cpu.counting {
        emit(q, None, probe, cpu);
    }
}

/// The scheduler's hook of a completed request of its own.
#[inline]
pub(crate) fn finish(q: &RequestQueue, rq: RequestId, cpu: &mut Cpu) {
    if cpu.probing {
        let tick = jiffies(q, cpu);
        let pool = q.pool.held(cpu.id);
        if pool[rq].use_sched {
            let tag = pool[rq].internal_tag.map(|tag| tag.0);
            let seen = Traced::rq(cpu.tracing, &pool, rq);
            emit(q, seen, Probe::Finish { rq, tag, tick }, cpu);
        }
    }
}

#[cold]
fn emit(q: &RequestQueue, seen: Option<Traced>, probe: Probe, cpu: &mut Cpu) {
    let seen = seen.unwrap_or_default();
    let point = TracePoint {
        action: TraceAction::Probe(probe),
        queue: q.id,
        op: seen.op,
        flags: seen.flags,
        sector: seen.sector,
        sectors: seen.sectors,
        of_request: true,
        request: seen.request,
        status: seen.status,
        ioprio: seen.ioprio,
        payload: 0,
    };
    match probe {
        // The function returns after its unlock, at the label's end.
        Probe::Answer { .. } => cpu.emit_at_end(point),
        Probe::Throttled { .. }
        | Probe::Percentile(_)
        | Probe::Depth { .. }
        | Probe::Reading(_) => cpu.emit_probe(point),
        _ => cpu.emit(point),
    }
}
