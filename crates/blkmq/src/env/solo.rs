//! Cells: one thread of control, for the simulator and the explorer.
//!
//! Values are compared and hashed, cache lines are not.

use core::cell::{Cell, RefCell, RefMut};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

use super::cpu::Cpu;
use super::line::Line;
use super::{Bit, Count, Env, Hint, Lock, Slab, Spot, Toucher, Word};
use crate::request::CpuId;

/// The environment of one thread of control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Solo;

/// A shared value with its cache line.
#[derive(Debug)]
pub struct SoloCell<T: Copy> {
    value: Cell<T>,
    line: Line,
}

/// Copying into an existing cell leaves its line.
impl<T: Copy> Clone for SoloCell<T> {
    fn clone(&self) -> SoloCell<T> {
        SoloCell {
            value: self.value.clone(),
            line: self.line.clone(),
        }
    }

    #[inline]
    fn clone_from(&mut self, source: &SoloCell<T>) {
        self.value.set(source.value.get());
    }
}

impl<T: Copy> SoloCell<T> {
    fn with(value: T) -> SoloCell<T> {
        SoloCell {
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

impl<T: Copy + PartialEq> PartialEq for SoloCell<T> {
    fn eq(&self, other: &SoloCell<T>) -> bool {
        self.value.get() == other.value.get()
    }
}

impl<T: Copy + Eq> Eq for SoloCell<T> {}

impl<T: Copy + Hash> Hash for SoloCell<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.get().hash(state);
    }
}

impl Bit for SoloCell<bool> {
    fn new(value: bool) -> Self {
        SoloCell::with(value)
    }
    #[inline]
    fn test(&self, cpu: &mut Cpu) -> bool {
        self.get(cpu)
    }
    #[inline]
    fn set(&self, cpu: &mut Cpu) {
        self.change(cpu, |_| true);
    }
    #[inline]
    fn clear(&self, cpu: &mut Cpu) {
        self.change(cpu, |_| false);
    }
    fn test_and_set(&self, cpu: &mut Cpu) -> bool {
        self.change(cpu, |_| true)
    }
    fn test_and_clear(&self, cpu: &mut Cpu) -> bool {
        self.change(cpu, |_| false)
    }
    fn clear_unlock(&self, cpu: &mut Cpu) {
        self.change(cpu, |_| false);
    }
    fn mirror(&self, cpu: &mut Cpu, value: bool) {
        cpu.goes_on();
        debug_assert!(cpu.locks_held > 0, "a mirror is written under its lock");
        self.value.set(value);
    }
    fn peek(&self) -> bool {
        self.value.get()
    }
}

impl Count for SoloCell<i32> {
    fn new(value: i32) -> Self {
        SoloCell::with(value)
    }
    #[inline]
    fn read(&self, cpu: &mut Cpu) -> i32 {
        self.get(cpu)
    }
    fn write(&self, cpu: &mut Cpu, value: i32) {
        self.change(cpu, |_| value);
    }
    #[inline]
    fn add(&self, cpu: &mut Cpu, by: i32) {
        self.change(cpu, |v| v + by);
    }
    fn add_return(&self, cpu: &mut Cpu, by: i32) -> i32 {
        self.change(cpu, |v| v + by) + by
    }
    fn compare_exchange(&self, cpu: &mut Cpu, old: i32, new: i32) -> bool {
        self.change(cpu, |v| if v == old { new } else { v }) == old
    }
    fn peek(&self) -> i32 {
        self.value.get()
    }
}

impl Word for SoloCell<u64> {
    fn new(value: u64) -> Self {
        SoloCell::with(value)
    }
    #[inline]
    fn load(&self, cpu: &mut Cpu) -> u64 {
        self.get(cpu)
    }
    fn fetch_or(&self, cpu: &mut Cpu, bits: u64) -> u64 {
        self.change(cpu, |v| v | bits)
    }
    fn fetch_and(&self, cpu: &mut Cpu, mask: u64) -> u64 {
        self.change(cpu, |v| v & mask)
    }
    fn test_and_set(&self, cpu: &mut Cpu, mask: u64) -> bool {
        self.change(cpu, |v| v | mask) & mask != 0
    }
    fn test_and_clear(&self, cpu: &mut Cpu, mask: u64) -> bool {
        self.change(cpu, |v| v & !mask) & mask != 0
    }
    fn swap(&self, cpu: &mut Cpu, value: u64) -> u64 {
        self.change(cpu, |_| value)
    }
    fn acquire_zero(&self, cpu: &mut Cpu, start: u32, candidates: u64, wrap: bool) -> Option<u32> {
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
    fn acquire_run(&self, cpu: &mut Cpu, count: u32, depth: u32) -> Option<(u32, u64)> {
        let Some((first, run)) = run_at(self.value.get(), count, depth) else {
            self.get(cpu);
            return None;
        };
        let before = self.change(cpu, |v| v | run);
        Some((first, (run & !before) >> first))
    }
    fn peek(&self) -> u64 {
        self.value.get()
    }
}

/// First zero bit of `word` and the mask of `count` bits from there, if they fit below `depth`.
pub(super) fn run_at(word: u64, count: u32, depth: u32) -> Option<(u32, u64)> {
    let first = (!word).trailing_zeros();
    let mask = u64::MAX >> (64 - count);
    (first + count <= depth).then(|| (first, mask << first))
}

/// The first zero bit of `word` among `candidates`, from `start` upward, then from 0 if `wrap`.
pub(super) fn first_zero(word: u64, start: u32, candidates: u64, wrap: bool) -> Option<u32> {
    let free = !word & candidates;
    let above = free & (u64::MAX << start);
    let pick = if above != 0 || !wrap { above } else { free };
    (pick != 0).then(|| pick.trailing_zeros())
}

/// A hint in a cell; part of the state, since it decides which tag is taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SoloHint(Cell<u32>);

impl Hash for SoloHint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.get().hash(state);
    }
}

