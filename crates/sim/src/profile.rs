//! Machine profiles: topology and transfer times of a machine, and what its code costs.
//!
//! A profile never holds a number that belongs to one experiment. The files are
//! `crates/sim/profiles/*.toml`; nothing else in the project names a price.

use std::collections::BTreeMap;

use blkmq::env::{CPUS_MAX, Numbering};
use blkmq::path::Label;
use blkmq::request::CpuId;
use blkmq::tags::CpuTopology;
use blkmq::time::Duration;
use serde::{Deserialize, Serialize};

mod caches;

pub use crate::step::Cycles;
pub use caches::{Cache, Caches};

/// The longest steal time after an event.
const STEAL_MAX: Duration = Duration::from_secs(60);

/// A machine: facts and prices.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MachineProfile {
    /// Name, equal to the file's stem.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// CPUs.
    pub topology: Topology,
    /// Clock with all cores busy, MHz.
    pub clock_mhz: u64,
    /// One-way cache-line transfer, picoseconds, by distance.
    pub transfer_ps: Transfer,
    /// Threads of one core that run at once.
    pub smt: Smt,
    /// Sizes of caches. Without them a line that was read stays in the CPU's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<Caches>,
    /// Time that a hypervisor or emulator takes from the CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<Steal>,
    /// Costs of the hardware and of steps outside the block layer, cycles.
    pub cycles: Cycles,
    /// Costs of the block layer's labels, cycles: `default` and those that differ.
    pub labels: BTreeMap<String, u64>,
    /// Parts of the model that are switched off.
    #[serde(skip)]
    pub without: Without,
    /// Digest of the file.
    #[serde(skip)]
    pub hash: String,
}

/// Mechanisms without a number, switched off to measure their effect (`ablation.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Without {
    /// Misses of a label come one after the other.
    pub overlap: bool,
    /// A failed try-lock touches no line.
    pub try_lock: bool,
}

/// How CPUs are laid out. CPUs are numbered socket by socket, die by die, core by core; second
/// threads follow after all first ones, as Linux numbers them.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Sockets.
    pub sockets: u16,
    /// Dies (last-level caches) of a socket.
    pub dies_per_socket: u16,
    /// Cores of a die.
    pub cores_per_die: u16,
    /// Threads of a core.
    pub threads_per_core: u16,
}

/// Transfer times by distance.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Other thread of the core.
    pub sibling: u64,
    /// Same last-level cache.
    pub die: u64,
    /// Other die of the socket.
    pub socket: u64,
    /// Other socket.
    pub machine: u64,
}

/// Steal time, as /proc/stat calls it: what one run of the CPU loses after a completion or a
/// submission. Drawn in runs of these lists, as such times come in bursts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Steal {
    /// After completions, ns, in the order of a capture.
    pub completion_ns: Vec<u64>,
    /// After submissions.
    pub submission_ns: Vec<u64>,
}

/// Threads of one core that run at once.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Smt {
    /// Time of a step while the sibling runs too, percent of the time alone.
    pub shared_percent: u64,
}

/// How far two CPUs are apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Distance {
    Same,
    /// Threads of one core.
    Sibling,
    /// One last-level cache.
    Die,
    Socket,
    /// Different sockets.
    Machine,
}

impl Distance {
    /// Between two CPUs, each with its core, die and socket.
    pub fn between((a, place_a): (CpuId, [u16; 3]), (b, place_b): (CpuId, [u16; 3])) -> Distance {
        let alike = |level: usize| place_a[level] == place_b[level];
        match (alike(0), alike(1), alike(2)) {
            _ if a == b => Distance::Same,
            (true, ..) => Distance::Sibling,
            (_, true, _) => Distance::Die,
            (_, _, true) => Distance::Socket,
            _ => Distance::Machine,
        }
    }
}

impl Topology {
    /// Core, die and socket of a CPU.
    pub fn place(self, cpu: u16) -> [u16; 3] {
        let core = cpu % (self.sockets * self.dies_per_socket * self.cores_per_die);
        let die = core / self.cores_per_die;
        [core, die, die / self.dies_per_socket]
    }

