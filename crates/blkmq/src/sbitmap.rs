//! The scalable bitmap of every tag map, and its wait queues.
//!
//! Not here: the meaning of a tag (`tags.rs`); a search (`path/sbitmap`). Kernel: lib/sbitmap.c,
//! include/linux/sbitmap.h (6.1.192, 6.12.117).

use core::fmt::Debug;

use crate::env::{Bit, Count, Cpu, Hint, Lock, Word, value};
use crate::request::CpuId;
use crate::rules::{BatchRule, Fix, FreedBits, Rules, ShallowDepth, WakeScan};
use crate::waiter::Waiter;

/// Wait queues of one map (SBQ_WAIT_QUEUES).
pub const WAIT_QUEUES: usize = 8;
/// Largest wake batch (SBQ_WAKE_BATCH).
pub const WAKE_BATCH_MAX: u32 = 8;

/// One word: allocated bits, bits freed but not yet merged back, and the lock of that merge.
#[derive(Debug)]
pub struct SbWord {
    pub word: Word,
    /// Bits that are given back but still set in `word`.
    pub cleared: Word,
    /// swap_lock.
    pub swap: Lock<()>,
}

value!(SbWord { ; word, cleared, swap });

/// A bitmap with waiters (sbitmap_queue).
#[derive(Debug)]
pub struct Sbitmap {
    pub words: Vec<SbWord>,
    /// log2 of the bits of a full word.
    pub shift: u32,
    /// Number of bits, which a resize changes.
    size: Hint,
    pub round_robin: bool,
    /// The bits that `shallow` limits.
    pub shallow_rule: ShallowDepth,
    /// The scheduler's min_shallow_depth.
    min_shallow: Option<u32>,
    /// The place of a freed bit.
    pub freed_bits: FreedBits,
    /// Freed bits are merged back under the lock of their word.
    pub swap_lock: bool,
    /// The holders of a bit may free it twice: not a defect of the model.
    pub given_twice: bool,
    /// Wake batch of a map that queues share.
    pub batch_rule: BatchRule,
    /// Number of wait queues in the batch's computation: kernels have 8, a model may have fewer.
    pub batch_queues: u32,
    /// Of each CPU: where its next search begins.
    pub hints: Vec<Hint>,
    pub wait: Vec<WaitState>,
    /// Waiting entries of all queues.
    pub ws_active: Count,
    pub wake_index: Count,
    /// Tags freed while there were waiters.
    pub completion_cnt: Count,
    /// Wake-ups promised so far.
    pub wakeup_cnt: Count,
    /// Frees that each wait queue still waits for (`wait_cnt`): empty unless each queue counts.
    pub countdowns: Vec<Count>,
    /// Tags freed per wake-up; changes with the number of users.
    pub wake_batch: Hint,
}

value!(Sbitmap {
    shift, round_robin, shallow_rule, min_shallow, freed_bits, swap_lock, given_twice, batch_rule,
    batch_queues;
    words, size, hints, wait, ws_active, wake_index, completion_cnt, wakeup_cnt, countdowns,
    wake_batch
});

#[derive(Debug)]
pub struct WaitState {
    /// The queue under the lock of its wait_queue_head.
    pub queue: Lock<WaitQueue>,
    /// waitqueue_active(): the wait queue has entries.
    pub active: Bit,
}

value!(WaitState { ; queue, active });

impl WaitState {
    fn new(waiters: usize) -> WaitState {
        // Few wait at a time; for more the list grows.
        let entries = Vec::with_capacity(waiters.min(64));
        WaitState {
            queue: Lock::new(WaitQueue { entries }),
            active: Bit::new(false),
        }
    }

    /// Changes the entries under the lock, which the caller owns and keeps.
    pub fn edit<R>(&self, cpu: &mut Cpu, by: impl FnOnce(&mut Vec<Waiter>) -> R) -> R {
        let mut queue = self.queue.held(cpu);
        let before = !queue.entries.is_empty();
        let result = by(&mut queue.entries);
        let after = !queue.entries.is_empty();
        drop(queue);
        match (before, after) {
            (false, true) => self.active.set(cpu),
            (true, false) => self.active.clear(cpu),
            _ => {}
        }
        result
    }

    /// The entry at this index, under the lock, which is kept.
    pub fn entry(&self, cpu: &mut Cpu, place: usize) -> Option<Waiter> {
        self.queue.held(cpu).entries.get(place).copied()
    }

