//! Gauges: what BFQ shows of itself over time, for plots.
//!
//! After each request that it lets go: what its queue was served, what it would have been in an
//! ideal world that serves all busy queues of a group at once by weight, its weight with raising,
//! its budget, and the virtual time of its tree.

use super::Bfq;
use super::queue::QId;
use crate::env::{Gauge, GaugeForm, GaugeUnit, Reading};

/// Sectors that a queue was served.
static SERVICE: Gauge = Gauge {
    name: "service received",
    form: GaugeForm::Count,
    unit: GaugeUnit::Sectors,
};

/// Sectors that would have been its share.
static SHARE: Gauge = Gauge {
    name: "ideal share",
    form: GaugeForm::Count,
    unit: GaugeUnit::Sectors,
};

/// Its weight, raised or not.
static WEIGHT: Gauge = Gauge {
    name: "weight",
    form: GaugeForm::Level,
    unit: GaugeUnit::Number,
};

/// What it may be served in its slot.
static BUDGET: Gauge = Gauge {
    name: "budget",
    form: GaugeForm::Level,
    unit: GaugeUnit::Sectors,
};

/// Sectors served by 1024 of weight, of all queues of its class and group together.
static VIRTUAL_TIME: Gauge = Gauge {
    name: "virtual time",
    form: GaugeForm::Level,
    unit: GaugeUnit::Sectors,
};

/// From virtual time to [`VIRTUAL_TIME`].
const SHOWN_SHIFT: u32 = 12;
/// From virtual time by weight to sectors.
const SECTOR_SHIFT: u32 = 22;

/// Names of the classes' trees.
const CLASSES: [&str; 3] = ["RT", "BE", "IDLE"];

impl Bfq {
    /// A queue becomes busy: its share begins to grow here.
    pub(super) fn share_begins(&mut self, q: QId) {
        let vtime = self.vtime_of(q);
        self.queues[q].share_from = vtime;
    }

    fn vtime_of(&self, q: QId) -> u64 {
        let group = self.entities[self.entities.of(q)].group.index();
        self.groups[group].trees[usize::from(self.queues[q].class) - 1].vtime
    }

    /// What the last request to go leaves to be seen.
    pub(super) fn readings(&mut self, each: &mut dyn FnMut(Reading)) {
        let Some((q, sectors)) = self.shown.take() else {
            return;
        };
        if self.queues[q].references == 0 {
            return;
        }
        let vtime = self.vtime_of(q);
        let entity = &self.entities[self.entities.of(q)];
        let (weight, budget) = (entity.weight, entity.budget.max(0).unsigned_abs());
        let queue = &mut self.queues[q];
        let since = vtime.wrapping_sub(queue.share_from);
        let share = (u128::from(since) * u128::from(weight)) >> SECTOR_SHIFT;
        queue.share_from = vtime;
        // A queue of several processes has no pid.
        let number = queue.pid.max(0).unsigned_abs();
        let class = CLASSES[usize::from(queue.class) - 1];
        let mut tell = |gauge, group, number, value| {
            each(Reading {
                gauge,
                group,
                number,
                value,
            });
        };
        tell(&SERVICE, "queue", number, sectors.into());
        tell(&SHARE, "queue", number, share as u64);
        tell(&WEIGHT, "queue", number, weight.into());
        tell(&BUDGET, "queue", number, budget.into());
        tell(&VIRTUAL_TIME, class, 0, vtime >> SHOWN_SHIFT);
    }
}
