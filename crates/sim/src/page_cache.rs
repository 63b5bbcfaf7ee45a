//! The page cache of one file: its pages that are present, under read, or marked for read-ahead.
//!
//! Pure data: no clock, no waiters, no queue. Bounded, and allocated once. Not here: read-ahead
//! (`readahead.rs`), waiting tasks. Kernel: mm/filemap.c. Pages are evicted in the order in which
//! they were added, as are those of a stream that are read once; there is no list of active pages.

use blkmq::time::SimTime;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Sectors of a page.
pub const PAGE_SECTORS: u64 = PAGE_BYTES / 512;

const NONE: u32 = u32::MAX;
/// The page of a slot that has none.
const NOWHERE: u64 = u64::MAX;

/// State of a page in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageState {
    /// Locked until its bio ends.
    UnderRead,
    /// Its data are valid, from this time on.
    UpToDate(SimTime),
    /// Its last read failed, at this time: the next reader reads it again.
    Failed(SimTime),
}

/// A page in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    pub state: PageState,
    /// PG_readahead: reading it asks for the next window.
    pub marked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    index: u64,
    page: Page,
    used: bool,
    /// The next slot of the same bucket.
    next: u32,
}

/// Statistics of pages, since the cache was created.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PageCounts {
    /// Pages that were added, each to be read from the disk.
    pub added: u64,
    /// Pages that were evicted unread.
    pub unused: u64,
    /// Pages in the cache that were not read yet.
    pub unread: u64,
}

/// The pages of one file or block device.
#[derive(Clone, Debug)]
pub struct PageCache {
    // Settings.
    pages: u64,

    // State.
    slots: Vec<Slot>,
    /// First slot of each bucket; a power of two of them.
    buckets: Vec<u32>,
    /// The slot that the next page gets.
    hand: usize,
    counts: PageCounts,
}

impl PageCache {
    /// A file of `pages` pages, with room for `room` of them.
    ///
    /// Panics if there is no room, or more than a u32 can count.
    pub fn new(pages: u64, room: usize) -> PageCache {
        assert!(room > 0, "a page has to go somewhere");
        assert!(room < NONE as usize, "slots have 32-bit numbers");
        let empty = Slot {
            index: NOWHERE,
            page: Page {
                state: PageState::UnderRead,
                marked: false,
            },
            used: false,
            next: NONE,
        };
        PageCache {
            pages,
            slots: vec![empty; room],
            buckets: vec![NONE; room.next_power_of_two()],
            hand: 0,
            counts: PageCounts::default(),
        }
    }

