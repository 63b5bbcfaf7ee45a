//! The end of a bio of a bio-based device, or of its clone: it ends, or is tried again.
//!
//! Called where the last part of the clone ends in the queue of a path. Not here: mapping
//! (`bio.rs`), the workers (`bio_work.rs`). Kernel: clone_endio(), dm_io_dec_pending(),
//! __dm_io_complete() in drivers/md/dm.c, multipath_end_io_bio() in dm-mpath.c (6.1.192;
//! dec_pending() in dm.c, do_end_io_bio() of 4.12).

use super::bio_work::{defer, defer_first};
use super::map::{leave, rules};
use super::wait::wake_up;
use crate::call::{BioEndOf, BioWork, Call, WaitQueue};
use crate::dm::Mapped as ToPath;
use crate::env::{Cpu, Effect, TraceAction};
use crate::queue::{DEFERRED, LockKind, RequestQueue};
use crate::request::{BioId, RequestId, RequestPool, Status};
use crate::rules::{BioMap, InFlight};
use crate::step::{Cx, Next, Steps as _, Traced, labels, trace};
use crate::time::SimTime;
use steps::steps;

pub use bio_end::State as BioEnd;

/// The outcome of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Becomes {
    Ended(Status),
    /// The target holds it.
    #[default]
    Held,
    /// It waits until the device resumes.
    Deferred,
}

/// bio_endio() of the clone of a bio, or the end of one without.
#[steps(path, keep(bio))]
pub fn bio_end(cx: &mut Cx<'_>, bio: BioId, of: BioEndOf) {
    match of {
        BioEndOf::Unmapped(Status::Again) => sub!(dec_pending(bio, Becomes::Deferred, None)),
        BioEndOf::Unmapped(status) => sub!(dec_pending(bio, Becomes::Ended(status), None)),
        BioEndOf::Clone { .. } | BioEndOf::Held => sub!(clone_endio(bio, of)),
    }
}

/// clone_endio().
#[steps]
fn clone_endio(cx: &mut Cx<'_>, bio: BioId, of: BioEndOf) {
    /// The clone is freed. Did it succeed? Then the selector counts it no longer.
    at!(Enter);
    let status = free_clone(cx, of);
    let mut becomes: Becomes = Becomes::Ended(status);
    let way: Option<(ToPath, SimTime)> = way_of(cx, bio);
    let mut state = cx.q.own_mapped().state.held(cx.cpu.id);
    state.bios[bio.0 as usize].clone = None;
    let is_error = state.target.is_path_error(status);
    drop(state);
    if is_error {
        becomes = sub!(end_io_bio(bio, way));
    }
    sub!(dec_pending(bio, becomes, way));
}

/// multipath_end_io_bio(), do_end_io_bio() of 4.12.
#[steps]
fn end_io_bio(cx: &mut Cx<'_>, bio: BioId, way: Option<(ToPath, SimTime)>) -> Becomes {
    if let Some((to, _)) = way {
        let to: ToPath = to;
        /// Under m->lock: its path fails.
        lock!(Fail, cx.lock(LockKind::Target, 0));
        fail(cx, to);
    }
    /// Is a path left?
    at!(Valid);
    let m = cx.q.own_mapped();
    m.fields.read_among(1, cx.cpu);
    let valid = m.state.held(cx.cpu.id).target.valid_paths();
    if valid == 0 {
        if under_lock(cx.q) {
            /// None is: are bios held? Under m->lock (6.1), or read without it.
            lock!(Queues, cx.lock(LockKind::Target, 0));
        } else {
            at!(Queues);
        }
        let (queues, defers) = queues_or_defers(cx);
        if !queues {
            return match defers {
                true => Becomes::Deferred,
                false => Becomes::Ended(Status::IoError),
            };
        }
    }
    /// Under m->lock: the bio is held.
    lock!(Hold, cx.lock(LockKind::Target, 0));
    hold(cx, bio);
    if !under_lock(cx.q) {
        /// After that: the worker is queued, unless the group waits for its initialisation (4.20).
        at!(CallWorker);
        call_worker(cx);
    }
    Becomes::Held
}

