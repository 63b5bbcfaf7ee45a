//! CPUs on which threads begin that may use several CPUs.
//!
//! By the kernel's rule for balancing at fork: from the widest domain to the narrowest, each new
//! thread goes where most CPUs are idle, so threads spread over last-level caches, then over cores,
//! and only then share a core. Between sockets some imbalance is allowed while few threads run.
//! Later moves, at wake-ups, are in `tasks.rs`.
//!
//! Threads of t/io_uring run from their fork on, so the kernel's rule applies directly: the forking
//! task runs, too, and counts. Threads of fio sleep until all are forked (backend.c,
//! run_threads()), and fio itself sleeps when they run: at each fork all CPUs are idle but fio's,
//! and the threads spread when they are woken, and then by balancing. This models the state after
//! that, not after the fork. Kernel: sched_balance_find_dst_group(), adjust_numa_imbalance() in
//! kernel/sched/fair.c, build_sched_domains() in kernel/sched/topology.c (6.12.117).

use blkmq::request::CpuId;

use crate::profile::{Distance, MachineProfile};

/// NUMA_IMBALANCE_MIN: so many more threads on the first socket are allowed.
const IMBALANCE: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Placement<'a> {
    profile: &'a MachineProfile,
    begun: Vec<u32>,
}

impl Placement<'_> {
    /// No thread has begun, on a machine of so many CPUs.
    pub(super) fn new(profile: &MachineProfile, cpus: u16) -> Placement<'_> {
        Placement {
            profile,
            begun: vec![0; usize::from(cpus)],
        }
    }

    /// The CPU on which the next thread begins, one of these. The forking task is on the first of
    /// them, and runs there if `at_fork`.
    ///
    /// # Panics
    /// If there are none.
    pub(super) fn next(&mut self, allowed: &[CpuId], at_fork: bool) -> CpuId {
        let local = allowed[0];
        self.begun[usize::from(local.0)] += u32::from(at_fork);
        let cpu = self.idlest(local, allowed);
        self.begun[usize::from(local.0)] -= u32::from(at_fork);
        self.begun[usize::from(cpu.0)] += 1;
        cpu
    }

    fn idlest(&self, local: CpuId, allowed: &[CpuId]) -> CpuId {
        let stays = self.lets_be(local, allowed);
        let candidates = allowed.iter().copied().filter(|&cpu| {
            let distance = self.profile.distance(local, cpu);
            !stays || distance < Distance::Machine
        });
        candidates
            .min_by_key(|&cpu| {
                let near = [
                    Distance::Socket,
                    Distance::Die,
                    Distance::Sibling,
                    Distance::Same,
                ];
                (near.map(|within| self.begun_within(cpu, within)), cpu)
            })
            .unwrap_or(local)
    }

    /// Threads that have begun within this distance.
    fn begun_within(&self, cpu: CpuId, within: Distance) -> u32 {
        let near = |other: usize| self.profile.distance(cpu, CpuId(other as u16)) <= within;
        let begun = self.begun.iter().enumerate();
        begun
            .filter(|&(other, _)| near(other))
            .map(|(_, n)| n)
            .sum()
    }

    /// The socket of `local` has few threads, or hardly more than another one.
    fn lets_be(&self, local: CpuId, allowed: &[CpuId]) -> bool {
        let topology = &self.profile.topology;
        let here = self.begun_within(local, Distance::Socket);
        // sd->imb_numa_nr: last-level caches of a socket, or an eighth of its CPUs if it has one.
        let few = match topology.dies_per_socket {
            1 => topology.cores_per_die * topology.threads_per_core / 8,
            dies => dies,
        };
        let others = allowed.iter().filter(|&&cpu| {
            let distance = self.profile.distance(local, cpu);
            distance == Distance::Machine
        });
        let least = others
            .map(|&cpu| self.begun_within(cpu, Distance::Socket))
            .min();
        let more = here.saturating_sub(least.unwrap_or(here));
        here < u32::from(few) && more <= IMBALANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::bench;

    /// CPUs of the first so many threads, on all CPUs of a built-in profile.
    fn first(profile: &str, cpus: u16, threads: usize, at_fork: bool) -> Vec<u16> {
        let profile = bench::profile(profile);
        let allowed: Vec<CpuId> = (0..cpus).map(CpuId).collect();
        let mut placement = Placement::new(&profile, cpus);
        (0..threads)
            .map(|_| placement.next(&allowed, at_fork).0)
            .collect()
    }

    #[test]
    fn threads_spread_over_caches_then_cores_then_threads_of_a_core() {
        // Dies are CPUs 0 to 7 and 8 to 15; those from 16 on are second threads.
        assert_eq!(first("ryzen-7950x", 32, 4, false), [0, 8, 1, 9]);
        let all = first("ryzen-7950x", 32, 34, false);
        assert!(all[..16].iter().all(|&cpu| cpu < 16), "{all:?}");
        let mut once = all[..32].to_vec();
        once.sort_unstable();
        assert_eq!(once, (0..32).collect::<Vec<_>>());
        assert_eq!(all[32..], [0, 8]);
    }

    #[test]
    fn few_threads_may_stay_on_one_socket() {
        // Two sockets of eight caches of two cores: CPUs 0 to 15 and 16 to 31.
        assert_eq!(first("dell-r7525", 64, 4, false), [0, 2, 4, 16]);
        let many = first("dell-r7525", 64, 32, false);
        let here = many.iter().filter(|&&cpu| cpu < 16).count();
        assert_eq!(here, 16, "{many:?}");
    }

    /// The thread counts on its CPU, core, cache and socket.
    #[test]
    fn who_forks_is_kept_away_from() {
        assert_eq!(first("ryzen-7950x", 32, 4, true), [8, 1, 9, 2]);
        let all = first("ryzen-7950x", 32, 31, true);
        assert!(!all.contains(&0), "{all:?}");
        // The third would make the socket's imbalance three.
        assert_eq!(first("dell-r7525", 64, 4, true), [2, 4, 16, 6]);
        let many = first("dell-r7525", 64, 31, true);
        let here = many.iter().filter(|&&cpu| cpu < 16).count();
        assert_eq!(here, 15, "{many:?}");
    }

    #[test]
    fn one_cpu_takes_all() {
        let profile = bench::profile("xeon-10c");
        for at_fork in [false, true] {
            let mut placement = Placement::new(&profile, 10);
            assert_eq!(placement.next(&[CpuId(3)], at_fork), CpuId(3));
            assert_eq!(placement.next(&[CpuId(3)], at_fork), CpuId(3));
            assert_eq!(placement.next(&[CpuId(3), CpuId(4)], at_fork), CpuId(4));
        }
    }
}
