//! The scheduler of a queue with all state that CPUs share, and its calls without labels; those
//! with labels are in `path.rs`.
//!
//! Kernel: block/elevator.h struct elevator_mq_ops (v6.1, v6.12).

use super::Merged;
use super::attribute::StoreError;
use super::custom::Custom;
use super::hook::{After, Hooks};
use super::info::ELEVATOR_LOCKS_MAX;
use super::kind::SchedulerSettings;
use super::locked::{self, Inserted, Locked, Log};
use super::scheduler::{InsertAt, LEVELS, Now, Override, Scheduler, Wanted};
use super::series::Series;
use super::shape::QueueShape;
use crate::call::{Hook, Token};
use crate::env::{Count, Cpu, SpinLock};
use crate::list::QueueList;
use crate::queue::{IrqClass, LockId, QueueSettings, RequestQueue};
use crate::request::{BioId, HctxId, QueueId, Request, RequestId, RequestPool};
use crate::rules::Rules;
use crate::step::Cx;
use crate::time::Jiffies;

/// Generates the closed set, and `each!`, which has an arm for each scheduler.
macro_rules! elevators {
    (($d:tt) $($(#[$doc:meta])* $Kind:ident => $module:ident $([$($labels:tt)*])?,)*) => {
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
                        Locked::with(custom.of_queue(queue, shape), custom.info()),
                    ),
                }
            }
        }

        /// Calls a function for the shared state of any scheduler.
        macro_rules! each {
            ($d elevator:expr, $d shared:ident => $d does:expr) => {
                match $d elevator {
                    Elevator::None => {
                        let $d shared = &NoScheduler;
                        $d does
                    }
                    $(Elevator::$Kind($d shared) => $d does,)*
                    Elevator::Custom($d shared) => $d does,
                }
            };
        }
    };
}

super::schedulers!(elevators ($));

/// The shared state of `none`: all its calls are the defaults.
struct NoScheduler;

impl Ops for NoScheduler {}

