//! Schedulers: what the block layer asks of one, and the closed set of them.
//!
//! * [`Facts`]: what is known of a scheduler without running it; [`Attributes`]: its files in sysfs
//! * [`Scheduler`]: the contract of a policy behind one lock; [`Locked`]: its paths
//! * a folder for each scheduler, with all of it: policy, shared state, paths, settings, facts
//! * [`Custom`]: a scheduler of a program that uses this library
//!
//! A path holds the state of the scheduler's part in it ([`MergePath`], [`InsertPath`],
//! [`DispatchPath`]) and steps that until it is over; which lock, word or wait queue it wants is
//! the scheduler's business. Not here: `none`, which keeps requests in software queues.
//! Kernel: block/elevator.c, block/elevator.h (v6.1, v6.12).

mod attribute;
mod custom;
mod facts;
mod hook;
mod locked;
mod merging;
pub mod mq_deadline;
pub mod noop;
mod scheduler;
mod token;

pub use attribute::{Attribute, Attributes, StoreError};
pub use custom::{Custom, CustomScheduler};
pub use facts::{ELEVATOR_LOCKS_MAX, ElevatorLock, Facts, Probes};
pub use hook::{After, ElevatorTimer, Hook, Hooks, TimerAsk, TimerContext};
pub use locked::{InsertionAt, Locked, MergeAt};
pub use merging::{MergeHooks, insert_merge, try_merge};
pub use scheduler::{
    BioMerge, Charge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler, TagMapSize,
    Wanted, completed_level,
};
pub use token::{ElevatorTokens, TOKEN_MAPS_MAX, Token};

use core::fmt::Debug;

use crate::env::{Bit, Cpu, Env, Lock, Solo};
use crate::list::QueueList;
use crate::path::Next;
use crate::path::label::Label;
use crate::queue::RequestQueue;
use crate::request::{BioId, HctxId, Request, RequestId, RequestPool};
use crate::rules::Rules;

/// One step of a look for a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MergeStep {
    /// Do this, then step again.
    Wait(Next),
    /// Over, behind the release of the last lock.
    Done(Merged),
}

/// What came of a look for a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Merged {
    /// The bio needs a request of its own.
    No,
    /// The bio is part of a request; another one may have been emptied by that, and is to be
    /// freed.
    Into { absorbed: Option<RequestId> },
}

/// One step of an insertion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InsertStep {
    /// Do this, then step again.
    Wait(Next),
    /// Over. `touched`: the label did something that others see, so what follows is a label of
    /// its own.
    Done { touched: bool },
}

/// One step of a dispatch call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DispatchStep {
    /// Do this, then step again.
    Wait(Next),
    /// The call returns.
    Picked(Option<RequestId>),
}

/// One step of a hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookStep {
    /// Do this, then step again.
    Wait(Next),
    /// Over, behind the release of the last lock.
    Done(After),
}

/// Requests of an insertion that stand in no list that others see, and what the January 2024
/// series remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InsertInHand {
    /// What is to be inserted, in order.
    pub list: QueueList,
    /// insert_seq as this path knows it; zero where no later label reads it.
    pub seq: i32,
    /// Number of the bucket that is filled or looked at.
    pub bucket: u16,
    /// The list went to a bucket whose inserter may have gone: buckets first.
    pub filled: bool,
}

/// Does something with a lock whose guarded type differs from lock to lock.
pub(crate) trait LockVisit<E: Env> {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<T: Debug + 'static>(self, lock: &E::Lock<T>) -> Self::Out;
}

