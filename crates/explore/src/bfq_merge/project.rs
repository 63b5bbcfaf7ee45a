//! The variables of the specification, read off BFQ's merge code.

use super::setting::Setting;
use crate::merging::{World, number, tuple};

/// A freed queue has no references.
fn small(count: i32) -> u8 {
    u8::try_from(count).expect("small spaces count little")
}

impl World<Setting> {
    /// The variables of the specification, in a fixed order.
    pub(super) fn project(&self, setting: &Setting, bytes: &mut Vec<u8>) {
        let side = &self.side;
        bytes.push(u8::from(side.more.short));
        for p in 0..setting.processes {
            let at = usize::from(p);
            bytes.extend([
                side.more.group[at],
                number(self.slot(p)),
                number(self.candidate(p)),
                u8::from(self.code.merged_for_good(p.into())),
            ]);
        }
        for q in 0..setting.queues {
            let Some(seen) = self.queue(q) else {
                bytes.push(0);
                continue;
            };
            bytes.extend([
                small(seen.references),
                // A miscount can make it -1.
                (seen.stable as i8).cast_unsigned(),
                number(seen.new.map(|q| q as u8)),
                u8::from(seen.shared),
                number(seen.owner.map(|p| p as u8)),
                seen.group as u8,
            ]);
        }
        bytes.extend((0..setting.groups).map(|g| number(self.created(g))));
    }

    /// The value of a variable that only this specification has; none if the name is not observed.
    pub(super) fn observed(&self, setting: &Setting, name: &str) -> Option<String> {
        let index = |of: Option<u32>| of.map_or(0, |of| of as i32 + 1);
        let from_one = |of: Option<u8>| i32::from(number(of));
        Some(match name {
            "candidate" => tuple(setting.processes, |p| from_one(self.candidate(p))),
            "stable" => tuple(setting.queues, |q| {
                self.queue(q).map_or(0, |seen| seen.stable)
            }),
            "owner" => tuple(setting.queues, |q| {
                index(self.queue(q).and_then(|seen| seen.owner))
            }),
            "created" => tuple(setting.groups, |g| from_one(self.created(g))),
            _ => return None,
        })
    }
}
