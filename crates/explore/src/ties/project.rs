//! What the specification sees of a state: its variables and nothing else.

use super::setting::{Async, Setting};
use super::world::World;
use crate::spec::flag;

/// Variables that schedules show.
pub(super) const OBSERVED: &[&str] = &[
    "slot",
    "slotAsync",
    "born",
    "ref",
    "new",
    "io",
    "table",
    "used",
];

/// From 1; 0 is none.
fn number(of: Option<u8>) -> u8 {
    of.map_or(0, |of| of + 1)
}

impl World {
    /// The variables of the specification, in a fixed order.
    pub(super) fn project(&self, setting: &Setting, bytes: &mut Vec<u8>) {
        let side = &self.side;
        bytes.extend([u8::from(side.used), side.born, number(self.table())]);
        for p in 0..setting.processes {
            bytes.extend([
                side.todo[usize::from(p)],
                u8::from(side.exited[usize::from(p)]),
                number(self.slot(p, true)),
            ]);
            if setting.r#async != Async::None {
                bytes.push(number(self.slot(p, false)));
            }
        }
        for q in 0..setting.all_queues() {
            let references = self.references(q);
            let references = u8::try_from(references).expect("small spaces count little");
            let io = side.io[usize::from(q)];
            bytes.extend([references, io, number(self.new_of(q))]);
            bytes.push(side.group[usize::from(q)]);
        }
    }

    /// The value of one of the specification's variables, as TLC prints it; none of a name that
    /// is not observed.
    pub(super) fn observed(&self, setting: &Setting, name: &str) -> Option<String> {
        let tuple = |count: u8, of: &dyn Fn(u8) -> i32| {
            let each = (0..count).map(|at| of(at).to_string());
            format!("<<{}>>", each.collect::<Vec<_>>().join(", "))
        };
        let (processes, queues) = (setting.processes, setting.all_queues());
        let from_one = |of: Option<u8>| i32::from(number(of));
        Some(match name {
            "slot" => tuple(processes, &|p| from_one(self.slot(p, true))),
            "slotAsync" => tuple(processes, &|p| from_one(self.slot(p, false))),
            "born" => self.side.born.to_string(),
            "ref" => tuple(queues, &|q| self.references(q)),
            "new" => tuple(queues, &|q| from_one(self.new_of(q))),
            "io" => tuple(queues, &|q| i32::from(self.side.io[usize::from(q)])),
            "table" => from_one(self.table()).to_string(),
            "used" => flag(self.side.used),
            _ => return None,
        })
    }
}