    /// Pages of the file.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    pub fn counts(&self) -> PageCounts {
        self.counts
    }

    /// The page of this number, if it is in the cache.
    pub fn find(&self, index: u64) -> Option<Page> {
        let slot = self.slot_of(index)?;
        Some(self.slots[slot].page)
    }

    /// A new page, locked for reading. False if every slot has a page that is under read, as when
    /// there is no free memory.
    ///
    /// Panics if it is there, or after the end of the file.
    pub fn add(&mut self, index: u64, marked: bool) -> bool {
        assert!(index < self.pages, "page {index} is after the end");
        assert!(self.find(index).is_none(), "page {index} is added twice");
        let Some(slot) = self.free_slot() else {
            return false;
        };
        let bucket = self.bucket(index);
        let page = Page {
            state: PageState::UnderRead,
            marked,
        };
        self.slots[slot] = Slot {
            index,
            page,
            used: false,
            next: self.buckets[bucket],
        };
        self.buckets[bucket] = slot as u32;
        self.counts.added += 1;
        self.counts.unread += 1;
        true
    }

    /// The read of a page has ended at `at`, with success or not. Panics if it is not under read.
    pub fn end_read(&mut self, index: u64, at: SimTime, well: bool) {
        let page = self.page_mut(index);
        assert_eq!(page.state, PageState::UnderRead, "page {index} is not read");
        page.state = if well {
            PageState::UpToDate(at)
        } else {
            PageState::Failed(at)
        };
    }

    /// A page whose read failed is locked for another read. Panics if it is in another state.
    pub fn read_again(&mut self, index: u64) {
        let page = self.page_mut(index);
        let failed = matches!(page.state, PageState::Failed(_));
        assert!(failed, "page {index} has not failed");
        page.state = PageState::UnderRead;
    }

    /// Takes the mark of a page away. Panics if it is not there.
    pub fn clear_mark(&mut self, index: u64) {
        self.page_mut(index).marked = false;
    }

    /// The page was read. Panics if it is not there.
    pub fn use_page(&mut self, index: u64) {
        let slot = self
            .slot_of(index)
            .expect("a page is found before it is read");
        let used = core::mem::replace(&mut self.slots[slot].used, true);
        self.counts.unread -= u64::from(!used);
    }

    /// The first missing page from `index` on, among `most`; else the one after them
    /// (page_cache_next_miss()).
    pub fn next_miss(&self, index: u64, most: u64) -> u64 {
        let mut all = index..index.saturating_add(most);
        all.find(|&index| self.find(index).is_none())
            .unwrap_or(index.saturating_add(most))
    }

    /// The first missing page from `index` on, before `end`; else `end`.
    pub fn first_missing(&self, index: u64, end: u64) -> u64 {
        self.next_miss(index, end - index)
    }

    /// Drops pages that are not under read (invalidate_mapping_pages()).
    pub fn forget(&mut self) {
        for slot in 0..self.slots.len() {
            let Slot { index, page, .. } = self.slots[slot];
            if index != NOWHERE && page.state != PageState::UnderRead {
                self.remove(slot);
            }
        }
    }

    /// The page was read, if it is still in the cache.
    pub fn use_if_there(&mut self, index: u64) {
        if self.find(index).is_some() {
            self.use_page(index);
        }
    }

    /// Number of pages without a gap right before `index`, at most `most` (page_cache_prev_miss()).
    pub fn run_before(&self, index: u64, most: u64) -> u64 {
        let pages = (0..most.min(index)).take_while(|back| self.find(index - 1 - back).is_some());
        pages.count() as u64
    }

    /// Each page that is under read.
    pub fn under_read(&self) -> impl Iterator<Item = u64> {
        let pages = self.slots.iter().filter(|slot| slot.index != NOWHERE);
        let read = pages.filter(|slot| slot.page.state == PageState::UnderRead);
        read.map(|slot| slot.index)
    }

    /// Checks all structures against each other. For tests.
    pub fn check(&self) {
        let mut found = 0;
        for (number, slot) in self.slots.iter().enumerate() {
            if slot.index != NOWHERE {
                assert_eq!(self.slot_of(slot.index), Some(number), "page in its bucket");
                found += 1;
            }
        }
        let mut chained = 0;
        for &first in &self.buckets {
            let mut slot = first;
            while slot != NONE {
                chained += 1;
                slot = self.slots[slot as usize].next;
            }
        }
        assert_eq!(found, chained, "slots in buckets");
        let unread = self.slots.iter().filter(|s| s.index != NOWHERE && !s.used);
        assert_eq!(unread.count() as u64, self.counts.unread, "unread pages");
    }

    fn page_mut(&mut self, index: u64) -> &mut Page {
        let slot = self.slot_of(index).expect("the page is in the cache");
        &mut self.slots[slot].page
    }

    fn slot_of(&self, index: u64) -> Option<usize> {
        let mut slot = self.buckets[self.bucket(index)];
        while slot != NONE {
            let found = &self.slots[slot as usize];
            if found.index == index {
                return Some(slot as usize);
            }
            slot = found.next;
        }
        None
    }

    /// Pages of a stream lie in buckets one after another.
    fn bucket(&self, index: u64) -> usize {
        (index & (self.buckets.len() as u64 - 1)) as usize
    }

    /// The slot of the oldest page that is not under read, emptied.
    fn free_slot(&mut self) -> Option<usize> {
        for _ in 0..self.slots.len() {
            let slot = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            let Slot { index, page, .. } = self.slots[slot];
            if index == NOWHERE {
                return Some(slot);
            }
            if page.state != PageState::UnderRead {
                self.remove(slot);
                return Some(slot);
            }
        }
        None
    }

    fn remove(&mut self, slot: usize) {
        let Slot {
            index, used, next, ..
        } = self.slots[slot];
        let bucket = self.bucket(index);
        if self.buckets[bucket] == slot as u32 {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket] as usize;
            while self.slots[before].next != slot as u32 {
                before = self.slots[before].next as usize;
            }
            self.slots[before].next = next;
        }
        self.slots[slot].index = NOWHERE;
        self.counts.unused += u64::from(!used);
        self.counts.unread -= u64::from(!used);
    }
}

#[cfg(test)]
mod tests;
