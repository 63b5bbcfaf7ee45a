//! Messages of a scheduler in blktrace, the same as its kernel's, and the clocks between
//! two messages.
//!
//! Messages are formatted only if a log is recorded. A scheduler with messages has a field `log`,
//! and `line_name` with the name of a queue in them. Not here: the place of messages among the
//! records of the block layer (`locked/log.rs`). Kernel: blk_add_trace_msg() in
//! include/linux/blktrace_api.h.

use core::fmt::{self, Write};

use super::scheduler::{Now, TRACED};

/// A message of a queue: `trace_msg!(scheduler, q, "...")`.
macro_rules! trace_msg {
    ($scheduler:expr, $q:expr, $($text:tt)+) => {
        if $scheduler.log.listens {
            let name = $scheduler.line_name($q);
            $scheduler.log.line(format_args!("{name} {}", format_args!($($text)+)));
        }
    };
}

/// A message of the device.
macro_rules! trace_device_msg {
    ($scheduler:expr, $($text:tt)+) => {
        if $scheduler.log.listens {
            $scheduler.log.line_of_device(format_args!($($text)+));
        }
    };
}

/// Messages since the last call that took them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Messages {
    pub(super) listens: bool,
    /// The prefix of the device's messages.
    device: &'static str,
    text: String,
    /// The clocks when the kernel wrote the next messages.
    clocks: Vec<Now>,
    /// The number of these that have been used.
    written: usize,
}

impl Messages {
    pub(super) fn new(device: &'static str, listens: bool) -> Messages {
        Messages {
            listens,
            device,
            ..Messages::default()
        }
    }

    pub(super) fn line(&mut self, text: fmt::Arguments<'_>) {
        let written = self.text.write_fmt(text);
        written.expect("a string takes all that is written to it");
        self.text.push('\n');
        self.written += 1;
    }

    pub(super) fn line_of_device(&mut self, text: fmt::Arguments<'_>) {
        let device = self.device;
        self.line(format_args!("{device} {text}"));
    }

    /// Marks the place of a record that blktrace itself writes.
    pub(super) fn traced(&mut self) {
        if self.listens {
            self.text.push_str(TRACED);
            self.text.push('\n');
        }
    }

    pub(super) fn take(&mut self, each: &mut dyn FnMut(&str)) {
        for line in self.text.lines() {
            each(line);
        }
        self.text.clear();
    }

    pub(super) fn lines_at(&mut self, clocks: &[Now]) {
        self.clocks.clear();
        self.clocks.extend_from_slice(clocks);
        self.written = 0;
    }

    /// The clocks before the next message, if known; after the last known message, its clocks.
    #[inline]
    pub(super) fn next(&self) -> Option<Now> {
        let last = self.clocks.len().checked_sub(1)?;
        Some(self.clocks[self.written.min(last)])
    }
}

/// A number in the form of a pointer (`%p`).
pub(super) fn pointer(number: u32) -> u64 {
    u64::from(number) | 0xffff << 48
}
