//! Driver tags of the paths below a target: who shares them, and whether one is free.
//!
//! A clone has its tag from its allocation on or, where the path has a scheduler, from the moment
//! at which it is offered; it is free before the request above ends.
//! Kernel: blk_mq_alloc_request(), hctx_may_queue() in block/blk-mq.h (6.1.192).

use blkmq::dm::PathId;
use blkmq::elevator::SchedulerSettings;
use blkmq::request::CpuId;
use trace::capture::CaptureDir;

use super::What;
use crate::setup::{Setup, units_of_host};

/// hctx_may_queue() leaves each device so many.
const SHARE_LEAST: u32 = 4;

/// Tags of all paths. Those in use are counted by hardware queue of each path.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags {
    paths: Vec<PathTags>,
    /// Counted ones.
    counts: usize,
}

/// Of one path.
#[derive(Clone, Debug)]
struct PathTags {
    /// Which set: paths of one number share their tags.
    set: usize,
    /// Its first count.
    first: usize,
    /// By CPU: the hardware queue.
    queue_of: Vec<usize>,
    /// By hardware queue.
    depths: Vec<u32>,
    /// A clone has its tag from the allocation on: no scheduler.
    with_request: bool,
    /// Paths of other targets draw from the set as well.
    others: bool,
}

impl Tags {
    /// Of the paths of a target as queue.txt and meta.txt have them. None if they do not tell.
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
                others: false,
            });
            tags.counts += tags.paths[index].depths.len();
        }
        let shared = paths.first().is_some_and(|(_, setup)| setup.queue_shared);
        let users = if shared {
            below_others(dir, dir.devices.len())
        } else {
            units
        };
        let sets: Vec<usize> = tags.paths.iter().map(|path| path.set).collect();
        for path in &mut tags.paths {
            path.others = sets.iter().filter(|&&set| set == path.set).count() < users;
        }
        tags
    }

    /// Paths of other targets draw from the same tags: whether one is free cannot be told.
    pub(super) fn shared_with_others(&self) -> bool {
        self.paths.iter().any(|path| path.others)
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

    /// A clone has its tag as soon as it is there.
    pub(super) fn with_request(&self, path: PathId) -> bool {
        let of = self.paths.get(path.index());
        of.is_some_and(|of| of.with_request)
    }

    /// What is judged: a tag that was found or not, a failed clone that was tried again or not.
    pub(super) fn judge(&self, what: What) -> bool {
        let all = !self.paths.is_empty() && !self.shared_with_others();
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

    /// In use of the set, and of the path alone, in the hardware queue of a CPU.
    fn counted(&self, in_use: &[u32], of: &PathTags, queue: usize) -> (u32, u32, u32) {
        let sharing = self.paths.iter().filter(|other| other.set == of.set);
        let all = sharing.clone().map(|other| in_use[other.first + queue]);
        (all.sum(), in_use[of.first + queue], sharing.count() as u32)
    }

    /// The next clone finds a tag.
    pub(super) fn is_free(&self, in_use: &[u32], path: PathId, cpu: CpuId) -> bool {
        self.known(path, cpu).is_none_or(|(of, queue)| {
            let (all, ..) = self.counted(in_use, of, queue);
            of.others || all < of.depths[queue]
        })
    }

    /// The next clone may find none: they are all in use, or the path has its share of them.
    pub(super) fn may_lack(&self, in_use: &[u32], path: PathId, cpu: CpuId) -> bool {
        self.known(path, cpu).is_none_or(|(of, queue)| {
            let depth = of.depths[queue];
            let (all, own, users) = self.counted(in_use, of, queue);
            let share = depth.div_ceil(users).max(SHARE_LEAST);
            of.others || all >= depth || users > 1 && own >= share
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

/// How many real devices come before this one.
fn below_others(dir: &CaptureDir, index: usize) -> usize {
    let real = |name: &str| !name.starts_with("dm-");
    let devices = dir.devices.iter().take(index);
    devices.filter(|device| real(&device.name)).count()
}