impl Hint for SoloHint {
    fn new(value: u32) -> Self {
        SoloHint(Cell::new(value))
    }
    fn get(&self) -> u32 {
        self.0.get()
    }
    fn put(&self, value: u32) {
        self.0.set(value);
    }
}

/// A line alone; all are equal as values.
#[derive(Debug)]
pub struct SoloSpot(Line);

/// Copying into an existing spot leaves its line.
impl Clone for SoloSpot {
    fn clone(&self) -> SoloSpot {
        SoloSpot(self.0.clone())
    }

    fn clone_from(&mut self, _: &SoloSpot) {}
}

impl PartialEq for SoloSpot {
    fn eq(&self, _: &SoloSpot) -> bool {
        true
    }
}

impl Eq for SoloSpot {}

impl Hash for SoloSpot {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Spot for SoloSpot {
    fn new() -> Self {
        SoloSpot(Line::default())
    }
    fn read_among(&self, spots: usize, cpu: &mut Cpu) {
        cpu.goes_on();
        cpu.meter.load_among(spots, &self.0, cpu.id);
    }
    fn write(&self, cpu: &mut Cpu) {
        cpu.goes_on();
        cpu.meter.update(&self.0, cpu.id);
    }
}

/// The owner of a free lock.
const NOBODY: u32 = u32::MAX;

/// A lock: an owner and a cell.
#[derive(Debug)]
pub struct SoloLock<T> {
    value: RefCell<T>,
    /// `NOBODY` if it is free.
    owner: Cell<u32>,
    word: Line,
    /// The guarded data's, if they do not lie beside the word.
    data: Option<Line>,
}

impl<T> SoloLock<T> {
    /// The line of its word.
    #[inline]
    pub(crate) fn word(&self) -> &Line {
        &self.word
    }

    fn data_line(&self) -> &Line {
        self.data.as_ref().unwrap_or(&self.word)
    }
}

/// Copying into an existing lock reuses what its value has allocated, and leaves the lines.
impl<T: Clone> Clone for SoloLock<T> {
    fn clone(&self) -> SoloLock<T> {
        SoloLock {
            value: self.value.clone(),
            owner: self.owner.clone(),
            word: self.word.clone(),
            data: self.data.clone(),
        }
    }

    fn clone_from(&mut self, source: &SoloLock<T>) {
        self.value.get_mut().clone_from(&source.value.borrow());
        self.owner.set(source.owner.get());
    }
}

/// The guarded value of a [`SoloLock`]; keeps the CPU borrowed.
pub struct SoloHeld<'a, T> {
    value: RefMut<'a, T>,
    _cpu: core::marker::PhantomData<&'a mut Cpu>,
}

