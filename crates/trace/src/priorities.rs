//! `priorities.txt`: the I/O priority and the control group of each task of a simulated run.
//!
//! One line a task, `PID CLASS LEVEL [CGROUP]`: class 0 none, 1 real time, 2 best effort, 3 idle;
//! level 0 to 7; the group as `a/b`, none for the root. Empty lines and lines that begin with # do
//! not count. Real captures have `io.txt` or probes instead.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;
use crate::ftrace::IoPriority;
use crate::text::Lines;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Class 0: unchanged.
    pub priority: IoPriority,
    /// cgroup that it is in, without a slash in front; empty: the root.
    pub group: String,
}

/// Reads the file: the settings of each task, by pid. An error names the line.
pub fn open(file: &Path) -> Result<BTreeMap<u32, Task>> {
    read(Lines::open(file)?)
}

fn read(mut lines: Lines) -> Result<BTreeMap<u32, Task>> {
    let mut tasks = BTreeMap::new();
    while lines.advance()? {
        let line = lines.line().trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let ([pid, class, level], group) =
            words(line).ok_or_else(|| lines.error("line", "expected PID CLASS LEVEL [CGROUP]"))?;
        if group.split('/').any(str::is_empty) && !group.is_empty() {
            let what = format!("`{group}`, expected a path below the root, as a/b");
            return Err(lines.error("CGROUP", what));
        }
        let number = |field: &str, text: &str, most: u32| {
            let value = text.parse::<u32>().ok().filter(|&value| value <= most);
            let what = || format!("`{text}`, expected 0 to {most}");
            value.ok_or_else(|| lines.error(field, what()))
        };
        let pid = number("PID", pid, u32::MAX)?;
        let raw = (number("CLASS", class, 3)? << 13) | number("LEVEL", level, 7)?;
        let priority = IoPriority::from_raw(raw as u16);
        let task = Task {
            priority,
            group: group.to_owned(),
        };
        if tasks.insert(pid, task).is_some() {
            return Err(lines.error("PID", format!("{pid} given twice")));
        }
    }
    Ok(tasks)
}

/// Three words, and the rest: a group's name may have spaces in it.
fn words(line: &str) -> Option<([&str; 3], &str)> {
    let mut rest = line;
    let mut word = || {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail.trim_start();
        (!word.is_empty()).then_some(word)
    };
    let words = [word()?, word()?, word()?];
    Some((words, rest))
}

#[cfg(test)]
mod tests;
