//! A scheduler behind one lock as CPUs share it: the lock, the word that has_work reads without it,
//! counts of finished requests; and the paths through it, which every such scheduler has alike.
//!
//! What the scheduler decides is its policy's ([`Scheduler`]). A scheduler that adds steps of its
//! own wraps these paths (`series/`); one with several locks brings paths of its own.
//! Kernel: dd_insert_requests(), dd_bio_merge(), dd_dispatch_request(), dd_finish_request() and
//! their like (6.1.192, 6.12.117).

mod depth;
mod log;
mod token;

use super::attribute::StoreError;
use super::facts::Facts;
use super::hook::{Hook, TimerAsk};
use super::scheduler::{
    BioMerge, DispatchTime, InsertAt, Insertion, LEVELS, Meddle, Now, Scheduler, completed_level,
};
use super::{DispatchStep, HookStep, InsertInHand, InsertStep, LockVisit};
use super::{MergeAsked, MergeStep, Merged};
use crate::env::{Answer, Bit, Count, Cpu, Effect, Env, Lock, Slab, Spot, TraceAction, solo_value};
use crate::list::QueueList;
use crate::merge::{Merging, Side};
use crate::path::label::{Label, labels};
use crate::path::{Next, Traced, free_request, jiffies, probe};
use crate::queue::{LockId, RequestQueue};
use crate::request::{BioId, HctxId, Place, Request, RequestId, RequestPool};
use crate::rules::{MergeLookup, MergedFree, Rules, Stamp};
use crate::time::{Jiffies, SimTime};
pub(crate) use log::Log;
use token::Tokens;

/// Number of the one lock among a scheduler's locks.
pub(crate) const LOCK: u8 = 0;

labels! {
    /// Labels of a look for a merge that its caller has no name for.
    pub enum MergeAt in "elevator-merge" {
        /// Was the scheduler's lock free?
        Try,
    }
}

labels! {
    /// Labels of an insertion that its caller has no name for.
    pub enum InsertionAt in "elevator-insert" {
        /// Still under the lock: free what was absorbed (v6.1).
        AbsorbedLocked,
        /// Free what was absorbed.
        Absorbed,
    }
}

/// What CPUs share of a scheduler with policy `P`.
#[derive(Debug)]
pub struct Locked<E: Env, P: Scheduler + 'static> {
    /// The policy under the scheduler's lock.
    pub policy: E::Lock<P>,
    /// It has something to dispatch: list heads that has_work reads without the lock.
    pub work: E::Bit,
    /// Requests finished, by the level that `elv_priv` names; counted without the lock.
    pub completed: [E::Count; LEVELS],
    /// Cache lines of the policy's own, which it says it has touched.
    lines: Vec<E::Spot>,
    pub(super) facts: &'static Facts,
}

solo_value!(Locked of P: Scheduler { lines, facts; policy, work, completed });

/// A look for a merge under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct MergePath {
    tries: bool,
}

impl MergePath {
    pub(crate) fn label(self) -> Option<Label> {
        self.tries.then(|| MergeAt::Try.label())
    }
}

/// An insertion of a list under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct InsertPath {
    at: Stage,
    head: bool,
    list: QueueList,
    absorbed: QueueList,
}

/// Where an insertion stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    /// The section under the lock; its caller names it.
    Section,
    AbsorbedLocked,
    Absorbed,
}

impl InsertPath {
    /// Of these requests, at the head or not.
    pub(crate) fn new(list: QueueList, head: bool) -> InsertPath {
        InsertPath {
            at: Stage::Section,
            head,
            list,
            absorbed: QueueList::new(),
        }
    }

    pub(crate) fn label(self) -> Option<Label> {
        match self.at {
            Stage::Section => None,
            Stage::AbsorbedLocked => Some(InsertionAt::AbsorbedLocked.label()),
            Stage::Absorbed => Some(InsertionAt::Absorbed.label()),
        }
    }

    /// What is still to be inserted, in order.
    pub(crate) fn in_hand(self) -> InsertInHand {
        InsertInHand {
            list: self.list,
            seq: 0,
            bucket: 0,
            filled: false,
        }
    }

    fn to(&mut self, at: Stage) -> InsertStep {
        self.at = at;
        InsertStep::Wait(Next::Step)
    }
}

