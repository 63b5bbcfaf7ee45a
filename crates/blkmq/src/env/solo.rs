//! Cells for one thread of control: the simulator and the explorer.
//!
//! Values are compared and hashed, cache lines are not. Each operation names its kernel operation
//! and the ordering of that (Documentation/atomic_bitops.txt, atomic_t.txt).

use core::cell::{Cell, RefCell, RefMut};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

use super::cpu::Cpu;
use super::line::Line;
use super::{Toucher, first_zero, run_at};
use crate::request::CpuId;

/// One bit that several CPUs read and write without a lock.
pub type Bit = Shared<bool>;
/// A counter (atomic_t) shared without a lock.
pub type Count = Shared<i32>;
/// 64 bits of an sbitmap.
pub type Word = Shared<u64>;

/// A shared value with its cache line.
#[derive(Debug)]
pub struct Shared<T: Copy> {
    value: Cell<T>,
    line: Line,
}

/// Copying into an existing cell leaves its line.
impl<T: Copy> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared {
            value: self.value.clone(),
            line: self.line.clone(),
        }
    }

    #[inline]
    fn clone_from(&mut self, source: &Shared<T>) {
        self.value.set(source.value.get());
    }
}

impl<T: Copy> Shared<T> {
    fn with(value: T) -> Shared<T> {
        Shared {
            value: Cell::new(value),
            line: Line::default(),
        }
    }

    #[inline]
    fn get(&self, cpu: &mut Cpu) -> T {
        cpu.note_access();
        cpu.meter.load(&self.line, cpu.id);
        self.value.get()
    }

    #[inline]
    fn change(&self, cpu: &mut Cpu, change: impl FnOnce(T) -> T) -> T {
        cpu.note_access();
        cpu.meter.atomic(&self.line, cpu.id, cpu.at_ps);
        let before = self.value.get();
        self.value.set(change(before));
        before
    }
}

impl<T: Copy + PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.value.get() == other.value.get()
    }
}

impl<T: Copy + Eq> Eq for Shared<T> {}

impl<T: Copy + Hash> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.get().hash(state);
    }
}

impl Bit {
    /// A bit with this first value.
    pub fn new(value: bool) -> Self {
        Shared::with(value)
    }
    /// test_bit(): relaxed.
    #[inline]
    pub fn test(&self, cpu: &mut Cpu) -> bool {
        self.get(cpu)
    }
    /// set_bit(): relaxed.
    #[inline]
    pub fn set(&self, cpu: &mut Cpu) {
        self.change(cpu, |_| true);
    }
    /// clear_bit(): relaxed.
    #[inline]
    pub fn clear(&self, cpu: &mut Cpu) {
        self.change(cpu, |_| false);
    }
    /// test_and_set_bit(): fully ordered when it sets the bit; a failed one orders nothing.
    /// Returns the value before.
    pub fn test_and_set(&self, cpu: &mut Cpu) -> bool {
        self.change(cpu, |_| true)
    }
    /// test_and_clear_bit(): fully ordered when it clears the bit. Returns the value before.
    pub fn test_and_clear(&self, cpu: &mut Cpu) -> bool {
        self.change(cpu, |_| false)
    }
    /// clear_bit_unlock(): release.
    pub fn clear_unlock(&self, cpu: &mut Cpu) {
        self.change(cpu, |_| false);
    }
    /// Records under a lock the new state of the guarded value. The bit shares a line with that
    /// value, so this is no separate access: a reader without the lock calls `Lock::glance`, too.
    pub fn mirror(&self, cpu: &mut Cpu, value: bool) {
        cpu.goes_on();
        debug_assert!(cpu.locks_held > 0, "a mirror is written under its lock");
        self.value.set(value);
    }
    /// The value, for assertions and reports: not an access of the modelled machine.
    pub fn peek(&self) -> bool {
        self.value.get()
    }
}

