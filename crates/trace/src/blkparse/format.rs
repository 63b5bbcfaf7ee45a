//! How one event becomes text: the formats of `-f`, and the default lines as such formats.
//!
//! A format is fixed text and fields such as `%-8C`. Not here: which format an event has
//! (`blkparse.rs`). Read first: blkparse_fmt.c of blktrace 1.2.0.

use super::Line;
use crate::blktrace::{Action, Device};

const NANO: u64 = 1_000_000_000;

/// A letter after `%`, its field, and what it prints.
type Specifier = (u8, Field, &'static str);

/// A value of an event that a format can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Action,
    Cpu,
    Name,
    Direction,
    Device,
    Error,
    Major,
    Minor,
    Sectors,
    Bytes,
    Pid,
    Payload,
    Sequence,
    Sector,
    Nanoseconds,
    Seconds,
    Elapsed,
    Depth,
    WallClock,
    /// ` (NANOSECONDS)` since an earlier event.
    Delta,
    /// `(HEX) ` of the payload, if there is one.
    Command,
    /// `(MAJOR,MINOR) SECTOR` that a remapped bio comes from.
    Origin,
}

/// All specifiers of `-f`.
const SPECIFIERS: &[Specifier] = &[
    (b'a', Field::Action, "action, such as Q or UT"),
    (b'c', Field::Cpu, "CPU"),
    (b'C', Field::Name, "name of the process"),
    (b'd', Field::Direction, "direction and flags, such as WS"),
    (b'D', Field::Device, "device as major,minor (no width)"),
    (b'e', Field::Error, "error as an unsigned number of 16 bits"),
    (b'M', Field::Major, "major number of the device"),
    (b'm', Field::Minor, "minor number of the device"),
    (b'n', Field::Sectors, "length in sectors"),
    (b'N', Field::Bytes, "length in bytes"),
    (b'p', Field::Pid, "process ID"),
    (
        b'P',
        Field::Payload,
        "command of a passthrough request in hex (no width)",
    ),
    (b's', Field::Sequence, "sequence number"),
    (b'S', Field::Sector, "first sector"),
    (
        b't',
        Field::Nanoseconds,
        "time, nanoseconds in the second, padded with zeros",
    ),
    (b'T', Field::Seconds, "time, whole seconds"),
    (
        b'u',
        Field::Elapsed,
        "microseconds since the event before it in the request's life, with -t",
    ),
    (b'U', Field::Depth, "number of requests in an unplug"),
    (b'z', Field::WallClock, "time of day, UTC"),
];

pub(crate) const LETTERS: usize = SPECIFIERS.len();

/// Place of a letter of `-f` among all. Panics if there is no such letter.
pub(crate) fn place_of(letter: char) -> usize {
    let place = SPECIFIERS
        .iter()
        .position(|(own, ..)| char::from(*own) == letter);
    place.expect("`Format::parse` takes only these letters")
}

/// Parts of the default lines for which `-f` has no letter.
const INNER: &[Specifier] = &[
    (b'B', Field::Command, ""),
    (b'E', Field::Delta, ""),
    (b'O', Field::Origin, ""),
];

#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(Vec<u8>),
    Field {
        field: Field,
        left: bool,
        width: Option<usize>,
    },
}

/// What a reader of lines in a format needs to know of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    Literal(char),
    /// A letter.
    Field(char),
}

/// A format of `-f`, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format(Vec<Piece>);

impl Format {
    /// Reads a format as blkparse does, but takes only letters that mean something.
    ///
    /// The error names the position in the text and what would be right.
    pub fn parse(spec: &str) -> std::result::Result<Format, String> {
        Format::read(spec, |letter| {
            SPECIFIERS.iter().find(|(own, ..)| *own == letter)
        })
    }

    /// Of the program itself. Panics on an error.
    pub(super) fn inner(spec: &str) -> Format {
        let all = |letter| {
            let mut all = SPECIFIERS.iter().chain(INNER);
            all.find(|(own, ..)| *own == letter)
        };
        Format::read(spec, all).expect("a format of the program has known letters")
    }

