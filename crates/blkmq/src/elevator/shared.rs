//! The scheduler of a queue with all state that CPUs share, and the calls of paths.
//!
//! Kernel: block/elevator.h struct elevator_mq_ops (v6.1, v6.12).

use super::attribute::StoreError;
use super::custom::Custom;
use super::hook::Hooks;
use super::info::ELEVATOR_LOCKS_MAX;
use super::kind::SchedulerSettings;
use super::locked::{self, Locked, Log};
use super::path::{DispatchPath, HookPath, InsertPath, MergePath};
use super::scheduler::{LEVELS, Now, Override, Scheduler, Wanted};
use super::shape::QueueShape;
use super::{After, MergeAsked, Merged};
use crate::call::Hook;
use crate::env::{Count, Cpu, SpinLock};
use crate::list::QueueList;
use crate::queue::{IrqClass, LockId, QueueSettings, RequestQueue};
use crate::request::{BioId, HctxId, QueueId, Request, RequestId, RequestPool};
use crate::rules::Rules;
use crate::step::{Next, Sub};
use crate::time::SimTime;

/// Generates the closed set and its calls, each with an arm for each scheduler.
macro_rules! elevators {
    ($($(#[$doc:meta])* $Kind:ident => $module:ident $([$($labels:tt)*])?,)*) => {
        /// The scheduler of a queue, with all state that CPUs share.
        #[derive(Debug)]
        #[cfg_attr(not(loom), derive(PartialEq, Eq, Hash))]
        #[allow(
            clippy::large_enum_variant,
            reason = "one block to clone: the explorer's state (seam.md rule 9)"
        )]
        pub enum Elevator {
            None,
            $($(#[$doc])* $Kind(crate::elevator::$module::Shared),)*
            /// A scheduler of the program.
            Custom(Locked<Custom>),
        }

        /// `clone_from` within one kind reuses its allocations.
        #[cfg(not(loom))]
        impl Clone for Elevator {
            fn clone(&self) -> Elevator {
                match self {
                    Elevator::None => Elevator::None,
                    $(Elevator::$Kind(shared) => Elevator::$Kind(shared.clone()),)*
                    Elevator::Custom(shared) => Elevator::Custom(shared.clone()),
                }
            }

            fn clone_from(&mut self, source: &Elevator) {
                match (self, source) {
                    (Elevator::None, Elevator::None) => {}
                    $((Elevator::$Kind(shared), Elevator::$Kind(source)) => {
                        shared.clone_from(source);
                    })*
                    (Elevator::Custom(shared), Elevator::Custom(source)) => {
                        shared.clone_from(source);
                    }
                    (this, source) => *this = source.clone(),
                }
            }
        }

        impl Elevator {
            /// A new scheduler, idle.
            pub fn new(
                settings: &SchedulerSettings,
                queue: &QueueSettings,
                shape: &QueueShape,
            ) -> Elevator {
                match settings {
                    SchedulerSettings::None => Elevator::None,
                    $(SchedulerSettings::$Kind(settings) => {
                        Elevator::$Kind(crate::elevator::$module::new(settings, queue, shape))
                    })*
                    SchedulerSettings::Custom(custom) => Elevator::Custom(
                        Locked::with(custom.clone(), custom.info()),
                    ),
                }
            }

            pub(crate) fn lock_count(&self, number: u8) -> u32 {
                match self {
                    Elevator::None => 0,
                    $(Elevator::$Kind(shared) => shared.lock_count(number),)*
                    Elevator::Custom(shared) => shared.lock_count(number),
                }
            }

            /// A lock of the scheduler.
            ///
            /// # Panics
            /// If there is no such lock.
            #[inline]
            pub(crate) fn spin_lock(&self, number: u8, at: usize) -> &SpinLock {
                match self {
                    Elevator::None => panic!("lock {number} of no scheduler"),
                    $(Elevator::$Kind(shared) => shared.spin_lock(number, at),)*
                    Elevator::Custom(shared) => shared.spin_lock(number, at),
                }
            }

            /// Places that has_work of an hctx reads, one per label: lists of different locks.
            #[inline]
            pub(crate) fn work_places(&self, hctx: HctxId, rules: &Rules) -> u16 {
                match self {
                    Elevator::None => 0,
                    $(Elevator::$Kind(shared) => shared.work_places(hctx, rules),)*
                    Elevator::Custom(shared) => shared.work_places(hctx, rules),
                }
            }

            /// True if one of these places has requests. One access.
            #[inline]
            pub(crate) fn has_work(&self, hctx: HctxId, place: u16, cpu: &mut Cpu) -> bool {
                let found = match self {
                    Elevator::None => false,
                    $(Elevator::$Kind(shared) => shared.has_work(hctx, place, cpu),)*
                    Elevator::Custom(shared) => shared.has_work(hctx, place, cpu),
                };
                cpu.replayed_has_work.unwrap_or(found)
            }

            /// has_work() of an hctx for callers that visit many: all places in one access.
            pub(crate) fn seems_to_have_work(&self, hctx: HctxId, cpu: &mut Cpu) -> bool {
                match self {
                    Elevator::None => false,
                    $(Elevator::$Kind(shared) => shared.seems_to_have_work(hctx, cpu),)*
                    Elevator::Custom(shared) => shared.seems_to_have_work(hctx, cpu),
                }
            }

            /// limit_depth().
            pub(crate) fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => shared.limit_depth(wanted),)*
                    Elevator::Custom(shared) => shared.limit_depth(wanted),
                }
            }

            /// The lock that limit_depth() takes for this allocation, if any.
            #[inline]
            pub(crate) fn limit_depth_lock(
                &self,
                q: &RequestQueue,
                wanted: Wanted,
            ) -> Option<LockId> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => shared.limit_depth_lock(q, wanted),)*
                    Elevator::Custom(shared) => shared.limit_depth_lock(q, wanted),
                }
            }

            /// limit_depth() under that lock, up to the release.
            ///
            /// # Panics
            /// If it takes no lock.
            pub(crate) fn limit_depth_locked(
                &self,
                q: &RequestQueue,
                wanted: Wanted,
                cpu: &mut Cpu,
            ) -> Option<u32> {
                match self {
                    Elevator::None => panic!("limit_depth of no scheduler"),
                    $(Elevator::$Kind(shared) => shared.limit_depth_locked(q, wanted, cpu),)*
                    Elevator::Custom(shared) => shared.limit_depth_locked(q, wanted, cpu),
                }
            }

            pub(crate) fn start_merge(
                &self,
                q: &RequestQueue,
                asked: MergeAsked,
            ) -> (MergePath, Sub<Merged>) {
                match self {
                    Elevator::None => (MergePath::Idle, Sub::Done(Merged::No)),
                    $(Elevator::$Kind(shared) => {
                        let (path, step) = shared.start_merge(q, asked);
                        (MergePath::$Kind(path), step)
                    })*
                    Elevator::Custom(shared) => {
                        let (path, step) = shared.start_merge(q, asked);
                        (MergePath::Custom(path), step)
                    }
                }
            }

            pub(crate) fn merge(
                &self,
                path: &mut MergePath,
                q: &RequestQueue,
                bio: BioId,
                cpu: &mut Cpu,
            ) -> Sub<Merged> {
                match (self, path) {
                    $((Elevator::$Kind(shared), MergePath::$Kind(path)) => {
                        shared.merge(path, q, bio, cpu)
                    })*
                    (Elevator::Custom(shared), MergePath::Custom(path)) => {
                        shared.merge(path, q, bio, cpu)
                    }
                    _ => unreachable!("a path of another scheduler"),
                }
            }

            pub(crate) fn start_insert(
                &self,
                q: &RequestQueue,
                list: QueueList,
                head: bool,
            ) -> (InsertPath, Next) {
                match self {
                    Elevator::None => panic!("insertion into a queue without scheduler"),
                    $(Elevator::$Kind(shared) => {
                        let (path, next) = shared.start_insert(q, list, head);
                        (InsertPath::$Kind(path), next)
                    })*
                    Elevator::Custom(shared) => {
                        let (path, next) = shared.start_insert(q, list, head);
                        (InsertPath::Custom(path), next)
                    }
                }
            }

            /// True at its end if the label changed shared state, so that the next step is a label
            /// of its own.
            pub(crate) fn insert(
                &self,
                path: &mut InsertPath,
                q: &RequestQueue,
                cpu: &mut Cpu,
            ) -> Sub<bool> {
                match (self, path) {
                    $((Elevator::$Kind(shared), InsertPath::$Kind(path)) => {
                        shared.insert(path, q, cpu)
                    })*
                    (Elevator::Custom(shared), InsertPath::Custom(path)) => {
                        shared.insert(path, q, cpu)
                    }
                    _ => unreachable!("a path of another scheduler"),
                }
            }

            #[inline]
            pub(crate) fn start_dispatch(
                &self,
                q: &RequestQueue,
                hctx: HctxId,
                cpu: &mut Cpu,
            ) -> (DispatchPath, Next) {
                match self {
                    Elevator::None => panic!("dispatch from a queue without scheduler"),
                    $(Elevator::$Kind(shared) => {
                        let (path, next) = shared.start_dispatch(q, hctx, cpu);
                        (DispatchPath::$Kind(path), next)
                    })*
                    Elevator::Custom(shared) => {
                        let (path, next) = shared.start_dispatch(q, hctx, cpu);
                        (DispatchPath::Custom(path), next)
                    }
                }
            }

            pub(crate) fn dispatch(
                &self,
                path: &mut DispatchPath,
                q: &RequestQueue,
                cpu: &mut Cpu,
            ) -> Sub<Option<RequestId>> {
                match (self, path) {
                    $((Elevator::$Kind(shared), DispatchPath::$Kind(path)) => {
                        shared.dispatch(path, q, cpu)
                    })*
                    (Elevator::Custom(shared), DispatchPath::Custom(path)) => {
                        shared.dispatch(path, q, cpu)
                    }
                    _ => unreachable!("a path of another scheduler"),
                }
            }

            #[inline]
            pub(crate) fn hooks(&self) -> Hooks {
                match self {
                    Elevator::None => Hooks::NONE,
                    $(Elevator::$Kind(_) => crate::elevator::$module::INFO.hooks,)*
                    Elevator::Custom(shared) => shared.info.hooks,
                }
            }

            /// prepare_request().
            pub(crate) fn prepare(&self, rq: &mut Request) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.prepare(rq),)*
                    Elevator::Custom(shared) => shared.prepare(rq),
                }
            }

            pub(crate) fn start_hook(&self) -> HookPath {
                match self {
                    Elevator::None => panic!("a hook of no scheduler"),
                    $(Elevator::$Kind(_) => HookPath::$Kind(Default::default()),)*
                    Elevator::Custom(_) => HookPath::Custom(locked::HookPath::default()),
                }
            }

            /// The next step of the hook; the first one belongs to the label that begins it.
            pub(crate) fn hook(
                &self,
                path: &mut HookPath,
                hook: Hook,
                q: &RequestQueue,
                cpu: &mut Cpu,
            ) -> Sub<After> {
                match (self, path) {
                    $((Elevator::$Kind(shared), HookPath::$Kind(path)) => {
                        shared.hook(path, hook, q, cpu)
                    })*
                    (Elevator::Custom(shared), HookPath::Custom(path)) => {
                        shared.hook(path, hook, q, cpu)
                    }
                    _ => unreachable!("a path of another scheduler"),
                }
            }

            /// True if finish_request() has work for this request.
            #[inline]
            pub(crate) fn finishes(&self, rq: &Request) -> bool {
                match self {
                    Elevator::None => false,
                    $(Elevator::$Kind(shared) => rq.use_sched && shared.finishes(rq),)*
                    Elevator::Custom(shared) => rq.use_sched && shared.finishes(rq),
                }
            }

            /// finish_request() of a request with this `elv_priv`: one access.
            pub(crate) fn finish(&self, elv_priv: [u32; 2], cpu: &mut Cpu) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.finish(elv_priv, cpu),)*
                    Elevator::Custom(shared) => shared.finish(elv_priv, cpu),
                }
            }

            /// Inspects the policy while nothing runs; none if there is no policy, or if several
            /// locks guard parts of it.
            pub fn inspect<R>(&self, look: impl FnOnce(&dyn Scheduler) -> R) -> Option<R> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => shared.inspect(look),)*
                    Elevator::Custom(shared) => shared.inspect(look),
                }
            }

            /// Changes the policy under its one lock from outside, and updates the word that
            /// has_work reads.
            ///
            /// # Panics
            /// Without such a policy, or if the lock is taken.
            pub fn revise<R>(
                &self,
                cpu: &mut Cpu,
                change: impl FnOnce(&mut dyn Scheduler) -> R,
            ) -> R {
                match self {
                    Elevator::None => panic!("no scheduler to be changed"),
                    $(Elevator::$Kind(shared) => shared.revise(cpu, change),)*
                    Elevator::Custom(shared) => shared.revise(cpu, change),
                }
            }

            /// Calls the policy of a single-queue scheduler under the queue's lock, which the
            /// caller's path holds.
            ///
            /// # Panics
            /// Without a policy with one lock, or if the path does not hold the lock.
            pub(crate) fn call<R>(
                &self,
                q: &RequestQueue,
                cpu: &mut Cpu,
                call: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
            ) -> R {
                match self {
                    Elevator::None => panic!("no scheduler to be called"),
                    $(Elevator::$Kind(shared) => shared.call(q, cpu, call),)*
                    Elevator::Custom(shared) => shared.call(q, cpu, call),
                }
            }

            /// Messages of the policy in such a call, to be recorded between the records of the
            /// block layer.
            pub(crate) fn log(&self, q: &RequestQueue, cpu: &mut Cpu) -> Log {
                match self {
                    Elevator::None => panic!("no scheduler that writes"),
                    $(Elevator::$Kind(shared) => shared.log(q, cpu),)*
                    Elevator::Custom(shared) => shared.log(q, cpu),
                }
            }

            /// Completes such a section before its release: the word that has_work reads, messages,
            /// readings, the charge, and a timer.
            pub(crate) fn settle(&self, q: &RequestQueue, cpu: &mut Cpu) {
                match self {
                    Elevator::None => panic!("no scheduler to be left"),
                    $(Elevator::$Kind(shared) => shared.settle_all(q, cpu),)*
                    Elevator::Custom(shared) => shared.settle_all(q, cpu),
                }
            }

            /// A write to an attribute in sysfs while requests may be queued.
            pub fn store(
                &self,
                q: &RequestQueue,
                name: &str,
                text: &str,
                cpu: &mut Cpu,
            ) -> Result<(), StoreError> {
                match self {
                    Elevator::None => Err(StoreError::UnknownAttribute {
                        scheduler: "none",
                        name: name.to_owned(),
                        known: Vec::new(),
                    }),
                    $(Elevator::$Kind(shared) => shared.store(q, name, text, cpu),)*
                    Elevator::Custom(shared) => shared.store(q, name, text, cpu),
                }
            }

            /// Forces a decision of a recorded kernel.
            ///
            /// # Panics
            /// Without a scheduler, or if one of its locks is taken.
            pub fn apply_override(&self, q: &RequestQueue, with: Override, cpu: &mut Cpu) {
                match self {
                    Elevator::None => panic!("no scheduler to be changed"),
                    $(Elevator::$Kind(shared) => shared.apply_override(q, with, cpu),)*
                    Elevator::Custom(shared) => shared.apply_override(q, with, cpu),
                }
            }

            /// The times at which a recorded kernel wrote the next lines of the scheduler's log
            /// ([`Scheduler::lines_at`](super::Scheduler::lines_at)).
            pub fn lines_at(&self, times: &[SimTime], cpu: &mut Cpu) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.lines_at(times, cpu),)*
                    Elevator::Custom(shared) => shared.lines_at(times, cpu),
                }
            }

            /// queue/rotational has been written.
            pub fn rotates(&self, rotational: bool, cpu: &mut Cpu) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.rotates(rotational, cpu),)*
                    Elevator::Custom(shared) => shared.rotates(rotational, cpu),
                }
            }

            /// The queue as text, for comparison with a kernel's; empty without a scheduler.
            pub fn show(&self, q: &RequestQueue) -> String {
                match self {
                    Elevator::None => String::new(),
                    $(Elevator::$Kind(shared) => shared.show(q),)*
                    Elevator::Custom(shared) => shared.show(q),
                }
            }

            /// has_work of an hctx while nothing runs; no access of the modelled machine.
            pub fn has_queued(&self, hctx: HctxId) -> bool {
                match self {
                    Elevator::None => false,
                    $(Elevator::$Kind(shared) => shared.has_queued(hctx),)*
                    Elevator::Custom(shared) => shared.has_queued(hctx),
                }
            }

            /// Counts of finished requests by level, outside the policy's lock.
            pub fn completed(&self) -> Option<&[Count; LEVELS]> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => shared.completed(),)*
                    Elevator::Custom(shared) => shared.completed(),
                }
            }

            /// Panics unless all state that no path works on is consistent: the policy's
            /// structures, the pool, and the words that mirror lists.
            pub fn check(&self, pool: &RequestPool) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.check(pool),)*
                    Elevator::Custom(shared) => shared.check(pool),
                }
            }

            /// Requests that wait outside the policy's lists, not inserted yet.
            pub fn beside(&self) -> Vec<QueueList> {
                match self {
                    Elevator::None => Vec::new(),
                    $(Elevator::$Kind(shared) => shared.beside(),)*
                    Elevator::Custom(shared) => shared.beside(),
                }
            }
        }
    };
}

super::schedulers!(elevators);

/// q->queue_lock of a single-queue one: the lock of its scheduler, which disables interrupts.
#[inline]
pub(crate) fn queue_lock(queue: QueueId) -> LockId {
    LockId::of_elevator(queue, locked::LOCK, IrqClass::IrqSave, 0)
}

impl Elevator {
    /// Releases the queue's lock.
    pub(crate) fn unlock(&self, cpu: &mut Cpu) {
        self.spin_lock(locked::LOCK, 0).release(cpu);
    }

    /// No lock of the scheduler is taken.
    pub fn is_free(&self) -> bool {
        (0..ELEVATOR_LOCKS_MAX as u8).all(|number| {
            (0..self.lock_count(number)).all(|at| self.spin_lock(number, at as usize).is_free())
        })
    }
}
