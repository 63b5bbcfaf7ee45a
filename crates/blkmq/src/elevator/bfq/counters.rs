//! BFQ's counters: values over time, for plots.
//!
//! Recorded after each dispatched request: the sectors that its queue was served, the queue's
//! weight with weight raising, its budget, and the virtual time of its tree. For each busy queue
//! also the share of these sectors that an ideal scheduler would serve it, which serves all queues
//! of a group at once by weight, highest class first, from the root down: these shares add up to
//! the sectors served.

use super::Bfq;
use super::ids::{GroupId, QId, ROOT};
use super::queue::BE;
use crate::elevator::ideal_share::{SHARE_SHIFT, WeightedShare};
use crate::env::{Counter, CounterForm, CounterUnit, Reading, Which};

/// Sectors that a queue was served.
static SERVICE: Counter =
    Counter::new("service received", CounterForm::Count, CounterUnit::Sectors);

/// Sectors of the ideal share.
static SHARE: Counter = Counter {
    beside: Some(SERVICE.name),
    ..Counter::new("ideal share", CounterForm::Count, CounterUnit::Sectors)
};

/// The weight, with weight raising.
static WEIGHT: Counter = Counter::new("weight", CounterForm::Level, CounterUnit::Number);

/// Sectors that the queue may be served in its slot.
static BUDGET: Counter = Counter::new("budget", CounterForm::Level, CounterUnit::Sectors);

/// Sectors served per 1024 of weight, summed over all queues of the class in the group.
static VIRTUAL_TIME: Counter =
    Counter::new("virtual time", CounterForm::Level, CounterUnit::Sectors);

const QUEUE: &str = "bfq";

/// From virtual time to [`VIRTUAL_TIME`].
const SHOWN_SHIFT: u32 = 12;

const CLASSES: [&str; 3] = ["RT", "BE", "IDLE"];

impl Bfq {
    /// Readings after the last dispatched request.
    pub(super) fn readings(&mut self, each: &mut dyn FnMut(Reading)) {
        let Some((q, sectors)) = self.shown.take() else {
            return;
        };
        if self.queues[q].references == 0 {
            return;
        }
        let entity = &self.entities[self.entities.of(q)];
        let (weight, budget) = (entity.weight, entity.budget.max(0).unsigned_abs());
        let class = usize::from(self.queues[q].class) - 1;
        let vtime = self.groups[entity.group.index()].trees[class].vtime;
        let which = self.which(q);
        let mut emit = |counter, group, which, value| {
            each(Reading {
                counter,
                group,
                which,
                value,
            });
        };
        emit(&SERVICE, QUEUE, which, sectors.into());
        emit(&WEIGHT, QUEUE, which, weight.into());
        emit(&BUDGET, QUEUE, which, budget.into());
        emit(
            &VIRTUAL_TIME,
            CLASSES[class],
            Which::One,
            vtime >> SHOWN_SHIFT,
        );
        self.share_out(q, sectors, each);
    }

    /// The queue's name as in the messages of blktrace, and its group.
    fn which(&self, q: QId) -> Which {
        let queue = &self.queues[q];
        Which::Queue {
            number: q.0 + 1,
            pid: queue.pid,
            sync: queue.flags.sync,
            cgroup: self.entities[self.entities.of(q)].group.0,
        }
    }

    /// Divides sectors that `q` was served among all busy queues. `q` counts as busy, although this
    /// may have been its last request.
    fn share_out(&mut self, q: QId, sectors: u32, each: &mut dyn FnMut(Reading)) {
        for group in &mut self.groups {
            group.ideal_share = WeightedShare::default();
        }
        let all = (0..self.queues.len() as u32).map(QId);
        for other in all.clone() {
            if other == q || self.queues[other].flags.busy {
                self.join_shares(other);
            }
        }
        self.groups[ROOT.index()]
            .ideal_share
            .shares(u64::from(sectors) << SHARE_SHIFT);
        // A group comes after its parent.
        for at in 1..self.groups.len() {
            let group = GroupId(at as u16);
            if self.groups[at].ideal_share.is_there()
                && let Some(e) = group.entity()
            {
                let above = self.entities[e].group.index();
                assert!(above < at, "a group comes before its parent");
                let weight = self.entities[e].weight;
                let part = self.groups[above].ideal_share.take(BE, weight);
                self.groups[at].ideal_share.shares(part);
            }
        }
        for other in all {
            if other != q && !self.queues[other].flags.busy {
                continue;
            }
            let entity = &self.entities[self.entities.of(other)];
            let (group, weight) = (entity.group.index(), entity.weight);
            let queue = &mut self.queues[other];
            let part = self.groups[group].ideal_share.take(queue.class, weight);
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
    }

    /// A busy queue has a part in its group, and the group has one in its parent.
    fn join_shares(&mut self, q: QId) {
        let mut e = self.entities.of(q);
        let mut class = self.queues[q].class;
        loop {
            let entity = &self.entities[e];
            let (group, weight) = (entity.group, entity.weight);
            let first = self.groups[group.index()].ideal_share.join(class, weight);
            match group.entity() {
                Some(above) if first => (e, class) = (above, BE),
                _ => return,
            }
        }
    }
}
