//! Real threads: loom's words under `--cfg loom`, those of `std` otherwise.
//!
//! The only file that names memory orders. Pool and guarded data sit in `std` mutexes that loom
//! does not see; all ordering comes from words and lock ownership.

use core::fmt;
use std::sync::{Mutex, MutexGuard};

#[cfg(loom)]
use loom::sync as words;
#[cfg(not(loom))]
use std::sync as words;

use words::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use words::atomic::{AtomicBool, AtomicI32, AtomicU64, fence};

use super::cpu::Cpu;
use super::solo::{first_zero, run_at};
use super::{Bit, Count, Env, Hint, Lock, Slab, Spot, Toucher, Word};
use crate::request::CpuId;

/// The environment of real threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Threads;

impl Bit for AtomicBool {
    fn new(value: bool) -> Self {
        AtomicBool::new(value)
    }
    fn test(&self, _cpu: &mut Cpu) -> bool {
        self.load(Relaxed)
    }
    fn set(&self, _cpu: &mut Cpu) {
        self.store(true, Relaxed);
    }
    fn clear(&self, _cpu: &mut Cpu) {
        self.store(false, Relaxed);
    }
    fn test_and_set(&self, _cpu: &mut Cpu) -> bool {
        self.compare_exchange(false, true, SeqCst, Relaxed).is_err()
    }
    fn test_and_clear(&self, _cpu: &mut Cpu) -> bool {
        self.compare_exchange(true, false, SeqCst, Relaxed).is_ok()
    }
    fn clear_unlock(&self, _cpu: &mut Cpu) {
        self.store(false, Release);
    }
    fn mirror(&self, _cpu: &mut Cpu, value: bool) {
        self.store(value, Relaxed);
    }
    fn peek(&self) -> bool {
        self.load(Relaxed)
    }
}

impl Count for AtomicI32 {
    fn new(value: i32) -> Self {
        AtomicI32::new(value)
    }
    fn read(&self, _cpu: &mut Cpu) -> i32 {
        self.load(Relaxed)
    }
    fn write(&self, _cpu: &mut Cpu, value: i32) {
        self.store(value, Relaxed);
    }
    fn add(&self, _cpu: &mut Cpu, by: i32) {
        self.fetch_add(by, Relaxed);
    }
    fn add_return(&self, _cpu: &mut Cpu, by: i32) -> i32 {
        self.fetch_add(by, SeqCst) + by
    }
    fn compare_exchange(&self, _cpu: &mut Cpu, old: i32, new: i32) -> bool {
        AtomicI32::compare_exchange(self, old, new, SeqCst, Relaxed).is_ok()
    }
    fn peek(&self) -> i32 {
        self.load(Relaxed)
    }
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }
    fn load(&self, _cpu: &mut Cpu) -> u64 {
        AtomicU64::load(self, Relaxed)
    }
    fn fetch_or(&self, _cpu: &mut Cpu, bits: u64) -> u64 {
        AtomicU64::fetch_or(self, bits, Relaxed)
    }
    fn fetch_and(&self, _cpu: &mut Cpu, mask: u64) -> u64 {
        AtomicU64::fetch_and(self, mask, Relaxed)
    }
    // A failed one must not store (seam: loom would let the store be read back).
    fn test_and_set(&self, _cpu: &mut Cpu, mask: u64) -> bool {
        let change = |word: u64| (word & mask == 0).then_some(word | mask);
        self.fetch_update(SeqCst, Relaxed, change).is_err()
    }
    fn test_and_clear(&self, _cpu: &mut Cpu, mask: u64) -> bool {
        let change = |word: u64| (word & mask != 0).then_some(word & !mask);
        self.fetch_update(SeqCst, Relaxed, change).is_ok()
    }
    fn swap(&self, _cpu: &mut Cpu, value: u64) -> u64 {
        AtomicU64::swap(self, value, SeqCst)
    }
    fn acquire_zero(&self, _cpu: &mut Cpu, start: u32, candidates: u64, wrap: bool) -> Option<u32> {
        loop {
            let word = AtomicU64::load(self, Relaxed);
            let bit = first_zero(word, start, candidates, wrap)?;
            if AtomicU64::fetch_or(self, 1 << bit, Acquire) & (1 << bit) == 0 {
                return Some(bit);
            }
        }
    }
    fn acquire_run(&self, _cpu: &mut Cpu, count: u32, depth: u32) -> Option<(u32, u64)> {
        let seen = AtomicU64::load(self, Relaxed);
        let (first, run) = run_at(seen, count, depth)?;
        let before = AtomicU64::fetch_or(self, run, SeqCst);
        let got = (run & !before) >> first;
        (got != 0).then_some((first, got))
    }
    fn peek(&self) -> u64 {
        AtomicU64::load(self, Relaxed)
    }
}

