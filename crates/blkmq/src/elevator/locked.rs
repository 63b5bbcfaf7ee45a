//! A scheduler with one lock, as CPUs share it: the lock, the word that has_work reads without it,
//! counts of finished requests; and the paths, which all such schedulers share: `merge`, `insert`,
//! `dispatch`, `hook`.
//!
//! The policy ([`Scheduler`]) makes the decisions. A scheduler that adds steps wraps these paths
//! (`series/`); one with several locks brings its own paths. Kernel: dd_insert_requests(),
//! dd_bio_merge(), dd_dispatch_request(), dd_finish_request() and their like (6.1.192, 6.12.117).

mod depth;
mod dispatch;
mod hook;
mod insert;
mod log;
mod merge;
mod token;

use super::attribute::StoreError;
use super::hook::TimerAsk;
use super::info::SchedulerInfo;
use super::scheduler::{LEVELS, Now, Override, Scheduler, completed_level};
use crate::env::{Bit, CacheLine, Count, Cpu, Effect, Lock, SpinLock, value};
use crate::list::QueueList;
use crate::merge::Merging;
use crate::queue::{LockId, RequestQueue};
use crate::request::{HctxId, Request, RequestPool};
use crate::rules::{Rules, Stamp};
use crate::step::jiffies;
use crate::time::SimTime;
pub(crate) use dispatch::{Asked, DispatchPath};
pub(crate) use hook::HookPath;
pub(crate) use insert::InsertPath;
pub use insert::InsertionAt;
pub(crate) use log::Log;
pub use merge::MergeAt;
pub(crate) use merge::MergePath;

/// Number of the one lock among a scheduler's locks.
pub(crate) const LOCK: u8 = 0;

/// State that CPUs share of a scheduler with policy `P`.
#[derive(Debug)]
pub struct Locked<P: Scheduler + 'static> {
    pub policy: Lock<P>,
    /// It has something to dispatch: list heads that has_work reads without the lock.
    pub work: Bit,
    /// Finished requests by the level in `elv_priv`; counted without the lock.
    pub completed: [Count; LEVELS],
    /// Cache lines of the policy ([`SchedulerInfo::lines`]).
    lines: Vec<CacheLine>,
    pub(super) info: &'static SchedulerInfo,
}

value!(Locked of P: Scheduler { lines, info; policy, work, completed });

