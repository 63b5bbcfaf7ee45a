//! Times of a capture as the model counts them.
//!
//! Of a scheduler that counts ticks the probes give the tick it read, and a time is the beginning
//! of a tick; of one that measures latencies the records' clock is taken. Ticks are moved, so that
//! none is before tick 0.

use blkmq::request::QueueId;
use blkmq::time::{Duration, Jiffies, SimTime};

use super::{Hypotheses, Hypothesis};
use crate::event::{Event, Kind};
use crate::setup::Setup;
use crate::world::World;

/// Added to ticks, so that none is before tick 0: only differences count.
pub(crate) const TICKS_BEFORE: Jiffies = Jiffies(1 << 20);

impl Hypotheses<'_> {
    /// The earliest run of a scheduler's timer after its tick.
    pub(crate) fn after_tick(&self) -> Duration {
        self.stream.after_tick(self.setups[0].hz)
    }

    /// The tick of an event as the model counts it.
    pub(crate) fn time(&self, state: &Hypothesis, queue: QueueId, event: &Event) -> SimTime {
        let hz = self.setups[0].hz;
        if self.measures {
            // Its latencies are of the records' clock; so are ticks.
            return match event.kind {
                // An interrupt: the tick is that of its beginning.
                Kind::Complete { .. } if !self.times_of_labels() => self.measured(event.time),
                Kind::Issue if !self.calls && self.guesses() => {
                    self.measured(self.decided_before(state, event.time))
                }
                _ => self.time_of_section(state, queue, (event.time, event.cpu)),
            };
        }
        match (self.calls, event.kind) {
            (true, Kind::Arrive { at, .. } | Kind::Ask { at, .. } | Kind::Answer { at, .. }) => {
                self.time_of(at)
            }
            (true, _) => self.time_of(state.now),
            (false, _) => {
                let read = SimTime(event.time.0.saturating_add_signed(state.reads_beside));
                World::time_of(TICKS_BEFORE + read.jiffies(hz), hz)
            }
        }
    }

    /// When a call whose answer this is decided, if it read this tick.
    pub(crate) fn decides_at(&self, state: &Hypothesis, index: usize, tick: Jiffies) -> SimTime {
        let answer = &self.stream.events[index];
        let (time, cpu) = (answer.time, answer.cpu);
        match self.measures {
            true if self.guesses() => self.measured(self.decided_before(state, time)),
            true => self.time_of_section(state, self.stream.queue[index], (time, cpu)),
            false => self.time_of(tick),
        }
    }

    /// A scheduler reads the clock when it decides, and no log has the value.
    pub(crate) fn guesses(&self) -> bool {
        self.stream.logs.is_empty() && self.setups.iter().any(Setup::reads_clock)
    }

    /// The time of an event's action, by the records' clock: a decision was made before.
    pub(crate) fn acts_at(&self, state: &Hypothesis, index: usize) -> SimTime {
        let event = &self.stream.events[index];
        let decides = match event.kind {
            Kind::Answer { .. } => self.calls,
            Kind::Issue => !self.calls,
            _ => false,
        };
        match decides && self.guesses() {
            true => self.decided_before(state, event.time),
            false => event.time,
        }
    }

    /// The clock value of a decision that the record of this time shows: not before the latest
    /// event.
    fn decided_before(&self, state: &Hypothesis, time: SimTime) -> SimTime {
        let before = time.0.saturating_sub(self.setups[0].decided.before.0);
        SimTime(before).max(state.passed).min(time)
    }

    /// The clock value of a decision that no record shows, after the record of the given model
    /// time: not after the next event.
    pub(crate) fn decided_after(&self, index: usize, time: SimTime) -> SimTime {
        if !self.guesses() {
            return time;
        }
        let own = self.stream.events[index].time;
        let next = self.stream.events.get(index + 1);
        let next = next.map_or(own, |next| next.time);
        let after = own + self.setups[0].decided.after;
        self.measured(after.min(next)).max(time)
    }

    /// Lines have the time of their section.
    pub(crate) fn times_of_labels(&self) -> bool {
        self.setups[0].times_of_labels && !self.stream.logs.is_empty()
    }

    /// A time of the records as the model counts it.
    pub(crate) fn measured(&self, time: SimTime) -> SimTime {
        match self.times_of_labels() {
            // The clock of the run is the model's.
            true => time,
            false => World::time_of(TICKS_BEFORE, self.setups[0].hz) + Duration(time.0),
        }
    }

    /// The beginning of a tick that a probe read.
    pub(crate) fn time_of(&self, tick: Jiffies) -> SimTime {
        let since = Jiffies(tick.0.saturating_sub(self.stream.first_tick.0));
        World::time_of(TICKS_BEFORE + since, self.setups[0].hz)
    }
}
