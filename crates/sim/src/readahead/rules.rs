//! Kernel variants of read-ahead and buffered reading as data, one small enum for each difference.
//!
//! Source: mm/readahead.c and mm/filemap.c of 2.6.32.2, 2.6.35.6, 4.20, 6.1.192 and 6.12.117.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadAheadRules {
    pub name: &'static str,
    /// Pages of the last window that continue the stream.
    pub expected: Expected,
    /// When pages before a missing one show a stream.
    pub history: History,
    /// A first window that is no longer than the request.
    pub rest: Rest,
    /// A window whose first page would be marked, and is the page being read.
    pub own_mark: OwnMark,
    pub oversize: Oversize,
    /// Place of the mark in a window that the end of the file cuts.
    pub mark: MarkAt,
    pub prev_pos: PrevPos,
    pub random: RandomAdvice,
    /// Most pages that one lookup in the cache returns.
    pub batch_pages: u64,
    /// Bios of a block device that is read without a file system.
    pub raw_bios: RawBios,
}

/// Pages of the last window that continue the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// The marked one and the one after the window, whether there or missing (to v6.9).
    MarkOrEnd,
    /// The marked one, if it is there (v6.10 and later).
    Mark,
}

/// When pages before a missing one show a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// If there is one: a window as for a first read of them and the request (2.6.32).
    Any,
    /// If there are more than requested: as many as both, with one page after the mark (v3.14 and
    /// later).
    MoreThanAsked,
}

/// A first window that is no longer than the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// The mark is on its first page.
    Whole,
    /// The mark is in its middle (v6.10 and later).
    Half,
}

/// A window whose first page would be marked, and is the page being read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OwnMark {
    /// The next window is appended, which may exceed the maximum (2.6.32).
    Appends,
    /// The same, up to the maximum (v4.10 and later).
    WithinMost,
    /// The next lookup finds the mark (v6.10 and later).
    Met,
}

/// A read longer than the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oversize {
    /// Goes in windows (2.6.32).
    Window,
    /// Goes in I/Os of the device's optimal size (io_pages; v4.10 and later), which later windows
    /// keep.
    DeviceSize,
}

/// Place of the mark in a window that the end of the file cuts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkAt {
    /// Where it would be without the end (2.6.32).
    OfWindow,
    /// As far before the end (v5.8 and later).
    BeforeEnd,
}

/// Meaning of prev_pos.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrevPos {
    /// The last page of the last read(2) (2.6.32).
    LastPage,
    /// The position after the last page that was copied (v6.1).
    BehindEachPage,
    /// The position after the last read(2) (v6.12).
    BehindRead,
}

/// Effect of POSIX_FADV_RANDOM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomAdvice {
    /// Pages are read one by one (2.6.32).
    PageByPage,
    /// The requested pages are read, and no more (v2.6.34 and later).
    AsAsked,
}

/// Bios of a block device that is read without a file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RawBios {
    /// One a page (2.6.32: def_blk_aops has no readpages).
    EachPage,
    /// One for each run of adjacent pages (mpage_readahead()).
    EachRun,
}

impl ReadAheadRules {
    /// Linux 2.6.32 (2.6.32.2).
    pub const V2_6_32: ReadAheadRules = ReadAheadRules {
        name: "2.6.32",
        expected: Expected::MarkOrEnd,
        history: History::Any,
        rest: Rest::Whole,
        own_mark: OwnMark::Appends,
        oversize: Oversize::Window,
        mark: MarkAt::OfWindow,
        prev_pos: PrevPos::LastPage,
        random: RandomAdvice::PageByPage,
        batch_pages: 1,
        raw_bios: RawBios::EachPage,
    };

    /// Linux 2.6.35 (2.6.35.6).
    pub const V2_6_35: ReadAheadRules = ReadAheadRules {
        name: "2.6.35",
        random: RandomAdvice::AsAsked,
        ..ReadAheadRules::V2_6_32
    };

    /// Linux 4.20.
    pub const V4_20: ReadAheadRules = ReadAheadRules {
        name: "v4.20",
        history: History::MoreThanAsked,
        own_mark: OwnMark::WithinMost,
        oversize: Oversize::DeviceSize,
        raw_bios: RawBios::EachRun,
        ..ReadAheadRules::V2_6_35
    };

    /// Linux 6.1 stable (6.1.192).
    pub const V6_1: ReadAheadRules = ReadAheadRules {
        name: "v6.1",
        mark: MarkAt::BeforeEnd,
        prev_pos: PrevPos::BehindEachPage,
        batch_pages: 15,
        ..ReadAheadRules::V4_20
    };

    /// Linux 6.12 stable (6.12.117).
    pub const V6_12: ReadAheadRules = ReadAheadRules {
        name: "v6.12",
        expected: Expected::Mark,
        rest: Rest::Half,
        own_mark: OwnMark::Met,
        prev_pos: PrevPos::BehindRead,
        batch_pages: 31,
        ..ReadAheadRules::V6_1
    };

    /// All presets, oldest first.
    pub const PRESETS: [ReadAheadRules; 5] = [
        ReadAheadRules::V2_6_32,
        ReadAheadRules::V2_6_35,
        ReadAheadRules::V4_20,
        ReadAheadRules::V6_1,
        ReadAheadRules::V6_12,
    ];

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
        let mut all = ReadAheadRules::PRESETS.into_iter();
        all.find(|rules| bare(rules.name) == bare(name))
    }
}
