//! Properties of schedules that runs of the simulator give. TLC takes their steps, as runs may have
//! more processes and queues than are explored here.

use blkmq::schedule::Schedule;

use crate::merging::MergeSpec;
use crate::spec::{SettingError, Specification};
use crate::{bfq_merge, cfq_merge, dispatch, restart};

/// The most processes of a run.
pub(super) const PROCESSES_MAX: u32 = 64;
/// The most queues that the processes of a run create.
pub(super) const QUEUES_MAX: u32 = 256;

/// Constants that may be larger in runs.
const SIZES: [(&str, u32); 4] = [
    ("Processes", PROCESSES_MAX),
    ("Queues", QUEUES_MAX),
    ("Requests", u32::MAX),
    ("Groups", 1 << 16),
];

/// The properties that a run of the simulator is checked for.
///
/// # Errors
/// If its constants are not those of its specification.
pub fn properties_of_run(schedule: &Schedule) -> Result<&'static [&'static str], String> {
    let wrong = |error: SettingError| error.to_string();
    match schedule.spec.as_str() {
        cfq_merge::RUNS => properties::<cfq_merge::Setting>(schedule).map_err(wrong),
        bfq_merge::RUNS => properties::<bfq_merge::Setting>(schedule).map_err(wrong),
        restart::RUNS => {
            let setting = restart::Setting::parse(&schedule.settings).map_err(wrong)?;
            let beyond = setting.beyond("").map(str::to_owned);
            beyond.map_or(Ok(restart::Setting::PROPERTIES), Err)
        }
        dispatch::RUNS => {
            dispatch::Setting::check_run(&schedule.settings).map_err(wrong)?;
            Ok(dispatch::Setting::PROPERTIES)
        }
        other => Err(format!("spec {other}: no run of the simulator is of it")),
    }
}

fn properties<S: MergeSpec>(schedule: &Schedule) -> Result<&'static [&'static str], SettingError> {
    let mut constants = schedule.settings.clone();
    for (name, most) in SIZES {
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
    S::of_constants(&constants)?;
    Ok(S::INVARIANTS)
}
