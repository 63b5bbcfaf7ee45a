//! Values over time in bounded memory: steps of equal length, which doubles whenever the room is
//! used up. `series.rs` is the same for a number that is known at each moment.

use blkmq::env::CounterForm;
use blkmq::time::{Duration, SimTime};

/// Steps that are kept at most.
const STEPS: usize = 512;
/// Length of a step at first.
const FINEST: u64 = 1000;

/// Values of one thing, from the beginning of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    /// The meaning of a value for the time around it.
    pub form: CounterForm,
    step: u64,
    steps: Vec<Step>,
    until: SimTime,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    count: u32,
    sum: u64,
    last: Last,
}

/// The last value of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Gone,
    Is(u64),
}

impl Curve {
    pub(super) fn new(form: CounterForm) -> Curve {
        Curve {
            form,
            step: FINEST,
            steps: Vec::with_capacity(STEPS),
            until: SimTime::ZERO,
        }
    }

    pub(super) fn add(&mut self, at: SimTime, value: u64) {
        let step = self.step_at(at);
        step.count += 1;
        step.sum = step.sum.saturating_add(value);
        step.last = Last::Is(value);
    }

    /// From here on there is no value.
    pub(super) fn gone(&mut self, at: SimTime) {
        self.step_at(at).last = Last::Gone;
    }

    /// The run has reached this time.
    pub(super) fn until(&mut self, at: SimTime) {
        self.step_at(at);
    }

    /// The curve ends there, with steps of at least this length; later steps, which a CPU that was
    /// ahead has added, are dropped.
    pub(super) fn end(&mut self, at: SimTime, step: Duration) {
        self.step_at(at);
        while self.step < step.0 {
            self.halve();
        }
        self.steps.truncate((at.0 / self.step) as usize + 1);
        self.until = at;
    }

    fn step_at(&mut self, at: SimTime) -> &mut Step {
        self.until = self.until.max(at);
        while at.0 >= self.step * STEPS as u64 {
            self.halve();
        }
        let index = (at.0 / self.step) as usize;
        if self.steps.len() <= index {
            self.steps.resize(index + 1, Step::default());
        }
        &mut self.steps[index]
    }

    fn halve(&mut self) {
        self.step *= 2;
        let half = self.steps.len().div_ceil(2);
        for index in 0..half {
            let first = self.steps[2 * index];
            let second = self.steps.get(2 * index + 1).copied().unwrap_or_default();
            self.steps[index] = Step {
                count: first.count + second.count,
                sum: first.sum.saturating_add(second.sum),
                last: match second.last {
                    Last::Nothing => first.last,
                    later => later,
                },
            };
        }
        self.steps.truncate(half);
    }

    /// Length of a step. The last step may be cut short by the end.
    pub fn step(&self) -> Duration {
        Duration(self.step)
    }

    /// A value for each step, as far as there is one: for a level the one at its end, for samples
    /// the mean, for counts the sum.
    pub fn values(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        let mut level = None;
        self.steps.iter().map(move |step| {
            match step.last {
                Last::Nothing => {}
                Last::Gone => level = None,
                Last::Is(value) => level = Some(value as f64),
            }
            let sample = (step.count > 0).then_some(step);
            match self.form {
                CounterForm::Level | CounterForm::Turn => level,
                CounterForm::Sample => sample.map(|step| step.sum as f64 / f64::from(step.count)),
                CounterForm::Count => sample.map(|step| step.sum as f64),
            }
        })
    }

    /// How many values each step has.
    pub fn counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.steps.iter().map(|step| step.count)
    }

    /// The value that holds at a time, of a level.
    pub fn level_at(&self, at: SimTime) -> Option<f64> {
        let index = (at.0 / self.step) as usize;
        self.values().take(index + 1).last().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(curve: &Curve) -> Vec<Option<f64>> {
        curve.values().collect()
    }

    #[test]
    fn a_level_holds_until_it_is_gone() {
        let mut curve = Curve::new(CounterForm::Level);
        curve.add(SimTime(0), 8);
        curve.add(SimTime(2100), 4);
        curve.add(SimTime(2900), 2);
        curve.gone(SimTime(4000));
        curve.add(SimTime(6500), 8);
        curve.until(SimTime(7200));
        let [eight, two] = [Some(8.0), Some(2.0)];
        let expected = [eight, eight, two, two, None, None, eight, eight];
        assert_eq!(values(&curve), expected);
        assert_eq!(curve.level_at(SimTime(3500)), two);
        assert_eq!(curve.level_at(SimTime(5500)), None);
    }

    #[test]
    fn samples_have_a_mean_and_counts_a_sum() {
        for (form, expected) in [(CounterForm::Sample, 3.0), (CounterForm::Count, 6.0)] {
            let mut curve = Curve::new(form);
            curve.add(SimTime(1200), 2);
            curve.add(SimTime(1800), 4);
            curve.until(SimTime(2000));
            assert_eq!(values(&curve), [None, Some(expected), None]);
        }
    }

    #[test]
    fn a_long_run_has_longer_steps() {
        let mut curve = Curve::new(CounterForm::Count);
        let mut level = Curve::new(CounterForm::Level);
        for at in 0..5000 {
            curve.add(SimTime(at * 1000), 1);
            level.add(SimTime(at * 1000), at);
        }
        assert_eq!(curve.step(), Duration(16_000));
        assert!(curve.steps.capacity() <= STEPS);
        let sum: f64 = values(&curve).iter().flatten().sum();
        assert_eq!(Some(sum), Some(5000.0));
        assert_eq!(values(&level)[0], Some(15.0));
        assert_eq!(values(&level).last(), Some(&Some(4999.0)));
    }
}