impl Count {
    /// A counter with this first value.
    pub fn new(value: i32) -> Self {
        Shared::with(value)
    }
    /// atomic_read(): relaxed.
    #[inline]
    pub fn read(&self, cpu: &mut Cpu) -> i32 {
        self.get(cpu)
    }
    /// WRITE_ONCE(): relaxed.
    pub fn write(&self, cpu: &mut Cpu, value: i32) {
        self.change(cpu, |_| value);
    }
    /// atomic_add(): relaxed.
    #[inline]
    pub fn add(&self, cpu: &mut Cpu, by: i32) {
        self.change(cpu, |v| v + by);
    }
    /// atomic_add_return(): fully ordered. Returns the value after.
    pub fn add_return(&self, cpu: &mut Cpu, by: i32) -> i32 {
        self.change(cpu, |v| v + by) + by
    }
    /// atomic_cmpxchg(): fully ordered on success. True if the value was `old`.
    pub fn compare_exchange(&self, cpu: &mut Cpu, old: i32, new: i32) -> bool {
        self.change(cpu, |v| if v == old { new } else { v }) == old
    }
    /// The value, for assertions and reports: not an access of the modelled machine.
    pub fn peek(&self) -> i32 {
        self.value.get()
    }
}

impl Word {
    /// A word with this first value.
    pub fn new(value: u64) -> Self {
        Shared::with(value)
    }
    /// READ_ONCE(): relaxed.
    #[inline]
    pub fn load(&self, cpu: &mut Cpu) -> u64 {
        self.get(cpu)
    }
    /// set_bit() of several bits. Relaxed. Returns the value before.
    pub fn fetch_or(&self, cpu: &mut Cpu, bits: u64) -> u64 {
        self.change(cpu, |v| v | bits)
    }
    /// clear_bit() of the bits that are not in `mask`. Relaxed. Returns the value before.
    pub fn fetch_and(&self, cpu: &mut Cpu, mask: u64) -> u64 {
        self.change(cpu, |v| v & mask)
    }
    /// test_and_set_bit() of the bit in `mask`: fully ordered when it sets the bit; a failed one
    /// orders nothing. Returns whether it was set before.
    pub fn test_and_set(&self, cpu: &mut Cpu, mask: u64) -> bool {
        self.change(cpu, |v| v | mask) & mask != 0
    }
    /// test_and_clear_bit() of the bit in `mask`: fully ordered when it clears the bit. Returns
    /// whether it was set before.
    pub fn test_and_clear(&self, cpu: &mut Cpu, mask: u64) -> bool {
        self.change(cpu, |v| v & !mask) & mask != 0
    }
    /// xchg(): fully ordered. Returns the value before.
    pub fn swap(&self, cpu: &mut Cpu, value: u64) -> u64 {
        self.change(cpu, |_| value)
    }
    /// find_next_zero_bit() and test_and_set_bit_lock(), repeated on a lost race: sets the first
    /// zero bit among `candidates`, trying bits from `start` upward and, if `wrap`, then from 0.
    /// Acquire on success. Returns the bit.
    pub fn acquire_zero(
        &self,
        cpu: &mut Cpu,
        start: u32,
        candidates: u64,
        wrap: bool,
    ) -> Option<u32> {
        match first_zero(self.value.get(), start, candidates, wrap) {
            Some(bit) => {
                self.change(cpu, |v| v | 1 << bit);
                Some(bit)
            }
            None => {
                self.get(cpu);
                None
            }
        }
    }
    /// Takes `count` bits in a row from the first zero bit on, if they fit below `depth`: READ_ONCE
    /// and a compare-exchange that ORs them in. Fully ordered. Returns the first bit and those
    /// bits of the run that were free, counted from it.
    pub fn acquire_run(&self, cpu: &mut Cpu, count: u32, depth: u32) -> Option<(u32, u64)> {
        let Some((first, run)) = run_at(self.value.get(), count, depth) else {
            self.get(cpu);
            return None;
        };
        let before = self.change(cpu, |v| v | run);
        Some((first, (run & !before) >> first))
    }
    /// The value, for assertions and reports: not an access of the modelled machine.
    pub fn peek(&self) -> u64 {
        self.value.get()
    }
}

/// A value that only guides a search (a per-CPU allocation hint): relaxed, and not waited for, so
/// it does not count as an access. Part of the state, since it decides which tag is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint(Cell<u32>);

impl Hash for Hint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.get().hash(state);
    }
}

