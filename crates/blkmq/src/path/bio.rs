//! submit_bio() of a bio-based mapped device: a path is chosen, and a clone of the bio is submitted
//! to its queue.
//!
//! Such a device has no requests and no tags: its queue has only bios. A worker maps again the bios
//! that the target holds, another one those that came while the device was suspended
//! (`bio_work.rs`). Not here: the choice itself (`dm/multipath/choose.rs`), the clone's end
//! (`bio_end.rs`). Kernel: dm_submit_bio(), __map_bio() in drivers/md/dm.c, multipath_map_bio() in
//! dm-mpath.c (6.1.192; dm_make_request() in dm.c of 4.12).

use super::bio_work::defer;
use super::map::{Io, choose_path, rules};
use super::submit::strip_flush;
use crate::call::{BioEndOf, BioFrom, Call, ThenUnplug};
use crate::dm::multipath::{Ask, Flag};
use crate::dm::{Mapped as ToPath, Mapping};
use crate::env::TraceAction;
use crate::queue::{BioTio, DEFERRED, LockKind, RequestQueue};
use crate::request::{Bio, BioId, IoPrio, QueueId, Sector, Sectors, Status};
use crate::rules::{BioMap, FlushClone, InFlight};
use crate::step::{Cx, Next, Steps as _, Traced, labels, trace_rq, trace_with};
use steps::steps;

pub use map_bio::State as MapBio;

/// dm_submit_bio() of a bio in the pool of a bio-based device, or __map_bio() of one that the
/// target holds.
#[steps(path)]
pub fn map_bio(cx: &mut Cx<'_>, bio: BioId, comes: BioFrom) {
    if comes == BioFrom::Held {
        at!(Choose);
    } else {
        /// Trace Q. Is the device suspended?
        at!(Enter);
        if comes == BioFrom::New {
            if let Some(next) = strip_flush(cx, bio) {
                assert_eq!(next, Next::Step, "no device is above a bio-based one");
                at!(Over);
                return;
            }
            let traced = Traced::bio(cx.cpu.tracing, &cx.pool(), bio);
            trace_rq(cx.cpu, cx.q.id, TraceAction::Queue, traced);
        }
        let m = cx.q.own_mapped();
        let looks = comes == BioFrom::New || looks_again(cx.q);
        if looks && m.own_bios().blocked.test(cx.cpu) {
            /// Under md->deferred_lock: the bio waits until the device resumes.
            lock!(Defer, cx.lock(LockKind::Target, DEFERRED));
            defer(cx.q.own_mapped(), cx.q.id, bio, cx.cpu);
            at!(Over);
            return;
        }
        m.state.held(cx.cpu.id).bios[bio.0 as usize] = BioTio::default();
        /// The device counts it: per CPU, or in one counter (4.20).
        at!(Pending);
        match rules(cx.q).in_flight {
            InFlight::Counted => cx.q.own_mapped().pending.add(cx.cpu, 1),
            InFlight::Tags => cx.q.own_mapped().state.held(cx.cpu.id).pending += 1,
        }
    }
    /// An answer for the choice of a path.
    let mapping = sub!(Choose, choose_path(io_of(cx, bio)));
    match mapping {
        Mapping::To(to) => {
            let to: ToPath = to;
            /// start_io(): the selector counts it. The clone goes to the queue of the path.
            at!(StartIo);
            let call = clone_bio(cx, bio, to, comes);
            /// The clone was submitted, or the bio is held, deferred or ended.
            call!(Over, call);
        }
        Mapping::Held => at!(Over),
        Mapping::Kill(status) => call!(Over, without_path(cx.q.id, bio, comes, status)),
        Mapping::Requeue | Mapping::DelayRequeue => {
            call!(Over, without_path(cx.q.id, bio, comes, Status::Again));
        }
    }
}

labels! {
    pub enum At in "map-bio" of map_bio
}

impl MapBio {
    /// A suspension waits for it (synchronize_srcu()): it has seen a device that was not suspended,
    /// and the clone was not submitted yet. A held bio is counted.
    pub(super) fn in_section(&self) -> bool {
        self.is_mapping() && self.comes != BioFrom::Held
    }

    /// It is being mapped: neither submitted nor given up.
    pub fn is_mapping(&self) -> bool {
        let maps = [At::Pending, At::Choose, At::StartIo];
        maps.into_iter().any(|at| at.label() == self.label)
    }

    /// The bio without a path, if it must not be held any more.
    pub fn finds_no_path(&self) -> Option<BioId> {
        let asks = self.find::<choose_path::State>()?.asks()?;
        let flag = Ask::Flag(Flag::QueueIfNoPath);
        let finds = [Ask::HoldIfQueues, Ask::MustDefer, flag].contains(&asks);
        finds.then_some(self.bio)
    }

    /// It owns the bio, which was not sent to a path, held, deferred or ended.
    pub fn has_bio(&self) -> bool {
        let choice = self.find::<choose_path::State>();
        let held = choice.is_some_and(choose_path::State::has_held);
        self.label != At::Over.label() && !held
    }
}

fn io_of(cx: &Cx<'_>, bio: BioId) -> Io {
    Io::Bio(bio, to_map(cx.pool().bio(bio)).0 * 512)
}

/// The bio gets no path. A held one ends as its clone does (process_queued_bios()), with the path
/// that it had last.
fn without_path(queue: QueueId, bio: BioId, comes: BioFrom, status: Status) -> Call {
    let of = match comes {
        BioFrom::Held => BioEndOf::Held,
        BioFrom::New | BioFrom::Deferred => BioEndOf::Unmapped(status),
    };
    Call::BioEnd { queue, bio, of }
}

/// start_io() of the selector, then submit_bio_noacct() of the clone.
fn clone_bio(cx: &mut Cx<'_>, bio: BioId, to: ToPath, comes: BioFrom) -> Call {
    let m = cx.q.own_mapped();
    m.accounts[to.path.index()].write(cx.cpu);
    let queue = m.queue_of(to.path);
    let lower = cx.mq.queue(queue);
    let mut own = lower.pool.held(cx.cpu.id);
    let flush = cx.rules().device_mapper.flush_clone;
    let clone = own.add_bio(clone_of(bio, cx.pool().bio(bio), flush));
    let clone = clone.expect("the queue of a path has room for each bio above");
    let traced = Traced::bio(cx.cpu.tracing, &own, clone);
    let from = own.bio(clone).sector;
    drop(own);
    let mut state = m.state.held(cx.cpu.id);
    state.target.start(to);
    state.bios[bio.0 as usize].clone = Some(clone);
    drop(state);
    if comes != BioFrom::Held {
        trace_with(cx.cpu, queue, TraceAction::Remap, traced, from.0);
    }
    Call::Submit {
        queue,
        bio: clone,
        then: lower.single.is_some().then_some(THEN),
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
