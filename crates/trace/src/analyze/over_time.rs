//! Rates, latencies and depths over time, in a fixed number of bins.
//!
//! A bin becomes twice as long whenever the capture is longer than all of them.

use blkmq::time::SimTime;

use super::groups::direction;
use crate::matching::Io;

const BINS: usize = 512;
/// Length of a bin at the beginning, ns.
const FIRST: u64 = 1 << 10;

/// What completed in a span of time, and how much was in flight in it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Bin {
    /// Reads that completed without an error, and all others that did.
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Sum, number and greatest of the times from D to C, and from Q to C, ns.
    pub d2c: (u64, u64, u64),
    pub q2c: (u64, u64, u64),
    /// Bios times nanoseconds from Q to C, and from D to C: divided by the length, the mean depth.
    pub in_flight_ns: u64,
    pub with_driver_ns: u64,
    /// Most bios in flight, as seen at submissions.
    pub in_flight_max: u64,
    /// Requests that were issued elsewhere than the one before.
    pub seeks: u64,
}

impl Bin {
    fn merge(&mut self, other: &Bin) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        for (own, of) in [(&mut self.d2c, other.d2c), (&mut self.q2c, other.q2c)] {
            *own = (own.0 + of.0, own.1 + of.1, own.2.max(of.2));
        }
        self.in_flight_ns += other.in_flight_ns;
        self.with_driver_ns += other.with_driver_ns;
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
        self.seeks += other.seeks;
    }
}

/// See the head of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverTime {
    /// Length of each bin, ns.
    pub bin_ns: u64,
    /// Up to the last one with something in it.
    pub bins: Vec<Bin>,
}

impl Default for OverTime {
    fn default() -> OverTime {
        OverTime {
            bin_ns: FIRST,
            bins: Vec::with_capacity(BINS),
        }
    }
}

impl OverTime {
    /// Bin of a time. Lengths are powers of two until they are made coarser.
    #[inline]
    fn at(&self, time: u64) -> u64 {
        time >> self.bin_ns.trailing_zeros()
    }

    #[inline]
    fn bin(&mut self, time: u64) -> &mut Bin {
        while self.at(time) >= BINS as u64 {
            for at in 0..self.bins.len().div_ceil(2) {
                let second = self.bins.get(2 * at + 1).copied().unwrap_or_default();
                self.bins[at] = self.bins[2 * at];
                self.bins[at].merge(&second);
            }
            self.bins.truncate(self.bins.len().div_ceil(2));
            self.bin_ns *= 2;
        }
        let at = self.at(time) as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, Bin::default());
        }
        &mut self.bins[at]
    }

    /// At most so many bins, each as long as several of these.
    pub fn coarser(&self, most: usize) -> OverTime {
        let each = self.bins.len().div_ceil(most).max(1);
        let merged = |bins: &[Bin]| {
            let mut all = Bin::default();
            for bin in bins {
                all.merge(bin);
            }
            all
        };
        OverTime {
            bin_ns: self.bin_ns * each as u64,
            bins: self.bins.chunks(each).map(merged).collect(),
        }
    }

    /// Counts a completed bio.
    #[inline]
    pub(super) fn add(&mut self, io: &Io, genesis: SimTime) {
        let Some(completed) = io.completed else {
            return;
        };
        let to = completed.since(genesis).0;
        let read = direction(io) == "read";
        let bin = self.bin(to);
        let (ios, bytes) = match read {
            true => (&mut bin.reads, &mut bin.read_bytes),
            false => (&mut bin.writes, &mut bin.write_bytes),
        };
        if io.error == 0 {
            *ios += 1;
            *bytes += u64::from(io.bytes);
        }
        for (from, sum) in [(io.issued, &mut bin.d2c), (io.queued, &mut bin.q2c)] {
            if let Some(from) = from {
                let span = completed.since(from).0;
                *sum = (sum.0 + span, sum.1 + 1, sum.2.max(span));
            }
        }
        if let Some(queued) = io.queued {
            self.spread(queued.since(genesis).0, to, |bin, ns| {
                bin.in_flight_ns += ns;
            });
        }
        if let Some(issued) = io.issued {
            self.spread(issued.since(genesis).0, to, |bin, ns| {
                bin.with_driver_ns += ns;
            });
        }
    }

    /// Gives each bin its part of a span, whose end has a bin already.
    #[inline]
    fn spread(&mut self, from: u64, to: u64, add: impl Fn(&mut Bin, u64)) {
        let mut from = from;
        while from < to {
            let at = self.at(from);
            let until = to.min((at + 1) * self.bin_ns);
            add(&mut self.bins[at as usize], until - from);
            from = until;
        }
    }

    /// Takes the bios in flight at a submission, or a seek.
    #[inline]
    pub(super) fn see(&mut self, time: u64, in_flight: u64, moved: bool) {
        let bin = self.bin(time);
        bin.in_flight_max = bin.in_flight_max.max(in_flight);
        bin.seeks += u64::from(moved);
    }
}
