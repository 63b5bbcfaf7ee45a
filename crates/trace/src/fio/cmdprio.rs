//! Priorities of single I/Os (`cmdprio_*`), of libaio and io_uring.
//!
//! After fio 3.33 engines/cmdprio.c and options.c parse_cmdprio_bssplit_entry().

use super::build::each;
use super::job::{FioJob, PerDirection};
use super::problem::{Fault, Problem};
use super::value;
use crate::ftrace::IoPriority;

/// A share of the I/Os of a size, or of all of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizePriority {
    pub bytes: u64,
    /// Of 100.
    pub percent: u8,
    /// None: that of cmdprio_class and cmdprio.
    pub priority: Option<IoPriority>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmdPrio {
    /// Of 100 I/Os.
    pub percentage: PerDirection<u8>,
    /// 1 real time, 2 best effort, 3 idle. Default 1.
    pub class: PerDirection<u8>,
    /// 0 to 7. Default 0.
    pub level: PerDirection<u8>,
    /// Of the sizes of cmdprio_bssplit.
    pub split: PerDirection<Vec<SizePriority>>,
}

impl Default for CmdPrio {
    fn default() -> CmdPrio {
        CmdPrio {
            percentage: PerDirection::same(0),
            class: PerDirection::same(1),
            level: PerDirection::same(0),
            split: PerDirection::same(Vec::new()),
        }
    }
}

impl CmdPrio {
    /// The priority of an I/O that gets one: of cmdprio_class and cmdprio.
    pub fn priorities(&self) -> PerDirection<IoPriority> {
        let of = |class, level| IoPriority {
            class,
            hint: 0,
            level,
        };
        PerDirection {
            read: of(self.class.read, self.level.read),
            write: of(self.class.write, self.level.write),
            trim: of(self.class.trim, self.level.trim),
        }
    }

    fn is_used(&self) -> bool {
        self.percentage != PerDirection::same(0) || self.split != PerDirection::same(Vec::new())
    }
}

/// Sets the field of an option. False: it is none of these.
pub(super) fn apply(
    cmdprio: &mut CmdPrio,
    name: &str,
    value: &str,
    kb_base: u64,
) -> Result<bool, Fault> {
    let number = |least: u64, most: u64| {
        move |text: &str| match value::number(text)? {
            number if (least..=most).contains(&number) => Ok(number as u8),
            _ => Err(format!("`{text}` is not {least} to {most}")),
        }
    };
    match name {
        "cmdprio_percentage" => cmdprio.percentage = each(value, 0, number(0, 100))?,
        "cmdprio_class" => cmdprio.class = each(value, 1, number(1, 3))?,
        "cmdprio" => cmdprio.level = each(value, 0, number(0, 7))?,
        "cmdprio_bssplit" => {
            cmdprio.split = each(value, Vec::new(), |text| split(text, kb_base))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `SIZE/PERCENT:SIZE/PERCENT/CLASS/LEVEL`.
fn split(text: &str, kb_base: u64) -> Result<Vec<SizePriority>, String> {
    let mut shares: Vec<SizePriority> = Vec::new();
    for entry in text.split(':').map(str::trim) {
        let parts: Vec<&str> = entry.split('/').collect();
        let number = |text: &str| value::number(text.trim());
        let (percent, priority) = match parts[1..] {
            [] | [""] => (0, None),
            [percent] => (number(percent)?, None),
            [percent, class, level] => {
                let (class, level) = (number(class)?, number(level)?);
                if class > 3 || level > 7 {
                    return Err(format!("`{entry}`: classes are 0 to 3, levels 0 to 7"));
                }
                let priority = IoPriority {
                    class: class as u8,
                    hint: 0,
                    level: level as u8,
                };
                (number(percent)?, Some(priority))
            }
            _ => {
                return Err(format!(
                    "`{entry}` is neither SIZE/PERCENT nor SIZE/PERCENT/CLASS/LEVEL"
                ));
            }
        };
        let bytes = value::bytes(parts[0].trim(), kb_base)?;
        if percent > 0 {
            shares.push(SizePriority {
                bytes,
                percent: percent.min(100) as u8,
                priority,
            });
        }
    }
    for share in &shares {
        let same = shares.iter().filter(|other| other.bytes == share.bytes);
        let sum: u32 = same.map(|share| u32::from(share.percent)).sum();
        if sum > 100 {
            return Err(format!("{sum} percent of {} bytes", share.bytes));
        }
    }
    shares.sort_by_key(|share| share.bytes);
    Ok(shares)
}

/// Values that exclude each other.
pub(super) fn problems(job: &FioJob) -> Vec<Problem> {
    let cmdprio = &job.cmdprio;
    let used = cmdprio.is_used();
    let option = match cmdprio.percentage == PerDirection::same(0) {
        true => "cmdprio_bssplit",
        false => "cmdprio_percentage",
    };
    let mut problems = Vec::new();
    let has = [super::FioEngine::IoUring, super::FioEngine::Libaio];
    if used && !has.contains(&job.ioengine) {
        let what = "is an option of ioengine=io_uring and libaio";
        problems.push(Problem::of_job(job, option, what));
    }
    let both = cmdprio.percentage != PerDirection::same(0)
        && cmdprio.split != PerDirection::same(Vec::new());
    if both {
        let what = "cmdprio_percentage is given as well; fio takes one of them";
        problems.push(Problem::of_job(job, "cmdprio_bssplit", what));
    }
    problems
}
