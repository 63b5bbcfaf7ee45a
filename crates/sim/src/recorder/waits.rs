//! Waits for locks: number and length by caller, and the distance of each hand-off.
//!
//! A table of fixed size: names of locks by labels. Not the spread of waits: that is in `watch.rs`.

use blkmq::path::Label;
use blkmq::request::CpuId;
use blkmq::time::Duration;

use crate::profile::Distance;

const CALLERS: usize = Label::COUNT;

/// The lock was not released yet.
const NOBODY: u16 = u16::MAX;

/// Waits for the locks of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitStats {
    /// Grants to waiters, by the distance from the CPU that released to the CPU that got it; in the
    /// order of [`Distance`].
    pub handoffs: [u64; 5],
    /// Callers, longest total wait first.
    pub callers: Vec<CallerStats>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallerStats {
    /// Path and label that run once the lock is granted.
    pub name: &'static str,
    /// Acquisitions that had to wait.
    pub contended: u64,
    pub wait: Duration,
    pub wait_max: Duration,
}

/// Waits of one caller for the locks of one name.
#[derive(Clone, Copy, Default, Debug)]
struct Waited {
    count: u64,
    time: u64,
    max: u64,
    /// By the distance from the CPU that released, in the order of [`Distance`].
    handoffs: [u64; 5],
}

/// Waits by names of locks and by callers.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    table: Box<[Waited]>,
    /// CPU that released each lock last.
    last: Box<[u16]>,
    /// Distance of each pair of CPUs.
    distances: Box<[Distance]>,
    cpus: usize,
}

impl Waits {
    /// None yet, for so many names and locks. `distances`: of each pair of CPUs.
    pub(super) fn new(names: usize, locks: usize, distances: Vec<Distance>) -> Waits {
        let cpus = distances.len().isqrt();
        assert_eq!(distances.len(), cpus * cpus, "a distance for each pair");
        Waits {
            table: vec![Waited::default(); names * CALLERS].into(),
            last: vec![NOBODY; locks].into(),
            distances: distances.into(),
            cpus,
        }
    }

    /// `cpu` waited for `time` for this lock of this name, and has it now.
    pub(super) fn granted(
        &mut self,
        (lock, name): (usize, u8),
        (cpu, caller): (CpuId, Label),
        time: Duration,
    ) {
        let waited = &mut self.table[usize::from(name) * CALLERS + usize::from(caller.0)];
        waited.count += 1;
        waited.time += time.0;
        waited.max = waited.max.max(time.0);
        let from = self.last[lock];
        if from != NOBODY {
            let pair = usize::from(from) * self.cpus + usize::from(cpu.0);
            waited.handoffs[self.distances[pair] as usize] += 1;
        }
    }

    /// `cpu` releases a lock.
    pub(super) fn released(&mut self, lock: usize, cpu: CpuId) {
        self.last[lock] = cpu.0;
    }

    pub(super) fn of(&self, name: usize) -> WaitStats {
        WaitStats {
            handoffs: self.handoffs(name),
            callers: self.callers(name),
        }
    }

    /// Callers that waited for locks of this name, longest total wait first.
    fn callers(&self, name: usize) -> Vec<CallerStats> {
        let of_name = &self.table[name * CALLERS..][..CALLERS];
        let names = Label::all().map(Label::name);
        let waited = names.zip(of_name).filter(|(_, waited)| waited.count > 0);
        let mut callers: Vec<CallerStats> = waited
            .map(|(name, waited)| CallerStats {
                name,
                contended: waited.count,
                wait: Duration(waited.time),
                wait_max: Duration(waited.max),
            })
            .collect();
        callers.sort_by_key(|caller| (core::cmp::Reverse(caller.wait), caller.name));
        callers
    }

    /// Hand-offs of locks of this name by distance.
    fn handoffs(&self, name: usize) -> [u64; 5] {
        let of_name = &self.table[name * CALLERS..][..CALLERS];
        of_name.iter().fold([0; 5], |sum, waited| {
            core::array::from_fn(|distance| sum[distance] + waited.handoffs[distance])
        })
    }

    /// Forgets everything (end of the ramp).
    pub(super) fn reset(&mut self) {
        self.table.fill(Waited::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_distinguished_by_lock_and_label() {
        let label = |name| Label::by_name(name).unwrap();
        let (pick, insert) = (label("pass.pick"), label("plug.elevator"));
        let merge = label("submit.elevator-merge");
        let far = vec![
            Distance::Same,
            Distance::Die,
            Distance::Socket,
            Distance::Die,
        ];
        let mut waits = Waits::new(2, 3, far);
        waits.granted((2, 1), (CpuId(0), merge), Duration(7));
        waits.released(1, CpuId(0));
        waits.granted((1, 1), (CpuId(1), pick), Duration(30));
        waits.released(1, CpuId(1));
        waits.granted((1, 1), (CpuId(0), insert), Duration(50));
        waits.released(2, CpuId(1));
        waits.granted((2, 1), (CpuId(1), pick), Duration(40));
        assert!(waits.callers(0).is_empty());
        let sample = waits.callers(1);
        let sample = sample
            .iter()
            .map(|c| (c.name, c.contended, c.wait.0, c.wait_max.0));
        let expected = [
            ("pass.pick", 2, 70, 40),
            ("plug.elevator", 1, 50, 50),
            ("submit.elevator-merge", 1, 7, 7),
        ];
        assert!(sample.eq(expected));
        assert_eq!(
            (waits.handoffs(0), waits.handoffs(1)),
            ([0; 5], [0, 0, 2, 1, 0])
        );
        waits.reset();
        assert!(waits.callers(1).is_empty());
        assert_eq!(waits.handoffs(1), [0; 5]);
    }
}
