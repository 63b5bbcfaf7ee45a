//! Messages of dmsetup to the target.
//!
//! Kernel: multipath_message() in drivers/md/dm-mpath.c (6.1.192).

use super::Multipath;
use crate::dm::table::Table;
use crate::dm::{GroupId, PathId};

const KNOWN: &str = "queue_if_no_path, fail_if_no_path, disable_group N, enable_group N, \
                     switch_group N, reinstate_path DEVICE or fail_path DEVICE";

impl Multipath {
    /// `dmsetup message DEVICE 0 TEXT`. `table` is the one that the target was made of.
    pub fn message(&mut self, table: &Table, text: &str) -> Result<(), String> {
        if self.suspended {
            return Err(format!("{text}: the device is suspended"));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            ["queue_if_no_path"] => self.queue_if_no_path(true),
            ["fail_if_no_path"] => self.queue_if_no_path(false),
            ["disable_group", group] => self.bypass(group_of(table, group)?, true),
            ["enable_group", group] => self.bypass(group_of(table, group)?, false),
            ["switch_group", group] => self.switch_group(group_of(table, group)?),
            ["fail_path", device] => {
                for path in paths_of(table, device)? {
                    self.fail(path);
                }
            }
            ["reinstate_path", device] => {
                for path in paths_of(table, device)? {
                    self.reinstate(path);
                }
            }
            _ => return Err(format!("{text}: expected {KNOWN}")),
        }
        Ok(())
    }

    /// Message queue_if_no_path, or fail_if_no_path (false).
    pub fn queue_if_no_path(&mut self, value: bool) {
        self.set_queue_if_no_path(value, false);
        match value {
            true => self.arm_timer(),
            false => self.cancel_timer(),
        }
    }
}

fn group_of(table: &Table, text: &str) -> Result<GroupId, String> {
    let number = text.parse().ok();
    let number = number.filter(|&number: &usize| number > 0 && number <= table.groups.len());
    let number = number.ok_or_else(|| {
        let count = table.groups.len();
        format!("{text}: no group, expected one of 1 to {count}")
    })?;
    Ok(GroupId(number as u16 - 1))
}

fn paths_of(table: &Table, device: &str) -> Result<Vec<PathId>, String> {
    let paths = (0..).map(PathId).zip(table.paths());
    let paths = paths.filter(|(_, path)| path.device == device);
    let paths: Vec<PathId> = paths.map(|(id, _)| id).collect();
    match paths.is_empty() {
        false => Ok(paths),
        true => {
            let known: Vec<&str> = table.paths().map(|path| path.device.as_str()).collect();
            let known = known.join(", ");
            Err(format!("{device}: no path, expected one of {known}"))
        }
    }
}
