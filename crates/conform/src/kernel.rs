//! The kernel's side: its requests and their places, by the capture.
//!
//! No rule of a scheduler is applied here.

use std::collections::{BTreeMap, BTreeSet};

use blkmq::request::{Direction, IoPrio, Op, OpFlags, Sector, Sectors};

use super::event::{Event, LONGEST};

/// Where the kernel has a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// Allocated: in a plug, or on its way to the scheduler.
    Fresh,
    /// In the scheduler or a software queue.
    Queued,
    /// Chosen by the scheduler, or with the driver.
    Gone,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Where,
    pub(super) op: Op,
    pub(super) flags: OpFlags,
    pub(super) sector: Sector,
    pub(super) sectors: Sectors,
    pub(super) ioprio: IoPrio,
    pub(super) pid: u32,
    pub(super) cpu: u16,
}

impl Entry {
    fn end(&self) -> u64 {
        self.sector.end(self.sectors).0
    }

    fn is(&self, event: &Event) -> bool {
        self.op.direction() == event.op.direction() && self.sectors == event.sectors
    }
}

/// Requests of one device that have not gone to the driver, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernel {
    live: BTreeMap<u64, Entry>,
    starts: BTreeSet<(u64, u64)>,
    ends: BTreeSet<(u64, u64)>,
    /// Requests by address, where probes have it.
    addresses: BTreeMap<u64, u64>,
    numbers: u64,
}

impl Kernel {
    fn add(&mut self, id: u64, entry: Entry) {
        self.starts.insert((entry.sector.0, id));
        self.ends.insert((entry.end(), id));
        self.live.insert(id, entry);
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.live.remove(&id)?;
        self.starts.remove(&(entry.sector.0, id));
        self.ends.remove(&(entry.end(), id));
        Some(entry)
    }

    fn at(&self, start: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let ids = self.starts.range((start, 0)..=(start, u64::MAX));
        ids.map(|&(_, id)| (id, &self.live[&id]))
    }

    fn ending(&self, end: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let ids = self.ends.range((end, 0)..=(end, u64::MAX));
        ids.map(|&(_, id)| (id, &self.live[&id]))
    }

    pub(super) fn open(&mut self, event: &Event, ioprio: IoPrio) {
        self.numbers += 1;
        let entry = Entry {
            at: Where::Fresh,
            op: event.op,
            flags: event.flags,
            sector: event.sector,
            sectors: event.sectors,
            ioprio,
            pid: event.pid,
            cpu: event.cpu,
        };
        self.add(self.numbers, entry);
    }

    fn fresh(&self, event: &Event) -> Option<u64> {
        let all = || {
            let at = self.at(event.sector.0);
            at.filter(|(_, e)| e.at == Where::Fresh && e.is(event))
        };
        let own = all().find(|(_, e)| e.pid == event.pid);
        own.or_else(|| all().next()).map(|(id, _)| id)
    }

    /// I: inserts a request.
    pub(super) fn insert(&mut self, event: &Event, known: Option<(u64, IoPrio)>) -> Entry {
        let fresh = self.fresh(event);
        if fresh.is_none() {
            self.open(event, event.ioprio.unwrap_or_default());
        }
        let id = fresh.unwrap_or(self.numbers);
        let mut entry = self.remove(id).expect("it was found or opened");
        entry.at = Where::Queued;
        // Age is the order of insertion.
        self.numbers += 1;
        if let Some((address, ioprio)) = known {
            entry.ioprio = ioprio;
            self.addresses.insert(address, self.numbers);
        }
        self.add(self.numbers, entry.clone());
        entry
    }

    /// M or F of a bio: the request that it joined, as it was, if the trace shows one.
    pub(super) fn merge(&mut self, event: &Event, front: bool) -> Result<Option<Entry>, String> {
        let edge = event.sector.end(event.sectors).0;
        let fits = |(_, e): &(u64, &Entry)| e.op == event.op && e.at != Where::Gone;
        let found: Vec<(u64, Where, bool)> = match front {
            true => self
                .at(edge)
                .filter(fits)
                .map(|(id, e)| own(id, e, event))
                .collect(),
            false => {
                let all = self.ending(event.sector.0).filter(fits);
                all.map(|(id, e)| own(id, e, event)).collect()
            }
        };
        // In the task's own plug the newest; else the oldest that is queued.
        let plugged = found
            .iter()
            .rev()
            .find(|&&(_, at, own)| at == Where::Fresh && own);
        let id = plugged.or_else(|| found.iter().find(|&&(_, at, _)| at == Where::Queued));
        let Some(&(id, ..)) = id else { return Ok(None) };
        let before = self.live[&id].clone();
        self.grow(id, event, front)?;
        Ok(Some(before))
    }

