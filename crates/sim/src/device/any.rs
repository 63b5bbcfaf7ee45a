//! `AnyDevice`: the device of a plan, and what it is set up from.
//!
//! Holds no behaviour of its own. Read next: `model.rs`, `fault.rs`.

use super::captured::CapturedDevice;
use super::fault::Faulty;
use super::{Actions, Command, Device, Found, Model, Reply};
use crate::plan::{DevicePlan, DiskId, Plan};
use crate::rng::Rng;
use blkmq::request::{CpuId, HctxId, RequestId};
use blkmq::rules::Rules;
use blkmq::time::{Duration, SimTime};

/// What a device is made from.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSetup<'a> {
    /// The device's part of the plan.
    pub plan: &'a DevicePlan,
    /// Kernel.
    pub rules: &'a Rules,
    /// queue/io_timeout.
    pub io_timeout: Duration,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the disk.
    pub disk: DiskId,
    /// CPU of each hctx's interrupt vector; entries of POLL hctxs are not looked at.
    pub vector_cpus: &'a [CpuId],
    /// Request slots: every [`RequestId`] is below.
    pub requests: u32,
}

impl<'a> DeviceSetup<'a> {
    /// That of a disk of a plan, with the CPU of each hctx's vector. Panics if there is no such
    /// disk.
    pub fn of(plan: &'a Plan, disk: DiskId, vector_cpus: &'a [CpuId]) -> DeviceSetup<'a> {
        let of = &plan.disks[disk.index()];
        DeviceSetup {
            plan: &of.device,
            rules: &of.queue.rules,
            io_timeout: of.queue.io_timeout,
            seed: plan.seed,
            disk,
            vector_cpus,
            requests: of.capacity.requests,
        }
    }

    /// Random numbers of this disk for one purpose.
    pub(super) fn random(&self, purpose: &str) -> Rng {
        match self.disk.0 {
            0 => Rng::stream(self.seed, purpose),
            disk => Rng::stream(self.seed, &format!("{purpose}/disk{disk}")),
        }
    }
}

/// Which hctx is of which type: DEFAULT ones first, then READ, then POLL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueLayout {
    /// Hardware queues of all types.
    count: u16,
    /// First POLL hctx; `count` if there is none.
    polled_first: u16,
}

impl QueueLayout {
    /// That of a plan. Panics if it has no DEFAULT queue.
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

    /// POLL hctxs.
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

/// The device of a plan.
#[derive(Debug)]
pub enum AnyDevice {
    /// One that does what it should.
    Sound(Box<Model>),
    /// One with faults.
    Faulty(Box<Faulty>),
    /// That of a capture: see `replay.rs`.
    Captured(Box<CapturedDevice>),
}

impl AnyDevice {
    /// The device of a plan, idle. Panics if a size in it is zero.
    pub fn new(setup: &DeviceSetup<'_>) -> AnyDevice {
        let model = Model::new(setup);
        if Faulty::is_wanted(&setup.plan.fault) {
            AnyDevice::Faulty(Box::new(Faulty::new(model, setup)))
        } else {
            AnyDevice::Sound(Box::new(model))
        }
    }
}

impl Device for AnyDevice {
    fn get_budget(&mut self, now: SimTime, out: &mut Actions) -> Option<u32> {
        match self {
            AnyDevice::Sound(device) => device.get_budget(now, out),
            AnyDevice::Faulty(device) => device.get_budget(now, out),
            AnyDevice::Captured(device) => device.get_budget(now, out),
        }
    }

    fn put_budget(&mut self, token: u32) {
        match self {
            AnyDevice::Sound(device) => device.put_budget(token),
            AnyDevice::Faulty(device) => device.put_budget(token),
            AnyDevice::Captured(device) => device.put_budget(token),
        }
    }

    fn queue_rq(&mut self, command: &Command, now: SimTime, out: &mut Actions) -> Reply {
        match self {
            AnyDevice::Sound(device) => device.queue_rq(command, now, out),
            AnyDevice::Faulty(device) => device.queue_rq(command, now, out),
            AnyDevice::Captured(device) => device.queue_rq(command, now, out),
        }
    }

    fn commit_rqs(&mut self, hctx: HctxId, now: SimTime, out: &mut Actions) {
        match self {
            AnyDevice::Sound(device) => device.commit_rqs(hctx, now, out),
            AnyDevice::Faulty(device) => device.commit_rqs(hctx, now, out),
            AnyDevice::Captured(device) => device.commit_rqs(hctx, now, out),
        }
    }

    fn timer(&mut self, mark: u64, now: SimTime, out: &mut Actions) {
        match self {
            AnyDevice::Sound(device) => device.timer(mark, now, out),
            AnyDevice::Faulty(device) => device.timer(mark, now, out),
            AnyDevice::Captured(device) => device.timer(mark, now, out),
        }
    }

    fn interrupt(&mut self, vector: u32, now: SimTime, out: &mut Actions) -> Option<Found> {
        match self {
            AnyDevice::Sound(device) => device.interrupt(vector, now, out),
            AnyDevice::Faulty(device) => device.interrupt(vector, now, out),
            AnyDevice::Captured(device) => device.interrupt(vector, now, out),
        }
    }

    fn poll(&mut self, hctx: HctxId, now: SimTime, out: &mut Actions) -> Option<Found> {
        match self {
            AnyDevice::Sound(device) => device.poll(hctx, now, out),
            AnyDevice::Faulty(device) => device.poll(hctx, now, out),
            AnyDevice::Captured(device) => device.poll(hctx, now, out),
        }
    }

    fn ended(&mut self, rq: RequestId, now: SimTime, out: &mut Actions) {
        match self {
            AnyDevice::Sound(device) => device.ended(rq, now, out),
            AnyDevice::Faulty(device) => device.ended(rq, now, out),
            AnyDevice::Captured(device) => device.ended(rq, now, out),
        }
    }

    fn in_flight(&self) -> u32 {
        match self {
            AnyDevice::Sound(device) => device.in_flight(),
            AnyDevice::Faulty(device) => device.in_flight(),
            AnyDevice::Captured(device) => device.in_flight(),
        }
    }

    fn describe(&self) -> String {
        match self {
            AnyDevice::Sound(device) => device.describe(),
            AnyDevice::Faulty(device) => device.describe(),
            AnyDevice::Captured(device) => device.describe(),
        }
    }
}
