//! The variables of the specification, read off CFQ's merge code.

use super::setting::{Async, Setting};
use crate::merging::{World, number, tuple};

impl World<Setting> {
    /// The variables of the specification, in a fixed order.
    pub(super) fn project(&self, setting: &Setting, bytes: &mut Vec<u8>) {
        bytes.push(number(self.table()));
        for p in 0..setting.processes {
            bytes.push(number(self.slot(p, true)));
            if setting.r#async != Async::None {
                bytes.push(number(self.slot(p, false)));
            }
        }
        for q in 0..setting.all_queues() {
            let references = self.references(q);
            let references = u8::try_from(references).expect("small spaces count little");
            bytes.extend([references, number(self.new_of(q))]);
            bytes.push(self.side.more.group[usize::from(q)]);
        }
    }

    /// The value of a variable that only this specification has; none if the name is not observed.
    pub(super) fn observed(&self, setting: &Setting, name: &str) -> Option<String> {
        let from_one = |of: Option<u8>| i32::from(number(of));
        Some(match name {
            "slotAsync" => tuple(setting.processes, |p| from_one(self.slot(p, false))),
            "table" => from_one(self.table()).to_string(),
            _ => return None,
        })
    }
}
