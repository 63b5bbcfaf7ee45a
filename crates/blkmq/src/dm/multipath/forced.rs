//! A path that a kernel chose against the policy: conform goes on with it.

use super::Multipath;
use crate::dm::PathId;

impl Multipath {
    /// The last request went to this path, as a capture says: it is the current one, and was the
    /// last that its selector chose. Nothing happens if it is out of use.
    pub fn force(&mut self, path: PathId) {
        if !self.is_active(path) {
            return;
        }
        let (group, place) = self.place(path);
        if self.current_group != Some(group) {
            self.switch(path);
        }
        self.groups[group.index()].selector.force(place);
    }
}
