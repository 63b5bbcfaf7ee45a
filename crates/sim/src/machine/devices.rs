//! The devices of a machine, each with the time of its last call and the prices of its driver's
//! work.
//!
//! Not here: the devices themselves (`device/`); their actions that concern the block layer
//! (`effects.rs`).

use core::ops::Index;

use blkmq::queue::HwQueue;
use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::layer::Layer;
use crate::device::{Actions, Charges, Device, DeviceSetup, make};
use crate::plan::{DeviceId, DiskPlan, Plan};

/// A device with its driver's prices.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) device: Box<dyn Device>,
    /// The time of its latest call; a call of an earlier time does not set it back.
    now: SimTime,
    pub(super) charges: Charges,
    /// Requests of its queue are mapped to others.
    pub(super) mapped: bool,
}

#[derive(Debug)]
pub(super) struct Devices {
    all: Vec<Attached>,
    /// Buffers for devices' actions; calls nest.
    spare: Vec<Actions>,
}

impl Index<DeviceId> for Devices {
    type Output = Attached;

    #[inline]
    fn index(&self, device: DeviceId) -> &Attached {
        &self.all[device.index()]
    }
}

impl Devices {
    /// The devices of a plan, each below its queues.
    pub(super) fn new(plan: &Plan, layer: &Layer) -> Devices {
        let plans: Vec<&DiskPlan> = plan.queues().collect();
        let attached = layer.numbers.devices().map(|(device, above)| {
            let (queue, of) = (layer.mq.queue(above[0]), plans[above[0].index()]);
            let vectors: Vec<CpuId> = queue.hctxs.iter().map(vector_cpu).collect();
            let requests = above
                .iter()
                .map(|queue| plans[queue.index()].capacity.requests);
            let setup = DeviceSetup {
                requests: requests.sum(),
                units: above.len() as u16,
                ..DeviceSetup::of(plan, device, of, &vectors)
            };
            Attached {
                device: make(&setup),
                now: SimTime::ZERO,
                charges: of.info().charges,
                mapped: queue.mapped.is_some(),
            }
        });
        Devices {
            all: attached.collect(),
            spare: Vec::new(),
        }
    }

    /// Replaces a device; `wrap` gets the old one, to wrap or to drop.
    pub(super) fn replace(
        &mut self,
        device: DeviceId,
        with: impl FnOnce(Box<dyn Device>) -> Box<dyn Device>,
    ) {
        let old = self.all.remove(device.index());
        let new = Attached {
            device: with(old.device),
            ..old
        };
        self.all.insert(device.index(), new);
    }

    /// Calls a device at `at`: its answer, and its actions, whose buffer must be returned to
    /// [`Self::take_back`].
    #[inline]
    pub(super) fn call<R>(
        &mut self,
        device: DeviceId,
        at: SimTime,
        call: impl FnOnce(&mut dyn Device, SimTime, &mut Actions) -> R,
    ) -> (R, Actions) {
        let mut actions = self.spare.pop().unwrap_or_default();
        let called = &mut self.all[device.index()];
        called.now = called.now.max(at);
        let answer = call(&mut *called.device, called.now, &mut actions);
        (answer, actions)
    }

    /// A unit of a device goes out of reach, or comes back.
    pub(super) fn set_out(&mut self, device: DeviceId, unit: u16, out: bool) {
        self.all[device.index()].device.set_out(unit, out);
    }

    /// Takes a buffer of actions back.
    #[inline]
    pub(super) fn take_back(&mut self, actions: Actions) {
        debug_assert!(actions.is_empty(), "a device asked for more");
        self.spare.push(actions);
    }

    /// Some device may accept a command that it has just refused.
    pub(super) fn fickle(&self) -> bool {
        self.all.iter().any(|attached| attached.device.fickle())
    }

    /// Some device has a command due after `since`.
    pub(super) fn anything_due_after(&self, since: SimTime) -> bool {
        let mut all = self.all.iter();
        all.any(|attached| attached.device.due_after(since).is_some())
    }
}

/// CPU of an hctx's interrupt vector: the first that maps to it.
fn vector_cpu(hctx: &HwQueue) -> CpuId {
    hctx.cpumask.first().copied().unwrap_or_default()
}
