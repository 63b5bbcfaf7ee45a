//! Read-ahead against sequences that were computed by hand, and properties of any sequence.

use blkmq::time::SimTime;
use proptest::prelude::*;

use super::{Advice, RaLimits, ReadAhead, ReadAheadRules, Window};
use crate::page_cache::{PAGE_BYTES, PageCache};

const LIMITS: RaLimits = RaLimits {
    ra_pages: 32,
    io_pages: 320,
};
const V2_6_32: ReadAheadRules = ReadAheadRules::V2_6_32;
const V6_1: ReadAheadRules = ReadAheadRules::V6_1;
const V6_12: ReadAheadRules = ReadAheadRules::V6_12;

/// Reads pages as a program would, each page there as soon as it is asked for.
struct Walk {
    cache: PageCache,
    ra: ReadAhead,
    /// Each window: whether for a missing page, and what of it was read.
    asked: Vec<(bool, Window)>,
}

impl Walk {
    fn new(rules: ReadAheadRules, pages: u64) -> Walk {
        Walk::advised(rules, pages, Advice::Normal)
    }

    fn advised(rules: ReadAheadRules, pages: u64, advice: Advice) -> Walk {
        Walk {
            cache: PageCache::new(pages, pages as usize),
            ra: ReadAhead::new(rules, LIMITS, advice),
            asked: Vec::new(),
        }
    }

    fn fetch(&mut self, window: Window) {
        for page in window.start..window.start + window.pages {
            if self.cache.find(page).is_none() {
                assert!(self.cache.add(page, window.mark == Some(page)));
                self.cache.end_read(page, SimTime::ZERO, true);
            }
        }
    }

    /// One read(2) of whole pages. Windows that it asked for: start, pages, mark.
    fn read(&mut self, first: u64, count: u64) -> Vec<(u64, u64, Option<u64>)> {
        let before = self.asked.len();
        let end = (first + count).min(self.cache.pages());
        for page in first..end {
            if self.cache.find(page).is_none() {
                let window = self.ra.miss(&self.cache, page, end - page);
                if let Some(window) = window {
                    self.asked.push((true, window));
                    self.fetch(window);
                }
                if self.cache.find(page).is_none() {
                    self.fetch(Window::of_page(page));
                }
            }
            if self.cache.find(page).is_some_and(|page| page.marked) {
                self.cache.clear_mark(page);
                if let Some(window) = self.ra.mark(&self.cache, page, end - page) {
                    self.asked.push((false, window));
                    self.fetch(window);
                }
            }
            self.cache.use_page(page);
            self.ra.copied((page + 1) * PAGE_BYTES);
        }
        self.ra.read_ends(end * PAGE_BYTES);
        let new = self.asked[before..].iter();
        new.map(|(_, w)| (w.start, w.pages, w.mark)).collect()
    }
}

/// Reads of one page, from the start: 4, 8, 16, then 32 pages, each asked for at the mark.
#[test]
fn a_window_grows_from_four_pages_to_the_most() {
    for rules in ReadAheadRules::ALL {
        let mut walk = Walk::new(rules, 1000);
        let mut all = Vec::new();
        for page in 0..200 {
            for window in walk.read(page, 1) {
                all.push((page, window));
            }
        }
        let expected = [
            (0, (0, 4, Some(1))),
            (1, (4, 8, Some(4))),
            (4, (12, 16, Some(12))),
            (12, (28, 32, Some(28))),
            (28, (60, 32, Some(60))),
            (60, (92, 32, Some(92))),
        ];
        assert_eq!(all[..6], expected, "{}", rules.name);
    }
}

/// read(2) of 16 pages begins with the most: more than 8 pages are not doubled.
#[test]
fn a_long_first_read_gets_the_most() {
    let mut walk = Walk::new(V2_6_32, 1000);
    assert_eq!(walk.read(0, 16), [(0, 32, Some(16))]);
    assert_eq!(walk.read(16, 16), [(32, 32, Some(32))]);
    assert_eq!(walk.read(32, 16), [(64, 32, Some(64))]);
}

