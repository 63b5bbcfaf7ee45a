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
use crate::names::labels;
use crate::queue::{BlkMq, DEFERRED, LockKind, Mapped, RequestQueue};
use crate::request::{BioId, QueueId, Status};
use crate::rules::{BioMap, InFlight};
use crate::step::{Cx, Next, Traced, lock, trace};
use crate::time::SimTime;

labels! {
    pub enum At in "bio-end" {
        /// The clone is freed. Did it succeed? Then the selector counts it no longer.
        Enter,
        /// Under m->lock: its path fails.
        Fail,
        /// Is a path left?
        Valid,
        /// None is: are bios held? Under m->lock (6.1), or read without it.
        Queues,
        /// Under m->lock: the bio is held.
        Hold,
        /// After that: the worker is queued, unless the group waits for its initialisation (4.20).
        CallWorker,
        /// end_io(): the selector counts it no longer; in 4.12 that of its current path.
        Account,
        /// Under md->deferred_lock: the bio waits until the device resumes, if it is about to be
        /// suspended without flush. Otherwise it fails.
        Defer,
        /// The device does not count it any more: per CPU, or in one counter (4.20).
        NotPending,
        /// Does the device count anything (4.20)? If not, the waiters for that are woken.
        Fewer,
        /// The bio ends, or its data follows its flush.
        End,
        /// Under md->deferred_lock: its data waits for the worker.
        Data,
        /// It has ended, is held, or waits.
        Over,
    }
}

/// The outcome of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Becomes {
    Ended(Status),
    /// The target holds it.
    Held,
    /// It waits until the device resumes.
    Deferred,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BioEnd {
    pub(super) at: At,
    pub(super) queue: QueueId,
    bio: BioId,
    /// The clone that has ended, in the queue of the path.
    clone: Option<(QueueId, BioId)>,
    status: Status,
    /// Its path, and the time of the choice.
    mapped: Option<(ToPath, SimTime)>,
    becomes: Becomes,
}

impl BioEnd {
    pub(super) fn new(queue: QueueId, bio: BioId, of: BioEndOf) -> BioEnd {
        let (at, clone, status, becomes) = match of {
            BioEndOf::Clone {
                below,
                clone,
                status,
            } => (
                At::Enter,
                Some((below, clone)),
                status,
                Becomes::Ended(status),
            ),
            BioEndOf::Held => (
                At::Enter,
                None,
                Status::IoError,
                Becomes::Ended(Status::IoError),
            ),
            BioEndOf::Unmapped(Status::Again) => {
                (At::Account, None, Status::IoError, Becomes::Deferred)
            }
            BioEndOf::Unmapped(status) => {
                (At::Account, None, Status::IoError, Becomes::Ended(status))
            }
        };
        BioEnd {
            at,
            queue,
            bio,
            clone,
            status,
            mapped: None,
            becomes,
        }
    }

    /// It owns the bio, which has no clone, is in no list, and has not ended.
    pub fn has_bio(&self) -> bool {
        let has = match self.becomes {
            Becomes::Ended(_) => self.at != At::Over,
            Becomes::Held => false,
            Becomes::Deferred => matches!(self.at, At::Account | At::Defer),
        };
        has && self.clone.is_none()
    }

    /// The bio that found no path left, and that may still fail for it.
    pub fn finds_no_path(&self) -> Option<BioId> {
        matches!(self.at, At::Queues | At::Defer).then_some(self.bio)
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let m = cx.q.own_mapped();
        match self.at {
            At::Enter => self.enter(cx, m),
            At::Fail => {
                m.fields.write(cx.cpu);
                let mut state = m.state.held(cx.cpu.id);
                if let Some((mapped, _)) = self.mapped {
                    state.target.fail(mapped.path);
                }
                leave(self.queue, &mut state.target, cx.cpu);
                drop(state);
                m.lock.release(cx.cpu);
                self.to(At::Valid)
            }
            At::Valid => {
                m.fields.read_among(1, cx.cpu);
                match m.state.held(cx.cpu.id).target.valid_paths() > 0 {
                    true => self.locked(At::Hold),
                    false if under_lock(cx.q) => self.locked(At::Queues),
                    false => self.to(At::Queues),
                }
            }
            At::Queues => self.without_path(cx, m),
            At::Hold => self.hold(cx, m),
            At::CallWorker => {
                m.fields.read_among(1, cx.cpu);
                if !m.state.held(cx.cpu.id).target.queues_io() {
                    call_worker(self.queue, cx.cpu);
                }
                self.to(At::Account)
            }
            At::Account => self.account(cx, m),
            At::Defer => self.defer(cx, m),
            At::NotPending => match rules(cx.q).in_flight {
                InFlight::Counted => {
                    m.pending.add(cx.cpu, -1);
                    self.to(At::Fewer)
                }
                InFlight::Tags => {
                    let mut state = m.state.held(cx.cpu.id);
                    state.pending -= 1;
                    let last = state.pending == 0;
                    drop(state);
                    self.counted(last, cx.cpu)
                }
            },
            At::Fewer => {
                let left = m.pending.read(cx.cpu);
                self.counted(left == 0, cx.cpu)
            }
            At::End => self.end(cx),
            At::Data => {
                defer(m, self.queue, self.bio, cx.cpu);
                self.to(At::Over)
            }
            At::Over => Next::Done,
        }
    }

