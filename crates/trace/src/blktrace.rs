//! The kernel's binary block trace: records v1 (48 bytes) and v2 (64 bytes), read and written.
//!
//! `paths` finds the per-CPU files, `bytes` undoes compression, `record` decodes one header,
//! `stream` checks one file, `reader` merges all of them in blkparse's order. Not here: which
//! events belong to one I/O (`matching`), and the parsers of texts (`formats`), whose lines become
//! events in `lines`.
//! Kernel: include/uapi/linux/blktrace_api.h and kernel/trace/blktrace.c (v6.12, v7.2 for v2).

use std::io::Read as _;

use crate::packed::Packed;

mod bytes;
mod devices;
mod event;
mod formats;
mod lines;
mod paths;
mod reader;
mod record;
mod reorder;
mod stream;
mod warnings;
mod writer;

pub(crate) use devices::Asked;
pub use event::{Action, Categories, Device, Event, Location, Rwbs};
pub use formats::{Format, other_kind};
pub(crate) use paths::first_device;
pub use paths::parse_name;
pub use reader::{DeviceChoice, Options, Reader};
pub use record::Order;
pub use warnings::{Row, Warning, Warnings};
pub use writer::{Version, Writer, WriterOptions};

/// True for an empty file: blktrace writes one for a CPU that traced nothing.
pub fn is_empty(file: &std::path::Path) -> crate::Result<bool> {
    let io = |source| crate::Error::io(file, 0, source);
    let mut first = Packed::open(file).map_err(io)?.take(1);
    Ok(first.read_to_end(&mut Vec::new()).map_err(io)? == 0)
}
