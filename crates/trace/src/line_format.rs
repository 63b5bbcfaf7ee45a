//! A format of blkparse's `-f`: text and fields such as `%-8C`, to print lines and to read them.
//!
//! Not here: what a field prints (`blkparse/format.rs`), and lines of such a format as events
//! (`blktrace`). Read first: blkparse_fmt.c of blktrace 1.2.0.

/// A letter after `%`, its field, and what it prints.
type Specifier = (u8, Field, &'static str);

/// A value of an event that a format can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
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
pub(crate) enum Piece {
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
pub struct Format(pub(crate) Vec<Piece>);

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
    pub(crate) fn inner(spec: &str) -> Format {
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
