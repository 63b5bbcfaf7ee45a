//! Events of the targets of mapped queues: messages, activations of paths, the timer of held
//! requests, devices that go out of reach and come back.
//!
//! A worker of kblockd delivers calls to a target, on the CPU that asked or the first.
//! Deviation(D27): kmpath_handlerd's workers and multipathd are no tasks of their own. Not here:
//! the target's own work (`path/target.rs` of blkmq).

use blkmq::dm::PathId;
use blkmq::dm::multipath::{InitResult, Message};
use blkmq::env::Answer;
use blkmq::path::ToTarget;
use blkmq::request::{CpuId, QueueId};
use blkmq::time::{Duration, SimTime};

use super::cpus::Cpus;
use super::event::{Event, Of, class};
use super::numbers::Numbers;
use crate::plan::{DeviceId, MappedPlan, Plan};

#[derive(Clone, Copy, Debug)]
pub(super) enum Happens {
    /// A call to a target, on behalf of a CPU.
    ToTarget(QueueId, ToTarget, CpuId),
    /// A unit of a device goes out of reach, or comes back.
    Out(DeviceId, u16, bool),
    /// The timer of held requests of this queue expires, unless it was set again.
    Timer(QueueId, u32, CpuId),
    /// multipathd checks a path that has failed while its device was within reach.
    Look(QueueId, PathId, CpuId),
}

#[derive(Clone, Debug)]
struct Target {
    queue: QueueId,
    /// Moves when the timer of held requests is armed or cancelled.
    generation: u32,
    /// There is a hardware handler.
    handler: bool,
    /// How long an activation by it takes.
    activation: Duration,
    /// Between two checks of multipathd.
    interval: Duration,
    /// When multipathd reinstates paths that have an outage; it does not touch the others.
    backs: Vec<(PathId, SimTime)>,
    /// Paths that are out of reach.
    out: Vec<PathId>,
    /// The device of each path, and its unit there.
    units: Vec<(DeviceId, u16)>,
}

/// When paths with an outage are to be reinstated.
fn reinstatements(mapped: &MappedPlan) -> Vec<(PathId, SimTime)> {
    let all = mapped.messages.iter().filter_map(|&(at, what)| match what {
        Message::Reinstate(path) => Some((path, SimTime(at.0))),
        _ => None,
    });
    let has_outage = |path: PathId| mapped.outages.iter().any(|outage| outage.path == path);
    all.filter(|&(path, _)| has_outage(path)).collect()
}

#[derive(Clone, Debug)]
pub(super) struct Targets {
    mapped: Vec<Target>,
    all: Vec<Happens>,
    /// Events of the plan, in the order of their times.
    planned: Vec<(SimTime, Happens)>,
    refused: u64,
}

impl Targets {
    pub(super) fn new(plan: &Plan, numbers: &Numbers) -> Targets {
        let mut of = Targets {
            mapped: Vec::new(),
            all: Vec::new(),
            planned: Vec::new(),
            refused: 0,
        };
        for (disk, mapped) in plan.mapped_disks() {
            let queue = numbers.queue_of(disk);
            let below = numbers.below(disk).iter();
            let units = below.map(|&below| {
                let ends = numbers.ends(below);
                (ends.device, ends.unit)
            });
            let units: Vec<(DeviceId, u16)> = units.collect();
            let at = |time: Duration| SimTime(time.0);
            for outage in &mapped.outages {
                let (device, unit) = units[outage.path.index()];
                let happens = |out| Happens::Out(device, unit, out);
                of.planned.push((at(outage.from), happens(true)));
                of.planned.push((at(outage.to), happens(false)));
            }
            for &(time, what) in &mapped.messages {
                let message = Happens::ToTarget(queue, what.into(), CpuId(0));
                of.planned.push((at(time), message));
            }
            of.mapped.push(Target {
                queue,
                generation: 0,
                handler: mapped.table.hw_handler.is_some(),
                activation: mapped.activation,
                interval: mapped.interval,
                backs: reinstatements(mapped),
                out: Vec::new(),
                units,
            });
        }
        of
    }

    pub(super) fn start(&mut self, cpus: &mut Cpus) {
        for (time, happens) in core::mem::take(&mut self.planned) {
            self.push(cpus, time, happens);
        }
    }

