//! CFQ's counters: values over time, for plots.
//!
//! The active queue, its tree, and whether the device idles for it. After each slice: its length,
//! and for each busy queue the share of that time that an ideal scheduler would serve it, which
//! serves all queues at once: groups by weight, in a group only the highest class, queues by the
//! slices of their levels. These shares add up to the time served.

use super::group::{TREE_IDLE, TREES};
use super::ids::GroupId;
use super::{Cfq, QId};
use crate::elevator::ideal_share::{SHARE_SHIFT, WeightedShare};
use crate::env::{
    Counter, CounterForm, CounterUnit, Reading, TURN_AWAITED, TURN_OVER, TURN_SERVED, Which,
};
use crate::rules::{SliceClock, SliceGroups, SliceTrees};

static TIME: Counter = Counter::new("time served", CounterForm::Count, CounterUnit::Nanoseconds);

static SHARE: Counter = Counter {
    beside: Some(TIME.name),
    ..Counter::new("ideal share", CounterForm::Count, CounterUnit::Nanoseconds)
};

static SECTORS: Counter = Counter::new("sectors served", CounterForm::Count, CounterUnit::Sectors);

const fn turn(name: &'static str) -> Counter {
    Counter::new(name, CounterForm::Turn, CounterUnit::Number)
}

/// Slices of queues in each tree.
static TURNS: [Counter; TREES] = [
    turn("BE async"),
    turn("BE sync-noidle"),
    turn("BE sync"),
    turn("RT async"),
    turn("RT sync-noidle"),
    turn("RT sync"),
    turn("IDLE"),
];

/// Slices of queues of each class, for rules with one tree.
static TURNS_OF_ONE: [Counter; 3] = [turn("RT"), turn("BE"), turn("IDLE")];

const QUEUE: &str = "cfq";

/// A drained request gives up to four samples: the turn of its queue, its sectors, the end, the
/// time.
const SAMPLES_OF_REQUEST: usize = 4;

const NS_OF_S: u64 = 1_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Sample {
    Turn(QId, u64),
    Time(QId, i64),
    Sectors(QId, u32),
}

/// Samples since the last call that took them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shown {
    samples: Vec<Sample>,
    samples_max: usize,
    /// Of a group, and of all groups.
    ideal_shares: Vec<WeightedShare>,
    /// The device idles for the active queue.
    awaits: bool,
}

impl Shown {
    /// For `requests` of each direction, which may all be drained in one call.
    pub(super) fn new(requests: u32) -> Shown {
        let samples_max = SAMPLES_OF_REQUEST * 2 * requests.max(8) as usize;
        Shown {
            samples: Vec::with_capacity(samples_max),
            samples_max,
            ideal_shares: Vec::new(),
            awaits: false,
        }
    }

    fn record(&mut self, sample: Sample) {
        // Nobody reads them.
        if self.samples.len() == self.samples_max {
            self.samples.clear();
        }
        self.samples.push(sample);
    }
}

impl Cfq {
    pub(super) fn shows_turn(&mut self, q: QId) {
        self.shown.awaits = false;
        self.shown.record(Sample::Turn(q, TURN_SERVED));
    }

    pub(super) fn shows_wait(&mut self, q: QId) {
        self.shown.awaits = true;
        self.shown.record(Sample::Turn(q, TURN_AWAITED));
    }

    /// A request of the active queue is dispatched.
    pub(super) fn shows_service(&mut self, q: QId, sectors: u32) {
        if self.active == Some(q) && core::mem::take(&mut self.shown.awaits) {
            self.shown.record(Sample::Turn(q, TURN_SERVED));
        }
        self.shown.record(Sample::Sectors(q, sectors));
    }

    pub(super) fn shows_end(&mut self, q: QId) {
        self.shown.awaits = false;
        self.shown.record(Sample::Turn(q, TURN_OVER));
        let span = self.now - self.queues[q].dispatch_start;
        self.shown.record(Sample::Time(q, span));
    }