/// Generates the interface of shared states with its defaults, and the calls of [`Elevator`]. Each
/// takes `&self` first.
macro_rules! ops {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $(<$R:ident>)? ($($arg:ident: $type:ty),* $(,)?) $(-> $out:ty)?
            $default:block
    )*) => {
        /// What `Elevator` asks of the shared state of any scheduler (struct elevator_mq_ops). The
        /// defaults are those of a scheduler that has no such thing.
        #[allow(unused_variables, reason = "defaults need few")]
        pub(crate) trait Ops {
            $(
                $(#[$meta])*
                fn $name $(<$R>)? (&self, $($arg: $type),*) $(-> $out)? $default
            )*
        }

        impl Elevator {
            $(
                $(#[$meta])*
                $vis fn $name $(<$R>)? (&self, $($arg: $type),*) $(-> $out)? {
                    each!(self, shared => Ops::$name(shared, $($arg),*))
                }
            )*
        }
    };
}

ops! {
    pub(crate) fn lock_count(number: u8) -> u32 {
        0
    }

    /// A lock of the scheduler.
    ///
    /// # Panics
    /// If there is no such lock.
    #[inline]
    pub(crate) fn spin_lock(number: u8, at: usize) -> &SpinLock {
        panic!("the scheduler has no lock {number}")
    }

    /// Places that has_work of an hctx reads, one per label: lists of different locks.
    #[inline]
    pub(crate) fn work_places(hctx: HctxId, rules: &Rules) -> u16 {
        0
    }

    /// True if one of these places has requests. One access.
    #[inline]
    pub(crate) fn sees_work(hctx: HctxId, place: u16, cpu: &mut Cpu) -> bool {
        false
    }

    /// has_work() of an hctx for callers that visit many: all places in one access.
    pub(crate) fn seems_to_have_work(hctx: HctxId, cpu: &mut Cpu) -> bool {
        false
    }

    /// has_work of an hctx while nothing runs; no access of the modelled machine.
    pub fn has_queued(hctx: HctxId) -> bool {
        false
    }

    /// limit_depth().
    pub(crate) fn limit_depth(q: &RequestQueue, wanted: Wanted, cpu: &mut Cpu) -> Option<u32> {
        None
    }

    /// The lock that limit_depth() takes for this allocation, if any.
    #[inline]
    pub(crate) fn limit_depth_lock(q: &RequestQueue, wanted: Wanted) -> Option<LockId> {
        None
    }

    #[inline]
    pub(crate) fn hooks() -> Hooks {
        Hooks::NONE
    }

    /// prepare_request().
    pub(crate) fn prepare(rq: &mut Request) {}

    /// True if the hooks for the end and the return of requests look at this one.
    pub(crate) fn ends(rq: &Request) -> bool {
        true
    }

    /// True if finish_request() has work for this request.
    #[inline]
    pub(crate) fn finishes(rq: &Request) -> bool {
        false
    }

    /// finish_request() of a request with this `elv_priv`: one access.
    pub(crate) fn finish(elv_priv: [u32; 2], cpu: &mut Cpu) {}

    /// A write to an attribute in sysfs while requests may be queued.
    pub fn store(
        q: &RequestQueue,
        name: &str,
        text: &str,
        cpu: &mut Cpu,
    ) -> Result<(), StoreError> {
        Err(StoreError::UnknownAttribute {
            scheduler: "none",
            name: name.to_owned(),
            known: Vec::new(),
        })
    }

    /// Forces a decision of a recorded kernel.
    ///
    /// # Panics
    /// Without a scheduler, or if one of its locks is taken.
    pub fn apply_override(q: &RequestQueue, with: Override, cpu: &mut Cpu) {
        panic!("no scheduler to be changed")
    }

    /// The clocks when a recorded kernel wrote the next lines of the scheduler's log
    /// ([`Scheduler::lines_at`](super::Scheduler::lines_at)).
    pub fn lines_at(clocks: &[Now], cpu: &mut Cpu) {}

    /// queue/rotational has been written.
    pub fn rotates(rotational: bool, cpu: &mut Cpu) {}

    /// The queue as text, for comparison with a kernel's; empty without a scheduler.
    pub fn show(q: &RequestQueue) -> String {
        String::new()
    }

    /// Counts of finished requests by level, outside the policy's lock.
    pub fn completed() -> Option<&[Count; LEVELS]> {
        None
    }

    /// Panics unless all state that no path works on is consistent: the policy's structures, the
    /// pool, and the words that mirror lists.
    pub fn check(pool: &RequestPool) {}

    /// Requests that wait outside the policy's lists, not inserted yet.
    pub fn beside() -> Vec<QueueList> {
        Vec::new()
    }

    /// Inspects the policy while nothing runs; none if there is no policy, or if several locks
    /// guard parts of it.
    pub fn inspect<R>(look: impl FnOnce(&dyn Scheduler) -> R) -> Option<R> {
        None
    }

    /// Changes the policy under its one lock from outside, and updates the word that has_work
    /// reads.
    ///
    /// # Panics
    /// Without such a policy, or if the lock is taken.
    pub fn revise<R>(cpu: &mut Cpu, change: impl FnOnce(&mut dyn Scheduler) -> R) -> R {
        of_one_lock()
    }

    // What follows is of schedulers with one lock, whose policy is called under it.

    /// The lock.
    #[inline]
    pub(crate) fn lock(q: &RequestQueue) -> LockId {
        of_one_lock()
    }

    /// A request needs a token to be dispatched.
    #[inline]
    pub(crate) fn has_tokens() -> bool {
        of_one_lock()
    }

    /// The next token to get, besides those that were refused.
    pub(crate) fn wants_token(refused: u8, cx: &mut Cx<'_>) -> Option<u8> {
        of_one_lock()
    }

    /// The next request, with this token.
    pub(crate) fn pick(cx: &mut Cx<'_>, hctx: HctxId, entered: Jiffies, token: Option<Token>)
        -> Option<RequestId>
    {
        of_one_lock()
    }

    /// Inserts a list in order, up to a merge whose request the rules free at once. Absorbed
    /// requests go to `absorbed`.
    pub(crate) fn insert_list(
        cx: &mut Cx<'_>,
        list: &mut QueueList,
        at: InsertAt,
        absorbed: &mut QueueList,
    ) -> Inserted {
        of_one_lock()
    }

    /// The search for a merge, up to the release of the lock.
    pub(crate) fn merge(cx: &mut Cx<'_>, bio: BioId) -> Merged {
        of_one_lock()
    }

    /// A hook, up to the release of the lock.
    pub(crate) fn hook(cx: &mut Cx<'_>, hook: Hook) -> After {
        of_one_lock()
    }

    /// After a hook: the next hctx that it wants run.
    pub(crate) fn take_run_of() -> Option<HctxId> {
        None
    }

    /// limit_depth() where it takes the lock, up to the release.
    pub(crate) fn limit_depth_locked(q: &RequestQueue, wanted: Wanted, cpu: &mut Cpu)
        -> Option<u32>
    {
        of_one_lock()
    }

    /// Calls the policy of a single-queue scheduler.
    pub(crate) fn call<R>(
        q: &RequestQueue,
        cpu: &mut Cpu,
        call: impl FnOnce(&mut dyn Scheduler, &mut RequestPool, Now) -> R,
    ) -> R {
        of_one_lock()
    }

    /// Messages of the policy in such a call, to be recorded between the records of the block
    /// layer.
    pub(crate) fn log(q: &RequestQueue, cpu: &mut Cpu) -> Log {
        of_one_lock()
    }

    /// Completes a section before its release: the word that has_work reads, messages, readings,
    /// the charge, and a timer.
    pub(crate) fn settle(q: &RequestQueue, cpu: &mut Cpu) {
        of_one_lock()
    }

    /// The words and lists of the January 2024 series.
    #[inline]
    pub(crate) fn series() -> &Series {
        of_one_lock()
    }
}

fn of_one_lock() -> ! {
    panic!("no scheduler, or none with one lock")
}

/// q->queue_lock of a single-queue one: the lock of its scheduler, which disables interrupts.
#[inline]
pub(crate) fn queue_lock(queue: QueueId) -> LockId {
    LockId::of_elevator(queue, locked::LOCK, IrqClass::IrqSave, 0)
}

impl Elevator {
    /// [`Elevator::sees_work`], as it is or as a replayed kernel saw it.
    #[inline]
    pub(crate) fn has_work(&self, hctx: HctxId, place: u16, cpu: &mut Cpu) -> bool {
        let found = self.sees_work(hctx, place, cpu);
        cpu.replayed_has_work.unwrap_or(found)
    }

    /// Releases the lock of a scheduler with one.
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
