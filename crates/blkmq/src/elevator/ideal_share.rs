//! Ideal shares: what each of several queues would get of something, by class and weight.
//!
//! Only for counters; no scheduler decides by it.

/// Shares are shifted by this.
pub(super) const SHARE_SHIFT: u32 = 20;

/// The busy queues and groups that divide the service of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct WeightedShare {
    /// The highest busy class; 0: nothing is busy.
    class: u8,
    /// Sum of the weights of those without a part so far.
    weight: u64,
    /// The part of the service that is left, shifted by [`SHARE_SHIFT`].
    left: u64,
}

impl WeightedShare {
    pub(super) fn is_there(&self) -> bool {
        self.class != 0
    }

    pub(super) fn shares(&mut self, left: u64) {
        self.left = left;
    }

    /// Adds one of this class: true if it is the very first.
    pub(super) fn join(&mut self, class: u8, weight: u32) -> bool {
        let first = self.class == 0;
        if first || class < self.class {
            (self.class, self.weight) = (class, 0);
        }
        if class == self.class {
            self.weight += u64::from(weight);
        }
        first
    }

    /// Takes the part of one of them. The last one gets all that is left, so that nothing is lost.
    pub(super) fn take(&mut self, class: u8, weight: u32) -> u64 {
        if class != self.class {
            return 0;
        }
        let weight = u64::from(weight);
        let part = u128::from(self.left) * u128::from(weight) / u128::from(self.weight);
        let part = part as u64;
        self.left -= part;
        self.weight -= weight;
        part
    }
}
