//! Hooks and the timer: samples of a request that ends, its token, and the depths that the timer
//! sets.
//!
//! Kernel: kyber_completed_request(), kyber_finish_request(), kyber_timer_fn(),
//! kyber_resize_domain() in block/kyber-iosched.c, timer_reduce() (6.1.192, 6.12.117).

use super::TIMER;
use super::domain::{Domain, MEASURED};
use super::hctx_data::token_of;
use super::latency::{GOOD_BUCKETS, Kind, Percentile, bucket_of, domain_at};
use super::shared::KyberShared;
use crate::call::{Call, Hook, Token};
use crate::elevator::After;
use crate::env::{Counter, CounterForm, CounterUnit, Cpu, Effect, Reading, Which};
use crate::queue::RequestQueue;
use crate::request::RequestId;
use crate::step::{Cx, labels, probe};
use crate::time::{Duration, SimTime, UPTIME};
use steps::steps;

/// Tokens that requests hold when the timer runs.
static TAKEN: Counter = Counter::new("tokens taken", CounterForm::Sample, CounterUnit::Number);

/// What comes before the first label belongs to the label that calls the hook.
#[steps]
pub(crate) fn call_hook(cx: &mut Cx<'_>, hook: Hook) -> After {
    match hook {
        Hook::Completed(rq) => sub!(completed_request(rq)),
        Hook::Requeued(rq) | Hook::Finished(rq) => return finish_request(cx, rq),
        Hook::Timer(_) => sub!(timer_fn()),
        Hook::Exits(_) => unreachable!("kyber has no exit_icq"),
    }
    After::Nothing
}

/// kyber_completed_request(), timer_reduce(): a pending timer expires earlier than this one would.
#[steps]
fn completed_request(cx: &mut Cx<'_>, rq: RequestId) {
    if !add_latency_sample(cx, rq) {
        return;
    }
    /// A sample was counted: is the timer pending?
    at!(Timer);
    if !KyberShared::of(cx).timer_pending.test(cx.cpu) {
        /// It is not: arm it.
        at!(Arm);
        arm(cx);
    }
}

/// kyber_timer_fn().
#[steps]
fn timer_fn(cx: &mut Cx<'_>) {
    KyberShared::of(cx).timer_pending.clear(cx.cpu);
    let mut cpu: u16 = 0;
    while usize::from(cpu) < KyberShared::of(cx).cpu_latency.len() {
        /// The timer: take the samples of the next CPU.
        at!(Sum);
        flush_latency_buckets(cx, cpu);
        cpu += 1;
    }
    /// Is the device congested?
    at!(Judge);
    let bad: bool = is_congested(cx);
    let mut domain: u8 = 0;
    /// Which depth should the next domain have?
    at!(Domain);
    while let Some(depth) = next_depth(cx, &mut domain, bad) {
        let (queue, map) = (cx.q.id, domain_at(domain).index() as u8);
        /// It has another one now.
        call!(Adjust, Call::ResizeTokens { queue, map, depth });
        report_depth(cx, domain_at(domain));
        domain += 1;
        at!(Domain);
    }
}

labels! {
    pub enum At in "kyber-hook" of call_hook completed_request timer_fn
}

/// Both latencies of a request that ends; of a domain that is measured.
///
/// Deviation(D22): both counts of a sample change in one step, and the timer takes all counts of a
/// CPU in one; the kernel's are atomic one by one.
fn add_latency_sample(cx: &mut Cx<'_>, rq: RequestId) -> bool {
    let shared = KyberShared::of(cx);
    let pool = cx.pool();
    let rq = &pool[rq];
    let domain = Domain::of(rq.op);
    let (start, issue) = (rq.start_time, rq.io_start_time);
    drop(pool);
    let Some(&target) = shared.data().targets.get(domain.index()) else {
        return false;
    };
    let now = cx.cpu.now();
    let here = &shared.cpu_latency[usize::from(cx.cpu.id.0)];
    let mut counts = here.counts.held(cx.cpu.id);
    // A request that was never issued, as an empty flush, has the issue time 0, that of the boot.
    // One that was allocated at time 0 is taken for issued.
    let issued = issue > SimTime::ZERO || start == SimTime::ZERO;
    let up = if issued { Duration::ZERO } else { UPTIME };
    for (kind, latency) in [
        (Kind::Total, now.since(start)),
        (Kind::Io, (now + up).since(issue)),
    ] {
        counts.add(domain, kind, bucket_of(latency, target));
    }
    drop(counts);
    here.line.write(cx.cpu);
    true
}