    pub(super) fn readings(&mut self, each: &mut dyn FnMut(Reading)) {
        let mut samples = core::mem::take(&mut self.shown.samples);
        for one in samples.drain(..) {
            let (counter, q, value) = match one {
                Sample::Turn(q, state) => (self.turn_of(q), q, state),
                Sample::Sectors(q, sectors) => (&SECTORS, q, sectors.into()),
                Sample::Time(q, span) => (&TIME, q, self.nanoseconds(span)),
            };
            let which = self.which(q);
            each(Reading {
                counter,
                group: QUEUE,
                which,
                value,
            });
            if let Sample::Time(..) = one {
                self.share_out(q, value, each);
            }
        }
        self.shown.samples = samples;
    }

    fn turn_of(&self, q: QId) -> &'static Counter {
        let queue = &self.queues[q];
        if self.rules.trees == SliceTrees::One {
            return &TURNS_OF_ONE[queue.class as usize];
        }
        const { assert!(TREE_IDLE + 1 == TREES, "IDLE comes last") };
        &TURNS[self.tree_for(q)]
    }

    fn nanoseconds(&self, span: i64) -> u64 {
        let span = span.max(0).cast_unsigned();
        match self.settings.clock {
            SliceClock::Nanoseconds => span,
            SliceClock::Ticks => span * (NS_OF_S / u64::from(self.settings.hz)),
        }
    }

    /// The queue's name as in the messages of blktrace, and its group.
    fn which(&self, q: QId) -> Which {
        let queue = &self.queues[q];
        Which::Queue {
            number: q.0 + 1,
            pid: queue.pid,
            sync: queue.flags.sync,
            cgroup: queue.home.unwrap_or(queue.group).0,
        }
    }

    fn takes_part(&self, other: QId, q: QId) -> bool {
        other == q || self.queues[other].flags.on_rr
    }

    /// Divides the time that `q` was served among all busy queues. `q` counts as busy, although it
    /// may be empty now.
    fn share_out(&mut self, q: QId, served: u64, each: &mut dyn FnMut(Reading)) {
        let mut ideal_shares = core::mem::take(&mut self.shown.ideal_shares);
        ideal_shares.clear();
        ideal_shares.resize(self.groups.list.len(), WeightedShare::default());
        let all = || (0..self.queues.0.len() as u32).map(QId);
        for other in all().filter(|&other| self.takes_part(other, q)) {
            let queue = &self.queues[other];
            let class = queue.class as u8 + 1;
            ideal_shares[queue.group.index()].join(class, self.weight_of(other));
        }
        let mut whole = WeightedShare::default();
        for (at, ideal_share) in ideal_shares.iter().enumerate() {
            if ideal_share.is_there() {
                whole.join(1, self.weight_of_group(GroupId(at as u16)));
            }
        }
        whole.shares(served << SHARE_SHIFT);
        for (at, ideal_share) in ideal_shares.iter_mut().enumerate() {
            if ideal_share.is_there() {
                ideal_share.shares(whole.take(1, self.weight_of_group(GroupId(at as u16))));
            }
        }
        for other in 0..self.queues.0.len() as u32 {
            let other = QId(other);
            if !self.takes_part(other, q) {
                continue;
            }
            let weight = self.weight_of(other);
            let queue = &mut self.queues[other];
            let part = ideal_shares[queue.group.index()].take(queue.class as u8 + 1, weight);
            let share = queue.share_rest + part;
            queue.share_rest = share & ((1 << SHARE_SHIFT) - 1);
            if share >> SHARE_SHIFT > 0 {
                each(Reading {
                    counter: &SHARE,
                    group: QUEUE,
                    which: self.which(other),
                    value: share >> SHARE_SHIFT,
                });
            }
        }
        self.shown.ideal_shares = ideal_shares;
    }

    /// The weight of a queue in its group: its slice.
    fn weight_of(&self, q: QId) -> u32 {
        let queue = &self.queues[q];
        let slice = self.prio_slice(queue.flags.sync, queue.level);
        slice.clamp(1, u32::MAX.into()) as u32
    }

    /// The weight of a group among the busy ones: its fraction, if groups are nested.
    fn weight_of_group(&self, group: GroupId) -> u32 {
        let group = &self.groups[group];
        let weight = match self.rules.groups {
            SliceGroups::None => 1,
            SliceGroups::Flat => group.weight,
            SliceGroups::Hierarchy => group.fraction_shown(),
        };
        weight.clamp(1, u32::MAX.into()) as u32
    }
}
