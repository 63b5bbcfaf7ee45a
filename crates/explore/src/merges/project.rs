//! What the specification sees of a state: its variables and nothing else.

use super::setting::Setting;
use super::world::World;
use crate::spec::flag;

/// Variables that schedules show.
pub(super) const OBSERVED: &[&str] = &[
    "slot",
    "candidate",
    "born",
    "ref",
    "stable",
    "new",
    "io",
    "owner",
    "created",
    "used",
];

/// From 1; 0 is none.
fn number(of: Option<u8>) -> u8 {
    of.map_or(0, |of| of + 1)
}

/// A freed queue has none.
fn small(count: i32) -> u8 {
    u8::try_from(count).expect("small spaces count little")
}

impl World {
    /// The variables of the specification, in a fixed order.
    pub(super) fn project(&self, setting: &Setting, bytes: &mut Vec<u8>) {
        let side = &self.side;
        bytes.extend([u8::from(side.used), u8::from(side.short), side.born]);
        for p in 0..setting.processes {
            let at = usize::from(p);
            bytes.extend([
                self.side.todo[at],
                u8::from(self.side.exited[at]),
                self.side.group[at],
                number(self.slot(p)),
                number(self.candidate(p)),
                u8::from(self.protocol.merged_for_good(p.into())),
            ]);
        }
        for q in 0..setting.queues {
            bytes.push(self.side.io[usize::from(q)]);
            let Some(seen) = self.queue(q) else {
                bytes.push(0);
                continue;
            };
            bytes.extend([
                small(seen.references),
                // One too few is possible where something is counted wrongly.
                (seen.stable as i8).cast_unsigned(),
                number(seen.new.map(|q| q as u8)),
                u8::from(seen.shared),
                number(seen.owner.map(|p| p as u8)),
                seen.group as u8,
            ]);
        }
        bytes.extend((0..setting.groups).map(|g| number(self.created(g))));
    }

    /// The value of one of the specification's variables, as TLC prints it; none of a name that
    /// is not observed.
    pub(super) fn observed(&self, setting: &Setting, name: &str) -> Option<String> {
        let tuple = |count: u8, of: &dyn Fn(u8) -> i32| {
            let each = (0..count).map(|at| of(at).to_string());
            format!("<<{}>>", each.collect::<Vec<_>>().join(", "))
        };
        let processes = setting.processes;
        let seen = |of: fn(&blkmq::elevator::bfq::protocol::SeenQueue) -> i32| {
            tuple(setting.queues, &|q| {
                self.queue(q).map_or(0, |seen| of(&seen))
            })
        };
        let index = |of: Option<u32>| of.map_or(0, |of| of as i32 + 1);
        let from_one = |of: Option<u8>| index(of.map(u32::from));
        Some(match name {
            "slot" => tuple(processes, &|p| from_one(self.slot(p))),
            "candidate" => tuple(processes, &|p| from_one(self.candidate(p))),
            "born" => self.side.born.to_string(),
            "ref" => seen(|seen| seen.references),
            "stable" => seen(|seen| seen.stable),
            "new" => tuple(setting.queues, &|q| from_one(self.new_of(q))),
            "io" => tuple(setting.queues, &|q| i32::from(self.side.io[usize::from(q)])),
            "owner" => tuple(setting.queues, &|q| {
                index(self.queue(q).and_then(|seen| seen.owner))
            }),
            "created" => tuple(setting.groups, &|g| from_one(self.created(g))),
            "used" => flag(self.side.used),
            _ => return None,
        })
    }
}
