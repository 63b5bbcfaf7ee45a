//! From values to places on an axis, and the values that are written beside it.

pub(crate) use crate::amount::{Unit, written};

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Scale {
    /// From zero to a round number.
    Linear { top: f64, step: f64, unit: Unit },
    /// Marks at given values with these texts, from zero, or if `log` from the first.
    Marks {
        marks: Vec<(f64, String)>,
        log: bool,
    },
    /// Logarithmic between round numbers.
    Log { from: f64, to: f64, unit: Unit },
    /// Percentiles: as far from 0 to 90 % as from 90 to 99 % and from 99 to 99.9 %.
    Tail { nines: f64 },
}

/// A logarithmic axis names 1, 2 and 5 of each decade if it has at most so many.
const DECADES: f64 = 2.05;
/// Series that differ by so much are drawn on a logarithmic axis.
const TENFOLD: f64 = 10.0;
/// Values of which each is so much above the one before are drawn at equal distances.
const APART: f64 = 1.45;

/// Percentiles beyond this are all shown at the edge.
const NINES_MAX: f64 = 6.0;

impl Scale {
    /// From zero to at least `max`; negative and odd values count as nothing.
    pub(crate) fn linear(max: f64, unit: Unit) -> Scale {
        let max = if max.is_finite() && max > 0.0 {
            max
        } else {
            1.0
        };
        // Steps are round in the unit that is written.
        let prefix = match unit {
            Unit::Bytes => 1024_f64.powi(max.log(1024.0).floor() as i32),
            _ => 1.0,
        };
        let rough = max / prefix / 5.0;
        let power = 10_f64.powi(rough.log10().floor() as i32);
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(10.0 * power) * prefix;
        let top = (max / step * 0.999).ceil() * step;
        Scale::Linear { top, step, unit }
    }

    /// From zero to `max` and no further.
    pub(crate) fn up_to(max: f64, unit: Unit) -> Scale {
        match Scale::linear(max, unit) {
            Scale::Linear { step, top, .. } if max.is_finite() && max > 0.0 => Scale::Linear {
                top: max.min(top),
                step,
                unit,
            },
            scale => scale,
        }
    }

    pub(crate) fn percent() -> Scale {
        Scale::Linear {
            top: 100.0,
            step: 20.0,
            unit: Unit::Percent,
        }
    }

    /// Around positive values; others are left to the edge.
    pub(crate) fn log(values: impl Iterator<Item = f64>, unit: Unit) -> Scale {
        let mut ends: Option<(f64, f64)> = None;
        for value in values.filter(|v| v.is_finite() && *v > 0.0) {
            let (low, high) = ends.unwrap_or((value, value));
            ends = Some((low.min(value), high.max(value)));
        }
        let (low, high) = ends.unwrap_or((1.0, 10.0));
        let (from, mut to) = (round_number(low, false), round_number(high, true));
        if to <= from {
            to = 10.0 * from;
        }
        Scale::Log { from, to, unit }
    }

    /// For curves, each with its values: logarithmic if their largest values differ tenfold, or
    /// with times if any do.
    pub(crate) fn of_curves(curves: &[Vec<f64>], unit: Unit, linear: bool) -> Scale {
        let largest = |values: &Vec<f64>| values.iter().copied().fold(0.0, f64::max);
        let tops: Vec<f64> = curves
            .iter()
            .map(largest)
            .filter(|top| *top > 0.0)
            .collect();
        let most = tops.iter().copied().fold(0.0, f64::max);
        let all = curves
            .iter()
            .flatten()
            .copied()
            .filter(|value| *value > 0.0);
        let least = match unit {
            Unit::Time => all.fold(f64::INFINITY, f64::min),
            _ => tops.iter().copied().fold(f64::INFINITY, f64::min),
        };
        match !linear && most >= TENFOLD * least {
            true => Scale::log(curves.iter().flatten().copied(), unit),
            false => Scale::linear(most, unit),
        }
    }

