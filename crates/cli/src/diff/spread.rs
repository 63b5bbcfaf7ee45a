//! How far a figure varies by chance, as a report shows it.

/// Values of a figure: of runs with several seeds, of periods of one run, or of its I/Os.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub(super) of: Of,
    pub(super) count: f64,
    pub(super) stddev: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Of {
    /// Latencies of single I/Os. They follow each other, so they do not show how far their mean
    /// varies from run to run.
    Ios,
    /// fio's samples of IOPS and bandwidth over time.
    Samples,
    /// Runs that differ in their seeds.
    Seeds,
}

impl Of {
    pub(super) fn name(self) -> &'static str {
        match self {
            Of::Ios => "I/Os",
            Of::Samples => "samples",
            Of::Seeds => "seeds",
        }
    }
}

/// A difference in standard deviations: of the difference of two means, of I/Os in those of a
/// single I/O.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Deviations {
    pub(super) count: f64,
    pub(super) of: Of,
}

impl Deviations {
    /// They are of means, and so show whether the difference is one of chance.
    pub(super) fn decide(&self) -> bool {
        self.of != Of::Ios
    }
}

impl Spread {
    /// Seeds: the values of one figure in several runs.
    pub(super) fn of_seeds(values: &[f64]) -> Option<Spread> {
        let count = values.len() as f64;
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Spread {
            of: Of::Seeds,
            count,
            stddev: (squares / (count - 1.0)).sqrt(),
        })
    }

    /// A difference by the best spread that a side has. A side without it is taken to vary as the
    /// other one does: a single run as one seed, samples as as many. Nothing without any spread.
    pub(super) fn deviations(
        change: f64,
        a: Option<Spread>,
        b: Option<Spread>,
    ) -> Option<Deviations> {
        let of = [a, b].into_iter().flatten().map(|spread| spread.of).max()?;
        let best = |side: Option<Spread>| side.filter(|spread| spread.of == of);
        let (a, b) = match (best(a), best(b)) {
            (Some(a), Some(b)) => (a, b),
            (Some(known), None) | (None, Some(known)) => {
                let count = if of == Of::Seeds { 1.0 } else { known.count };
                (known, Spread { count, ..known })
            }
            (None, None) => return None,
        };
        let variance = match of {
            // Of a single I/O: the mean of both.
            Of::Ios => f64::midpoint(a.stddev.powi(2), b.stddev.powi(2)),
            Of::Samples | Of::Seeds => a.stddev.powi(2) / a.count + b.stddev.powi(2) / b.count,
        };
        let deviation = variance.sqrt();
        (deviation > 0.0).then(|| Deviations {
            count: change.abs() / deviation,
            of,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(of: Of, count: f64, stddev: f64) -> Spread {
        Spread { of, count, stddev }
    }

    #[test]
    fn deviations_as_computed_by_hand() {
        // Variance 2.5 of five values.
        let seeds = Spread::of_seeds(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((seeds.unwrap().stddev - 2.5_f64.sqrt()).abs() < 1e-12);
        // Both have it: the difference of means varies by the root of 0.5 + 0.5.
        let both = Spread::deviations(-3.0, seeds, seeds).unwrap();
        assert!((both.count - 3.0).abs() < 1e-12);
        // Beside a single run: 0.5 + 2.5.
        let one = Spread::deviations(3.0, None, seeds).unwrap();
        assert!((one.count - 3.0_f64.sqrt()).abs() < 1e-12);
        // Seeds go before samples, of which nothing is known for the other side.
        let mixed = Spread::deviations(3.0, Some(spread(Of::Samples, 4.0, 1.0)), seeds).unwrap();
        assert_eq!(
            mixed,
            Deviations {
                of: Of::Seeds,
                ..one
            }
        );
        // Samples: as many on both sides, 1/4 + 1/4.
        let samples = Spread::deviations(2.0, Some(spread(Of::Samples, 4.0, 1.0)), None).unwrap();
        assert!((samples.count - 8.0_f64.sqrt()).abs() < 1e-12);
        // I/Os: their number does not count.
        let ios = Some(spread(Of::Ios, 1e6, 2.0));
        assert!((Spread::deviations(4.0, ios, ios).unwrap().count - 2.0).abs() < 1e-12);
    }

    #[test]
    fn without_spread_there_are_no_deviations() {
        assert_eq!(Spread::of_seeds(&[1.0]), None);
        assert_eq!(Spread::deviations(1.0, None, None), None);
        let equal = Spread::of_seeds(&[7.0, 7.0]);
        assert_eq!(Spread::deviations(1.0, equal, equal), None);
    }
}
