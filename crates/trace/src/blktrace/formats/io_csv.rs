//! Published traces with a line for each I/O, separated by commas: MSR Cambridge and SYSTOR '17.
//!
//! MSR: times are Windows file times, units of 100 ns since 1601. SYSTOR: Unix time in seconds.
//! Both give the submission and the time until the completion. Read first: the README of each at
//! SNIA's IOTTA repository.

use blkmq::time::SimTime;

use super::super::event::{Action, Categories, Event};
use super::super::lines::Out;
use super::super::warnings::Warning;
use super::{Bad, Parsed, Parser, number};
use crate::ftrace::timestamp;

const MSR: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const SYSTOR: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

/// File time of 1970.
const UNIX_100NS: u64 = 116_444_736_000_000_000;

/// MSR Cambridge: one file for each volume.
#[derive(Debug)]
pub(crate) struct Msr;

/// SYSTOR '17: one file for each hour and LUN.
#[derive(Debug)]
pub(crate) struct Systor;

pub(crate) fn begins_msr(lines: &[&str]) -> bool {
    lines.first().is_some_and(|line| {
        let is_data = split::<7>(line, MSR).is_ok_and(|fields| {
            let time = fields[0];
            time.len() > 16
                && time.bytes().all(|byte| byte.is_ascii_digit())
                && matches!(fields[3], "Read" | "Write")
        });
        is_data || line.trim() == MSR
    })
}

pub(crate) fn begins_systor(lines: &[&str]) -> bool {
    lines.first().is_some_and(|line| {
        let is_data = split::<6>(line, SYSTOR).is_ok_and(|fields| {
            timestamp(fields[0]).is_some() && matches!(fields[2], "R" | "W" | "")
        });
        is_data || line.trim() == SYSTOR
    })
}

/// An I/O of a line.
struct Io<'a> {
    device: String,
    /// Empty: not known.
    direction: &'a str,
    offset: &'a str,
    size: &'a str,
    start: SimTime,
    end: Option<SimTime>,
}

impl Io<'_> {
    fn put(&self, out: &mut Out<'_>) -> Parsed<()> {
        let device = out.device("device", &self.device)?;
        let categories = match self.direction {
            "Read" | "read" | "R" => Categories::READ,
            "Write" | "write" | "W" => Categories::WRITE.with(Categories::SYNC),
            "" => {
                out.warn(Warning::LeftOut, 1);
                return Ok(());
            }
            other => return Err(Bad::new("type", other, "Read or Write, R or W")),
        };
        let offset: u64 = number("Offset", self.offset)?;
        let bytes: u32 = number("Size", self.size)?;
        let whole = offset.is_multiple_of(512) && bytes.is_multiple_of(512);
        out.warn(Warning::NoWholeSectors, u64::from(!whole));
        let event = |at, action| Event {
            device,
            sector: offset / 512,
            bytes,
            categories: categories.of_action(action),
            ..Event::new(at, action)
        };
        out.wall_clock(self.start, self.start.0);
        out.event(event(self.start, Action::Queue));
        if let Some(end) = self.end {
            out.event(event(end, Action::Complete));
        }
        Ok(())
    }
}

fn split<'a, const N: usize>(line: &'a str, header: &str) -> Parsed<[&'a str; N]> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let want = || Bad::new("line", line, &format!("{N} fields: {header}"));
    fields.try_into().map_err(|_| want())
}

/// Units of 100 ns to nanoseconds.
fn units(field: &'static str, text: &str, from: u64) -> Parsed<u64> {
    let number: u64 = number(field, text)?;
    let ns = number.checked_sub(from).and_then(|n| n.checked_mul(100));
    ns.ok_or_else(|| Bad::new(field, text, "a Windows file time, units of 100 ns"))
}

fn sum(start: u64, response: u64, field: &'static str) -> Parsed<SimTime> {
    let end = start.checked_add(response).map(SimTime);
    end.ok_or_else(|| Bad::new(field, &response.to_string(), "a shorter time"))
}

const LACKS: &str = "no processes, no CPUs, no priorities, no D, no merges and no flushes; writes \
                     are taken for synchronous ones";

impl Parser for Msr {
    fn line(&mut self, line: &str, out: &mut Out<'_>) -> Parsed<()> {
        if line.trim() == MSR {
            return Ok(());
        }
        let [time, host, disk, direction, offset, size, response] = split(line, MSR)?;
        let start = units("Timestamp", time, UNIX_100NS)?;
        let response = units("ResponseTime", response, 0)?;
        number::<u32>("DiskNumber", disk)?;
        if direction.is_empty() {
            return Err(Bad::new("Type", direction, "Read or Write"));
        }
        let io = Io {
            device: format!("{host}_{disk}"),
            direction,
            offset,
            size,
            start: SimTime(start),
            end: Some(sum(start, response, "ResponseTime")?),
        };
        io.put(out)
    }

    fn lacks(&self) -> String {
        format!("a trace of MSR Cambridge has {LACKS}")
    }
}

impl Parser for Systor {
    fn line(&mut self, line: &str, out: &mut Out<'_>) -> Parsed<()> {
        if line.trim() == SYSTOR {
            return Ok(());
        }
        let [time, response, direction, lun, offset, size] = split(line, SYSTOR)?;
        let seconds = |field, text| {
            timestamp(text).ok_or_else(|| Bad::new(field, text, "seconds with a decimal point"))
        };
        let start = seconds("Timestamp", time)?;
        let end = match response {
            // The response was not seen.
            "" => None,
            text => Some(sum(start.0, seconds("Response", text)?.0, "Response")?),
        };
        number::<u32>("LUN", lun)?;
        let io = Io {
            device: format!("lun{lun}"),
            direction,
            offset,
            size,
            start,
            end,
        };
        io.put(out)
    }

    fn lacks(&self) -> String {
        format!("a trace of SYSTOR '17 has {LACKS}")
    }
}
