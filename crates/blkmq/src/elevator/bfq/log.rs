//! What BFQ writes to blktrace, line by line as the kernel does, and the clock between two lines.
//!
//! Nothing is formatted unless somebody listens. Kernel: bfq_log(), bfq_log_bfqq(),
//! bfq_bfqq_name() in block/bfq-iosched.h (6.1.192, 6.12.117).

use core::fmt::{self, Write};

use crate::elevator::scheduler::TRACED;
use crate::time::SimTime;

/// A line of a queue: `say!(bfq, q, "...")`, or of the device: `say!(bfq, "...")`.
macro_rules! say {
    ($bfq:expr, $q:expr, $($text:tt)+) => {
        if $bfq.log.listens {
            let queue = &$bfq.queues[$q];
            let name = $crate::elevator::bfq::log::Name::of(queue);
            $bfq.log.line(format_args!("{name} {}", format_args!($($text)+)));
        }
    };
}

/// A line of the device.
macro_rules! say_device {
    ($bfq:expr, $($text:tt)+) => {
        if $bfq.log.listens {
            $bfq.log.line(format_args!("bfq {}", format_args!($($text)+)));
        }
    };
}

/// A queue as lines name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pid: i32,
    sync: bool,
}

impl Name {
    pub(super) fn of(queue: &super::queue::Queue) -> Name {
        Name {
            pid: queue.pid,
            sync: queue.flags.sync,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.sync { 'S' } else { 'A' };
        match self.pid {
            -1 => write!(f, "bfqSHARED-{kind}"),
            pid => write!(f, "bfq{pid}{kind}"),
        }
    }
}

/// Lines since they were taken last.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Log {
    pub(super) listens: bool,
    text: String,
    /// When the kernel wrote the lines that come next.
    times: Vec<SimTime>,
    /// So many of them have been written here.
    written: usize,
}

impl Log {
    /// Nothing is written yet.
    pub(super) fn new(listens: bool) -> Log {
        Log {
            listens,
            ..Log::default()
        }
    }

    pub(super) fn line(&mut self, text: fmt::Arguments<'_>) {
        let written = self.text.write_fmt(text);
        written.expect("a string takes all that is written to it");
        self.text.push('\n');
        self.written += 1;
    }

    /// blktrace has a record of its own here.
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

    pub(super) fn lines_at(&mut self, times: &[SimTime]) {
        self.times.clear();
        self.times.extend_from_slice(times);
        self.written = 0;
    }

    /// The clock before the next line, if that is known; behind the last known one that's time.
    pub(super) fn time(&self) -> Option<SimTime> {
        let last = self.times.len().checked_sub(1)?;
        Some(self.times[self.written.min(last)])
    }
}