    /// The other thread of the core of `cpu`, the first one if there are several, among the first
    /// `cpus` CPUs.
    pub fn sibling(self, cpu: CpuId, cpus: u16) -> Option<CpuId> {
        let Numbering { cores, .. } = self.numbering();
        let first = cpu.0 % cores;
        let mut threads = (first..cpus).step_by(usize::from(cores)).map(CpuId);
        threads.find(|&other| other != cpu)
    }

    /// How its CPUs are numbered, for prices of cache lines.
    pub fn numbering(self) -> Numbering {
        let socket = self.dies_per_socket * self.cores_per_die;
        Numbering {
            cores: self.sockets * socket,
            threads: self.threads_per_core,
            adjacent: [1, self.cores_per_die, socket],
        }
    }
}

impl MachineProfile {
    /// Whether the machine has as many CPUs as are modelled at most.
    pub fn check_cpus(&self) -> Result<(), String> {
        let t = self.topology;
        let factors = [
            t.sockets,
            t.dies_per_socket,
            t.cores_per_die,
            t.threads_per_core,
        ];
        let cpus: u64 = factors.map(u64::from).iter().product();
        if (1..=u64::from(CPUS_MAX)).contains(&cpus) {
            return Ok(());
        }
        Err(format!(
            "topology: {cpus} CPUs (sockets x dies_per_socket x cores_per_die x threads_per_core); \
             a machine has 1 to {CPUS_MAX}"
        ))
    }

    /// Whether a cycle has a time that prices can be computed from.
    pub fn check_clock(&self) -> Result<(), String> {
        let mhz = self.clock_mhz;
        match (1..=100_000).contains(&mhz) {
            true => Ok(()),
            false => Err(format!("clock_mhz: {mhz} MHz; a machine has 1 to 100000")),
        }
    }

    /// Whether a CPU comes back.
    pub fn check_steal(&self) -> Result<(), String> {
        let lists = self.steal.iter().flat_map(|steal| {
            [
                ("completion_ns", &steal.completion_ns),
                ("submission_ns", &steal.submission_ns),
            ]
        });
        let mut all = lists.flat_map(|(key, list)| list.iter().map(move |ns| (key, *ns)));
        match all.find(|(_, ns)| *ns > STEAL_MAX.0) {
            Some((key, ns)) => Err(format!(
                "steal.{key}: {ns} ns; a CPU loses at most {} ns at a time",
                STEAL_MAX.0
            )),
            None => Ok(()),
        }
    }

    pub fn cpus(&self) -> u16 {
        let t = self.topology;
        t.sockets * t.dies_per_socket * t.cores_per_die * t.threads_per_core
    }

    pub fn core(&self, cpu: CpuId) -> u16 {
        self.topology.place(cpu.0)[0]
    }

    /// How far two CPUs are apart.
    pub fn distance(&self, a: CpuId, b: CpuId) -> Distance {
        let place = |cpu: CpuId| self.topology.place(cpu.0);
        Distance::between((a, place(a)), (b, place(b)))
    }

    /// Topology of the first `cpus` CPUs, as CPU maps use it.
    pub fn cpu_topology(&self, cpus: u16) -> CpuTopology {
        CpuTopology {
            core: (0..cpus).map(|cpu| self.core(CpuId(cpu))).collect(),
            given: None,
        }
    }

    /// Cycles of each label, by its number. An error names a label that does not exist.
    pub fn label_cycles(&self) -> Result<Vec<u64>, String> {
        let default = self.labels.get("default").copied();
        let default = default.ok_or("labels.default is missing: cycles of a label not listed")?;
        let mut cycles = vec![default; Label::COUNT];
        for (name, &cost) in self.labels.iter().filter(|(name, _)| *name != "default") {
            let label =
                Label::by_name(name).ok_or(format!("labels.{name}: there is no such label"))?;
            cycles[usize::from(label.0)] = cost;
        }
        Ok(cycles)
    }
}
