//! Context switches over time, by whom they go to: with a mapped device that says where its
//! throughput goes.

use blkmq::env::GaugeForm;
use blkmq::time::{Duration, SimTime};

use super::Curve;

/// Whom a CPU switches to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchTo {
    /// ksoftirqd.
    Ksoftirqd,
    /// A worker of kblockd.
    Kworker,
    /// A thread that maps requests of a mapped device.
    Kdmwork,
    /// Any other task.
    Task,
}

/// Context switches of all CPUs over the measured time.
#[derive(Clone, Debug)]
pub struct Switches {
    /// None while the ramp lasts.
    from: Option<SimTime>,
    curves: [Curve; 4],
}

impl Switches {
    pub(crate) fn new() -> Switches {
        Switches {
            from: None,
            curves: [(); 4].map(|()| Curve::new(GaugeForm::Count)),
        }
    }

    /// Measuring begins.
    pub(crate) fn begin(&mut self, now: SimTime) {
        self.from = Some(now);
    }

    pub(crate) fn add(&mut self, to: SwitchTo, at: SimTime) {
        let Some(from) = self.from else {
            return;
        };
        let at = SimTime(at.since(from).0);
        self.curves[to as usize].add(at, 1);
    }

    /// Measuring ends: all curves have the steps of the longest.
    pub(crate) fn finish(&mut self, now: SimTime) {
        let from = self.from.unwrap_or(now);
        for curve in &mut self.curves {
            curve.until(SimTime(now.since(from).0));
        }
    }

    /// Length of a step.
    pub fn step(&self) -> Duration {
        self.curves[0].step()
    }

    /// How many in each step.
    pub fn counts(&self, to: SwitchTo) -> Vec<u64> {
        let values = self.curves[to as usize].values();
        values.map(|count| count.unwrap_or(0.0) as u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_count_from_the_ramp_on() {
        let mut switches = Switches::new();
        switches.add(SwitchTo::Task, SimTime(500));
        switches.begin(SimTime(1000));
        switches.add(SwitchTo::Task, SimTime(1500));
        switches.add(SwitchTo::Ksoftirqd, SimTime(1600));
        switches.add(SwitchTo::Task, SimTime(1610));
        switches.add(SwitchTo::Kworker, SimTime(2500));
        switches.finish(SimTime(4500));
        let of = |to| switches.counts(to);
        assert_eq!(of(SwitchTo::Task), [2, 0, 0, 0]);
        assert_eq!(of(SwitchTo::Ksoftirqd), [1, 0, 0, 0]);
        assert_eq!(of(SwitchTo::Kworker), [0, 1, 0, 0]);
        assert_eq!(switches.step(), Duration(1000));
    }
}