fn arm(cx: &mut Cx<'_>) {
    if !KyberShared::of(cx).timer_pending.test_and_set(cx.cpu) {
        let hz = u64::from(cx.q.settings.hz);
        cx.cpu.outbox.push(Effect::Arm {
            queue: cx.q.id,
            timer: TIMER,
            after: Duration(hz / 10 * (1_000_000_000 / hz)),
        });
    }
}

fn flush_latency_buckets(cx: &mut Cx<'_>, cpu: u16) {
    let shared = KyberShared::of(cx);
    let of = &shared.cpu_latency[usize::from(cpu)];
    let mut counts = of.counts.held(cx.cpu.id);
    shared.data().buckets.absorb(&mut counts);
    drop(counts);
    of.line.write(cx.cpu);
}

fn is_congested(cx: &mut Cx<'_>) -> bool {
    let now = cx.jiffies();
    let bad = KyberShared::of(cx)
        .data()
        .congested(now, |found| report(cx.q, found, cx.cpu));
    if cx.cpu.counting {
        report_taken(cx.q, cx.cpu);
    }
    bad
}

/// The next domain from `domain` on that is to have another depth, and the depth.
fn next_depth(cx: &mut Cx<'_>, domain: &mut u8, bad: bool) -> Option<u32> {
    let now = cx.jiffies();
    while usize::from(*domain) < MEASURED {
        let of = domain_at(*domain);
        let depth = cx.q.tokens[of.index()].map.depth();
        let wanted = KyberShared::of(cx)
            .data()
            .wanted_depth(of, (bad, depth), now, |found| report(cx.q, found, cx.cpu));
        if let Some(depth) = wanted.filter(|&wanted| wanted != depth) {
            return Some(depth);
        }
        *domain += 1;
    }
    None
}

/// kyber_finish_request(), rq_clear_domain_token(). The number stays in the request: a request
/// that its driver has given back returns its token once more at its end, unless it was dispatched
/// again.
fn finish_request(cx: &Cx<'_>, rq: RequestId) -> After {
    let pool = cx.pool();
    let token = token_of(pool[rq].elv_priv).map(|number| Token {
        map: Domain::of(pool[rq].op).index() as u8,
        number,
    });
    token.map_or(After::Nothing, After::PutToken)
}

fn report_depth(cx: &mut Cx<'_>, domain: Domain) {
    let depth = cx.q.tokens[domain.index()].map.depth();
    probe::depth(cx.q, domain.name(), depth, cx.cpu);
}

#[cold]
fn report_taken(q: &RequestQueue, cpu: &mut Cpu) {
    for (domain, tokens) in Domain::ALL.iter().zip(&q.tokens) {
        let reading = Reading {
            counter: &TAKEN,
            group: domain.name(),
            which: Which::One,
            value: tokens.map.busy_count().into(),
        };
        probe::reading(q, reading, cpu);
    }
}

fn report(q: &RequestQueue, found: Percentile, cpu: &mut Cpu) {
    let seen = crate::env::Percentile {
        group: found.domain.name(),
        kind: found.kind.name(),
        percentile: found.percentile as u8,
        numerator: found.bucket as u8 + 1,
        denominator: GOOD_BUCKETS as u8,
        samples: found.samples,
    };
    probe::percentile(q, seen, cpu);
}

#[cfg(test)]
mod tests;
