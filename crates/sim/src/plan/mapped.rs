//! A device whose requests are mapped to others: its paths, and their events.

use blkmq::dm::PathId;
use blkmq::dm::multipath::Message;
use blkmq::dm::table::{QueueMode, Table};
use blkmq::elevator::SchedulerSettings;
use blkmq::request::{QueueId, SetId};
use blkmq::time::Duration;

use super::{Capacity, DeviceKind, DiskId, DiskPlan, FaultPlan, Owner, Plan};

/// A device-mapper device over the paths of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedPlan {
    /// Queues of the paths with their devices, those of the first group first. They are not disks:
    /// no job can use one. Some may be units of one device: see [`Plan::join_paths`].
    pub below: Vec<DiskPlan>,
    pub table: Table,
    /// Module parameter queue_if_no_path_timeout_secs; 0: never.
    pub timeout_secs: u64,
    /// multipath.conf's no_path_retry, if it is set; `messages` has its effects.
    pub no_path_retry: Option<String>,
    /// How long a hardware handler takes to activate a path.
    pub activation: Duration,
    /// Times at which a path's device is out of reach.
    pub outages: Vec<Outage>,
    /// Messages to its target with their times, as `dmsetup message` and multipathd send them.
    pub messages: Vec<(Duration, Message)>,
    /// Between two checks of a path by multipathd, which repeats refused messages.
    pub interval: Duration,
    /// Suspensions, in order of time.
    pub suspensions: Vec<Suspension>,
}

/// `dmsetup suspend` and `dmsetup resume` of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suspension {
    /// Time of suspend, from the start of the run.
    pub at: Duration,
    /// `--noflush` of suspend.
    pub noflush: bool,
    /// Time of resume, or as soon as the suspension is complete.
    pub resume: Duration,
}

/// A path's device is out of reach for a time: its commands fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    pub path: PathId,
    pub from: Duration,
    pub to: Duration,
}

impl MappedPlan {
    /// The paths of a table, without events.
    pub fn new(table: Table, below: Vec<DiskPlan>) -> MappedPlan {
        MappedPlan {
            below,
            table,
            timeout_secs: 0,
            no_path_retry: None,
            activation: Duration::from_millis(1),
            outages: Vec::new(),
            messages: Vec::new(),
            interval: Duration::from_secs(5),
            suspensions: Vec::new(),
        }
    }
}

impl Plan {
    /// Maps the requests of a disk to the paths of `mapped` instead of its own device, whose queue,
    /// name and size it keeps. Faults of that device are dropped.
    ///
    /// # Panics
    /// If nothing is below, if there is not one device for each path, if one of them is mapped
    /// itself, or if the disk is one of several of one device.
    pub fn map(&mut self, disk: DiskId, mapped: MappedPlan) {
        let paths = mapped.table.paths().count();
        assert!(paths > 0, "a mapped device has a path");
        assert_eq!(paths, mapped.below.len(), "each path has a device");
        let mut owners = self.disks.iter().filter_map(|of| of.owner);
        let of = &self.disks[disk.index()];
        let joined = of.owner.is_some() || owners.any(|owner| owner == Owner::Disk(disk));
        assert!(!joined, "{} is joined with others", of.device.name);
        let mut mapped = mapped;
        for lower in &mut mapped.below {
            let above = matches!(lower.device.kind, DeviceKind::Mapped(_));
            assert!(!above, "mapped devices are above others");
            lower.owner = None;
        }
        let of = &mut self.disks[disk.index()];
        of.device.fault = FaultPlan::NONE;
        of.device.budget = 0;
        of.device.kind = DeviceKind::Mapped(Box::new(mapped));
        of.give_below_room();
        self.number_below();
    }

    /// Attaches paths, of one mapped device or of several, to the device of the first of them:
    /// units of one host that draw from one tag set, as [`Plan::join`] does for disks. To be called
    /// after [`Plan::map`].
    ///
    /// # Panics
    /// If there is no such path; if they differ, or if one belongs to another device already.
    pub fn join_paths(&mut self, paths: &[(DiskId, PathId)]) {
        let [first, others @ ..] = paths else {
            panic!("a host has units");
        };
        let alike = self.path(*first).clone();
        assert!(alike.owner.is_none(), "{}", alike.device.name);
        let mut outages = alike.device.fault.outages;
        for &other in others {
            assert_ne!(other, *first, "a unit is one path");
            let own = self.paths().iter().any(|&of| {
                let owner = self.path(of).owner;
                owner == Some(Owner::Path(other.0, other.1))
            });
            let lower = self.path_mut(other);
            let name = &lower.device.name;
            assert!(!own, "{name} has units of its own");
            assert!(lower.owner.is_none(), "{name} is of another device already");
            assert_eq!(lower.device.kind, alike.device.kind, "{name}");
            let (here, there) = (lower.device.fault, alike.device.fault);
            outages |= here.outages;
            let there = FaultPlan {
                outages: here.outages,
                ..there
            };
            assert_eq!(here, there, "{name}");
            lower.owner = Some(Owner::Path(first.0, first.1));
        }
        for &path in paths {
            self.path_mut(path).device.fault.outages = outages;
        }
        self.number_below();
    }

    /// Queues below disks have tag sets of their own, numbered after those of disks; units of one
    /// device share one.
    pub fn number_below(&mut self) {
        let sets = self.disks.iter().map(|disk| disk.set.0 + 1).max();
        let mut next = sets.unwrap_or(0);
        for path in self.paths() {
            let lower = self.path_mut(path);
            next += u16::from(lower.owner.is_none());
            lower.set = SetId(next - 1);
        }
    }

