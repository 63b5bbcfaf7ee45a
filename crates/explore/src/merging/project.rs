//! Variables that all specifications of merging share.

use super::{Side, Sizes};

/// The number from 1; 0 is none.
pub(crate) fn number(of: Option<u8>) -> u8 {
    of.map_or(0, |of| of + 1)
}

/// `count` values, as TLC prints them.
pub(crate) fn tuple(count: u8, of: impl Fn(u8) -> i32) -> String {
    let each = (0..count).map(|at| of(at).to_string());
    format!("<<{}>>", each.collect::<Vec<_>>().join(", "))
}

/// `count` numbers from 1.
pub(crate) fn numbers(count: u8, of: impl Fn(u8) -> Option<u8>) -> String {
    tuple(count, |at| number(of(at)).into())
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
