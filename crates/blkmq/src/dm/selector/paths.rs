//! Paths of a group in the order in which a selector tries them, and those that failed.
//!
//! Not here: what makes one better than another. Kernel: valid_paths and failed_paths of each
//! selector.

/// Two lists; each path is on one of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Paths {
    /// In use, the first one first.
    valid: Vec<u16>,
    /// Out of use, the last one to fail first.
    failed: Vec<u16>,
}

impl Paths {
    /// So many, all in use, in the table's order. Never grows.
    pub fn new(count: usize) -> Paths {
        let count = u16::try_from(count).expect("a table has at most 1024 paths in a group");
        Paths {
            valid: (0..count).collect(),
            failed: Vec::with_capacity(usize::from(count)),
        }
    }

    pub fn valid(&self) -> impl Iterator<Item = usize> {
        self.valid.iter().map(|&path| usize::from(path))
    }

    pub fn valid_count(&self) -> usize {
        self.valid.len()
    }

    pub fn first(&self) -> Option<usize> {
        self.valid().next()
    }

    pub fn rotate(&mut self) {
        if !self.valid.is_empty() {
            self.valid.rotate_left(1);
        }
    }

    /// Moves a path in use to the end. Panics if it has failed.
    pub fn to_end(&mut self, path: usize) {
        let path = Paths::take(&mut self.valid, path);
        self.valid.push(path);
    }

    /// A path fails. Panics if it is not in use.
    pub fn fail(&mut self, path: usize) {
        let path = Paths::take(&mut self.valid, path);
        self.failed.insert(0, path);
    }

    /// A path is reinstated, as the last one. Panics if it is in use.
    pub fn reinstate_last(&mut self, path: usize) {
        let path = Paths::take(&mut self.failed, path);
        self.valid.push(path);
    }

    /// A path is reinstated, as the first one. Panics if it is in use.
    pub fn reinstate_first(&mut self, path: usize) {
        let path = Paths::take(&mut self.failed, path);
        self.valid.insert(0, path);
    }

    /// Panics unless each path is on the list that `active` says.
    pub fn check(&self, active: impl Fn(usize) -> bool) {
        for path in self.valid() {
            assert!(active(path), "path {path} is on the list of valid ones");
        }
        for &path in &self.failed {
            assert!(!active(path.into()), "path {path} is on the list of failed");
        }
        let mut all: Vec<u16> = self.valid.iter().chain(&self.failed).copied().collect();
        all.sort_unstable();
        let each = (0..all.len()).all(|path| usize::from(all[path]) == path);
        assert!(each, "each path is on one list: {self:?}");
    }

    fn take(list: &mut Vec<u16>, path: usize) -> u16 {
        let at = list.iter().position(|&of| usize::from(of) == path);
        list.remove(at.expect("the path is on this list"))
    }
}