    /// All paths in the order of their queues' numbers: units of one device are adjacent, at the
    /// place of the first of them.
    pub(crate) fn paths(&self) -> Vec<(DiskId, PathId)> {
        let disks = (0..).map(DiskId).zip(&self.disks);
        let all = disks.flat_map(|(disk, of)| {
            let paths = (0..).map(PathId).zip(of.below());
            paths.map(move |(path, lower)| ((disk, path), lower.owner))
        });
        let all: Vec<_> = all.collect();
        let mut ordered = Vec::with_capacity(all.len());
        for &(path, owner) in &all {
            if owner.is_none() {
                let here = Some(Owner::Path(path.0, path.1));
                let units = all.iter().filter(|(_, owner)| *owner == here);
                ordered.push(path);
                ordered.extend(units.map(|(unit, _)| *unit));
            }
        }
        ordered
    }

    /// The queue of a path with its device.
    pub(crate) fn path(&self, (disk, path): (DiskId, PathId)) -> &DiskPlan {
        &self.disks[disk.index()].below()[path.index()]
    }

    fn path_mut(&mut self, (disk, path): (DiskId, PathId)) -> &mut DiskPlan {
        let mapped = self.disks[disk.index()].mapped_mut();
        &mut mapped.expect("the disk is mapped").below[path.index()]
    }

    /// Numbers of the queues of a disk's paths, in their order; empty unless it is mapped.
    pub fn queues_below(&self, disk: DiskId) -> Vec<QueueId> {
        let numbers = (self.disks.len() as u16..).map(QueueId).zip(self.paths());
        let mut below: Vec<_> = numbers.filter(|(_, (of, _))| *of == disk).collect();
        below.sort_by_key(|(_, (_, path))| *path);
        below.into_iter().map(|(queue, _)| queue).collect()
    }

    /// Disks that are mapped, with their paths.
    pub fn mapped_disks(&self) -> impl Iterator<Item = (DiskId, &MappedPlan)> {
        let disks = (0..).map(DiskId).zip(&self.disks);
        disks.filter_map(|(disk, of)| Some((disk, of.mapped()?)))
    }

    /// Suspensions of all devices, in order of time.
    pub fn suspensions(&self) -> Vec<(DiskId, Suspension)> {
        let disks = self.mapped_disks();
        let all =
            disks.flat_map(|(disk, mapped)| mapped.suspensions.iter().map(move |&of| (disk, of)));
        let mut all: Vec<(DiskId, Suspension)> = all.collect();
        all.sort_by_key(|(_, of)| of.at);
        all
    }

    /// All queues with their devices, in the order of their numbers: those of disks, then the
    /// queues below them.
    pub fn queues(&self) -> impl Iterator<Item = &DiskPlan> {
        let below = self.paths().into_iter().map(|path| self.path(path));
        self.disks.iter().chain(below)
    }
}

impl DiskPlan {
    /// Its mapping, if it is a mapped disk.
    pub fn mapped(&self) -> Option<&MappedPlan> {
        match &self.device.kind {
            DeviceKind::Mapped(plan) => Some(plan),
            DeviceKind::NullBlk(_)
            | DeviceKind::Nvme(_)
            | DeviceKind::ScsiDebug(_)
            | DeviceKind::Ahci(_)
            | DeviceKind::Fc(_) => None,
        }
    }

    /// Its bios are mapped, not its requests (queue_mode bio): it has no requests.
    pub fn maps_bios(&self) -> bool {
        let mapped = self.mapped();
        mapped.is_some_and(|mapped| mapped.table.queue_mode == QueueMode::Bio)
    }

    fn mapped_mut(&mut self) -> Option<&mut MappedPlan> {
        match &mut self.device.kind {
            DeviceKind::Mapped(plan) => Some(plan),
            _ => None,
        }
    }

    /// Each bio above has one below at a time. No task submits below, unless bios are mapped: then
    /// their submitters and two workers do.
    pub fn give_below_room(&mut self) {
        let (bios, requests) = (self.capacity.bios, self.capacity.requests);
        let waiters = match self.maps_bios() {
            true => self.capacity.waiters + 2,
            false => 0,
        };
        let Some(mapped) = self.mapped_mut() else {
            return;
        };
        for lower in &mut mapped.below {
            let own = lower.capacity_of_tags();
            // Clones of a single-queue queue may have the numbers of the requests above.
            let single = lower.queue.rules.single_queue.is_some();
            lower.capacity = Capacity {
                bios,
                waiters,
                requests: match single {
                    true => own.requests.max(requests),
                    false => own.requests,
                },
                ..own
            };
            lower.device.fault.outages |= !mapped.outages.is_empty();
        }
    }

    pub fn capacity_of_tags(&self) -> Capacity {
        let (device, queue) = (&self.device, &self.queue);
        let hctxs = device.default_queues + device.read_queues + device.poll_queues;
        // With one tag map for all there is one scheduler map as well.
        let maps = if device.hctx_shared {
            1
        } else {
            u32::from(hctxs)
        };
        let driver_tags = maps * device.queue_depth;
        let sched_tags = if queue.scheduler == SchedulerSettings::None {
            0
        } else {
            maps * queue.nr_requests
        };
        let identities = if queue.rules.single_queue.is_some() {
            blkmq::queue::slots_for(queue.nr_requests)
        } else if sched_tags == 0 {
            driver_tags
        } else {
            sched_tags
        };
        Capacity {
            hctxs,
            driver_tags,
            sched_tags,
            requests: identities + u32::from(hctxs),
            bios: 0,
            waiters: 0,
        }
    }

    /// Queues below its device; none of most devices.
    pub fn below(&self) -> &[DiskPlan] {
        self.mapped().map_or(&[], |plan| &plan.below)
    }
}
