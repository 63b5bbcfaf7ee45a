//! fio's ways to write a value: sizes, times, percentages, ranges, lists.
//!
//! Errors are sentences without a place; the caller adds file, line and option.

use blkmq::time::Duration;

use super::job::Extent;

type Parsed<T> = std::result::Result<T, String>;

/// Splits a number from its suffix, the suffix in lower case.
fn split(text: &str) -> Parsed<(u64, String)> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix, rest) = match lower.strip_prefix("0x") {
        Some(hex) => (
            hex,
            16,
            hex.trim_start_matches(|c: char| c.is_ascii_hexdigit()),
        ),
        None => (
            lower.as_str(),
            10,
            lower.trim_start_matches(|c: char| c.is_ascii_digit()),
        ),
    };
    let digits = &digits[..digits.len() - rest.len()];
    if digits.is_empty() {
        let negative = text
            .strip_prefix('-')
            .is_some_and(|rest| split(rest).is_ok());
        return Err(match negative {
            true => format!("`{text}` is negative; expected a positive number"),
            false => format!("`{text}` is not a number"),
        });
    }
    let number = u64::from_str_radix(digits, radix)
        .map_err(|_| format!("`{text}` is too large for 64 bits"))?;
    Ok((number, rest.to_string()))
}

pub(super) fn number(text: &str) -> Parsed<u64> {
    let (number, suffix) = split(text)?;
    if suffix.is_empty() {
        Ok(number)
    } else {
        Err(format!("`{text}` is not a whole number"))
    }
}

/// A count with k, m ... as fio allows for every integer.
pub(super) fn bytes(text: &str, kb_base: u64) -> Parsed<u64> {
    let (number, suffix) = split(text)?;
    let factor = factor(&suffix, kb_base).ok_or_else(|| {
        format!("`{text}` has an unknown unit; known are k, m, g, t, p and kib ... pib")
    })?;
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("`{text}` is too large for 64 bits"))
}

/// fio swaps units for old scripts: with kb_base=1024, its default, `4k`, `4kb` and `4ki` are 4096
/// and `4kib` is 4000; with kb_base=1000 `4k` is 4000 and `4kib` is 4096 (__get_mult_bytes()).
fn factor(suffix: &str, kb_base: u64) -> Option<u64> {
    let (letter, swapped) = match suffix.strip_suffix("ib") {
        Some(letter) => (letter, true),
        None => (suffix.strip_suffix(['i', 'b']).unwrap_or(suffix), false),
    };
    if letter.is_empty() && !swapped {
        return Some(1);
    }
    let power = ["k", "m", "g", "t", "p"]
        .iter()
        .position(|unit| *unit == letter)? as u32
        + 1;
    let base = match (swapped, kb_base) {
        (false, base) => base,
        (true, 1000) => 1024,
        (true, _) => 1000,
    };
    Some(base.pow(power))
}

/// Bytes or a percentage.
pub(super) fn size(text: &str, kb_base: u64) -> Parsed<Extent> {
    let Some(percent) = text.strip_suffix('%') else {
        return bytes(text, kb_base).map(Extent::Bytes);
    };
    match number(percent)? {
        percent @ 0..=100 => Ok(Extent::Percent(percent as u8)),
        _ => Err(format!("`{text}` is more than 100%")),
    }
}

/// A time; a bare number counts in `unit`.
pub(super) fn time(text: &str, unit: Duration) -> Parsed<Duration> {
    let (number, suffix) = split(text)?;
    let unit = match suffix.as_str() {
        "" => unit,
        "us" | "usec" => Duration::from_micros(1),
        "ms" | "msec" => Duration::from_millis(1),
        "s" | "sec" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        "d" => Duration::from_secs(86_400),
        _ => {
            return Err(format!(
                "`{text}` has an unknown unit; known are us, ms, s, m, h, d"
            ));
        }
    };
    number
        .checked_mul(unit.0)
        .map(Duration)
        .ok_or_else(|| format!("`{text}` is longer than 584 years"))
}

/// 0 or 1, as fio's booleans are; true for a bare flag.
pub(super) fn flag(text: Option<&str>) -> Parsed<bool> {
    match text {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(other) => Err(format!("`{other}` is neither 0 nor 1")),
    }
}

/// `a-b` or one value for both.
pub(super) fn range(text: &str, kb_base: u64) -> Parsed<(u64, u64)> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (bytes(low.trim(), kb_base)?, bytes(high.trim(), kb_base)?);
    if low > high {
        Err(format!("`{text}` runs backwards"))
    } else {
        Ok((low, high))
    }
}

