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
use crate::names::{Label, labels};
use crate::queue::RequestQueue;
use crate::request::RequestId;
use crate::step::{Next, Sub, jiffies, probe};
use crate::time::Duration;

/// Tokens that requests hold when the timer runs.
static TAKEN: Counter = Counter::new("tokens taken", CounterForm::Sample, CounterUnit::Number);

labels! {
    /// Labels of hooks and of the timer's function after the first one.
    pub enum At in "kyber-hook" {
        /// A sample was counted: is the timer pending?
        Timer,
        /// It is not: arm it.
        Arm,
        /// The timer: take the samples of the next CPU.
        Sum,
        /// Is the device congested?
        Judge,
        /// Which depth should the next domain have?
        Domain,
        /// It has another one now.
        Adjust,
    }
}

/// A hook in progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct HookPath {
    /// None: its first step, which belongs to the label that begins it.
    at: Option<At>,
    /// The next CPU, or the domain.
    index: u16,
    /// The device is congested.
    bad: bool,
}

impl HookPath {
    pub(crate) fn label(self) -> Option<Label> {
        self.at.map(At::label)
    }

    fn to(&mut self, at: At) -> Sub<After> {
        self.at = Some(at);
        Sub::Wait(Next::Step)
    }
}

impl KyberShared {
    pub(crate) fn hook(
        &self,
        path: &mut HookPath,
        hook: Hook,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<After> {
        let Some(at) = path.at else {
            return match hook {
                Hook::Completed(rq) => self.sample(path, rq, q, cpu),
                Hook::Requeued(rq) | Hook::Finished(rq) => put_token(rq, q, cpu),
                Hook::Timer(_) => {
                    self.timer_pending.clear(cpu);
                    path.to(At::Sum)
                }
                Hook::Exits(_) => unreachable!("kyber has no exit_icq"),
            };
        };
        match at {
            At::Timer => match self.timer_pending.test(cpu) {
                true => Sub::Done(After::Nothing),
                false => path.to(At::Arm),
            },
            At::Arm => self.arm(q, cpu),
            At::Sum => self.sum(path, cpu),
            At::Judge => self.judge(path, q, cpu),
            At::Domain => self.judge_domain(path, q, cpu),
            At::Adjust => {
                let domain = domain_at(path.index as u8);
                let depth = q.tokens[domain.index()].map.depth();
                probe::depth(q, domain.name(), depth, cpu);
                path.index += 1;
                path.to(At::Domain)
            }
        }
    }

    /// kyber_completed_request() up to its timer.
    ///
    /// Deviation(D22): both counts of a sample change in one step, and the timer takes all counts
    /// of a CPU in one; the kernel's are atomic one by one.
    fn sample(
        &self,
        path: &mut HookPath,
        rq: RequestId,
        q: &RequestQueue,
        cpu: &mut Cpu,
    ) -> Sub<After> {
        let pool = q.pool.held(cpu.id);
        let rq = &pool[rq];
        let domain = Domain::of(rq.op);
        let (start, issue) = (rq.start_time, rq.io_start_time);
        drop(pool);
        let Some(&target) = self.data().targets.get(domain.index()) else {
            return Sub::Done(After::Nothing);
        };
        let now = cpu.now();
        let here = &self.cpu_latency[usize::from(cpu.id.0)];
        let mut counts = here.counts.held(cpu.id);
        // The issue time of a request that was never issued, as an empty flush, is zero as in the
        // kernel.
        for (kind, since) in [(Kind::Total, start), (Kind::Io, issue)] {
            counts.add(domain, kind, bucket_of(now.since(since), target));
        }
        drop(counts);
        here.line.write(cpu);
        path.to(At::Timer)
    }

    /// timer_reduce(): a pending timer expires earlier than this one would.
    fn arm(&self, q: &RequestQueue, cpu: &mut Cpu) -> Sub<After> {
        if !self.timer_pending.test_and_set(cpu) {
            let hz = u64::from(q.settings.hz);
            cpu.outbox.push(Effect::Arm {
                queue: q.id,
                timer: TIMER,
                after: Duration(hz / 10 * (1_000_000_000 / hz)),
            });
        }
        Sub::Done(After::Nothing)
    }

    fn sum(&self, path: &mut HookPath, cpu: &mut Cpu) -> Sub<After> {
        let of = &self.cpu_latency[usize::from(path.index)];
        let mut counts = of.counts.held(cpu.id);
        self.data().buckets.absorb(&mut counts);
        drop(counts);
        of.line.write(cpu);
        path.index += 1;
        if usize::from(path.index) < self.cpu_latency.len() {
            return path.to(At::Sum);
        }
        path.index = 0;
        path.to(At::Judge)
    }

    fn judge(&self, path: &mut HookPath, q: &RequestQueue, cpu: &mut Cpu) -> Sub<After> {
        let now = jiffies(q, cpu);
        path.bad = self.data().congested(now, |found| report(q, found, cpu));
        if cpu.counting {
            report_taken(q, cpu);
        }
        path.to(At::Domain)
    }

    fn judge_domain(&self, path: &mut HookPath, q: &RequestQueue, cpu: &mut Cpu) -> Sub<After> {
        let now = jiffies(q, cpu);
        while usize::from(path.index) < MEASURED {
            let domain = domain_at(path.index as u8);
            let depth = q.tokens[domain.index()].map.depth();
            let wanted = self
                .data()
                .wanted_depth(domain, (path.bad, depth), now, |found| {
                    report(q, found, cpu);
                });
            if let Some(depth) = wanted.filter(|&wanted| wanted != depth) {
                path.at = Some(At::Adjust);
                let (queue, map) = (q.id, domain.index() as u8);
                let call = Call::ResizeTokens { queue, map, depth };
                return Sub::Wait(Next::call(cpu, call));
            }
            path.index += 1;
        }
        Sub::Done(After::Nothing)
    }
}

/// rq_clear_domain_token(). The number stays in the request: a request that its driver has given
/// back returns its token once more at its end, unless it was dispatched again.
fn put_token(rq: RequestId, q: &RequestQueue, cpu: &Cpu) -> Sub<After> {
    let pool = q.pool.held(cpu.id);
    let token = token_of(pool[rq].elv_priv).map(|number| Token {
        map: Domain::of(pool[rq].op).index() as u8,
        number,
    });
    Sub::Done(token.map_or(After::Nothing, After::PutToken))
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
