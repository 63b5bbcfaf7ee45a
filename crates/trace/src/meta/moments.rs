//! Times that no record of a capture shows, if `meta.txt` gives them.
//!
//! `exit_PID=SECONDS` as blkparse counts them, `exits_after_ms=N`, `decided_before_us=N` and
//! `decided_after_us=N`. Defaults for missing values are in `conform`.

use std::collections::BTreeMap;

use blkmq::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    /// When processes exited, by pid, from the first record on.
    pub exits: BTreeMap<u32, Duration>,
    /// All others: this long after the end of their last I/O.
    pub exits_after: Option<Duration>,
    /// A dispatch call decided so long before the record that shows its answer.
    pub decided_before: Option<Duration>,
    /// A decision without a trace happened this long after the record that caused it.
    pub decided_after: Option<Duration>,
}

/// Begins the line of a process: `exit_453=0.469751766`.
const EXIT: &str = "exit_";

/// Nanoseconds of a millisecond, of a microsecond.
const MS: u64 = 1_000_000;
const US: u64 = 1_000;

impl Moments {
    /// Takes a line with one of these keys. None: another key. The error is the expected form.
    pub(super) fn take(&mut self, key: &str, value: &str) -> Option<Result<(), &'static str>> {
        let (place, unit) = match key {
            "exits_after_ms" => (&mut self.exits_after, MS),
            "decided_before_us" => (&mut self.decided_before, US),
            "decided_after_us" => (&mut self.decided_after, US),
            _ => {
                let pid = key.strip_prefix(EXIT)?;
                return Some(self.exit(pid, value));
            }
        };
        let given = value.parse::<u32>().ok();
        let given = given.map(|number| Duration(u64::from(number) * unit));
        Some(match (given, place.is_some()) {
            (_, true) => Err("given twice"),
            (None, _) => Err("expected a whole number, up to 4294967295"),
            (given, false) => {
                *place = given;
                Ok(())
            }
        })
    }

    fn exit(&mut self, pid: &str, value: &str) -> Result<(), &'static str> {
        let known = pid.parse().ok().zip(seconds(value));
        let (pid, at) = known.ok_or("expected exit_PID=SECONDS, as 0.469751766")?;
        match self.exits.insert(pid, at) {
            Some(_) => Err("given twice"),
            None => Ok(()),
        }
    }
}

/// `0.469751766`, up to a billion seconds and nine digits after the point.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 || whole.len() > 9 {
        return None;
    }
    let (whole, part): (u64, u64) = (whole.parse().ok()?, format!("{part:0<9}").parse().ok()?);
    Some(Duration(whole * 1_000_000_000 + part))
}
