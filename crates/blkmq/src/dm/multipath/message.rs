//! Messages of dmsetup to the target.
//!
//! Kernel: multipath_message() in drivers/md/dm-mpath.c (6.1.192).

use super::Multipath;
use crate::dm::table::Table;
use crate::dm::{GroupId, PathId};

const KNOWN: &str = "queue_if_no_path, fail_if_no_path, disable_group N, enable_group N, \
                     switch_group N, reinstate_path DEVICE or fail_path DEVICE";

/// A message, for one path if it names a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// fail_path.
    Fail(PathId),
    /// reinstate_path.
    Reinstate(PathId),
    /// queue_if_no_path, or fail_if_no_path (false).
    QueueIfNoPath(bool),
    /// switch_group.
    Switch(GroupId),
    /// disable_group, or enable_group (false).
    Bypass(GroupId, bool),
}

impl Message {
    /// Parses the text of `dmsetup message DEVICE 0 TEXT`: one message for each path of a device
    /// that it names. `table` is the one that the target was created from. An error names the text
    /// and what is expected.
    pub fn parse(table: &Table, text: &str) -> Result<Vec<Message>, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let paths = |device: &str, message: fn(PathId) -> Message| {
            let paths = table.paths_of(device)?;
            Ok(paths.into_iter().map(message).collect())
        };
        let message = match words[..] {
            ["fail_path", device] => return paths(device, Message::Fail),
            ["reinstate_path", device] => return paths(device, Message::Reinstate),
            ["queue_if_no_path"] => Message::QueueIfNoPath(true),
            ["fail_if_no_path"] => Message::QueueIfNoPath(false),
            ["switch_group", group] => Message::Switch(group_of(table, group)?),
            ["disable_group", group] => Message::Bypass(group_of(table, group)?, true),
            ["enable_group", group] => Message::Bypass(group_of(table, group)?, false),
            _ => return Err(format!("{text}: expected {KNOWN}")),
        };
        Ok(vec![message])
    }
}

impl Multipath {
    /// Handles a message. False: the device is suspended and refuses it (EBUSY).
    #[must_use = "a suspended device takes none"]
    pub fn message(&mut self, what: Message) -> bool {
        if self.suspended {
            return false;
        }
        match what {
            Message::Fail(path) => self.fail(path),
            Message::Reinstate(path) => self.reinstate(path),
            Message::QueueIfNoPath(value) => self.queue_if_no_path(value),
            Message::Switch(group) => self.switch_group(group),
            Message::Bypass(group, bypassed) => self.bypass(group, bypassed),
        }
        true
    }

    fn queue_if_no_path(&mut self, value: bool) {
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
