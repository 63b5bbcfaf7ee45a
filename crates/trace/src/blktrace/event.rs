//! One event of a block trace, independent of record version and byte order.
//!
//! Not the record: process and timestamp notes never become an `Event`, and the text of a
//! message stays with the reader. Read first: include/uapi/linux/blktrace_api.h (v6.12).

use std::fmt;

use blkmq::time::SimTime;

/// An action of blktrace, with the letter that blkparse prints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Action {
    /// Q: a bio was handed to the block layer.
    Queue = 1,
    /// M: a bio went to the end of a request, or a whole request was absorbed by its neighbour.
    BackMerge = 2,
    /// F: a bio went to the front of a request.
    FrontMerge = 3,
    /// G: a bio got a request of its own.
    GetRequest = 4,
    /// S: the task sleeps for want of a request. Not produced by blk-mq.
    SleepRequest = 5,
    /// R: an issued request was requeued.
    Requeue = 6,
    /// D: the driver got the request.
    Issue = 7,
    /// C: a request, a part of one, or a bio without request is done.
    Complete = 8,
    /// P: the task's plug holds its first request.
    Plug = 9,
    /// U: the plug was flushed; `extra` is its depth.
    Unplug = 10,
    /// UT: the plug was flushed because the task slept; `extra` is its depth.
    UnplugTimer = 11,
    /// I: a request reached the scheduler or a software queue.
    Insert = 12,
    /// X: a bio was cut; `extra` is the first sector of the remainder (low 32 bits).
    Split = 13,
    /// B: bounce buffer. Not produced any more.
    Bounce = 14,
    /// A: remapped from another device; `extra` is the sector there, `from` the device.
    Remap = 15,
    /// Aborted. Not produced any more.
    Abort = 16,
    /// Opaque data of a driver.
    DriverData = 17,
    /// ZP: a write waits in its zone (v2).
    ZonePlug = 18,
    /// ZU: a zone's writes go on (v2).
    ZoneUnplug = 19,
    /// m: text, in [`Reader::pdu`](super::Reader::pdu).
    Message = 20,
    /// An unknown code; `extra` is the code.
    Unknown = 21,
}

impl Action {
    /// Number of variants and one: for arrays indexed by `action as usize`.
    pub const COUNT: usize = 22;

    /// All actions in the order of their codes.
    pub const ALL: [Action; 21] = [
        Action::Queue,
        Action::BackMerge,
        Action::FrontMerge,
        Action::GetRequest,
        Action::SleepRequest,
        Action::Requeue,
        Action::Issue,
        Action::Complete,
        Action::Plug,
        Action::Unplug,
        Action::UnplugTimer,
        Action::Insert,
        Action::Split,
        Action::Bounce,
        Action::Remap,
        Action::Abort,
        Action::DriverData,
        Action::ZonePlug,
        Action::ZoneUnplug,
        Action::Message,
        Action::Unknown,
    ];

    /// From the low byte of an action word that is not a note.
    #[inline]
    pub(super) fn from_code(code: u16) -> Action {
        match code {
            1..=19 => Action::ALL[usize::from(code) - 1],
            _ => Action::Unknown,
        }
    }

    /// The action that blkparse prints these letters for.
    pub(crate) fn from_letters(letters: &str) -> Option<Action> {
        let known = letters != "?";
        Action::ALL
            .into_iter()
            .find(|action| known && action.letters() == letters)
    }

    /// The letters blkparse prints; "?" where it has none.
    pub fn letters(self) -> &'static str {
        match self {
            Action::Queue => "Q",
            Action::BackMerge => "M",
            Action::FrontMerge => "F",
            Action::GetRequest => "G",
            Action::SleepRequest => "S",
            Action::Requeue => "R",
            Action::Issue => "D",
            Action::Complete => "C",
            Action::Plug => "P",
            Action::Unplug => "U",
            Action::UnplugTimer => "UT",
            Action::Insert => "I",
            Action::Split => "X",
            Action::Bounce => "B",
            Action::Remap => "A",
            Action::ZonePlug => "ZP",
            Action::ZoneUnplug => "ZU",
            Action::Message => "m",
            Action::Abort | Action::DriverData | Action::Unknown => "?",
        }
    }
}

/// Category bits of an event, numbered as in the record, and whether it has a cgroup id.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Categories(pub u32);

