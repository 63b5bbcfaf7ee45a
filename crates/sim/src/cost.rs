//! Prices: what a label or a step outside the block layer costs on this machine, in picoseconds.
//!
//! Computed from a profile; no number of its own. Remote cache lines cost their transfer time.

mod spent;

pub use crate::step::{Component, Cycles, Step};
pub use spent::{Spent, Sum};

use core::ops::Range;
use std::sync::Arc;

use blkmq::env::{Near, Numbering, Overlap, Room, Tariff};
use blkmq::path::Label;
use blkmq::request::CpuId;
use blkmq::time::Duration;

use crate::profile::{Distance, MachineProfile, Without};

/// Distance of the same lines of two hctxs: struct blk_mq_hw_ctx comes from kmalloc-1k, so
/// these lines share one set of a cache in sixteen.
const HCTX_BYTES: u64 = 1024;

/// Prices in picoseconds.
#[derive(Clone, Debug)]
pub struct CostModel {
    /// By number of the label; the rest is not used.
    label: Box<[u64; Label::PLACES]>,
    atomic: u64,
    container_op: u64,
    /// Prices of lines on each CPU.
    near: Arc<[Near]>,
    /// Core, die and socket of each CPU.
    places: Vec<[u16; 3]>,
    numbering: Numbering,
    without: Without,
    caches: Option<Room>,
    shared_percent: u64,
    step: [u64; Step::ALL.len()],
    /// The same while the sibling runs too.
    step_beside: [u64; Step::ALL.len()],
}

impl CostModel {
    pub fn new(profile: &MachineProfile, cpus: u16) -> Result<CostModel, String> {
        // 1 cycle is 1e6 / MHz picoseconds; kept per thousand cycles to stay exact.
        let ps_per_kilocycle = 1_000_000_000 / profile.clock_mhz;
        let ps = |cycles: u64| cycles * ps_per_kilocycle / 1000;
        let t = profile.transfer_ps;
        // Own core, own last-level cache, own socket, farther.
        let transfer = [t.sibling, t.die, t.socket, t.machine];
        let numbering = profile.topology.numbering();
        let near = |cpu| Near::new(CpuId(cpu), numbering, transfer);
        let mut label = Box::new([0; Label::PLACES]);
        for (price, cycles) in label.iter_mut().zip(profile.label_cycles()?) {
            *price = ps(cycles);
        }
        let step: [u64; Step::ALL.len()] =
            core::array::from_fn(|step| ps(profile.cycles.of(Step::ALL[step])));
        Ok(CostModel {
            label,
            atomic: ps(profile.cycles.atomic),
            container_op: ps(profile.cycles.container_op),
            near: (0..cpus).map(near).collect(),
            numbering,
            places: (0..cpus).map(|cpu| profile.topology.place(cpu)).collect(),
            without: profile.without,
            caches: profile.caches.map(|caches| Room {
                own: caches.own.lines(HCTX_BYTES),
                last_level: caches.last_level.lines(HCTX_BYTES),
                from_last_level: caches.last_level_ps,
                from_memory: caches.memory_ps,
            }),
            shared_percent: profile.smt.shared_percent,
            step,
            step_beside: step.map(|ps| percent_of(ps, profile.smt.shared_percent)),
        })
    }

    /// Price of a step, picoseconds.
    #[inline]
    pub fn step(&self, step: Step) -> u64 {
        self.step[step as usize]
    }

    /// Price of a step, `beside` a sibling that runs too.
    #[inline]
    pub fn step_beside(&self, step: Step, beside: bool) -> u64 {
        if beside {
            self.step_beside[step as usize]
        } else {
            self.step[step as usize]
        }
    }

    /// A step that is a delay, not work.
    pub fn delay(&self, step: Step) -> Duration {
        Duration(self.step(step) / 1000)
    }

    /// From now on a step costs nothing.
    pub fn set_free(&mut self, step: Step) {
        self.step[step as usize] = 0;
        self.step_beside[step as usize] = 0;
    }

    pub fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        let place = |cpu: CpuId| self.places[usize::from(cpu.0)];
        Distance::between((a, place(a)), (b, place(b)))
    }

    /// CPUs that are at most so far from `cpu`, ascending: a range for each thread of cores.
    pub fn cpus_within(
        &self,
        cpu: CpuId,
        distance: Distance,
    ) -> impl Iterator<Item = Range<u16>> + Clone {
        let (cpus, Numbering { cores, threads, .. }) = (self.places.len() as u16, self.numbering);
        let of_level = match distance {
            Distance::Same | Distance::Sibling => 0,
            Distance::Die => 1,
            Distance::Socket => 2,
            Distance::Machine => 3,
        };
        let count = *self.numbering.adjacent.get(of_level).unwrap_or(&cores);
        let first = cpu.0 % cores / count * count;
        let threads = (0..threads).map(move |thread| thread * cores + first);
        threads.map(move |first| first.min(cpus)..(first + count).min(cpus))
    }

    /// True if two CPUs share their last-level cache.
    pub fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.distance(a, b) <= Distance::Die
    }

    /// The same work while the sibling runs too.
    pub fn shared(&self, ps: u64) -> u64 {
        percent_of(ps, self.shared_percent)
    }

    /// Price of a label itself, without the memory accesses that it made.
    #[inline]
    pub fn label(&self, label: Label) -> u64 {
        self.label[label.place()]
    }

    /// Prices of what labels do on `cpu`.
    pub fn tariff(&self, cpu: CpuId) -> Tariff {
        Tariff {
            atomic: self.atomic,
            container_op: self.container_op,
            blind_tries: self.without.try_lock,
            overlap: self.overlap(),
            caches: self.caches,
            near: self.near[usize::from(cpu.0)].clone(),
        }
    }

    /// Prices of cache lines on every CPU.
    pub fn lines(&self) -> Arc<[Near]> {
        self.near.clone()
    }

    pub fn overlap(&self) -> Overlap {
        if self.without.overlap {
            Overlap::OneByOne
        } else {
            Overlap::Together
        }
    }
}

fn percent_of(ps: u64, percent: u64) -> u64 {
    ps * percent / 100
}
