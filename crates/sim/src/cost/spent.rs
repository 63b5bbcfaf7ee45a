//! Where CPU time went: by step, by label and by component.
//!
//! Waiting for locks is not in here: the lock table has it.

use blkmq::path::Label;

use crate::step::{Component, Step};

/// How often and how long, picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    pub count: u64,
    pub ps: u64,
}

/// Sums by number. Counts and times apart: two in a row would be added as a vector, which takes
/// three times the instructions of two additions in memory.
#[derive(Clone, Debug)]
struct Sums<const N: usize> {
    count: [u64; N],
    ps: [u64; N],
}

impl<const N: usize> Sums<N> {
    fn none() -> Sums<N> {
        Sums {
            count: [0; N],
            ps: [0; N],
        }
    }

    #[inline]
    fn add(&mut self, at: usize, ps: u64) {
        self.count[at] += 1;
        self.ps[at] += ps;
    }

    fn get(&self, at: usize) -> Sum {
        Sum {
            count: self.count[at],
            ps: self.ps[at],
        }
    }
}

#[derive(Clone, Debug)]
pub struct Spent {
    steps: Sums<{ Step::ALL.len() }>,
    labels: Box<Sums<{ Label::PLACES }>>,
    /// Labels executed before the last `clear`: how many, and which.
    before: u64,
    ever: Box<[bool; Label::PLACES]>,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            steps: Sums::none(),
            labels: Box::new(Sums::none()),
            before: 0,
            ever: Box::new([false; Label::PLACES]),
        }
    }
}

impl Spent {
    #[inline]
    pub fn step(&mut self, step: Step, ps: u64) {
        self.steps.add(step as usize, ps);
    }

    /// A step that was made took longer.
    pub fn waited(&mut self, step: Step, ps: u64) {
        self.steps.ps[step as usize] += ps;
    }

    #[inline]
    pub fn label(&mut self, label: Label, ps: u64) {
        self.labels.add(label.place(), ps);
    }

    pub fn steps(&self) -> impl Iterator<Item = (Step, Sum)> + '_ {
        let all = Step::ALL.iter().copied();
        let sums = all.map(|step| (step, self.steps.get(step as usize)));
        sums.filter(|(_, sum)| sum.count > 0)
    }

    pub fn labels(&self) -> impl Iterator<Item = (Label, Sum)> + '_ {
        let sums = Label::all().map(|label| (label, self.labels.get(label.place())));
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

    pub fn labels_executed(&self) -> u64 {
        self.before + self.labels.count.iter().sum::<u64>()
    }

    /// True if a label was executed, before the last `clear` or since.
    pub fn has_executed(&self, label: Label) -> bool {
        self.ever[label.place()] || self.labels.count[label.place()] > 0
    }

    /// Forgets everything but which labels were executed, and their number (end of the ramp).
    pub fn clear(&mut self) {
        self.before = self.labels_executed();
        for (ever, count) in self.ever.iter_mut().zip(&self.labels.count) {
            *ever |= *count > 0;
        }
        self.steps = Sums::none();
        *self.labels = Sums::none();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_ramp_are_known_after_it() {
        let mut labels = Label::all();
        let [ramp, later, never] = [(); 3].map(|()| labels.next().expect("three labels"));
        let mut spent = Spent::default();
        spent.label(ramp, 7);
        spent.clear();
        spent.clear();
        spent.label(later, 7);
        let executed = [ramp, later, never].map(|label| spent.has_executed(label));
        assert_eq!(executed, [true, true, false]);
        assert_eq!(spent.labels_executed(), 2);
        assert_eq!(spent.labels().count(), 1);
    }
}