/// A hint that loom does not follow: it may be stale, and any value is right.
#[derive(Debug)]
pub struct ThreadHint(std::sync::atomic::AtomicU32);

impl Hint for ThreadHint {
    fn new(value: u32) -> Self {
        ThreadHint(std::sync::atomic::AtomicU32::new(value))
    }
    fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
    fn put(&self, value: u32) {
        self.0.store(value, Relaxed);
    }
}

/// Nothing: cache lines of real threads are the machine's own.
#[derive(Debug)]
pub struct ThreadSpot;

impl Spot for ThreadSpot {
    fn new() -> Self {
        ThreadSpot
    }
    fn read_among(&self, _: usize, _: &mut Cpu) {}
    fn write(&self, _: &mut Cpu) {}
}

/// Ownership as a mutex with a condition; the guarded value beside it.
pub struct ThreadLock<T> {
    owner: words::Mutex<Option<u32>>,
    freed: words::Condvar,
    value: Mutex<T>,
}

impl<T: fmt::Debug> fmt::Debug for ThreadLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

const UNPOISONED: &str = "no label panics while it holds a guard and the test goes on";

impl<T: fmt::Debug + 'static> Lock<T> for ThreadLock<T> {
    type Held<'a> = MutexGuard<'a, T>;

    fn new(value: T) -> Self {
        ThreadLock {
            owner: words::Mutex::new(None),
            freed: words::Condvar::new(),
            value: Mutex::new(value),
        }
    }

    fn apart(value: T) -> Self {
        Self::new(value)
    }

    fn is_free(&self) -> bool {
        self.owner.lock().expect(UNPOISONED).is_none()
    }

    fn acquire(&self, cpu: &mut Cpu) {
        let mut owner = self.owner.lock().expect(UNPOISONED);
        while owner.is_some() {
            owner = self.freed.wait(owner).expect(UNPOISONED);
        }
        *owner = Some(cpu.owner);
        cpu.locks_held += 1;
    }

    fn try_acquire(&self, cpu: &mut Cpu) -> bool {
        let mut owner = self.owner.lock().expect(UNPOISONED);
        if owner.is_some() {
            return false;
        }
        *owner = Some(cpu.owner);
        cpu.locks_held += 1;
        true
    }

    fn try_in_vain(&self, _cpu: &mut Cpu) {}

    fn held<'a>(&'a self, cpu: &'a mut Cpu) -> MutexGuard<'a, T> {
        assert!(cpu.locks_held > 0, "guarded data used without its lock");
        self.value.lock().expect(UNPOISONED)
    }

    fn release(&self, cpu: &mut Cpu) {
        let mut owner = self.owner.lock().expect(UNPOISONED);
        assert_eq!(*owner, Some(cpu.owner), "lock released by a stranger");
        *owner = None;
        cpu.locks_held -= 1;
        self.freed.notify_one();
    }

    fn glance(&self, _cpu: &mut Cpu) {}

    fn inspect<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.lock().expect(UNPOISONED))
    }

    fn adjust<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.value.lock().expect(UNPOISONED))
    }
}

/// A slab in a mutex that loom does not see.
#[derive(Debug)]
pub struct ThreadSlab<T>(Mutex<T>);

impl<T: Toucher + fmt::Debug + 'static> Slab<T> for ThreadSlab<T> {
    type Held<'a> = MutexGuard<'a, T>;

    fn new(value: T) -> Self {
        ThreadSlab(Mutex::new(value))
    }

    fn held(&self, toucher: CpuId) -> MutexGuard<'_, T> {
        let mut held = self.0.lock().expect(UNPOISONED);
        held.touched_by(toucher);
        held
    }
}

impl Env for Threads {
    type Bit = AtomicBool;
    type Count = AtomicI32;
    type Word = AtomicU64;
    type Hint = ThreadHint;
    type Spot = ThreadSpot;
    type Lock<T: fmt::Debug + 'static> = ThreadLock<T>;
    type Slab<T: Toucher + fmt::Debug + 'static> = ThreadSlab<T>;

    /// smp_mb().
    fn mb(_cpu: &mut Cpu) {
        fence(SeqCst);
    }
}