/// Generates everything that has an arm for each scheduler. Each module in the list has `FACTS`,
/// `Settings` (with `defaults(hz, nr_requests)`), `new(settings, rules)`, which makes a
/// `Shared<E>` with the methods called below, and the states of its paths, which for a scheduler
/// behind one lock are those of `locked`. In brackets: the groups of its own labels.
macro_rules! schedulers {
    ($(
        $(#[$doc:meta])*
        $Kind:ident => $module:ident
        $([$($(#[doc = $said:literal])+ $Group:ident = $($at:ident)::+,)+])?,
    )*) => {
        /// Labels that one scheduler has and no other.
        pub mod labels {
            crate::path::label::groups! {
                from crate::path::label::OWN;
                $($($($(#[doc = $said])+ $Group = crate::elevator::$module::$($at)::+,)+)?)*
            }
        }

        /// Which scheduler a queue runs.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum SchedulerKind {
            /// No scheduler: requests wait in software queues.
            None,
            $($(#[$doc])* $Kind,)*
            /// A program's own, with its facts.
            Custom(&'static Facts),
        }

        impl SchedulerKind {
            /// Those that a name selects, `none` first.
            pub const ALL: &'static [SchedulerKind] =
                &[SchedulerKind::None, $(SchedulerKind::$Kind,)*];

            /// What is known of it; nothing of `none`.
            #[inline]
            pub const fn facts(self) -> Option<&'static Facts> {
                match self {
                    SchedulerKind::None => None,
                    $(SchedulerKind::$Kind => Some(&$module::FACTS),)*
                    SchedulerKind::Custom(facts) => Some(facts),
                }
            }

            /// As it comes, with so many ticks a second and scheduler tags.
            ///
            /// # Panics
            /// For a program's own: only the program can make it.
            pub fn defaults(self, hz: u32, nr_requests: u32) -> SchedulerSettings {
                match self {
                    SchedulerKind::None => SchedulerSettings::None,
                    $(SchedulerKind::$Kind => SchedulerSettings::$Kind(
                        $module::Settings::defaults(hz, nr_requests),
                    ),)*
                    SchedulerKind::Custom(facts) => panic!("{} comes from a program", facts.name),
                }
            }

            /// Names of attributes, and what documentation says of them.
            pub fn attributes(self) -> Vec<(&'static str, &'static str)> {
                match self {
                    SchedulerKind::None | SchedulerKind::Custom(_) => Vec::new(),
                    $(SchedulerKind::$Kind => {
                        let table = $module::Settings::TABLE.iter();
                        table.map(|a| (a.name, a.about)).collect()
                    })*
                }
            }
        }

        /// A scheduler as it is chosen: which one, with which attributes.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub enum SchedulerSettings {
            /// No scheduler.
            None,
            $($(#[$doc])* $Kind($module::Settings),)*
            /// A program's own, idle.
            Custom(Custom),
        }

        impl SchedulerSettings {
            /// Which one.
            pub fn kind(&self) -> SchedulerKind {
                match self {
                    SchedulerSettings::None => SchedulerKind::None,
                    $(SchedulerSettings::$Kind(_) => SchedulerKind::$Kind,)*
                    SchedulerSettings::Custom(custom) => SchedulerKind::Custom(custom.facts()),
                }
            }

            /// Writes `text` to the attribute `name`, as a write to sysfs would.
            pub fn store(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
                match self {
                    SchedulerSettings::None => Err(StoreError::UnknownAttribute {
                        scheduler: "none",
                        name: name.to_owned(),
                        known: Vec::new(),
                    }),
                    $(SchedulerSettings::$Kind(settings) => settings.store(name, text),)*
                    SchedulerSettings::Custom(custom) => custom.store(name, text),
                }
            }

            /// Names and values of all attributes as sysfs shows them.
            pub fn shown(&self) -> Vec<(&'static str, i64)> {
                match self {
                    SchedulerSettings::None => Vec::new(),
                    $(SchedulerSettings::$Kind(settings) => settings.shown(),)*
                    SchedulerSettings::Custom(custom) => custom.shown(),
                }
            }
        }

        /// The scheduler of a queue, with all that CPUs share of it.
        #[derive(Debug)]
        #[allow(
            clippy::large_enum_variant,
            reason = "one block to clone: the explorer's state (seam.md rule 9)"
        )]
        pub enum Elevator<E: Env> {
            /// No scheduler: requests wait in software queues.
            None,
            $($(#[$doc])* $Kind($module::Shared<E>),)*
            /// A program's own.
            Custom(Locked<E, Custom>),
        }

        /// Copying one over another of its kind copies what is in it.
        impl Clone for Elevator<Solo> {
            fn clone(&self) -> Elevator<Solo> {
                match self {
                    Elevator::None => Elevator::None,
                    $(Elevator::$Kind(shared) => Elevator::$Kind(shared.clone()),)*
                    Elevator::Custom(shared) => Elevator::Custom(shared.clone()),
                }
            }

            fn clone_from(&mut self, source: &Elevator<Solo>) {
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

        impl PartialEq for Elevator<Solo> {
            fn eq(&self, other: &Elevator<Solo>) -> bool {
                match (self, other) {
                    (Elevator::None, Elevator::None) => true,
                    $((Elevator::$Kind(shared), Elevator::$Kind(other)) => shared == other,)*
                    (Elevator::Custom(shared), Elevator::Custom(other)) => shared == other,
                    _ => false,
                }
            }
        }

        impl Eq for Elevator<Solo> {}

        impl core::hash::Hash for Elevator<Solo> {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.hash(state),)*
                    Elevator::Custom(shared) => shared.hash(state),
                }
            }
        }

        /// A look for a merge under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum MergePath {
            /// None.
            #[default]
            Idle,
            $($Kind($module::MergePath),)*
            Custom(locked::MergePath),
        }

        impl MergePath {
            /// The next label, if it is the scheduler's own and not that of the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    MergePath::Idle => None,
                    $(MergePath::$Kind(path) => path.label(),)*
                    MergePath::Custom(path) => path.label(),
                }
            }
        }

        /// An insertion under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum InsertPath {
            /// None.
            #[default]
            Idle,
            $($Kind($module::InsertPath),)*
            Custom(locked::InsertPath),
        }

        impl InsertPath {
            /// The next label, if it is the scheduler's own and not that of the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    InsertPath::Idle => None,
                    $(InsertPath::$Kind(path) => path.label(),)*
                    InsertPath::Custom(path) => path.label(),
                }
            }

            /// What it holds at this label; nothing between two insertions.
            pub(crate) fn in_hand(self) -> Option<InsertInHand> {
                match self {
                    InsertPath::Idle => None,
                    $(InsertPath::$Kind(path) => Some(path.in_hand()),)*
                    InsertPath::Custom(path) => Some(path.in_hand()),
                }
            }
        }

        /// A dispatch call under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum DispatchPath {
            /// None.
            #[default]
            Idle,
            $($Kind($module::DispatchPath),)*
            Custom(locked::DispatchPath),
        }

        impl DispatchPath {
            /// The next label, if it is the scheduler's own and not that of the caller.
            #[inline]
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    DispatchPath::Idle => None,
                    $(DispatchPath::$Kind(path) => path.label(),)*
                    DispatchPath::Custom(path) => path.label(),
                }
            }

            /// The request that was picked, until the call returns it.
            pub(crate) fn picked(self) -> Option<RequestId> {
                match self {
                    DispatchPath::Idle => None,
                    $(DispatchPath::$Kind(path) => path.picked(),)*
                    DispatchPath::Custom(path) => path.picked(),
                }
            }
        }

        /// A hook under way.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub(crate) enum HookPath {
            /// None.
            #[default]
            Idle,
            $($Kind($module::HookPath),)*
            Custom(locked::HookPath),
        }

        impl HookPath {
            /// The next label, if it is the scheduler's own and not that of the caller.
            pub(crate) fn label(self) -> Option<Label> {
                match self {
                    HookPath::Idle => None,
                    $(HookPath::$Kind(path) => path.label(),)*
                    HookPath::Custom(path) => path.label(),
                }
            }
        }

        impl<E: Env> Elevator<E> {
            /// Idle, as chosen.
            pub fn new(settings: &SchedulerSettings, rules: &Rules) -> Elevator<E> {
                match settings {
                    SchedulerSettings::None => Elevator::None,
                    $(SchedulerSettings::$Kind(settings) => {
                        Elevator::$Kind($module::new(settings, rules))
                    })*
                    SchedulerSettings::Custom(custom) => Elevator::Custom(
                        Locked::with(custom.clone(), custom.facts()),
                    ),
                }
            }

            /// Locks of this number.
            pub(crate) fn lock_count(&self, number: u8) -> u32 {
                match self {
                    Elevator::None => 0,
                    $(Elevator::$Kind(shared) => shared.lock_count(number),)*
                    Elevator::Custom(shared) => shared.lock_count(number),
                }
            }

            /// Shows one of its locks.
            ///
            /// # Panics
            /// If there is no such lock.
            #[inline]
            pub(crate) fn visit_lock<V: LockVisit<E>>(
                &self,
                number: u8,
                at: usize,
                visit: V,
            ) -> V::Out {
                match self {
                    Elevator::None => panic!("lock {number} of no scheduler"),
                    $(Elevator::$Kind(shared) => shared.visit_lock(number, at, visit),)*
                    Elevator::Custom(shared) => shared.visit_lock(number, at, visit),
                }
            }

            /// Places where has_work looks, one a label: lists of different locks.
            #[inline]
            pub(crate) fn work_places(&self, rules: &Rules) -> u16 {
                match self {
                    Elevator::None => 0,
                    $(Elevator::$Kind(shared) => shared.work_places(rules),)*
                    Elevator::Custom(shared) => shared.work_places(rules),
                }
            }

            /// Has one of these places requests? One access.
            #[inline]
            pub(crate) fn has_work(&self, place: u16, cpu: &mut Cpu) -> bool {
                match self {
                    Elevator::None => false,
                    $(Elevator::$Kind(shared) => shared.has_work(place, cpu),)*
                    Elevator::Custom(shared) => shared.has_work(place, cpu),
                }
            }

            /// has_work() of whoever walks over many queues: the word alone.
            pub(crate) fn seems_to_have_work(&self, cpu: &mut Cpu) -> bool {
                self.work().is_some_and(|word| word.test(cpu))
            }

            /// limit_depth().
            pub(crate) fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => shared.limit_depth(wanted),)*
                    Elevator::Custom(shared) => shared.limit_depth(wanted),
                }
            }

            /// A look for a merge begins.
            pub(crate) fn start_merge(&self, q: &RequestQueue<E>) -> (MergePath, MergeStep) {
                match self {
                    Elevator::None => (MergePath::Idle, MergeStep::Done(Merged::No)),
                    $(Elevator::$Kind(shared) => {
                        let (path, step) = shared.start_merge(q);
                        (MergePath::$Kind(path), step)
                    })*
                    Elevator::Custom(shared) => {
                        let (path, step) = shared.start_merge(q);
                        (MergePath::Custom(path), step)
                    }
                }
            }

            /// Its next label.
            pub(crate) fn merge(
                &self,
                path: &mut MergePath,
                q: &RequestQueue<E>,
                bio: BioId,
                cpu: &mut Cpu,
            ) -> MergeStep {
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

            /// An insertion of a list begins.
            pub(crate) fn start_insert(
                &self,
                q: &RequestQueue<E>,
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

            /// Its next label.
            pub(crate) fn insert(
                &self,
                path: &mut InsertPath,
                q: &RequestQueue<E>,
                cpu: &mut Cpu,
            ) -> InsertStep {
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

            /// A dispatch call of a run of this hctx begins.
            #[inline]
            pub(crate) fn start_dispatch(
                &self,
                q: &RequestQueue<E>,
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

            /// Its next label.
            pub(crate) fn dispatch(
                &self,
                path: &mut DispatchPath,
                q: &RequestQueue<E>,
                cpu: &mut Cpu,
            ) -> DispatchStep {
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

            /// The hooks that it wants.
            #[inline]
            pub(crate) fn hooks(&self) -> Hooks {
                match self {
                    Elevator::None => Hooks::NONE,
                    $(Elevator::$Kind(_) => $module::FACTS.hooks,)*
                    Elevator::Custom(shared) => shared.facts.hooks,
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

            /// A hook begins.
            pub(crate) fn start_hook(&self) -> HookPath {
                match self {
                    Elevator::None => panic!("a hook of no scheduler"),
                    $(Elevator::$Kind(_) => HookPath::$Kind($module::HookPath::default()),)*
                    Elevator::Custom(_) => HookPath::Custom(locked::HookPath::default()),
                }
            }

            /// Its next step, the first of which is part of the label that begins it.
            pub(crate) fn hook(
                &self,
                path: &mut HookPath,
                hook: Hook,
                q: &RequestQueue<E>,
                cpu: &mut Cpu,
            ) -> HookStep {
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

            /// finish_request() has something to do for this request.
            #[inline]
            pub(crate) fn finishes(&self, rq: &Request) -> bool {
                match self {
                    Elevator::None => false,
                    $(Elevator::$Kind(shared) => rq.use_sched && shared.finishes(rq),)*
                    Elevator::Custom(shared) => rq.use_sched && shared.finishes(rq),
                }
            }

            /// finish_request() of a request with which its scheduler kept this: one access.
            pub(crate) fn finish(&self, elv_priv: [u32; 2], cpu: &mut Cpu) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.finish(elv_priv, cpu),)*
                    Elevator::Custom(shared) => shared.finish(elv_priv, cpu),
                }
            }

            /// Looks at the policy while nothing runs; nothing to look at where there is none.
            pub fn inspect<R>(&self, look: impl FnOnce(&dyn Scheduler) -> R) -> Option<R> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => Some(shared.inspect(look)),)*
                    Elevator::Custom(shared) => Some(shared.inspect(look)),
                }
            }

            /// Changes the policy as a recorded kernel has it, and notes whether it has work.
            ///
            /// # Panics
            /// Without a scheduler, or if somebody has the lock.
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

            /// The word of has_work, which lies beside the policy's lists; none without a policy.
            pub fn work(&self) -> Option<&E::Bit> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => Some(shared.work()),)*
                    Elevator::Custom(shared) => Some(shared.work()),
                }
            }

            /// Counts of finished requests by level, outside the policy's lock; none without one.
            pub fn completed(&self) -> Option<&[E::Count; LEVELS]> {
                match self {
                    Elevator::None => None,
                    $(Elevator::$Kind(shared) => Some(shared.completed()),)*
                    Elevator::Custom(shared) => Some(shared.completed()),
                }
            }

            /// Panics unless all that nobody works on agrees with each other and the pool: the
            /// policy's structures, and the words that say what its lists have.
            pub fn check(&self, pool: &RequestPool) {
                match self {
                    Elevator::None => {}
                    $(Elevator::$Kind(shared) => shared.check(pool),)*
                    Elevator::Custom(shared) => shared.check(pool),
                }
            }

            /// Requests that wait beside the policy's lists, not inserted yet.
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

