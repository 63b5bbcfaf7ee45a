//! The events of a whole capture, merged in the order blkparse prints them.
//!
//! One pass; memory is a buffer per file. Times stay as recorded: subtract [`Reader::genesis`]
//! for blkparse's. Not here: matching of Q to C. Read first: `stream` for the verdicts.

use std::path::{Path, PathBuf};

use blkmq::time::SimTime;

use super::bytes::Bytes;
use super::devices::Devices;
use super::event::{Device, Event};
use super::formats::{self, Format};
use super::lines::TextLines;
use super::paths;
use super::reorder::{Reorder, Source};
use super::stream::{Shape, Shared, Stream};
use super::warnings::Warnings;
use crate::{Error, Result};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum DeviceChoice {
    /// The only one there is; several are an error that lists them.
    #[default]
    Only,
    /// By name (`sda`, `/dev/sda`) or number (`8,0`, `8:0`).
    Named(String),
    /// All of them, merged.
    All,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which devices. Default: the only one.
    pub device: DeviceChoice,
    /// Every warning is an error. Default: no.
    pub strict: bool,
    /// Damage in the middle of a file ends that file with a warning. Default: no, it is an error.
    pub salvage: bool,
    /// Format of files that are not named `<device>.blktrace.<cpu>`. Default: by their content.
    pub format: Option<Format>,
    /// Events kept to sort a dump of several CPUs. Default: 131072, about 16 MiB.
    pub window: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            device: DeviceChoice::Only,
            strict: false,
            salvage: false,
            format: None,
            window: 1 << 17,
        }
    }
}

#[derive(Debug)]
enum Feed {
    PerCpu(Stream),
    /// A dump or a text.
    Sorted(Reorder),
}

impl Feed {
    #[inline]
    fn next(&mut self, shared: &mut Shared) -> Result<bool> {
        match self {
            Feed::PerCpu(stream) => stream.next(shared),
            Feed::Sorted(reorder) => reorder.next(shared),
        }
    }

    /// The event that `next` moved to. Panics if there was none.
    #[inline]
    fn event(&self) -> &Event {
        match self {
            Feed::PerCpu(stream) => stream.event(),
            Feed::Sorted(reorder) => &reorder.current().expect("next() said so").event,
        }
    }

    fn offset(&self) -> u64 {
        match self {
            Feed::PerCpu(stream) => stream.offset(),
            Feed::Sorted(reorder) => reorder.offset(),
        }
    }

    fn good_records(&self) -> u64 {
        match self {
            Feed::PerCpu(stream) => stream.good_records(),
            Feed::Sorted(reorder) => reorder.good_records(),
        }
    }
}

/// Time of the next event of a feed.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: SimTime,
    feed: u32,
}

#[derive(Debug)]
pub struct Reader {
    shared: Shared,
    feeds: Vec<Feed>,
    /// Heads of the feeds that have one, the earliest last.
    heads: Vec<Head>,
    /// The last head was returned: its feed must advance before anything else.
    taken: bool,
    genesis: SimTime,
    lacks: Vec<String>,
}

impl Source {
    /// Records or lines, by the first bytes.
    fn open(mut bytes: Bytes, file: u16, reader: &mut Reader) -> Result<Source> {
        let forced = reader.shared.options.format.as_ref();
        match formats::of(&mut bytes, forced)? {
            None => Ok(Source::Records(Stream::new(bytes, file, Shape::Dump))),
            Some(parser) => {
                let lacks = parser.lacks();
                if !reader.lacks.contains(&lacks) {
                    reader.lacks.push(lacks);
                }
                Ok(Source::Lines(TextLines::new(bytes, file, parser)))
            }
        }
    }
}

impl Reader {
    /// Opens a directory with `<device>.blktrace.<cpu>` files, such files, a name without the
    /// `.blktrace.<cpu>`, dumps of several CPUs, or texts, and reads the first event of each.
    /// `-` is standard input.
    pub fn open<P: AsRef<Path>>(paths: &[P], options: Options) -> Result<Reader> {
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let selection = paths::select(&paths, &options.device)?;
        let window = options.window;
        let mut shared = Shared {
            files: selection
                .files
                .iter()
                .map(|(path, _)| path.clone())
                .collect(),
            warnings: Warnings::default(),
            names: std::collections::BTreeMap::new(),
            wall_clock: None,
            notes: 0,
            skipped: 0,
            devices: Devices::new(&options.device, selection.number),
            options,
        };
        shared.warn_of_absent(selection.missing, selection.dropped)?;
        let mut reader = Reader {
            shared,
            feeds: Vec::with_capacity(selection.files.len()),
            heads: Vec::with_capacity(selection.files.len()),
            taken: false,
            genesis: SimTime::ZERO,
            lacks: Vec::new(),
        };
        for (file, (path, shape)) in selection.files.iter().enumerate() {
            let file = file as u16;
            let bytes = Bytes::open(path)?;
            let mut feed = match shape {
                Shape::PerCpu(_) => Feed::PerCpu(Stream::new(bytes, file, *shape)),
                Shape::Dump => {
                    let source = Source::open(bytes, file, &mut reader)?;
                    Feed::Sorted(Reorder::new(source, window))
                }
            };
            if feed.next(&mut reader.shared)? {
                let time = feed.event().time;
                reader.add_head(Head {
                    time,
                    feed: u32::from(file),
                });
            }
            reader.feeds.push(feed);
        }
        if reader.feeds.iter().all(|feed| feed.good_records() == 0) {
            return Err(Error::input(paths[0], "no readable record"));
        }
        if reader.heads.is_empty()
            && let Some(what) = reader.shared.devices.absent()
        {
            return Err(Error::input(paths[0], what));
        }
        reader.genesis = reader.heads.last().map_or(SimTime::ZERO, |head| head.time);
        Ok(reader)
    }

