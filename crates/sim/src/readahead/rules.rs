//! Kernel variants of read-ahead and buffered reading as data, one row for each difference.
//!
//! The form of a row: `blkmq/src/rules/axes.rs`. Source: mm/readahead.c and mm/filemap.c of
//! 2.6.32.2, 2.6.35.6, 4.20, 6.1.192 and 6.12.117.

blkmq::axes! {
    pub struct ReadAheadRules(name), const {
        V2_6_32 "2.6.32",
        V2_6_35 "2.6.35" = V2_6_32,
        V4_20 "v4.20" = V2_6_35,
        V6_1 "v6.1" = V4_20,
        V6_6 "v6.6" = V6_1,
        V6_12 "v6.12" = V6_6,
        V6_18 "v6.18" = V6_12,
        V7_2 "v7.2" = V6_18,
    }

    /// The stream is continued by the marked page of the last window and by the page after that
    /// window, whether there or missing (to v6.9), or by the marked page if it is there
    /// (ondemand_readahead(), v6.10).
    expected: Expected { V2_6_32 => MarkOrEnd, V6_12 => Mark }
    /// When pages before a missing one show a stream (try_context_readahead()).
    history: History {
        V2_6_32 => Any /// If there is one: a window as for a first read of them and the request.
        V4_20 => MoreThanAsked
            /// If there are more than requested: as many as both, with one page after the mark
            /// (v3.14).
    }
    /// A first window that is no longer than the request has the mark on its first page, or in its
    /// middle (v6.10).
    rest: Rest { V2_6_32 => Whole, V6_12 => Half }
    /// A window whose first page would be marked, and is the page being read.
    own_mark: OwnMark {
        V2_6_32 => Appends /// The next window is appended, which may exceed the maximum.
        V4_20 => WithinMost /// The same, up to the maximum (v4.10).
        V6_12 => Met /// The next lookup finds the mark (v6.10).
    }
    /// A read longer than the window goes in windows, or in I/Os of the device's optimal size
    /// (io_pages, v4.10), which later windows keep.
    oversize: Oversize { V2_6_32 => Window, V4_20 => DeviceSize }
    /// The mark in a window that the end of the file cuts is where it would be without the end, or
    /// as far before the end (do_page_cache_ra(), v5.8), or there is none (7.2).
    mark: MarkAt { V2_6_32 => OfWindow, V6_1 => BeforeEnd, V7_2 => NoneAtEnd }
    /// prev_pos is the last page of the last read(2), the position after the last page that was
    /// copied, or the position after the last read(2).
    prev_pos: PrevPos { V2_6_32 => LastPage, V6_1 => BehindEachPage, V6_6 => BehindRead }
    /// After POSIX_FADV_RANDOM pages are read one by one, or the requested pages and no more
    /// (force_page_cache_readahead(), v2.6.34).
    random: RandomAdvice { V2_6_32 => PageByPage, V2_6_35 => AsAsked }
    /// Most pages that one lookup in the cache returns.
    batch_pages: u64 [V2_6_32 => 1, V6_1 => 15, V6_12 => 31]
    /// A block device that is read without a file system gets a bio for each page (def_blk_aops has
    /// no readpages), or one for each run of adjacent pages (mpage_readahead()).
    raw_bios: RawBios { V2_6_32 => EachPage, V4_20 => EachRun }
}

impl ReadAheadRules {
    /// Read-ahead of the kernel whose rules have this name ([`blkmq::rules::Rules::name`]).
    pub fn of_kernel(rules: &str) -> Option<ReadAheadRules> {
        let like = match rules {
            "v2.6.32-rc5" | "v2.6.32-rc5-coop" | "v2.6.33" => "2.6.32",
            same => same,
        };
        ReadAheadRules::by_name(like)
    }

    /// The preset of this name, with or without the "v".
    pub fn by_name(name: &str) -> Option<ReadAheadRules> {
        let bare = |name: &str| name.strip_prefix('v').unwrap_or(name).to_owned();
        let mut all = ReadAheadRules::ALL.into_iter();
        all.find(|rules| bare(rules.name) == bare(name))
    }
}
