//! One record header: 48 bytes (v1) or 64 bytes (v2), in either byte order, to and from `Event`.
//!
//! Offsets and the order of records are the business of `stream`.
//! Kernel: struct blk_io_trace in include/uapi/linux/blktrace_api.h (v6.12), blk_io_trace2 (v7.2).

use blkmq::time::SimTime;

use super::bytes::Bytes;
use super::event::{Action, Categories, Device, Event, Location};

/// Byte order of a traced machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

const MAGIC: u32 = 0x6561_7400;
/// Magic word of a v1 record.
pub(super) const MAGIC_V1: u32 = MAGIC | 7;
/// Magic word of a v2 record.
pub(super) const MAGIC_V2: u32 = MAGIC | 8;
/// Size of a v1 header.
pub(super) const SIZE_V1: usize = 48;
/// Size of a v2 header.
pub(super) const SIZE_V2: usize = 64;
/// Marks a cgroup id in the low 16 bits of the action word.
const CGROUP_CODE: u16 = 0x100;
/// Bytes of a cgroup id.
pub(super) const CGROUP_SIZE: usize = 8;

/// Longest text of a note we believe; the kernel's limit is 128.
const NOTE_LIMIT: usize = 1024;
/// Longest payload of a file system event; the kernel's longest is 16.
const EVENT_LIMIT: usize = 64;
/// Longest payload of a passthrough event: old kernels attach the command.
const PASSTHROUGH_LIMIT: usize = 1024;

/// Kind of a file, from its first four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Magic {
    /// A record that can be read.
    Known(Order),
    /// A block trace record of an unknown version.
    Version(u8),
    None,
}

/// Looks at the first four bytes of a file.
pub(super) fn probe(first: [u8; 4]) -> Magic {
    for (order, word) in [
        (Order::Little, u32::from_le_bytes(first)),
        (Order::Big, u32::from_be_bytes(first)),
    ] {
        if word == MAGIC_V1 || word == MAGIC_V2 {
            return Magic::Known(order);
        }
        if word & !0xff == MAGIC {
            return Magic::Version(word as u8);
        }
    }
    Magic::None
}

/// Device of the first record.
pub(super) fn device(bytes: &mut Bytes) -> Option<Device> {
    bytes.want(SIZE_V2).ok()?;
    let have = bytes.have();
    let Magic::Known(order) = probe(*have.first_chunk()?) else {
        return None;
    };
    let at = if word(order, have, 0) == MAGIC_V1 {
        36
    } else {
        40
    };
    (have.len() >= SIZE_V1).then(|| Device(word(order, have, at)))
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// `extra` and `from` are not filled in yet.
    pub(super) event: Event,
    /// Low 16 bits of the action word without the cgroup bit.
    pub(super) code: u16,
    /// Bytes that follow the header.
    pub(super) pdu_len: usize,
}

impl Header {
    /// Whether this is a process, timestamp or text note.
    #[inline]
    pub(super) fn is_note(&self) -> bool {
        self.event.categories.any(Categories::NOTIFY)
    }

    /// Why `pdu_len` cannot be, if it cannot. A length that passes is small or of an action that
    /// may carry anything.
    #[inline]
    pub(super) fn length_problem(&self) -> Option<String> {
        let cgroup = usize::from(self.event.categories.any(Categories::CGROUP)) * CGROUP_SIZE;
        let (least, most) = if self.is_note() {
            (if self.code == 1 { 8 } else { 0 }, NOTE_LIMIT)
        } else {
            match self.event.action {
                Action::Unplug | Action::UnplugTimer | Action::Split => (8, EVENT_LIMIT),
                Action::Remap => (16, EVENT_LIMIT),
                Action::DriverData | Action::Unknown => (0, usize::from(u16::MAX)),
                _ if self.event.categories.any(Categories::PC) => (0, PASSTHROUGH_LIMIT),
                _ => (0, EVENT_LIMIT),
            }
        };
        if (cgroup + least..=cgroup + most).contains(&self.pdu_len) {
            return None;
        }
        Some(format!(
            "impossible pdu_len {} for action {}{}, expected {} to {}",
            self.pdu_len,
            if self.is_note() { "note " } else { "" },
            self.code,
            cgroup + least,
            cgroup + most
        ))
    }
}

