//! The single-queue path in a scenario: rules that have it, and settings that it does not have.

use blkmq::elevator::SchedulerKind;
use blkmq::rules::Rules;

use super::disks::{Disk, Kind};
use super::{Asked, Driver, names_of};
use crate::{Result, Scenario};
use sim::plan::DiskPlan;
use trace::fio::FioJob;

const PATHS: [&str; 2] = ["blk-mq", "single-queue"];

/// Checks the written path against the rules. True: the single-queue one.
pub(super) fn path_of(scenario: &Scenario, rules: Option<&Rules>) -> Result<bool> {
    let has = rules.map(|rules| rules.single_queue.is_some());
    let single = match scenario.queue.path.as_deref() {
        None => return Ok(has.unwrap_or(false)),
        Some("blk-mq") => false,
        Some("single-queue") => true,
        Some(other) => {
            let what = format!("no path `{other}`; there are {}", PATHS.join(", "));
            return Err(scenario.error("queue.path", what));
        }
    };
    if has.is_some_and(|has| has != single) {
        let what = format!(
            "{} has no {} path; these have one: {}",
            rules.map_or("", |rules| rules.name),
            PATHS[usize::from(single)],
            Rules::names_of(single)
        );
        return Err(scenario.error("queue.path", what));
    }
    Ok(single)
}

/// Why a queue of this kind cannot have the scheduler.
pub(super) fn wrong_path(kind: SchedulerKind, single: bool) -> String {
    let (here, there) = (PATHS[usize::from(single)], PATHS[usize::from(!single)]);
    let name = kind.name();
    let own = names_of(|kind| kind.serves(single));
    format!("{name} needs the {there} path; {here} has {own}")
}

/// Refuses settings that a queue of the single-queue kind does not have.
pub(super) fn check(
    asked: &Asked<'_>,
    disk: &Disk<'_>,
    driver: &Driver,
    rules: &Rules,
) -> Result<()> {
    if rules.single_queue.is_none() {
        return Ok(());
    }
    let scenario = asked.scenario;
    let refused = |key: &str, what: &str| {
        let field = format!("{}.{key}", disk.field);
        Err(scenario.error(&field, what))
    };
    if disk.kind == Kind::Nvme {
        return refused("type", "nvme has no driver on the single-queue path");
    }
    if driver.hctxs() != 1 {
        let key = if driver.plan.poll_queues > 0 {
            "poll_queues"
        } else {
            "submit_queues"
        };
        return refused(
            key,
            "a queue of the single-queue path has one queue to its device",
        );
    }
    if disk.device.has("shared_tags") {
        return refused(
            "shared_tags",
            "queues of the single-queue path share no tags",
        );
    }
    if disk.device.has("mbps") {
        return refused(
            "mbps",
            "null_blk has no such limit on the single-queue path",
        );
    }
    for (written, key) in [
        (asked.queue.inline_runs.is_some(), "inline_runs"),
        (asked.queue.restart.is_some(), "restart"),
        (asked.queue.restart_rule.is_some(), "restart_rule"),
        (asked.queue.lone_plug.is_some(), "lone_plug"),
    ] {
        if written {
            return Err(asked.error(key, "means nothing on the single-queue path"));
        }
    }
    Ok(())
}

/// Refuses jobs that it cannot run.
pub(super) fn check_jobs(scenario: &Scenario, jobs: &[FioJob], disks: &[DiskPlan]) -> Result<()> {
    let mut rules = disks.iter().map(|disk| disk.queue.rules);
    let Some(rules) = rules.find(|rules| rules.single_queue.is_some()) else {
        return Ok(());
    };
    for (index, job) in jobs.iter().enumerate() {
        let refused = |key: &str, what: String| {
            let field = scenario.job_field(index, key);
            Err(scenario.error(&field, what))
        };
        if job.ioengine.is_uring() {
            let what = format!("{} has no io_uring; libaio and psync are there", rules.name);
            return refused("ioengine", what);
        }
        let cached = disks.iter().any(|disk| disk.queue.limits.write_cache);
        let writes = &job.writes;
        for (flushes, key) in [
            (job.fsync > 0, "fsync"),
            (job.fdatasync > 0, "fdatasync"),
            (writes.sync, "sync"),
            (writes.end_fsync, "end_fsync"),
            (writes.fsync_on_close, "fsync_on_close"),
        ] {
            if flushes && job.rw.write && cached {
                let what = "not modelled: flushes of a volatile write cache on the \
                            single-queue path";
                return refused(key, what.to_owned());
            }
        }
    }
    if !scenario.change.is_empty() {
        let what =
            "a queue of the single-queue path keeps its scheduler: its change is not modelled";
        return Err(scenario.error("change.0.scheduler", what));
    }
    Ok(())
}
