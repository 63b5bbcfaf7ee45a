//! The tick (jiffies) at each moment of a capture, as the scheduler's log shows it.
//!
//! Ticks come at one distance, but at a phase of the records' clock that no file states, and late
//! where the CPU that counts them sleeps. Lines with a number of whole ticks since a moment that
//! their object keeps (bfq: "raising period dur") give both: the step of this number between two
//! lines of one object bounds a tick.
//! Kernel: kernel/time/tick-sched.c, tick_do_update_jiffies64().

use std::collections::BTreeMap;

use blkmq::time::{Jiffies, SimTime};

use super::hypothesis::BEFORE_LINE;
use super::lines::{Log, is_pointer, parts, words};

/// A tick may be late by so many others.
const LATE_MOST: u64 = 2;
/// Lines of one object that give a moment, at least.
const LINES_ENOUGH: usize = 3;

/// A section in which the tick is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    first: SimTime,
    last: SimTime,
    tick: u64,
}

/// A line that counts ticks.
#[derive(Clone, Copy, Debug)]
struct Count {
    first: SimTime,
    time: SimTime,
    ticks: u64,
}

/// All ticks of a capture.
#[derive(Clone, Debug)]
pub(super) struct Ticks {
    /// Nanoseconds of one.
    length: u64,
    /// The first one comes so long after time 0.
    phase: u64,
    /// In order of time and of ticks.
    known: Vec<Known>,
}

impl Ticks {
    /// `mark`: what a line has before its number of ms.
    pub(super) fn of_logs<'a>(logs: impl Iterator<Item = (&'a Log, &'a str)>, hz: u32) -> Ticks {
        let length = 1_000_000_000 / u64::from(hz);
        let mut objects = Vec::new();
        for (log, mark) in logs {
            objects.extend(counts(log, mark, hz).into_values());
        }
        let mut ticks = Ticks {
            length,
            phase: phase(&objects, length),
            known: Vec::new(),
        };
        let mut known: Vec<Known> = objects.iter().flat_map(|all| ticks.know(all)).collect();
        known.sort_by_key(|known| (known.last, known.tick));
        for known in known {
            let before = ticks.known.last().map_or(0, |last| last.tick);
            // The moment of its object changed meanwhile: the tick was not late.
            if known.tick >= before {
                ticks.known.push(known);
            }
        }
        ticks
    }

    /// The number of the tick at this time, if none is late. The phase comes with tick 1.
    fn usual(&self, time: SimTime) -> u64 {
        (time.0 + self.length - self.phase) / self.length
    }

    /// The tick at this time: that of its section, or between those of the sections before and
    /// after it.
    pub(super) fn at(&self, time: SimTime) -> Jiffies {
        let next = self.known.partition_point(|known| known.last < time);
        let before = next.checked_sub(1).map_or(0, |last| self.known[last].tick);
        let tick = match self.known.get(next) {
            Some(next) if next.first <= time => next.tick,
            Some(next) => self.usual(time).min(next.tick),
            None => self.usual(time),
        };
        Jiffies(tick.max(before))
    }

    /// What the lines of one object show: most of those that follow one another count from one
    /// moment, and others came before a late tick.
    fn know(&self, lines: &[Count]) -> Vec<Known> {
        let since = |line: &Count| self.usual(line.time).saturating_sub(line.ticks);
        let near = |a: &Count, b: &Count| since(a).abs_diff(since(b)) <= LATE_MOST;
        let mut known = Vec::new();
        for run in lines.chunk_by(near) {
            let mut times: BTreeMap<u64, usize> = BTreeMap::new();
            for line in run {
                *times.entry(since(line)).or_default() += 1;
            }
            let (&from, &most) = times.iter().max_by_key(|&(_, n)| n).expect("not empty");
            if run.len() < LINES_ENOUGH || 2 * most <= run.len() {
                continue;
            }
            known.extend(run.iter().map(|line| Known {
                first: line.first,
                last: line.time,
                tick: from + line.ticks,
            }));
        }
        known
    }
}

/// Lines that count ticks, by the pointer of their object, or by its name where that has none.
fn counts<'a>(log: &'a Log, mark: &str, hz: u32) -> BTreeMap<&'a str, Vec<Count>> {
    let mut pointers: BTreeMap<&str, &str> = BTreeMap::new();
    let mut objects: BTreeMap<&str, Vec<Count>> = BTreeMap::new();
    let mut first = SimTime::ZERO;
    for (at, (line, &time)) in log.lines.iter().zip(&log.times).enumerate() {
        if at == 0 || !log.goes_on[at - 1] {
            first = SimTime(time.0.saturating_sub(BEFORE_LINE));
        }
        let mut words = words(line).map(|word| parts(word).0);
        let name = words.next().unwrap_or_default();
        if let Some(pointer) = words.filter(|word| is_pointer(word)).last() {
            pointers.insert(name, pointer);
        }
        let Some((_, after)) = line.split_once(mark) else {
            continue;
        };
        let ms = after.split(|c: char| !c.is_ascii_digit()).next();
        let Some(ms) = ms.and_then(|ms| ms.parse::<u32>().ok()) else {
            continue;
        };
        let object = pointers.get(name).copied().unwrap_or(name);
        objects.entry(object).or_default().push(Count {
            first,
            time,
            ticks: u64::from(ms) * u64::from(hz) / 1000,
        });
    }
    objects
}

/// The time in a tick's length at which most of the ticks that two lines enclose can have come: 0
/// if that is one, else the middle. A line's number is read after its section has begun.
fn phase(objects: &[Vec<Count>], length: u64) -> u64 {
    // Each tick opens a range at a line, and closes it at the next one.
    let mut turns: BTreeMap<u64, i64> = BTreeMap::new();
    for pair in objects.iter().flat_map(|lines| lines.windows(2)) {
        let (from, to) = (pair[0].first.0, pair[1].time.0);
        if pair[1].ticks != pair[0].ticks + 1 || to - from >= length {
            continue;
        }
        let (from, to) = (from % length, to % length);
        *turns.entry(from).or_default() += 1;
        *turns.entry(to).or_default() -= 1;
        if to < from {
            *turns.entry(0).or_default() += 1;
        }
    }
    let (mut open, mut most, mut best) = (0, 0, (0, length));
    let ends: Vec<u64> = turns.keys().skip(1).copied().chain([length]).collect();
    for ((&from, turn), to) in turns.iter().zip(ends) {
        open += turn;
        if open > most {
            (most, best) = (open, (from, to));
        }
    }
    match best {
        (0, _) => 0,
        (from, to) => from.midpoint(to) % length,
    }
}

#[cfg(test)]
mod tests;