    pub(super) fn check(&self, mq: &BlkMq, _cpu: &Cpu) {
        let m = mq.queue(self.queue).own_mapped();
        assert!(m.bios.is_some(), "queue {} maps bios", self.queue);
        let at = self.at;
        assert!(
            self.clone.is_none() || at == At::Enter,
            "{at:?} with a clone"
        );
    }

    pub(super) fn check_over(&self) {
        assert_eq!(self.at, At::Over, "it is not over");
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn locked(&mut self, at: At) -> Next {
        self.at = at;
        lock(self.queue, LockKind::Target, 0)
    }

    fn enter(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        if let Some((below, clone)) = self.clone.take() {
            cx.mq.queue(below).pool.held(cx.cpu.id).free_bio(clone);
        }
        let error = {
            let mut state = m.state.held(cx.cpu.id);
            let tio = &mut state.bios[self.bio.0 as usize];
            tio.clone = None;
            self.mapped = tio.mapped.map(|mapped| (mapped, tio.started));
            state.target.is_path_error(self.status)
        };
        match error {
            false => self.to(At::Account),
            true if self.mapped.is_none() => self.to(At::Valid),
            true => self.locked(At::Fail),
        }
    }

    /// No path is left.
    fn without_path(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        m.fields.read_among(1, cx.cpu);
        let (queues, defers) = {
            let state = m.state.held(cx.cpu.id);
            let target = &state.target;
            (target.queues_if_no_path(), target.must_defer())
        };
        if under_lock(cx.q) {
            m.lock.release(cx.cpu);
        }
        if queues {
            return self.locked(At::Hold);
        }
        self.becomes = match defers {
            true => Becomes::Deferred,
            false => Becomes::Ended(Status::IoError),
        };
        self.to(At::Account)
    }

    fn hold(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        m.fields.write(cx.cpu);
        let mut state = m.state.held(cx.cpu.id);
        state.target.hold(self.bio);
        leave(self.queue, &mut state.target, cx.cpu);
        drop(state);
        m.lock.release(cx.cpu);
        self.becomes = Becomes::Held;
        self.to(match under_lock(cx.q) {
            true => At::Account,
            false => At::CallWorker,
        })
    }

    /// end_io() of the selector, if there is a path: also a second time, for a held bio that gets
    /// none.
    fn account(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        if self.becomes == Becomes::Held && reads_path_late(cx.q) {
            // 4.12: the worker may have mapped it again by now.
            let tio = m.state.held(cx.cpu.id).bios[self.bio.0 as usize];
            self.mapped = tio.mapped.map(|mapped| (mapped, tio.started));
        }
        if let Some((mapped, started)) = self.mapped.take() {
            m.accounts[mapped.path.index()].write(cx.cpu);
            let now = cx.cpu.now();
            let mut state = m.state.held(cx.cpu.id);
            state.target.account_end(mapped, started, now);
        }
        match self.becomes {
            Becomes::Held => self.to(At::Over),
            Becomes::Ended(_) => self.to(At::NotPending),
            Becomes::Deferred => {
                self.at = At::Defer;
                cx.lock(LockKind::Target, DEFERRED)
            }
        }
    }

    fn defer(&mut self, cx: &mut Cx<'_>, m: &Mapped) -> Next {
        let waits = m.state.held(cx.cpu.id).target.suspends_noflush();
        match waits {
            true => defer_first(m, (self.queue, self.bio), under_lock(cx.q), cx.cpu),
            false => {
                self.becomes = Becomes::Ended(Status::IoError);
                m.own_bios().deferred.release(cx.cpu);
            }
        }
        self.to(At::NotPending)
    }

    /// The kernel wakes the waiters at each end, if there are any (6.1): only the last end counts.
    fn counted(&mut self, last: bool, cpu: &mut Cpu) -> Next {
        self.at = match self.becomes {
            Becomes::Deferred => At::Over,
            Becomes::Ended(_) | Becomes::Held => At::End,
        };
        match last {
            true => wake_up(cpu, self.queue, WaitQueue::InFlight),
            false => Next::Step,
        }
    }

    fn end(&mut self, cx: &mut Cx<'_>) -> Next {
        let Becomes::Ended(status) = self.becomes else {
            unreachable!("what is held or waits does not end");
        };
        let mut pool = cx.pool();
        let bio = pool.bio_mut(self.bio);
        if bio.flags.preflush && bio.sectors.0 > 0 {
            // Regardless of the flush's result, the bio ends as its data does.
            bio.flags.preflush = false;
            drop(pool);
            self.at = At::Data;
            return cx.lock(LockKind::Target, DEFERRED);
        }
        let whole = pool.end_piece(self.bio, status);
        let mut traced = Traced::bio(cx.cpu.tracing, &pool, self.bio);
        if let Some(traced) = &mut traced {
            traced.status = status;
        }
        drop(pool);
        trace(cx.cpu, self.queue, TraceAction::Complete, traced, false);
        self.at = At::Over;
        ended(cx.q, whole, cx.cpu)
    }
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

fn call_worker(queue: QueueId, cpu: &mut Cpu) {
    let what = BioWork::Held;
    cpu.outbox.push(Effect::BioWork { queue, what });
}
