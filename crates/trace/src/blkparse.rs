//! Events as the text that blkparse prints: a line each, and a summary after them.
//!
//! One pass over a [`Reader`] in constant memory, except that `track` remembers requests under way.
//! `format` makes a line, `track` its times, `names` finds the idle task's name, `summary` counts.
//! The referee is blkparse 1.2.0. Not here: printing, and reading of such text.

mod format;
mod names;
mod summary;
mod track;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

pub use format::Format;

use crate::Result;
use crate::blktrace::{Action, Categories, Device, Event, Reader, parse_name};
use names::IdleName;
use summary::Programs;
use track::Track;

/// What is before the part that depends on the action.
const HEADER: &str = "%D %2c %8s %5T.%9t %5p %2a %3d ";

/// The default lines after the header: first letters of actions, the line, the line of a request
/// without sectors, and that of a passthrough request, if it is printed at all.
const DEFAULTS: &[(&str, &str, &str, Option<&str>)] = &[
    ("QID", "%S + %n %E[%C]", "%E[%C]", Some("%N %B[%C]")),
    ("B", "%S + %n [%C]", "[%C]", None),
    ("CR", "%S + %n %E[%e]", "%S %E[%e]", Some("%B[%e]")),
    ("GS", "%S + %n [%C]", "[%C]", Some("%S + %n [%C]")),
    ("MFZ", "%S + %n [%C]", "[%C]", None),
    ("P", "[%C]", "[%C]", None),
    ("U", "[%C] %U", "[%C] %U", None),
    ("X", "%S / %U [%C]", "%S / %U [%C]", None),
    ("A", "%S + %n <- %O", "%S + %n <- %O", None),
];

/// What is printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Format of all actions. Default: the one of each action.
    pub format: Option<Format>,
    /// Formats of single actions, by the first letter of the action.
    pub formats: Vec<(char, Format)>,
    /// Categories of which an event must have one. Default: any event is printed.
    pub categories: Option<Categories>,
    /// Nanoseconds since the first event between which an event must be. Default: any time.
    pub times: Option<RangeInclusive<u64>>,
    /// Times between the events of a request. Default: none.
    pub track: bool,
    /// A summary of each process. Default: none.
    pub programs: bool,
    /// That summary has one part for all processes of a name. Default: one for each.
    pub by_name: bool,
    /// No summary of CPUs and devices. Default: there is one.
    pub no_summary: bool,
    /// Messages with a cgroup id, as blkparse 1.3.0 prints them. Default: none, as 1.2.0.
    pub messages: bool,
}

impl Options {
    /// Reads `ACTION,FORMAT`. The error says what would be right.
    pub fn action_format(text: &str) -> std::result::Result<(char, Format), String> {
        let letters = || DEFAULTS.iter().flat_map(|(letters, ..)| letters.chars());
        let (action, format) = text.split_once(',').unwrap_or((text, ""));
        let mut rest = action.chars();
        match (
            rest.next()
                .filter(|letter| letters().any(|own| own == *letter)),
            rest.next(),
        ) {
            (Some(letter), None) if text.contains(',') => Ok((letter, Format::parse(format)?)),
            _ => Err(format!(
                "`{action}`: expected ACTION,FORMAT with an action of {}",
                letters().collect::<String>()
            )),
        }
    }
}

/// Formats of an action.
#[derive(Clone, Debug)]
struct Row {
    sectors: Format,
    empty: Format,
    passthrough: Option<Format>,
    is_default: bool,
}

/// An event with all that a format can name.
#[derive(Debug)]
struct Line<'a> {
    event: &'a Event,
    /// Nanoseconds since the first event.
    time: u64,
    /// What to add to `time` for the nanoseconds since 1970.
    wall_clock: u64,
    name: &'a str,
    pdu: &'a [u8],
    /// Payload of a passthrough request.
    command: &'a [u8],
    elapsed: Option<u64>,
}

/// The text of a capture, line by line.
#[derive(Debug)]
pub struct Text<'r> {
    reader: &'r mut Reader,
    options: Options,
    rows: Vec<Option<Row>>,
    idle: IdleName,
    /// Processes that blkparse calls unknown once it counts them.
    unknown: BTreeSet<u32>,
    devices: Vec<summary::Device>,
    /// By number of the file: index of the device. A dump has none.
    of_file: Vec<Option<usize>>,
    /// Devices of dumps, with their index.
    of_dump: Vec<(Device, usize)>,
    programs: Programs,
    driver_data: bool,
    ended: bool,
}

