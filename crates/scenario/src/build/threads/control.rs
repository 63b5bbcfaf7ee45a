//! How the threads of a job end, wait for, pace and hold back others.
//!
//! After fio 3.33 init.c (groupid, wait_for_ok()), steadystate.c td_steadystate_init().

use blkmq::time::Duration;
use trace::fio::{self, FioJob};

use super::super::{Result, Scenario};
use crate::ScenarioError;
use sim::plan::{ControlPlan, FloorPlan, FlowPlan, LatencyPlan, SteadyPlan};

/// The options of each job.
pub(super) fn of_jobs(scenario: &Scenario, jobs: &[FioJob]) -> Result<Vec<ControlPlan>> {
    let exits = jobs.iter().any(|job| job.control.exitall);
    let mut flows: Vec<u32> = Vec::new();
    let mut plans: Vec<ControlPlan> = Vec::new();
    let mut group = 0;
    for (index, job) in jobs.iter().enumerate() {
        group += u16::from(index > 0 && (job.stonewall || job.new_group));
        let control = &job.control;
        let waits_for = match &control.wait_for {
            None => None,
            Some(name) => Some(waitee(scenario, jobs, index, name)?),
        };
        if let Some(awaited) = waits_for {
            plans[usize::from(awaited)].is_awaited = true;
        }
        let number = match flows.iter().position(|id| *id == control.flow_id) {
            Some(number) => number,
            None if control.flow == 0 => 0,
            None => {
                flows.push(control.flow_id);
                flows.len() - 1
            }
        };
        let some = |each: &fio::PerDirection<Duration>| {
            let all = [each.read, each.write, each.trim];
            all.iter().any(|time| *time > Duration::ZERO)
        };
        plans.push(ControlPlan {
            group,
            ends: exits.then_some(control.exit_what),
            waits_for,
            is_awaited: false,
            flow: (control.flow > 0).then_some(FlowPlan {
                number: number as u16,
                weight: control.flow,
                sleep: control.flow_sleep,
            }),
            floor: floor(job),
            max_latency: some(&control.max_latency)
                .then(|| super::each(&control.max_latency, |time| *time)),
            latency: (control.latency_target > Duration::ZERO).then_some(LatencyPlan {
                target: control.latency_target,
                window: control.latency_window,
                share: control.latency_percentile.billionths,
                goes_on: control.latency_run,
            }),
            steady: steady(job),
            thinktime_spin: control.thinktime_spin.min(job.thinktime),
            thinktime_iotime: control.thinktime_iotime,
            rate_ignores_thinktime: control.rate_ignore_thinktime,
        });
    }
    for (index, plan) in plans.iter().enumerate() {
        let others = plans.iter().filter(|other| other.group == plan.group);
        if others.into_iter().any(|other| other.steady != plan.steady) {
            let what = "the jobs of a group have one steadystate, as in fio: add new_group, or \
                        write it in [global]";
            return Err(error(scenario, jobs, index, "steadystate", what.to_owned()));
        }
        flow_ends(scenario, jobs, &plans, index)?;
    }
    Ok(plans)
}

fn error(
    scenario: &Scenario,
    jobs: &[FioJob],
    index: usize,
    option: &str,
    what: String,
) -> ScenarioError {
    let setting = jobs[index].setting(option);
    let written = setting.map_or(option, |setting| setting.option.as_str());
    scenario.error(&scenario.job_field(index, written), what)
}

/// The earlier job of this name.
fn waitee(scenario: &Scenario, jobs: &[FioJob], index: usize, name: &str) -> Result<u16> {
    let named = |(_, job): &(usize, &FioJob)| job.name == name;
    let mut found = jobs[..index].iter().enumerate().filter(named);
    match (found.next(), found.next()) {
        (Some((number, _)), None) => Ok(number as u16),
        (Some(_), Some(_)) => {
            let what = format!("several jobs before this one have the name {name}");
            Err(error(scenario, jobs, index, "wait_for", what))
        }
        (None, _) => {
            let what = format!("no job before this one has the name {name}");
            Err(error(scenario, jobs, index, "wait_for", what))
        }
    }
}

fn floor(job: &FioJob) -> Option<FloorPlan> {
    let control = &job.control;
    let none = control.rate_min == fio::PerDirection::same(0)
        && control.rate_iops_min == fio::PerDirection::same(0);
    (!none).then(|| FloorPlan {
        bytes: super::each(&control.rate_min, |bytes| *bytes),
        ios: super::each(&control.rate_iops_min, |ios| *ios),
        cycle: control.rate_cycle,
    })
}

fn steady(job: &FioJob) -> Option<SteadyPlan> {
    let control = &job.control;
    let seconds = (control.ss_dur.0 / 1_000_000_000) as u32;
    let state = control.steadystate.filter(|_| seconds > 0)?;
    Some(SteadyPlan {
        state,
        seconds,
        ramp: control.ss_ramp,
        grouped: job.group_reporting,
    })
}

/// A flow holds no thread back for ever: its jobs run side by side, or a runtime ends them.
fn flow_ends(
    scenario: &Scenario,
    jobs: &[FioJob],
    plans: &[ControlPlan],
    index: usize,
) -> Result<()> {
    let Some(flow) = plans[index].flow.filter(|_| jobs[index].runtime.is_none()) else {
        return Ok(());
    };
    let walls = |from: usize, to: usize| jobs[from + 1..=to].iter().any(|job| job.stonewall);
    let later = |(number, plan): (usize, &ControlPlan)| {
        let same = plan.flow.is_some_and(|other| other.number == flow.number);
        same && number > index && (walls(index, number) || plan.waits_for == Some(index as u16))
    };
    if plans.iter().enumerate().any(later) {
        let what = "a job of this flow starts when this one has ended, which waits for its I/Os \
                    for ever, in fio too: add runtime, or another flow_id";
        return Err(error(scenario, jobs, index, "flow", what.to_owned()));
    }
    Ok(())
}
