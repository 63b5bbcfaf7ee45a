//! The arrivals of a capture under several choices of scheduler and tunables: latencies, and which
//! of their differences are more than the model's error.
//!
//! The first choice is what the capture ran with: its difference from the captured times is the
//! model's error, and no difference between choices that is smaller than that, or than the spread
//! over seeds, is called one. Read next: `what_if/fit.rs` for device and host of the capture. Not
//! here: plans of a capture (`scenario::replay`), the table (`cli`).

mod fit;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;

use blkmq::request::Op;
use blkmq::time::SimTime;
use scenario::replay::Spread;
use serde::Serialize;
use sim::machine::{Outcome, Simulator};
use sim::plan::Plan;
use sim::profile::MachineProfile;
use sim::replay::{Arrivals, Pace, Times};

use crate::error::Error;
use crate::fleet::Fleet;

pub use fit::{Fit, fit, fit_to_all};
pub use search::search;

/// A scheduler with its tunables.
#[derive(Clone, Debug)]
pub struct Choice {
    /// `mq-deadline,fifo_batch=1`.
    pub name: String,
    pub plan: Plan,
    /// The capture can say how it differs from the first one.
    pub comparable: bool,
}

/// What all choices have in common.
#[derive(Debug)]
pub struct Setup<'a> {
    pub arrivals: &'a Arc<Arrivals>,
    pub profile: &'a MachineProfile,
    pub pace: Pace,
    /// Runs of each choice.
    pub seeds: u64,
    /// The device is the captured one.
    pub own_device: bool,
    /// Names of the devices, where there are several; and the only one that is asked about.
    pub devices: &'a [&'a str],
    pub of_disk: Option<u16>,
}

/// Whose I/Os a group has: all, or those of a direction, of a device or of a process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Whose {
    /// Name of the device, or empty.
    pub device: String,
    /// Of a process.
    pub pid: Option<u32>,
    /// Name of the process, or empty.
    pub process: String,
    /// `read`, `write`, `trim`, or empty for all.
    pub direction: &'static str,
}

/// Latencies of a group under a choice: of each seed.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Q2c {
    /// Mean Q2C of each seed, ns.
    pub mean_ns: Vec<u64>,
    /// Its 99th percentile.
    pub p99_ns: Vec<u64>,
}

/// How much sooner or later a group's I/Os end, percent of the captured choice as modelled.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// Of the mean Q2C; negative: sooner.
    pub mean_percent: f64,
    pub p99_percent: f64,
    /// The mean's difference is above the model's error and the spread over seeds.
    pub mean_differs: bool,
    pub p99_differs: bool,
}

/// A group: as captured, and under each choice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Group {
    #[serde(flatten)]
    pub whose: Whose,
    pub ios: u64,
    pub captured: Spread,
    /// By choice.
    pub q2c: Vec<Q2c>,
    /// The model's error: the first choice against the capture, percent. None if the capture has no
    /// completions or the device is another one.
    pub error_mean_percent: Option<f64>,
    pub error_p99_percent: Option<f64>,
    /// By choice; nothing of the first, and of those that the capture says nothing about.
    pub verdicts: Vec<Option<Verdict>>,
}

/// From the first arrival to the last completion.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Span {
    pub captured_ns: u64,
    /// By choice, of each seed.
    pub ns: Vec<Vec<u64>>,
    pub error_percent: Option<f64>,
    /// By choice: percent, and whether it differs.
    pub verdicts: Vec<Option<(f64, bool)>>,
}

/// All groups, the one of all I/Os first.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WhatIf {
    pub choices: Vec<String>,
    pub groups: Vec<Group>,
    pub span: Span,
    /// The device and host that were fitted to each half; figures are of the other half then.
    pub fit: Option<[Fit; 2]>,
}