    fn push(&mut self, cpus: &mut Cpus, time: SimTime, happens: Happens) {
        let number = self.all.len() as u32;
        self.all.push(happens);
        let event = Event::Happens(Of::new(number, 0));
        cpus.core.events.push(time, class::TIMER, event);
    }

    pub(super) fn later(
        &mut self,
        cpus: &mut Cpus,
        id: CpuId,
        (queue, what): (QueueId, ToTarget),
        after: Duration,
    ) {
        let time = cpus.at(id) + after;
        self.push(cpus, time, Happens::ToTarget(queue, what, id));
    }

    /// Result of a call to a target.
    pub(super) fn heard(
        &mut self,
        cpus: &mut Cpus,
        id: CpuId,
        (queue, what): (QueueId, ToTarget),
        answer: Answer,
    ) {
        match (what, answer) {
            (ToTarget::Activate(path), Answer::GoOn) => self.activates(cpus, id, queue, path),
            (ToTarget::Message(Message::Reinstate(_)), Answer::Resource) => {
                // multipathd finds it out of use at its next check.
                let interval = self.of(queue).interval;
                self.later(cpus, id, (queue, what), interval);
            }
            (_, Answer::Resource) => self.refused += 1,
            _ => {}
        }
    }

    /// multipathd gets the event that a path has failed. If the event came late, when the path had
    /// been reinstated for the last time, its next check finds the device within reach and the path
    /// out of use.
    pub(super) fn path_failed(&mut self, cpus: &mut Cpus, id: CpuId, queue: QueueId, path: PathId) {
        let at = cpus.at(id);
        let target = self.of(queue);
        let last = target.backs.iter().filter(|(of, _)| *of == path);
        let last = last.map(|(_, back)| *back).max();
        if last.is_some_and(|last| last < at) && !target.out.contains(&path) {
            let interval = target.interval.0.max(1);
            let look = SimTime((at.0 / interval + 1) * interval);
            self.push(cpus, look, Happens::Look(queue, path, id));
        }
    }

    /// Messages that were refused, as their devices were suspended.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// The device of a path is being activated.
    fn activates(&mut self, cpus: &mut Cpus, id: CpuId, queue: QueueId, path: PathId) {
        let target = self.of(queue);
        // scsi_dh_activate() answers at once if the device has no handler.
        let (result, after) = match target.handler {
            false => (InitResult::NoHandler, Duration::ZERO),
            true if target.out.contains(&path) => (InitResult::Failed, target.activation),
            true => (InitResult::Ok, target.activation),
        };
        self.later(cpus, id, (queue, ToTarget::Activated(path, result)), after);
    }

    /// The timer of held requests is set or cancelled.
    pub(super) fn timer(
        &mut self,
        cpus: &mut Cpus,
        id: CpuId,
        queue: QueueId,
        after: Option<Duration>,
    ) {
        let target = self.of(queue);
        target.generation = target.generation.wrapping_add(1);
        let generation = target.generation;
        if let Some(after) = after {
            let time = cpus.wheel_after(cpus.at(id), after);
            self.push(cpus, time, Happens::Timer(queue, generation, id));
        }
    }

    /// The meaning of an event, unless it is void.
    pub(super) fn due(&mut self, of: Of) -> Option<Happens> {
        let happens = self.all[of.whom() as usize];
        match happens {
            Happens::Timer(queue, generation, id) => (self.of(queue).generation == generation)
                .then_some(Happens::ToTarget(queue, ToTarget::TimerExpires, id)),
            Happens::Out(device, unit, out) => {
                for target in &mut self.mapped {
                    let path = target.units.iter().position(|&own| own == (device, unit));
                    let Some(path) = path.map(|path| PathId(path as u16)) else {
                        continue;
                    };
                    match out {
                        true => target.out.push(path),
                        false => target.out.retain(|&other| other != path),
                    }
                }
                Some(happens)
            }
            Happens::Look(queue, path, id) => {
                // A path that is out of reach again is reinstated later.
                let within_reach = !self.of(queue).out.contains(&path);
                let reinstate = ToTarget::Message(Message::Reinstate(path));
                within_reach.then_some(Happens::ToTarget(queue, reinstate, id))
            }
            Happens::ToTarget(..) => Some(happens),
        }
    }

    fn of(&mut self, queue: QueueId) -> &mut Target {
        let mut targets = self.mapped.iter_mut();
        let found = targets.find(|target| target.queue == queue);
        found.expect("the queue is mapped")
    }
}
