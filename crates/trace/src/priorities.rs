//! `priorities.txt`: the I/O priority of each task of a simulated run.
//!
//! One line a task, `PID CLASS LEVEL`: class 0 none, 1 real time, 2 best effort, 3 idle; level 0
//! to 7. Empty lines and lines that begin with # do not count. Real captures have `io.txt` or
//! probes instead.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;
use crate::ftrace::IoPriority;
use crate::text::Lines;

/// Reads the file: priority by task. An error names the line.
pub fn open(file: &Path) -> Result<BTreeMap<u32, IoPriority>> {
    read(Lines::open(file)?)
}

fn read(mut lines: Lines) -> Result<BTreeMap<u32, IoPriority>> {
    let mut priorities = BTreeMap::new();
    while lines.advance()? {
        let line = lines.line().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[pid, class, level] = words.as_slice() else {
            return Err(lines.error("line", "expected PID CLASS LEVEL"));
        };
        let number = |field: &str, text: &str, most: u32| {
            let value = text.parse::<u32>().ok().filter(|&value| value <= most);
            let what = || format!("`{text}`, expected 0 to {most}");
            value.ok_or_else(|| lines.error(field, what()))
        };
        let pid = number("PID", pid, u32::MAX)?;
        let raw = (number("CLASS", class, 3)? << 13) | number("LEVEL", level, 7)?;
        let priority = IoPriority::from_raw(raw as u16);
        if priorities.insert(pid, priority).is_some() {
            return Err(lines.error("PID", format!("{pid} given twice")));
        }
    }
    Ok(priorities)
}

#[cfg(test)]
mod tests;
