//! Which events belong to which request, as the kernel's trace tells it.
//!
//! The kernel's side of a comparison: no rule of a scheduler is applied here. Slots are those of
//! the model's pool, so that both sides name a request alike.

use std::fmt;

use blkmq::request::{Bio, Direction, IoPrio, Op, OpFlags, RequestId, Sector, Sectors};
use blkmq::rules::QueueLimits;

use super::event::Event;

/// Sectors of the longest request: the kernel counts its bytes in 32 bits.
pub(super) const LONGEST: u32 = u32::MAX >> 9;

/// Where the kernel has a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Allocated: in a plug, or on its way to the scheduler.
    Fresh,
    /// In the scheduler or a software queue.
    Queued,
    /// The scheduler gave it out; the driver does not have it yet.
    Chosen,
    /// With the driver.
    Issued,
}

/// A request of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: At,
    pub(super) op: Op,
    pub(super) flags: OpFlags,
    pub(super) sector: Sector,
    pub(super) sectors: Sectors,
    pub(super) ioprio: IoPrio,
    /// Task of the allocation.
    pub(super) pid: u32,
    /// CPU of the allocation.
    pub(super) cpu: u16,
    /// Number of the allocation or insertion: smaller is older.
    pub(super) age: u64,
    /// Its address, once a probe told it.
    pub(super) rq: Option<u64>,
    /// It came with PREFLUSH or FUA.
    pub(super) flush: bool,
    /// Its C came before its D.
    pub(super) ended_early: bool,
    /// Sectors completed so far.
    done: u32,
}

impl Entry {
    pub(super) fn end(&self) -> Sector {
        self.sector.end(self.sectors)
    }

    /// Its range and priority as one bio, one segment long: how many it has is not recorded.
    pub(super) fn as_bio(&self) -> Bio {
        let mut bio = Bio::default();
        bio.op = self.op;
        bio.flags = self.flags;
        bio.sector = self.sector;
        bio.sectors = self.sectors;
        bio.segments = 1;
        bio.ioprio = self.ioprio;
        bio
    }

    pub(super) fn is(&self, event: &Event) -> bool {
        self.op.direction() == event.op.direction()
            && self.sector == event.sector
            && self.sectors == event.sectors
    }
}

/// Direction, start and length.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}+{}",
            letter(self.op),
            self.sector.0,
            self.sectors.0
        )
    }
}

/// Letter of an operation in a choice: as in the scripts of mq-deadline.
pub(super) fn letter(op: Op) -> char {
    match op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Flush => 'F',
        Op::Discard => 'D',
        Op::WriteZeroes => 'Z',
    }
}

/// All live requests of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    slots: Vec<Option<Entry>>,
    free: Vec<u32>,
    ages: u64,
}

impl Ledger {
    /// Room for so many requests at once.
    pub(super) fn new(requests: usize) -> Ledger {
        Ledger {
            slots: vec![None; requests],
            free: (0..requests as u32).rev().collect(),
            ages: 0,
        }
    }

    /// The entry of a live request. Panics if the slot is free.
    pub(super) fn entry(&self, id: RequestId) -> &Entry {
        self.slots[id.0 as usize].as_ref().expect("a live request")
    }

    /// The entry, to change it. Panics if the slot is free.
    pub(super) fn entry_mut(&mut self, id: RequestId) -> &mut Entry {
        self.slots[id.0 as usize].as_mut().expect("a live request")
    }

    /// True while the slot is in use.
    pub(super) fn is_live(&self, id: RequestId) -> bool {
        self.slots[id.0 as usize].is_some()
    }

