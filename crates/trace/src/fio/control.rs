//! Options by which jobs end, wait for, pace and hold back each other.
//!
//! Values only: what they do is in the simulator (`machine/fio/control.rs`). After fio 3.33
//! options.c, init.c fixup_options(); the checks of values that contradict each other are here too.

use blkmq::time::Duration;

use super::build::{count, each, one_of};
use super::draw::{Decimal, decimal};
use super::job::{FioJob, PerDirection};
use super::problem::{Fault, Problem};
use super::value;
use super::zones::Zones;

/// `exit_what`: the threads that a thread of a run with `exitall` ends when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// Those of its group (stonewall, new_group).
    #[default]
    Group,
    /// Those that run or have run.
    Stonewall,
    All,
}

/// `steadystate`: the measure, and what is its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyState {
    /// Of IOPS, otherwise of bytes a second.
    pub iops: bool,
    /// Of the slope of a regression line, otherwise of the largest deviation from the mean.
    pub slope: bool,
    /// In percent of the mean.
    pub percent: bool,
    pub limit: Decimal,
}

/// Fields bear fio's names; `options/table.rs` has units and defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    pub exitall: bool,
    pub exit_what: ExitWhat,
    pub wait_for: Option<String>,
    /// 0: none.
    pub flow: u32,
    pub flow_id: u32,
    pub flow_sleep: Duration,
    /// Bytes a second; 0: none.
    pub rate_min: PerDirection<u64>,
    /// 0: none.
    pub rate_iops_min: PerDirection<u32>,
    pub rate_cycle: Duration,
    /// Zero: none.
    pub max_latency: PerDirection<Duration>,
    /// Zero: none.
    pub latency_target: Duration,
    pub latency_window: Duration,
    pub latency_percentile: Decimal,
    pub latency_run: bool,
    pub steadystate: Option<SteadyState>,
    /// Whole seconds; zero: never.
    pub ss_dur: Duration,
    pub ss_ramp: Duration,
    /// At most thinktime.
    pub thinktime_spin: Duration,
    /// Zero: none.
    pub thinktime_iotime: Duration,
    pub rate_ignore_thinktime: bool,
    pub zones: Zones,
    /// io_submit_mode=offload
    pub offload: bool,
    /// 0: none.
    pub force_async: u32,
}

impl Default for Control {
    fn default() -> Control {
        Control {
            exitall: false,
            exit_what: ExitWhat::Group,
            wait_for: None,
            flow: 0,
            flow_id: 0,
            flow_sleep: Duration::ZERO,
            rate_min: PerDirection::same(0),
            rate_iops_min: PerDirection::same(0),
            rate_cycle: Duration::from_secs(1),
            max_latency: PerDirection::same(Duration::ZERO),
            latency_target: Duration::ZERO,
            latency_window: Duration::ZERO,
            latency_percentile: Decimal::hundredths(10_000),
            latency_run: false,
            steadystate: None,
            ss_dur: Duration::ZERO,
            ss_ramp: Duration::ZERO,
            thinktime_spin: Duration::ZERO,
            thinktime_iotime: Duration::ZERO,
            rate_ignore_thinktime: false,
            zones: Zones::default(),
            offload: false,
            force_async: 0,
        }
    }
}

