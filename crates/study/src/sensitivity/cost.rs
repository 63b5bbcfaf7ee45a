//! Costs of a profile one by one: their names, and the profile with one of them changed.
//!
//! Not here: running (`sensitivity.rs`).

use blkmq::path::Label;
use sim::cost::Step;
use sim::profile::MachineProfile;

/// One number of a profile that a run's throughput may depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cost {
    /// A transfer time: sibling, die, socket, machine.
    Transfer(usize),
    /// Threads of a core.
    Smt,
    Atomic,
    ContainerOp,
    /// A step outside the block layer.
    Step(Step),
    /// A label of the block layer; `default` is for those that are not listed.
    Label(String),
}

const TRANSFERS: [&str; 4] = ["sibling", "die", "socket", "machine"];

impl Cost {
    /// All costs of a profile that are not zero.
    pub fn all(profile: &MachineProfile) -> Vec<Cost> {
        let transfers = (0..TRANSFERS.len()).map(Cost::Transfer);
        let rest = [Cost::Smt, Cost::Atomic, Cost::ContainerOp];
        let steps = Step::ALL.iter().map(|&step| Cost::Step(step));
        let labels = profile.labels.keys().map(|name| Cost::Label(name.clone()));
        let all = transfers.chain(rest).chain(steps).chain(labels);
        all.filter(|cost| cost.of(profile) > 0).collect()
    }

    /// Its place in the file.
    pub fn name(&self) -> String {
        match self {
            Cost::Transfer(index) => format!("transfer_ps.{}", TRANSFERS[*index]),
            Cost::Smt => "smt.shared_percent".to_owned(),
            Cost::Atomic => "cycles.atomic".to_owned(),
            Cost::ContainerOp => "cycles.container_op".to_owned(),
            Cost::Step(step) => format!("cycles.{}", step.key()),
            Cost::Label(name) => format!("labels.{name}"),
        }
    }

    /// False if runs that executed only these labels cannot depend on it.
    pub fn is_paid(&self, profile: &MachineProfile, executed: &[Label]) -> bool {
        let listed = |label: &Label| profile.labels.contains_key(label.name());
        match self {
            Cost::Label(name) if name == "default" => !executed.iter().all(listed),
            Cost::Label(name) => executed.iter().any(|label| label.name() == name),
            // Steps that only delay, and transfers, are not counted by runs.
            _ => true,
        }
    }

    pub fn of(&self, profile: &MachineProfile) -> u64 {
        let mut copy = profile.clone();
        *self.place(&mut copy)
    }

    /// The profile with this cost in hundredths of its value; the change in the cost's unit.
    pub fn scaled(&self, profile: &MachineProfile, percent: u64) -> (MachineProfile, i64) {
        let mut changed = profile.clone();
        let value = self.place(&mut changed);
        let before = *value;
        // A small cost changes by one unit at least, or nothing would be seen.
        let step = (before * percent.abs_diff(100)).div_ceil(100);
        *value = if percent > 100 {
            before + step
        } else {
            before.saturating_sub(step)
        };
        let by = i64::try_from(value.abs_diff(before)).unwrap_or(i64::MAX);
        let by = if *value < before { -by } else { by };
        (changed, by)
    }

    fn place<'a>(&self, profile: &'a mut MachineProfile) -> &'a mut u64 {
        let t = &mut profile.transfer_ps;
        match self {
            Cost::Transfer(0) => &mut t.sibling,
            Cost::Transfer(1) => &mut t.die,
            Cost::Transfer(2) => &mut t.socket,
            Cost::Transfer(_) => &mut t.machine,
            Cost::Smt => &mut profile.smt.shared_percent,
            Cost::Atomic => &mut profile.cycles.atomic,
            Cost::ContainerOp => &mut profile.cycles.container_op,
            Cost::Step(step) => profile.cycles.of_mut(*step),
            Cost::Label(name) => profile
                .labels
                .get_mut(name)
                .expect("costs are named by the profile they are of"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Label};
    use scenario::profile;

    #[test]
    fn a_label_is_paid_by_runs_that_execute_it() {
        let base = profile::built_in("ryzen-7950x").unwrap();
        let label = |name: &str| Label::by_name(name).unwrap();
        let paid = |name: &str, executed: &[&str]| {
            let executed: Vec<Label> = executed.iter().map(|name| label(name)).collect();
            Cost::Label(name.to_owned()).is_paid(&base, &executed)
        };
        assert!(paid("pass.pick", &["plug.take", "pass.pick"]));
        assert!(!paid("pass.pick", &["plug.take"]));
        let other = Label::all().find(|label| !base.labels.contains_key(label.name()));
        let other = other.expect("a label that has the default's price");
        assert!(!paid("default", &["plug.take"]));
        assert!(paid("default", &["plug.take", other.name()]));
        assert!(Cost::Atomic.is_paid(&base, &[]));
    }

    #[test]
    fn one_cost_changes_and_no_other() {
        let base = profile::built_in("ryzen-7950x").unwrap();
        let all = Cost::all(&base);
        assert!(all.len() > 60, "{}", all.len());
        for cost in &all {
            let (up, by) = cost.scaled(&base, 110);
            assert_eq!(cost.of(&up) as i64 - cost.of(&base) as i64, by);
            assert!(by > 0, "{}", cost.name());
            let others = all.iter().filter(|other| *other != cost);
            for other in others {
                assert_eq!(other.of(&up), other.of(&base), "{}", other.name());
            }
            let (down, by) = cost.scaled(&base, 90);
            assert_eq!(cost.of(&down) as i64 - cost.of(&base) as i64, by);
            assert!(by < 0, "{}", cost.name());
        }
    }
}
