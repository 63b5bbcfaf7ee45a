//! Context switches by target, and over time: with a mapped device they show where its throughput
//! goes. Counted as by vmstat and `perf sched`: each time that __schedule() picks another task,
//! including the idle one of the CPU (swapper).

use blkmq::env::CounterForm;
use blkmq::time::{Duration, SimTime};

use super::Curve;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchTo {
    Ksoftirqd,
    /// A worker: of kblockd, or of a mapped device (kmpathd, kdmflush).
    Kworker,
    /// A thread that maps requests of a mapped device.
    Kdmwork,
    /// Any other task, including one that gets the CPU back from ksoftirqd.
    Task,
    /// The CPU's idle task, swapper.
    Idle,
}

impl SwitchTo {
    pub const COUNT: usize = SwitchTo::Idle as usize + 1;
}

/// Number of switches by [`SwitchTo`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SwitchCounts([u64; SwitchTo::COUNT]);

impl SwitchCounts {
    #[inline]
    pub fn add(&mut self, to: SwitchTo) {
        self.0[to as usize] += 1;
    }

    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    pub fn sum(of: impl IntoIterator<Item = SwitchCounts>) -> SwitchCounts {
        of.into_iter()
            .fold(SwitchCounts::default(), |mut sum, counts| {
                for (all, count) in sum.0.iter_mut().zip(counts.0) {
                    *all += count;
                }
                sum
            })
    }
}

impl core::ops::Index<SwitchTo> for SwitchCounts {
    type Output = u64;

    fn index(&self, to: SwitchTo) -> &u64 {
        &self.0[to as usize]
    }
}

/// Context switches of all CPUs over the measured time.
#[derive(Clone, Debug)]
pub struct Switches {
    /// `None` during the ramp.
    from: Option<SimTime>,
    curves: [Curve; SwitchTo::COUNT],
}

impl Switches {
    pub(crate) fn new() -> Switches {
        Switches {
            from: None,
            curves: [(); SwitchTo::COUNT].map(|()| Curve::new(CounterForm::Count)),
        }
    }

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

    /// Measuring ends: all curves have the steps up to there.
    pub(crate) fn finish(&mut self, now: SimTime) {
        let end = SimTime(now.since(self.from.unwrap_or(now)).0);
        let steps = self.curves.iter_mut().map(|curve| {
            curve.until(end);
            curve.step()
        });
        let step = steps.max().expect("there are curves");
        for curve in &mut self.curves {
            curve.end(end, step);
        }
    }

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
        switches.add(SwitchTo::Idle, SimTime(3500));
        switches.finish(SimTime(4500));
        let of = |to| switches.counts(to);
        assert_eq!(of(SwitchTo::Task), [2, 0, 0, 0]);
        assert_eq!(of(SwitchTo::Ksoftirqd), [1, 0, 0, 0]);
        assert_eq!(of(SwitchTo::Kworker), [0, 1, 0, 0]);
        assert_eq!(of(SwitchTo::Kdmwork), [0; 4]);
        assert_eq!(of(SwitchTo::Idle), [0, 0, 1, 0]);
        assert_eq!(switches.step(), Duration(1000));
    }

    /// A CPU that is ahead switches after the end, perhaps so far that its curve has longer steps.
    #[test]
    fn what_comes_after_the_end_is_cut_off() {
        let mut switches = Switches::new();
        switches.begin(SimTime(0));
        for at in 0..512 {
            switches.add(SwitchTo::Task, SimTime(1000 * at));
        }
        switches.add(SwitchTo::Idle, SimTime(5000));
        switches.add(SwitchTo::Idle, SimTime(600_000));
        switches.finish(SimTime(511_500));
        assert_eq!(switches.step(), Duration(2000));
        let of = |to| switches.counts(to);
        assert_eq!(of(SwitchTo::Task), [2; 256]);
        let idle = of(SwitchTo::Idle);
        assert_eq!((idle.len(), idle[2], idle.iter().sum::<u64>()), (256, 1, 1));
        assert_eq!(of(SwitchTo::Kworker), [0; 256]);
    }

    #[test]
    fn counts_of_cpus_are_added_up() {
        let mut counts = SwitchCounts::default();
        counts.add(SwitchTo::Idle);
        counts.add(SwitchTo::Idle);
        counts.add(SwitchTo::Kworker);
        let sum = SwitchCounts::sum([counts; 3]);
        assert_eq!((sum[SwitchTo::Idle], sum[SwitchTo::Kworker]), (6, 3));
        assert_eq!((sum[SwitchTo::Task], sum.all()), (0, 9));
    }
}