#[inline]
fn u16_at<const BIG: bool>(bytes: &[u8], at: usize) -> u16 {
    let raw = [bytes[at], bytes[at + 1]];
    if BIG {
        u16::from_be_bytes(raw)
    } else {
        u16::from_le_bytes(raw)
    }
}

#[inline]
fn u32_at<const BIG: bool>(bytes: &[u8], at: usize) -> u32 {
    let raw = bytes[at..at + 4].try_into().expect("four bytes were taken");
    if BIG {
        u32::from_be_bytes(raw)
    } else {
        u32::from_le_bytes(raw)
    }
}

#[inline]
fn u64_at<const BIG: bool>(bytes: &[u8], at: usize) -> u64 {
    let raw = bytes[at..at + 8]
        .try_into()
        .expect("eight bytes were taken");
    if BIG {
        u64::from_be_bytes(raw)
    } else {
        u64::from_le_bytes(raw)
    }
}

/// Reads a 32-bit word in the given byte order.
#[inline]
pub(super) fn word(order: Order, bytes: &[u8], at: usize) -> u32 {
    match order {
        Order::Little => u32_at::<false>(bytes, at),
        Order::Big => u32_at::<true>(bytes, at),
    }
}

/// Reads a 64-bit word in the given byte order.
#[inline]
pub(super) fn double(order: Order, bytes: &[u8], at: usize) -> u64 {
    match order {
        Order::Little => u64_at::<false>(bytes, at),
        Order::Big => u64_at::<true>(bytes, at),
    }
}

#[inline]
pub(super) fn decode_v1(order: Order, bytes: &[u8; SIZE_V1], location: Location) -> Header {
    match order {
        Order::Little => decode::<false, SIZE_V1>(bytes, location),
        Order::Big => decode::<true, SIZE_V1>(bytes, location),
    }
}

pub(super) fn decode_v2(order: Order, bytes: &[u8; SIZE_V2], location: Location) -> Header {
    match order {
        Order::Little => decode::<false, SIZE_V2>(bytes, location),
        Order::Big => decode::<true, SIZE_V2>(bytes, location),
    }
}

#[inline]
fn decode<const BIG: bool, const SIZE: usize>(bytes: &[u8; SIZE], location: Location) -> Header {
    // The versions differ in the width of the action and in the position of pid.
    let v2 = SIZE == SIZE_V2;
    let action = if v2 {
        u64_at::<BIG>(bytes, 32)
    } else {
        u64::from(u32_at::<BIG>(bytes, 28))
    };
    let pid = if v2 { 28 } else { 32 };
    let tail = if v2 { 40 } else { 36 };
    let word = action as u16;
    let mut categories = (action >> 16) as u32 & Categories::RECORD.0;
    if word & CGROUP_CODE != 0 {
        categories |= Categories::CGROUP.0;
    }
    let code = word & !CGROUP_CODE;
    let note = categories & Categories::NOTIFY.0 != 0;
    Header {
        event: Event {
            time: SimTime(u64_at::<BIG>(bytes, 8)),
            sector: u64_at::<BIG>(bytes, 16),
            extra: 0,
            location,
            bytes: u32_at::<BIG>(bytes, 24),
            categories: Categories(categories),
            pid: u32_at::<BIG>(bytes, pid),
            device: Device(u32_at::<BIG>(bytes, tail)),
            cpu: u32_at::<BIG>(bytes, tail + 4),
            sequence: u32_at::<BIG>(bytes, 4),
            from: Device(0),
            // A negative errno in 16 bits.
            error: u16_at::<BIG>(bytes, tail + 8).wrapping_neg(),
            action: if note {
                Action::Message
            } else {
                Action::from_code(code)
            },
        },
        code,
        pdu_len: usize::from(u16_at::<BIG>(bytes, tail + 10)),
    }
}

/// Decodes the common case in place: a v1 record in the given order, without payload and with an
/// action that needs none. Returns true if the record was one; if not, `event` is unspecified.
#[inline]
pub(super) fn decode_plain(order: Order, bytes: &[u8; SIZE_V1], event: &mut Event) -> bool {
    match order {
        Order::Little => plain::<false>(bytes, event),
        Order::Big => plain::<true>(bytes, event),
    }
}