    /// All live requests.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestId, &Entry)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, entry)| Some((RequestId(slot as u32), entry.as_ref()?)))
    }

    /// A new request from the event that allocated it. `None` when all slots are in use.
    pub(super) fn open(&mut self, event: &Event, ioprio: IoPrio) -> Option<RequestId> {
        let slot = self.free.pop()?;
        let entry = Entry {
            at: At::Fresh,
            op: event.op,
            flags: event.flags,
            sector: event.sector,
            sectors: event.sectors,
            ioprio,
            pid: event.pid,
            cpu: event.cpu,
            age: self.next_age(),
            rq: None,
            flush: event.flags.is_flush(),
            ended_early: false,
            done: 0,
        };
        self.slots[slot as usize] = Some(entry);
        Some(RequestId(slot))
    }

    /// The slot is free again.
    pub(super) fn close(&mut self, id: RequestId) {
        assert!(
            self.slots[id.0 as usize].take().is_some(),
            "{id:?} closed twice"
        );
        self.free.push(id.0);
    }

    /// A number greater than those before.
    pub(super) fn next_age(&mut self) -> u64 {
        self.ages += 1;
        self.ages
    }

    /// The oldest request in a place for which `test` holds.
    pub(super) fn oldest(&self, at: At, test: impl Fn(&Entry) -> bool) -> Option<RequestId> {
        self.iter()
            .filter(|(_, entry)| entry.at == at && test(entry))
            .min_by_key(|(_, entry)| entry.age)
            .map(|(id, _)| id)
    }

    /// The request that an insertion or issue without scheduler is about: allocated, of this
    /// range; of this task rather than of another.
    pub(super) fn fresh(&self, event: &Event) -> Option<RequestId> {
        self.oldest(At::Fresh, |e| e.is(event) && e.pid == event.pid)
            .or_else(|| self.oldest(At::Fresh, |e| e.is(event)))
    }

    /// The request in the task's plug that takes the bio of a merge event: only the last one that
    /// was added is asked, and it must touch, be alike and stay within limits.
    pub(super) fn in_plug(
        &self,
        event: &Event,
        front: bool,
        limits: &QueueLimits,
    ) -> Option<RequestId> {
        let (id, last) = self
            .iter()
            .filter(|(_, e)| e.at == At::Fresh && e.pid == event.pid)
            .max_by_key(|(_, e)| e.age)?;
        let touches = if front {
            event.sector.end(event.sectors) == last.sector
        } else {
            last.end() == event.sector
        };
        let most = limits.max_sectors.max(limits.max_discard_sectors);
        let fits = last.sectors.0.saturating_add(event.sectors.0) <= most;
        (touches && fits && last.op == event.op && !last.flush).then_some(id)
    }

    /// A bio or a request joined `id` on this side. The error says why that cannot be.
    pub(super) fn grow(&mut self, id: RequestId, event: &Event, front: bool) -> Result<(), String> {
        let entry = self.entry_mut(id);
        let sectors = entry.sectors.0.saturating_add(event.sectors.0);
        if sectors > LONGEST {
            let more = event.sectors.0;
            return Err(format!(
                "{entry} takes {more} sectors more than a request can have"
            ));
        }
        if front {
            entry.sector = event.sector;
        }
        entry.sectors.0 = sectors;
        Ok(())
    }

    /// A queued request that a bio of this event can have joined.
    pub(super) fn queued_beside(&self, event: &Event, front: bool) -> Option<RequestId> {
        self.oldest(At::Queued, |e| {
            let touches = if front {
                event.sector.end(event.sectors) == e.sector
            } else {
                e.end() == event.sector
            };
            touches && e.op == event.op
        })
    }

    /// Notes that `sectors` more completed; true if that was all.
    pub(super) fn complete(&mut self, id: RequestId, sectors: Sectors) -> bool {
        let entry = self.entry_mut(id);
        entry.done = entry.sectors.0.min(entry.done + sectors.0);
        entry.done == entry.sectors.0
    }

    /// The issued request that a completion is about. After a part has completed the rest starts
    /// later.
    pub(super) fn completing(&self, event: &Event) -> Option<RequestId> {
        self.oldest(At::Issued, |e| {
            e.op.direction() == event.op.direction()
                && e.sector.0 + u64::from(e.done) == event.sector.0
                && event.sectors.0 <= e.sectors.0 - e.done
        })
    }

    /// What the kernel's scheduler holds, to print: by direction in order of sectors.
    pub(super) fn show_queued(&self, indent: &str) -> String {
        let mut text = String::new();
        for (direction, name) in [(Direction::Read, "reads"), (Direction::Write, "writes")] {
            let mut list: Vec<&Entry> = self
                .iter()
                .map(|(_, entry)| entry)
                .filter(|e| e.at == At::Queued && e.op.direction() == direction)
                .collect();
            list.sort_by_key(|e| (e.sector, e.age));
            if list.is_empty() {
                continue;
            }
            text.push_str(&format!("{indent}{name} by sector ({}):", list.len()));
            for entry in &list {
                text.push_str(&format!(" {}+{}", entry.sector.0, entry.sectors.0));
            }
            text.push('\n');
        }
        if text.is_empty() {
            text = format!("{indent}nothing queued\n");
        }
        text
    }
}

/// A bio as an event shows it, one segment long: how many it has is not recorded.
pub(super) fn bio_of(event: &Event, ioprio: IoPrio) -> Bio {
    let mut bio = Bio::default();
    bio.op = event.op;
    bio.flags = event.flags;
    bio.sector = event.sector;
    bio.sectors = event.sectors;
    bio.segments = 1;
    bio.ioprio = ioprio;
    bio
}
