//! Cells for threads of loom, whose words show every value that weak memory allows.
//!
//! The same types as in `solo.rs`, which documents each operation. The only file that names memory
//! orders. Pool and guarded data are in `std` mutexes that loom does not see; all ordering comes
//! from words and lock ownership.

use core::cell::Cell;
use core::ops::Deref;
use std::sync::{Mutex, MutexGuard};

use loom::sync as words;
use words::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use words::atomic::{AtomicBool, AtomicI32, AtomicU64, fence};

use super::cpu::Cpu;
use super::{Toucher, first_zero, run_at};
use crate::request::CpuId;

#[derive(Debug)]
pub struct Bit(AtomicBool);

impl Bit {
    pub fn new(value: bool) -> Self {
        Bit(AtomicBool::new(value))
    }
    pub fn test(&self, _cpu: &mut Cpu) -> bool {
        self.0.load(Relaxed)
    }
    pub fn set(&self, _cpu: &mut Cpu) {
        self.0.store(true, Relaxed);
    }
    pub fn clear(&self, _cpu: &mut Cpu) {
        self.0.store(false, Relaxed);
    }
    pub fn test_and_set(&self, _cpu: &mut Cpu) -> bool {
        self.0
            .compare_exchange(false, true, SeqCst, Relaxed)
            .is_err()
    }
    pub fn test_and_clear(&self, _cpu: &mut Cpu) -> bool {
        self.0
            .compare_exchange(true, false, SeqCst, Relaxed)
            .is_ok()
    }
    pub fn clear_unlock(&self, _cpu: &mut Cpu) {
        self.0.store(false, Release);
    }
    pub fn mirror(&self, _cpu: &mut Cpu, value: bool) {
        self.0.store(value, Relaxed);
    }
    pub fn peek(&self) -> bool {
        self.0.load(Relaxed)
    }
}

#[derive(Debug)]
pub struct Count(AtomicI32);

impl Count {
    pub fn new(value: i32) -> Self {
        Count(AtomicI32::new(value))
    }
    pub fn read(&self, _cpu: &mut Cpu) -> i32 {
        self.0.load(Relaxed)
    }
    pub fn write(&self, _cpu: &mut Cpu, value: i32) {
        self.0.store(value, Relaxed);
    }
    pub fn add(&self, _cpu: &mut Cpu, by: i32) {
        self.0.fetch_add(by, Relaxed);
    }
    pub fn add_return(&self, _cpu: &mut Cpu, by: i32) -> i32 {
        self.0.fetch_add(by, SeqCst) + by
    }
    pub fn compare_exchange(&self, _cpu: &mut Cpu, old: i32, new: i32) -> bool {
        self.0.compare_exchange(old, new, SeqCst, Relaxed).is_ok()
    }
    pub fn peek(&self) -> i32 {
        self.0.load(Relaxed)
    }
}

#[derive(Debug)]
pub struct Word(AtomicU64);

