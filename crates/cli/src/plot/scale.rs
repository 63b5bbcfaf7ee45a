//! From values to places on an axis, and the values that are written beside it.

pub(crate) use crate::amount::{Unit, written};

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Scale {
    /// From zero to a round number.
    Linear { top: f64, step: f64, unit: Unit },
    /// From zero, with marks at given values.
    Marks { top: f64, marks: Vec<f64> },
    /// Powers of ten, from exponent to exponent.
    Log { from: i32, to: i32, unit: Unit },
    /// Percentiles: as far from 0 to 90 % as from 90 to 99 % and from 99 to 99.9 %.
    Tail { nines: f64 },
}

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
        let rough = max / 5.0;
        let power = 10_f64.powi(rough.log10().floor() as i32);
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(10.0 * power);
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
        let from = low.log10().floor() as i32;
        let to = (high.log10().ceil() as i32).max(from + 1);
        Scale::Log { from, to, unit }
    }

    /// Percentiles that so many values can show.
    pub(crate) fn tail(count: f64) -> Scale {
        let nines = count.max(10.0).log10().ceil().min(NINES_MAX);
        Scale::Tail { nines }
    }

    /// Place of a value, 0 at the beginning of the axis, 1 at its end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear { top, .. } | Scale::Marks { top, .. } => value / top,
            Scale::Log { from, to, .. } => {
                (value.max(f64::MIN_POSITIVE).log10() - f64::from(*from)) / f64::from(to - from)
            }
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

    /// Values with marks, and their texts.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Scale::Linear { top, step, unit } => {
                let count = (top / step + 0.001).floor() as i32;
                let values = (0..=count).map(|i| f64::from(i) * step);
                values.map(|v| (v, written(v, *unit))).collect()
            }
            Scale::Marks { marks, .. } => marks
                .iter()
                .map(|v| (*v, written(*v, Unit::Number)))
                .collect(),
            Scale::Log { from, to, unit } => {
                let values = (*from..=*to).map(|exponent| 10_f64.powi(exponent));
                values.map(|v| (v, written(v, *unit))).collect()
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