    fn grow(&mut self, id: u64, event: &Event, front: bool) -> Result<(), String> {
        let mut entry = self.remove(id).expect("a live request grows");
        let sectors = entry.sectors.0.saturating_add(event.sectors.0);
        if sectors > LONGEST {
            let what = format!(
                "{} takes {} sectors more than a request can have",
                range(entry.op, entry.sector, entry.sectors),
                event.sectors.0
            );
            return Err(what);
        }
        if front {
            entry.sector = event.sector;
        }
        entry.sectors.0 = sectors;
        self.add(id, entry);
        Ok(())
    }

    /// M of a request: it joins the one before it. True if the trace shows both.
    pub(super) fn absorb(&mut self, event: &Event) -> Result<bool, String> {
        let queued = || {
            let at = self.at(event.sector.0);
            at.filter(|(_, e)| e.at == Where::Queued && e.is(event))
                .map(|(id, _)| id)
                .next()
        };
        let gone = self.fresh(event).or_else(queued);
        if let Some(gone) = gone {
            self.remove(gone);
        }
        let before = self
            .ending(event.sector.0)
            .find(|(_, e)| e.at == Where::Queued && e.op == event.op)
            .map(|(id, _)| id);
        if let Some(before) = before {
            self.grow(before, event, false)?;
        }
        Ok(gone.is_some() && before.is_some())
    }

    /// A dispatch call gave this request. True if it was queued.
    pub(super) fn choose(&mut self, address: u64, start: Sector) -> bool {
        let known = self.addresses.remove(&address);
        let known = known.filter(|id| self.live.get(id).is_some_and(|e| e.at == Where::Queued));
        let queued = || {
            self.at(start.0)
                .find(|(_, e)| e.at == Where::Queued)
                .map(|(id, _)| id)
        };
        let Some(id) = known.or_else(queued) else {
            return false;
        };
        self.remove(id);
        true
    }

    /// The request of this D is in the scheduler or in a software queue.
    pub(super) fn is_queued(&self, event: &Event) -> bool {
        let mut here = self.at(event.sector.0);
        here.any(|(_, e)| e.at == Where::Queued && e.is(event))
    }

    /// D: it is with the driver.
    pub(super) fn issue(&mut self, event: &Event, queued_too: bool) -> bool {
        let fits = |(_, e): &(u64, &Entry)| e.is(event);
        let queued = self
            .at(event.sector.0)
            .filter(fits)
            .find(|(_, e)| queued_too && e.at == Where::Queued)
            .map(|(id, _)| id);
        let Some(id) = queued.or_else(|| self.fresh(event)) else {
            return false;
        };
        self.remove(id);
        true
    }

    /// C of a bare flush, which never goes to the device itself.
    pub(super) fn end_bare(&mut self, event: &Event) -> bool {
        let bare = self.fresh(event);
        bare.and_then(|id| self.remove(id)).is_some()
    }

    /// Requests in the scheduler or in software queues, oldest first.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Entry> {
        self.live.values().filter(|entry| entry.at == Where::Queued)
    }

    /// The same to print: by direction in order of sectors.
    pub(super) fn show(&self) -> String {
        let mut text = String::new();
        for (direction, name) in [(Direction::Read, "reads"), (Direction::Write, "writes")] {
            let mut list: Vec<&Entry> = self
                .queued()
                .filter(|e| e.op.direction() == direction)
                .collect();
            list.sort_by_key(|e| e.sector);
            if list.is_empty() {
                continue;
            }
            text.push_str(&format!("  {name} by sector ({}):", list.len()));
            for entry in &list {
                text.push_str(&format!(" {}+{}", entry.sector.0, entry.sectors.0));
            }
            text.push('\n');
        }
        if text.is_empty() {
            "  nothing queued\n".clone_into(&mut text);
        }
        text
    }
}

fn own(id: u64, entry: &Entry, event: &Event) -> (u64, Where, bool) {
    (id, entry.at, entry.pid == event.pid)
}

/// A request as reports name it: `R 50+8` is a read of 8 sectors from 50 on. The letters are those
/// of the scripts of mq-deadline.
pub(super) fn range(op: Op, sector: Sector, sectors: Sectors) -> String {
    let letter = match op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Flush => 'F',
        Op::Discard => 'D',
        Op::WriteZeroes => 'Z',
    };
    format!("{letter} {}+{}", sector.0, sectors.0)
}
