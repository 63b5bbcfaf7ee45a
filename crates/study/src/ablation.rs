//! Mechanisms of the model, each switched off separately to show its effect.
//!
//! A profile without a mechanism is still a profile: fitting it (`calibrate.rs`) to the runs of one
//! thread shows whether the other mechanisms can make up for it.

use sim::cost::Step;
use sim::profile::MachineProfile;

use crate::calibrate::{self, Measurements, Run, measurements_of};
use crate::error::Error;
use crate::fleet::Fleet;
use crate::reproduce::built_in;
use crate::sweep::Load;

/// A mechanism that can be switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// Cache lines of other CPUs cost time: holds grow with contention.
    RemoteLines,
    /// A line from another die costs more than one from the own.
    Distance,
    /// Misses that do not need each other are under way together.
    Overlap,
    /// Two threads of a core slow each other down.
    Smt,
    /// Sleeping, waking and leaving an idle state take time.
    Sleep,
    /// A failed try-lock takes a copy of the lock's word.
    TryLock,
}

impl Mechanism {
    pub const ALL: [Mechanism; 6] = [
        Mechanism::RemoteLines,
        Mechanism::Distance,
        Mechanism::Overlap,
        Mechanism::Smt,
        Mechanism::Sleep,
        Mechanism::TryLock,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::RemoteLines => "lines",
            Mechanism::Distance => "distance",
            Mechanism::Overlap => "overlap",
            Mechanism::Smt => "smt",
            Mechanism::Sleep => "sleep",
            Mechanism::TryLock => "try-lock",
        }
    }

    /// The mechanism of this name.
    pub fn by_name(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|m| m.name() == name)
    }

    pub fn switch_off(self, profile: &mut MachineProfile) {
        match self {
            Mechanism::RemoteLines => {
                let t = &mut profile.transfer_ps;
                (t.sibling, t.die, t.socket, t.machine) = (0, 0, 0, 0);
            }
            Mechanism::Distance => {
                let mean = mean_transfer(profile);
                let t = &mut profile.transfer_ps;
                (t.sibling, t.die, t.socket, t.machine) = (mean, mean, mean, mean);
            }
            Mechanism::Overlap => profile.without.overlap = true,
            Mechanism::Smt => profile.smt.shared_percent = 100,
            Mechanism::Sleep => {
                for step in [
                    Step::Wake,
                    Step::ContextSwitch,
                    Step::IdleExit,
                    Step::IpiLatency,
                ] {
                    *profile.cycles.of_mut(step) = 0;
                }
            }
            Mechanism::TryLock => profile.without.try_lock = true,
        }
    }
}

/// For each of these mechanisms the built-in profiles without it, fitted again.
pub fn profiles_without(
    mechanisms: &[Mechanism],
    load: Load<'_>,
    fleet: &Fleet,
) -> Result<Vec<Vec<MachineProfile>>, Error> {
    let known = built_in()?;
    let pairs = mechanisms
        .iter()
        .flat_map(|&mechanism| known.iter().map(move |profile| (profile, mechanism)));
    let pairs: Vec<(&MachineProfile, Mechanism)> = pairs.collect();
    let one = |(profile, mechanism): &(&MachineProfile, Mechanism)| {
        fitted((*profile).clone(), *mechanism, load, fleet)
    };
    let all = fleet.map(&pairs, one)?;
    let sets = all.chunks(known.len());
    Ok(sets.map(<[MachineProfile]>::to_vec).collect())
}

fn fitted(
    mut profile: MachineProfile,
    mechanism: Mechanism,
    load: Load<'_>,
    fleet: &Fleet,
) -> Result<MachineProfile, Error> {
    mechanism.switch_off(&mut profile);
    let Some(text) = measurements_of(&profile.name) else {
        return Ok(profile);
    };
    let place = format!("machine {}", profile.name);
    let measurements = Measurements::parse(text).map_err(|what| Error::wrong(&place, what))?;
    let mut runs = Vec::new();
    for measured in &measurements.runs {
        let (scenario, _) = load(&measured.scenario)?;
        runs.push(Run::new(measured, scenario, &profile)?);
    }
    Ok(calibrate::calibrate(&profile, &runs, &place, fleet)?.profile)
}

/// Transfer time between two CPUs drawn at random.
fn mean_transfer(profile: &MachineProfile) -> u64 {
    use blkmq::request::CpuId;
    use sim::profile::Distance;
    let cpus = profile.cpus();
    let t = profile.transfer_ps;
    let times = (1..cpus).map(|other| match profile.distance(CpuId(0), CpuId(other)) {
        Distance::Same => 0,
        Distance::Sibling => t.sibling,
        Distance::Die => t.die,
        Distance::Socket => t.socket,
        Distance::Machine => t.machine,
    });
    times.sum::<u64>() / u64::from(cpus - 1).max(1)
}

#[cfg(test)]
mod tests {
    use super::Mechanism;
    use scenario::profile;

    #[test]
    fn each_changes_its_own_fields() {
        let base = profile::built_in("ryzen-7950x").unwrap();
        let mut seen = vec![format!("{base:?}")];
        for mechanism in Mechanism::ALL {
            assert_eq!(Mechanism::by_name(mechanism.name()), Some(mechanism));
            let mut profile = base.clone();
            mechanism.switch_off(&mut profile);
            let text = format!("{profile:?}");
            assert!(!seen.contains(&text), "{}", mechanism.name());
            seen.push(text);
        }
        // 1 sibling, 14 CPUs of the die, 16 of the other.
        let mut flat = base.clone();
        Mechanism::Distance.switch_off(&mut flat);
        let t = base.transfer_ps;
        let mean = (t.sibling + 14 * t.die + 16 * t.socket) / 31;
        assert_eq!(flat.transfer_ps.machine, mean);
        assert_eq!(flat.transfer_ps.sibling, mean);
    }
}
