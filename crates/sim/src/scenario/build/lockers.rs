//! From `[[locker]]` tables to the threads that take a lock.

use std::path::Path;

use blkmq::time::Duration;
use trace::fio::{self, FioJob, Section, Setting};

use super::threads::THREADS_MAX;
use super::{Result, Scenario};
use crate::plan::{LockerPlan, MachinePlan};
use crate::scenario::{FioText, Locker};

/// Longest hold or pause that is believed.
const LONGEST: u64 = 1_000_000_000;

/// All of them, `threads` unrolled.
pub(super) fn lockers(scenario: &Scenario, machine: &MachinePlan) -> Result<Vec<LockerPlan>> {
    let mut all = Vec::new();
    for (group, locker) in scenario.locker.iter().enumerate() {
        let error = |key: &str, what: String| {
            let field = format!("locker.{group}.{key}");
            Err(scenario.error(&field, what))
        };
        let threads = locker.threads.unwrap_or(1);
        let sum = all.len() as u64 + u64::from(threads);
        if threads == 0 || sum > THREADS_MAX {
            return error(
                "threads",
                format!("{sum} in all; expected 1 to {THREADS_MAX}"),
            );
        }
        let times = [
            ("hold_ns", locker.hold_ns),
            ("think_ns", locker.think_ns),
            ("long_hold_ns", locker.long_hold_ns),
        ];
        for (key, time) in times {
            if time.is_some_and(|time| time > LONGEST) {
                return error(key, format!("at most {LONGEST}"));
            }
        }
        let given = |number: Option<u64>| number.is_some_and(|n| n > 0);
        if given(locker.long_hold_ns) != given(locker.long_hold_every) {
            let what = "long_hold_ns and long_hold_every go together".to_owned();
            return error("long_hold_ns", what);
        }
        let options = options(scenario, group, locker)?;
        let cpus = match &options.cpus_allowed {
            None => (0..machine.cpus).collect(),
            Some(cpus) => match cpus.iter().find(|cpu| **cpu >= machine.cpus) {
                Some(cpu) => {
                    let last = machine.cpus - 1;
                    return error(
                        "cpus_allowed",
                        format!("there is no CPU {cpu}; they are 0 to {last}"),
                    );
                }
                None => cpus.clone(),
            },
        };
        let ns = |time: Option<u64>| Duration(time.unwrap_or(0));
        let plan = LockerPlan {
            name: options.name.clone(),
            group: group as u16,
            clone: 0,
            cpus,
            hold: ns(locker.hold_ns),
            think: ns(locker.think_ns),
            long_hold: ns(locker.long_hold_ns),
            long_hold_every: locker.long_hold_every.unwrap_or(0),
            runtime: options.runtime.unwrap_or(Duration::from_secs(1)),
            ramp_time: options.ramp_time,
        };
        all.extend((0..threads).map(|clone| LockerPlan {
            clone,
            ..plan.clone()
        }));
    }
    Ok(all)
}

/// Its times and CPUs, read as fio's.
fn options(scenario: &Scenario, group: usize, locker: &Locker) -> Result<FioJob> {
    let written = [
        ("runtime", &locker.runtime),
        ("ramp_time", &locker.ramp_time),
        ("cpus_allowed", &locker.cpus_allowed),
    ];
    let setting = |(number, (option, value)): (usize, &(&str, &Option<FioText>))| {
        value.as_ref().map(|value| Setting {
            option: (*option).to_owned(),
            value: Some(value.0.clone()),
            line: number as u64,
            global: false,
        })
    };
    let settings = written.iter().enumerate().filter_map(setting).collect();
    let name = locker.name.clone();
    let section = Section {
        name: name.unwrap_or_else(|| format!("locker{group}")),
        line: 0,
        settings,
    };
    let parsed = fio::from_sections(Path::new(""), &[section]).map_err(|error| match error {
        trace::Error::Text { field, what, .. } => {
            scenario.error(&format!("locker.{group}.{field}"), what)
        }
        other => scenario.error(&format!("locker.{group}"), other.to_string()),
    })?;
    let mut jobs = parsed.jobs;
    Ok(jobs.remove(0))
}
