//! The tick (jiffies) at each moment of a capture, as the scheduler's log and its probes show it.
//!
//! Ticks come at one distance, but at a phase of the records' clock that no file states, and late
//! where the CPU that counts them sleeps. Lines with a number of whole ticks since a moment that
//! their object keeps (bfq: "raising period dur") give both: the step of this number between two
//! lines of one object bounds a tick. So do the ticks that probes read.
//! Kernel: kernel/time/tick-sched.c, tick_do_update_jiffies64().

use std::collections::BTreeMap;

use blkmq::elevator::LogMarks;
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
    /// Two lines of the section at the end of which its object took the tick that it counts from.
    taken: Option<(SimTime, SimTime)>,
}

/// The tick that a probe read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) time: SimTime,
    pub(super) tick: Jiffies,
    /// Under the scheduler's lock.
    pub(super) locked: bool,
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
    /// Each log with its marks, and what the probes of its device read.
    pub(super) fn of_logs<'a>(
        logs: impl Iterator<Item = (&'a Log, &'static LogMarks)>,
        probes: &[Vec<Probe>],
        hz: u32,
    ) -> Ticks {
        let length = 1_000_000_000 / u64::from(hz);
        let start = probes.iter().flatten().map(|probe| probe.tick).min();
        let (mut objects, mut read) = (Vec::new(), Vec::new());
        for ((log, marks), probes) in logs.zip(probes) {
            objects.extend(counts(log, marks, hz).into_values());
            read.extend(
                probes
                    .iter()
                    .map(|probe| probe.count(log, start.unwrap_or_default())),
            );
        }
        read.sort_unstable_by_key(|count| (count.time, count.ticks));
        objects.push(read);
        let phase = phase(&objects, length);
        let read = objects.pop().unwrap_or_default();
        let mut ticks = Ticks {
            length,
            phase,
            known: Vec::new(),
        };
        let (start, _) = ticks.start(&read);
        let read: Vec<Known> = read.iter().map(|count| count.since(start)).collect();
        ticks.keep(read.clone());
        let of_lines = objects.iter().flat_map(|all| ticks.know(all));
        let of_lines = of_lines
            .filter(|known| ticks.fits(known))
            .collect::<Vec<_>>();
        ticks.keep([read, of_lines].concat());
        ticks
    }

    /// Those that are in order.
    fn keep(&mut self, mut all: Vec<Known>) {
        all.sort_by_key(|known| (known.last, known.tick));
        self.known.clear();
        for known in all {
            let before = self.known.last().map_or(0, |last| last.tick);
            // The moment of its object changed meanwhile: the tick was not late.
            if known.tick >= before {
                self.known.push(known);
            }
        }
    }

    /// It is between the ticks that are known before and after it.
    fn fits(&self, known: &Known) -> bool {
        let next = self
            .known
            .partition_point(|other| other.last <= known.first);
        let after = self.known[next..]
            .iter()
            .find(|other| other.first >= known.last);
        let before = next
            .checked_sub(1)
            .map_or(0, |before| self.known[before].tick);
        known.tick >= before && after.is_none_or(|after| known.tick <= after.tick)
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

    /// The tick at this time, if it is in a section in which the tick is known.
    pub(super) fn known_at(&self, time: SimTime) -> Option<Jiffies> {
        let next = self.known.partition_point(|known| known.last < time);
        let known = self.known.get(next).filter(|known| known.first <= time);
        known.map(|known| Jiffies(known.tick))
    }

    /// What the lines of one object show: most of those that follow one another count from one
    /// moment, and others came before a late tick.
    fn know(&self, lines: &[Count]) -> Vec<Known> {
        let since = |line: &Count| self.usual(line.time).saturating_sub(line.ticks);
        let near = |a: &Count, b: &Count| since(a).abs_diff(since(b)) <= LATE_MOST;
        let mut known = Vec::new();
        for run in lines.chunk_by(near) {
            let (mut start, most) = self.start(run);
            if run.len() >= LINES_ENOUGH && 2 * most > run.len() {
                known.extend(run.iter().map(|line| line.since(start)));
            } else {
                start = self.at(run[0].time).0.saturating_sub(run[0].ticks);
            }
            // Only probes bound a tick that few lines show.
            let bounded = run.len() >= LINES_ENOUGH || !self.known.is_empty();
            let taken = run[0].taken.filter(|_| bounded).map(|(first, last)| Known {
                first,
                last,
                tick: start,
            });
            known.extend(taken);
        }
        known
    }

    /// The tick that most of these are counted from, and how many are.
    fn start(&self, all: &[Count]) -> (u64, usize) {
        let mut times: BTreeMap<u64, usize> = BTreeMap::new();
        for count in all {
            let start = self.usual(count.time).saturating_sub(count.ticks);
            *times.entry(start).or_default() += 1;
        }
        times
            .into_iter()
            .max_by_key(|&(_, n)| n)
            .unwrap_or_default()
    }
}

impl Probe {
    /// Its own moment, or all of its section until then.
    fn count(&self, log: &Log, start: Jiffies) -> Count {
        let next = log.times.partition_point(|&line| line <= self.time);
        let before = log.goes_on[..next]
            .iter()
            .rev()
            .take_while(|&&on| on)
            .count();
        Count {
            first: match before {
                lines @ 1.. if self.locked => begins(log.times[next - lines]),
                _ => self.time,
            },
            time: self.time,
            ticks: self.tick.0 - start.0,
            taken: None,
        }
    }
}

/// A section begins so long before its first line.
fn begins(line: SimTime) -> SimTime {
    SimTime(line.0.saturating_sub(BEFORE_LINE))
}

impl Count {
    fn since(&self, start: u64) -> Known {
        Known {
            first: self.first,
            last: self.time,
            tick: start + self.ticks,
        }
    }
}

/// Lines that count ticks, by the pointer of their object, or by its name where that has none.
fn counts<'a>(log: &'a Log, marks: &LogMarks, hz: u32) -> BTreeMap<&'a str, Vec<Count>> {
    let mut pointers: BTreeMap<&str, &str> = BTreeMap::new();
    let mut objects: BTreeMap<&str, Vec<Count>> = BTreeMap::new();
    let mut taken = BTreeMap::new();
    let mut first = SimTime::ZERO;
    for (at, (line, &time)) in log.lines.iter().zip(&log.times).enumerate() {
        if at == 0 || !log.goes_on[at - 1] {
            first = begins(time);
        }
        let mut words = words(line).map(|word| parts(word).0);
        let name = words.next().unwrap_or_default();
        if let Some(pointer) = words.filter(|word| is_pointer(word)).last() {
            pointers.insert(name, pointer);
        }
        if line.contains(marks.takes_tick) {
            let more = log.goes_on[at..].iter().take_while(|&&on| on).count();
            let last = log.times.get(at + more).copied().unwrap_or(time);
            taken.insert(name, (time, last));
        }
        let Some((_, after)) = line.split_once(marks.ticks) else {
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
            taken: taken.remove(name),
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
