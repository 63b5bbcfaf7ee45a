//! A scheduler that a program brings, with one lock.
//!
//! It costs one indirect call more than the built-in ones; nothing is allocated per I/O unless the
//! scheduler does so itself. `crates/cli/examples/own-scheduler.rs` has a complete one.

#![warn(missing_docs)]

use crate::call::Token;
use core::hash::{Hash, Hasher};

use super::attribute::{StoreError, Value};
use super::hook::{After, TimerAsk};
use super::info::SchedulerInfo;
use super::scheduler::{
    BioMerge, Charge, DispatchTime, InsertAt, Insertion, LEVELS, Now, Scheduler, Wanted,
};
use crate::env::Reading;
use crate::merge::Merging;
use crate::request::{BioId, IoContextId, Request, RequestId, RequestPool, Sector, Sectors};
use crate::time::SimTime;

/// Further methods of a program's own scheduler.
pub trait CustomScheduler: Scheduler + Send + Sync {
    /// Its properties. Its one lock is number 0 of `locks`.
    fn info(&self) -> &'static SchedulerInfo;

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

impl Scheduler for Custom {
    fn merge_bio(
        &mut self,
        pool: &mut RequestPool,
        bio: BioId,
        now: Now,
        merging: Merging<'_>,
    ) -> BioMerge {
        self.0.merge_bio(pool, bio, now, merging)
    }

    fn insert(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        at: InsertAt,
        now: Now,
        merging: Merging<'_>,
    ) -> Insertion {
        self.0.insert(pool, rq, at, now, merging)
    }

    fn dispatch(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        completed: [u32; LEVELS],
    ) -> Option<RequestId> {
        self.0.dispatch(pool, now, completed)
    }

    fn wants_token(&mut self, pool: &RequestPool, refused: u8) -> Option<u8> {
        self.0.wants_token(pool, refused)
    }

    fn dispatch_with(
        &mut self,
        pool: &mut RequestPool,
        now: DispatchTime,
        token: Token,
    ) -> RequestId {
        self.0.dispatch_with(pool, now, token)
    }

    fn has_work(&self) -> bool {
        self.0.has_work()
    }

    fn prepare(&self, rq: &mut Request) {
        self.0.prepare(rq);
    }

    fn completed(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.0.completed(pool, rq, now)
    }

    fn requeued(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.0.requeued(pool, rq, now)
    }

    fn finished(&mut self, pool: &mut RequestPool, rq: RequestId, now: Now) -> After {
        self.0.finished(pool, rq, now)
    }

    fn exits(&mut self, pool: &mut RequestPool, io_context: IoContextId, now: Now) -> After {
        self.0.exits(pool, io_context, now)
    }

    fn timer(&mut self, pool: &mut RequestPool, timer: u8, now: Now) -> After {
        self.0.timer(pool, timer, now)
    }

    fn take_timer(&mut self) -> Option<TimerAsk> {
        self.0.take_timer()
    }

    fn limit_depth(&self, wanted: Wanted) -> Option<u32> {
        self.0.limit_depth(wanted)
    }

    fn limits_under_lock(&self, wanted: Wanted) -> bool {
        self.0.limits_under_lock(wanted)
    }

    fn limit_depth_locked(&mut self, wanted: Wanted, now: Now) -> Option<u32> {
        self.0.limit_depth_locked(wanted, now)
    }

    fn depth_updated(&mut self, old: u32) {
        self.0.depth_updated(old);
    }

    fn store(&mut self, name: &str, text: &str, now: Now) -> Result<(), StoreError> {
        self.0.store(name, text, now)
    }

    fn shown(&self) -> Vec<(&'static str, Value)> {
        self.0.shown()
    }

    fn lines_at(&mut self, times: &[SimTime]) {
        self.0.lines_at(times);
    }

    fn rotates(&mut self, rotational: bool) {
        self.0.rotates(rotational);
    }

    fn take_log(&mut self, each: &mut dyn FnMut(&str)) {
        self.0.take_log(each);
    }

    fn take_readings(&mut self, each: &mut dyn FnMut(Reading)) {
        self.0.take_readings(each);
    }

    fn take_charge(&mut self) -> Charge {
        self.0.take_charge()
    }

    fn check(&self, pool: &RequestPool) {
        self.0.check(pool);
    }

    fn show(&self, pool: &RequestPool) -> String {
        self.0.show(pool)
    }

    fn force_dispatch(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.0.force_dispatch(pool, rq);
    }

    fn force_remove(&mut self, pool: &mut RequestPool, rq: RequestId) {
        self.0.force_remove(pool, rq);
    }

    fn force_resize(
        &mut self,
        pool: &mut RequestPool,
        rq: RequestId,
        sector: Sector,
        sectors: Sectors,
    ) {
        self.0.force_resize(pool, rq, sector, sectors);
    }
}
