//! submit_bio() of a bio-based mapped device: a path is chosen, and a clone of the bio is submitted
//! to its queue.
//!
//! Such a device has no requests and no tags: its queue has only bios. A worker maps again the bios
//! that the target holds, another one those that came while the device was suspended
//! (`bio_work.rs`). Not here: the choice itself (`dm/multipath/choose.rs`), the clone's end
//! (`bio_end.rs`). Kernel: dm_submit_bio(), __map_bio() in drivers/md/dm.c, multipath_map_bio() in
//! dm-mpath.c (6.1.192; dm_make_request() in dm.c of 4.12).

use super::bio_work::defer;
use super::map::{answer, release, rules, wants};
use super::submit::strip_flush;
use crate::call::{BioEndOf, BioFrom, Call, ThenUnplug};
use crate::dm::multipath::{Ask, Choice, Flag};
use crate::dm::{Incoming, Mapped as ToPath, Mapping};
use crate::env::{Cpu, TraceAction};
use crate::names::labels;
use crate::queue::{BioTio, BlkMq, DEFERRED, LockKind, Mapped, RequestQueue};
use crate::request::{Bio, BioId, IoPrio, QueueId, Sector, Sectors, Status};
use crate::rules::{BioMap, FlushClone, InFlight};
use crate::step::{Cx, Next, Traced, trace_rq, trace_with};

