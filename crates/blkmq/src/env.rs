//! What a kernel path may do besides computing: words shared without a lock, locks, barriers,
//! effects on the machine. One source, several drivers: `Solo` for simulator and explorer,
//! `Threads` for loom and real threads.
//!
//! Each operation says which kernel operation it stands for and how that is ordered
//! (Documentation/atomic_bitops.txt, atomic_t.txt). Only `threads.rs` names memory orders.
//!
//! A release ends its label: what the label did behind it would be priced, and seen by others, as
//! if the lock were still held. In debug builds `Solo` refuses, until the next label begins, every
//! access to a word, a glance, a spot, guarded data (also those of a lock that is still held), a
//! trace point and an effect. Allowed are the release of a further lock, a barrier, which touches
//! nothing, and the pool: a path reaches into it for requests that nobody else has.

mod cpu;
mod line;
mod solo;
mod threads;
mod value;

pub use cpu::{
    Answer, Cpu, Effect, Gauge, GaugeForm, GaugeUnit, OUTBOX_LIMIT, Outbox, Percentile, Probe,
    Reading, Said, TURN_AWAITED, TURN_OVER, TURN_SERVED, TraceAction, TracePoint, Which,
};
pub use line::{Line, Meter, Misses, Near, Overlap, Room, Tariff, bit_of};
pub use solo::{Solo, SoloLock, SoloSlab};
pub use threads::Threads;
pub use value::Aside;
pub(crate) use value::solo_value;

use core::fmt::Debug;
use core::ops::DerefMut;

use crate::request::CpuId;

/// One bit that several CPUs read and write without a lock.
pub trait Bit: Debug {
    /// A bit with this first value.
    fn new(value: bool) -> Self;
    /// test_bit(): relaxed.
    fn test(&self, cpu: &mut Cpu) -> bool;
    /// set_bit(): relaxed.
    fn set(&self, cpu: &mut Cpu);
    /// clear_bit(): relaxed.
    fn clear(&self, cpu: &mut Cpu);
    /// test_and_set_bit(): fully ordered when it sets the bit; a failed one orders nothing.
    /// Returns the value before.
    fn test_and_set(&self, cpu: &mut Cpu) -> bool;
    /// test_and_clear_bit(): fully ordered when it clears the bit. Returns the value before.
    fn test_and_clear(&self, cpu: &mut Cpu) -> bool;
    /// clear_bit_unlock(): release.
    fn clear_unlock(&self, cpu: &mut Cpu);
    /// Notes under a lock what the guarded value has become. It lies with that value, so this is
    /// no access of its own: whoever reads it without the lock calls [`Lock::glance`], too.
    fn mirror(&self, cpu: &mut Cpu, value: bool);
    /// The value, for assertions and reports: not an access of the modelled machine.
    fn peek(&self) -> bool;
}

/// A counter (atomic_t) shared without a lock.
pub trait Count: Debug {
    /// A counter with this first value.
    fn new(value: i32) -> Self;
    /// atomic_read(): relaxed.
    fn read(&self, cpu: &mut Cpu) -> i32;
    /// WRITE_ONCE(): relaxed.
    fn write(&self, cpu: &mut Cpu, value: i32);
    /// atomic_add(): relaxed.
    fn add(&self, cpu: &mut Cpu, by: i32);
    /// atomic_add_return(): fully ordered. Returns the value after.
    fn add_return(&self, cpu: &mut Cpu, by: i32) -> i32;
    /// atomic_cmpxchg(): fully ordered on success. True if the value was `old`.
    fn compare_exchange(&self, cpu: &mut Cpu, old: i32, new: i32) -> bool;
    /// The value, for assertions and reports: not an access of the modelled machine.
    fn peek(&self) -> i32;
}

/// 64 bits of an sbitmap.
pub trait Word: Debug {
    /// A word with this first value.
    fn new(value: u64) -> Self;
    /// READ_ONCE(): relaxed.
    fn load(&self, cpu: &mut Cpu) -> u64;
    /// set_bit() of several bits. Relaxed. Returns the value before.
    fn fetch_or(&self, cpu: &mut Cpu, bits: u64) -> u64;
    /// clear_bit() of the bits that are not in `mask`. Relaxed. Returns the value before.
    fn fetch_and(&self, cpu: &mut Cpu, mask: u64) -> u64;
    /// test_and_set_bit() of the bit in `mask`: fully ordered when it sets the bit; a failed one
    /// orders nothing. Returns whether it was set before.
    fn test_and_set(&self, cpu: &mut Cpu, mask: u64) -> bool;
    /// test_and_clear_bit() of the bit in `mask`: fully ordered when it clears the bit. Returns
    /// whether it was set before.
    fn test_and_clear(&self, cpu: &mut Cpu, mask: u64) -> bool;
    /// xchg(): fully ordered. Returns the value before.
    fn swap(&self, cpu: &mut Cpu, value: u64) -> u64;
    /// find_next_zero_bit() and test_and_set_bit_lock(), repeated on a lost race: sets the first
    /// zero bit among `candidates`, trying bits from `start` upward and, if `wrap`, then from 0.
    /// Acquire on success. Returns the bit.
    fn acquire_zero(&self, cpu: &mut Cpu, start: u32, candidates: u64, wrap: bool) -> Option<u32>;
    /// Takes `count` bits in a row from the first zero bit on, if they fit below `depth`: READ_ONCE
    /// and a compare-exchange that ORs them in. Fully ordered. Returns the first bit and those
    /// bits of the run that were free, counted from it.
    fn acquire_run(&self, cpu: &mut Cpu, count: u32, depth: u32) -> Option<(u32, u64)>;
    /// The value, for assertions and reports: not an access of the modelled machine.
    fn peek(&self) -> u64;
}