/// dm_io_dec_pending(), __dm_io_complete().
#[steps(keep(becomes))]
fn dec_pending(
    cx: &mut Cx<'_>,
    bio: BioId,
    mut becomes: Becomes,
    mut way: Option<(ToPath, SimTime)>,
) {
    /// end_io(): the selector counts it no longer; in 4.12 that of its current path.
    at!(Account);
    if becomes == Becomes::Held && reads_path_late(cx.q) {
        // 4.12: the worker may have mapped it again by now.
        way = way_of(cx, bio);
    }
    account_end(cx, way);
    if becomes == Becomes::Held {
        at!(Over);
        return;
    }
    if becomes == Becomes::Deferred {
        /// Under md->deferred_lock: the bio waits until the device resumes, if it is about to be
        /// suspended without flush. Otherwise it fails.
        lock!(Defer, cx.lock(LockKind::Target, DEFERRED));
        if !defer_if_noflush(cx, bio) {
            becomes = Becomes::Ended(Status::IoError);
        }
    }
    /// The device does not count it any more: per CPU, or in one counter (4.20).
    at!(NotPending);
    let is_last: bool = if rules(cx.q).in_flight == InFlight::Counted {
        cx.q.own_mapped().pending.add(cx.cpu, -1);
        /// Does the device count anything (4.20)? If not, the waiters for that are woken.
        at!(Fewer);
        cx.q.own_mapped().pending.read(cx.cpu) == 0
    } else {
        let mut state = cx.q.own_mapped().state.held(cx.cpu.id);
        state.pending -= 1;
        state.pending == 0
    };
    // The kernel wakes the waiters at each end, if there are any (6.1): only the last end counts.
    let next = match is_last {
        true => wake_up(cx.cpu, cx.q.id, WaitQueue::InFlight),
        false => Next::Step,
    };
    let Becomes::Ended(status) = becomes else {
        at!(Over, next);
        return;
    };
    let status: Status = status;
    /// The bio ends, or its data follows its flush.
    at!(End, next);
    if data_follows(cx, bio) {
        /// Under md->deferred_lock: its data waits for the worker.
        lock!(Data, cx.lock(LockKind::Target, DEFERRED));
        defer(cx.q.own_mapped(), cx.q.id, bio, cx.cpu);
        at!(Over);
    } else {
        /// It has ended, is held, or waits.
        at!(Over, end(cx, bio, status));
    }
}

labels! {
    pub enum At in "bio-end" of bio_end clone_endio end_io_bio dec_pending
}

impl BioEnd {
    /// It owns the bio, which has no clone, is in no list, and has not ended.
    pub fn has_bio(&self) -> bool {
        if let Some(end) = self.find::<dec_pending::State>() {
            return match end.becomes {
                Becomes::Ended(_) => !self.is_at(At::Over),
                Becomes::Held => false,
                Becomes::Deferred => self.is_at(At::Account) || self.is_at(At::Defer),
            };
        }
        let clone = self.find::<clone_endio::State>();
        let without = clone.is_some_and(|clone| clone.of == BioEndOf::Held);
        (!self.is_at(At::Enter) || without) && !self.is_at(At::CallWorker)
    }

    /// The bio that found no path left, and that may still fail for it.
    pub fn finds_no_path(&self) -> Option<BioId> {
        let finds = self.is_at(At::Queues) || self.is_at(At::Defer);
        finds.then_some(self.bio)
    }

    fn is_at(&self, at: At) -> bool {
        self.label == at.label()
    }
}

/// Frees the clone. Returns its status.
fn free_clone(cx: &Cx<'_>, of: BioEndOf) -> Status {
    match of {
        BioEndOf::Clone {
            below,
            clone,
            status,
        } => {
            cx.mq.queue(below).pool.held(cx.cpu.id).free_bio(clone);
            status
        }
        BioEndOf::Held | BioEndOf::Unmapped(_) => Status::IoError,
    }
}

/// The path that a bio has now, and the time of its choice.
fn way_of(cx: &Cx<'_>, bio: BioId) -> Option<(ToPath, SimTime)> {
    let state = cx.q.own_mapped().state.held(cx.cpu.id);
    let tio = &state.bios[bio.0 as usize];
    tio.mapped.map(|to| (to, tio.started))
}

/// fail_path(), under m->lock, which is released.
fn fail(cx: &mut Cx<'_>, to: ToPath) {
    let m = cx.q.own_mapped();
    m.fields.write(cx.cpu);
    let mut state = m.state.held(cx.cpu.id);
    state.target.fail(to.path);
    leave(cx.q.id, &mut state.target, cx.cpu);
    drop(state);
    m.lock.release(cx.cpu);
}

/// No path is left: are bios held, or else deferred? Releases m->lock, where that is held.
fn queues_or_defers(cx: &mut Cx<'_>) -> (bool, bool) {
    let m = cx.q.own_mapped();
    m.fields.read_among(1, cx.cpu);
    let state = m.state.held(cx.cpu.id);
    let target = &state.target;
    let answer = (target.queues_if_no_path(), target.must_defer());
    drop(state);
    if under_lock(cx.q) {
        m.lock.release(cx.cpu);
    }
    answer
}

