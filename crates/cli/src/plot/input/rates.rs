//! `details.rates` of a report as curves: IOPS, bandwidth and mean latency.

use core::ops::Range;

use super::{Counter, CounterUnit, Form, Place};

/// Steps of a curve of I/Os at most: finer ones are noise.
const POINTS: usize = 128;

/// None of older reports.
pub(super) fn of(details: &Place) -> Result<Vec<[Counter; 3]>, String> {
    if details.0.get("rates").is_none() {
        return Ok(Vec::new());
    }
    let list = details.list("rates")?;
    let mut jobs = Vec::new();
    for rate in &list {
        jobs.push(rate.text("jobname")?);
    }
    let several = jobs.iter().any(|job| *job != jobs[0]);
    let mut rates = Vec::new();
    for (rate, job) in list.iter().zip(&jobs) {
        let direction = rate.text("direction")?;
        let group = match several {
            true => format!("{job}: {direction}"),
            false => direction,
        };
        rates.push(curves(rate, &group)?);
    }
    Ok(rates)
}

fn curves(rate: &Place, group: &str) -> Result<[Counter; 3], String> {
    let (ios, bytes) = (rate.numbers("ios")?, rate.numbers("bytes")?);
    let latency = rate.numbers_and_gaps("latency_ns")?;
    for (name, has) in [("bytes", bytes.len()), ("latency_ns", latency.len())] {
        if has != ios.len() {
            let (path, expected) = (rate.path(name), ios.len());
            return Err(format!(
                "`{path}`: {has} values; expected {expected}, as of ios"
            ));
        }
    }
    let step_ns = rate.number("step_ns")?;
    let join = ios.len().div_ceil(POINTS).max(1);
    // A job has no rate before its first I/O and after its last one; the last step is cut short.
    let lived = |at: &usize| ios[*at] > 0.0;
    let first = (0..ios.len()).find(lived).unwrap_or(0) / join;
    let last = (0..ios.len()).rfind(lived).unwrap_or(0) / join;
    let curve = |name: &str, unit, of: &dyn Fn(Range<usize>) -> Option<f64>| {
        let whole = ios.len().saturating_sub(1) / join;
        let steps = 0..whole.max(1).min(ios.len());
        let value = |step: usize| {
            let to = ios.len().min((step + 1) * join);
            (first..=last)
                .contains(&step)
                .then(|| of(step * join..to))?
        };
        Counter {
            name: name.to_owned(),
            group: group.to_owned(),
            form: Form::Level,
            unit,
            beside: None,
            step_ns: step_ns * join as f64,
            values: steps.map(value).collect(),
        }
    };
    let a_second = |of: &[f64]| of.iter().sum::<f64>() * 1e9 / (step_ns * of.len() as f64);
    let mean = |steps: Range<usize>| {
        let ios = &ios[steps.clone()];
        let sums = latency[steps].iter().zip(ios);
        let sum: f64 = sums.map(|(mean, ios)| mean.unwrap_or(0.0) * ios).sum();
        let count: f64 = ios.iter().sum();
        (count > 0.0).then(|| sum / count)
    };
    Ok([
        curve("IOPS", CounterUnit::Number, &|of| Some(a_second(&ios[of]))),
        curve("bandwidth", CounterUnit::Bytes, &|of| {
            Some(a_second(&bytes[of]))
        }),
        curve("mean latency", CounterUnit::Nanoseconds, &mean),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(rate: &serde_json::Value) -> [Vec<Option<f64>>; 3] {
        let details = json!({ "rates": [rate] });
        let all = of(&Place(&details, String::new())).unwrap();
        let [only] = &all[..] else {
            panic!("{all:?}");
        };
        assert!(only.iter().all(|of| of.group == "read"));
        only.each_ref().map(|of| of.values.clone())
    }

    #[test]
    fn a_job_has_rates_from_its_first_to_its_last_io_without_the_last_step() {
        let [iops, bandwidth, latency] = values(&json!({
            "jobname": "a", "direction": "read", "step_ns": 1000,
            "ios": [0, 2, 0, 1, 0, 0], "bytes": [0, 8192, 0, 4096, 0, 0],
            "latency_ns": [null, 50.0, null, 70.0, null, null],
        }));
        let [none, idle] = [None, Some(0.0)];
        assert_eq!(iops, [none, Some(2e6), idle, Some(1e6), none]);
        assert_eq!(bandwidth, [none, Some(8.192e9), idle, Some(4.096e9), none]);
        assert_eq!(latency, [none, Some(50.0), none, Some(70.0), none]);
    }

    #[test]
    fn many_steps_are_joined() {
        let ios: Vec<u32> = (0..300).map(|step| step % 3).collect();
        let latency: Vec<Option<f64>> = (0..300).map(|step| Some(f64::from(step % 3))).collect();
        let [iops, _, latency] = values(&json!({
            "jobname": "a", "direction": "read", "step_ns": 1000,
            "ios": ios, "bytes": ios, "latency_ns": latency,
        }));
        assert_eq!(iops, [Some(1e6); 99]);
        // One of 1 ns, two of 2 ns.
        assert_eq!(latency, [Some(5.0 / 3.0); 99]);
    }

    #[test]
    fn columns_have_one_length() {
        let details = json!({"rates": [{
            "jobname": "a", "direction": "read", "step_ns": 1000,
            "ios": [1, 2], "bytes": [1], "latency_ns": [null, null],
        }]});
        let error = of(&Place(&details, "details".to_owned())).unwrap_err();
        let words = "`details.rates[0].bytes`: 1 values; expected 2, as of ios";
        assert_eq!(error, words);
    }
}