/// Runs all choices with all seeds. The first choice is the captured one.
pub fn compare(
    setup: &Setup<'_>,
    choices: &[Choice],
    fitted: Option<[Fit; 2]>,
    fleet: &Fleet,
) -> Result<WhatIf, Error> {
    let seeds = 0..setup.seeds;
    let runs: Vec<(&Choice, u64)> = choices
        .iter()
        .flat_map(|choice| seeds.clone().map(move |seed| (choice, seed)))
        .collect();
    let ran = fleet.map(&runs, |(choice, seed)| {
        setup.judge(&choice.plan, fitted.as_ref(), *seed, fleet)
    })?;
    let captured: Vec<Times> = setup.arrivals.ios.iter().map(|io| io.captured).collect();
    let by_choice: Vec<&[Run]> = ran.chunks(setup.seeds as usize).collect();
    let mut groups = Vec::new();
    // The error of few I/Os may be small by chance: no bound is below that of all.
    let mut least = (0.0, 0.0);
    for (whose, ios) in groups_of(setup) {
        let group = Group::new(
            (setup, choices),
            (whose, &ios),
            &captured,
            &by_choice,
            least,
        );
        if groups.is_empty() {
            least = (
                bound(group.error_mean_percent),
                bound(group.error_p99_percent),
            );
        }
        groups.push(group);
    }
    let ns: Vec<Vec<u64>> = by_choice
        .iter()
        .map(|all| all.iter().map(|of| of.span).collect())
        .collect();
    let captured_ns = span(&captured);
    let error = setup
        .own_device
        .then(|| percent(mean(&ns[0]), captured_ns as f64));
    let error = error.filter(|_| captured_ns > 0);
    let verdict = |(of, choice): (&Vec<u64>, &Choice)| {
        choice.comparable.then(|| differs(of, &ns[0], bound(error)))
    };
    let mut verdicts: Vec<Option<(f64, bool)>> = ns.iter().zip(choices).map(verdict).collect();
    verdicts[0] = None;
    Ok(WhatIf {
        choices: choices.iter().map(|choice| choice.name.clone()).collect(),
        groups,
        span: Span {
            captured_ns,
            ns: ns.clone(),
            error_percent: error,
            verdicts,
        },
        fit: fitted,
    })
}

/// The times of every arrival with one seed, and the span of the run; of two runs after a fit, the
/// mean.
struct Run {
    times: Vec<Times>,
    span: u64,
}

fn bound(error: Option<f64>) -> f64 {
    error.unwrap_or(0.0).abs()
}

impl Setup<'_> {
    /// The times of every arrival; after a fit those of a run with what was fitted to the half that
    /// the arrival is not of.
    fn judge(
        &self,
        plan: &Plan,
        fits: Option<&[Fit; 2]>,
        seed: u64,
        fleet: &Fleet,
    ) -> Result<Run, Error> {
        let Some([a, b]) = fits else {
            let times = self.run(plan, None, seed, fleet)?;
            let span = span(&times);
            return Ok(Run { times, span });
        };
        let mut times = self.run(plan, Some(a), seed, fleet)?;
        let of_b = self.run(plan, Some(b), seed, fleet)?;
        let span = u64::midpoint(span(&times), span(&of_b));
        for (index, (time, of_b)) in times.iter_mut().zip(of_b).enumerate() {
            if a.has(index) {
                *time = of_b;
            }
        }
        Ok(Run { times, span })
    }

    /// The times of every arrival in one run.
    fn run(
        &self,
        plan: &Plan,
        fit: Option<&Fit>,
        seed: u64,
        fleet: &Fleet,
    ) -> Result<Vec<Times>, Error> {
        let mut plan = plan.clone();
        plan.seed = plan.seed.wrapping_add(seed);
        let machine = fit.map(|fit| fit.machine(self.profile));
        for (disk, captured) in plan.disks.iter_mut().zip(&self.arrivals.disks) {
            disk.device.service_times = fit.map_or(Vec::new(), |fit| fit.service_times(captured));
        }
        let captured = self.own_device && fit.is_none();
        let machine = machine.as_ref().unwrap_or(self.profile);
        let mut simulator =
            Simulator::replaying(&plan, machine, self.arrivals, self.pace, captured)
                .map_err(|what| Error::wrong("capture", what))?;
        match fleet.run(&mut simulator)? {
            Outcome::Stalled(stall) => {
                let name = plan.disks[0].queue.scheduler.kind().name();
                Err(Error::Stalled(format!("{name}: {stall}")))
            }
            Outcome::Finished => Ok(simulator.replayed().to_vec()),
        }
    }
}

