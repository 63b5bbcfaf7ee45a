use super::*;
use crate::rng::Rng;

/// Normal by the sum of twelve uniform values.
fn noise(rng: &mut Rng) -> f64 {
    let sum: u64 = (0..12).map(|_| rng.next_u64() >> 32).sum();
    sum as f64 / f64::from(u32::MAX) - 6.0
}

/// A first-order autoregressive series about 100, after it has forgotten its start.
fn series(rng: &mut Rng, count: usize, phi: f64) -> Vec<f64> {
    let mut far = 0.0;
    let mut next = || {
        far = phi * far + noise(rng);
        100.0 + far
    };
    for _ in 0..200 {
        next();
    }
    (0..count).map(|_| next()).collect()
}

/// The interval of values as batches of one second.
fn of(values: &[f64]) -> Result<Interval, TooShort> {
    let start = warm_up(values.iter().copied()).ok_or(TooShort::WarmUp)?;
    let rest = &values[start..];
    interval(rest, &vec![1.0; rest.len()], 0.0)
}

/// Of so many series: percent with an interval, and percent of these with the mean in it.
fn covered(count: usize, phi: f64) -> (usize, usize) {
    let mut rng = Rng::stream(7, "coverage");
    let all = 2000;
    let found = (0..all).filter_map(|_| of(&series(&mut rng, count, phi)).ok());
    let found: Vec<Interval> = found.collect();
    let holds = |of: &&Interval| (of.mean - 100.0).abs() <= of.half;
    let right = found.iter().filter(holds).count();
    (100 * found.len() / all, 100 * right / found.len().max(1))
}

/// Independent batches, batches that alternate, and batches that depend on each other ever more:
/// the less often they have an interval, and never a much too short one for most of the series.
#[test]
fn nineteen_of_twenty_intervals_hold_the_mean_of_a_known_series() {
    for (count, phi, least_found, least_right) in [
        (128, 0.0, 95, 93),
        (256, 0.0, 97, 94),
        (256, -0.5, 97, 94),
        (128, 0.3, 60, 90),
        (256, 0.3, 80, 93),
        (256, 0.5, 60, 92),
    ] {
        let (found, right) = covered(count, phi);
        assert!(found >= least_found, "{count} {phi}: {found} % have one");
        assert!(right >= least_right, "{count} {phi}: {right} % hold it");
        assert!(right <= 98, "{count} {phi}: {right} % hold it, too long");
    }
}

#[test]
fn a_run_as_short_as_its_memory_has_no_interval() {
    for (count, phi, most_found) in [(128, 0.9, 2), (256, 0.95, 2), (256, 0.99, 0)] {
        let (found, _) = covered(count, phi);
        assert!(found <= most_found, "{count} {phi}: {found} % have one");
    }
}

#[test]
fn the_warm_up_is_left_out() {
    let mut rng = Rng::stream(3, "warm-up");
    // Throughput falls from the double within some 30 of 200 batches.
    let mut right = 0;
    for _ in 0..200 {
        let mut values = series(&mut rng, 200, 0.0);
        let mut high = 100.0;
        for value in &mut values {
            *value += high;
            high *= 0.9;
        }
        let start = warm_up(values.iter().copied()).expect("it is over in the first half");
        assert!(start >= 30, "{start}");
        let found = of(&values);
        right += usize::from(found.is_ok_and(|of| (of.mean - 100.0).abs() <= of.half));
        // Without a look at the warm-up the mean is off by 5.
        let whole = interval(&values, &[1.0; 200], 0.0);
        assert!(whole.is_ok_and(|of| (of.mean - 100.0).abs() > of.half) || whole.is_err());
    }
    assert!(right >= 170, "{right} of 200");
}

#[test]
fn what_goes_on_changing_has_no_interval() {
    let mut rng = Rng::stream(3, "trend");
    let mut values = series(&mut rng, 256, 0.0);
    for (index, value) in values.iter_mut().enumerate() {
        *value += index as f64;
    }
    assert_eq!(of(&values), Err(TooShort::WarmUp));
    // A change in the last quarter is no warm-up, but neighbours are alike.
    for (index, value) in values.iter_mut().enumerate() {
        *value = if index < 192 { 100.0 } else { 200.0 };
    }
    assert_eq!(of(&values), Err(TooShort::Dependent));
}

#[test]
fn a_constant_is_known_exactly() {
    let values = [0.1; 100];
    assert_eq!(warm_up(values.iter().copied()), Some(0));
    let found = of(&values).unwrap();
    assert!((found.mean - 0.1).abs() < 1e-12 && found.half == 0.0);
    assert_eq!(of(&values[..31]), Err(TooShort::Batches));
    // Of a count, one more or less may be in the time by chance.
    let found = interval(&[5.0; 40], &[1.0; 40], 1.0).unwrap();
    assert_eq!((found.mean, found.half), (5.0, 1.0 / 40.0));
}

#[test]
fn a_ratio_has_the_scatter_of_its_parts_about_it() {
    // Latencies sum to three times the I/Os in each batch, however many there are.
    let mut rng = Rng::stream(5, "ratio");
    let wholes: Vec<f64> = (0..64).map(|_| (rng.next_u64() % 100) as f64).collect();
    let parts: Vec<f64> = wholes.iter().map(|ios| 3.0 * ios).collect();
    assert_eq!(
        interval(&parts, &wholes, 0.0),
        Ok(Interval {
            mean: 3.0,
            half: 0.0
        })
    );
    assert_eq!(
        interval(&[0.0; 64], &[0.0; 64], 0.0),
        Err(TooShort::Batches)
    );
}

#[test]
fn an_interval_as_computed_by_hand() {
    // Merged to 16 pairs: nine of 4, seven of 0. Mean 1.125, variance 15 to 1: 4.2.
    let high = [0, 2, 3, 6, 8, 9, 11, 13, 14];
    let value = |pair: usize| if high.contains(&pair) { 2.0 } else { 0.0 };
    let values: Vec<f64> = (0..32)
        .map(|index| value(index / 2) + if index % 2 == 0 { 1.0 } else { -1.0 })
        .collect();
    let found = interval(&values, &[1.0; 32], 0.0).unwrap();
    assert!((found.mean - 1.125).abs() < 1e-9);
    // t(15) = 2.131, of the mean of sixteen whose halves have 32.
    assert!((found.half - 2.131 * (4.2_f64 / 16.0).sqrt() / 2.0).abs() < 1e-9);
}
