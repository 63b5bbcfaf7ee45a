//! On-demand read-ahead: the pages that a read of a missing or a marked page asks for.
//!
//! Pure: knows the cache's pages and no queue. One state for each open file. Not here: bios and
//! waiting. Kernel: mm/readahead.c of 2.6.32.2, 6.1.192 and 6.12.117.

mod rules;

pub use rules::{
    Expected, History, MarkAt, Oversize, OwnMark, PrevPos, RandomAdvice, RawBios, ReadAheadRules,
    Rest,
};

use crate::page_cache::{PAGE_BYTES, PageCache};

/// posix_fadvise(2) of an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Advice {
    #[default]
    Normal,
    /// POSIX_FADV_SEQUENTIAL: windows of twice the length.
    Sequential,
    /// POSIX_FADV_RANDOM.
    Random,
}

/// A device's limits for read-ahead, pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RaLimits {
    /// queue/read_ahead_kb.
    pub ra_pages: u64,
    /// The optimal I/O size of the queue (bdi->io_pages).
    pub io_pages: u64,
}

/// Pages to read, without those among them that are there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// First page.
    pub start: u64,
    /// How many, at least 1; none is after the end of the file.
    pub pages: u64,
    /// The page that gets the mark if it was missing.
    pub mark: Option<u64>,
}

/// The read-ahead state of an open file (struct file_ra_state), with its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadAhead {
    // Settings.
    rules: ReadAheadRules,
    limits: RaLimits,
    advice: Advice,

    // State.
    start: u64,
    size: u64,
    async_size: u64,
    prev_pos: u64,
}

impl ReadAhead {
    pub fn new(rules: ReadAheadRules, limits: RaLimits, advice: Advice) -> ReadAhead {
        ReadAhead {
            rules,
            limits,
            advice,
            start: 0,
            size: 0,
            async_size: 0,
            prev_pos: u64::MAX,
        }
    }

    /// First page of the last window, how many, and how many from the mark on.
    pub fn window(&self) -> (u64, u64, u64) {
        (self.start, self.size, self.async_size)
    }

    pub fn rules(&self) -> &ReadAheadRules {
        &self.rules
    }

    /// Most pages of a window: twice as many after POSIX_FADV_SEQUENTIAL, none after
    /// POSIX_FADV_RANDOM where that means page by page.
    pub fn most(&self) -> u64 {
        match (self.advice, self.rules.random) {
            (Advice::Sequential, _) => 2 * self.limits.ra_pages,
            (Advice::Random, RandomAdvice::PageByPage) => 0,
            _ => self.limits.ra_pages,
        }
    }

    /// A page was copied to the reader, up to this byte of the file.
    pub fn copied(&mut self, upto: u64) {
        if self.rules.prev_pos == PrevPos::BehindEachPage {
            self.prev_pos = upto;
        }
    }

    /// A read(2) that returned data ends at this byte, not 0.
    pub fn read_ends(&mut self, upto: u64) {
        self.prev_pos = match self.rules.prev_pos {
            PrevPos::BehindEachPage | PrevPos::BehindRead => upto,
            // After a whole page the offset in it is 0 again.
            PrevPos::LastPage if upto.is_multiple_of(PAGE_BYTES) => upto - PAGE_BYTES,
            PrevPos::LastPage => upto,
        };
    }

    /// A failed page (shrink_readahead_size_eio()).
    pub fn shrink(&mut self) {
        self.limits.ra_pages /= 4;
    }

    /// The page of this number is missing (page_cache_sync_readahead()), and `asked` pages from it
    /// on are wanted. `None`, or a window without the page: the page was evicted while the window
    /// after it was read, and has to be read [by itself](Window::of_page).
    ///
    /// Panics if no page is wanted, or the page is there or after the end.
    pub fn miss(&mut self, cache: &PageCache, index: u64, asked: u64) -> Option<Window> {
        assert!(asked > 0, "a read wants a page");
        assert!(cache.find(index).is_none(), "page {index} is there");
        assert!(index < cache.pages(), "page {index} is after the end");
        if self.most() == 0 {
            return Some(Window::of_page(index));
        }
        if self.advice == Advice::Random {
            let device = self.limits.io_pages.max(self.limits.ra_pages);
            return Some(as_asked(cache, index, asked.min(device)));
        }
        if self.rules.expected == Expected::MarkOrEnd {
            return self.on_demand(cache, index, asked, false);
        }
        let most = self.most_of(asked);
        if index == 0 || asked > most || self.follows(index) {
            self.initial(index, asked, most);
        } else if !self.history(cache, index, asked, most) {
            return Some(as_asked(cache, index, asked));
        }
        self.inside(cache)
    }

    /// A page with the mark is read (page_cache_async_readahead()); the caller has cleared the
    /// mark. `None`: no read is needed.
    pub fn mark(&mut self, cache: &PageCache, index: u64, asked: u64) -> Option<Window> {
        if self.most() == 0 {
            return None;
        }
        if self.rules.expected == Expected::MarkOrEnd {
            return self.on_demand(cache, index, asked, true);
        }
        let most = self.most_of(asked);
        if index == self.start + self.size - self.async_size {
            self.advance(most);
        } else if !self.around_mark(cache, index, asked, most) {
            return None;
        }
        self.inside(cache)
    }

