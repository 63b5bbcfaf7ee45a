//! Events of a mapped device: outages of its paths, messages of dmsetup and multipathd,
//! suspensions.

use blkmq::dm::PathId;
use blkmq::dm::multipath::Message;
use blkmq::time::Duration;

use crate::NoPathRetry;
use crate::build::{Result, microseconds};
use crate::mapped::Written;
use sim::plan::{MappedPlan, Outage, Suspension};

/// Adds all of them to a plan; `interval`: of multipathd's checks, us.
pub(super) fn add(written: &Written<'_>, plan: &mut MappedPlan, interval: u64) -> Result<()> {
    let Written {
        scenario, mapped, ..
    } = written;
    let us = |key: &str, us: u64| microseconds(scenario, &written.field(key), us);
    plan.suspensions = suspensions(written)?;
    let mut away = Vec::new();
    for (index, outage) in mapped.outage.iter().enumerate() {
        let key = |key: &str| format!("outage.{index}.{key}");
        let paths = plan.table.paths_of(&outage.path);
        let paths = paths.map_err(|what| written.error(&key("path"), what))?;
        if outage.to_us <= outage.from_us {
            let what = format!("{} is not after from_us", outage.to_us);
            return Err(written.error(&key("to_us"), what));
        }
        let time = |name: &str, time: u64| us(&key(name), time);
        let (from, to) = (
            time("from_us", outage.from_us)?,
            time("to_us", outage.to_us)?,
        );
        let back = match outage.reinstate_us {
            Some(back) if back < outage.to_us => {
                let what = format!("{back} is before to_us");
                return Err(written.error(&key("reinstate_us"), what));
            }
            Some(back) => time("reinstate_us", back)?,
            None => Duration(outage.to_us.next_multiple_of(interval) * 1000),
        };
        for path in paths {
            let mut others = plan.outages.iter();
            if others.any(|other| other.path == path && other.from < to && from < other.to) {
                let what = format!("it overlaps another outage of {}", outage.path);
                return Err(written.error(&key("from_us"), what));
            }
            plan.outages.push(Outage { path, from, to });
            plan.messages.push((back, Message::Reinstate(path)));
            away.push(Away { path, from, back });
        }
    }
    if let Some(NoPathRetry::Looks(looks)) = mapped.no_path_retry {
        give_up(plan, &away, looks);
    }
    for (index, message) in mapped.message.iter().enumerate() {
        let key = format!("message.{index}.text");
        let what = Message::parse(&plan.table, &message.text);
        let what = what.map_err(|what| written.error(&key, what))?;
        let at = us(&format!("message.{index}.at_us"), message.at_us)?;
        plan.messages
            .extend(what.into_iter().map(|what| (at, what)));
    }
    Ok(())
}

/// A path is out of use, until multipathd reinstates it.
struct Away {
    path: PathId,
    from: Duration,
    back: Duration,
}

/// multipathd's no_path_retry: when no path is left it checks so many times, makes requests fail
/// then, and queues them again as soon as a path is back (retry_count_tick(), set_no_path_retry()).
fn give_up(plan: &mut MappedPlan, away: &[Away], looks: u32) {
    let paths = (0..plan.below.len() as u16).map(PathId);
    let paths: Vec<PathId> = paths.collect();
    let mut starts: Vec<Duration> = away.iter().map(|of| of.from).collect();
    starts.sort_unstable();
    let mut over = Duration::ZERO;
    for from in starts {
        // Until when each path is out of use, if it is.
        let until = |&path: &PathId| {
            let at = |of: &&Away| of.path == path && (of.from..of.back).contains(&from);
            away.iter().filter(at).map(|of| of.back).max()
        };
        let backs: Option<Vec<Duration>> = paths.iter().map(until).collect();
        let Some(back) = backs.and_then(|backs| backs.into_iter().min()) else {
            continue;
        };
        // Never, if the checks take longer than a run may.
        let looks = plan.interval.0.saturating_mul(u64::from(looks));
        let gives_up = Duration(from.0.saturating_add(looks));
        if from >= over && gives_up < back {
            let no_path = Message::QueueIfNoPath;
            plan.messages.push((gives_up, no_path(false)));
            plan.messages.push((back, no_path(true)));
        }
        over = over.max(back);
    }
}

/// Suspensions: one after another.
fn suspensions(written: &Written<'_>) -> Result<Vec<Suspension>> {
    let mut all: Vec<Suspension> = Vec::new();
    for (index, suspend) in written.mapped.suspend.iter().enumerate() {
        let key = |key: &str| format!("suspend.{index}.{key}");
        let time =
            |name: &str, us: u64| microseconds(written.scenario, &written.field(&key(name)), us);
        let before = all.last().map_or(Duration::ZERO, |last| last.resume);
        let suspension = Suspension {
            at: time("at_us", suspend.at_us)?,
            noflush: suspend.noflush,
            resume: time("resume_us", suspend.resume_us)?,
        };
        if suspension.at < before {
            let what = format!("{} is before the last one ends", suspend.at_us);
            return Err(written.error(&key("at_us"), what));
        }
        if suspension.resume <= suspension.at {
            let what = format!("{} is not after at_us", suspend.resume_us);
            return Err(written.error(&key("resume_us"), what));
        }
        all.push(suspension);
    }
    Ok(all)
}