impl<'r> Text<'r> {
    pub fn new(reader: &'r mut Reader, options: Options) -> Text<'r> {
        let mut devices: Vec<summary::Device> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let mut of_file = Vec::new();
        for file in reader.files() {
            of_file.push(parse_name(file).map(|(name, _)| {
                let known = names.iter().position(|known| known == name);
                known.unwrap_or_else(|| {
                    devices.push(summary::Device::new(name.to_owned()));
                    names.push(name.to_owned());
                    names.len() - 1
                })
            }));
        }
        Text {
            rows: rows(&options),
            idle: IdleName::new(reader.files()),
            reader,
            options,
            unknown: BTreeSet::new(),
            devices,
            of_file,
            of_dump: Vec::new(),
            programs: Programs::default(),
            driver_data: false,
            ended: false,
        }
    }

    /// Appends what the next event prints, which may be nothing; at the end the summary. False if
    /// nothing is left.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        match self.reader.next()? {
            Some(event) if self.take(event, out) => {}
            _ => {
                self.ended = true;
                self.end(out);
            }
        }
        Ok(true)
    }

    /// False if the event, and so all that follow, is after the times that are wanted.
    fn take(&mut self, event: Event, out: &mut Vec<u8>) -> bool {
        if dropped(&event) {
            if self.options.messages {
                self.message(&event, out);
            }
            return true;
        }
        let time = event.time.0.wrapping_sub(self.reader.genesis().0);
        let file = event.location.file();
        let per_cpu = self.of_file.get(file).copied().flatten();
        let device = per_cpu.unwrap_or_else(|| self.dumped(event.device, file));
        let times = self.options.times.clone().unwrap_or(0..=u64::MAX);
        if time > *times.end() {
            // Its CPU is in blkparse's summary all the same.
            self.devices[device].cpu(event.cpu);
            return false;
        }
        self.devices[device].seen(&event, time, per_cpu.is_none());
        let wanted = self.options.categories.unwrap_or(Categories::RECORD);
        if event.categories.any(wanted) && time >= *times.start() {
            self.devices[device].account(&event, time);
            self.print(event, time, device, out);
        }
        self.idle.printed(file);
        true
    }

    fn print(&mut self, mut event: Event, time: u64, device: usize, out: &mut Vec<u8>) {
        if event.action == Action::Message {
            return self.message(&event, out);
        }
        self.driver_data |= event.action == Action::DriverData;
        let elapsed = self.request(&event, time, device);
        let passthrough = event.categories.any(Categories::PC);
        let Some(row) = &self.rows[event.action as usize] else {
            return;
        };
        let format = match &row.passthrough {
            _ if !passthrough && event.sectors() > 0 => &row.sectors,
            _ if !passthrough => &row.empty,
            Some(format) => format,
            None => return,
        };
        let pdu = self.reader.pdu();
        if event.action == Action::Remap && row.is_default {
            // The record's own device is the whole disk, also if the bio goes to a partition.
            let to = pdu.get(4..8).and_then(|to| to.try_into().ok());
            event.device = to.map_or(event.device, |to| Device(u32::from_be_bytes(to)));
        }
        let has_command = matches!(
            event.action,
            Action::Insert | Action::Issue | Action::Complete
        );
        let line = Line {
            event: &event,
            time,
            wall_clock: self.wall_clock(),
            name: self.name(event.pid),
            pdu,
            command: if passthrough && has_command { pdu } else { &[] },
            elapsed,
        };
        format.print(&line, out);
    }

    /// Counts and times of processes and requests. Returns the time that the event ended.
    #[inline]
    fn request(&mut self, event: &Event, time: u64, device: usize) -> Option<u64> {
        if !self.options.track && !self.options.programs {
            return None;
        }
        let (reader, idle, unknown) = (&*self.reader, &self.idle, &mut self.unknown);
        let mut unnamed = |pid| {
            if known_name(reader, idle, pid).is_none() {
                unknown.insert(pid);
            }
        };
        if self.options.programs {
            self.programs.account(event, &mut unnamed);
        }
        if !self.options.track || event.categories.any(Categories::PC) {
            return None;
        }
        let track: &mut Track = &mut self.devices[device].track;
        let elapsed = track.take(event, time, &mut unnamed)?;
        self.programs.waited(event, &elapsed);
        Some(elapsed.nanoseconds)
    }

    /// Messages have a form of their own, whatever the format.
    fn message(&self, event: &Event, out: &mut Vec<u8>) {
        use std::io::Write as _;
        let time = event.time.0.wrapping_sub(self.reader.genesis().0);
        let (major, minor, cpu) = (event.device.major(), event.device.minor(), event.cpu);
        let (seconds, nano) = (time / 1_000_000_000, time % 1_000_000_000);
        write!(
            out,
            "{major:3},{minor:<3} {cpu:2} {:>8} {seconds:5}.{nano:09} ",
            0
        )
        .expect("memory takes all bytes");
        match self.reader.cgroup() {
            // Inode and generation.
            Some(id) => write!(
                out,
                "{:5} {:x},{:x} ",
                event.pid,
                id & 0xffff_ffff,
                id >> 32
            ),
            None => write!(out, "{:5} ", 0),
        }
        .expect("memory takes all bytes");
        out.extend_from_slice(b" m   N ");
        let text = self.reader.pdu();
        out.extend_from_slice(text.split(|byte| *byte == 0).next().unwrap_or_default());
        out.push(b'\n');
    }

    /// Index of a device that is in a dump or a text.
    fn dumped(&mut self, number: Device, file: usize) -> usize {
        let known = self.of_dump.iter().find(|(device, _)| *device == number);
        if let Some((_, index)) = known {
            return *index;
        }
        self.of_dump.push((number, self.devices.len()));
        let name = self.reader.device_name(number, file);
        self.devices.push(summary::Device::new(name));
        self.devices.len() - 1
    }

    fn name(&self, pid: u32) -> &str {
        if self.unknown.contains(&pid) {
            return "unknown";
        }
        // So the C library prints a null pointer.
        known_name(self.reader, &self.idle, pid).unwrap_or("(null)")
    }

    fn wall_clock(&self) -> u64 {
        let genesis = self.reader.genesis().0;
        self.reader.wall_clock().map_or(0, |(at, clock)| {
            // A dump has relative times, but its note an absolute one.
            clock + genesis.saturating_sub(at.0)
        })
    }

    fn end(&self, out: &mut Vec<u8>) {
        if self.options.programs {
            let by_name = self.options.by_name;
            self.programs.print(|pid| self.name(pid), by_name, out);
        }
        if !self.options.no_summary {
            for (index, device) in self.devices.iter().enumerate() {
                if index > 0 {
                    out.push(b'\n');
                }
                device.print(out);
            }
        }
        if self.driver_data {
            out.extend_from_slice(
                b"\ndiscarded traces containing low-level device driver specific data (only \
                  available in binary output)\n",
            );
        }
    }
}

