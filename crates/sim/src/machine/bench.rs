//! Small machines for unit tests: plans built by hand, since the crate that reads scenarios is
//! above this one.

use blkmq::elevator::{SchedulerKind, SubmitterGroup};
use blkmq::request::SetId;
use blkmq::rules::{NoMerges, QueueLimits, Restart, Rules};
use blkmq::time::Duration;

use super::Simulator;
use crate::device::bench as device;
use crate::plan::{
    Capacity, DeviceKind, DevicePlan, DiskPlan, IrqMode, MachinePlan, Output, Plan, QueuePlan,
};
use crate::profile::MachineProfile;
use crate::workload::tests::thread;

/// A file of `profiles/`, read without the checks of crate `scenario`.
pub(super) fn profile(name: &str) -> MachineProfile {
    let text = match name {
        "ryzen-7950x" => include_str!("../../profiles/ryzen-7950x.toml"),
        "dell-r7525" => include_str!("../../profiles/dell-r7525.toml"),
        "xeon-10c" => include_str!("../../profiles/xeon-10c.toml"),
        _ => panic!("no test uses {name}"),
    };
    toml::from_str(text).expect("a profile that extends no other")
}

const DEPTH: u32 = 64;
const HZ: u32 = 250;

/// One device of `hctxs` queues with 64 tags each, and on each of the first `threads` CPUs a
/// thread of random reads in a region of its own.
pub(super) fn plan(
    (cpus, hctxs): (u16, u16),
    kind: DeviceKind,
    scheduler: SchedulerKind,
    threads: u16,
) -> Plan {
    let mut disk = DiskPlan {
        set: SetId(0),
        queue: queue(scheduler),
        device: DevicePlan {
            default_queues: hctxs,
            queue_depth: DEPTH,
            ..device::plan(kind)
        },
        owner: None,
        capacity: Capacity::default(),
    };
    let threads: Vec<_> = (0..threads)
        .map(|clone| {
            let mut thread = thread();
            (thread.clone, thread.cpus, thread.random_seed) = (clone, vec![clone], clone.into());
            (thread.iodepth, thread.iodepth_low, thread.number_ios) = (4, 3, 50);
            thread.files[0].first_sector = 10_000 * u64::from(clone);
            thread
        })
        .collect();
    disk.capacity = Capacity {
        bios: 8 * threads.len().max(1) as u32,
        waiters: threads.len() as u32,
        ..disk.capacity_of_tags()
    };
    Plan {
        name: "bench".to_owned(),
        description: String::new(),
        seed: 1,
        machine: MachinePlan {
            profile: "ryzen-7950x".to_owned(),
            cpus,
            hz: HZ,
        },
        disks: vec![disk],
        job_options: vec![Vec::new()],
        outputs: vec![Output::default()],
        threads,
        servers: Vec::new(),
        phases: 1,
        precision: Vec::new(),
        groups: vec![SubmitterGroup {
            path: String::new(),
            parent: 0,
            weight: 100,
        }],
        cache_pages: 0,
        changes: Vec::new(),
        ignored: Vec::new(),
        left_out: Vec::new(),
        adjusted: Vec::new(),
    }
}

fn queue(scheduler: SchedulerKind) -> QueuePlan {
    let nr_requests = match scheduler {
        SchedulerKind::None => DEPTH,
        _ => 2 * DEPTH,
    };
    QueuePlan {
        rules: Rules::v6_12(),
        scheduler: scheduler.defaults(HZ, nr_requests),
        further: Vec::new(),
        nr_requests,
        nr_requests_first: nr_requests,
        nomerges: NoMerges::All,
        inline_runs: false,
        rq_affinity: 1,
        limits: QueueLimits::PLAIN,
        read_ahead_pages: 32,
        io_timeout: Duration::from_secs(30),
    }
}

/// null_blk that completes in a softirq.
pub(super) fn null_blk() -> DeviceKind {
    DeviceKind::NullBlk(device::null_blk(IrqMode::Softirq))
}

/// A machine of four CPUs without threads, whose kernel restarts queues as this one does.
pub(super) fn idle(hctxs: u16, kind: DeviceKind, restart: &str) -> Simulator {
    let mut plan = plan((4, hctxs), kind, SchedulerKind::None, 0);
    let rules = &mut plan.disks[0].queue.rules;
    *rules = rules.with_restart(Restart::by_name(restart).expect("a kernel"));
    simulator(&plan)
}

pub(super) fn simulator(plan: &Plan) -> Simulator {
    Simulator::new(plan, &profile(&plan.machine.profile)).expect("a machine of this plan")
}
