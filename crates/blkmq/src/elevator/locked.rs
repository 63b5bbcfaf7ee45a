//! A scheduler with one lock, as CPUs share it: the lock, the word that has_work reads without it,
//! counts of finished requests; and the functions that stop at labels, which all such schedulers
//! share: `merge`, `insert`, `dispatch`, `hook`. With the January 2024 series: `series/`.
//!
//! The policy ([`Scheduler`]) makes the decisions. A scheduler with several locks brings functions
//! of its own. Kernel: dd_insert_requests(), dd_bio_merge(), dd_dispatch_request(),
//! dd_finish_request() and their like (6.1.192, 6.12.117).

mod dispatch;
mod hook;
mod insert;
mod log;
mod merge;

use core::hint::cold_path;

use super::Merged;
use super::attribute::StoreError;
use super::hook::{After, Hooks, TimerAsk};
use super::info::SchedulerInfo;
use super::scheduler::{InsertAt, LEVELS, Now, Override, Scheduler, Wanted, completed_level};
use super::series::{BUCKET, INSERTED, Series};
use super::shared::Ops;
use crate::call::{Hook, Token};
use crate::env::{Bit, CacheLine, Count, Cpu, Effect, Lock, SpinLock, value};
use crate::list::QueueList;
use crate::merge::Merging;
use crate::queue::{LockId, RequestQueue};
use crate::request::{BioId, HctxId, Request, RequestId, RequestPool};
use crate::rules::{Rules, Stamp};
use crate::step::{Cx, Next, jiffies};
use crate::time::Jiffies;
pub(crate) use dispatch::dispatch_request;
pub(crate) use hook::{call_hook, runs_under_lock};
pub use insert::At as InsertionAt;
pub(crate) use insert::{Inserted, insert_requests, insert_whole};
pub(crate) use log::Log;
pub use merge::At as MergeAt;
pub(crate) use merge::bio_merge;

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
    /// What only schedulers with the January 2024 series have.
    series: Option<Series>,
    /// Cache lines of the policy ([`SchedulerInfo::lines`]).
    lines: Vec<CacheLine>,
    pub(super) info: &'static SchedulerInfo,
}

value!(Locked of P: Scheduler { lines, info; policy, work, completed, series });

