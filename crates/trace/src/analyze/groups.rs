//! Completed bios by process, CPU, size and direction.
//!
//! Bounded: after so many groups of a kind the bios of further ones count as `others`.

use std::collections::BTreeMap;

use crate::blktrace::Categories;
use crate::matching::{Io, Latency};

/// Groups of one kind.
const LIMIT: usize = 1 << 10;
/// Keys of one kind: several tasks of a program are one group.
const KEYS: usize = 1 << 16;

#[derive(Clone, PartialEq, Default, Debug)]
pub struct Group {
    pub name: String,
    pub ios: u64,
    /// Of bios that completed without an errno.
    pub bytes: u64,
    /// Bios that completed with an errno.
    pub errors: u64,
    pub d2c: Latency,
    pub q2c: Latency,
}

/// Groups of one kind, found by a number.
#[derive(Clone, PartialEq, Default, Debug)]
struct Kind {
    all: Vec<Group>,
    keys: BTreeMap<u64, usize>,
    last: Option<(u64, usize)>,
}

impl Kind {
    #[inline]
    fn add(&mut self, io: &Io, key: u64, name: impl FnOnce() -> String) {
        let at = match self.last {
            Some((last, at)) if last == key => at,
            _ => self.find(key, name),
        };
        self.last = Some((key, at));
        let group = &mut self.all[at];
        group.ios += 1;
        match io.error {
            0 => group.bytes += u64::from(io.bytes),
            _ => group.errors += 1,
        }
        let (Some(completed), queued) = (io.completed, io.queued) else {
            return;
        };
        if let Some(issued) = io.issued {
            group.d2c.add(completed.since(issued));
        }
        if let Some(queued) = queued {
            group.q2c.add(completed.since(queued));
        }
    }

    fn find(&mut self, key: u64, name: impl FnOnce() -> String) -> usize {
        if let Some(at) = self.keys.get(&key) {
            return *at;
        }
        let name = match self.all.len() < LIMIT && self.keys.len() < KEYS {
            true => name(),
            false => "others".to_owned(),
        };
        let known = self.all.iter().position(|group| group.name == name);
        let at = known.unwrap_or_else(|| {
            self.all.push(Group {
                name,
                ..Group::default()
            });
            self.all.len() - 1
        });
        if self.keys.len() < KEYS {
            self.keys.insert(key, at);
        }
        at
    }
}

/// See the head of the file.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Groups {
    processes: Kind,
    cpus: Kind,
    sizes: Kind,
    directions: Kind,
}

/// D discard, F flush without data, W write, R read.
pub fn direction(io: &Io) -> &'static str {
    let flush = io.bytes == 0 && io.categories.any(Categories::FLUSH);
    match (io.categories.any(Categories::DISCARD), flush) {
        (true, _) => "discard",
        (_, true) => "flush",
        _ if io.is_write() => "write",
        _ => "read",
    }
}

impl Groups {
    /// Counts a completed bio by its task, CPU and size at submission.
    pub(super) fn add(&mut self, io: &Io, process: Option<&str>) {
        let named = || process.map_or_else(|| format!("pid {}", io.pid), str::to_owned);
        self.processes.add(io, u64::from(io.pid), named);
        self.cpus.add(io, u64::from(io.cpu), || io.cpu.to_string());
        let size = u64::from(io.bytes).next_power_of_two() * u64::from(io.bytes > 0);
        self.sizes.add(io, size, || size.to_string());
        let direction = direction(io);
        let key = u64::from(direction.as_bytes()[0]);
        self.directions.add(io, key, || direction.to_owned());
    }

    /// Kinds with their groups: those with most bios first, CPUs and sizes in ascending order.
    pub fn kinds(&self) -> [(&'static str, Vec<&Group>); 4] {
        [
            ("process", most_first(&self.processes)),
            ("cpu", ascending(&self.cpus)),
            ("size", ascending(&self.sizes)),
            ("direction", most_first(&self.directions)),
        ]
    }
}

fn most_first(kind: &Kind) -> Vec<&Group> {
    let mut all: Vec<&Group> = kind.all.iter().collect();
    all.sort_by(|a, b| b.ios.cmp(&a.ios).then_with(|| a.name.cmp(&b.name)));
    all
}

/// `others` is the last one.
fn ascending(kind: &Kind) -> Vec<&Group> {
    let mut all: Vec<&Group> = kind.all.iter().collect();
    all.sort_by_key(|group| group.name.parse().unwrap_or(u64::MAX));
    all
}