/// A group while it is gathered: device by its place and one, process, direction.
type Key = (u16, Option<u32>, &'static str);

/// The groups of a capture, with their I/Os. Workers of an io_uring ring count with its process. A
/// group that is the same as a wider one says nothing and is left out.
fn groups_of(setup: &Setup<'_>) -> Vec<(Whose, Vec<usize>)> {
    let arrivals = setup.arrivals;
    let streams = &arrivals.streams;
    let rings = streams
        .iter()
        .map(|stream| (stream.pid, streams[stream.ring as usize].pid));
    let rings: BTreeMap<u32, u32> = rings.collect();
    let mut ios: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (index, io) in arrivals.ios.iter().enumerate() {
        if setup.of_disk.is_some_and(|disk| io.disk != disk) {
            continue;
        }
        let direction = match io.op {
            Op::Read => "read",
            Op::Discard => "trim",
            Op::Write | Op::WriteZeroes | Op::Flush => "write",
        };
        let device = (io.disk + 1, None, "");
        let pid = Some(*rings.get(&io.pid).unwrap_or(&io.pid));
        let of_process = [(0, pid, ""), (0, pid, direction)];
        for key in [(0, None, ""), (0, None, direction), device]
            .into_iter()
            .chain(of_process)
        {
            ios.entry(key).or_default().push(index);
        }
    }
    let names: BTreeMap<u32, &str> = streams
        .iter()
        .map(|stream| (stream.pid, stream.name.as_str()))
        .collect();
    let says = |&(key, of): &(&Key, &Vec<usize>)| {
        let wider: &[Key] = match *key {
            (0, None, "") => return true,
            (0, Some(pid), direction) if !direction.is_empty() => {
                &[(0, None, ""), (0, None, direction), (0, Some(pid), "")]
            }
            _ => &[(0, None, "")],
        };
        wider.iter().all(|wider| ios[wider].len() > of.len())
    };
    let named = |(&(device, pid, direction), of): (&Key, &Vec<usize>)| {
        let device = usize::from(device).checked_sub(1);
        let whose = Whose {
            device: device.map_or(String::new(), |at| setup.devices[at].to_owned()),
            pid,
            process: pid
                .and_then(|pid| names.get(&pid))
                .map_or(String::new(), |name| (*name).to_owned()),
            direction,
        };
        (whose, of.clone())
    };
    // A process with a device of its own is that device.
    let own_device = |of: &Vec<usize>| ios.iter().any(|(key, all)| key.0 > 0 && all == of);
    let shown = |(key, of): &(&Key, &Vec<usize>)| {
        says(&(*key, *of)) && (key.1.is_none() || !own_device(of))
    };
    ios.iter().filter(shown).map(named).collect()
}

/// Q2C of those I/Os that ended.
fn spread(times: &[Times], ios: &[usize]) -> Spread {
    let ended = ios.iter().map(|&index| times[index]);
    let ended = ended.filter(|t| t.queued != SimTime::NEVER && t.completed != SimTime::NEVER);
    Spread::of(ended.map(|t| t.completed.since(t.queued).0))
}

/// First arrival to last completion.
fn span(times: &[Times]) -> u64 {
    let ended = || times.iter().filter(|t| t.completed != SimTime::NEVER);
    let first = ended().map(|t| t.queued).min().unwrap_or(SimTime::ZERO);
    ended()
        .map(|t| t.completed.since(first).0)
        .max()
        .unwrap_or(0)
}

impl Group {
    /// `least`: bounds of mean and 99th percentile that no difference is below.
    fn new(
        (setup, choices): (&Setup<'_>, &[Choice]),
        (whose, ios): (Whose, &[usize]),
        captured: &[Times],
        runs: &[&[Run]],
        least: (f64, f64),
    ) -> Group {
        let q2c = |all: &&[Run]| {
            let spreads: Vec<Spread> = all.iter().map(|of| spread(&of.times, ios)).collect();
            Q2c {
                mean_ns: spreads.iter().map(|s| s.mean_ns).collect(),
                p99_ns: spreads.iter().map(|s| s.p99_ns).collect(),
            }
        };
        let q2c: Vec<Q2c> = runs.iter().map(q2c).collect();
        let captured = spread(captured, ios);
        let own = &q2c[0];
        let known = setup.own_device && captured.count > 0;
        let error = |own: &[u64], captured: u64| known.then(|| percent(mean(own), captured as f64));
        let error_mean = error(&own.mean_ns, captured.mean_ns);
        let error_p99 = error(&own.p99_ns, captured.p99_ns);
        let bounds = (
            bound(error_mean).max(least.0),
            bound(error_p99).max(least.1),
        );
        let verdict = |of: &Q2c| {
            let (mean_percent, mean_differs) = differs(&of.mean_ns, &own.mean_ns, bounds.0);
            let (p99_percent, p99_differs) = differs(&of.p99_ns, &own.p99_ns, bounds.1);
            Verdict {
                mean_percent,
                p99_percent,
                mean_differs,
                p99_differs,
            }
        };
        let others = q2c.iter().zip(choices).enumerate();
        let verdicts = others
            .map(|(index, (of, choice))| (index > 0 && choice.comparable).then(|| verdict(of)));
        Group {
            whose,
            ios: ios.len() as u64,
            verdicts: verdicts.collect(),
            captured,
            error_mean_percent: error_mean,
            error_p99_percent: error_p99,
            q2c,
        }
    }
}

/// The difference of two choices in percent, and whether it is above the model's error and the
/// spread of both over their seeds.
fn differs(of: &[u64], own: &[u64], error: f64) -> (f64, bool) {
    let difference = percent(mean(of), mean(own));
    let spread = [of, own].into_iter().map(|values| {
        let (least, most) = (values.iter().min(), values.iter().max());
        let range = most.unwrap_or(&0) - least.unwrap_or(&0);
        100.0 * range as f64 / mean(own).max(1.0)
    });
    let noise = spread.fold(error, f64::max);
    (difference, difference.abs() > noise)
}

fn percent(of: f64, base: f64) -> f64 {
    100.0 * (of / base.max(1.0) - 1.0)
}

fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len().max(1) as f64
}
