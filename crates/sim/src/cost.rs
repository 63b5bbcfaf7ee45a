//! Prices: what a label or a step outside the block layer costs on this machine, in picoseconds.
//!
//! Computed from a profile; no number of its own. Remote cache lines cost their transfer time.

use blkmq::env::Meter;
use blkmq::path::Label;
use blkmq::request::{CpuId, RequestPool};

use crate::profile::{Cycles, Distance, MachineProfile};

/// Prices in picoseconds.
#[derive(Clone, Debug)]
pub struct CostModel {
    label: Vec<u64>,
    atomic: u64,
    container_op: u64,
    lines_per_request: u64,
    transfer: [u64; 5],
    distance: Vec<Distance>,
    cpus: usize,
    shared_percent: u64,
    ps_per_kilocycle: u64,
    /// Costs of steps outside the block layer, cycles.
    pub cycles: Cycles,
}

impl CostModel {
    /// Prices of the first `cpus` CPUs of a machine.
    pub fn new(profile: &MachineProfile, cpus: u16) -> Result<CostModel, String> {
        // 1 cycle is 1e6 / MHz picoseconds; kept per thousand cycles to stay exact.
        let ps_per_kilocycle = 1_000_000_000 / profile.clock_mhz;
        let ps = |cycles: u64| cycles * ps_per_kilocycle / 1000;
        let t = profile.transfer_ps;
        let pairs = (0..cpus).flat_map(|a| (0..cpus).map(move |b| (CpuId(a), CpuId(b))));
        Ok(CostModel {
            label: profile.label_cycles()?.into_iter().map(ps).collect(),
            atomic: ps(profile.cycles.atomic),
            container_op: ps(profile.cycles.container_op),
            lines_per_request: profile.cycles.lines_per_request,
            transfer: [0, t.sibling, t.die, t.socket, t.machine],
            distance: pairs.map(|(a, b)| profile.distance(a, b)).collect(),
            cpus: usize::from(cpus),
            shared_percent: profile.smt.shared_percent,
            ps_per_kilocycle,
            cycles: profile.cycles.clone(),
        })
    }

    /// Picoseconds of so many cycles.
    pub fn ps(&self, cycles: u64) -> u64 {
        cycles * self.ps_per_kilocycle / 1000
    }

    /// How far two CPUs are apart.
    pub fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        self.distance[usize::from(a.0) * self.cpus + usize::from(b.0)]
    }

    /// True if two CPUs share their last-level cache.
    pub fn share_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.distance(a, b) <= Distance::Die
    }

    /// The same work while the sibling runs too.
    pub fn shared(&self, ps: u64) -> u64 {
        ps * self.shared_percent / 100
    }

    /// Price of a label, with what it did. Empties the meter.
    pub fn label(
        &self,
        label: Label,
        cpu: CpuId,
        meter: &mut Meter,
        pool: &mut RequestPool,
    ) -> u64 {
        let price = self.label[usize::from(label.0)] + self.words(cpu, meter);
        let touches = &mut pool.touches;
        if touches.is_empty() {
            return price;
        }
        let row = usize::from(cpu.0) * self.cpus;
        let mut lines = 0;
        for from in touches.remote() {
            lines += self.transfer[self.distance[row + usize::from(from.0)] as usize];
        }
        lines += u64::from(touches.overflow) * self.transfer[Distance::Die as usize];
        touches.clear();
        price + lines * self.lines_per_request
    }

    /// Price of the shared words and locks a label touched. Empties the meter.
    pub fn words(&self, cpu: CpuId, meter: &mut Meter) -> u64 {
        let mut price = u64::from(meter.atomics) * self.atomic
            + u64::from(meter.container_ops) * self.container_op;
        meter.atomics = 0;
        meter.container_ops = 0;
        if meter.touches.is_empty() {
            return price;
        }
        let row = usize::from(cpu.0) * self.cpus;
        for from in meter.touches.remote() {
            price += self.transfer[self.distance[row + usize::from(from.0)] as usize];
        }
        price += u64::from(meter.touches.overflow) * self.transfer[Distance::Die as usize];
        meter.touches.clear();
        price
    }
}
