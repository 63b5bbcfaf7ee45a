//! A number over time in bounded memory: steps of equal length, which doubles whenever the room is
//! used up.

use blkmq::time::{Duration, SimTime};

/// Steps that are kept at most.
const STEPS: usize = 512;
/// Length of a step at first.
const FINEST: u64 = 1000;

/// Mean and maximum of a number in each step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    from: SimTime,
    step: u64,
    /// Sum of number times nanoseconds, and the largest number.
    steps: Vec<(u64, u32)>,
    /// Until when it is known.
    until: SimTime,
}

impl Series {
    /// An empty one that begins at `from`.
    pub(crate) fn new(from: SimTime) -> Series {
        Series {
            from,
            step: FINEST,
            steps: Vec::with_capacity(STEPS),
            until: from,
        }
    }

    /// The number was `count` from `from` to `to`.
    pub(crate) fn add(&mut self, from: SimTime, to: SimTime, count: u32) {
        let mut at = from.max(self.from).0 - self.from.0;
        let end = to.max(self.from).0 - self.from.0;
        while end > self.step * STEPS as u64 {
            self.halve();
        }
        self.until = self.until.max(to);
        while at < end {
            let index = (at / self.step) as usize;
            if self.steps.len() <= index {
                self.steps.resize(index + 1, (0, 0));
            }
            let next = end.min((index as u64 + 1) * self.step);
            let (area, max) = &mut self.steps[index];
            *area += (next - at) * u64::from(count);
            *max = (*max).max(count);
            at = next;
        }
    }

    /// The number is `count` at `at`, if only for an instant.
    pub(crate) fn reach(&mut self, at: SimTime, count: u32) {
        let at = at.max(self.from).0 - self.from.0;
        while at >= self.step * STEPS as u64 {
            self.halve();
        }
        let index = (at / self.step) as usize;
        if self.steps.len() <= index {
            self.steps.resize(index + 1, (0, 0));
        }
        let max = &mut self.steps[index].1;
        *max = (*max).max(count);
    }

    fn halve(&mut self) {
        self.step *= 2;
        let half = self.steps.len().div_ceil(2);
        for index in 0..half {
            let (area, max) = self.steps[2 * index];
            let (more, other) = self.steps.get(2 * index + 1).copied().unwrap_or((0, 0));
            self.steps[index] = (area + more, max.max(other));
        }
        self.steps.truncate(half);
    }

    /// Length of a step. The last step may be cut short by the end.
    pub fn step(&self) -> Duration {
        Duration(self.step)
    }

    /// Mean in thousandths and maximum of each step.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let span = self.until.since(self.from).0;
        self.steps
            .iter()
            .enumerate()
            .map(move |(index, &(area, max))| {
                let length = span.saturating_sub(index as u64 * self.step);
                let length = length.clamp(1, self.step);
                ((u128::from(area) * 1000 / u128::from(length)) as u64, max)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(series: &Series) -> Vec<(u64, u32)> {
        series.steps().collect()
    }

    #[test]
    fn means_and_maxima_of_steps() {
        let mut series = Series::new(SimTime(100));
        series.add(SimTime(100), SimTime(600), 4);
        series.add(SimTime(600), SimTime(1600), 2);
        assert_eq!(series.step(), Duration(1000));
        assert_eq!(steps(&series), [(3000, 4), (2000, 2)]);
    }

    #[test]
    fn a_long_run_keeps_the_area_in_longer_steps() {
        let mut series = Series::new(SimTime(0));
        for at in 0..5000 {
            series.add(
                SimTime(at * 1000),
                SimTime((at + 1) * 1000),
                (at % 2) as u32,
            );
        }
        assert_eq!(series.step(), Duration(16_000));
        assert!(series.steps.capacity() <= STEPS);
        assert_eq!(steps(&series).len(), 313);
        assert!(steps(&series).iter().all(|&step| step == (500, 1)));
    }

    #[test]
    fn an_instant_counts_for_the_maximum() {
        let mut series = Series::new(SimTime(0));
        series.add(SimTime(0), SimTime(1500), 1);
        series.reach(SimTime(1500), 9);
        series.add(SimTime(1500), SimTime(2000), 1);
        assert_eq!(steps(&series), [(1000, 1), (1000, 9)]);
        series.reach(SimTime(STEPS as u64 * 1000), 3);
        assert_eq!(series.step(), Duration(2000));
        assert_eq!(steps(&series).last(), Some(&(0, 3)));
    }

    #[test]
    fn what_was_before_the_beginning_does_not_count() {
        let mut series = Series::new(SimTime(5000));
        series.add(SimTime(0), SimTime(5000), 7);
        assert_eq!(steps(&series), []);
        series.add(SimTime(4000), SimTime(5500), 7);
        assert_eq!(steps(&series), [(7000, 7)]);
    }
}