#[inline]
fn plain<const BIG: bool>(bytes: &[u8; SIZE_V1], event: &mut Event) -> bool {
    let action = u32_at::<BIG>(bytes, 28);
    let code = action as u16;
    let categories = action >> 16;
    // Neither a note nor a cgroup id, whose bit makes the code larger than any known one.
    let usual = u32_at::<BIG>(bytes, 0) == MAGIC_V1
        && categories & Categories::NOTIFY.0 == 0
        && u16_at::<BIG>(bytes, 46) == 0
        && code < 32
        && PLAIN_CODES >> code & 1 == 1;
    if !usual {
        return false;
    }
    *event = Event {
        time: SimTime(u64_at::<BIG>(bytes, 8)),
        sector: u64_at::<BIG>(bytes, 16),
        extra: 0,
        location: event.location,
        bytes: u32_at::<BIG>(bytes, 24),
        categories: Categories(categories),
        pid: u32_at::<BIG>(bytes, 32),
        device: Device(u32_at::<BIG>(bytes, 36)),
        cpu: u32_at::<BIG>(bytes, 40),
        sequence: u32_at::<BIG>(bytes, 4),
        from: Device(0),
        error: u16_at::<BIG>(bytes, 44).wrapping_neg(),
        action: Action::from_code(code),
    };
    true
}

/// Codes of actions without payload: Q, M, F, G, S, R, D, C, P and I.
const PLAIN_CODES: u32 = 0b1_0011_1111_1110;

/// Encodes a header. Returns its size; the rest of the array is unused.
pub(super) fn encode(
    order: Order,
    v2: bool,
    event: &Event,
    code: u16,
    pdu_len: u16,
) -> ([u8; SIZE_V2], usize) {
    let mut out = [0u8; SIZE_V2];
    let mut put = |at: usize, width: usize, value: u64| match order {
        Order::Little => out[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]),
        Order::Big => out[at..at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]),
    };
    let categories = u64::from((event.categories.0) & Categories::RECORD.0);
    let cgroup = event.categories.any(Categories::CGROUP);
    let action = categories << 16 | u64::from(code) | u64::from(cgroup) << 8;
    put(0, 4, u64::from(if v2 { MAGIC_V2 } else { MAGIC_V1 }));
    put(4, 4, u64::from(event.sequence));
    put(8, 8, event.time.0);
    put(16, 8, event.sector);
    put(24, 4, u64::from(event.bytes));
    let tail = if v2 {
        put(28, 4, u64::from(event.pid));
        put(32, 8, action);
        40
    } else {
        put(28, 4, action & 0xffff_ffff);
        put(32, 4, u64::from(event.pid));
        36
    };
    put(tail, 4, u64::from(event.device.0));
    put(tail + 4, 4, u64::from(event.cpu));
    put(tail + 8, 2, u64::from(event.error.wrapping_neg()));
    put(tail + 10, 2, u64::from(pdu_len));
    (out, if v2 { SIZE_V2 } else { SIZE_V1 })
}

/// Fills in `extra` and `from` from the payload. The kernel stores these values big-endian on every
/// machine. Panics if `length_problem` would object.
#[inline]
pub(super) fn apply_pdu(event: &mut Event, pdu: &[u8]) {
    match event.action {
        Action::Unplug | Action::UnplugTimer | Action::Split => {
            event.extra = u64_at::<true>(pdu, 0);
        }
        Action::Remap => {
            event.from = Device(u32_at::<true>(pdu, 0));
            event.extra = u64_at::<true>(pdu, 8);
        }
        _ => {}
    }
}

/// The payload that `apply_pdu` reads, and its length.
pub(super) fn pdu_of(event: &Event) -> ([u8; 16], usize) {
    let mut pdu = [0; 16];
    match event.action {
        Action::Unplug | Action::UnplugTimer | Action::Split => {
            pdu[..8].copy_from_slice(&event.extra.to_be_bytes());
            (pdu, 8)
        }
        Action::Remap => {
            pdu[..4].copy_from_slice(&event.from.0.to_be_bytes());
            pdu[4..8].copy_from_slice(&event.device.0.to_be_bytes());
            pdu[8..].copy_from_slice(&event.extra.to_be_bytes());
            (pdu, 16)
        }
        _ => (pdu, 0),
    }
}

#[cfg(test)]
mod tests;
