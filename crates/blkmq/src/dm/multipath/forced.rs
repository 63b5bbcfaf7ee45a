//! A path that a kernel chose against the policy: conform continues with it.

use super::Multipath;
use crate::dm::PathId;

impl Multipath {
    /// The last request went to this path, according to a capture: it becomes the current one, and
    /// the last choice of its selector. No effect if the path has failed.
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