/// Counts of finished requests by level.
type Completed = [u32; LEVELS];

/// When a dispatch call was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Asked(Jiffies);

impl Asked {
    /// Before the lock: dd_dispatch_request() reads the clock there.
    pub(crate) fn now<E: Env>(q: &RequestQueue<E>, cpu: &mut Cpu) -> Asked {
        Asked(jiffies(q, cpu))
    }
}

/// A dispatch call under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct DispatchPath {
    asked: Asked,
    tokens: Tokens,
}

impl DispatchPath {
    /// The call's caller names its one label.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn label(self) -> Option<Label> {
        None
    }

    /// What was picked is returned in the label that picks.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn picked(self) -> Option<RequestId> {
        None
    }
}

/// A hook under way: its one section, which the caller names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct HookPath {
    asked: bool,
}

impl HookPath {
    /// The call's caller names its one label.
    #[expect(clippy::unused_self, reason = "as every scheduler's path has it")]
    pub(crate) fn label(self) -> Option<Label> {
        None
    }
}

/// What the section of an insertion did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inserted {
    /// The list is in.
    All,
    /// A request is in, or absorbed; the others take the lock anew.
    One,
    /// A request was absorbed and is to be freed under the lock, which is kept (v6.1).
    UpToMerge,
}

#[expect(
    clippy::unused_self,
    reason = "as every scheduler's shared state has them: `Elevator` asks all alike"
)]
impl<E: Env, P: Scheduler + 'static> Locked<E, P> {
    /// Idle.
    pub(crate) fn with(policy: P, facts: &'static Facts) -> Locked<E, P> {
        Locked {
            policy: E::Lock::apart(policy),
            work: E::Bit::new(false),
            completed: core::array::from_fn(|_| E::Count::new(0)),
            lines: (0..facts.lines).map(|_| E::Spot::new()).collect(),
            facts,
        }
    }

    /// The lock, to be asked for.
    #[inline]
    pub(crate) fn lock(&self, q: &RequestQueue<E>) -> LockId {
        let class = self.facts.locks[usize::from(LOCK)].irq_class;
        LockId::of_elevator(q.id, LOCK, class, 0)
    }

    pub(crate) fn lock_count(&self, number: u8) -> u32 {
        u32::from(number == LOCK)
    }

    #[inline]
    pub(crate) fn visit_lock<V: LockVisit<E>>(&self, number: u8, at: usize, visit: V) -> V::Out {
        assert_eq!((number, at), (LOCK, 0), "a scheduler behind one lock");
        visit.visit(&self.policy)
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

    /// The same by whoever walks over many queues: the word alone.
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
    pub(crate) fn completed(&self) -> Option<&[E::Count; LEVELS]> {
        Some(&self.completed)
    }

    pub(crate) fn show(&self, q: &RequestQueue<E>) -> String {
        q.with_pool(|pool| self.policy.inspect(|policy| policy.show(pool)))
    }

    pub(crate) fn store(
        &self,
        q: &RequestQueue<E>,
        name: &str,
        text: &str,
        cpu: &mut Cpu,
    ) -> Result<(), StoreError> {
        let now = now(q, cpu);
        self.revise(cpu, |policy| policy.store(name, text, now))
    }

    pub(crate) fn meddle(&self, q: &RequestQueue<E>, with: Meddle, cpu: &mut Cpu) {
        self.revise(cpu, |policy| {
            q.with_pool(|pool| match with {
                Meddle::Withdraw(rq) => policy.withdraw(pool, rq),
                Meddle::Impose(rq) => policy.impose(pool, rq),
                Meddle::Reshape(rq, sector, sectors) => policy.reshape(pool, rq, sector, sectors),
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
        // Whoever imposes a decision has its own clock.
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

    /// finish_request(): one more of its level is done.
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

    /// Panics unless, while nobody has the lock, the policy agrees with itself, the pool and the
    /// word that says whether it has work.
    pub(crate) fn check(&self, pool: &RequestPool) {
        if !self.policy.is_free() {
            return;
        }
        self.policy.inspect(|policy| policy.check(pool));
        let work = self.policy.inspect(Scheduler::has_work);
        assert_eq!(work, self.work.peek(), "has_work and the word for it");
    }

    /// Nothing waits beside the policy.
    pub(crate) fn beside(&self) -> Vec<QueueList> {
        Vec::new()
    }

    /// Charges what the policy touched besides requests. Under the lock.
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
    fn now_of_task(&self, q: &RequestQueue<E>, cpu: &mut Cpu) -> Now {
        let mut now = now(q, cpu);
        if self.facts.reads_clock && !now.kept && q.settings.rules.plug_keeps_time {
            now.time = cpu.plug.time(Stamp::OfPlug, now.time);
            now.kept = cpu.plug.keeps_time();
        }
        now
    }

    /// Keeps the word that has_work reads equal to the policy's lists. Under the lock. What the
    /// policy wants of a timer is for the caller.
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

    /// What a section leaves behind: the word that has_work reads, the charge, and a timer.
    #[inline]
    fn settle(&self, q: &RequestQueue<E>, cpu: &mut Cpu) {
        let ask = self.note_work(cpu);
        set_timer(ask, q, cpu);
    }

    /// Calls the policy under its lock, which the caller's path holds.
    pub(crate) fn call<R>(
        &self,
        q: &RequestQueue<E>,
        cpu: &mut Cpu,
        call: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        let now = now(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        call(&mut *self.policy.held(cpu), &mut pool, now)
    }

    /// [`Self::settle`], with what the policy has written and shows.
    pub(crate) fn settle_all(&self, q: &RequestQueue<E>, cpu: &mut Cpu) {
        self.tell(q, cpu);
        self.read(q, cpu);
        self.settle(q, cpu);
    }

    /// prepare_request(): no lock is taken, and nothing but the request changes.
    pub(crate) fn prepare(&self, rq: &mut Request) {
        self.policy.inspect(|policy| policy.prepare(rq));
    }
}

/// A look for a merge.
impl<E: Env, P: Scheduler + 'static> Locked<E, P> {
    pub(crate) fn start_merge(
        &self,
        q: &RequestQueue<E>,
        _asked: MergeAsked,
    ) -> (MergePath, MergeStep) {
        let tries = q.settings.rules.series.merge_lookup == MergeLookup::IfLockIsFree;
        let lock = self.lock(q);
        let next = match tries {
            true => Next::TryLock(lock),
            false => Next::Lock(lock),
        };
        (MergePath { tries }, MergeStep::Wait(next))
    }

    pub(crate) fn merge(
        &self,
        path: &mut MergePath,
        q: &RequestQueue<E>,
        bio: BioId,
        cpu: &mut Cpu,
    ) -> MergeStep {
        if core::mem::take(&mut path.tries) {
            return match core::mem::take(&mut cpu.answer) {
                Answer::Locked => MergeStep::Wait(Next::Step),
                _ => MergeStep::Done(Merged::No),
            };
        }
        let merged = self.merge_section(q, bio, cpu);
        MergeStep::Done(merged)
    }

    /// Under the lock, to the release.
    fn merge_section(&self, q: &RequestQueue<E>, bio: BioId, cpu: &mut Cpu) -> Merged {
        let now = self.now_of_task(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        let merge = self
            .policy
            .held(cpu)
            .merge_bio(&mut pool, bio, now, merging(q));
        let traced = Traced::bio(&pool, bio);
        let BioMerge::Into { side, absorbed, .. } = merge else {
            drop(pool);
            self.tell(q, cpu);
            self.settle(q, cpu);
            self.policy.release(cpu);
            return Merged::No;
        };
        let gone = absorbed.map(|rq| {
            pool[rq].place = Place::Path;
            Traced::rq(&pool, rq)
        });
        drop(pool);
        let mut log = self.log(q, cpu);
        match side {
            Side::Back => log.trace(TraceAction::BackMerge, traced, cpu),
            Side::Front => log.trace(TraceAction::FrontMerge, traced, cpu),
            Side::Discard => {}
        }
        if let Some(gone) = gone {
            log.swallow(gone, cpu);
        }
        log.rest(cpu);
        self.settle(q, cpu);
        self.policy.release(cpu);
        Merged::Into { absorbed }
    }
}

fn merging<E: Env>(q: &RequestQueue<E>) -> Merging<'_> {
    Merging {
        limits: &q.settings.limits,
        nomerges: q.settings.nomerges,
    }
}

/// Insertion of a list.
impl<E: Env, P: Scheduler + 'static> Locked<E, P> {
    pub(crate) fn start_insert(
        &self,
        q: &RequestQueue<E>,
        list: QueueList,
        head: bool,
    ) -> (InsertPath, Next) {
        (InsertPath::new(list, head), Next::Lock(self.lock(q)))
    }

    pub(crate) fn insert(
        &self,
        path: &mut InsertPath,
        q: &RequestQueue<E>,
        cpu: &mut Cpu,
    ) -> InsertStep {
        match path.at {
            Stage::Section => {
                let at = InsertAt::by_flag(path.head);
                match self.insert_list(q, &mut path.list, at, &mut path.absorbed, cpu) {
                    Inserted::UpToMerge => path.to(Stage::AbsorbedLocked),
                    Inserted::One => {
                        self.policy.release(cpu);
                        match path.absorbed.is_empty() {
                            true => InsertStep::Wait(Next::Lock(self.lock(q))),
                            false => path.to(Stage::Absorbed),
                        }
                    }
                    Inserted::All => {
                        self.policy.release(cpu);
                        match path.absorbed.is_empty() {
                            true => InsertStep::Done { touched: true },
                            false => path.to(Stage::Absorbed),
                        }
                    }
                }
            }
            Stage::AbsorbedLocked => match path.absorbed.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => InsertStep::Wait(free_request(cpu, q.id, gone)),
                None => path.to(Stage::Section),
            },
            Stage::Absorbed => match path.absorbed.pop_front(&mut q.pool.held(cpu.id)) {
                Some(gone) => InsertStep::Wait(free_request(cpu, q.id, gone)),
                None if !path.list.is_empty() => {
                    path.at = Stage::Section;
                    InsertStep::Wait(Next::Lock(self.lock(q)))
                }
                None => InsertStep::Done { touched: false },
            },
        }
    }

    /// Under the lock: inserts the list in order, up to a merge where the rules want its request
    /// freed at once. Absorbed requests go to `absorbed`.
    fn insert_list(
        &self,
        q: &RequestQueue<E>,
        list: &mut QueueList,
        at: InsertAt,
        absorbed: &mut QueueList,
        cpu: &mut Cpu,
    ) -> Inserted {
        let now = self.now_of_task(q, cpu);
        loop {
            let mut pool = q.pool.held(cpu.id);
            let Some(rq) = list.pop_front(&mut pool) else {
                break;
            };
            probe::arrive(q, &pool, rq, now.tick, cpu);
            let mut policy = self.policy.held(cpu);
            let insertion = policy.insert(&mut pool, rq, at, now, merging(q));
            drop(policy);
            let mut log = self.log(q, cpu);
            match insertion {
                Insertion::Inserted => {
                    assert_eq!(pool[rq].place, Place::Elevator, "{rq:?} was not taken");
                    let traced = Traced::rq(&pool, rq);
                    drop(pool);
                    log.trace(TraceAction::Insert, traced, cpu);
                    log.rest(cpu);
                }
                Insertion::Absorbed(mut gone) => {
                    while let Some(rq) = gone.pop_back(&mut pool) {
                        let traced = Traced::rq(&pool, rq);
                        pool[rq].place = Place::Path;
                        absorbed.push_back(&mut pool, rq);
                        log.swallow(traced, cpu);
                    }
                    log.rest(cpu);
                    // Who is told of the end of requests takes the lock for that.
                    let under_lock = q.settings.rules.merged_free == MergedFree::UnderLock;
                    if under_lock && !self.facts.hooks.finished {
                        return Inserted::UpToMerge;
                    }
                }
            }
            if self.facts.inserts_each && !list.is_empty() {
                self.settle(q, cpu);
                return Inserted::One;
            }
        }
        self.settle(q, cpu);
        Inserted::All
    }

    /// The same to the end of the list, whatever the rules say of absorbed requests.
    pub(crate) fn insert_whole(
        &self,
        q: &RequestQueue<E>,
        list: &mut QueueList,
        at: InsertAt,
        absorbed: &mut QueueList,
        cpu: &mut Cpu,
    ) {
        while self.insert_list(q, list, at, absorbed, cpu) != Inserted::All {}
    }
}

/// A dispatch call.
impl<E: Env, P: Scheduler + 'static> Locked<E, P> {
    pub(crate) fn start_dispatch(
        &self,
        q: &RequestQueue<E>,
        hctx: HctxId,
        cpu: &mut Cpu,
    ) -> (DispatchPath, Next) {
        let path = DispatchPath {
            asked: Asked::now(q, cpu),
            tokens: Tokens::of(self.facts, hctx),
        };
        (path, Next::Lock(self.lock(q)))
    }

    pub(crate) fn dispatch(
        &self,
        path: &mut DispatchPath,
        q: &RequestQueue<E>,
        cpu: &mut Cpu,
    ) -> DispatchStep {
        if !self.facts.tokens.is_empty() {
            return self.dispatch_by_token(path, q, cpu);
        }
        let picked = self.pick(&mut path.asked, q, cpu);
        self.policy.release(cpu);
        DispatchStep::Picked(picked)
    }

    /// Under the lock, which is kept.
    pub(crate) fn pick(
        &self,
        asked: &mut Asked,
        q: &RequestQueue<E>,
        cpu: &mut Cpu,
    ) -> Option<RequestId> {
        self.picks(asked, q, cpu, |policy, pool, time, completed| {
            policy.dispatch(pool, time, completed)
        })
    }

    #[inline]
    fn picks(
        &self,
        asked: &mut Asked,
        q: &RequestQueue<E>,
        cpu: &mut Cpu,
        pick: impl FnOnce(&mut P, &mut RequestPool, DispatchTime, Completed) -> Option<RequestId>,
    ) -> Option<RequestId> {
        let now = self.now_of_task(q, cpu);
        let time = DispatchTime {
            entered: core::mem::take(asked).0,
            locked: now.tick,
            time: now.time,
            kept: now.kept,
        };
        let completed = core::array::from_fn(|level| self.completed[level].read(cpu) as u32);
        let mut pool = q.pool.held(cpu.id);
        let mut policy = self.policy.held(cpu);
        let picked = pick(&mut policy, &mut pool, time, completed);
        let (more, charge) = (policy.has_work(), policy.take_charge());
        let ask = policy.take_timer();
        drop(policy);
        if let Some(rq) = picked {
            assert_eq!(pool[rq].place, Place::Path, "{rq:?} was not let go");
        }
        drop(pool);
        self.tell(q, cpu);
        self.read(q, cpu);
        self.charge(charge, cpu);
        if !more && self.work.peek() {
            self.work.mirror(cpu, false);
        }
        set_timer(ask, q, cpu);
        picked
    }
}

/// Hooks.
impl<E: Env, P: Scheduler + 'static> Locked<E, P> {
    pub(crate) fn hook(
        &self,
        path: &mut HookPath,
        hook: Hook,
        q: &RequestQueue<E>,
        cpu: &mut Cpu,
    ) -> HookStep {
        if !core::mem::replace(&mut path.asked, true) {
            return HookStep::Wait(Next::Lock(self.lock(q)));
        }
        let now = now(q, cpu);
        let mut pool = q.pool.held(cpu.id);
        let mut policy = self.policy.held(cpu);
        let after = match hook {
            Hook::Completed(rq) => policy.completed(&mut pool, rq, now),
            Hook::Requeued(rq) => policy.requeued(&mut pool, rq, now),
            Hook::Finished(rq) => policy.finished(&mut pool, rq, now),
            Hook::Exits(io_context) => policy.exits(&mut pool, io_context, now),
            Hook::Timer(timer) => policy.timer(&mut pool, timer, now),
        };
        drop(policy);
        drop(pool);
        self.tell(q, cpu);
        self.read(q, cpu);
        self.settle(q, cpu);
        self.policy.release(cpu);
        HookStep::Done(after)
    }
}

/// The time in a section of a hook or a timer, which may be an interrupt's.
#[inline]
fn now<E: Env>(q: &RequestQueue<E>, cpu: &mut Cpu) -> Now {
    Now {
        time: cpu.ktime.unwrap_or(cpu.now()),
        tick: jiffies(q, cpu),
        kept: cpu.ktime.is_some(),
    }
}

/// Has the machine do what a policy wants of a timer.
#[inline]
fn set_timer<E: Env>(ask: Option<TimerAsk>, q: &RequestQueue<E>, cpu: &mut Cpu) {
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