impl Categories {
    /// Even operation number. Set on everything that is not a write, plug events included.
    pub const READ: Categories = Categories(1);
    pub const WRITE: Categories = Categories(1 << 1);
    /// Flush operation, or preflush flag.
    pub const FLUSH: Categories = Categories(1 << 2);
    pub const SYNC: Categories = Categories(1 << 3);
    /// Of the queue family.
    pub const QUEUE: Categories = Categories(1 << 4);
    /// Of the requeue family.
    pub const REQUEUE: Categories = Categories(1 << 5);
    /// Of the issue family.
    pub const ISSUE: Categories = Categories(1 << 6);
    /// Of the complete family.
    pub const COMPLETE: Categories = Categories(1 << 7);
    /// Reported by a request, not by a bio.
    pub const FS: Categories = Categories(1 << 8);
    pub const PC: Categories = Categories(1 << 9);
    /// A note, not an event.
    pub const NOTIFY: Categories = Categories(1 << 10);
    pub const AHEAD: Categories = Categories(1 << 11);
    pub const META: Categories = Categories(1 << 12);
    pub const DISCARD: Categories = Categories(1 << 13);
    pub const DRIVER: Categories = Categories(1 << 14);
    /// Forced unit access.
    pub const FUA: Categories = Categories(1 << 15);
    /// Bits a record can carry; the highest is WRITE_ZEROES (v2).
    pub const RECORD: Categories = Categories((1 << 23) - 1);
    /// The record carries a cgroup id (bit 8 of its action code). btt ignores such events.
    pub const CGROUP: Categories = Categories(1 << 31);

    /// The bits that the letters of an RWBS column stand for, as blkparse or the kernel prints
    /// them: `WS`, `RA`, `FWFSM`, `DE`, and the kernel's `F` for a flush operation. Nothing if they
    /// are none of these.
    pub(crate) fn from_rwbs(letters: &str) -> Option<Categories> {
        let mut rest = letters;
        let mut eat = |what: &str| {
            let found = rest.strip_prefix(what);
            rest = found.unwrap_or(rest);
            found.is_some()
        };
        let (write, read) = (Categories::WRITE, Categories::READ);
        let flush = eat("F");
        let operation = [
            ("DE", write.with(Categories::DISCARD)),
            ("D", write.with(Categories::DISCARD)),
            ("WZ", write),
            ("W", write),
            ("R", read),
            ("N", read),
            ("F", read),
            // Of zones: append, reset all, reset, open, finish, close.
            ("ZA", write),
            ("ZRA", write),
            ("ZR", write),
            ("ZO", write),
            ("ZF", write),
            ("ZC", write),
        ];
        let operation = operation.into_iter().find(|(letters, _)| eat(letters));
        let mut bits = operation.map(|(_, bits)| bits);
        if flush {
            bits = Some(bits.unwrap_or(read).with(Categories::FLUSH));
        }
        let mut bits = bits?;
        let flags = [
            ("F", Categories::FUA),
            ("A", Categories::AHEAD),
            ("S", Categories::SYNC),
            ("M", Categories::META),
            // Atomic, which blktrace has no bit for.
            ("U", Categories::default()),
        ];
        for (letter, bit) in flags {
            if eat(letter) {
                bits = bits.with(bit);
            }
        }
        rest.is_empty().then_some(bits)
    }

    /// With the bits that every event of this action has. A request's are marked as such, where the
    /// action is one of requests only.
    pub(crate) fn of_action(self, action: Action) -> Categories {
        let family = match action {
            Action::Split | Action::Bounce | Action::Message | Action::Unknown => {
                Categories::default()
            }
            Action::DriverData => Categories::DRIVER,
            Action::Requeue => Categories::REQUEUE.with(Categories::FS),
            Action::Issue => Categories::ISSUE.with(Categories::FS),
            Action::Complete => Categories::COMPLETE,
            Action::Insert => Categories::QUEUE.with(Categories::FS),
            _ => Categories::QUEUE,
        };
        self.with(family)
    }
    /// Names of blkparse's option `-a`, in the order of the bits.
    pub const NAMES: [(&'static str, Categories); 16] = [
        ("read", Categories::READ),
        ("write", Categories::WRITE),
        ("flush", Categories::FLUSH),
        ("sync", Categories::SYNC),
        ("queue", Categories::QUEUE),
        ("requeue", Categories::REQUEUE),
        ("issue", Categories::ISSUE),
        ("complete", Categories::COMPLETE),
        ("fs", Categories::FS),
        ("pc", Categories::PC),
        ("notify", Categories::NOTIFY),
        ("ahead", Categories::AHEAD),
        ("meta", Categories::META),
        ("discard", Categories::DISCARD),
        ("drv_data", Categories::DRIVER),
        ("fua", Categories::FUA),
    ];

    /// Whether any bit of `other` is set here.
    #[inline]
    pub const fn any(self, other: Categories) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
    pub const fn with(self, other: Categories) -> Categories {
        Categories(self.0 | other.0)
    }
}

impl fmt::Debug for Categories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A device number: major in the upper 12 bits, minor in the lower 20.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Device(pub u32);

impl Device {
    /// From its two halves. Panics if major needs more than 12 bits or minor more than 20.
    pub const fn new(major: u32, minor: u32) -> Device {
        assert!(major < 1 << 12);
        assert!(minor < 1 << 20);
        Device(major << 20 | minor)
    }

    /// From `8,0` or `8:0`.
    pub fn parse(text: &str) -> Option<Device> {
        let (major, minor) = text.split_once([',', ':'])?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(major) || !digits(minor) {
            return None;
        }
        let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
        (major < 1 << 12 && minor < 1 << 20).then(|| Device::new(major, minor))
    }