    /// Given values in ascending order, logarithmic if they are powers or nearly so.
    pub(crate) fn marks(marks: Vec<(f64, String)>, linear: bool) -> Scale {
        let powers = marks.len() > 2
            && marks[0].0 > 0.0
            && marks.windows(2).all(|pair| pair[1].0 >= APART * pair[0].0);
        Scale::Marks {
            log: powers && !linear,
            marks,
        }
    }

    pub(crate) fn is_log(&self) -> bool {
        matches!(self, Scale::Log { .. } | Scale::Marks { log: true, .. })
    }

    /// Percentiles that so many values can show.
    pub(crate) fn tail(count: f64) -> Scale {
        let nines = count.max(10.0).log10().ceil().min(NINES_MAX);
        Scale::Tail { nines }
    }

    /// Place of a value, 0 at the beginning of the axis, 1 at its end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let between = |from: f64, to: f64| {
            let value = value.max(f64::MIN_POSITIVE);
            (value.ln() - from.ln()) / (to.ln() - from.ln())
        };
        let place = match self {
            Scale::Linear { top, .. } => value / top,
            Scale::Marks { marks, log } => match marks.as_slice() {
                [(from, _), .., (to, _)] if *log => between(*from, *to),
                [.., (top, _)] => value / top,
                [] => value,
            },
            Scale::Log { from, to, .. } => between(*from, *to),
            Scale::Tail { nines } => {
                let above = (1.0 - value / 100.0).max(10_f64.powf(-nines));
                -above.log10() / nines
            }
        };
        if place.is_nan() {
            0.0
        } else {
            place.clamp(0.0, 1.0)
        }
    }

    /// Values without text between the marks of a logarithmic axis.
    pub(crate) fn minor(&self) -> Vec<f64> {
        let named: Vec<f64> = self.ticks().into_iter().map(|(value, _)| value).collect();
        let values = self.between().into_iter().map(|(_, value)| value);
        let is_named = |value: &f64| named.iter().any(|of| of.total_cmp(value).is_eq());
        values.filter(|value| !is_named(value)).collect()
    }

    /// First digit and value of all round numbers of a logarithmic axis.
    fn between(&self) -> Vec<(i32, f64)> {
        let Scale::Log { from, to, .. } = self else {
            return Vec::new();
        };
        let decades = from.log10().floor() as i32..=to.log10().ceil() as i32;
        let all = decades.flat_map(|exponent| {
            (1..=9).map(move |digit| (digit, f64::from(digit) * 10_f64.powi(exponent)))
        });
        let inside = |value: f64| value >= from * 0.999 && value <= to * 1.001;
        all.filter(|(_, value)| inside(*value)).collect()
    }

    /// Values with marks, and their texts.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Scale::Linear { top, step, unit } => {
                let count = (top / step + 0.001).floor() as i32;
                let values = (0..=count).map(|i| f64::from(i) * step);
                values.map(|v| (v, written(v, *unit))).collect()
            }
            Scale::Marks { marks, .. } => marks.clone(),
            Scale::Log { from, to, unit } => {
                let all = (to / from).log10() > DECADES;
                let values = self.between().into_iter();
                let values = values.filter(|(digit, _)| match all {
                    true => *digit == 1,
                    false => [1, 2, 5].contains(digit),
                });
                values.map(|(_, v)| (v, written(v, *unit))).collect()
            }
            Scale::Tail { nines } => {
                let mut ticks = vec![(0.0, "0 %".to_owned()), (50.0, "50 %".to_owned())];
                for nine in 1..=*nines as i32 {
                    let digits = (nine - 2).max(0) as usize;
                    let percent = 100.0 - 100.0 * 10_f64.powi(-nine);
                    ticks.push((percent, format!("{percent:.digits$} %")));
                }
                ticks
            }
        }
    }
}

