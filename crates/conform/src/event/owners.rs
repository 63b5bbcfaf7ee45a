//! The device of a probe or a plug of ftrace: only block events name one.
//!
//! An insertion's probe is of the device whose `block_rq_insert` (or merge) follows it on the same
//! CPU. A dispatch call is of the device of its returned request, else of the request for which it
//! found no token, else of its task's events just before and after it. An entry belongs to the
//! return that follows it. Not here: the meaning of the events (`text.rs`).

use std::collections::BTreeMap;

use blkmq::elevator::Probes;
use trace::ftrace::{self, DeviceNumber, Probe, Record};

use super::text::shape;

/// A request by its start and bytes, as block events and the probes of dispatch calls have it.
type Range = (u64, u32);

/// Device of each record that names none, where it is known.
pub(super) fn of_probes(
    records: &[Record],
    schedulers: &[(DeviceNumber, &'static Probes)],
) -> Vec<Option<DeviceNumber>> {
    let devices = records.iter().filter_map(|r| Some(shape(&r.event)?.0));
    let mut all: Vec<DeviceNumber> = devices.collect();
    all.sort_unstable();
    all.dedup();
    if let [only] = all[..] {
        return vec![Some(only); records.len()];
    }
    let mut owners = vec![None; records.len()];
    own_plugs(records, &mut owners);
    let issued = issued_next(records);
    let mut requests = Requests::default();
    for (index, record) in records.iter().enumerate() {
        requests.take(index, record, issued[index], &mut owners);
    }
    own_sole(records, schedulers, &mut owners);
    own_neighbours(records, &mut owners);
    owners
}

#[derive(Default)]
struct Requests {
    /// By address, the latest of each.
    of_address: BTreeMap<u64, DeviceNumber>,
    /// The same of those whose insertion a probe saw, until they are dispatched.
    inserted: BTreeMap<u64, DeviceNumber>,
    /// Inserted and not dispatched, oldest first.
    queued: BTreeMap<Range, Vec<DeviceNumber>>,
    /// Insertions of which only the probe was seen, by CPU.
    arriving: BTreeMap<u16, (usize, u64)>,
    /// Calls that have not returned, by CPU.
    asking: BTreeMap<u16, usize>,
    /// The device for which the call of a CPU found no token.
    throttled: BTreeMap<u16, DeviceNumber>,
    /// Device of the latest completion of a CPU.
    completed: BTreeMap<u16, DeviceNumber>,
}

impl Requests {
    /// `issued`: the device that gets the range of this return next.
    fn take(
        &mut self,
        index: usize,
        record: &Record,
        issued: Option<DeviceNumber>,
        owners: &mut [Option<DeviceNumber>],
    ) {
        let cpu = record.cpu;
        match &record.event {
            ftrace::Event::Probe(Probe::Insert(rq)) => {
                self.arriving.insert(cpu, (index, rq.rq));
            }
            ftrace::Event::RequestInsert(rq) | ftrace::Event::RequestMerge(rq) => {
                if let Some((probe, address)) = self.arriving.remove(&cpu) {
                    owners[probe] = Some(rq.device);
                    self.of_address.insert(address, rq.device);
                    self.inserted.insert(address, rq.device);
                }
                self.forget(rq.device, rq.sector);
                if matches!(record.event, ftrace::Event::RequestInsert(_)) {
                    let queued = self.queued.entry((rq.sector, rq.bytes)).or_default();
                    queued.push(rq.device);
                }
            }
            ftrace::Event::RequestIssue(rq) => self.forget(rq.device, rq.sector),
            ftrace::Event::RequestComplete(done) => {
                self.completed.insert(cpu, done.device);
            }
            ftrace::Event::KyberThrottled { device, .. } => {
                self.throttled.insert(cpu, *device);
            }
            ftrace::Event::Probe(Probe::DispatchEntry { .. }) => {
                self.asking.insert(cpu, index);
                self.throttled.remove(&cpu);
            }
            ftrace::Event::Probe(
                probe @ (Probe::DeadlineReturn { .. } | Probe::DispatchReturn { .. }),
            ) => {
                let throttled = self.throttled.remove(&cpu);
                owners[index] = self.returned(probe, issued).or(throttled);
                if let Some(entry) = self.asking.remove(&cpu) {
                    owners[entry] = owners[index];
                }
            }
            ftrace::Event::Probe(Probe::Finish { rq, .. }) => {
                let known = self.of_address.get(rq);
                owners[index] = known.or(self.completed.get(&cpu)).copied();
            }
            _ => {}
        }
    }

    /// The device whose request a call gave.
    fn returned(&mut self, probe: &Probe, issued: Option<DeviceNumber>) -> Option<DeviceNumber> {
        let (address, range) = match *probe {
            Probe::DeadlineReturn { chosen, .. } => (chosen?.0, None),
            Probe::DispatchReturn { request, .. } => {
                let request = request?;
                (request.rq, Some((request.sector, request.bytes)))
            }
            _ => return None,
        };
        let queued = range.and_then(|range| self.queued.get(&range));
        let queued = queued.and_then(|queued| {
            let both = issued.filter(|device| queued.contains(device));
            both.or(queued.first().copied())
        });
        let known = self.inserted.remove(&address).or(queued).or(issued);
        let device = known.or(self.of_address.get(&address).copied())?;
        self.of_address.insert(address, device);
        if let Some((sector, _)) = range {
            self.forget(device, sector);
        }
        Some(device)
    }

    /// The request at this sector is not queued any more, or has another length.
    fn forget(&mut self, device: DeviceNumber, sector: u64) {
        for (_, queued) in self.queued.range_mut((sector, 0)..=(sector, u32::MAX)) {
            queued.retain(|&of| of != device);
        }
    }
}

/// For the return of a dispatch call: the device that gets a request of the same range next.
fn issued_next(records: &[Record]) -> Vec<Option<DeviceNumber>> {
    let mut next: BTreeMap<Range, DeviceNumber> = BTreeMap::new();
    let mut issued = vec![None; records.len()];
    for (record, issued) in records.iter().zip(&mut issued).rev() {
        match &record.event {
            ftrace::Event::RequestIssue(rq) => {
                next.insert((rq.sector, rq.bytes), rq.device);
            }
            ftrace::Event::Probe(Probe::DispatchReturn {
                request: Some(request),
                ..
            }) => *issued = next.get(&(request.sector, request.bytes)).copied(),
            _ => {}
        }
    }
    issued
}

/// A probe on a scheduler that only one device has.
fn own_sole(
    records: &[Record],
    schedulers: &[(DeviceNumber, &'static Probes)],
    owners: &mut [Option<DeviceNumber>],
) {
    for (record, owner) in records.iter().zip(owners) {
        let has = |(_, probes): &&(DeviceNumber, &Probes)| {
            let names = [probes.dispatch_entry, probes.dispatch_return, probes.finish];
            names.contains(&record.name.as_str())
        };
        let mut having = schedulers.iter().filter(has);
        if let (Some((device, _)), None) = (having.next(), having.next()) {
            *owner = owner.or(Some(*device));
        }
    }
}

/// A call that returned nothing belongs to the run that its task is in, if the task's events before
/// and after it are of one device. Of any other call the device is unknown.
fn own_neighbours(records: &[Record], owners: &mut [Option<DeviceNumber>]) {
    let before = neighbours(records, owners, 0..records.len());
    let after = neighbours(records, owners, (0..records.len()).rev());
    let mut asking: BTreeMap<u16, usize> = BTreeMap::new();
    for (index, record) in records.iter().enumerate() {
        match &record.event {
            ftrace::Event::Probe(Probe::DispatchEntry { .. }) => {
                asking.insert(record.cpu, index);
            }
            ftrace::Event::Probe(Probe::DeadlineReturn { .. } | Probe::DispatchReturn { .. }) => {
                let entry = asking.remove(&record.cpu).unwrap_or(index);
                if owners[index].is_none() {
                    owners[index] = before[entry].filter(|_| before[entry] == after[index]);
                    owners[entry] = owners[index];
                }
            }
            _ => {}
        }
    }
}

/// For each record: the device of its task's event that comes before it in this order.
fn neighbours(
    records: &[Record],
    owners: &[Option<DeviceNumber>],
    order: impl Iterator<Item = usize>,
) -> Vec<Option<DeviceNumber>> {
    let mut latest: BTreeMap<(u32, u16), DeviceNumber> = BTreeMap::new();
    let mut found = vec![None; records.len()];
    for index in order {
        let record = &records[index];
        // Idle tasks have one number on all CPUs.
        let cpu = if record.pid == 0 { record.cpu } else { 0 };
        let task = (record.pid, cpu);
        found[index] = latest.get(&task).copied();
        let named = match &record.event {
            // An interrupt is not of its task.
            ftrace::Event::RequestComplete(_) | ftrace::Event::Probe(Probe::Finish { .. }) => None,
            event => shape(event).map(|(device, ..)| device).or(owners[index]),
        };
        if let Some(device) = named {
            latest.insert(task, device);
        }
    }
    found
}

/// A plug begins with the last request that its task got. An unplug is of the device of the task's
/// next event: a plug may hold requests of several devices, and flushes them one by one.
fn own_plugs(records: &[Record], owners: &mut [Option<DeviceNumber>]) {
    let mut latest: BTreeMap<u32, DeviceNumber> = BTreeMap::new();
    for (record, owner) in records.iter().zip(&mut *owners) {
        match &record.event {
            ftrace::Event::GetRequest(bio) => {
                latest.insert(record.pid, bio.device);
            }
            ftrace::Event::Plug(_) | ftrace::Event::Unplug { .. } => {
                *owner = latest.get(&record.pid).copied();
            }
            _ => {}
        }
    }
    let mut next: BTreeMap<u32, DeviceNumber> = BTreeMap::new();
    for (record, owner) in records.iter().zip(owners).rev() {
        match &record.event {
            ftrace::Event::RequestInsert(rq)
            | ftrace::Event::RequestIssue(rq)
            | ftrace::Event::RequestMerge(rq) => {
                next.insert(record.pid, rq.device);
            }
            ftrace::Event::GetRequest(_) => {
                next.remove(&record.pid);
            }
            ftrace::Event::Unplug { .. } => *owner = next.get(&record.pid).copied().or(*owner),
            _ => {}
        }
    }
}