    /// Letter and meaning of all specifiers.
    pub fn specifiers() -> impl Iterator<Item = (char, &'static str)> {
        SPECIFIERS
            .iter()
            .map(|(letter, _, meaning)| (char::from(*letter), *meaning))
    }

    /// Its fields by their letters, and the characters between them; widths are left out.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => {
                    let text = String::from_utf8_lossy(text);
                    columns.extend(text.chars().map(Column::Literal));
                }
                Piece::Field { field, .. } => {
                    let specifier = SPECIFIERS.iter().find(|(_, own, _)| own == field);
                    let letter = specifier.map(|(letter, ..)| char::from(*letter));
                    columns.extend(letter.map(Column::Field));
                }
            }
        }
        columns
    }

    /// Whether it prints a time that only `-t` gives.
    pub fn needs_tracking(&self) -> bool {
        let elapsed =
            |piece: &Piece| matches!(piece, Piece::Field { field, .. } if *field == Field::Elapsed);
        self.0.iter().any(elapsed)
    }

    fn read(
        spec: &str,
        known: impl Fn(u8) -> Option<&'static Specifier>,
    ) -> std::result::Result<Format, String> {
        let bytes = spec.as_bytes();
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match (byte, bytes.get(at)) {
                (b'\\', Some(letter)) => {
                    text.push(escape(*letter).ok_or_else(|| {
                        let letter = shown(&spec[at..]);
                        format!("\\{letter} at position {at}: expected \\b, \\n, \\r or \\t")
                    })?);
                    at += 1;
                }
                (b'\\', None) => {
                    return Err(format!(
                        "\\ at position {at}: expected \\b, \\n, \\r or \\t"
                    ));
                }
                (b'%', None) => text.push(b'%'),
                (b'%', Some(b'%')) => {
                    text.push(b'%');
                    at += 1;
                }
                (b'%', Some(_)) => {
                    let start = at;
                    let (left, width) = padding(bytes, &mut at).ok_or_else(|| {
                        format!("width at position {start}: expected at most 4095")
                    })?;
                    let specifier = bytes.get(at).and_then(|letter| known(*letter));
                    let Some((_, field, _)) = specifier else {
                        let letters: String =
                            Format::specifiers().map(|(letter, _)| letter).collect();
                        return Err(format!(
                            "%{} at position {start}: expected a letter of {letters}",
                            shown(&spec[at..])
                        ));
                    };
                    at += 1;
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(Piece::Field {
                        field: *field,
                        left,
                        width,
                    });
                }
                _ => text.push(byte),
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(Format(pieces))
    }

    /// Appends the line.
    pub(super) fn print(&self, line: &Line<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Field { field, left, width } => {
                    let from = out.len();
                    let width = line.field(*field, *width, *left, out);
                    pad(out, from, width, *left);
                }
            }
        }
    }
}

fn escape(letter: u8) -> Option<u8> {
    match letter {
        b'b' => Some(8),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        _ => None,
    }
}

/// The first character, for a message.
fn shown(rest: &str) -> String {
    rest.chars().take(1).collect()
}

/// `-` and digits. Nothing if the width is too large to be meant.
fn padding(bytes: &[u8], at: &mut usize) -> Option<(bool, Option<usize>)> {
    let left = bytes.get(*at) == Some(&b'-');
    *at += usize::from(left);
    let mut width = None;
    while let Some(digit) = bytes.get(*at).filter(|byte| byte.is_ascii_digit()) {
        *at += 1;
        let value = width.unwrap_or(0) * 10 + usize::from(digit - b'0');
        width = Some(value).filter(|value| *value < 4096);
        width?;
    }
    Some((left, width))
}

/// Fills what was appended since `from` with blanks up to a width.
#[inline]
fn pad(out: &mut Vec<u8>, from: usize, width: usize, left: bool) {
    let have = out.len() - from;
    if have >= width {
        return;
    }
    out.resize(from + width, b' ');
    if !left {
        out[from..].rotate_right(width - have);
    }
}

/// Appends a decimal number, to the right in at least `width` bytes.
#[inline]
fn number(mut value: u64, width: usize, fill: u8, out: &mut Vec<u8>) {
    let mut text = [fill; 24];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.resize(out.len() + width.saturating_sub(text.len()), fill);
    out.extend_from_slice(&text[at.min(text.len().saturating_sub(width))..]);
}

