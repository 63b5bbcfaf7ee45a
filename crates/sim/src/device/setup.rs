//! Setup of a device, and the types of its hardware queues.

use crate::plan::{DeviceId, DevicePlan, DiskPlan, Plan};
use crate::rng::Rng;
use blkmq::request::{CpuId, HctxId};
use blkmq::rules::Rules;
use blkmq::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct DeviceSetup<'a> {
    /// The device's part of the plan.
    pub plan: &'a DevicePlan,
    pub rules: &'a Rules,
    /// queue/io_timeout.
    pub io_timeout: Duration,
    pub seed: u64,
    pub device: DeviceId,
    /// CPU of each hctx's interrupt vector; entries of POLL hctxs are not used.
    pub vector_cpus: &'a [CpuId],
    /// Request slots, of all its queues: every [`RequestId`](blkmq::request::RequestId) is below.
    pub requests: u32,
    /// Queues above it: disks, or units of a host.
    pub units: u16,
}

impl<'a> DeviceSetup<'a> {
    /// Setup of the device below a queue of a plan, with the CPU of each hctx's vector.
    pub fn of(
        plan: &'a Plan,
        device: DeviceId,
        of: &'a DiskPlan,
        vector_cpus: &'a [CpuId],
    ) -> DeviceSetup<'a> {
        DeviceSetup {
            plan: &of.device,
            rules: &of.queue.rules,
            io_timeout: of.queue.io_timeout,
            seed: plan.seed,
            device,
            vector_cpus,
            requests: of.capacity.requests,
            units: 1,
        }
    }

    /// Random numbers of this device for one purpose.
    pub(super) fn random(&self, purpose: &str) -> Rng {
        match self.device.0 {
            0 => Rng::stream(self.seed, purpose),
            device => Rng::stream(self.seed, &format!("{purpose}/disk{device}")),
        }
    }
}

/// A time drawn uniformly from so many percent below the mean to as many above it.
pub(super) fn jittered(mean: Duration, percent: u64, draw: &mut Rng) -> Duration {
    let swing = mean.0 / 100 * percent + mean.0 % 100 * percent / 100;
    match swing {
        0 => mean,
        swing => Duration(mean.0 - swing + draw.below(2 * swing + 1)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLayout {
    /// Hardware queues of all types.
    count: u16,
    /// First POLL hctx; `count` if there is none.
    polled_first: u16,
}

impl QueueLayout {
    /// Panics if the plan has no DEFAULT queue.
    pub fn new(plan: &DevicePlan) -> QueueLayout {
        assert!(plan.default_queues > 0, "a device has a DEFAULT queue");
        let polled_first = plan.default_queues + plan.read_queues;
        QueueLayout {
            count: polled_first + plan.poll_queues,
            polled_first,
        }
    }

    /// Hardware queues of all types.
    pub fn count(self) -> usize {
        usize::from(self.count)
    }

    pub fn polled_count(self) -> usize {
        usize::from(self.count - self.polled_first)
    }

    /// Index of `hctx` among the POLL hctxs, `None` of another type. Panics if there is no such
    /// hctx.
    pub fn polled_index(self, hctx: HctxId) -> Option<usize> {
        assert!(hctx.0 < self.count, "hctx {} of {}", hctx.0, self.count);
        hctx.0.checked_sub(self.polled_first).map(usize::from)
    }
}