/// Sets the field of an option. False: it is none of these.
pub(super) fn apply(
    control: &mut Control,
    name: &str,
    text: Option<&str>,
    kb_base: u64,
) -> Result<bool, Fault> {
    let value = text.unwrap_or("");
    let number = |text: &str| count(text, kb_base);
    let (us, second) = (Duration::from_micros(1), Duration::from_secs(1));
    match name {
        "exitall" => control.exitall = value::flag(text)?,
        "exit_what" => {
            control.exit_what = one_of(
                value,
                [
                    ("group", ExitWhat::Group),
                    ("stonewall", ExitWhat::Stonewall),
                    ("all", ExitWhat::All),
                ],
            )?;
        }
        "wait_for" => control.wait_for = Some(value.to_owned()),
        "flow" => control.flow = number(value)?,
        "flow_id" => control.flow_id = number(value)?,
        "flow_sleep" => control.flow_sleep = Duration::from_micros(u64::from(number(value)?)),
        "rate_min" => control.rate_min = each(value, 0, |text| value::bytes(text, kb_base))?,
        "rate_iops_min" => control.rate_iops_min = each(value, 0, number)?,
        "rate_cycle" => control.rate_cycle = Duration::from_millis(u64::from(number(value)?)),
        "max_latency" => {
            control.max_latency = each(value, Duration::ZERO, |text| value::time(text, us))?;
        }
        "latency_target" => control.latency_target = value::time(value, us)?,
        "latency_window" => control.latency_window = value::time(value, us)?,
        "latency_percentile" => control.latency_percentile = percentile(value)?,
        "latency_run" => control.latency_run = value::flag(text)?,
        "steadystate" => control.steadystate = Some(steady_state(value, kb_base)?),
        "steadystate_duration" => control.ss_dur = value::time(value, second)?,
        "steadystate_ramp_time" => control.ss_ramp = value::time(value, second)?,
        "thinktime_spin" => control.thinktime_spin = value::time(value, us)?,
        "thinktime_iotime" => control.thinktime_iotime = value::time(value, second)?,
        "rate_ignore_thinktime" => control.rate_ignore_thinktime = value::flag(text)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn percentile(text: &str) -> Result<Decimal, String> {
    let percent = decimal(text)?;
    match percent.billionths <= Decimal::hundredths(10_000).billionths {
        true => Ok(percent),
        false => Err(format!("{text} is more than 100 percent")),
    }
}

/// `iops:LIMIT`, `iops_slope:LIMIT%` ... (str_steadystate_cb()).
fn steady_state(text: &str, kb_base: u64) -> Result<SteadyState, String> {
    let (kind, limit) = text.split_once(':').unwrap_or((text, ""));
    let (iops, slope) = match kind {
        "iops" => (true, false),
        "iops_slope" => (true, true),
        "bw" => (false, false),
        "bw_slope" => (false, true),
        _ => {
            return Err(format!(
                "`{kind}` is none of iops, iops_slope, bw, bw_slope"
            ));
        }
    };
    let (number, percent) = match limit.strip_suffix('%') {
        Some(number) => (number.trim_end(), true),
        None => (limit, false),
    };
    if number.is_empty() {
        return Err("needs a limit after the colon, e.g. iops:10%".to_owned());
    }
    let limit = if percent || iops {
        decimal(number)?
    } else {
        let bytes = value::bytes(number, kb_base)?.checked_mul(1_000_000_000);
        let most = u64::MAX / 1_000_000_000;
        let billionths = bytes.ok_or_else(|| {
            format!("`{number}` is too large; expected at most {most} bytes a second")
        })?;
        Decimal { billionths }
    };
    Ok(SteadyState {
        iops,
        slope,
        percent,
        limit,
    })
}

/// Checks that one of the jobs before it, of these names, has the name that it waits for.
pub(super) fn awaited(job: &FioJob, before: &[String]) -> Option<Problem> {
    let name = job.control.wait_for.as_ref()?;
    let what = match before.iter().filter(|other| *other == name).count() {
        1 => return None,
        // Has an error of its own.
        0 if *name == job.name => return None,
        0 => format!("no job before this one has the name {name}"),
        _ => format!("several jobs before this one have the name {name}"),
    };
    Some(Problem::of_job(job, "wait_for", what))
}

/// Values that exclude each other, and what is not modelled together with other options.
pub(super) fn problems(job: &FioJob) -> Vec<Problem> {
    let control = &job.control;
    let mut problems = Vec::new();
    let mut bad = |option: &str, what: &str| problems.push(Problem::of_job(job, option, what));
    let (rate, iops) = (control.rate_min, control.rate_iops_min);
    if rate != PerDirection::same(0) && iops != PerDirection::same(0) {
        bad(
            "rate_iops_min",
            "rate_min is given as well; fio takes one of them",
        );
    }
    let above = |min: [u64; 3], most: [u64; 3]| {
        let mut pairs = min.into_iter().zip(most);
        pairs.any(|(min, most)| most > 0 && min > most)
    };
    let wide = |each: PerDirection<u32>| [each.read, each.write, each.trim].map(u64::from);
    let all = |each: PerDirection<u64>| [each.read, each.write, each.trim];
    if above(all(rate), all(job.rate)) {
        bad("rate_min", "is more than rate");
    }
    if above(wide(iops), wide(job.rate_iops)) {
        bad("rate_iops_min", "is more than rate_iops");
    }
    if control.wait_for.as_ref() == Some(&job.name) {
        bad("wait_for", "a job cannot wait for itself");
    }
    if control.steadystate.is_some() {
        let second = Duration::from_secs(1);
        if !control.ss_dur.0.is_multiple_of(second.0) {
            bad("steadystate_duration", "is a number of whole seconds");
        }
        if control.ss_dur > Duration::from_secs(100_000) {
            bad(
                "steadystate_duration",
                "is too long; expected at most 100000 s",
            );
        }
    }
    problems
}
