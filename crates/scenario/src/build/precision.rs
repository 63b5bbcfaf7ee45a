//! How well figures are to be known before a run ends: `iops=1%,p99=5%`.

use sim::plan::{Figure, Wanted};

use super::{Result, Scenario};

/// Nothing if the scenario says nothing.
pub(super) fn precision(scenario: &Scenario) -> Result<Vec<Wanted>> {
    let written = scenario.precision.as_ref().map(|of| of.0.as_str());
    let parts = written.into_iter().flat_map(|text| text.split(','));
    let mut all: Vec<Wanted> = Vec::new();
    for part in parts.map(str::trim) {
        let refuse = |what: String| {
            let what = format!("`{part}`: {what}; expected 1%, or a list as iops=1%,p99=5%");
            scenario.error("precision", what)
        };
        let (name, value) = part.split_once('=').unwrap_or(("iops", part));
        let figure = Figure::all().find(|figure| figure.name() == name.trim());
        let figure = figure.ok_or_else(|| {
            let names: Vec<String> = Figure::all().map(Figure::name).collect();
            refuse(format!(
                "no figure `{name}`, there are {}",
                names.join(", ")
            ))
        })?;
        if all.iter().any(|of| of.figure == figure) {
            return Err(refuse(format!("{name} is there twice")));
        }
        let ppm = millionths(value.trim())
            .ok_or_else(|| refuse("no percentage from 0.001% to 100%".to_owned()))?;
        all.push(Wanted { figure, ppm });
    }
    Ok(all)
}

/// A percentage: digits, at most four of them after a point.
fn millionths(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?.trim_end();
    let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|of| of.is_ascii_digit());
    if !digits(whole) || !digits(rest) || rest.len() > 4 {
        return None;
    }
    let rest: u32 = format!("{rest:0<4}").parse().ok()?;
    let all = whole
        .parse::<u32>()
        .ok()?
        .checked_mul(10_000)?
        .checked_add(rest)?;
    (10..=1_000_000).contains(&all).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::millionths;

    #[test]
    fn percentages_are_numbers_with_their_sign() {
        for (text, want) in [
            ("1%", Some(10_000)),
            ("0.5 %", Some(5_000)),
            ("100%", Some(1_000_000)),
            ("0.001%", Some(10)),
            ("0.0009%", None),
            ("101%", None),
            ("1", None),
            ("%", None),
            ("1.%", None),
            (".5%", None),
            ("+1%", None),
            ("0.00001%", None),
            ("99999999999%", None),
        ] {
            assert_eq!(millionths(text), want, "{text}");
        }
    }
}