/// Under m->lock, which is released.
fn hold(cx: &mut Cx<'_>, bio: BioId) {
    let m = cx.q.own_mapped();
    m.fields.write(cx.cpu);
    let mut state = m.state.held(cx.cpu.id);
    state.target.hold(bio);
    leave(cx.q.id, &mut state.target, cx.cpu);
    drop(state);
    m.lock.release(cx.cpu);
}

fn call_worker(cx: &mut Cx<'_>) {
    let m = cx.q.own_mapped();
    m.fields.read_among(1, cx.cpu);
    if !m.state.held(cx.cpu.id).target.queues_io() {
        let (queue, what) = (cx.q.id, BioWork::Held);
        cx.cpu.outbox.push(Effect::BioWork { queue, what });
    }
}

/// end_io() of the selector, if there is a path: also a second time, for a held bio that gets none.
fn account_end(cx: &mut Cx<'_>, way: Option<(ToPath, SimTime)>) {
    if let Some((to, started)) = way {
        let (m, now) = (cx.q.own_mapped(), cx.cpu.now());
        m.accounts[to.path.index()].write(cx.cpu);
        let mut state = m.state.held(cx.cpu.id);
        state.target.account_end(to, started, now);
    }
}

/// Under md->deferred_lock, which is released: the bio goes to the head of the list, if the device
/// is about to be suspended without flush.
fn defer_if_noflush(cx: &mut Cx<'_>, bio: BioId) -> bool {
    let m = cx.q.own_mapped();
    let defers = m.state.held(cx.cpu.id).target.suspends_noflush();
    match defers {
        true => defer_first(m, (cx.q.id, bio), under_lock(cx.q), cx.cpu),
        false => m.own_bios().deferred.release(cx.cpu),
    }
    defers
}

/// Regardless of the flush's result, a bio ends as its data does.
fn data_follows(cx: &Cx<'_>, bio: BioId) -> bool {
    let mut pool = cx.pool();
    let bio = pool.bio_mut(bio);
    let follows = bio.flags.preflush && bio.sectors.0 > 0;
    bio.flags.preflush &= !follows;
    follows
}

fn end(cx: &mut Cx<'_>, bio: BioId, status: Status) -> Next {
    let mut pool = cx.pool();
    let whole = pool.end_piece(bio, status);
    let mut traced = Traced::bio(cx.cpu.tracing, &pool, bio);
    if let Some(traced) = &mut traced {
        traced.status = status;
    }
    drop(pool);
    trace(cx.cpu, cx.q.id, TraceAction::Complete, traced, false);
    ended(cx.q, whole, cx.cpu)
}

/// blk_update_request() of the first bio, if there is one. Returns what comes before the next one,
/// and whether there is one.
pub(super) fn end_bio(cx: &mut Cx<'_>, rq: RequestId, status: Status) -> (Next, bool) {
    let mut pool = cx.pool();
    let Some(bio) = pop_bio(&mut pool, rq) else {
        return (Next::Step, false);
    };
    let more = pool[rq].bio_first.is_some();
    let whole = pool.end_piece(bio, status);
    drop(pool);
    (ended(cx.q, whole, cx.cpu), more)
}

/// Takes the first bio of a request.
pub(super) fn pop_bio(pool: &mut RequestPool, rq: RequestId) -> Option<BioId> {
    let bio = pool[rq].bio_first?;
    let next = pool.bio(bio).next;
    let r = &mut pool[rq];
    r.bio_first = next;
    r.bio_count -= 1;
    if next.is_none() {
        r.bio_last = None;
    }
    Some(bio)
}

/// If all parts of a bio of a queue have ended, its submitter is notified, or the bio-based device
/// that it is a clone for.
pub(super) fn ended(q: &RequestQueue, whole: Option<(BioId, Status)>, cpu: &mut Cpu) -> Next {
    let Some((bio, status)) = whole else {
        return Next::Step;
    };
    let below = q.id;
    if let Some(above) = q.bios_of {
        let of = BioId(q.pool.held(cpu.id).bio(bio).owner);
        let call = Call::BioEnd {
            queue: above,
            bio: of,
            of: BioEndOf::Clone {
                below,
                clone: bio,
                status,
            },
        };
        return Next::call(cpu, call);
    }
    let queue = below;
    cpu.outbox.push(Effect::BioEnd { queue, bio, status });
    Next::Step
}

/// The path of a held bio is read later.
fn reads_path_late(q: &RequestQueue) -> bool {
    q.settings.rules.device_mapper.bio_map == BioMap::ReadsOnce
}

/// Reads under m->lock whether bios are held, and queues the worker there.
fn under_lock(q: &RequestQueue) -> bool {
    q.settings.rules.device_mapper.bio_map == BioMap::UnderLock
}
