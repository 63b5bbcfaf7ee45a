//! Workers of a bio-based device: they map the bios that its target holds, and those that have
//! waited until the device resumed.
//!
//! Each is one work item: it does not run twice at a time. Kernel: process_queued_bios() in
//! drivers/md/dm-mpath.c, dm_wq_work(), queue_io() in dm.c (4.12, 6.1.192).

use super::bio::looks_again;
use crate::call::{BioFrom, BioWork, Call, Unplug};
use crate::env::{Cpu, Effect};
use crate::plug::Plug;
use crate::queue::{DEFERRED, LockKind, MapState, Mapped};
use crate::request::{BioId, QueueId};
use crate::step::{Cx, Steps as _, labels};
use steps::steps;

pub use bio_work::State as BioWorkPath;

/// A work item, in a context that may sleep and has no plug.
#[steps(path, keep(what))]
pub fn bio_work(cx: &mut Cx<'_>, what: BioWork) {
    /// Asks for its lock.
    at!(Start);
    match what {
        BioWork::Held => sub!(process_queued_bios()),
        BioWork::Deferred => sub!(wq_work()),
    }
}

/// process_queued_bios().
#[steps]
fn process_queued_bios(cx: &mut Cx<'_>) {
    /// Under m->lock: take the held bios.
    lock!(Take, cx.lock(LockKind::Target, 0));
    if take_held(cx) {
        // blk_start_plug()
        cx.cpu.plug.start(1);
        /// The next of these bios; after the last one the plug is flushed.
        at!(Next);
        while let Some(bio) = next_taken(cx) {
            let (queue, comes) = (cx.q.id, BioFrom::Held);
            call!(Next, Call::MapBio { queue, bio, comes });
        }
    }
    if cx.cpu.plug.is_empty() {
        /// No bio is left.
        at!(Over);
    } else {
        let (queue, why) = (cx.cpu.plug.queue(), Unplug::Finish);
        call!(Over, Call::Unplug { queue, why });
    }
    cx.cpu.plug = Plug::default();
}

/// dm_wq_work().
#[steps(keep(holds))]
fn wq_work(cx: &mut Cx<'_>) {
    // It holds the live table throughout (4.20).
    let holds: bool = !looks_again(cx.q);
    /// Is the device suspended?
    at!(Look);
    while !cx.q.own_mapped().own_bios().blocked.test(cx.cpu) {
        /// Under md->deferred_lock: the next bio that waits.
        lock!(Pop, cx.lock(LockKind::Target, DEFERRED));
        let Some(bio) = pop_deferred(cx) else { break };
        let (queue, comes) = (cx.q.id, BioFrom::Deferred);
        call!(Look, Call::MapBio { queue, bio, comes });
    }
    at!(Over);
}

labels! {
    pub enum At in "bio-work" of bio_work process_queued_bios wq_work
}

impl BioWorkPath {
    pub fn what(&self) -> BioWork {
        self.what
    }

    /// A suspension waits for it.
    pub(super) fn in_section(&self) -> bool {
        let looks = [At::Look.label(), At::Pop.label()].contains(&self.label);
        looks && self.find::<wq_work::State>().is_some_and(|work| work.holds)
    }
}

/// Under m->lock, which is released. Returns whether there are any.
fn take_held(cx: &mut Cx<'_>) -> bool {
    let m = cx.q.own_mapped();
    let mut state = m.state.held(cx.cpu.id);
    let MapState { target, taken, .. } = &mut *state;
    target.take_held(taken);
    let any = !taken.is_empty();
    drop(state);
    m.lock.release(cx.cpu);
    any
}

fn next_taken(cx: &Cx<'_>) -> Option<BioId> {
    cx.q.own_mapped().state.held(cx.cpu.id).taken.pop_front()
}

/// Under md->deferred_lock, which is released.
fn pop_deferred(cx: &mut Cx<'_>) -> Option<BioId> {
    let bios = cx.q.own_mapped().own_bios();
    let bio = bios.deferred.held(cx.cpu).pop_front();
    bios.deferred.release(cx.cpu);
    bio
}

/// queue_io(), under md->deferred_lock, which is released.
pub(super) fn defer(m: &Mapped, queue: QueueId, bio: BioId, cpu: &mut Cpu) {
    m.own_bios().deferred.held(cpu).push_back(bio);
    call_worker(m, queue, cpu);
}

/// The same at the head (dm_requeue_add_io()); only later kernels queue the worker.
pub(super) fn defer_first(m: &Mapped, (queue, bio): (QueueId, BioId), calls: bool, cpu: &mut Cpu) {
    m.own_bios().deferred.held(cpu).push_front(bio);
    match calls {
        true => call_worker(m, queue, cpu),
        false => m.own_bios().deferred.release(cpu),
    }
}

fn call_worker(m: &Mapped, queue: QueueId, cpu: &mut Cpu) {
    let what = BioWork::Deferred;
    cpu.outbox.push(Effect::BioWork { queue, what });
    m.own_bios().deferred.release(cpu);
}