    /// Removes an entry under the lock, which is kept. False if it was woken meanwhile.
    pub fn remove(&self, cpu: &mut Cpu, waiter: Waiter) -> bool {
        self.edit(cpu, |entries| {
            let before = entries.len();
            entries.retain(|&entry| entry != waiter);
            entries.len() < before
        })
    }
}

/// Entries of one wait queue. Tasks wait exclusively at the tail, hctxs at the head.
#[derive(PartialEq, Eq, Hash, Debug, Default)]
pub struct WaitQueue {
    /// The waiters, in wake order.
    pub entries: Vec<Waiter>,
}

/// Copying into an existing queue keeps its room.
impl Clone for WaitQueue {
    fn clone(&self) -> WaitQueue {
        WaitQueue {
            entries: self.entries.clone(),
        }
    }

    fn clone_from(&mut self, source: &WaitQueue) {
        self.entries.clone_from(&source.entries);
    }
}

/// log2 of the bits per word that spreads `depth` bits over at least four words where it can.
pub fn shift_for(depth: u32) -> u32 {
    let mut shift = 6;
    if depth >= 4 {
        while 4 << shift > depth {
            shift -= 1;
        }
    }
    shift
}

impl Sbitmap {
    /// A free map of `depth` bits for `cpus` CPUs. `min_shallow` is the scheduler's
    /// min_shallow_depth. `hint` gives the first allocation hint of each CPU and is taken modulo
    /// the depth. Panics if `depth` is zero.
    pub fn new(
        depth: u32,
        cpus: usize,
        rule: ShallowDepth,
        min_shallow: Option<u32>,
        waiters: usize,
        mut hint: impl FnMut() -> u32,
    ) -> Sbitmap {
        assert!(depth > 0, "a tag map without tags");
        let shift = shift_for(depth);
        let per_word = 1 << shift;
        let count = depth.div_ceil(per_word);
        let words = (0..count).map(|_| SbWord {
            word: Word::new(0),
            cleared: Word::new(0),
            swap: Lock::new(()),
        });
        Sbitmap {
            words: words.collect(),
            shift,
            size: Hint::new(depth),
            min_shallow,
            round_robin: false,
            shallow_rule: rule,
            freed_bits: FreedBits::Deferred,
            swap_lock: true,
            given_twice: false,
            batch_rule: BatchRule::ShareOne,
            batch_queues: WAIT_QUEUES as u32,
            hints: (0..cpus).map(|_| Hint::new(hint() % depth)).collect(),
            wait: (0..WAIT_QUEUES).map(|_| WaitState::new(waiters)).collect(),
            ws_active: Count::new(0),
            wake_index: Count::new(0),
            completion_cnt: Count::new(0),
            wakeup_cnt: Count::new(0),
            countdowns: Vec::new(),
            wake_batch: Hint::new(wake_batch(depth, per_word, rule, min_shallow)),
        }
    }

    /// sbitmap_queue_resize(): the words keep their size, whatever would suit the new depth. Panics
    /// if the map is in use, or has fewer bits.
    pub fn shrink(&mut self, depth: u32, min_shallow: Option<u32>) {
        assert!(depth > 0, "a tag map without tags");
        assert!(depth <= self.depth(), "a map only shrinks");
        assert_eq!(self.busy_count(), 0, "a map shrinks while it is not used");
        let per_word = 1 << self.shift;
        let count = depth.div_ceil(per_word);
        self.words.truncate(count as usize);
        self.size.put(depth);
        self.min_shallow = min_shallow;
        self.set_wake_batch(self.batch_of(depth));
    }

    /// Fewer bits, as a resize leaves them: the words stay.
    ///
    /// # Panics
    /// If the map is in use, or would have more bits than it was created with.
    pub fn reduce(&mut self, depth: u32) {
        assert!((1..=self.depth()).contains(&depth), "{depth} bits");
        assert_eq!(self.busy_count(), 0, "a map in use is resized step by step");
        self.size.put(depth);
        for hint in &self.hints {
            hint.put(hint.get() % depth);
        }
        self.set_wake_batch(self.batch_of(depth));
    }

    /// Another depth of a map in use. Panics if it has no bits, or more words than the map was
    /// created with.
    pub(crate) fn set_depth(&self, depth: u32) {
        assert!(depth > 0, "a map without bits");
        let words = depth.div_ceil(1 << self.shift) as usize;
        assert!(words <= self.words.len(), "a map has room for its depth");
        self.size.put(depth);
    }

    /// sbq_calc_wake_batch(): tags per wake-up of so many bits.
    pub(crate) fn batch_of(&self, depth: u32) -> u32 {
        wake_batch(depth, 1 << self.shift, self.shallow_rule, self.min_shallow)
    }