/// A value that only guides a search (a per-CPU allocation hint): relaxed, and no access that
/// anyone waits for, so it does not count as one.
pub trait Hint: Debug {
    /// A hint with this first value.
    fn new(value: u32) -> Self;
    /// The value.
    fn get(&self) -> u32;
    /// Sets it.
    fn put(&self, value: u32);
}

/// A cache line whose contents a path does not model: only who touched it last matters.
pub trait Spot: Debug {
    /// A line that nobody has touched.
    fn new() -> Self;
    /// A load from it, one of many such spots that are looked at one after another: how many in
    /// all. Lines of a table that does not fit into a CPU's own cache have gone out of it when the
    /// CPU comes round to them again.
    fn read_among(&self, spots: usize, cpu: &mut Cpu);
    /// A store to it.
    fn write(&self, cpu: &mut Cpu);
}

/// A spin lock and what it guards. The driver acquires, which is the grant; the path releases.
pub trait Lock<T>: Debug {
    /// Access to the guarded value; borrows the CPU, so no other operation of the environment
    /// compiles while it lives.
    type Held<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;
    /// A free lock around `value`.
    fn new(value: T) -> Self;
    /// A free lock around a value that does not lie beside the lock's word.
    fn apart(value: T) -> Self;
    /// spin_is_locked() the other way round; for the driver.
    fn is_free(&self) -> bool;
    /// spin_lock(), by the driver when the lock is free (`Threads` waits). Acquire.
    fn acquire(&self, cpu: &mut Cpu);
    /// spin_trylock(): acquire when it succeeds; a failed one orders nothing.
    fn try_acquire(&self, cpu: &mut Cpu) -> bool;
    /// A spin_trylock() of which the driver knows that it fails: somebody holds the lock at that
    /// time, though its state may be further. Reads the lock's word.
    fn try_in_vain(&self, cpu: &mut Cpu);
    /// The guarded value. Panics if this context does not own the lock.
    fn held<'a>(&'a self, cpu: &'a mut Cpu) -> Self::Held<'a>;
    /// spin_unlock(). Release. Panics if this context does not own the lock.
    fn release(&self, cpu: &mut Cpu);
    /// Somebody without the lock reads a word that lies with the guarded value, as
    /// list_empty_careful() does. What it says is a [`Bit`] of its own.
    fn glance(&self, cpu: &mut Cpu);
    /// Looks at the value while nothing runs: assertions, reports, the explorer's oracle.
    fn inspect<R>(&self, look: impl FnOnce(&T) -> R) -> R;
    /// Changes it while nothing runs, unpriced: what is told to who looks on, and defects that
    /// tests make on purpose.
    fn adjust<R>(&self, change: impl FnOnce(&mut T) -> R) -> R;
}

/// Data whose exclusion follows from owning a request. Borrowed inside one label, never over an
/// operation of the environment.
pub trait Slab<T>: Debug {
    /// Access to the data.
    type Held<'a>: DerefMut<Target = T>
    where
        Self: 'a,
        T: 'a;
    /// Wraps the data.
    fn new(value: T) -> Self;
    /// The data, touched by `toucher`. Panics if it is already borrowed on this thread of control.
    /// Not refused behind a release, as it knows no label: what a path touches there is its own.
    fn held(&self, toucher: CpuId) -> Self::Held<'_>;
}

/// A family of shared words, locks and slabs.
pub trait Env: Sized + Debug + 'static {
    /// Bits.
    type Bit: Bit;
    /// Counters.
    type Count: Count;
    /// Words of bitmaps.
    type Word: Word;
    /// Hints.
    type Hint: Hint;
    /// Cache lines without a value.
    type Spot: Spot;
    /// Locks.
    type Lock<T: Debug + 'static>: Lock<T>;
    /// Slabs.
    type Slab<T: Toucher + Debug + 'static>: Slab<T>;
    /// smp_mb(): a full barrier. Written wherever the protocol needs one, also where x86 has it
    /// for free.
    fn mb(cpu: &mut Cpu);
}

/// Data that notes which CPU borrows it.
pub trait Toucher {
    /// `cpu` touches the data from now on.
    fn touched_by(&mut self, cpu: CpuId);
}

impl Toucher for crate::request::RequestPool {
    fn touched_by(&mut self, cpu: CpuId) {
        self.toucher = cpu;
    }
}
