//! Drive and machine of a capture, from every second I/O; the others are the check (decision 0039).
//!
//! The drive: D2C by kind and size, and by depth if that predicts better. The machine: the time
//! from a completion to the request that waited for it, or from arrival to issue, fixes the clock;
//! what is beyond that is the host's (an emulator's or hypervisor's as a rule). How much of it
//! keeps the CPU from other work (steal time), a capture does not say: that factor is chosen so
//! that the mean Q2C of the fitted half comes out.

use blkmq::time::Duration;
use serde::Serialize;
use sim::plan::ServiceTime;
use sim::profile::{MachineProfile, Steal};
use sim::replay::{CapturedDisk, HostDelays, Times};

use super::{Choice, Setup, mean, percent, spread};
use crate::error::Error;
use crate::fleet::Fleet;

/// Rounds in which the clock is looked for.
const ROUNDS: u32 = 4;
/// The clock of a fit is not farther from the profile's than this factor.
const CLOCK_RANGE: f64 = 500.0;
/// Fewer delays say nothing.
const FEW: usize = 16;
/// Halvings of the range in which the factor is looked for.
const HALVINGS: u32 = 6;
/// The largest factor.
const STEAL_FACTOR_MAX: f64 = 2.0;
/// A mean within so many percent of the captured one ends the search.
const NEAR: f64 = 0.5;

/// What one half of a capture says about its device and host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fit {
    /// Which half; none: all of it.
    #[serde(skip)]
    odd: Option<bool>,
    pub clock_mhz: u64,
    /// D2C depends on depth.
    pub by_depth: bool,
    /// Steal time after a completion, of the delay that was seen.
    pub steal_factor: f64,
    /// Delays after completions and after arrivals beyond the simulated ones of their rank.
    #[serde(skip)]
    completing: Vec<Duration>,
    #[serde(skip)]
    submitting: Vec<Duration>,
    /// Mean of the delays after completions that are not zero, ns.
    pub delay_mean_ns: u64,
    /// Mean Q2C of this half against the captured one, percent.
    pub error_percent: f64,
}

impl Fit {
    /// The machine with the fitted clock and steal time. Captured times of arrivals and completions
    /// contain the exit from idle and the entry of the interrupt.
    pub fn machine(&self, base: &MachineProfile) -> MachineProfile {
        let mut machine = base.clone();
        machine.clock_mhz = self.clock_mhz;
        (machine.cycles.idle_exit, machine.cycles.irq) = (0, 0);
        let taken = |delay: &Duration| (delay.0 as f64 * self.steal_factor) as u64;
        machine.steal = Some(Steal {
            completion_ns: self.completing.iter().map(taken).collect(),
            submission_ns: self.submitting.iter().map(|delay| delay.0).collect(),
        });
        machine
    }

    /// The service times of a captured drive.
    pub fn service_times(&self, disk: &CapturedDisk) -> Vec<ServiceTime> {
        let services = &disk.services;
        services.times(|index| self.has(index), self.by_depth)
    }

    /// Whether an I/O, request or completion is of the half that was fitted to, by its place: each
    /// half has every second one, as a capture's load and the noise of its host change with time.
    pub(super) fn has(&self, index: usize) -> bool {
        self.odd.is_none_or(|odd| index.is_multiple_of(2) != odd)
    }
}

/// Fits device and host to each half of the arrivals, with the captured choice.
pub fn fit(setup: &Setup<'_>, own: &Choice, fleet: &Fleet) -> Result<[Fit; 2], Error> {
    let captured: Vec<Times> = setup.arrivals.ios.iter().map(|io| io.captured).collect();
    Ok([
        part(setup, own, &captured, Some(false), fleet)?,
        part(setup, own, &captured, Some(true), fleet)?,
    ])
}

/// Fits drive and machine to all of the arrivals, for use elsewhere: nothing is left to judge by.
pub fn fit_to_all(setup: &Setup<'_>, own: &Choice, fleet: &Fleet) -> Result<Fit, Error> {
    let captured: Vec<Times> = setup.arrivals.ios.iter().map(|io| io.captured).collect();
    part(setup, own, &captured, None, fleet)
}

fn part(
    setup: &Setup<'_>,
    own: &Choice,
    captured: &[Times],
    odd: Option<bool>,
    fleet: &Fleet,
) -> Result<Fit, Error> {
    // Depth also grows while the host does nothing, so D2C may only seem to depend on it.
    let with = |by_depth| part_with(setup, own, captured, (odd, by_depth), fleet);
    let (with, without) = (with(true)?, with(false)?);
    let worse = with.error_percent.abs() > without.error_percent.abs();
    Ok(if worse { without } else { with })
}

