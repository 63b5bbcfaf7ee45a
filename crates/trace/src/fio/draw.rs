//! Sizes and places that are drawn with shares of their own: `bssplit`, `random_distribution`.
//!
//! Values and their grammar; the draws are sim's. After fio 3.33 options.c: bssplit_ddir(),
//! zone_split_ddir(), str_random_distribution_cb().

use super::job::{Extent, PerDirection};
use super::value;

type Parsed<T> = std::result::Result<T, String>;

/// Most sizes of a direction (BSSPLIT_MAX).
const SIZES_MAX: usize = 64;
/// Most zones of a direction (ZONESPLIT_MAX).
const ZONES_MAX: usize = 256;

/// A number with a fraction, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decimal {
    pub billionths: u64,
}

impl Decimal {
    pub const fn hundredths(count: u64) -> Decimal {
        Decimal {
            billionths: count * 10_000_000,
        }
    }

    pub fn to_f64(self) -> f64 {
        self.billionths as f64 / 1e9
    }
}

/// Ranks of which some are more frequent than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// zipf: rank k has a share of about 1/k^theta. Theta is not 1.
    Zipf(Decimal),
    /// pareto: h of the ranks have 1 - h of the draws, 0 < h < 1.
    Pareto(Decimal),
    /// normal: the mean of twelve draws, and a deviation of 0 to 100 percent of the ranks on top.
    Normal(Decimal),
}

/// A distribution of ranks, and where in the range it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// How ranks are drawn.
    pub shape: Shape,
    /// 0 to 1: where the first rank lies. None: anywhere (zipf, pareto), the middle (normal).
    pub center: Option<Decimal>,
}

/// A part of the range with a share of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Draws of 100 that go there.
    pub percent: u8,
    /// Its length; it begins after the one before.
    pub size: Extent,
}

/// `random_distribution`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// random
    Uniform,
    /// zipf, pareto, normal
    Skewed(Skew),
    /// zoned, zoned_abs: shares add up to 100. Without zones a direction is uniform.
    Zoned(PerDirection<Vec<Zone>>),
}

/// One size of `bssplit` and its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeShare {
    pub bytes: u64,
    /// Draws of 100.
    pub percent: u8,
}

/// `bssplit`: sizes of each direction, the rarest first; shares add up to at most 100, and the last
/// one takes the remainder. A direction that is not named has none.
pub(super) fn sizes(text: &str, kb_base: u64) -> Parsed<PerDirection<Vec<SizeShare>>> {
    let [read, write, trim] =
        value::per_direction(text, Vec::new(), |side| sizes_of_side(side, kb_base))?;
    Ok(PerDirection { read, write, trim })
}

fn sizes_of_side(text: &str, kb_base: u64) -> Parsed<Vec<SizeShare>> {
    let entries: Vec<&str> = text.split(':').map(str::trim).collect();
    if entries.len() > SIZES_MAX {
        return Err(format!("{} sizes; at most {SIZES_MAX}", entries.len()));
    }
    let mut sizes = Vec::with_capacity(entries.len());
    for entry in entries {
        let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
        if size.is_empty() {
            return Err(format!(
                "`{text}` has an empty part; expected SIZE/PERCENT:..."
            ));
        }
        sizes.push((value::bytes(size, kb_base)?, share_of(share)?));
    }
    let shares: Vec<Option<u8>> = sizes.iter().map(|(_, share)| *share).collect();
    let shares = completed(&shares, text)?;
    let mut sizes: Vec<SizeShare> = sizes
        .iter()
        .zip(shares)
        .map(|(&(bytes, _), percent)| SizeShare { bytes, percent })
        .collect();
    if let Some(never) = sizes.iter().find(|size| size.percent == 0) {
        return Err(format!("nothing is left for {} bytes", never.bytes));
    }
    let least = sizes.iter().map(|size| size.bytes).min().unwrap_or(0);
    let odd = |size: &&SizeShare| least > 0 && !size.bytes.is_multiple_of(least);
    if let Some(odd) = sizes.iter().find(odd) {
        let bytes = odd.bytes;
        return Err(format!(
            "{bytes} bytes are no multiple of the smallest, {least}; fio cuts them in silence"
        ));
    }
    // fio looks sizes up in this order.
    sizes.sort_by_key(|size| size.percent);
    Ok(sizes)
}

/// A share of 100; none if it is left out or 0, as in fio.
fn share_of(text: &str) -> Parsed<Option<u8>> {
    match text.trim() {
        "" => Ok(None),
        text => match value::number(text)? {
            0 => Ok(None),
            n @ 1..=100 => Ok(Some(n as u8)),
            n => Err(format!("{n} is more than 100 percent")),
        },
    }
}

/// Shares that were left out have equal parts of the remainder.
fn completed(shares: &[Option<u8>], text: &str) -> Parsed<Vec<u8>> {
    let sum: u32 = shares.iter().flatten().map(|share| u32::from(*share)).sum();
    if sum > 100 {
        return Err(format!("the shares of `{text}` add up to {sum} percent"));
    }
    let missing = shares.iter().filter(|share| share.is_none()).count() as u32;
    let rest = (100 - sum).checked_div(missing).unwrap_or(0) as u8;
    Ok(shares.iter().map(|share| share.unwrap_or(rest)).collect())
}