impl Hint {
    /// A hint with this first value.
    pub fn new(value: u32) -> Self {
        Hint(Cell::new(value))
    }
    pub fn get(&self) -> u32 {
        self.0.get()
    }
    pub fn put(&self, value: u32) {
        self.0.set(value);
    }
}

/// A cache line whose contents a path does not model: only the last access matters. All are equal
/// as values.
#[derive(Debug, Default)]
pub struct CacheLine(Line);

/// Copying into an existing one leaves the line.
impl Clone for CacheLine {
    fn clone(&self) -> CacheLine {
        CacheLine(self.0.clone())
    }

    fn clone_from(&mut self, _: &CacheLine) {}
}

impl PartialEq for CacheLine {
    fn eq(&self, _: &CacheLine) -> bool {
        true
    }
}

impl Eq for CacheLine {}

impl Hash for CacheLine {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl CacheLine {
    /// A load from it, one of `lines` such lines that are read one after another. If the table does
    /// not fit into a CPU's own cache, its lines are evicted before the CPU reads them again.
    pub fn read_among(&self, lines: usize, cpu: &mut Cpu) {
        cpu.goes_on();
        cpu.meter.load_among(lines, &self.0, cpu.id);
    }
    pub fn write(&self, cpu: &mut Cpu) {
        cpu.goes_on();
        cpu.meter.update(&self.0, cpu.id);
    }
}

const NOBODY: u32 = u32::MAX;

/// A spin lock: its owner and cache lines. The driver acquires, which is the grant; the path
/// releases.
#[derive(Debug)]
pub struct SpinLock {
    /// `NOBODY` if it is free.
    owner: Cell<u32>,
    word: Line,
    /// The line of the guarded data, if it is not that of the lock's word.
    data: Option<Line>,
}

/// Copying into an existing lock leaves the lines.
impl Clone for SpinLock {
    fn clone(&self) -> SpinLock {
        SpinLock {
            owner: self.owner.clone(),
            word: self.word.clone(),
            data: self.data.clone(),
        }
    }

    fn clone_from(&mut self, source: &SpinLock) {
        self.owner.set(source.owner.get());
    }
}

impl PartialEq for SpinLock {
    fn eq(&self, other: &SpinLock) -> bool {
        self.owner == other.owner
    }
}

impl Eq for SpinLock {}

impl SpinLock {
    fn free(data: Option<Line>) -> SpinLock {
        SpinLock {
            owner: Cell::new(NOBODY),
            word: Line::default(),
            data,
        }
    }

    /// The line of its word.
    #[inline]
    pub fn word(&self) -> &Line {
        &self.word
    }

    fn data_line(&self) -> &Line {
        self.data.as_ref().unwrap_or(&self.word)
    }

    /// !spin_is_locked(); for the driver.
    pub fn is_free(&self) -> bool {
        self.owner.get() == NOBODY
    }

    /// spin_lock(), by the driver when the lock is free (under loom it waits). Acquire.
    pub fn acquire(&self, cpu: &mut Cpu) {
        assert!(
            self.owner.get() == NOBODY,
            "the driver granted a lock that is taken"
        );
        cpu.meter.atomic(&self.word, cpu.id, cpu.at_ps);
        self.owner.set(cpu.owner);
        cpu.locks_held += 1;
    }

    /// spin_trylock(): acquire when it succeeds; a failed one orders nothing.
    pub fn try_acquire(&self, cpu: &mut Cpu) -> bool {
        if !self.is_free() {
            self.try_in_vain(cpu);
            return false;
        }
        cpu.note_access();
        self.acquire(cpu);
        true
    }

    /// A spin_trylock() that the driver knows to fail: another context holds the lock at that time,
    /// though its state may be later. Reads the lock's word.
    pub fn try_in_vain(&self, cpu: &mut Cpu) {
        cpu.note_access();
        if !cpu.meter.tariff.blind_tries {
            cpu.meter.load(&self.word, cpu.id);
        }
    }

    /// spin_unlock(). Release. Panics if this context does not own the lock.
    pub fn release(&self, cpu: &mut Cpu) {
        assert!(self.owner.get() == cpu.owner, "lock released by a stranger");
        // CPUs that polled the word lose their copies before they can see the lock free.
        cpu.meter.store(&self.word, cpu.id);
        self.owner.set(NOBODY);
        cpu.locks_held -= 1;
        cpu.released();
    }