    #[inline]
    pub fn depth(&self) -> u32 {
        self.size.get()
    }

    /// Words in use (`map_nr`): a resize may leave further ones.
    #[inline]
    pub fn word_count(&self) -> u32 {
        self.depth().div_ceil(1 << self.shift)
    }

    /// Bits in use of a word (`__map_depth()`): all of them for a word past the last, which a
    /// search may have reached before a resize.
    #[inline]
    pub fn bits_of(&self, index: usize) -> u32 {
        let (full, depth, first) = (1 << self.shift, self.depth(), (index as u32) << self.shift);
        match depth > first && depth - first < full {
            true => depth - first,
            false => full,
        }
    }

    /// Fewer wait queues than kernels have: for a model without a choice among them. Panics unless
    /// 1 to 8 are left.
    pub fn keep_wait_queues(&mut self, count: usize) {
        assert!(
            (1..=self.wait.len()).contains(&count),
            "{count} wait queues"
        );
        self.wait.truncate(count);
    }

    /// sbitmap_queue_recalculate_wake_batch(): every user's share has to wake all wait queues.
    pub fn share_wake_batch(&self, users: u32) {
        let (queues, rule) = (self.batch_queues, self.batch_rule);
        let batch = rule.batch(queues, self.depth(), users.max(1));
        self.wake_batch.put(batch);
    }

    /// Sets another wake batch. Queues that count by themselves start again (6c0ca7ae292a, v4.11).
    pub fn set_wake_batch(&mut self, batch: u32) {
        assert!(batch > 0, "a wake-up for no tag");
        self.wake_batch.put(batch);
        let counts = self.countdowns.iter_mut();
        counts.for_each(|count| *count = Count::new(batch as i32));
    }

    /// Sets the rules of a map: the place of freed bits, whether they are merged back under a lock,
    /// the size of a batch, and whether each wait queue counts down by itself.
    pub fn follow(&mut self, rules: &Rules) {
        self.freed_bits = rules.freed_bits;
        self.swap_lock = rules.fixes.has(Fix::SwapLock);
        self.batch_rule = rules.share_batch;
        if let WakeScan::Countdown(_) = rules.wake_scan {
            let batch = self.wake_batch.get() as i32;
            self.countdowns = self.wait.iter().map(|_| Count::new(batch)).collect();
        }
    }

    /// Bits of word `index` that a request limited to `shallow` may use; no limit if `None`.
    /// Kernel: __map_depth_with_shallow() (v6.12), sbitmap_get_shallow() (v6.1).
    pub fn word_depth(&self, index: u32, shallow: Option<u32>) -> u32 {
        let full = self.bits_of(index as usize);
        let Some(shallow) = shallow else { return full };
        match self.shallow_rule {
            ShallowDepth::PerWord => full.min(shallow),
            ShallowDepth::Total if shallow >= self.depth() => full,
            ShallowDepth::Total => {
                let product = u64::from(full) * u64::from(shallow);
                let depth = u64::from(self.depth());
                let (share, remainder) = ((product / depth) as u32, product % depth);
                share + u32::from(remainder >= (u64::from(index) + 1) * u64::from(full))
            }
        }
    }

    /// A search of a word begins again at its first bit.
    fn wraps(&self, shallow: Option<u32>) -> bool {
        shallow.is_some() || !self.round_robin
    }

    /// The bits of a word that a search from `start` may take.
    pub(crate) fn usable(&self, index: u32, start: u32, shallow: Option<u32>) -> u64 {
        let from = if self.wraps(shallow) { 0 } else { start };
        u64::MAX >> (64 - self.word_depth(index, shallow)) & u64::MAX << from
    }

    /// __sbitmap_get_word(): takes a zero bit of a word, from `start` on.
    #[inline]
    pub(crate) fn get_in_word(
        &self,
        cpu: &mut Cpu,
        index: u32,
        start: u32,
        shallow: Option<u32>,
    ) -> Option<u32> {
        let depth = self.word_depth(index, shallow);
        if depth == 0 {
            return None;
        }
        let candidates = u64::MAX >> (64 - depth);
        let start = if start < depth { start } else { 0 };
        let word = &self.words[index as usize].word;
        let bit = word.acquire_zero(cpu, start, candidates, self.wraps(shallow))?;
        debug_assert!(bit < depth, "bit {bit} of a word with {depth}");
        debug_assert_eq!(word.peek() >> bit & 1, 1, "bit {bit} was taken");
        Some(bit + (index << self.shift))
    }

