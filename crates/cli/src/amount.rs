//! Figures with their units, as short as they can be read.

use sim::estimate::Estimate;
pub(crate) use study::compare::Unit;

/// The largest prefix below a value: divisor and text.
fn prefix(value: f64, unit: Unit) -> (f64, &'static str) {
    let steps: &[(f64, &'static str)] = match unit {
        Unit::Number => &[(1e6, " M"), (1e3, " k"), (1.0, "")],
        Unit::Bytes => &[
            (1_073_741_824.0, " GiB/s"),
            (1_048_576.0, " MiB/s"),
            (1024.0, " KiB/s"),
            (1.0, " B/s"),
        ],
        Unit::Time => &[(1e9, " s"), (1e6, " ms"), (1e3, " \u{b5}s"), (1.0, " ns")],
        Unit::Percent => &[(1.0, " %")],
    };
    // What three digits round up to belongs to the next prefix.
    let fits = |(size, _): &&(f64, &str)| value.abs() >= size * 0.99995;
    *steps.iter().find(fits).unwrap_or(&steps[steps.len() - 1])
}

/// A value with its unit.
pub(crate) fn written(value: f64, unit: Unit) -> String {
    if value == 0.0 && unit == Unit::Time {
        return "0".to_owned();
    }
    let (size, name) = prefix(value, unit);
    format!("{}{name}", short(value / size))
}

/// Three digits, without trailing zeros.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 99.95 {
        0
    } else if value.abs() >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A mean and half its interval in one unit: two digits of the half, four of a mean without.
pub(crate) fn estimated(estimate: &Estimate, unit: Unit) -> String {
    let (size, name) = prefix(estimate.mean, unit);
    let (mean, half) = (estimate.mean / size, estimate.half.map(|half| half / size));
    let digits = decimals(mean, half);
    match half {
        None => format!("{mean:.digits$}{name}"),
        Some(half) => format!("{mean:.digits$} \u{b1} {half:.digits$}{name}"),
    }
}

/// A difference in percent or points, with its sign.
pub(crate) fn changed(difference: &Estimate, unit: &str) -> String {
    let digits = decimals(difference.mean, difference.half).min(2);
    // A difference that rounds to zero has no sign of its own.
    let least = 0.5 * 10_f64.powi(-(digits as i32));
    let mean = match difference.mean {
        mean if mean.abs() < least => 0.0,
        mean => mean,
    };
    let mean = format!("{mean:+.digits$}");
    match difference.half {
        None => format!("{mean} {unit}"),
        Some(half) => format!("{mean} \u{b1} {half:.digits$} {unit}"),
    }
}

/// Digits after the point.
fn decimals(mean: f64, half: Option<f64>) -> usize {
    let (value, wanted) = match half {
        Some(half) if half > 0.0 => (half, 2),
        _ => (mean.abs(), 4),
    };
    if value <= 0.0 {
        return 0;
    }
    let first = value.log10().floor() as i32;
    (wanted - 1 - first).clamp(0, 3) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_a_unit() {
        for (value, unit, want) in [
            (848_400.0, Unit::Number, "848 k"),
            (999_960.0, Unit::Number, "1 M"),
            (0.0, Unit::Number, "0"),
            (137_610.0, Unit::Time, "138 \u{b5}s"),
            (0.0, Unit::Time, "0"),
            (434_380_800.0, Unit::Bytes, "414 MiB/s"),
            (93.95, Unit::Percent, "94 %"),
        ] {
            assert_eq!(written(value, unit), want);
        }
    }

    #[test]
    fn the_interval_says_how_many_digits_a_mean_has() {
        let of = |mean, half| Estimate { mean, half };
        for (estimate, want) in [
            (of(848_400.0, Some(3880.0)), "848.4 \u{b1} 3.9 k"),
            (of(2_229_440.0, Some(6815.0)), "2.229 \u{b1} 0.007 M"),
            (of(1100.0, Some(248.4)), "1.10 \u{b1} 0.25 k"),
            (of(36_710_683.0, None), "36.71 M"),
            (of(7.0, Some(0.0)), "7.000 \u{b1} 0.000"),
            (of(0.0, Some(0.0)), "0 \u{b1} 0"),
            (of(1000.0, Some(9_000_000.0)), "1 \u{b1} 9000 k"),
        ] {
            assert_eq!(estimated(&estimate, Unit::Number), want);
        }
        assert_eq!(
            changed(&of(162.78, Some(0.55)), "%"),
            "+162.78 \u{b1} 0.55 %"
        );
        assert_eq!(changed(&of(-0.152, Some(3.63)), "%"), "-0.2 \u{b1} 3.6 %");
        assert_eq!(changed(&of(-0.001, Some(0.0)), "%"), "+0.00 \u{b1} 0.00 %");
        assert_eq!(
            changed(&of(49.0, Some(0.0)), "points"),
            "+49.00 \u{b1} 0.00 points"
        );
    }
}