impl<T: fmt::Debug> fmt::Debug for SoloHeld<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T> Deref for SoloHeld<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for SoloHeld<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: PartialEq> PartialEq for SoloLock<T> {
    fn eq(&self, other: &SoloLock<T>) -> bool {
        self.value == other.value && self.owner == other.owner
    }
}

impl<T: Eq> Eq for SoloLock<T> {}

impl<T: Hash> Hash for SoloLock<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.borrow().hash(state);
        self.owner.get().hash(state);
    }
}

impl<T: fmt::Debug + 'static> Lock<T> for SoloLock<T> {
    type Held<'a> = SoloHeld<'a, T>;

    fn new(value: T) -> Self {
        SoloLock {
            value: RefCell::new(value),
            owner: Cell::new(NOBODY),
            word: Line::default(),
            data: None,
        }
    }

    fn apart(value: T) -> Self {
        SoloLock {
            data: Some(Line::default()),
            ..Self::new(value)
        }
    }

    fn is_free(&self) -> bool {
        self.owner.get() == NOBODY
    }

    fn acquire(&self, cpu: &mut Cpu) {
        assert!(
            self.owner.get() == NOBODY,
            "the driver granted a lock that is taken"
        );
        cpu.meter.atomic(&self.word, cpu.id, cpu.at_ps);
        self.owner.set(cpu.owner);
        cpu.locks_held += 1;
    }

    fn try_acquire(&self, cpu: &mut Cpu) -> bool {
        if !self.is_free() {
            self.try_in_vain(cpu);
            return false;
        }
        cpu.note_access();
        self.acquire(cpu);
        true
    }

    fn try_in_vain(&self, cpu: &mut Cpu) {
        cpu.note_access();
        if !cpu.meter.tariff.blind_tries {
            cpu.meter.load(&self.word, cpu.id);
        }
    }

    fn held<'a>(&'a self, cpu: &'a mut Cpu) -> SoloHeld<'a, T> {
        assert!(
            self.owner.get() == cpu.owner,
            "guarded data used without its lock"
        );
        cpu.goes_on();
        cpu.meter.update(self.data_line(), cpu.id);
        SoloHeld {
            value: self.value.borrow_mut(),
            _cpu: core::marker::PhantomData,
        }
    }

    fn release(&self, cpu: &mut Cpu) {
        assert!(self.owner.get() == cpu.owner, "lock released by a stranger");
        // Whoever looked at the word meanwhile loses his copy before he can see it free.
        cpu.meter.store(&self.word, cpu.id);
        self.owner.set(NOBODY);
        cpu.locks_held -= 1;
        cpu.released();
    }

    fn glance(&self, cpu: &mut Cpu) {
        cpu.goes_on();
        cpu.meter.load(self.data_line(), cpu.id);
    }

    fn inspect<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.borrow())
    }

    fn adjust<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.value.borrow_mut())
    }
}

/// A slab in a cell.
#[derive(PartialEq, Eq, Debug)]
pub struct SoloSlab<T>(RefCell<T>);

/// Copying into an existing slab reuses what it has allocated.
impl<T: Clone> Clone for SoloSlab<T> {
    fn clone(&self) -> SoloSlab<T> {
        SoloSlab(self.0.clone())
    }

    fn clone_from(&mut self, source: &SoloSlab<T>) {
        self.0.get_mut().clone_from(&source.0.borrow());
    }
}

impl<T: Hash> Hash for SoloSlab<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.borrow().hash(state);
    }
}

impl<T: Toucher + fmt::Debug + 'static> Slab<T> for SoloSlab<T> {
    type Held<'a> = RefMut<'a, T>;

    fn new(value: T) -> Self {
        SoloSlab(RefCell::new(value))
    }

    #[inline]
    fn held(&self, toucher: CpuId) -> RefMut<'_, T> {
        let mut held = self.0.borrow_mut();
        held.touched_by(toucher);
        held
    }
}

impl Env for Solo {
    type Bit = SoloCell<bool>;
    type Count = SoloCell<i32>;
    type Word = SoloCell<u64>;
    type Hint = SoloHint;
    type Spot = SoloSpot;
    type Lock<T: fmt::Debug + 'static> = SoloLock<T>;
    type Slab<T: Toucher + fmt::Debug + 'static> = SoloSlab<T>;

    fn mb(_cpu: &mut Cpu) {}
}

#[cfg(test)]
mod tests;
