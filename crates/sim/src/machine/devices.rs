//! The devices of a machine, each with the time of its last call and what its driver's work costs.
//!
//! Not here: what a device does (`device/`); what it asks for in return, which concerns the block
//! layer (`effects.rs`).

use core::ops::Index;

use blkmq::queue::HwQueue;
use blkmq::request::CpuId;
use blkmq::time::SimTime;

use super::layer::Layer;
use crate::device::{Actions, Charges, Device, DeviceSetup, make};
use crate::plan::{DeviceId, DiskPlan, Plan};

/// A device under its queues.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) device: Box<dyn Device>,
    /// The latest time it was called at; CPUs that run ahead do not take it back.
    now: SimTime,
    /// What its driver's work costs.
    pub(super) charges: Charges,
    /// Requests of its queue are mapped to others.
    pub(super) mapped: bool,
}

#[derive(Debug)]
pub(super) struct Devices {
    all: Vec<Attached>,
    /// Buffers for what devices ask for; calls nest.
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
    /// Those of a plan, each under its queues.
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
                units: above.len() as u8,
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

    /// Puts another device in the place of one, which it gets to wrap or to drop.
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

    /// Calls a device at `at`: its answer, and what it asks for, to be given back to
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

    /// A unit of a device is out of reach from now on, or is not.
    pub(super) fn set_out(&mut self, device: DeviceId, unit: u8, out: bool) {
        self.all[device.index()].device.set_out(unit, out);
    }

    /// All that a device asked for is done.
    #[inline]
    pub(super) fn take_back(&mut self, actions: Actions) {
        debug_assert!(actions.is_empty(), "a device asked for more");
        self.spare.push(actions);
    }

    /// A device may take what it has just refused.
    pub(super) fn fickle(&self) -> bool {
        self.all.iter().any(|attached| attached.device.fickle())
    }

    /// A device has something due after `since`.
    pub(super) fn anything_due_after(&self, since: SimTime) -> bool {
        let mut all = self.all.iter();
        all.any(|attached| attached.device.due_after(since).is_some())
    }
}

/// CPU of an hctx's interrupt vector: the first that maps to it.
fn vector_cpu(hctx: &HwQueue) -> CpuId {
    hctx.cpumask.first().copied().unwrap_or_default()
}