schedulers! {
    /// mq-deadline.
    MqDeadline => mq_deadline [
        /// Insertion of a list by the January 2024 series.
        DdInsert = insert::At,
        /// Dispatch calls of the same.
        DdDispatch = dispatch::At,
    ],
    /// noop.
    Noop => noop,
}

/// All that kernels have or had besides `none`: whoever asks for one is told that it is not
/// modelled, not that there is none.
pub const OF_KERNELS: [&str; 6] = ["bfq", "kyber", "mq-deadline", "cfq", "deadline", "noop"];

impl SchedulerSettings {
    /// What reading the attribute `name` shows; nothing if there is none.
    pub fn show(&self, name: &str) -> Option<i64> {
        let mut shown = self.shown().into_iter();
        shown
            .find(|&(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

impl SchedulerKind {
    /// The name that queue/scheduler shows.
    pub const fn name(self) -> &'static str {
        match self.facts() {
            Some(facts) => facts.name,
            None => "none",
        }
    }

    /// The one of this name.
    pub fn by_name(name: &str) -> Option<SchedulerKind> {
        let mut all = SchedulerKind::ALL.iter().copied();
        all.find(|kind| kind.name() == name)
    }

    /// elevator_get_default(): where one hctx or one tag map serves the whole device, the one that
    /// asks for that; else none.
    pub fn default_for(one_queue: bool) -> SchedulerKind {
        let wants = |kind: &SchedulerKind| kind.facts().is_some_and(|f| f.default_for_one_queue);
        let mut all = SchedulerKind::ALL.iter().copied();
        let found = all.find(wants).filter(|_| one_queue);
        found.unwrap_or(SchedulerKind::None)
    }
}

impl<E: Env> Elevator<E> {
    /// No lock of it is taken.
    pub fn is_free(&self) -> bool {
        struct IsFree;
        impl<E: Env> LockVisit<E> for IsFree {
            type Out = bool;
            fn visit<T: Debug + 'static>(self, lock: &E::Lock<T>) -> bool {
                lock.is_free()
            }
        }
        (0..ELEVATOR_LOCKS_MAX as u8).all(|number| {
            (0..self.lock_count(number)).all(|at| self.visit_lock(number, at as usize, IsFree))
        })
    }
}