/// The window is no longer than the request, so its mark is on the page that is read: the next
/// window joins it in 2.6.32, half of it is after the mark later.
#[test]
fn a_read_as_long_as_the_window() {
    let first = |rules| Walk::new(rules, 1000).read(0, 32);
    assert_eq!(first(V2_6_32), [(0, 64, Some(32))]);
    assert_eq!(first(V6_1), [(0, 32, Some(16)), (32, 32, Some(32))]);
    assert_eq!(first(V6_12), [(0, 32, Some(16)), (32, 32, Some(32))]);
}

/// A longer one goes in I/Os of the device's size since v4.10.
#[test]
fn a_read_longer_than_the_window() {
    let first = |rules| Walk::new(rules, 1000).read(0, 64);
    let old = [(0, 64, Some(32)), (64, 32, Some(64))];
    assert_eq!(first(V2_6_32), old);
    assert_eq!(first(V6_1)[0], (0, 64, Some(32)));
    let mut walk = Walk::new(V6_1, 1000);
    walk.read(0, 64);
    let later = walk.read(64, 1);
    assert_eq!(later, [(128, 64, Some(128))], "and windows stay as long");
}

/// One page somewhere is read by itself, the next one shows a stream.
#[test]
fn a_random_read_leaves_no_trace() {
    for rules in ReadAheadRules::ALL {
        let mut walk = Walk::new(rules, 1000);
        assert_eq!(walk.read(500, 1), [(500, 1, None)], "{}", rules.name);
        assert_eq!(walk.ra.window(), (0, 0, 0));
        assert_eq!(walk.read(501, 1), [(501, 4, Some(502))], "{}", rules.name);
    }
}

/// Since prev_pos is the position after the read, and not its last page, one page may be left out.
#[test]
fn a_page_left_out() {
    let second = |rules| {
        let mut walk = Walk::new(rules, 1000);
        walk.read(500, 1);
        walk.read(502, 1)
    };
    assert_eq!(second(V2_6_32), [(502, 1, None)]);
    assert_eq!(second(V6_1), [(502, 4, Some(503))]);
}

/// Another open file has read up to there: 2.6.32 goes by one page, later kernels by more than are
/// asked for.
#[test]
fn pages_before_show_a_stream() {
    let after = |rules, before: u64| {
        let mut walk = Walk::new(rules, 1000);
        walk.fetch(Window {
            start: 100,
            pages: before,
            mark: None,
        });
        walk.read(100 + before, 4)
    };
    assert_eq!(after(V2_6_32, 1), [(101, 48, Some(117))]);
    assert_eq!(after(V6_1, 4), [(104, 4, None)]);
    assert_eq!(after(V6_1, 5), [(105, 9, Some(113))]);
    assert_eq!(after(V6_12, 5), [(105, 9, Some(113))]);
}

/// Pages from the start of the file count twice.
#[test]
fn pages_from_the_start_count_twice() {
    let mut walk = Walk::new(V6_1, 1000);
    walk.fetch(Window {
        start: 0,
        pages: 6,
        mark: None,
    });
    assert_eq!(walk.read(6, 2), [(6, 14, Some(19))]);
}

/// The mark of another open file: the pages after it are taken for the last window.
#[test]
fn the_mark_of_another() {
    for rules in ReadAheadRules::ALL {
        let mut walk = Walk::new(rules, 1000);
        walk.fetch(Window {
            start: 100,
            pages: 8,
            mark: Some(100),
        });
        // 8 pages from the marked one on, and 2 asked for: twice that.
        assert_eq!(walk.read(100, 2), [(108, 20, Some(108))], "{}", rules.name);
        // As much as a window's most: nothing is asked for.
        let mut walk = Walk::new(rules, 1000);
        walk.fetch(Window {
            start: 100,
            pages: 40,
            mark: Some(100),
        });
        assert_eq!(walk.read(100, 2), [], "{}", rules.name);
    }
}

