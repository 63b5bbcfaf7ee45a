//! Variables that all specifications of merging share.

use super::{MergeSpec, Side, Sizes, World};
use blkmq::schedule::view::flag;

/// The number from 1; 0 is none.
pub(crate) fn number(of: Option<u8>) -> u8 {
    of.map_or(0, |of| of + 1)
}

/// `count` values, as TLC prints them.
pub(crate) fn tuple(count: u8, of: impl Fn(u8) -> i32) -> String {
    let each = (0..count).map(|at| of(at).to_string());
    format!("<<{}>>", each.collect::<Vec<_>>().join(", "))
}

impl<M> Side<M> {
    /// The variables that are recorded outside the code.
    pub(super) fn project(&self, sizes: Sizes, bytes: &mut Vec<u8>) {
        let (processes, queues) = (usize::from(sizes.processes), usize::from(sizes.queues));
        bytes.extend([u8::from(self.used), self.born]);
        bytes.extend(&self.todo[..processes]);
        bytes.extend(
            self.exited[..processes]
                .iter()
                .map(|&exited| u8::from(exited)),
        );
        bytes.extend(&self.io[..queues]);
    }
}

impl<S: MergeSpec> World<S> {
    /// The value of a variable that all these specifications have.
    pub(super) fn observed_of_all(&self, sizes: Sizes, name: &str) -> Option<String> {
        let (processes, queues) = (sizes.processes, sizes.queues);
        let from_one = |of: Option<u8>| i32::from(number(of));
        Some(match name {
            // The slot of synchronous requests comes last.
            "slot" => tuple(processes, |p| from_one(S::slots(self, p)[1])),
            "born" => self.side.born.to_string(),
            "ref" => tuple(queues, |q| S::references(self, q)),
            "new" => tuple(queues, |q| from_one(S::new_of(self, q))),
            "io" => tuple(queues, |q| i32::from(self.side.io[usize::from(q)])),
            "used" => flag(self.side.used),
            _ => return None,
        })
    }
}