    /// Reads, without the lock, a word beside the guarded value, as list_empty_careful() does. The
    /// result is a separate [`Bit`].
    pub fn glance(&self, cpu: &mut Cpu) {
        cpu.goes_on();
        cpu.meter.load(self.data_line(), cpu.id);
    }
}

/// A spin lock and the guarded value.
#[derive(PartialEq, Eq, Debug)]
pub struct Lock<T> {
    spin: SpinLock,
    value: RefCell<T>,
}

impl<T> Deref for Lock<T> {
    type Target = SpinLock;
    #[inline]
    fn deref(&self) -> &SpinLock {
        &self.spin
    }
}

/// Copying into an existing lock reuses what its value has allocated, and leaves the lines.
impl<T: Clone> Clone for Lock<T> {
    fn clone(&self) -> Lock<T> {
        Lock {
            spin: self.spin.clone(),
            value: self.value.clone(),
        }
    }

    fn clone_from(&mut self, source: &Lock<T>) {
        self.spin.clone_from(&source.spin);
        self.value.get_mut().clone_from(&source.value.borrow());
    }
}

/// Access to the guarded value of a [`Lock`]; borrows the CPU, so no other operation of the
/// environment compiles while it lives.
pub struct Held<'a, T> {
    value: RefMut<'a, T>,
    _cpu: core::marker::PhantomData<&'a mut Cpu>,
}

impl<T: fmt::Debug> fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Hash> Hash for Lock<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.borrow().hash(state);
        self.spin.owner.get().hash(state);
    }
}

impl<T> Lock<T> {
    /// A free lock around `value`.
    pub fn new(value: T) -> Self {
        Lock {
            spin: SpinLock::free(None),
            value: RefCell::new(value),
        }
    }

    /// A free lock around a value that does not share a line with the lock's word.
    pub fn apart(value: T) -> Self {
        Lock {
            spin: SpinLock::free(Some(Line::default())),
            value: RefCell::new(value),
        }
    }

    /// The guarded value. Panics if this context does not own the lock.
    pub fn held<'a>(&'a self, cpu: &'a mut Cpu) -> Held<'a, T> {
        assert!(
            self.spin.owner.get() == cpu.owner,
            "guarded data used without its lock"
        );
        cpu.goes_on();
        cpu.meter.update(self.data_line(), cpu.id);
        Held {
            value: self.value.borrow_mut(),
            _cpu: core::marker::PhantomData,
        }
    }

    /// Reads the value while nothing runs: assertions, reports, the explorer's oracle.
    pub fn inspect<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.borrow())
    }

    /// Changes the value while nothing runs, unpriced: for followers, and for defects that tests
    /// inject.
    pub fn adjust<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.value.borrow_mut())
    }
}

/// Data whose exclusion follows from owning a request. Borrowed inside one label, never across an
/// operation of the environment.
#[derive(PartialEq, Eq, Debug)]
pub struct Slab<T>(RefCell<T>);

/// Copying into an existing slab reuses its allocation.
impl<T: Clone> Clone for Slab<T> {
    fn clone(&self) -> Slab<T> {
        Slab(self.0.clone())
    }

    fn clone_from(&mut self, source: &Slab<T>) {
        self.0.get_mut().clone_from(&source.0.borrow());
    }
}

impl<T: Hash> Hash for Slab<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.borrow().hash(state);
    }
}

impl<T: Toucher> Slab<T> {
    /// Wraps the data.
    pub fn new(value: T) -> Self {
        Slab(RefCell::new(value))
    }

    /// The data, touched by `toucher`. Panics if it is already borrowed on this thread of control.
    /// Allowed after a release, since the slab has no label: a path touches only its own requests.
    #[inline]
    pub fn held(&self, toucher: CpuId) -> RefMut<'_, T> {
        let mut held = self.0.borrow_mut();
        held.touched_by(toucher);
        held
    }
}

/// smp_mb(): a full barrier. Written wherever the protocol needs one, also where x86 has it for
/// free.
pub fn mb(_cpu: &mut Cpu) {}

#[cfg(test)]
mod tests;