    /// From `sda`, `sdab` or, for a partition, `sda1`: of SCSI disks the first 256 have fixed
    /// numbers. Source: Linux, Documentation/admin-guide/devices.txt.
    pub fn of_scsi_disk(text: &str) -> Option<Device> {
        let text = text.strip_prefix("sd")?;
        let letters = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let partition: u32 = match text.strip_prefix(letters)? {
            "" => 0,
            number => number.parse().ok().filter(|n| (1..16).contains(n))?,
        };
        let lower = letters.bytes().all(|b| b.is_ascii_lowercase());
        if !lower || !(1..=2).contains(&letters.len()) {
            return None;
        }
        let digit = |disk, letter| disk * 26 + u32::from(letter - b'a') + 1;
        let disk = letters.bytes().fold(0, digit) - 1;
        let major = match disk / 16 {
            0 => 8,
            group @ 1..=7 => 64 + group,
            group @ 8..=15 => 120 + group,
            _ => return None,
        };
        Some(Device::new(major, disk % 16 * 16 + partition))
    }

    /// Driver's number.
    pub const fn major(self) -> u32 {
        self.0 >> 20
    }

    pub const fn minor(self) -> u32 {
        self.0 & 0xf_ffff
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major(), self.minor())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Position of a record: number of the file in the reader's list, and byte offset in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, Hash)]
pub struct Location(u64);

impl Location {
    /// Offsets keep their low 48 bits.
    #[inline]
    pub(super) const fn new(file: u16, offset: u64) -> Location {
        Location((file as u64) << 48 | offset & 0xffff_ffff_ffff)
    }

    /// Index into [`Reader::files`](super::Reader::files).
    #[inline]
    pub const fn file(self) -> usize {
        (self.0 >> 48) as usize
    }

    /// Bytes from the start of the file, after decompression.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.0 & 0xffff_ffff_ffff
    }
}

/// One event. 64 bytes, so that a reader moves one cache line each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// As recorded: CLOCK_MONOTONIC of the traced machine, or relative in a `blkparse -d` file.
    pub time: SimTime,
    /// First 512-byte sector, relative to the whole disk.
    pub sector: u64,
    /// See [`Action`]; zero where the action has no such value.
    pub extra: u64,
    /// Position of the record; ignored by the writer.
    pub location: Location,
    /// Length in bytes.
    pub bytes: u32,
    pub categories: Categories,
    /// Task that was running, which need not be the submitter.
    pub pid: u32,
    /// Device whose trace this is. For a remap: the device it went to.
    pub device: Device,
    /// CPU on which it happened.
    pub cpu: u32,
    /// Number within this CPU's trace, first event 1; not set in notes; ignored by the writer.
    pub sequence: u32,
    /// For a remap: the device that the bio was remapped from.
    pub from: Device,
    /// Errno of a completion as a positive number, 0 for success.
    pub error: u16,
    pub action: Action,
}

impl Event {
    /// An event with nothing but a time and an action; the start of a hand-made one.
    pub const fn new(time: SimTime, action: Action) -> Event {
        Event {
            time,
            sector: 0,
            extra: 0,
            location: Location(0),
            bytes: 0,
            categories: Categories(0),
            pid: 0,
            device: Device(0),
            cpu: 0,
            sequence: 0,
            from: Device(0),
            error: 0,
            action,
        }
    }

    /// Length in 512-byte sectors, rounded down as blkparse does.
    #[inline]
    pub const fn sectors(&self) -> u64 {
        (self.bytes >> 9) as u64
    }

    /// First sector after the range.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors())
    }

    /// The letters blkparse prints in its RWBS column.
    pub fn rwbs(&self) -> Rwbs {
        Rwbs::new(self.categories, self.bytes)
    }
}

/// Up to seven letters such as `FWFSM`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Rwbs {
    letters: [u8; 7],
    count: u8,
}

impl Rwbs {
    /// From category bits and a length in bytes, as blkparse does it (not as the kernel does).
    pub fn new(categories: Categories, bytes: u32) -> Rwbs {
        let mut rwbs = Rwbs::default();
        let mut put = |letter: u8| {
            rwbs.letters[usize::from(rwbs.count)] = letter;
            rwbs.count += 1;
        };
        if categories.any(Categories::FLUSH) {
            put(b'F');
        }
        put(if categories.any(Categories::DISCARD) {
            b'D'
        } else if categories.any(Categories::WRITE) {
            b'W'
        } else if bytes > 0 {
            b'R'
        } else {
            b'N'
        });
        let tail = [
            (Categories::FUA, b'F'),
            (Categories::AHEAD, b'A'),
            (Categories::SYNC, b'S'),
            (Categories::META, b'M'),
        ];
        for (bit, letter) in tail {
            if categories.any(bit) {
                put(letter);
            }
        }
        rwbs
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.letters[..usize::from(self.count)])
            .expect("only ASCII letters were put in")
    }
}

impl fmt::Display for Rwbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Rwbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