/// Pages that are there already are left out, and do not get the mark.
#[test]
fn the_end_of_the_file_cuts() {
    let mut walk = Walk::new(V2_6_32, 40);
    assert_eq!(walk.read(0, 16), [(0, 32, Some(16))]);
    assert_eq!(walk.read(16, 16), [(32, 8, Some(32))]);
    assert_eq!(walk.read(32, 8), [], "no page is after the end");
    // 8 pages of which 5 are after the mark, and 5 pages are left.
    let cut = |rules| {
        let mut walk = Walk::new(rules, 10);
        walk.read(4, 1);
        walk.read(5, 3)
    };
    assert_eq!(cut(V2_6_32), [(5, 5, Some(8))], "as without the end");
    assert_eq!(cut(V6_1), [(5, 5, Some(5))], "as far before the end");
}

#[test]
fn advice() {
    let first = |rules, advice| Walk::advised(rules, 1000, advice).read(0, 16)[0];
    assert_eq!(first(V6_1, Advice::Sequential), (0, 32, Some(16)));
    let mut walk = Walk::advised(V6_1, 1000, Advice::Sequential);
    walk.read(0, 16);
    assert_eq!(walk.read(16, 16), [(32, 64, Some(32))]);
    assert_eq!(first(V6_1, Advice::Random), (0, 16, None));
    assert_eq!(first(V2_6_32, Advice::Random), (0, 1, None));
}

/// Pieces of 16 pages of three readers that share a cache: each has windows of its own, which the
/// others then find.
#[test]
fn readers_of_pieces_share_what_they_read() {
    let mut cache = Walk::new(V2_6_32, 4000);
    let mut states = [cache.ra; 3];
    let mut read = 0;
    for piece in 0..60 {
        let reader = piece % 3;
        cache.ra = states[reader];
        for (_, pages, _) in cache.read(piece as u64 * 16, 16) {
            read += pages;
        }
        states[reader] = cache.ra;
    }
    // Windows of one overlap with what the others have read, or is left over at the end.
    assert!(
        (960..=960 + 3 * 64).contains(&cache.cache.counts().added),
        "{read}"
    );
    assert!(cache.cache.counts().added <= read);
}

fn rules() -> impl Strategy<Value = ReadAheadRules> {
    prop::sample::select(&ReadAheadRules::ALL)
}

proptest! {
    /// After any sequence of reads: the requested pages are there, and windows stay within bounds.
    #[test]
    fn what_is_read_is_there(
        rules in rules(),
        reads in prop::collection::vec((0_u64..300, 1_u64..80), 1..60),
    ) {
        let mut walk = Walk::new(rules, 300);
        for (first, count) in reads {
            walk.read(first, count);
            for page in first..(first + count).min(300) {
                prop_assert!(walk.cache.find(page).is_some());
            }
            walk.cache.check();
            let longest = match rules.name {
                // Two windows in one.
                "2.6.32" => 64,
                // io_pages, or what is asked for, if that is longer.
                _ => 80,
            };
            for (_, window) in &walk.asked {
                prop_assert!(window.pages <= longest.max(count), "{window:?}");
                prop_assert!(window.start + window.pages <= 300);
            }
        }
    }

    /// A sequential reader comes to windows of 32 pages, each with its mark on its first page and
    /// asked for there, for any start and any length of its reads.
    #[test]
    fn a_stream_comes_to_steady_windows(
        rules in rules(),
        first in 0_u64..1000,
        count in 1_u64..32,
    ) {
        let mut walk = Walk::new(rules, 4000);
        let mut page = first;
        while page + count < first + 1000 {
            walk.read(page, count);
            page += count;
        }
        let last = &walk.asked[walk.asked.len() - 5..];
        for (missing, window) in last {
            prop_assert!(!missing);
            prop_assert_eq!(window.pages, 32);
            prop_assert_eq!(window.mark, Some(window.start));
        }
        let pages: u64 = walk.asked.iter().map(|(_, window)| window.pages).sum();
        prop_assert_eq!(pages, walk.cache.counts().added, "each page is read once");
    }
}