/// Up to three values for reads, writes and trims. A missing one at the end repeats the one
/// before; an empty one keeps the default.
pub(super) fn per_direction<T: Clone>(
    text: &str,
    default: T,
    mut parse: impl FnMut(&str) -> Parsed<T>,
) -> Parsed<[T; 3]> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(format!(
            "`{text}` has more than three parts (read, write, trim)"
        ));
    }
    if parts.iter().all(|part| part.is_empty()) {
        return Err("needs a value".to_string());
    }
    let mut values = [default.clone(), default.clone(), default];
    for (i, slot) in values.iter_mut().enumerate() {
        let part = parts.get(i).or_else(|| parts.last()).copied().unwrap_or("");
        if !part.is_empty() {
            *slot = parse(part)?;
        }
    }
    Ok(values)
}

/// A distance in bytes, `-` for backwards.
pub(super) fn distance(text: &str, kb_base: u64) -> Parsed<i64> {
    let (digits, sign) = match text.strip_prefix('-') {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    let bytes = i64::try_from(bytes(digits, kb_base)?);
    bytes
        .map(|bytes| sign * bytes)
        .map_err(|_| format!("`{text}` is too large"))
}

/// CPU numbers: `0-3,8`, also with `:` between.
pub(super) fn cpus(text: &str) -> Parsed<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in text
        .split([',', ':'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let cpu = |text: &str| {
            number(text)
                .ok()
                .and_then(|cpu| u16::try_from(cpu).ok())
                .filter(|cpu| *cpu < 4096)
                .ok_or_else(|| format!("`{text}` is not a CPU number"))
        };
        let (first, last) = (cpu(first)?, cpu(last)?);
        if first > last {
            return Err(format!("`{part}` runs backwards"));
        }
        cpus.extend(first..=last);
    }
    if cpus.is_empty() {
        return Err("names no CPU; expected a list such as 0-3,8".to_string());
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// True if both are the same number, of any unit if it is 0.
pub(super) fn same_number(text: &str, other: &str) -> bool {
    match (split(text), split(other)) {
        (Ok(one), Ok(two)) => one.0 == two.0 && (one.0 == 0 || one.1 == two.1),
        _ => false,
    }
}

/// CPUs of a mask: bit 0 is CPU 0.
pub(super) fn cpu_mask(text: &str) -> Parsed<Vec<u16>> {
    let mask = number(text)?;
    let cpus: Vec<u16> = (0..64).filter(|cpu| mask >> cpu & 1 == 1).collect();
    match cpus.is_empty() {
        true => {
            let what =
                "names no CPU, with which fio fails; expected a mask such as 3, CPUs 0 and 1";
            Err(what.to_string())
        }
        false => Ok(cpus),
    }
}

/// The value with fio's keywords replaced (fio_keyword_replace()), and computed if it then is a
/// sum or a product: `4*$pagesize`.
pub(super) fn expanded(text: &str) -> Parsed<String> {
    for keyword in ["$mb_memory", "$ncpus"] {
        if text.contains(keyword) {
            return Err(format!(
                "write the number itself: {keyword} is of the machine of the run"
            ));
        }
    }
    if !text.contains("$pagesize") {
        return Ok(text.to_owned());
    }
    let text = text.replace("$pagesize", "4096");
    let computes = |c: char| c.is_ascii_digit() || " +-*/".contains(c);
    match text.chars().all(computes) && !text.starts_with('-') {
        true => sum(&text).map(|sum| sum.to_string()),
        false => Ok(text),
    }
}

/// The first operator of the pair that is applied last, and what is on both sides of it.
fn apart(text: &str, operators: [char; 2]) -> Option<(&str, char, &str)> {
    let at = text.rfind(operators)?;
    Some((
        &text[..at],
        char::from(text.as_bytes()[at]),
        &text[at + 1..],
    ))
}

/// Sums of products of whole numbers, as bc(1) has them.
fn sum(text: &str) -> Parsed<u64> {
    let wrong = || format!("`{text}` is no sum or product of whole numbers");
    if let Some((left, operator, right)) = apart(text, ['+', '-']) {
        let (left, right) = (sum(left)?, product(right)?);
        let all = match operator {
            '+' => left.checked_add(right),
            _ => left.checked_sub(right),
        };
        return all.ok_or_else(wrong);
    }
    product(text)
}

fn product(text: &str) -> Parsed<u64> {
    let wrong = || format!("`{text}` is no sum or product of whole numbers");
    if let Some((left, operator, right)) = apart(text, ['*', '/']) {
        let (left, right) = (product(left)?, number(right.trim())?);
        let all = match operator {
            '*' => left.checked_mul(right),
            _ => left.checked_div(right),
        };
        return all.ok_or_else(wrong);
    }
    number(text.trim())
}
