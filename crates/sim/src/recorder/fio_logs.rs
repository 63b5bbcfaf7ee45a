//! The lines of fio's log files: latencies, bandwidth, IOPS and histograms of a thread over time.
//!
//! Times are ms from the thread's start. After add_log_sample(), add_clat_sample() in stat.c and
//! flush_samples() in iolog.c of fio 3.33.

use std::fmt::Write as _;

use blkmq::request::{IoClass, IoPrio};
use blkmq::time::{Duration, SimTime};

use super::IoRecord;
use super::fio::{FioDirection, Moments};
use crate::plan::{LogOptions, Output};

/// Logs of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FioLogs {
    // Settings.
    options: LogOptions,
    prio: IoPrio,

    // State.
    /// Start of the thread.
    epoch: SimTime,
    lat: Option<Log>,
    slat: Option<Log>,
    clat: Option<Log>,
    bw: Option<Log>,
    iops: Option<Log>,
    hist: Option<Histograms>,
}

/// One log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Log {
    text: String,
    /// Values since the last line, by direction.
    window: [Moments; 3],
    /// Where the next interval of `log_avg_msec` begins, ms.
    last: [u64; 3],
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Histograms {
    text: String,
    /// Time and counts of the last line.
    last: [u64; 3],
    before: [Vec<u64>; 3],
}

/// An I/O in a line.
struct Line {
    direction: usize,
    bytes: u64,
    offset: u64,
}

impl FioLogs {
    /// `None` if the job writes no log.
    pub(super) fn of(output: &Output, prio: IoPrio) -> Option<Box<FioLogs>> {
        let options = &output.logs;
        let log = |wanted: bool| wanted.then(Log::default);
        let latency = options.lat.is_some();
        let logs = FioLogs {
            prio,
            epoch: SimTime::ZERO,
            lat: log(latency),
            slat: log(latency),
            clat: log(latency),
            bw: log(options.bw.is_some()),
            iops: log(options.iops.is_some()),
            hist: options.hist.is_some().then(Histograms::default),
            options: options.clone(),
        };
        logs.options.are_written().then(|| Box::new(logs))
    }

    pub(super) fn starts(&mut self, at: SimTime) {
        self.epoch = at;
    }

    /// The thread counts from here on: no latencies so far.
    pub(super) fn clear(&mut self) {
        if let Some(hist) = &mut self.hist {
            hist.before.iter_mut().for_each(Vec::clear);
        }
    }

    fn ms(&self, at: SimTime) -> u64 {
        at.since(self.epoch).0 / 1_000_000
    }

    /// An I/O of a direction has ended; its figures have it already.
    pub(super) fn io(&mut self, io: &IoRecord, direction: usize, of: &FioDirection) {
        let at = self.ms(io.at);
        let line = Line {
            direction,
            bytes: u64::from(io.sectors.0) * 512,
            offset: io.sector.0 * 512,
        };
        let (options, prio) = (&self.options, self.prio);
        let lat = io.latency + io.prepared;
        let values = [
            (&mut self.lat, Some(lat)),
            (&mut self.clat, Some(io.latency)),
            (&mut self.slat, io.slat),
        ];
        for (log, value) in values {
            if let (Some(log), Some(value)) = (log, value) {
                log.add(options, prio, at, value.0, &line);
            }
        }
        if options.avg_msec == 0 {
            // KB a second of the I/O alone.
            let rate = (line.bytes * 1_000_000).checked_div(io.latency.0);
            if let Some(log) = &mut self.bw {
                log.write(options, prio, at, rate.unwrap_or(0), &line);
            }
            if let Some(log) = &mut self.iops {
                log.write(options, prio, at, 1, &line);
            }
        }
        if let Some(hist) = &mut self.hist {
            hist.note(options, at, &line, &of.clat.buckets);
        }
    }

    /// Rates of a direction in an interval that ends at `at`.
    pub(super) fn rate(&mut self, at: SimTime, direction: usize, value: u64, of: Rate) {
        let at = self.ms(at);
        let log = match of {
            Rate::Bandwidth => &mut self.bw,
            Rate::Iops => &mut self.iops,
        };
        if let Some(log) = log {
            log.write_mean(&self.options, self.prio, at, value, direction);
        }
    }

