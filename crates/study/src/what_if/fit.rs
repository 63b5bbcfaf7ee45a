//! Device and host of a capture, from every second I/O; the others are the check (decision 0039).
//!
//! The device: D2C by kind and size, and by depth if that predicts better. The host: the time from
//! a completion to the request that waited for it, or from arrival to issue, fixes the clock of the
//! machine profile; what is beyond that is the host's (an emulator's or hypervisor's as a rule).
//! How much of it keeps the CPU from other work, a capture does not say: that share is chosen so
//! that the mean Q2C of the fitted half comes out.

use blkmq::time::Duration;
use serde::Serialize;
use sim::profile::MachineProfile;
use sim::replay::{Arrivals, CapturedDisk, HostDelays, Stolen, Times};
use sim::rng::Rng;

use super::{Choice, Question, mean, percent, spread};
use crate::error::Error;
use crate::fleet::Fleet;

/// Rounds in which the clock is looked for.
const ROUNDS: u32 = 4;
/// The clock of a fit is not farther from the profile's than this factor.
const CLOCK_RANGE: f64 = 500.0;
/// Delays that are drawn together.
const RUN: usize = 16;
/// Fewer delays say nothing.
const FEW: usize = 16;
/// Halvings of the range in which the share is looked for.
const HALVINGS: u32 = 6;
/// The largest share.
const SHARE_MAX: f64 = 2.0;
/// A mean within so many percent of the captured one ends the search.
const NEAR: f64 = 0.5;

/// What one half of a capture says about its device and host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fit {
    /// Which half.
    #[serde(skip)]
    odd: bool,
    pub clock_mhz: u64,
    /// D2C depends on depth.
    pub by_depth: bool,
    /// Of the delays after completions, the share that the host adds.
    pub share: f64,
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
    /// The machine with the clock that was fitted.
    pub fn profile(&self, base: &MachineProfile) -> MachineProfile {
        MachineProfile {
            clock_mhz: self.clock_mhz,
            ..base.clone()
        }
    }

    /// The arrivals on the device and host that were fitted.
    pub fn arrivals(&self, arrivals: &Arrivals, seed: u64) -> Arrivals {
        let mut rng = Rng::stream(seed, "host delays");
        let mut draw = |from: &[Duration], share: f64| -> Vec<Duration> {
            let mut drawn = Vec::with_capacity(arrivals.ios.len());
            while drawn.len() < arrivals.ios.len() && !from.is_empty() {
                // Delays come in bursts, so they are drawn in runs.
                let start = rng.below(from.len() as u64) as usize;
                let run = from.iter().cycle().skip(start).take(RUN);
                drawn.extend(run.map(|delay| Duration((delay.0 as f64 * share) as u64)));
            }
            drawn
        };
        let stolen = Stolen {
            completing: draw(&self.completing, self.share),
            submitting: draw(&self.submitting, 1.0),
        };
        let disks = arrivals.disks.iter().map(|disk| CapturedDisk {
            services: disk
                .services
                .drawn(|index| self.has(index), self.by_depth, seed),
            ..disk.clone()
        });
        Arrivals {
            disks: disks.collect(),
            stolen,
            ..arrivals.clone()
        }
    }

    /// Whether an I/O, request or completion is of the half that was fitted to, by its place: each
    /// half has every second one, as a capture's load and the noise of its host change with time.
    pub(super) fn has(&self, index: usize) -> bool {
        index.is_multiple_of(2) != self.odd
    }
}

/// Fits device and host to each half of the arrivals, with the captured choice.
pub fn fit(question: &Question<'_>, own: &Choice, fleet: &Fleet) -> Result<[Fit; 2], Error> {
    let captured: Vec<Times> = question.arrivals.ios.iter().map(|io| io.captured).collect();
    Ok([
        half(question, own, &captured, false, fleet)?,
        half(question, own, &captured, true, fleet)?,
    ])
}

fn half(
    question: &Question<'_>,
    own: &Choice,
    captured: &[Times],
    odd: bool,
    fleet: &Fleet,
) -> Result<Fit, Error> {
    // Depth also grows while the host does nothing, so D2C may only seem to depend on it.
    let with = |by_depth| half_with(question, own, captured, (odd, by_depth), fleet);
    let (with, without) = (with(true)?, with(false)?);
    let worse = with.error_percent.abs() > without.error_percent.abs();
    Ok(if worse { without } else { with })
}

fn half_with(
    question: &Question<'_>,
    own: &Choice,
    captured: &[Times],
    (odd, by_depth): (bool, bool),
    fleet: &Fleet,
) -> Result<Fit, Error> {
    let of = |index: usize| hardware_queue(question, own, index);
    let seen = |times: &[Times]| HostDelays::of(times, of, tags(own));
    let mut fit = Fit {
        odd,
        by_depth,
        clock_mhz: question.profile.clock_mhz,
        share: 0.0,
        completing: Vec::new(),
        submitting: Vec::new(),
        delay_mean_ns: 0,
        error_percent: 0.0,
    };
    let wanted = seen(captured);
    let mut simulated = seen(&question.run(&own.plan, Some(&fit), 0, fleet)?);
    for _ in 0..ROUNDS {
        let base = question.profile.clock_mhz as f64;
        let Some((should, takes)) = work(&wanted, &simulated) else {
            break;
        };
        let clock = fit.clock_mhz as f64 * takes as f64 / should as f64;
        fit.clock_mhz = clock.clamp(base / CLOCK_RANGE, base).max(1.0) as u64;
        simulated = seen(&question.run(&own.plan, Some(&fit), 0, fleet)?);
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
    share(question, own, &mut fit, captured, fleet)?;
    Ok(fit)
}

/// Looks for the share: Q2C grows with it.
fn share(
    question: &Question<'_>,
    own: &Choice,
    fit: &mut Fit,
    captured: &[Times],
    fleet: &Fleet,
) -> Result<(), Error> {
    let all = captured.len();
    let ios: Vec<usize> = (0..all).filter(|index| fit.has(*index)).collect();
    let wanted = spread(captured, &ios).mean_ns as f64;
    let seeds: Vec<u64> = (0..question.seeds).collect();
    let mut error_with = |share: f64| -> Result<f64, Error> {
        fit.share = share;
        let means = fleet.map(&seeds, |seed| {
            let times = question.run(&own.plan, Some(fit), *seed, fleet)?;
            Ok(spread(&times, &ios).mean_ns)
        })?;
        fit.error_percent = percent(mean(&means), wanted);
        Ok(fit.error_percent)
    };
    if error_with(0.0)? >= 0.0 {
        return Ok(());
    }
    let (mut low, mut high) = (0.0, SHARE_MAX);
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
fn hardware_queue(question: &Question<'_>, own: &Choice, index: usize) -> u32 {
    let io = &question.arrivals.ios[index];
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