labels! {
    pub enum At in "map-bio" {
        /// Trace Q. Is the device suspended?
        Enter,
        /// Under md->deferred_lock: the bio waits until the device resumes.
        Defer,
        /// The device counts it: per CPU, or in one counter (4.20).
        Pending,
        /// An answer for the choice of a path.
        Choose,
        /// start_io(): the selector counts it. The clone goes to the queue of the path.
        StartIo,
        /// The clone was submitted, or the bio is held, deferred or ended.
        Over,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MapBio {
    pub(super) at: At,
    pub(super) queue: QueueId,
    bio: BioId,
    comes: BioFrom,
    bytes: u32,
    choice: Option<Choice>,
    /// The target holds the bio, and the choice has a step after that.
    held: bool,
    /// The path, once one was chosen, and the clone's length.
    mapped: Option<ToPath>,
}

impl MapBio {
    /// submit_bio() of a bio in the pool of a bio-based device.
    pub fn new(queue: QueueId, bio: BioId) -> MapBio {
        MapBio::of(queue, bio, BioFrom::New)
    }

    pub(super) fn of(queue: QueueId, bio: BioId, comes: BioFrom) -> MapBio {
        MapBio {
            at: match comes {
                BioFrom::New | BioFrom::Deferred => At::Enter,
                BioFrom::Held => At::Choose,
            },
            queue,
            bio,
            comes,
            bytes: 0,
            choice: None,
            held: false,
            mapped: None,
        }
    }

    /// A suspension waits for it (synchronize_srcu()): it has seen a device that was not suspended,
    /// and the clone was not submitted yet. A held bio is counted.
    pub(super) fn in_section(&self) -> bool {
        let looked = matches!(self.at, At::Pending | At::Choose | At::StartIo);
        looked && self.comes != BioFrom::Held
    }

    /// The bio without a path, if it must not be held any more.
    pub fn finds_no_path(&self) -> Option<BioId> {
        let asked = self.choice.map(|choice| choice.ask());
        let asks = matches!(asked, Some(Ok(Ask::HoldIfQueues | Ask::MustDefer)));
        (asks || self.asks_flag()).then_some(self.bio)
    }

    /// It reads whether bios are held (4.20).
    fn asks_flag(&self) -> bool {
        let asked = self.choice.map(|choice| choice.ask());
        matches!(asked, Some(Ok(Ask::Flag(Flag::QueueIfNoPath))))
    }

    /// It owns the bio, which was not sent to a path, held, deferred or ended.
    pub fn has_bio(&self) -> bool {
        self.at != At::Over && !self.held
    }

    /// It is being mapped: neither submitted nor given up.
    pub fn is_mapping(&self) -> bool {
        matches!(self.at, At::Pending | At::Choose | At::StartIo)
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let m = cx.q.own_mapped();
        match self.at {
            At::Enter => self.enter(cx, m),
            At::Defer => {
                defer(m, self.queue, self.bio, cx.cpu);
                self.to(At::Over)
            }
            At::Pending => {
                match rules(cx.q).in_flight {
                    InFlight::Counted => m.pending.add(cx.cpu, 1),
                    InFlight::Tags => m.state.held(cx.cpu.id).pending += 1,
                }
                self.begin_choice(cx, m)
            }
            At::Choose => match self.choice {
                None => self.begin_choice(cx, m),
                Some(choice) => self.choose(m, choice, cx.cpu),
            },
            At::StartIo => self.submit(cx, m),
            At::Over => Next::Done,
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let m = mq.queue(self.queue).own_mapped();
        assert!(m.bios.is_some(), "queue {} maps bios", self.queue);
        let at = self.at;
        assert!(
            self.choice.is_none() || at == At::Choose,
            "{at:?} with a choice"
        );
        assert_eq!(
            self.mapped.is_some(),
            at == At::StartIo,
            "{at:?} and a path"
        );
    }

    pub(super) fn check_over(&self) {
        assert_eq!(self.at, At::Over, "it is not over");
        assert!(self.mapped.is_none(), "it has a path");
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn enter(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        if self.comes == BioFrom::New {
            if let Some(next) = strip_flush(cx, self.bio) {
                self.at = At::Over;
                return next;
            }
            let traced = Traced::bio(cx.cpu.tracing, &cx.pool(), self.bio);
            trace_rq(cx.cpu, self.queue, TraceAction::Queue, traced);
        }
        let looks = self.comes == BioFrom::New || looks_again(cx.q);
        if looks && m.own_bios().blocked.test(cx.cpu) {
            self.at = At::Defer;
            return cx.lock(LockKind::Target, DEFERRED);
        }
        m.state.held(cx.cpu.id).bios[self.bio.0 as usize] = BioTio::default();
        self.to(At::Pending)
    }

    fn begin_choice(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        self.bytes = to_map(cx.pool().bio(self.bio)).0 * 512;
        let io = self.incoming(cx.cpu);
        let choice = m.state.held(cx.cpu.id).target.choice(io);
        self.at = At::Choose;
        self.choice = Some(choice);
        wants(self.queue, m, choice)
    }

    /// A held bio is not read any more: it may have ended.
    fn incoming(&self, cpu: &Cpu) -> Incoming {
        Incoming {
            bytes: self.bytes,
            cpu: cpu.id,
            now: cpu.now(),
            bio: Some(self.bio),
        }
    }

    fn choose(&mut self, m: &Mapped, mut choice: Choice, cpu: &mut Cpu) -> Next {
        let io = self.incoming(cpu);
        self.held |= choice.ask() == Ok(Ask::Hold);
        let (access, over) = answer(self.queue, m, &mut choice, io, cpu);
        self.choice = over.is_none().then_some(choice);
        if let Some(Mapping::To(mapped)) = over {
            self.mapped = Some(mapped);
            let tio = &mut m.state.held(cpu.id).bios[self.bio.0 as usize];
            (tio.mapped, tio.started) = (Some(mapped), io.now);
        }
        release(m, access, cpu);
        match over {
            None => wants(self.queue, m, choice),
            Some(Mapping::To(_)) => self.to(At::StartIo),
            Some(Mapping::Held) => self.to(At::Over),
            Some(Mapping::Kill(status)) => self.end(status, cpu),
            Some(Mapping::Requeue | Mapping::DelayRequeue) => self.end(Status::Again, cpu),
        }
    }

    /// The bio gets no path. A held one ends as its clone does (process_queued_bios()), with the
    /// path that it had last.
    fn end(&mut self, status: Status, cpu: &mut Cpu) -> Next {
        self.at = At::Over;
        let (queue, bio) = (self.queue, self.bio);
        let of = match self.comes {
            BioFrom::Held => BioEndOf::Held,
            BioFrom::New | BioFrom::Deferred => BioEndOf::Unmapped(status),
        };
        Next::call(cpu, Call::BioEnd { queue, bio, of })
    }

    /// start_io() of the selector, then submit_bio_noacct() of the clone.
    fn submit(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let mapped = self.mapped.take().expect("a path was chosen");
        m.accounts[mapped.path.index()].write(cx.cpu);
        let below = m.queue_of(mapped.path);
        let lower = cx.mq.queue(below);
        let clone = {
            let pool = cx.pool();
            let mut own = lower.pool.held(cx.cpu.id);
            let flush = cx.rules().device_mapper.flush_clone;
            let clone = own.add_bio(clone_of(self.bio, pool.bio(self.bio), flush));
            clone.expect("the queue of a path has room for each bio above")
        };
        {
            let mut state = m.state.held(cx.cpu.id);
            state.target.start(mapped);
            state.bios[self.bio.0 as usize].clone = Some(clone);
        }
        if self.comes != BioFrom::Held {
            let own = lower.pool.held(cx.cpu.id);
            let (traced, from) = (
                Traced::bio(cx.cpu.tracing, &own, clone),
                own.bio(clone).sector,
            );
            drop(own);
            trace_with(cx.cpu, below, TraceAction::Remap, traced, from.0);
        }
        self.at = At::Over;
        cx.call(Call::Submit {
            queue: below,
            bio: clone,
            then: lower.single.is_some().then_some(THEN),
        })
    }
}

/// A clone asks for the unplug of a single-queue one itself: its submitter may be gone.
const THEN: ThenUnplug = ThenUnplug::Bio;

/// The worker of deferred bios submits them again, instead of continuing with the state that it has
/// read (6.1).
pub(super) fn looks_again(q: &RequestQueue) -> bool {
    q.settings.rules.device_mapper.bio_map == BioMap::UnderLock
}

/// The mapped part of a bio: its data comes after its flush.
fn to_map(bio: &Bio) -> Sectors {
    match bio.flags.preflush {
        true => Sectors(0),
        false => bio.sectors,
    }
}

/// A clone refers to its bio. It may wait, and is not polled for.
fn clone_of(id: BioId, bio: &Bio, flush: FlushClone) -> Bio {
    let mut clone = bio.copied();
    clone.owner = id.0;
    clone.flags.nowait = false;
    clone.flags.polled = false;
    clone.sectors = to_map(bio);
    if clone.flags.preflush {
        clone.segments = 0;
        if flush == FlushClone::OfDevice {
            (clone.flags.fua, clone.flags.sync) = (false, true);
            (clone.sector, clone.ioprio) = (Sector(0), IoPrio::default());
        }
    }
    clone
}