impl Word {
    pub fn new(value: u64) -> Self {
        Word(AtomicU64::new(value))
    }
    pub fn load(&self, _cpu: &mut Cpu) -> u64 {
        self.0.load(Relaxed)
    }
    pub fn fetch_or(&self, _cpu: &mut Cpu, bits: u64) -> u64 {
        self.0.fetch_or(bits, Relaxed)
    }
    pub fn fetch_and(&self, _cpu: &mut Cpu, mask: u64) -> u64 {
        self.0.fetch_and(mask, Relaxed)
    }
    // A failed one must not store (seam: loom would let the store be read back).
    pub fn test_and_set(&self, _cpu: &mut Cpu, mask: u64) -> bool {
        let change = |word: u64| (word & mask == 0).then_some(word | mask);
        self.0.fetch_update(SeqCst, Relaxed, change).is_err()
    }
    pub fn test_and_clear(&self, _cpu: &mut Cpu, mask: u64) -> bool {
        let change = |word: u64| (word & mask != 0).then_some(word & !mask);
        self.0.fetch_update(SeqCst, Relaxed, change).is_ok()
    }
    pub fn swap(&self, _cpu: &mut Cpu, value: u64) -> u64 {
        self.0.swap(value, SeqCst)
    }
    pub fn acquire_zero(
        &self,
        _cpu: &mut Cpu,
        start: u32,
        candidates: u64,
        wrap: bool,
    ) -> Option<u32> {
        loop {
            let word = self.0.load(Relaxed);
            let bit = first_zero(word, start, candidates, wrap)?;
            if self.0.fetch_or(1 << bit, Acquire) & (1 << bit) == 0 {
                return Some(bit);
            }
        }
    }
    pub fn acquire_run(&self, _cpu: &mut Cpu, count: u32, depth: u32) -> Option<(u32, u64)> {
        let seen = self.0.load(Relaxed);
        let (first, run) = run_at(seen, count, depth)?;
        let before = self.0.fetch_or(run, SeqCst);
        let got = (run & !before) >> first;
        (got != 0).then_some((first, got))
    }
    pub fn peek(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A hint that loom does not track: it may be stale, and any value is right.
#[derive(Debug)]
pub struct Hint(std::sync::atomic::AtomicU32);

impl Hint {
    pub fn new(value: u32) -> Self {
        Hint(std::sync::atomic::AtomicU32::new(value))
    }
    pub fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
    pub fn put(&self, value: u32) {
        self.0.store(value, Relaxed);
    }
}

/// Empty: cache lines of real threads are the machine's own.
#[derive(Debug, Default)]
pub struct CacheLine(());

impl CacheLine {
    pub fn read_among(&self, _: usize, _: &mut Cpu) {}
    pub fn write(&self, _: &mut Cpu) {}
}

/// Ownership as a mutex with a condition.
#[derive(Debug)]
pub struct SpinLock {
    owner: words::Mutex<Option<u32>>,
    freed: words::Condvar,
}

const UNPOISONED: &str = "no label panics while it holds a guard and the test goes on";

impl SpinLock {
    pub fn is_free(&self) -> bool {
        self.owner.lock().expect(UNPOISONED).is_none()
    }

    pub fn acquire(&self, cpu: &mut Cpu) {
        let mut owner = self.owner.lock().expect(UNPOISONED);
        while owner.is_some() {
            owner = self.freed.wait(owner).expect(UNPOISONED);
        }
        *owner = Some(cpu.owner);
        cpu.locks_held += 1;
    }

    pub fn try_acquire(&self, cpu: &mut Cpu) -> bool {
        let mut owner = self.owner.lock().expect(UNPOISONED);
        if owner.is_some() {
            return false;
        }
        *owner = Some(cpu.owner);
        cpu.locks_held += 1;
        true
    }

    pub fn try_in_vain(&self, _cpu: &mut Cpu) {}

    pub fn release(&self, cpu: &mut Cpu) {
        let mut owner = self.owner.lock().expect(UNPOISONED);
        assert_eq!(*owner, Some(cpu.owner), "lock released by a stranger");
        *owner = None;
        cpu.locks_held -= 1;
        self.freed.notify_one();
    }

    pub fn glance(&self, _cpu: &mut Cpu) {}
}

#[derive(Debug)]
pub struct Lock<T> {
    spin: SpinLock,
    value: Mutex<T>,
}

impl<T> Deref for Lock<T> {
    type Target = SpinLock;
    fn deref(&self) -> &SpinLock {
        &self.spin
    }
}

impl<T> Lock<T> {
    pub fn new(value: T) -> Self {
        Lock {
            spin: SpinLock {
                owner: words::Mutex::new(None),
                freed: words::Condvar::new(),
            },
            value: Mutex::new(value),
        }
    }

    pub fn apart(value: T) -> Self {
        Self::new(value)
    }

    pub fn held<'a>(&'a self, cpu: &'a mut Cpu) -> MutexGuard<'a, T> {
        assert!(cpu.locks_held > 0, "guarded data used without its lock");
        self.value.lock().expect(UNPOISONED)
    }

    pub fn inspect<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.lock().expect(UNPOISONED))
    }

    pub fn adjust<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.value.lock().expect(UNPOISONED))
    }
}

/// A slab in a mutex that loom does not see.
#[derive(Debug)]
pub struct Slab<T>(Mutex<T>);

impl<T: Toucher> Slab<T> {
    pub fn new(value: T) -> Self {
        Slab(Mutex::new(value))
    }

    pub fn held(&self, toucher: CpuId) -> MutexGuard<'_, T> {
        let mut held = self.0.lock().expect(UNPOISONED);
        held.touched_by(toucher);
        held
    }
}

thread_local! {
    /// Tasks whose full barriers are omitted.
    static WITHOUT_BARRIERS: Cell<u32> = const { Cell::new(0) };
}

/// Omits the full barriers of the tasks with these bits from now on, for a mutant. It holds for all
/// threads of a model: loom runs them on the thread that checks it.
pub fn omit_barriers(tasks: u32) {
    WITHOUT_BARRIERS.set(tasks);
}

pub fn mb(cpu: &mut Cpu) {
    if WITHOUT_BARRIERS.get() >> cpu.task.0 & 1 == 0 {
        fence(SeqCst);
    }
}