impl<P: Scheduler + 'static> Locked<P> {
    pub(crate) fn with(policy: P, info: &'static SchedulerInfo) -> Locked<P> {
        Locked {
            policy: Lock::apart(policy),
            work: Bit::new(false),
            completed: core::array::from_fn(|_| Count::new(0)),
            series: None,
            lines: (0..info.lines).map(|_| CacheLine::default()).collect(),
            info,
        }
    }

    pub(crate) fn with_series(policy: P, info: &'static SchedulerInfo, rules: &Rules) -> Locked<P> {
        let class = |number: u8| info.locks[usize::from(number)].irq_class;
        assert!(
            class(BUCKET) == class(LOCK) && class(INSERTED) == class(LOCK),
            "an interrupt may want {}",
            info.locks[0].name
        );
        Locked {
            series: Some(Series::new(class(LOCK), rules)),
            ..Locked::with(policy, info)
        }
    }

    /// What the January 2024 series adds.
    ///
    /// # Panics
    /// If the scheduler never has it.
    #[inline]
    pub fn series(&self) -> &Series {
        self.series.as_ref().expect("a scheduler with the series")
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

    /// Some of the work is this hctx's, of a scheduler that has requests of each.
    #[inline]
    fn is_of(&self, hctx: HctxId) -> bool {
        self.info.single_queue || self.policy.inspect(|policy| policy.has_work_of(hctx))
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
    fn end_section(&self, q: &RequestQueue, cpu: &mut Cpu) {
        let ask = self.note_work(cpu);
        set_timer(ask, q, cpu);
    }
}

impl<P: Scheduler + 'static> Ops for Locked<P> {
    fn lock_count(&self, number: u8) -> u32 {
        match (number, &self.series) {
            (LOCK, _) => 1,
            (_, Some(series)) => series.lock_count(number),
            (_, None) => 0,
        }
    }

    #[inline]
    fn spin_lock(&self, number: u8, at: usize) -> &SpinLock {
        match number {
            LOCK => &self.policy,
            number => self.series().spin_lock(number, at),
        }
    }

    fn work_places(&self, _hctx: HctxId, rules: &Rules) -> u16 {
        let series = self.series.as_ref();
        1 + series.map_or(0, |series| series.work_places(rules))
    }

    /// List heads, read without the lock.
    #[inline]
    fn sees_work(&self, hctx: HctxId, place: u16, cpu: &mut Cpu) -> bool {
        match place.checked_sub(1) {
            None => {
                self.policy.glance(cpu);
                self.work.test(cpu) && self.is_of(hctx)
            }
            Some(place) => self.series().sees_work(place, cpu),
        }
    }

    /// Only the word.
    fn seems_to_have_work(&self, hctx: HctxId, cpu: &mut Cpu) -> bool {
        self.work.test(cpu) && self.is_of(hctx)
    }

    fn has_queued(&self, hctx: HctxId) -> bool {
        self.work.peek() && self.is_of(hctx)
    }

    fn limit_depth(&self, q: &RequestQueue, wanted: Wanted, cpu: &mut Cpu) -> Option<u32> {
        if cpu.tracing && self.info.logs && q.settings.log {
            cold_path();
            let of = |policy: &P| policy.limit_depth_message(wanted);
            Log::write(q, self.policy.inspect(of), cpu);
        }
        self.policy.inspect(|policy| policy.limit_depth(wanted))
    }

    #[inline]
    fn limit_depth_lock(&self, q: &RequestQueue, wanted: Wanted) -> Option<LockId> {
        let locks = |policy: &P| policy.limits_under_lock(wanted);
        self.policy.inspect(locks).then(|| self.lock(q))
    }

    #[inline]
    fn hooks(&self) -> Hooks {
        self.info.hooks
    }

    /// No lock is taken, and nothing but the request changes.
    fn prepare(&self, rq: &mut Request) {
        self.policy.inspect(|policy| policy.prepare(rq));
    }

    fn ends(&self, rq: &Request) -> bool {
        self.policy.inspect(|policy| policy.ends(rq))
    }

    /// It counts the request.
    #[inline]
    fn finishes(&self, rq: &Request) -> bool {
        rq.use_sched && completed_level(rq.elv_priv).is_some()
    }

    #[inline]
    fn finish(&self, elv_priv: [u32; 2], cpu: &mut Cpu) {
        if let Some(level) = completed_level(elv_priv) {
            self.completed[level].add(cpu, 1);
        }
    }

    fn store(
        &self,
        q: &RequestQueue,
        name: &str,
        text: &str,
        cpu: &mut Cpu,
    ) -> Result<(), StoreError> {
        let now = now(q, cpu);
        self.revise(cpu, |policy| policy.store(name, text, now))
    }

    fn apply_override(&self, q: &RequestQueue, with: Override, cpu: &mut Cpu) {
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

    fn lines_at(&self, clocks: &[Now], cpu: &mut Cpu) {
        self.revise(cpu, |policy| policy.lines_at(clocks));
    }

    fn rotates(&self, rotational: bool, cpu: &mut Cpu) {
        self.revise(cpu, |policy| policy.rotates(rotational));
    }

    fn show(&self, q: &RequestQueue) -> String {
        q.with_pool(|pool| self.policy.inspect(|policy| policy.show(pool)))
    }

    fn completed(&self) -> Option<&[Count; LEVELS]> {
        Some(&self.completed)
    }

    /// While the lock is free, the policy is consistent, and agrees with the pool and with the word
    /// that shows whether it has work.
    fn check(&self, pool: &RequestPool) {
        if self.policy.is_free() {
            self.policy.inspect(|policy| policy.check(pool));
            let work = self.policy.inspect(Scheduler::has_work);
            assert_eq!(work, self.work.peek(), "has_work and the word for it");
        }
        if let Some(series) = &self.series {
            series.check();
        }
    }

    fn beside(&self) -> Vec<QueueList> {
        self.series.as_ref().map_or(Vec::new(), Series::lists)
    }

    fn inspect<R>(&self, look: impl FnOnce(&dyn Scheduler) -> R) -> Option<R> {
        Some(self.policy.inspect(|policy| look(policy)))
    }

    fn revise<R>(&self, cpu: &mut Cpu, change: impl FnOnce(&mut dyn Scheduler) -> R) -> R {
        cpu.begin_label();
        self.policy.acquire(cpu);
        let changed = change(&mut *self.policy.held(cpu));
        // A forced decision has its own clock.
        self.note_work(cpu);
        self.policy.release(cpu);
        cpu.begin_label();
        changed
    }

    #[inline]
    fn lock(&self, q: &RequestQueue) -> LockId {
        let class = self.info.locks[usize::from(LOCK)].irq_class;
        LockId::of_elevator(q.id, LOCK, class, 0)
    }

    #[inline]
    fn has_tokens(&self) -> bool {
        !self.info.tokens.is_empty()
    }

    fn wants_token(&self, refused: u8, cx: &mut Cx<'_>) -> Option<u8> {
        let pool = cx.pool();
        self.policy.held(cx.cpu).wants_token(&pool, refused)
    }

    fn pick(
        &self,
        cx: &mut Cx<'_>,
        hctx: HctxId,
        entered: Jiffies,
        token: Option<Token>,
    ) -> Option<RequestId> {
        self.dispatch_section(cx, hctx, entered, token)
    }

    fn insert_list(
        &self,
        cx: &mut Cx<'_>,
        list: &mut QueueList,
        at: InsertAt,
        absorbed: &mut QueueList,
    ) -> Inserted {
        self.insert_section(cx, list, at, absorbed)
    }

    fn merge(&self, cx: &mut Cx<'_>, bio: BioId) -> Merged {
        self.merge_section(cx, bio)
    }

    fn hook(&self, cx: &mut Cx<'_>, hook: Hook) -> After {
        self.hook_section(cx.q, hook, cx.cpu)
    }

    fn take_run_of(&self) -> Option<HctxId> {
        self.policy.adjust(Scheduler::take_run_of)
    }

    fn limit_depth_locked(&self, q: &RequestQueue, wanted: Wanted, cpu: &mut Cpu) -> Option<u32> {
        let now = now(q, cpu);
        let depth = self.policy.held(cpu).limit_depth_locked(wanted, now);
        self.emit_log(q, cpu);
        self.end_section(q, cpu);
        self.policy.release(cpu);
        depth
    }

    fn call<R>(
        &self,
        q: &RequestQueue,
        cpu: &mut Cpu,
        call: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        let now = now(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        call(&mut *self.policy.held(cpu), &mut pool, now)
    }

    fn log(&self, q: &RequestQueue, cpu: &mut Cpu) -> Log {
        self.messages(q, cpu)
    }

    fn settle(&self, q: &RequestQueue, cpu: &mut Cpu) {
        self.emit_log(q, cpu);
        self.end_section(q, cpu);
        self.read(q, cpu);
    }

    #[inline]
    fn series(&self) -> &Series {
        self.series()
    }
}

/// The request for the lock of the queue's scheduler.
pub(super) fn lock(cx: &Cx<'_>) -> Next {
    Next::Lock(cx.q.elevator.lock(cx.q))
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