    /// The next event or message, or nothing at the end.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator cannot return errors and end"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Event>> {
        Ok(self.advance()?.then(|| *self.event()))
    }

    /// Moves to the next event or message; false at the end. With `event` it is `next` without a
    /// copy.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        if self.taken {
            self.move_on()?;
        }
        self.taken = !self.heads.is_empty();
        Ok(self.taken)
    }

    /// The event that `advance` moved to. Panics if there was none.
    #[inline]
    pub fn event(&self) -> &Event {
        self.current().expect("advance() said so").event()
    }

    /// Time that blkparse prints as 0: of the earliest first event.
    pub fn genesis(&self) -> SimTime {
        self.genesis
    }

    /// Payload of the event returned last, without cgroup id: text of a message, command of a
    /// passthrough request, driver data.
    pub fn pdu(&self) -> &[u8] {
        self.current().map_or(&[], |feed| match feed {
            Feed::PerCpu(stream) => stream.pdu(),
            Feed::Sorted(reorder) => reorder.current().map_or(&[], |waiting| &waiting.pdu),
        })
    }

    /// cgroup id of the event returned last.
    pub fn cgroup(&self) -> Option<u64> {
        match self.current()? {
            Feed::PerCpu(stream) => stream.cgroup(),
            Feed::Sorted(reorder) => reorder.current()?.cgroup,
        }
    }

    /// Name of a task, if its note was already read: the note precedes the task's first event.
    pub fn process_name(&self, pid: u32) -> Option<&str> {
        self.shared.names.get(&pid).map(String::as_str)
    }

    /// Name of a device: of its file, or in the text; in a dump and other texts its number.
    pub fn device_name(&self, device: Device, file: usize) -> String {
        let per_cpu = paths::parse_name(&self.shared.files[file]);
        per_cpu.map_or_else(
            || self.shared.devices.name(device),
            |(name, _)| name.to_owned(),
        )
    }

    /// Time of the first wall clock note, and its clock value in nanoseconds since 1970.
    pub fn wall_clock(&self) -> Option<(SimTime, u64)> {
        self.shared.wall_clock
    }

    /// Process and wall clock notes so far.
    pub fn notes(&self) -> u64 {
        self.shared.notes
    }

    /// Events skipped so far because their device was not asked for.
    pub fn skipped(&self) -> u64 {
        self.shared.skipped
    }

    /// Bytes of records read so far, after decompression.
    pub fn bytes(&self) -> u64 {
        self.feeds.iter().map(Feed::offset).sum()
    }

    /// For each format of text that is read: what it does not have, as a sentence.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
    }

    /// All files, as `Location` numbers them.
    pub fn files(&self) -> &[PathBuf] {
        &self.shared.files
    }

    pub fn warnings(&self) -> &Warnings {
        &self.shared.warnings
    }

    #[inline]
    fn current(&self) -> Option<&Feed> {
        let head = self.heads.last().filter(|_| self.taken)?;
        Some(&self.feeds[head.feed as usize])
    }

    fn move_on(&mut self) -> Result<()> {
        self.taken = false;
        let Some(head) = self.heads.last_mut() else {
            return Ok(());
        };
        let feed = &mut self.feeds[head.feed as usize];
        match feed.next(&mut self.shared) {
            Ok(true) => {
                head.time = feed.event().time;
                self.settle();
                Ok(())
            }
            Ok(false) => {
                self.heads.pop();
                Ok(())
            }
            Err(error) => {
                // Nothing follows an error, above all not the event before it once more.
                self.heads.clear();
                Err(error)
            }
        }
    }

    /// Puts the last head where its new time belongs. Ties favour the feed being drained: only a
    /// strictly later event lets another one first.
    #[inline]
    fn settle(&mut self) {
        let [others @ .., head] = &mut self.heads[..] else {
            return;
        };
        let head = *head;
        if others.last().is_none_or(|next| head.time <= next.time) {
            return;
        }
        // Near the end as a rule: times of busy CPUs are close together.
        let mut at = others.len();
        let far = at.saturating_sub(8);
        while at > far && self.heads[at - 1].time < head.time {
            self.heads[at] = self.heads[at - 1];
            at -= 1;
        }
        if at == far && at > 0 {
            at = self.heads[..at].partition_point(|other| other.time >= head.time);
            self.heads.copy_within(at..far, at + 1);
        }
        self.heads[at] = head;
    }

    /// Files are added in order; among equal times the first one added stays first, and a later one
    /// goes right after it, before those with the same time.
    fn add_head(&mut self, head: Head) {
        match self.heads.last() {
            Some(first) if head.time >= first.time => {
                let at = self.heads.partition_point(|other| other.time >= head.time);
                self.heads.insert(at.min(self.heads.len() - 1), head);
            }
            _ => self.heads.push(head),
        }
    }
}
