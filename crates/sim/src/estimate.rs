//! Means with 95 % confidence intervals, from a few independent values: Student's t distribution.
//!
//! Read next: `batch_means.rs`, for values that follow each other in one run.

/// A mean, and half the length of its 95 % interval: none from a single value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    pub mean: f64,
    /// Half the length of the interval around it.
    pub half: Option<f64>,
}

/// 97.5 % quantiles of Student's t by degrees of freedom, from 1.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Quantile of Student's t. Beyond the table: its first terms in powers of one over the degrees.
pub fn t(degrees: usize) -> f64 {
    match T.get(degrees - 1) {
        Some(t) => *t,
        None => 1.960 + 2.372 / degrees as f64 + 2.823 / (degrees * degrees) as f64,
    }
}

impl Estimate {
    /// A figure without an interval.
    pub fn alone(mean: f64) -> Estimate {
        Estimate { mean, half: None }
    }

    /// The estimate of these values' mean. Panics if there is none.
    pub fn new(values: &[f64]) -> Estimate {
        assert!(!values.is_empty(), "a mean needs a value");
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.len() < 2 {
            return Estimate::alone(mean);
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half = Some(t(values.len() - 1) * error);
        Estimate { mean, half }
    }

    /// The estimate of the differences of values of equal seeds, which removes the effect of the
    /// seed on both. `relative`: percent of the first mean; nothing if that is zero.
    pub fn difference(values: &[f64], first: &[f64], relative: bool) -> Option<Estimate> {
        assert_eq!(values.len(), first.len(), "each value has its partner");
        let differences: Vec<f64> = values.iter().zip(first).map(|(a, b)| a - b).collect();
        Estimate::new(&differences).of(Estimate::new(first).mean, relative)
    }

    /// The estimate of the difference from an independent one: variances add up.
    pub fn minus(self, first: Estimate, relative: bool) -> Option<Estimate> {
        let halves = self.half.zip(first.half);
        let difference = Estimate {
            mean: self.mean - first.mean,
            half: halves.map(|(a, b)| (a * a + b * b).sqrt()),
        };
        difference.of(first.mean, relative)
    }

    fn of(self, base: f64, relative: bool) -> Option<Estimate> {
        if !relative {
            return Some(self);
        }
        (base > 0.0).then(|| Estimate {
            mean: 100.0 * self.mean / base,
            half: self.half.map(|half| 100.0 * half / base),
        })
    }

    /// The interval includes zero: it does not show whether there is a difference.
    pub fn may_be_nothing(&self) -> bool {
        self.half.is_some_and(|half| self.mean.abs() <= half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn intervals_as_computed_by_hand() {
        // Mean 3, variance 2.5, error sqrt(0.5), t(4) = 2.776.
        let estimate = Estimate::new(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(near(estimate.mean, 3.0));
        assert!(near(estimate.half.unwrap(), 1.963));
        assert_eq!(
            Estimate::new(&[7.0]),
            Estimate {
                mean: 7.0,
                half: None
            }
        );
        assert_eq!(Estimate::new(&[7.0, 7.0]).half, Some(0.0));
    }

    #[test]
    fn equal_seeds_are_compared_with_each_other() {
        // Seeds differ much, the two ways by exactly a tenth.
        let (first, second) = ([100.0, 200.0, 300.0], [110.0, 210.0, 310.0]);
        let difference = Estimate::difference(&second, &first, true).unwrap();
        assert!(near(difference.mean, 5.0));
        assert!(near(difference.half.unwrap(), 0.0));
        assert!(!difference.may_be_nothing());
        assert!(
            Estimate::difference(&first, &first, true)
                .unwrap()
                .may_be_nothing()
        );
        assert_eq!(Estimate::difference(&[1.0], &[0.0], true), None);
    }

    #[test]
    fn variances_of_independent_estimates_add_up() {
        let of = |mean, half| Estimate { mean, half };
        let first = of(200.0, Some(3.0));
        let difference = of(210.0, Some(4.0)).minus(first, true);
        assert_eq!(difference, Some(of(5.0, Some(2.5))));
        let unknown = of(210.0, None).minus(first, false);
        assert_eq!(unknown, Some(of(10.0, None)));
        assert_eq!(first.minus(of(0.0, Some(1.0)), true), None);
    }

    #[test]
    fn quantiles_fall_towards_the_normal_one() {
        for degrees in 1..200 {
            assert!(t(degrees + 1) <= t(degrees), "{degrees}");
        }
        // Tables: 2.021 for 40, 1.984 for 100.
        assert!(near(t(40), 2.021));
        assert!(near(t(100), 1.984));
    }
}
