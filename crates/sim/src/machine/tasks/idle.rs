//! Idle CPUs as the scheduler sees them: no task is on them, and none waits.
//!
//! A set that is kept, not searched for: machines have up to a thousand CPUs. Read first:
//! `tasks.rs`.

use core::ops::Range;

use blkmq::request::CpuId;

const BITS: u16 = 64;

#[derive(Debug)]
pub(super) struct IdleCpus(Vec<u64>);

impl IdleCpus {
    /// All of so many CPUs.
    pub(super) fn all(cpus: u16) -> IdleCpus {
        let mut idle = IdleCpus(vec![0; usize::from(cpus.div_ceil(BITS))]);
        (0..cpus).for_each(|cpu| idle.set(CpuId(cpu), true));
        idle
    }

    pub(super) fn set(&mut self, cpu: CpuId, idle: bool) {
        let (word, bit) = (&mut self.0[usize::from(cpu.0 / BITS)], cpu.0 % BITS);
        *word = *word & !(1 << bit) | u64::from(idle) << bit;
    }

    pub(super) fn has(&self, cpu: CpuId) -> bool {
        self.0[usize::from(cpu.0 / BITS)] >> (cpu.0 % BITS) & 1 == 1
    }

    /// Those in a range, ascending.
    pub(super) fn within(&self, cpus: Range<u16>) -> impl Iterator<Item = CpuId> {
        let mut next = cpus.start;
        core::iter::from_fn(move || {
            while next < cpus.end {
                let rest = self.0[usize::from(next / BITS)] >> (next % BITS);
                if rest == 0 {
                    next = (next / BITS + 1) * BITS;
                    continue;
                }
                let cpu = next + rest.trailing_zeros() as u16;
                next = cpu + 1;
                return (cpu < cpus.end).then_some(CpuId(cpu));
            }
            None
        })
    }
}
