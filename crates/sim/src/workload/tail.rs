//! What a round of a stream ends with: an fsync(2) of its files, and reads of what it wrote.
//!
//! Reads to verify come in the order of the writes if these are random with a map, and in order of
//! position otherwise, where a later write takes the place of those that it overlaps. With a
//! backlog some come between the writes. After fio 3.33 backend.c do_io(), do_verify(), iolog.c
//! log_io_piece(), verify.c get_next_verify(), io_u.c check_get_verify(). do_verify() syncs no
//! file: the files are closed by then.

use std::collections::{BTreeMap, VecDeque};

use super::NextIo;
use crate::plan::{DiskId, Order, ThreadPlan, VerifyPlan};
use blkmq::request::{IoPrio, Op, Sector, Sectors};
use blkmq::time::Duration;

/// A piece that was written: its disk and first sector, and its length.
type Place = (DiskId, Sector);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The round itself.
    Round,
    /// The fsync(2) of the file of this number, which may have been returned.
    Sync(usize, bool),
    Verify,
}

#[derive(Clone, Debug)]
pub(super) struct Tail {
    // Settings.
    disks: Vec<DiskId>,
    /// end_fsync or fsync_on_close of a job that writes.
    syncs: bool,
    verify: Option<VerifyPlan>,
    /// In the order of the writes.
    in_order: bool,

    // State.
    phase: Phase,
    list: VecDeque<(Place, Sectors)>,
    tree: BTreeMap<Place, Sectors>,
    /// Not complete: they cannot be verified yet.
    in_flight: Vec<Place>,
    /// Reads that the backlog still gets.
    batch: u32,
    /// The last I/O that completed was a read (last_ddir).
    has_read: bool,
}

impl Tail {
    /// `None` if nothing follows a round.
    pub(super) fn of(plan: &ThreadPlan) -> Option<Box<Tail>> {
        let writes = plan.mix.write_percent > 0;
        let syncs = plan.writes.end_fsync && writes;
        let verify = plan.writes.verify.filter(|_| writes);
        let depth = plan.iodepth as usize;
        (syncs || verify.is_some()).then(|| {
            Box::new(Tail {
                disks: plan.files.iter().map(|file| file.disk).collect(),
                syncs,
                verify,
                in_order: plan.order == Order::RandomOnce,
                phase: Phase::Round,
                list: VecDeque::new(),
                tree: BTreeMap::new(),
                in_flight: Vec::with_capacity(depth),
                batch: 0,
                has_read: false,
            })
        })
    }

    /// Reads follow a round.
    pub(super) fn verifies(&self) -> bool {
        self.verify.is_some_and(|verify| verify.after)
    }

    /// The round itself goes on.
    pub(super) fn is_before(&self) -> bool {
        self.phase == Phase::Round
    }

    /// An fsync(2) follows the round.
    pub(super) fn is_sync(&self) -> bool {
        matches!(self.phase, Phase::Sync(..))
    }

    /// The next I/O of what follows the round.
    pub(super) fn next(&mut self) -> Option<NextIo> {
        match self.phase {
            Phase::Sync(number, false) => {
                self.phase = Phase::Sync(number, true);
                Some(NextIo {
                    op: Op::Flush,
                    disk: self.disks[number],
                    sector: Sector(0),
                    prio: IoPrio::default(),
                    sectors: Sectors(0),
                    not_before: Duration::ZERO,
                })
            }
            Phase::Verify => self.piece(),
            Phase::Round | Phase::Sync(..) => None,
        }
    }

    /// Nothing is in flight any more: the next part of what follows the round. False: that was all.
    /// `synced`: the last I/O was a sync; `did`: the round had I/Os; `over`: the run is over.
    pub(super) fn advances(&mut self, synced: bool, did: bool, over: bool) -> bool {
        let sync = match self.phase {
            Phase::Round => (self.syncs && !synced).then_some(0),
            Phase::Sync(number, returned) => Some(number + usize::from(returned)),
            Phase::Verify => None,
        };
        if let Some(number) = sync.filter(|number| *number < self.disks.len()) {
            self.phase = Phase::Sync(number, false);
            return true;
        }
        let verified = self.phase == Phase::Verify;
        self.phase = Phase::Round;
        if verified || over || !did || !self.verifies() {
            return false;
        }
        self.phase = Phase::Verify;
        true
    }

    /// The next read of the backlog, in place of another I/O.
    pub(super) fn backlog(&mut self) -> Option<NextIo> {
        let verify = self.verify.filter(|verify| verify.backlog > 0)?;
        let logged = (self.list.len() + self.tree.len()) as u64;
        if logged == 0 {
            return None;
        }
        if self.batch == 0 {
            if self.has_read || !logged.is_multiple_of(u64::from(verify.backlog)) {
                return None;
            }
            self.batch = match verify.batch {
                0 => verify.backlog,
                batch => batch,
            };
        }
        let piece = self.piece()?;
        self.batch -= 1;
        Some(piece)
    }

    /// log_io_piece().
    pub(super) fn writes(&mut self, io: &NextIo) {
        if !self.verifies() {
            return;
        }
        let place = (io.disk, io.sector);
        self.in_flight.push(place);
        if self.in_order {
            self.list.push_back((place, io.sectors));
            return;
        }
        let end = (io.disk, Sector(io.sector.0 + u64::from(io.sectors.0)));
        while let Some((&other, &sectors)) = self.tree.range(..end).next_back() {
            let overlaps = other.0 == io.disk && other.1.0 + u64::from(sectors.0) > io.sector.0;
            if !overlaps {
                break;
            }
            self.tree.remove(&other);
        }
        self.tree.insert(place, io.sectors);
    }

    pub(super) fn completed(&mut self, io: &NextIo) {
        self.has_read = io.op == Op::Read;
        if io.op == Op::Write
            && let Some(number) = self
                .in_flight
                .iter()
                .position(|place| *place == (io.disk, io.sector))
        {
            self.in_flight.swap_remove(number);
        }
    }

    /// get_next_verify(): the first piece, unless it is in flight.
    fn piece(&mut self) -> Option<NextIo> {
        let (place, sectors) = match self.tree.first_key_value() {
            Some((place, sectors)) => (*place, *sectors),
            None => *self.list.front()?,
        };
        if self.in_flight.contains(&place) {
            return None;
        }
        match self.tree.pop_first() {
            Some(_) => {}
            None => drop(self.list.pop_front()),
        }
        let (disk, sector) = place;
        Some(NextIo {
            op: Op::Read,
            disk,
            prio: IoPrio::default(),
            sector,
            sectors,
            not_before: Duration::ZERO,
        })
    }
}