/// `random_distribution`.
pub(super) fn distribution(text: &str, kb_base: u64) -> Parsed<Distribution> {
    let (kind, rest) = match text.split_once(':') {
        Some((kind, rest)) => (kind.trim(), Some(rest)),
        None => (text.trim(), None),
    };
    match kind {
        "random" if rest.is_none() => Ok(Distribution::Uniform),
        "zoned" | "zoned_abs" => zones(kind, rest.unwrap_or(""), kb_base),
        _ => match skew(kind, rest)? {
            Some(skew) => Ok(Distribution::Skewed(skew)),
            None => Err(format!(
                "`{text}` is none of random, zipf:THETA, pareto:H, normal:PERCENT (each :CENTER), \
                 zoned:ACCESS/SIZE:..., zoned_abs:ACCESS/BYTES:..."
            )),
        },
    }
}

/// zipf, pareto or normal with their numbers; none for another name.
pub(super) fn skew(kind: &str, rest: Option<&str>) -> Parsed<Option<Skew>> {
    // Defaults: FIO_DEF_ZIPF, FIO_DEF_PARETO, and no deviation.
    let default = match kind {
        "zipf" => Decimal::hundredths(110),
        "pareto" => Decimal::hundredths(20),
        "normal" => Decimal::hundredths(0),
        _ => return Ok(None),
    };
    let (number, center) = match rest {
        None => (default, None),
        Some(rest) => {
            let (number, center) = match rest.split_once(':') {
                Some((number, center)) => (number, Some(decimal(center)?)),
                None => (rest, None),
            };
            (decimal(number)?, center)
        }
    };
    let one = Decimal::hundredths(100).billionths;
    if center.is_some_and(|center| center.billionths > one) {
        return Err("the centre is 0 to 1".to_string());
    }
    let shape = match kind {
        "zipf" if number.billionths == one => {
            return Err("fio's zipf has no theta of exactly 1; 0.99 and 1.01 do".to_string());
        }
        "zipf" if number.billionths > 100 * one => return Err("theta is at most 100".to_string()),
        "zipf" => Shape::Zipf(number),
        "pareto" if number.billionths == 0 || number.billionths >= one => {
            return Err("pareto's number lies between 0 and 1".to_string());
        }
        "pareto" => Shape::Pareto(number),
        _ if number.billionths >= 100 * one => {
            return Err("the deviation is 0 to below 100 percent".to_string());
        }
        _ => Shape::Normal(number),
    };
    Ok(Some(Skew { shape, center }))
}

/// Digits, a point, up to nine more.
pub(super) fn decimal(text: &str) -> Parsed<Decimal> {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = part.len() <= 9 && whole.len() <= 9 && !(whole.is_empty() && part.is_empty());
    if !digits(whole) || !digits(part) || !fits {
        return Err(format!("`{text}` is no number such as 1.2"));
    }
    let number = format!("{whole}{part:0<9}");
    number
        .parse()
        .map(|billionths| Decimal { billionths })
        .map_err(|_| format!("`{text}` is no number such as 1.2"))
}

fn zones(kind: &str, text: &str, kb_base: u64) -> Parsed<Distribution> {
    let absolute = kind == "zoned_abs";
    let [read, write, trim] = value::per_direction(text, Vec::new(), |side| {
        let zones = if absolute {
            zones_in_bytes(side, kb_base)
        } else {
            zones_in_percent(side)
        }?;
        let sum: u32 = zones.iter().map(|zone| u32::from(zone.percent)).sum();
        if sum != 100 {
            return Err(format!(
                "the accesses of `{side}` add up to {sum} percent, not 100"
            ));
        }
        Ok(zones)
    })?;
    Ok(Distribution::Zoned(PerDirection { read, write, trim }))
}

/// `ACCESS/SIZE:...`, both sides of each part.
fn parts(text: &str) -> Parsed<Vec<(u8, &str)>> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    if parts.len() > ZONES_MAX {
        return Err(format!("{} zones; at most {ZONES_MAX}", parts.len()));
    }
    let mut read = Vec::with_capacity(parts.len());
    for part in parts {
        let (access, size) = part.split_once('/').unwrap_or((part, ""));
        let Some(access) = share_of(access)? else {
            return Err(format!("`{part}` names no share of the accesses, 1 to 100"));
        };
        read.push((access, size));
    }
    Ok(read)
}

fn zones_in_percent(text: &str) -> Parsed<Vec<Zone>> {
    let parts = parts(text)?;
    let shares: Parsed<Vec<Option<u8>>> = parts.iter().map(|(_, size)| share_of(size)).collect();
    let shares = completed(&shares?, text)?;
    if shares.contains(&0) {
        return Err(format!("a zone of `{text}` has no size"));
    }
    let zone = |(&(percent, _), size)| Zone {
        percent,
        size: Extent::Percent(size),
    };
    Ok(parts.iter().zip(shares).map(zone).collect())
}

fn zones_in_bytes(text: &str, kb_base: u64) -> Parsed<Vec<Zone>> {
    let zone = |(percent, size): (u8, &str)| match size.trim() {
        "" => Err(format!("a zone of `{text}` has no size")),
        size => match value::bytes(size, kb_base)? {
            0 => Err(format!("a zone of `{text}` has no size")),
            bytes => Ok(Zone {
                percent,
                size: Extent::Bytes(bytes),
            }),
        },
    };
    parts(text)?.into_iter().map(zone).collect()
}

#[cfg(test)]
mod tests;