fn known_name<'a>(reader: &'a Reader, idle: &'a IdleName, pid: u32) -> Option<&'a str> {
    match pid {
        0 => idle.get().or_else(|| reader.process_name(0)),
        _ => reader.process_name(pid),
    }
}

/// Formats by action.
fn rows(options: &Options) -> Vec<Option<Row>> {
    let mut rows = vec![None; Action::COUNT];
    for action in Action::ALL {
        let letter = action.letters().chars().next().unwrap_or_default();
        let default = DEFAULTS
            .iter()
            .find(|(letters, ..)| letters.contains(letter));
        let Some((_, sectors, empty, passthrough)) = default else {
            continue;
        };
        let own = options.formats.iter().rev().find(|(of, _)| *of == letter);
        let chosen = own.map(|(_, format)| format).or(options.format.as_ref());
        let format = |tail: &str| match chosen {
            Some(format) => format.clone(),
            None => Format::inner(&format!("{HEADER}{tail}\n")),
        };
        rows[action as usize] = Some(Row {
            sectors: format(sectors),
            empty: format(empty),
            passthrough: passthrough.map(format),
            is_default: chosen.is_none(),
        });
    }
    rows
}

/// Whether blkparse 1.2.0 does not see a record: a message with a cgroup id.
fn dropped(event: &Event) -> bool {
    event.action == Action::Message && event.categories.any(Categories::CGROUP)
}
