//! Locks by kind: acquisitions, waits by caller, and distances of hand-offs.

use core::fmt;

use serde::Serialize;

use super::text::micros;
use super::{is_zero, ratio, round};
use sim::recorder::{CallerStats, LockStats};

/// Locks and callers with a smaller part of all waiting time are only in JSON, percent.
const SHOWN_FROM: f64 = 1.0;
/// Most callers of a lock in the text.
const CALLERS_SHOWN: usize = 4;

/// Figures of the locks of one kind.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LockReport {
    /// Name of the lock, as in the kernel's lock statistics.
    pub name: &'static str,
    /// Times that it was taken.
    pub acquisitions: u64,
    /// Times that a CPU had to wait.
    pub contended: u64,
    /// Try-locks that found the lock taken. Left out if 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub tries_failed: u64,
    /// Total wait, ns.
    pub wait_ns: u64,
    /// Total hold, ns.
    pub hold_ns: u64,
    /// Longest wait, ns.
    pub wait_max_ns: u64,
    /// Longest hold, ns.
    pub hold_max_ns: u64,
    /// `wait_ns` as a part of `cpus.busy_ns`, 0 to 1.
    pub wait_share: f64,
    /// Grants to a waiting CPU, by distance from the CPU that released the lock. Left out if there
    /// were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoffs: Option<Handoffs>,
    /// Waits by caller, longest total first. Left out if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<LockCaller>,
}

/// Numbers of lock hand-offs by distance.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Handoffs {
    /// To another task or interrupt level of the same CPU.
    pub same_cpu: u64,
    /// To the other thread of the core.
    pub sibling: u64,
    /// Within one last-level cache.
    pub same_cache: u64,
    /// Within one socket.
    pub same_socket: u64,
    /// To another socket.
    pub other_socket: u64,
}

/// Waits of one caller.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LockCaller {
    /// Path and label that run once the lock is granted: `pass.pick`.
    pub label: &'static str,
    /// Times that it had to wait.
    pub contended: u64,
    /// Total wait, ns.
    pub wait_ns: u64,
    /// Longest wait, ns.
    pub wait_max_ns: u64,
    /// `wait_ns` as a part of `cpus.busy_ns`, 0 to 1.
    pub wait_share: f64,
}

impl LockReport {
    pub(super) fn new(lock: &LockStats, busy_ns: u64) -> LockReport {
        let share = |wait: u64| round(ratio(u128::from(wait), u128::from(busy_ns)));
        let caller = |caller: &CallerStats| LockCaller {
            label: caller.name,
            contended: caller.contended,
            wait_ns: caller.wait.0,
            wait_max_ns: caller.wait_max.0,
            wait_share: share(caller.wait.0),
        };
        LockReport {
            name: lock.name,
            acquisitions: lock.acquisitions,
            contended: lock.contended,
            tries_failed: lock.tries_failed,
            wait_ns: lock.wait.0,
            hold_ns: lock.hold.0,
            wait_max_ns: lock.wait_max.0,
            hold_max_ns: lock.hold_max.0,
            wait_share: share(lock.wait.0),
            handoffs: lock.waits.as_ref().map(|w| Handoffs::new(w.handoffs)),
            callers: lock
                .waits
                .iter()
                .flat_map(|w| &w.callers)
                .map(caller)
                .collect(),
        }
    }
}

impl Handoffs {
    pub(super) fn new(by_distance: [u64; 5]) -> Handoffs {
        let [same_cpu, sibling, same_cache, same_socket, other_socket] = by_distance;
        Handoffs {
            same_cpu,
            sibling,
            same_cache,
            same_socket,
            other_socket,
        }
    }
}

pub(super) fn write(locks: &[LockReport], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if locks.is_empty() {
        return writeln!(f, "\nNo lock was taken");
    }
    writeln!(
        f,
        "\nLocks                         taken contended    wait us    hold us  longest wait    \
         share"
    )?;
    for lock in locks {
        writeln!(
            f,
            "  {:<24} {:>8} {:>9} {:>10} {:>10} {:>10} us {:>6.2} %",
            lock.name,
            lock.acquisitions,
            lock.contended,
            lock.wait_ns / 1000,
            lock.hold_ns / 1000,
            micros(lock.wait_max_ns as f64),
            lock.wait_share * 100.0
        )?;
    }
    for lock in locks.iter().filter(|lock| lock.tries_failed > 0) {
        writeln!(
            f,
            "  {} was tried and found taken {} times",
            lock.name, lock.tries_failed
        )?;
    }
    writeln!(
        f,
        "  (share: waiting time as a part of the CPUs' time that was not idle)"
    )?;
    let all: u64 = locks.iter().map(|lock| lock.wait_ns).sum();
    let much = |wait: u64| wait > 0 && wait as f64 * 100.0 >= SHOWN_FROM * all as f64;
    for lock in locks.iter().filter(|lock| much(lock.wait_ns)) {
        let callers = lock.callers.iter().filter(|caller| much(caller.wait_ns));
        let callers = callers.take(CALLERS_SHOWN);
        let shares: Vec<String> = callers
            .map(|caller| format!("{} {:.2} %", caller.label, caller.wait_share * 100.0))
            .collect();
        if !shares.is_empty() {
            writeln!(f, "  {}: waits in {}", lock.name, shares.join(", "))?;
        }
        if let Some(far) = lock.handoffs {
            writeln!(f, "  {}: handed over {far}", lock.name)?;
        }
    }
    Ok(())
}

impl fmt::Display for Handoffs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Handoffs {
            same_cpu,
            sibling,
            same_cache,
            same_socket,
            other_socket,
        } = self;
        write!(
            f,
            "within a CPU {same_cpu}, core {sibling}, last-level cache {same_cache}, socket \
             {same_socket}; to another {other_socket}"
        )
    }
}
