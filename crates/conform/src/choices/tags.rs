//! Driver tags of the paths below a target: sharing, and whether one is free.
//!
//! A clone has its tag from its allocation on or, where the path has a scheduler, from its offer to
//! the driver; it is free before the request above ends. Tags of other targets: `held.rs`.
//! Kernel: blk_mq_alloc_request(), hctx_may_queue() in block/blk-mq.h (6.1.192).

use std::collections::BTreeSet;

use blkmq::dm::PathId;
use blkmq::elevator::SchedulerSettings;
use blkmq::request::CpuId;
use trace::capture::CaptureDir;

use super::What;
use super::held::{Held, Span, Window};
use crate::event::is_idle;
use crate::setup::{Setup, units_of_host};

/// hctx_may_queue() leaves each device so many.
const SHARE_LEAST: u32 = 4;

/// Tags of all paths. Those in use are counted by hardware queue of each path.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags {
    paths: Vec<PathTags>,
    counts: usize,
    /// Units that draw from a set.
    users: u32,
    /// All units of all hosts draw from one set.
    queue_shared: bool,
    /// The reason why free tags are unknown.
    unknown: Option<String>,
}

#[derive(Clone, Debug)]
struct PathTags {
    /// The tag set: paths of one number share their tags.
    set: usize,
    first: usize,
    /// By CPU: the hardware queue.
    queue_of: Vec<usize>,
    depths: Vec<u32>,
    /// A clone has its tag from the allocation on: no scheduler.
    with_request: bool,
    /// Those that paths of other targets draw from the set, by hardware queue.
    others: Vec<Held>,
}

/// Another target: its tags, and when its clones have them.
pub(super) struct Other {
    pub(super) tags: Tags,
    pub(super) spans: Vec<Span>,
}

impl PathTags {
    fn held_by_others(&self, queue: usize, while_: Window) -> (u32, u32) {
        let held = self.others.get(queue);
        held.map_or((0, 0), |held| held.bounds(while_))
    }
}

impl Tags {
    /// The tags of a target's paths from queue.txt and meta.txt. None if they lack them.
    pub(super) fn of(dir: &CaptureDir, paths: &[(String, Setup)]) -> Tags {
        let mut tags = Tags::default();
        let units = units_of_host(dir);
        for (index, (name, setup)) in paths.iter().enumerate() {
            let unit = dir.devices.iter().position(|device| device.name == *name);
            let unit = unit.unwrap_or(index);
            let set = match (setup.queue_shared, units) {
                (true, _) => 0,
                (false, units) => below_others(dir, unit) / units.max(1),
            };
            let shared = setup.hctx_shared;
            let depths: Vec<u32> = match shared {
                true => vec![setup.hctxs[0].tags],
                false => setup.hctxs.iter().map(|hctx| hctx.tags).collect(),
            };
            let of = |cpu: u16| {
                let mut hctxs = setup.hctxs.iter();
                let at = hctxs.position(|hctx| hctx.cpus.contains(&cpu));
                at.filter(|_| !shared).unwrap_or(0)
            };
            tags.paths.push(PathTags {
                set,
                first: tags.counts,
                queue_of: (0..dir.meta.cpus).map(of).collect(),
                with_request: matches!(setup.scheduler, SchedulerSettings::None),
                depths,
                others: Vec::new(),
            });
            tags.counts += tags.paths[index].depths.len();
        }
        tags.queue_shared = paths.first().is_some_and(|(_, setup)| setup.queue_shared);
        let users = match tags.queue_shared {
            true => below_others(dir, dir.devices.len()),
            false => units,
        };
        tags.users = users.max(1) as u32;
        tags
    }

    /// Tags of the same sets held by paths of other targets.
    pub(super) fn share(&mut self, others: &[Other]) {
        for path in &mut self.paths {
            path.others = vec![Held::default(); path.depths.len()];
        }
        for other in others {
            for span in &other.spans {
                let Some((of, queue)) = other.tags.known(span.path, span.cpu) else {
                    continue;
                };
                for path in self.paths.iter_mut().filter(|path| path.set == of.set) {
                    if let Some(held) = path.others.get_mut(queue) {
                        held.add(span);
                    }
                }
            }
        }
        let held = self.paths.iter_mut().flat_map(|path| &mut path.others);
        held.for_each(Held::sort);
    }

