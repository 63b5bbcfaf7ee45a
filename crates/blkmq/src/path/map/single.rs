//! The clone of a request whose path is of the single-queue kind.
//!
//! It goes to the end of that queue's list to its driver, around the scheduler, which has nothing:
//! nobody else submits there. Not here: its end (`clone_end.rs`).
//! Kernel: alloc_clone_request(), __multipath_map() in drivers/md/dm.c, dm-mpath.c of 4.5,
//! multipath_clone_and_map() of 4.12; blk_insert_cloned_request(), blk_get_request() in
//! block/blk-core.c, __elv_add_request() in elevator.c of both.

use super::{
    Answer, At, BlkMq, Call, Cpu, Effect, Env, MapPath, Mapped, Next, Place, RequestId,
    RequestQueue, Slab,
};
use crate::elevator::queue_lock;
use crate::env::TraceAction;
use crate::path::single::{Own, SingleRun};
use crate::path::{Traced, jiffies, trace_rq};
use crate::queue::Asks;
use crate::request::IoContextId;
use crate::rules::SingleClones;

/// Nobody's: that of the device's thread, which no scheduler knows.
const THREADS: IoContextId = IoContextId(0);

impl MapPath {
    /// The device's own clone of the request, which has its number; or one of the path's requests.
    pub(super) fn single_clone<E: Env>(&mut self, lower: &RequestQueue<E>, cpu: &Cpu) -> Next {
        if clones_of(lower) == SingleClones::OfPath {
            self.at = At::PathClone;
            return Next::Lock(queue_lock(lower.id));
        }
        begin(lower, self.rq, cpu);
        self.clone = Some(self.rq);
        self.to(At::StartIo)
    }

    /// blk_get_request() without waiting.
    pub(super) fn path_clone<E: Env>(
        &mut self,
        mq: &BlkMq<E>,
        q: &RequestQueue<E>,
        m: &Mapped<E>,
        cpu: &mut Cpu,
    ) -> Next {
        let path = self.mapped.expect("a path was chosen").path;
        let own = &Own::of(mq, m.queue_of(path));
        let kind = Own::<E>::kind(&q.pool.held(cpu.id), self.rq);
        let asks = Asks {
            kind,
            io_context: THREADS,
            now: jiffies(own.q, cpu),
            hz: own.q.settings.hz,
            must: false,
        };
        let got = own.single.state.held(cpu.id).limits.get(asks);
        if let Some(clone) = got {
            begin(own.q, clone, cpu);
        }
        own.unlock(cpu);
        cpu.answer = got.map_or(Answer::Resource, Answer::Clone);
        self.to(At::Clone)
    }

    /// __elv_add_request(ELEVATOR_INSERT_BACK), and the driver's function. Trace I.
    pub(super) fn path_insert<E: Env>(
        &mut self,
        mq: &BlkMq<E>,
        m: &Mapped<E>,
        cpu: &mut Cpu,
    ) -> Next {
        let path = self.mapped.expect("a path was chosen").path;
        let clone = self.clone.expect("there is one");
        let queue = m.queue_of(path);
        let own = &Own::of(mq, queue);
        let mut pool = own.q.pool.held(cpu.id);
        let traced = Traced::rq(&pool, clone);
        let r = &mut pool[clone];
        (r.place, r.started, r.softbarrier) = (Place::Dispatch, false, true);
        let mut state = own.single.state.held(cpu.id);
        state.driver_list.push_back(&mut pool, clone);
        drop((state, pool));
        trace_rq(cpu, queue, TraceAction::Insert, traced);
        self.at = At::PathRun;
        Next::call(cpu, Call::SingleRun(SingleRun::called(queue)))
    }

    /// The path's queue is let go of.
    pub(super) fn path_run<E: Env>(&mut self, mq: &BlkMq<E>, m: &Mapped<E>, cpu: &mut Cpu) -> Next {
        let path = self.mapped.expect("a path was chosen").path;
        Own::of(mq, m.queue_of(path)).unlock(cpu);
        self.to(At::Issued)
    }

    /// free_clone_request(), or blk_put_request(), of one that was given up.
    pub(super) fn path_put<E: Env>(&mut self, mq: &BlkMq<E>, m: &Mapped<E>, cpu: &mut Cpu) -> Next {
        let path = self.mapped.take().expect("a path was chosen").path;
        let clone = self.clone.take().expect("there is one");
        put_clone(&Own::of(mq, m.queue_of(path)), clone, cpu);
        self.freed(mq.queue(self.queue), cpu)
    }
}

/// blk_rq_init().
fn begin<E: Env>(lower: &RequestQueue<E>, clone: RequestId, cpu: &Cpu) {
    let mut pool = lower.pool.held(cpu.id);
    pool.reset(clone);
    let r = &mut pool[clone];
    (r.ctx, r.start_time, r.place) = (cpu.id, cpu.now(), Place::Path);
}

/// Where clones for such a path come from.
pub(in crate::path) fn clones_of<E: Env>(lower: &RequestQueue<E>) -> SingleClones {
    let old = lower.settings.rules.device_mapper.requests.old_top;
    old.expect("its kernel has such a queue above").clones
}

/// A clone without bios is gone. One of the path's queue goes under its lock, which is released
/// with it.
pub(in crate::path) fn put_clone<E: Env>(own: &Own<'_, E>, clone: RequestId, cpu: &mut Cpu) {
    let mut pool = own.q.pool.held(cpu.id);
    let kind = Own::<E>::kind(&pool, clone);
    assert!(
        pool[clone].bio_first.is_none(),
        "a clone is freed with bios"
    );
    pool[clone].place = Place::Free;
    drop(pool);
    if clones_of(own.q) == SingleClones::OfDevice {
        return;
    }
    let woken = own.single.state.held(cpu.id).limits.freed(kind, clone);
    if let Some(task) = woken {
        cpu.outbox.push(Effect::Wake(task));
    }
    own.unlock(cpu);
}