#[expect(
    clippy::unused_self,
    reason = "as every scheduler's shared state has them: `Elevator` asks all alike"
)]
impl<P: Scheduler + 'static> Locked<P> {
    pub(crate) fn with(policy: P, info: &'static SchedulerInfo) -> Locked<P> {
        Locked {
            policy: Lock::apart(policy),
            work: Bit::new(false),
            completed: core::array::from_fn(|_| Count::new(0)),
            lines: (0..info.lines).map(|_| CacheLine::default()).collect(),
            info,
        }
    }

    /// The request for the lock.
    #[inline]
    pub(crate) fn lock(&self, q: &RequestQueue) -> LockId {
        let class = self.info.locks[usize::from(LOCK)].irq_class;
        LockId::of_elevator(q.id, LOCK, class, 0)
    }

    pub(crate) fn lock_count(&self, number: u8) -> u32 {
        u32::from(number == LOCK)
    }

    #[inline]
    pub(crate) fn spin_lock(&self, number: u8, at: usize) -> &SpinLock {
        assert_eq!((number, at), (LOCK, 0), "a scheduler with one lock");
        &self.policy
    }

    pub(crate) fn work_places(&self, _hctx: HctxId, _rules: &Rules) -> u16 {
        1
    }

    /// has_work(): list heads, read without the lock.
    #[inline]
    pub(crate) fn has_work(&self, _hctx: HctxId, _place: u16, cpu: &mut Cpu) -> bool {
        self.policy.glance(cpu);
        self.work.test(cpu)
    }

    /// The same for callers that visit many queues: reads only the word.
    pub(crate) fn seems_to_have_work(&self, _hctx: HctxId, cpu: &mut Cpu) -> bool {
        self.work.test(cpu)
    }

    pub(crate) fn has_queued(&self, _hctx: HctxId) -> bool {
        self.work.peek()
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "as every scheduler's shared state has it: `Elevator` asks all alike"
    )]
    pub(crate) fn completed(&self) -> Option<&[Count; LEVELS]> {
        Some(&self.completed)
    }

    pub(crate) fn show(&self, q: &RequestQueue) -> String {
        q.with_pool(|pool| self.policy.inspect(|policy| policy.show(pool)))
    }

    pub(crate) fn store(
        &self,
        q: &RequestQueue,
        name: &str,
        text: &str,
        cpu: &mut Cpu,
    ) -> Result<(), StoreError> {
        let now = now(q, cpu);
        self.revise(cpu, |policy| policy.store(name, text, now))
    }

    pub(crate) fn apply_override(&self, q: &RequestQueue, with: Override, cpu: &mut Cpu) {
        self.revise(cpu, |policy| {
            q.with_pool(|pool| match with {
                Override::Remove(rq) => policy.force_remove(pool, rq),
                Override::Dispatch(rq) => policy.force_dispatch(pool, rq),
                Override::Resize(rq, sector, sectors) => {
                    policy.force_resize(pool, rq, sector, sectors);
                }
            });
        });
    }

    pub(crate) fn lines_at(&self, times: &[SimTime], cpu: &mut Cpu) {
        self.revise(cpu, |policy| policy.lines_at(times));
    }

    pub(crate) fn rotates(&self, rotational: bool, cpu: &mut Cpu) {
        self.revise(cpu, |policy| policy.rotates(rotational));
    }

    pub(crate) fn revise<R>(
        &self,
        cpu: &mut Cpu,
        change: impl FnOnce(&mut dyn Scheduler) -> R,
    ) -> R {
        cpu.begin_label();
        self.policy.acquire(cpu);
        let changed = change(&mut *self.policy.held(cpu));
        // A forced decision has its own clock.
        self.note_work(cpu);
        self.policy.release(cpu);
        cpu.begin_label();
        changed
    }

    /// finish_request() counts the request.
    #[inline]
    pub(crate) fn finishes(&self, rq: &Request) -> bool {
        completed_level(rq.elv_priv).is_some()
    }

    /// finish_request(): counts a finished request of its level.
    #[inline]
    pub(crate) fn finish(&self, elv_priv: [u32; 2], cpu: &mut Cpu) {
        if let Some(level) = completed_level(elv_priv) {
            self.completed[level].add(cpu, 1);
        }
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "as every scheduler's shared state has it: `Elevator` asks all alike"
    )]
    pub(crate) fn inspect<R>(&self, look: impl FnOnce(&dyn Scheduler) -> R) -> Option<R> {
        Some(self.policy.inspect(|policy| look(policy)))
    }

    /// Panics unless, while the lock is free, the policy is consistent, and agrees with the pool
    /// and with the word that shows whether it has work.
    pub(crate) fn check(&self, pool: &RequestPool) {
        if !self.policy.is_free() {
            return;
        }
        self.policy.inspect(|policy| policy.check(pool));
        let work = self.policy.inspect(Scheduler::has_work);
        assert_eq!(work, self.work.peek(), "has_work and the word for it");
    }

    /// No requests wait outside the policy.
    pub(crate) fn beside(&self) -> Vec<QueueList> {
        Vec::new()
    }

    /// Charges the policy's costs besides requests. Under the lock.
    fn charge(&self, charge: super::Charge, cpu: &mut Cpu) {
        cpu.meter.container_ops(charge.container_ops);
        let mut left = charge.lines;
        while left != 0 {
            self.lines[left.trailing_zeros() as usize].write(cpu);
            left &= left - 1;
        }
    }

    /// The time in a section of a task, whose plug may keep it (blk_time_get_ns()).
    #[inline]
    fn now_of_task(&self, q: &RequestQueue, cpu: &mut Cpu) -> Now {
        let mut now = now(q, cpu);
        if self.info.reads_clock && !now.kept && q.settings.rules.plug_keeps_time {
            now.time = cpu.plug.time(Stamp::OfPlug, now.time);
            now.kept = cpu.plug.keeps_time();
        }
        now
    }

    /// Keeps the word that has_work reads equal to the policy's lists. Under the lock. The caller
    /// sets the timer.
    pub(crate) fn note_work(&self, cpu: &mut Cpu) -> Option<TimerAsk> {
        let mut policy = self.policy.held(cpu);
        let (work, charge) = (policy.has_work(), policy.take_charge());
        let ask = policy.take_timer();
        drop(policy);
        self.charge(charge, cpu);
        if work != self.work.peek() {
            self.work.mirror(cpu, work);
        }
        ask
    }

    /// Completes a section: the word that has_work reads, the charge, and a timer.
    #[inline]
    fn settle(&self, q: &RequestQueue, cpu: &mut Cpu) {
        let ask = self.note_work(cpu);
        set_timer(ask, q, cpu);
    }

    /// Calls the policy under its lock, which the caller's path holds.
    pub(crate) fn call<R>(
        &self,
        q: &RequestQueue,
        cpu: &mut Cpu,
        call: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        let now = now(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        call(&mut *self.policy.held(cpu), &mut pool, now)
    }

    /// [`Self::settle`], with the policy's messages and readings.
    pub(crate) fn settle_all(&self, q: &RequestQueue, cpu: &mut Cpu) {
        self.emit_log(q, cpu);
        self.settle(q, cpu);
        self.read(q, cpu);
    }

    /// prepare_request(): no lock is taken, and nothing but the request changes.
    pub(crate) fn prepare(&self, rq: &mut Request) {
        self.policy.inspect(|policy| policy.prepare(rq));
    }
}

fn merging(q: &RequestQueue) -> Merging<'_> {
    Merging {
        limits: &q.settings.limits,
        nomerges: q.settings.nomerges,
    }
}

/// The time in a section of a hook or a timer, which may be an interrupt's.
#[inline]
fn now(q: &RequestQueue, cpu: &mut Cpu) -> Now {
    Now {
        time: cpu.ktime.unwrap_or(cpu.now()),
        tick: jiffies(q, cpu),
        kept: cpu.ktime.is_some(),
    }
}

/// Sets a timer for the policy.
#[inline]
fn set_timer(ask: Option<TimerAsk>, q: &RequestQueue, cpu: &mut Cpu) {
    let queue = q.id;
    match ask {
        None => {}
        Some(TimerAsk::Arm { timer, after }) => cpu.outbox.push(Effect::Arm {
            queue,
            timer,
            after,
        }),
        Some(TimerAsk::Cancel { timer }) => cpu.outbox.push(Effect::Cancel { queue, timer }),
    }
}
