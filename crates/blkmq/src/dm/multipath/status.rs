//! The line of `dmsetup status`.
//!
//! Kernel: multipath_status(STATUSTYPE_INFO) in drivers/md/dm-mpath.c (6.1.192).

use super::{Flag, Multipath};
use crate::dm::GroupId;
use crate::dm::table::Table;

impl Multipath {
    /// The text after start, length and name of the target. `table` is the one that it was created
    /// from.
    pub fn status(&self, table: &Table) -> String {
        let queue_io = u8::from(self.flags.has(Flag::QueueIo));
        let first = self.groups.first().map(|_| GroupId(0));
        let group = self.next_group.or(self.current_group).or(first);
        let group = group.map_or(0, |group| group.0 + 1);
        let mut line = format!(
            "2 {queue_io} {} 0 {} {group}",
            self.init_count,
            self.groups.len()
        );
        let mut names = table.paths();
        for (id, group) in (0..).map(GroupId).zip(&self.groups) {
            let state = match group.bypassed {
                true => 'D',
                false if self.current_group == Some(id) => 'A',
                false => 'E',
            };
            let selector = &group.selector;
            let numbers = selector.kind().info_args();
            let of_selector = selector.status();
            let count = group.count;
            line += &format!(" {state} {of_selector} {count} {numbers}");
            for place in 0..count {
                let path = &self.paths[group.first + place];
                let state = if path.active { 'A' } else { 'F' };
                let device = names.next().map_or("?", |path| &path.device);
                let account = &self.accounts[group.first + place];
                let of_path = selector.path_status(place, account);
                line += &format!(" {device} {state} {}{of_path}", path.fail_count);
            }
        }
        line
    }
}
