//! A scheduler that a program brings, with one lock.
//!
//! It costs one indirect call more than the built-in ones; nothing is allocated per I/O unless the
//! scheduler does so itself. `crates/cli/examples/own-scheduler.rs` has a complete one.

#![warn(missing_docs)]

use crate::call::Token;
use core::fmt;
use core::hash::{Hash, Hasher};

use super::attribute::{StoreError, Value};
use super::hook::{After, TimerAsk};
use super::info::SchedulerInfo;
use super::scheduler::{
    BioMerge, CalledOn, Charge, DispatchTime, InsertAt, Insertion, LEVELS, MayQueue, Now,
    Scheduler, Wanted,
};
use super::shape::QueueShape;
use crate::env::Reading;
use crate::list::QueueList;
use crate::merge::Merging;
use crate::queue::QueueSettings;
use crate::request::{
    BioId, HctxId, IoContextId, Request, RequestId, RequestPool, Sector, Sectors,
};

/// Further methods of a program's own scheduler.
pub trait CustomScheduler: Scheduler + Send + Sync {
    /// Its properties. Its one lock is number 0 of `locks`.
    fn info(&self) -> &'static SchedulerInfo;

    /// It will serve this queue: called once, before any other call. Default: nothing.
    fn begin(&mut self, _queue: &QueueSettings, _shape: &QueueShape) {}

    /// A copy in the same state: a queue is copied by the explorer, and made of settings by the
    /// simulator.
    fn copy(&self) -> Box<dyn CustomScheduler>;

    /// Hashes everything that a later decision depends on, for the explorer.
    fn digest(&self, state: &mut dyn Hasher);
}

/// A program's own scheduler, as a value.
#[derive(Debug)]
pub struct Custom(Box<dyn CustomScheduler>);

impl Custom {
    /// This one.
    pub fn new(scheduler: impl CustomScheduler + 'static) -> Custom {
        Custom(Box::new(scheduler))
    }

    /// The same for a new queue.
    pub(super) fn of_queue(&self, queue: &QueueSettings, shape: &QueueShape) -> Custom {
        let mut own = self.clone();
        own.0.begin(queue, shape);
        own
    }

    /// Its properties.
    pub fn info(&self) -> &'static SchedulerInfo {
        self.0.info()
    }

    fn hashed(&self) -> u64 {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        self.0.digest(&mut hasher);
        hasher.0
    }
}

/// FNV-1a: the same number on every machine.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Clone for Custom {
    fn clone(&self) -> Custom {
        Custom(self.0.copy())
    }
}

/// By name and digest: all that is known of it.
impl PartialEq for Custom {
    fn eq(&self, other: &Custom) -> bool {
        self.info() == other.info() && self.hashed() == other.hashed()
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.digest(state);
    }
}

/// Why a program's own scheduler cannot go on: the payload of the unwinding that ends a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Scheduler, call and reason, as one line.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Generates [`Scheduler`] for [`Custom`]: each method is that of the program's scheduler. Those in
/// `mut` take `&mut self`, those in `ref` `&self`.
macro_rules! forward {
    (
        mut { $(fn $changes:ident($($a:ident: $A:ty),*) $(-> $B:ty)?;)* }
        ref { $(fn $reads:ident($($c:ident: $C:ty),*) $(-> $D:ty)?;)* }
    ) => {
        impl Scheduler for Custom {
            $(fn $changes(&mut self, $($a: $A),*) $(-> $B)? {
                self.0.$changes($($a),*)
            })*
            $(fn $reads(&self, $($c: $C),*) $(-> $D)? {
                self.0.$reads($($c),*)
            })*
        }
    };
}

forward! {
    mut {
        fn called_on(on: CalledOn);
        fn merge_bio(pool: &mut RequestPool, bio: BioId, now: Now, merging: Merging<'_>)
            -> BioMerge;
        fn insert(
            pool: &mut RequestPool,
            rq: RequestId,
            at: InsertAt,
            now: Now,
            merging: Merging<'_>
        ) -> Insertion;
        fn dispatch(
            pool: &mut RequestPool,
            now: DispatchTime,
            completed: [u32; LEVELS]
        ) -> Option<RequestId>;
        fn wants_token(pool: &RequestPool, refused: u8) -> Option<u8>;
        fn dispatch_with(pool: &mut RequestPool, now: DispatchTime, token: Token) -> RequestId;
        fn may_queue(wanted: Wanted, now: Now) -> MayQueue;
        fn set_request(pool: &mut RequestPool, rq: RequestId, now: Now) -> After;
        fn activated(pool: &mut RequestPool, rq: RequestId, now: Now);
        fn take_run() -> bool;
        fn ran();
        fn take_handed(pool: &mut RequestPool) -> QueueList;
        fn drain(pool: &mut RequestPool, now: Now) -> QueueList;
        fn completed(pool: &mut RequestPool, rq: RequestId, now: Now) -> After;
        fn requeued(pool: &mut RequestPool, rq: RequestId, now: Now) -> After;
        fn finished(pool: &mut RequestPool, rq: RequestId, now: Now) -> After;
        fn take_run_of() -> Option<HctxId>;
        fn exits(pool: &mut RequestPool, io_context: IoContextId, now: Now) -> After;
        fn timer(pool: &mut RequestPool, timer: u8, now: Now) -> After;
        fn take_timer() -> Option<TimerAsk>;
        fn limit_depth_locked(wanted: Wanted, now: Now) -> Option<u32>;
        fn depth_updated(old: u32, new: u32);
        fn store(name: &str, text: &str, now: Now) -> Result<(), StoreError>;
        fn lines_at(clocks: &[Now]);
        fn rotates(rotational: bool);
        fn take_log(each: &mut dyn FnMut(&str));
        fn take_readings(each: &mut dyn FnMut(Reading));
        fn take_charge() -> Charge;
        fn force_dispatch(pool: &mut RequestPool, rq: RequestId);
        fn force_remove(pool: &mut RequestPool, rq: RequestId);
        fn force_resize(pool: &mut RequestPool, rq: RequestId, sector: Sector, sectors: Sectors);
    }
    ref {
        fn has_work() -> bool;
        fn has_work_of(hctx: HctxId) -> bool;
        fn prepare(rq: &mut Request);
        fn ends(rq: &Request) -> bool;
        fn limit_depth(wanted: Wanted) -> Option<u32>;
        fn limit_depth_message(wanted: Wanted) -> Option<String>;
        fn limits_under_lock(wanted: Wanted) -> bool;
        fn shown() -> Vec<(&'static str, Value)>;
        fn explanations(each: &mut dyn FnMut(&str));
        fn check(pool: &RequestPool);
        fn show(pool: &RequestPool) -> String;
    }
}