    /// sbitmap_deferred_clear() under swap_lock, which it releases: takes freed bits out of the
    /// word. True if there were, or if some of the `usable` ones are free.
    ///
    /// All searches that found the word full wait for the lock: none of them sees freed bits that
    /// are in neither word. Deviation(D13): both words change in one step, though searches read
    /// them without the lock. Frees may run meanwhile.
    pub(crate) fn deferred_clear(&self, cpu: &mut Cpu, index: u32, usable: Option<u64>) -> bool {
        let SbWord {
            word,
            cleared,
            swap,
        } = &self.words[index as usize];
        let were = cleared.load(cpu) != 0;
        if were {
            let freed = cleared.swap(cpu, 0);
            let before = word.fetch_and(cpu, !freed);
            let taken = before & freed == freed || self.given_twice;
            debug_assert!(taken, "a bit is given back that nobody had");
        }
        let again = were || usable.is_some_and(|usable| word.load(cpu) & usable != usable);
        swap.release(cpu);
        again
    }

    /// Takes a bit while nothing else runs.
    pub(crate) fn take_any(&self, cpu: &mut Cpu) -> Option<u32> {
        let (hint, words) = (self.hint_before(cpu), self.word_count());
        let first = hint >> self.shift;
        let bit = (0..words).find_map(|tried| {
            let index = (first + tried) % words;
            cpu.begin_label();
            self.get_in_word(cpu, index, 0, None).or_else(|| {
                self.words[index as usize].swap.acquire(cpu);
                self.deferred_clear(cpu, index, None);
                cpu.begin_label();
                self.get_in_word(cpu, index, 0, None)
            })
        });
        cpu.begin_label();
        self.hint_after(cpu, hint, bit);
        bit
    }

    /// This CPU's hint, re-drawn when it no longer fits.
    pub(crate) fn hint_before(&self, cpu: &mut Cpu) -> u32 {
        let slot = &self.hints[usize::from(cpu.id.0)];
        let hint = slot.get();
        let depth = self.depth();
        if hint < depth {
            return hint;
        }
        let redrawn = cpu.random_below(depth);
        slot.put(redrawn);
        redrawn
    }

    /// Moves the hint after an allocation that started from `hint` (update_alloc_hint_after_get).
    pub(crate) fn hint_after(&self, cpu: &Cpu, hint: u32, found: Option<u32>) {
        let slot = &self.hints[usize::from(cpu.id.0)];
        match found {
            None => slot.put(0),
            Some(bit) if bit == hint || self.round_robin => {
                let next = bit + 1;
                slot.put(if next >= self.depth() - 1 { 0 } else { next });
            }
            Some(_) => {}
        }
    }

    /// After a free: the hint of the CPU that allocated.
    pub(crate) fn hint_freed(&self, cpu: CpuId, bit: u32) {
        if !self.round_robin && bit < self.depth() {
            self.hints[usize::from(cpu.0)].put(bit);
        }
    }

    pub(crate) fn word_of(&self, bit: u32) -> usize {
        (bit >> self.shift) as usize
    }

    pub(crate) fn mask_of(&self, bit: u32) -> u64 {
        1 << (bit & ((1 << self.shift) - 1))
    }

    /// Busy bits, for assertions and reports.
    pub fn busy_count(&self) -> u32 {
        let busy = |w: &SbWord| (w.word.peek() & !w.cleared.peek()).count_ones();
        self.words.iter().map(busy).sum()
    }

    /// True if `bit` is taken, for assertions and reports.
    pub fn is_busy(&self, bit: u32) -> bool {
        let word = &self.words[(bit >> self.shift) as usize];
        let mask = 1 << (bit & ((1 << self.shift) - 1));
        word.word.peek() & !word.cleared.peek() & mask != 0
    }
}

/// Tags per wake-up (sbq_calc_wake_batch).
fn wake_batch(depth: u32, per_word: u32, rule: ShallowDepth, min_shallow: Option<u32>) -> u32 {
    let limit = min_shallow.unwrap_or(u32::MAX);
    let usable = match rule {
        ShallowDepth::Total => depth.min(limit),
        ShallowDepth::PerWord => {
            let words = depth.div_ceil(per_word);
            let last = depth - (words - 1) * per_word;
            (words - 1) * per_word.min(limit) + last.min(limit)
        }
    };
    (usable / WAIT_QUEUES as u32).clamp(1, WAKE_BATCH_MAX)
}

#[cfg(test)]
pub(crate) mod tests;