/// The nearest of 1, 2 and 5 times a power of ten, not above or not below.
fn round_number(value: f64, above: bool) -> f64 {
    let power = 10_f64.powi(value.log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let found = match above {
        true => steps.into_iter().find(|step| *step >= value * 0.999),
        false => steps.into_iter().rfind(|step| *step <= value * 1.001),
    };
    found.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn round_numbers_from_zero() {
        let scale = Scale::linear(872_400.0, Unit::Number);
        assert_eq!(
            marks(&scale),
            ["0", "200 k", "400 k", "600 k", "800 k", "1 M"]
        );
        assert!((scale.place(500_000.0) - 0.5).abs() < 1e-9);
        let bytes = Scale::linear(1.9 * 1_073_741_824.0, Unit::Bytes);
        let wanted = ["0 B/s", "512 MiB/s", "1 GiB/s", "1.5 GiB/s", "2 GiB/s"];
        assert_eq!(marks(&bytes), wanted);
        assert_eq!(
            marks(&Scale::linear(3.0, Unit::Number)).last().unwrap(),
            "3"
        );
    }

    #[test]
    fn powers_of_ten_with_units() {
        let scale = Scale::log([150.0, 90_000.0].into_iter(), Unit::Time);
        assert_eq!(
            marks(&scale),
            ["100 ns", "1 \u{b5}s", "10 \u{b5}s", "100 \u{b5}s"]
        );
        assert!((scale.place(1000.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(scale.minor().len(), 24);
        assert!(scale.is_log());
        let wide = Scale::log([1.0, 90_000.0].into_iter(), Unit::Number);
        assert_eq!(marks(&wide), ["1", "10", "100", "1 k", "10 k", "100 k"]);
        let narrow = Scale::log([30e3, 45e3].into_iter(), Unit::Time);
        assert_eq!(marks(&narrow), ["20 \u{b5}s", "50 \u{b5}s"]);
        assert_eq!(narrow.minor().len(), 2);
    }

    #[test]
    fn curves_that_differ_tenfold_are_on_a_logarithmic_axis() {
        let of = |tops: &[f64], linear| {
            let curves: Vec<Vec<f64>> = tops.iter().map(|top| vec![1.0, *top]).collect();
            Scale::of_curves(&curves, Unit::Number, linear).is_log()
        };
        assert!(of(&[20e6, 900e3], false));
        assert!(!of(&[20e6, 900e3], true));
        assert!(!of(&[20e6, 2.1e6], false));
        assert!(!of(&[20e6], false));
        assert!(!of(&[], false));
        let times = [vec![150.0, 50_000.0]];
        assert!(Scale::of_curves(&times, Unit::Time, false).is_log());
        assert!(!Scale::of_curves(&times, Unit::Time, true).is_log());
    }

    #[test]
    fn powers_are_at_equal_distances() {
        let of = |values: &[f64]| {
            let marks = values.iter().map(|value| (*value, value.to_string()));
            Scale::marks(marks.collect(), false)
        };
        let powers = of(&[1.0, 4.0, 16.0, 64.0]);
        assert!((powers.place(4.0) - 1.0 / 3.0).abs() < 1e-9);
        assert!(of(&[1.0, 2.0, 5.0, 10.0, 20.0]).is_log());
        for even in [&[1.0, 2.0, 3.0, 4.0][..], &[1.0, 4.0], &[0.0, 1.0, 2.0]] {
            assert!(!of(even).is_log(), "{even:?}");
        }
    }

    #[test]
    fn percentiles_stretch_the_tail() {
        let scale = Scale::tail(1000.0);
        assert_eq!(marks(&scale), ["0 %", "50 %", "90 %", "99 %", "99.9 %"]);
        assert!((scale.place(99.0) - 2.0 / 3.0).abs() < 1e-9);
        assert!((scale.place(100.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_to_show_is_no_panic() {
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(marks(&Scale::linear(odd, Unit::Number)).len() > 1);
            assert!(marks(&Scale::log([odd].into_iter(), Unit::Time)).len() > 1);
            assert!(Scale::tail(odd).ticks().len() > 1);
            for scale in [Scale::percent(), Scale::tail(10.0)] {
                assert!((0.0..=1.0).contains(&scale.place(odd)));
            }
        }
    }
}
