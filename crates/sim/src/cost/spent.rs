//! Where CPU time went: by step, by label and by component.
//!
//! Waiting for locks is not in here: the lock table has it.

use blkmq::path::Label;

use crate::step::{Component, Step};

/// How often and how long, picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    /// Times.
    pub count: u64,
    /// Time of all of them.
    pub ps: u64,
}

impl Sum {
    /// One more.
    #[inline]
    pub fn add(&mut self, ps: u64) {
        self.count += 1;
        self.ps += ps;
    }
}

/// CPU time by step and by label.
#[derive(Clone, Debug)]
pub struct Spent {
    steps: [Sum; Step::ALL.len()],
    labels: Box<[Sum; 256]>,
    /// Labels executed before the last `clear`.
    before: u64,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            steps: [Sum::default(); Step::ALL.len()],
            labels: Box::new([Sum::default(); 256]),
            before: 0,
        }
    }
}

impl Spent {
    /// A step was made.
    #[inline]
    pub fn step(&mut self, step: Step, ps: u64) {
        self.steps[step as usize].add(ps);
    }

    /// A step that was made took longer.
    pub fn waited(&mut self, step: Step, ps: u64) {
        self.steps[step as usize].ps += ps;
    }

    /// A label was executed.
    #[inline]
    pub fn label(&mut self, label: Label, ps: u64) {
        self.labels[usize::from(label.0)].add(ps);
    }

    /// Steps that were made.
    pub fn steps(&self) -> impl Iterator<Item = (Step, Sum)> + '_ {
        let sums = Step::ALL.iter().copied().zip(self.steps);
        sums.filter(|(_, sum)| sum.count > 0)
    }

    /// Labels that were executed.
    pub fn labels(&self) -> impl Iterator<Item = (Label, Sum)> + '_ {
        let sums = Label::all().map(|label| (label, self.labels[usize::from(label.0)]));
        sums.filter(|(_, sum)| sum.count > 0)
    }

    /// Time by component, picoseconds, in the order of [`Component::ALL`].
    pub fn by_component(&self) -> [u64; Component::ALL.len()] {
        let mut time = [0; Component::ALL.len()];
        for (step, sum) in self.steps() {
            time[step.component() as usize] += sum.ps;
        }
        for (label, sum) in self.labels() {
            time[Component::of_label(label) as usize] += sum.ps;
        }
        time
    }

    /// Labels executed since the run began.
    pub fn labels_executed(&self) -> u64 {
        self.before + self.labels.iter().map(|sum| sum.count).sum::<u64>()
    }

    /// Forgets everything but the number of labels (end of the ramp).
    pub fn clear(&mut self) {
        self.before = self.labels_executed();
        self.steps = [Sum::default(); Step::ALL.len()];
        self.labels.fill(Sum::default());
    }
}
