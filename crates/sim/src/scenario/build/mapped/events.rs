//! What happens to a mapped device: outages of its paths, messages of dmsetup and multipathd,
//! suspensions.

use blkmq::dm::table::Table;
use blkmq::dm::{GroupId, PathId};
use blkmq::path::ToTarget;
use blkmq::time::Duration;

use crate::plan::{MappedPlan, Outage, Suspension};
use crate::scenario::NoPathRetry;
use crate::scenario::build::{Result, microseconds};
use crate::scenario::mapped::Written;

/// Adds all of it to a plan; `interval`: multipathd's between two looks, us.
pub(super) fn add(written: &Written<'_>, plan: &mut MappedPlan, interval: u64) -> Result<()> {
    let Written {
        scenario, mapped, ..
    } = written;
    let us = |key: &str, us: u64| microseconds(scenario, &written.field(key), us);
    plan.suspensions = suspensions(written)?;
    let mut away = Vec::new();
    for (index, outage) in mapped.outage.iter().enumerate() {
        let key = |key: &str| format!("outage.{index}.{key}");
        let path = path_of(&plan.table, &outage.path);
        let path = path.map_err(|what| written.error(&key("path"), what))?;
        if outage.to_us <= outage.from_us {
            let what = format!("{} is not behind from_us", outage.to_us);
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
        plan.outages.push(Outage { path, from, to });
        plan.messages.push((back, ToTarget::Reinstate(path)));
        away.push(Away { path, from, back });
    }
    if let Some(NoPathRetry::Looks(looks)) = mapped.no_path_retry {
        give_up(plan, &away, looks);
    }
    for (index, message) in mapped.message.iter().enumerate() {
        let key = format!("message.{index}.text");
        let what = told(&plan.table, &message.text);
        let what = what.map_err(|what| written.error(&key, what))?;
        let at = us(&format!("message.{index}.at_us"), message.at_us)?;
        plan.messages.push((at, what));
    }
    Ok(())
}

/// A path is of no use, until multipathd has it reinstated.
struct Away {
    path: PathId,
    from: Duration,
    back: Duration,
}

/// multipathd's no_path_retry: from when on no path is left it looks so often, has requests fail
/// then, and wait again as soon as a path is back (retry_count_tick(), set_no_path_retry()).
fn give_up(plan: &mut MappedPlan, away: &[Away], looks: u32) {
    let paths = (0..plan.below.len() as u16).map(PathId);
    let paths: Vec<PathId> = paths.collect();
    let mut starts: Vec<Duration> = away.iter().map(|of| of.from).collect();
    starts.sort_unstable();
    let mut over = Duration::ZERO;
    for from in starts {
        // Until when each path is away; one that is not is no path less.
        let until = |&path: &PathId| {
            let at = |of: &&Away| of.path == path && (of.from..of.back).contains(&from);
            away.iter().filter(at).map(|of| of.back).max()
        };
        let backs: Option<Vec<Duration>> = paths.iter().map(until).collect();
        let Some(back) = backs.and_then(|backs| backs.into_iter().min()) else {
            continue;
        };
        // Never, of more looks than there is time for.
        let looks = plan.interval.0.saturating_mul(u64::from(looks));
        let gives_up = Duration(from.0.saturating_add(looks));
        if from >= over && gives_up < back {
            let no_path = ToTarget::QueueIfNoPath;
            plan.messages.push((gives_up, no_path(false)));
            plan.messages.push((back, no_path(true)));
        }
        over = over.max(back);
    }
}

/// When it is suspended: one suspension after another.
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
            let what = format!("{} is not behind at_us", suspend.resume_us);
            return Err(written.error(&key("resume_us"), what));
        }
        all.push(suspension);
    }
    Ok(all)
}

/// The path of a device.
fn path_of(table: &Table, device: &str) -> std::result::Result<PathId, String> {
    let mut paths = (0..).map(PathId).zip(table.paths());
    let path = paths.find(|(_, path)| path.device == device);
    path.map(|(id, _)| id).ok_or_else(|| {
        let known: Vec<&str> = table.paths().map(|path| path.device.as_str()).collect();
        format!("no path {device}; there are {}", known.join(", "))
    })
}

/// What a message says.
fn told(table: &Table, text: &str) -> std::result::Result<ToTarget, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let group = |text: &str| {
        let count = table.groups.len();
        let number: Option<usize> = text.parse().ok();
        let number = number.filter(|number| (1..=count).contains(number));
        let number = number.ok_or_else(|| format!("{text} is none of the groups, 1 to {count}"));
        number.map(|number| GroupId(number as u16 - 1))
    };
    Ok(match words[..] {
        ["fail_path", device] => ToTarget::Fail(path_of(table, device)?),
        ["reinstate_path", device] => ToTarget::Reinstate(path_of(table, device)?),
        ["queue_if_no_path"] => ToTarget::QueueIfNoPath(true),
        ["fail_if_no_path"] => ToTarget::QueueIfNoPath(false),
        ["switch_group", number] => ToTarget::Switch(group(number)?),
        ["disable_group", number] => ToTarget::Bypass(group(number)?, true),
        ["enable_group", number] => ToTarget::Bypass(group(number)?, false),
        _ => {
            return Err(format!(
                "no message `{text}`; there are fail_path DEVICE, reinstate_path DEVICE, \
                 queue_if_no_path, fail_if_no_path, switch_group N, disable_group N, \
                 enable_group N"
            ));
        }
    })
}