    /// The thread has ended: what is not written yet.
    pub(super) fn ends(&mut self, at: SimTime) {
        let at = self.ms(at);
        for log in [&mut self.lat, &mut self.slat, &mut self.clat] {
            let Some(log) = log else { continue };
            for direction in 0..3 {
                log.flush(&self.options, self.prio, at, direction);
            }
        }
    }

    /// The logs by their kinds in names of files.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let logs = [
            ("lat", &self.lat),
            ("slat", &self.slat),
            ("clat", &self.clat),
            ("bw", &self.bw),
            ("iops", &self.iops),
        ];
        let logs = logs.into_iter();
        let logs = logs.filter_map(|(kind, log)| Some((kind, log.as_ref()?.text.as_str())));
        let hist = self.hist.as_ref().map(|of| ("clat_hist", of.text.as_str()));
        logs.chain(hist)
    }
}

/// Kinds of rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rate {
    Bandwidth,
    Iops,
}

impl Log {
    fn add(&mut self, options: &LogOptions, prio: IoPrio, at: u64, value: u64, line: &Line) {
        if options.avg_msec == 0 {
            self.write(options, prio, at, value, line);
            return;
        }
        let direction = line.direction;
        self.window[direction].add(value);
        let every = u64::from(options.avg_msec);
        if at < self.last[direction] + every {
            return;
        }
        self.flush(options, prio, at, direction);
        self.last[direction] = at - at % every;
    }

    /// The line of an interval.
    fn flush(&mut self, options: &LogOptions, prio: IoPrio, at: u64, direction: usize) {
        let window = core::mem::take(&mut self.window[direction]);
        if window.count == 0 {
            return;
        }
        let value = match options.max_value {
            true => window.max,
            false => (window.mean() + 0.5) as u64,
        };
        self.write_mean(options, prio, at, value, direction);
    }

    fn write_mean(
        &mut self,
        options: &LogOptions,
        prio: IoPrio,
        at: u64,
        value: u64,
        direction: usize,
    ) {
        let none = IoPrio::default();
        let line = Line {
            direction,
            bytes: 0,
            offset: 0,
        };
        let prio = if options.avg_msec == 0 { prio } else { none };
        self.write(options, prio, at, value, &line);
    }

    fn write(&mut self, options: &LogOptions, prio: IoPrio, at: u64, value: u64, line: &Line) {
        let Line {
            direction,
            bytes,
            offset,
        } = line;
        let text = &mut self.text;
        // Writing into a string cannot fail.
        let _ = write!(text, "{at}, {value}, {direction}, {bytes}");
        if options.offset {
            let _ = write!(text, ", {offset}");
        }
        let class = match prio.class {
            IoClass::None => 0,
            IoClass::RealTime => 1,
            IoClass::BestEffort => 2,
            IoClass::Idle => 3,
        };
        let _ = match options.prio {
            true => writeln!(text, ", 0x{:04x}", class << 13 | u16::from(prio.level)),
            false => writeln!(text, ", {}", u16::from(class == 1)),
        };
    }
}

impl Histograms {
    fn note(&mut self, options: &LogOptions, at: u64, line: &Line, buckets: &[u64]) {
        let last = &mut self.last[line.direction];
        if *last == 0 {
            *last = at;
        }
        let every = u64::from(options.hist_msec);
        if every == 0 || buckets.is_empty() || at - *last < every {
            return;
        }
        *last += every;
        let before = &mut self.before[line.direction];
        before.resize(buckets.len(), 0);
        let _ = write!(self.text, "{at}, {}, {}", line.direction, line.bytes);
        let stride = 1 << options.hist_coarseness;
        for (now, before) in buckets.chunks(stride).zip(before.chunks(stride)) {
            let (now, before): (u64, u64) = (now.iter().sum(), before.iter().sum());
            let _ = write!(self.text, ", {}", now - before);
        }
        self.text.push('\n');
        before.copy_from_slice(buckets);
    }
}

/// Length of the intervals of a rate's samples; `None`: each I/O is a sample.
pub(super) fn interval(own: Duration, is_logged: bool, options: &LogOptions) -> Option<Duration> {
    match (is_logged, options.avg_msec) {
        (false, _) => Some(own),
        (true, 0) => None,
        (true, ms) => Some(Duration::from_millis(u64::from(ms))),
    }
}
