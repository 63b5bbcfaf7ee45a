//! The steady state of a job as fio reports it, after stat.c of fio 3.33.

use serde::Serialize;
use sim::plan::SteadyPlan;

use super::Entry;
use crate::report::round;

/// The looks at a steady state.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(super) struct FioSteady {
    /// What is looked at, with its limit.
    ss: String,
    /// steadystate_duration, s.
    duration: u32,
    /// 1 if the state was steady, else 0.
    pub(super) attained: u8,
    /// Figure that the limit is of.
    criterion: String,
    /// Largest distance of a second from the mean; 0 where the slope is looked at.
    max_deviation: f64,
    /// Slope of the regression line, a second; 0 where the distance is looked at.
    slope: f64,
    /// The last seconds.
    pub(super) data: FioSeconds,
    /// The criterion as text has it.
    #[serde(skip)]
    pub(super) measured: String,
}

/// Bytes and I/Os of the last seconds, the oldest first, with zeros up to `duration`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub(super) struct FioSeconds {
    /// Mean of `bw`.
    pub(super) bw_mean: u64,
    /// Mean of `iops`.
    pub(super) iops_mean: u64,
    /// IOPS in each second.
    iops: Vec<u64>,
    /// Bytes in each second.
    bw: Vec<u64>,
}

impl FioSteady {
    pub(super) fn of(entry: &Entry<'_>) -> Option<FioSteady> {
        let SteadyPlan { state, seconds, .. } = entry.first.control.steady.as_ref()?;
        let (found, duration) = (entry.steady?, *seconds);
        let percent = if state.percent { "%" } else { "" };
        let kind = if state.iops { "iops" } else { "bw" };
        // Of one second there is no slope.
        let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
        let criterion = finite(found.criterion);
        let column = |measure: usize| {
            let seconds = found.seconds.iter().map(|second| second[measure]);
            let mut column: Vec<u64> = seconds.collect();
            column.resize(duration as usize, 0);
            column
        };
        let (iops, bw) = (column(0), column(1));
        let mean = |of: &[u64]| of.iter().sum::<u64>() / u64::from(duration);
        Some(FioSteady {
            ss: format!(
                "{kind}{}:{:.6}{percent}",
                if state.slope { "_slope" } else { "" },
                f64::from(state.limit.to_f64() as f32)
            ),
            duration,
            attained: u8::from(found.attained),
            criterion: format!("{:.6}{percent}", f64::from(criterion as f32)),
            max_deviation: round(found.deviation),
            slope: round(finite(found.slope)),
            measured: format!(
                "{kind}{}={criterion:.3}{percent}",
                if state.slope { " slope" } else { " mean dev" }
            ),
            data: FioSeconds {
                bw_mean: mean(&bw),
                iops_mean: mean(&iops),
                iops,
                bw,
            },
        })
    }
}
