//! What a schedule of a run of the simulator must be. Runs may have more processes and queues than
//! are walked here: TLC takes their steps.

use blkmq::schedule::Schedule;

use crate::merging::MergeSpec;
use crate::spec::{SettingError, Specification};
use crate::{bfq_merge, cfq_merge, dispatch, restart};

/// Most processes of a run.
pub(super) const PROCESSES_MAX: u32 = 64;
/// Most queues that the processes of a run create.
pub(super) const QUEUES_MAX: u32 = 256;

/// What runs may have more of.
const SIZES: [(&str, u32); 4] = [
    ("Processes", PROCESSES_MAX),
    ("Queues", QUEUES_MAX),
    ("Requests", u32::MAX),
    ("Groups", 1 << 16),
];

/// The properties by which a run of the simulator can be judged.
///
/// # Errors
/// If its constants are none of its specification.
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
