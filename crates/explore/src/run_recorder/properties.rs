//! Properties of schedules that runs of the simulator give. TLC takes their steps, as runs may have
//! more processes and queues than are explored here.

use blkmq::schedule::Schedule;

use crate::spec::{SettingError, Specification};
use crate::{bfq_merge, cfq_merge, dispatch, restart};

/// The most processes of a run.
pub(super) const PROCESSES_MAX: u32 = 64;
/// The most queues that the processes of a run create.
pub(super) const QUEUES_MAX: u32 = 256;

/// Sizes whose limit is another one in runs.
const OF_MERGES: &[(&str, u32)] = &[
    ("Processes", PROCESSES_MAX),
    ("Queues", QUEUES_MAX),
    ("Requests", u32::MAX),
    ("Groups", 1 << 16),
];
const OF_RESTART: &[(&str, u32)] = &[("Hctxs", 1)];
/// The most CPUs of a run of Dispatch, and the most requests of all of them.
const CPUS_MAX: u32 = 64;
const REQUESTS_MAX: u32 = 192;

/// The properties that a run of the simulator is checked for.
///
/// # Errors
/// If its constants are not those of its specification.
pub fn properties_of_run(schedule: &Schedule) -> Result<Vec<&'static str>, String> {
    let properties = match schedule.spec.as_str() {
        cfq_merge::RUNS => properties(schedule, OF_MERGES, cfq_merge::Setting::parse),
        bfq_merge::RUNS => properties(schedule, OF_MERGES, bfq_merge::Setting::parse),
        restart::RUNS => properties(schedule, OF_RESTART, restart::Setting::parse),
        dispatch::RUNS => {
            let cpus = schedule.settings.iter().find(|(name, _)| name == "Cpus");
            let cpus = cpus.and_then(|(_, cpus)| cpus.parse().ok()).unwrap_or(1);
            let per_cpu = REQUESTS_MAX / u32::clamp(cpus, 1, CPUS_MAX);
            let sizes = [("Cpus", CPUS_MAX), ("PerCpu", per_cpu)];
            properties(schedule, &sizes, dispatch::Setting::of_run)
        }
        other => return Err(format!("spec {other}: no run of the simulator is of it")),
    };
    properties.map_err(|error| error.to_string())
}

fn properties<S: Specification>(
    schedule: &Schedule,
    sizes: &[(&'static str, u32)],
    read: impl Fn(&[(String, String)]) -> Result<S, SettingError>,
) -> Result<Vec<&'static str>, SettingError> {
    let mut constants = schedule.settings.clone();
    for &(name, most) in sizes {
        let Some((_, value)) = constants.iter_mut().find(|(known, _)| known == name) else {
            continue;
        };
        if !value
            .parse()
            .is_ok_and(|size: u32| (1..=most).contains(&size))
        {
            return Err(SettingError::Value {
                name,
                value: value.clone(),
                expected: format!("1 to {most}"),
            });
        }
        "1".clone_into(value);
    }
    read(&constants).map(|_| S::properties())
}

#[cfg(test)]
mod tests {
    use super::*;
    use blkmq::rules::Rules;

    /// The requests of all CPUs are bounded, not only those of each.
    #[test]
    fn a_run_of_dispatch_has_at_most_so_many_requests() {
        let verdict = |cpus: &str, per_cpu: &str| {
            let mut settings = dispatch::Setting::of_rules(&Rules::v6_12()).constants();
            for (name, value) in &mut settings {
                match name.as_str() {
                    "Cpus" => cpus.clone_into(value),
                    "PerCpu" => per_cpu.clone_into(value),
                    _ => {}
                }
            }
            properties_of_run(&Schedule {
                spec: dispatch::RUNS.to_owned(),
                variant: String::new(),
                shows: String::new(),
                steps: Vec::new(),
                settings,
                repeats_from: None,
            })
        };
        assert!(verdict("64", "3").is_ok());
        let text = verdict("64", "4").expect_err("256 requests");
        assert_eq!(text, "constant PerCpu = 4: expected 1 to 3");
        let text = verdict("0", "4").expect_err("no CPU");
        assert_eq!(text, "constant Cpus = 0: expected 1 to 64");
    }
}