/// Appends `major,minor`, padded on the outer sides.
fn device(device: Device, width: usize, out: &mut Vec<u8>) {
    number(u64::from(device.major()), width, b' ', out);
    out.push(b',');
    let from = out.len();
    number(u64::from(device.minor()), 0, b' ', out);
    pad(out, from, width, true);
}

impl Line<'_> {
    /// Appends a field. Returns the width to pad it to.
    #[inline]
    fn field(&self, field: Field, width: Option<usize>, left: bool, out: &mut Vec<u8>) -> usize {
        let event = self.event;
        match field {
            Field::Action => out.extend_from_slice(event.action.letters().as_bytes()),
            Field::Name => out.extend_from_slice(self.name.as_bytes()),
            Field::Direction => out.extend_from_slice(event.rwbs().as_str().as_bytes()),
            Field::Device => {
                device(event.device, 3, out);
                return 0;
            }
            Field::Payload => {
                self.hex(out);
                return 0;
            }
            Field::Nanoseconds => {
                number(self.time % NANO, width.unwrap_or(9), b'0', out);
                return 0;
            }
            Field::WallClock => self.time_of_day(out),
            Field::Command if self.command.is_empty() => {}
            Field::Command => {
                out.push(b'(');
                self.hex(out);
                out.extend_from_slice(b") ");
            }
            Field::Delta => {
                if let Some(elapsed) = self.elapsed {
                    out.push(b'(');
                    number(elapsed, 8, b' ', out);
                    out.extend_from_slice(b") ");
                }
            }
            Field::Origin => {
                out.push(b'(');
                device(event.from, 0, out);
                out.extend_from_slice(b") ");
                number(event.extra, 0, b' ', out);
            }
            _ => {
                if let Some(value) = self.number_of(field) {
                    let width = width.filter(|_| !left).unwrap_or(0);
                    number(value, width, b' ', out);
                }
            }
        }
        width.unwrap_or(0)
    }

    /// Value of a field that is a decimal number, if the event has it.
    #[inline]
    fn number_of(&self, field: Field) -> Option<u64> {
        let event = self.event;
        Some(match field {
            Field::Cpu => u64::from(event.cpu),
            Field::Error => u64::from(event.error.wrapping_neg()),
            Field::Major => u64::from(event.device.major()),
            Field::Minor => u64::from(event.device.minor()),
            Field::Sectors => event.sectors(),
            Field::Bytes => u64::from(event.bytes),
            Field::Pid => u64::from(event.pid),
            Field::Sequence => u64::from(event.sequence),
            Field::Sector => event.sector,
            Field::Seconds => self.time / NANO,
            Field::Elapsed => self.elapsed? / 1000,
            // The kernel stores 64 bits, most significant byte first; blkparse prints 32. A text
            // has the number without a payload.
            Field::Depth => match (self.pdu.get(4..8), event.action) {
                (Some(low), _) => low.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
                (None, Action::Unplug | Action::UnplugTimer | Action::Split) => {
                    event.extra & 0xffff_ffff
                }
                (None, _) => 0,
            },
            _ => return None,
        })
    }

    fn time_of_day(&self, out: &mut Vec<u8>) {
        let micros = (self.wall_clock + self.time) / 1000;
        let seconds = micros / 1_000_000;
        for (value, after) in [
            (seconds / 3600 % 24, b':'),
            (seconds / 60 % 60, b':'),
            (seconds % 60, b'.'),
        ] {
            number(value, 2, b'0', out);
            out.push(after);
        }
        number(micros % 1_000_000, 6, b'0', out);
    }

    /// Appends the command in hex; zeros at its end are two dots.
    fn hex(&self, out: &mut Vec<u8>) {
        for (at, byte) in self.command.iter().enumerate() {
            if at > 0 {
                out.push(b' ');
            }
            out.extend_from_slice(format!("{byte:02x}").as_bytes());
            if self.command[at..].iter().all(|byte| *byte == 0) {
                out.extend_from_slice(b" ..");
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;