    /// Each unit that draws from the tags has to be known: a path of some table, with a trace.
    /// `paths`: names of all of them.
    pub(super) fn must_be_known(&mut self, dir: &CaptureDir, paths: &[&String]) {
        let units = units_of_host(dir).max(1);
        let sets: BTreeSet<usize> = self.paths.iter().map(|path| path.set).collect();
        let real: Vec<_> = dir.devices.iter().filter(|of| is_real(&of.name)).collect();
        for set in sets {
            let first = if self.queue_shared { 0 } else { set * units };
            let sharing = real.iter().skip(first).take(self.users as usize);
            if sharing.len() < self.users as usize {
                let what = "queue.txt lacks a unit that draws from the tags of its paths";
                self.unknown = Some(what.to_owned());
            }
            for device in sharing {
                let name = &device.name;
                if device.blktrace.is_empty() {
                    let what = "draws from the tags of its paths and has no trace";
                    self.unknown = Some(format!("{name} {what}"));
                } else if !paths.contains(&name) && !is_idle(dir, name).unwrap_or(false) {
                    let what = "draws from the tags of its paths and is a path of no table";
                    self.unknown = Some(format!("{name} {what}"));
                }
            }
        }
    }

    /// The reason why free tags are unknown.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// None in use.
    pub(super) fn none(&self) -> Vec<u32> {
        vec![0; self.counts]
    }

    fn known(&self, path: PathId, cpu: CpuId) -> Option<(&PathTags, usize)> {
        let of = self.paths.get(path.index())?;
        let queue = of.queue_of.get(usize::from(cpu.0)).copied().unwrap_or(0);
        Some((of, queue))
    }

    /// Requests of both CPUs draw from one hardware queue of each path.
    pub(super) fn of_one_queue(&self, one: CpuId, other: CpuId) -> bool {
        let queue = |of: &PathTags, cpu: CpuId| of.queue_of.get(usize::from(cpu.0)).copied();
        let mut paths = self.paths.iter();
        paths.all(|of| queue(of, one) == queue(of, other))
    }

    /// True if a clone gets its tag with its allocation.
    pub(super) fn with_request(&self, path: PathId) -> bool {
        let of = self.paths.get(path.index());
        of.is_some_and(|of| of.with_request)
    }

    /// True for the judged events: a tag that was found or not, a failed clone that was retried or
    /// not.
    pub(super) fn judge(&self, what: What) -> bool {
        let all = !self.paths.is_empty() && self.unknown.is_none();
        match what {
            What::Map { path, .. } => {
                let own = path.map_or(all, |path| self.with_request(path));
                all && own && self.paths.iter().any(|of| of.with_request)
            }
            What::Tag { .. } => all,
            What::Undo { no_tag, .. } => all && no_tag,
            What::End { status, .. } => status != blkmq::request::Status::Ok,
            What::Start { .. } => false,
        }
    }

    /// Tags in use of the set, and of the path itself, in the hardware queue of a CPU.
    fn counted(&self, in_use: &[u32], of: &PathTags, queue: usize) -> (u32, u32) {
        let sharing = self.paths.iter().filter(|other| other.set == of.set);
        let all = sharing.map(|other| in_use[other.first + queue]);
        (all.sum(), in_use[of.first + queue])
    }

    /// The next clone finds a tag, at some moment of this time.
    pub(super) fn is_free(
        &self,
        in_use: &[u32],
        (path, cpu): (PathId, CpuId),
        while_: Window,
    ) -> bool {
        self.known(path, cpu).is_none_or(|(of, queue)| {
            let (all, _) = self.counted(in_use, of, queue);
            let (least, _) = of.held_by_others(queue, while_);
            self.unknown.is_some() || all + least < of.depths[queue]
        })
    }

    /// The next clone may find none: they are all in use, or the path has its share of them.
    pub(super) fn may_lack(
        &self,
        in_use: &[u32],
        (path, cpu): (PathId, CpuId),
        while_: Window,
    ) -> bool {
        self.known(path, cpu).is_none_or(|(of, queue)| {
            let depth = of.depths[queue];
            let (all, own) = self.counted(in_use, of, queue);
            let (_, most) = of.held_by_others(queue, while_);
            let share = depth.div_ceil(self.users).max(SHARE_LEAST);
            self.unknown.is_some() || all + most >= depth || self.users > 1 && own >= share
        })
    }

    pub(super) fn take(&self, in_use: &mut [u32], path: PathId, cpu: CpuId) {
        if let Some((of, queue)) = self.known(path, cpu) {
            in_use[of.first + queue] += 1;
        }
    }

    pub(super) fn give(&self, in_use: &mut [u32], path: PathId, cpu: CpuId) {
        if let Some((of, queue)) = self.known(path, cpu) {
            let count = &mut in_use[of.first + queue];
            *count = count.saturating_sub(1);
        }
    }
}

fn is_real(name: &str) -> bool {
    !name.starts_with("dm-")
}

/// How many real devices come before this one.
fn below_others(dir: &CaptureDir, index: usize) -> usize {
    let devices = dir.devices.iter().take(index);
    devices.filter(|device| is_real(&device.name)).count()
}