fn part_with(
    setup: &Setup<'_>,
    own: &Choice,
    captured: &[Times],
    (odd, by_depth): (Option<bool>, bool),
    fleet: &Fleet,
) -> Result<Fit, Error> {
    let of = |index: usize| hardware_queue(setup, own, index);
    let seen = |times: &[Times]| HostDelays::of(times, of, tags(own));
    let mut fit = Fit {
        odd,
        by_depth,
        clock_mhz: setup.profile.clock_mhz,
        steal_factor: 0.0,
        completing: Vec::new(),
        submitting: Vec::new(),
        delay_mean_ns: 0,
        error_percent: 0.0,
    };
    let wanted = seen(captured);
    let mut simulated = seen(&setup.run(&own.plan, Some(&fit), 0, fleet)?);
    for _ in 0..ROUNDS {
        let base = setup.profile.clock_mhz as f64;
        let Some((should, takes)) = work(&wanted, &simulated) else {
            break;
        };
        let clock = fit.clock_mhz as f64 * takes as f64 / should as f64;
        fit.clock_mhz = clock.clamp(base / CLOCK_RANGE, base).max(1.0) as u64;
        simulated = seen(&setup.run(&own.plan, Some(&fit), 0, fleet)?);
    }
    let some = |delays: &HostDelays| -> Vec<Option<Duration>> {
        let all = delays.completing.iter();
        all.map(|delay| Some(*delay).filter(|delay| delay.0 > 0))
            .collect()
    };
    let of_half = |delays: Vec<Option<Duration>>| -> Vec<Duration> {
        let of_half = delays
            .into_iter()
            .enumerate()
            .filter(|(index, _)| fit.has(*index));
        of_half
            .map(|(_, delay)| delay.unwrap_or_default())
            .collect()
    };
    let completing = of_half(beyond(&some(&wanted), &some(&simulated)));
    let submitting = of_half(beyond(&wanted.submitting, &simulated.submitting));
    (fit.completing, fit.submitting) = (completing, submitting);
    let delayed = fit
        .completing
        .iter()
        .map(|delay| delay.0)
        .filter(|ns| *ns > 0);
    fit.delay_mean_ns = mean(&delayed.collect::<Vec<u64>>()) as u64;
    steal_factor(setup, own, &mut fit, captured, fleet)?;
    Ok(fit)
}

/// Looks for the factor: Q2C grows with it.
fn steal_factor(
    setup: &Setup<'_>,
    own: &Choice,
    fit: &mut Fit,
    captured: &[Times],
    fleet: &Fleet,
) -> Result<(), Error> {
    let all = captured.len();
    let ios: Vec<usize> = (0..all).filter(|index| fit.has(*index)).collect();
    let wanted = spread(captured, &ios).mean_ns as f64;
    let seeds: Vec<u64> = (0..setup.seeds).collect();
    let mut error_with = |factor: f64| -> Result<f64, Error> {
        fit.steal_factor = factor;
        let means = fleet.map(&seeds, |seed| {
            let times = setup.run(&own.plan, Some(fit), *seed, fleet)?;
            Ok(spread(&times, &ios).mean_ns)
        })?;
        fit.error_percent = percent(mean(&means), wanted);
        Ok(fit.error_percent)
    };
    if error_with(0.0)? >= 0.0 {
        return Ok(());
    }
    let (mut low, mut high) = (0.0, STEAL_FACTOR_MAX);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let error = error_with(middle)?;
        if error.abs() < NEAR {
            return Ok(());
        }
        if error < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(())
}

/// The hardware queue of an I/O; one number where tags are shared.
fn hardware_queue(setup: &Setup<'_>, own: &Choice, index: usize) -> u32 {
    let io = &setup.arrivals.ios[index];
    let hctxs = u32::from(own.plan.disks[0].capacity.hctxs.max(1));
    u32::from(io.cpu) * hctxs / u32::from(own.plan.machine.cpus.max(1))
}

/// Requests that a hardware queue can have with its device.
fn tags(own: &Choice) -> u32 {
    let disk = &own.plan.disks[0];
    let tags = disk.capacity.driver_tags / u32::from(disk.capacity.hctxs.max(1));
    match disk.device.budget {
        0 => tags,
        budget => tags.min(budget),
    }
}

/// The kernel's work, captured and simulated: the median time from a completion to the request that
/// waited, or if that was too seldom, from an arrival to its issue.
fn work(captured: &HostDelays, simulated: &HostDelays) -> Option<(u64, u64)> {
    let of = |delays: &HostDelays| (median(&delays.completing), median(&direct(delays)));
    let ((waited, direct), (is_waited, is_direct)) = (of(captured), of(simulated));
    let both = [(waited, is_waited), (direct, is_direct)];
    both.into_iter().find(|(wanted, is)| *wanted > 0 && *is > 0)
}

/// How much longer each delay is than the simulated one of its rank.
fn beyond(captured: &[Option<Duration>], simulated: &[Option<Duration>]) -> Vec<Option<Duration>> {
    let mut model: Vec<Duration> = simulated.iter().flatten().copied().collect();
    model.sort_unstable();
    let mut sorted: Vec<Duration> = captured.iter().flatten().copied().collect();
    sorted.sort_unstable();
    let more = |delay: &Duration| {
        let rank = sorted.partition_point(|of| of < delay);
        let of_model = model.get(rank * model.len() / sorted.len());
        Duration(delay.0.saturating_sub(of_model.map_or(0, |of| of.0)))
    };
    captured
        .iter()
        .map(|delay| delay.as_ref().map(more))
        .collect()
}

/// From arrival to issue, where that was direct.
fn direct(delays: &HostDelays) -> Vec<Duration> {
    delays.submitting.iter().flatten().copied().collect()
}

/// Of those that are not zero; 0 if there are too few.
fn median(delays: &[Duration]) -> u64 {
    let mut delays: Vec<u64> = delays.iter().map(|d| d.0).filter(|d| *d > 0).collect();
    delays.sort_unstable();
    if delays.len() < FEW {
        return 0;
    }
    delays[delays.len() / 2]
}