    /// ondemand_readahead(), which both kinds call up to v6.9.
    fn on_demand(
        &mut self,
        cache: &PageCache,
        index: u64,
        asked: u64,
        marked: bool,
    ) -> Option<Window> {
        let most = self.most_of(asked);
        let end = self.start + self.size;
        if index == 0 {
            self.initial(index, asked, most);
        } else if index == end - self.async_size || index == end {
            self.advance(most);
        } else if marked {
            if !self.around_mark(cache, index, asked, most) {
                return None;
            }
        } else if asked > most || self.follows(index) {
            self.initial(index, asked, most);
        } else if !self.history(cache, index, asked, most) {
            return Some(as_asked(cache, index, asked));
        }
        if index == self.start && self.size == self.async_size {
            self.append_next(most);
        }
        self.inside(cache)
    }

    fn most_of(&self, asked: u64) -> u64 {
        let most = self.most();
        match self.rules.oversize {
            Oversize::DeviceSize if asked > most && self.limits.io_pages > most => {
                asked.min(self.limits.io_pages)
            }
            Oversize::DeviceSize | Oversize::Window => most,
        }
    }

    /// It is the page that was read last, or the next one.
    fn follows(&self, index: u64) -> bool {
        index.wrapping_sub(self.prev_pos / PAGE_BYTES) <= 1
    }

    fn initial(&mut self, index: u64, asked: u64, most: u64) {
        self.start = index;
        self.size = initial_size(asked, most);
        self.async_size = match self.rules.rest {
            _ if self.size > asked => self.size - asked,
            Rest::Whole => self.size,
            Rest::Half => self.size / 2,
        };
    }

    /// The next window, after the last one.
    fn advance(&mut self, most: u64) {
        let next = next_size(self.size, most);
        self.start += self.size;
        self.size = match self.rules.oversize {
            Oversize::DeviceSize => next.max(self.size),
            Oversize::Window => next,
        };
        self.async_size = self.size;
    }

    /// The mark of another reader: the pages after it are as long as the last window was. False if
    /// there are too many.
    fn around_mark(&mut self, cache: &PageCache, index: u64, asked: u64, most: u64) -> bool {
        let start = cache.next_miss(index + 1, most);
        if start - index > most {
            return false;
        }
        self.start = start;
        self.size = next_size(start - index + asked, most);
        self.async_size = self.size;
        true
    }

    /// Traces that a stream has left in the cache. False if there are none.
    fn history(&mut self, cache: &PageCache, index: u64, asked: u64, most: u64) -> bool {
        let mut count = cache.run_before(index, most);
        let few = match self.rules.history {
            History::Any => 0,
            History::MoreThanAsked => asked,
        };
        if count <= few {
            return false;
        }
        if count >= index {
            // From the start of the file: likely the whole of it.
            count *= 2;
        }
        self.start = index;
        match self.rules.history {
            History::Any => {
                self.size = initial_size(count + asked, most);
                self.async_size = self.size;
            }
            History::MoreThanAsked => {
                self.size = (count + asked).min(most);
                self.async_size = 1;
            }
        }
        true
    }

    /// The read of this page would meet the mark in it: the next window becomes part of this one.
    fn append_next(&mut self, most: u64) {
        let next = next_size(self.size, most);
        match self.rules.own_mark {
            OwnMark::Met => {}
            OwnMark::WithinMost if self.size + next > most => {
                self.size = most;
                self.async_size = most / 2;
            }
            OwnMark::Appends | OwnMark::WithinMost => {
                self.async_size = next;
                self.size += next;
            }
        }
    }

    /// The part of the state's window that lies in the file, if any.
    fn inside(&self, cache: &PageCache) -> Option<Window> {
        let rest = cache.pages().checked_sub(self.start)?;
        let pages = self.size.min(rest);
        let whole = match self.rules.mark {
            MarkAt::OfWindow => self.size,
            MarkAt::BeforeEnd | MarkAt::NoneAtEnd => pages,
        };
        let cut = self.rules.mark == MarkAt::NoneAtEnd && self.size >= rest;
        let mark = whole.checked_sub(self.async_size).filter(|_| !cut);
        (pages > 0).then(|| Window {
            start: self.start,
            pages,
            mark: mark.filter(|&at| at < pages).map(|at| self.start + at),
        })
    }
}

impl Window {
    /// One page, without a mark.
    pub fn of_page(index: u64) -> Window {
        Window {
            start: index,
            pages: 1,
            mark: None,
        }
    }
}

/// The requested pages, without a mark, and without a change of the state.
fn as_asked(cache: &PageCache, index: u64, pages: u64) -> Window {
    Window {
        pages: pages.min(cache.pages() - index),
        ..Window::of_page(index)
    }
}

/// get_init_ra_size().
fn initial_size(asked: u64, most: u64) -> u64 {
    match asked.next_power_of_two() {
        size if size <= most / 32 => size * 4,
        size if size <= most / 4 => size * 2,
        _ => most,
    }
}

/// get_next_ra_size().
fn next_size(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        4 * size
    } else {
        (2 * size).min(most)
    }
}

#[cfg(test)]
mod tests;
