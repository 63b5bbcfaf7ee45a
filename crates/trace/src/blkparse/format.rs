//! How one event becomes text: the formats of `-f`, and the default lines as such formats.
//!
//! A format is fixed text and fields such as `%-8C`. Not here: which format an event has
//! (`blkparse.rs`). Read first: blkparse_fmt.c of blktrace 1.2.0.

use super::Line;
use crate::blktrace::{Action, Device};
#[cfg(test)]
use crate::line_format::Column;
pub use crate::line_format::Format;
use crate::line_format::{Field, Piece};

const NANO: u64 = 1_000_000_000;

impl Format {
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
