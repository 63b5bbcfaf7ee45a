//! Workers of a bio-based device: they map the bios that its target holds, and those that have
//! waited until the device resumed.
//!
//! Each is one work item: it does not run twice at a time. Kernel: process_queued_bios() in
//! drivers/md/dm-mpath.c, dm_wq_work(), queue_io() in dm.c (4.12, 6.1.192).

use super::bio::looks_again;
use crate::call::{BioFrom, BioWork, Call, Unplug};
use crate::env::{Cpu, Effect};
use crate::names::labels;
use crate::plug::Plug;
use crate::queue::{BlkMq, DEFERRED, LockKind, Mapped};
use crate::request::{BioId, QueueId};
use crate::step::{Cx, Next, lock};

labels! {
    pub enum At in "bio-work" {
        /// Asks for its lock.
        Start,
        /// Under m->lock: take the held bios.
        Take,
        /// The next of these bios; after the last one the plug is flushed.
        Next,
        /// Is the device suspended?
        Look,
        /// Under md->deferred_lock: the next bio that waits.
        Pop,
        /// No bio is left.
        Over,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BioWorkPath {
    pub(super) at: At,
    pub(super) queue: QueueId,
    what: BioWork,
    /// It holds the live table throughout (4.20).
    holds: bool,
}

impl BioWorkPath {
    /// In a context that may sleep and has no plug.
    pub fn new(queue: QueueId, what: BioWork) -> BioWorkPath {
        BioWorkPath {
            at: At::Start,
            queue,
            what,
            holds: false,
        }
    }

    /// A suspension waits for it.
    pub(super) fn in_section(self) -> bool {
        self.holds && matches!(self.at, At::Look | At::Pop)
    }

    pub fn what(&self) -> BioWork {
        self.what
    }

    pub(super) fn step(&mut self, cx: &mut Cx<'_>) -> Next {
        let m = cx.q.own_mapped();
        let queue = self.queue;
        match self.at {
            At::Start => match self.what {
                BioWork::Held => {
                    self.at = At::Take;
                    lock(queue, LockKind::Target, 0)
                }
                BioWork::Deferred => {
                    self.holds = !looks_again(cx.mq.queue(queue));
                    self.to(At::Look)
                }
            },
            At::Take => {
                let any = {
                    let mut state = m.state.held(cx.cpu.id);
                    let crate::queue::MapState { target, taken, .. } = &mut *state;
                    target.take_held(taken);
                    !taken.is_empty()
                };
                m.lock.release(cx.cpu);
                if any {
                    cx.cpu.plug.start(1);
                }
                self.to(if any { At::Next } else { At::Over })
            }
            At::Next => self.next(m, cx.cpu),
            At::Look => match m.own_bios().blocked.test(cx.cpu) {
                true => self.to(At::Over),
                false => {
                    self.at = At::Pop;
                    lock(queue, LockKind::Target, DEFERRED)
                }
            },
            At::Pop => {
                let bio = m.own_bios().deferred.held(cx.cpu).pop_front();
                m.own_bios().deferred.release(cx.cpu);
                self.at = At::Look;
                match bio {
                    Some(bio) => maps(queue, bio, BioFrom::Deferred, cx.cpu),
                    None => self.to(At::Over),
                }
            }
            At::Over => {
                if self.what == BioWork::Held {
                    cx.cpu.plug = Plug::default();
                }
                Next::Done
            }
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
        let m = mq.queue(self.queue).own_mapped();
        assert!(m.bios.is_some(), "queue {} maps bios", self.queue);
        let left = self.at == At::Next || self.what == BioWork::Deferred;
        let taken = m.state.held(cpu.id).taken.len();
        assert!(left || taken == 0, "{:?}: {taken} bios left", self.at);
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as every path has it")]
    pub(super) fn check_over(&self) {
        assert_eq!(self.at, At::Over, "it is not over");
    }

    fn to(&mut self, at: At) -> Next {
        self.at = at;
        Next::Step
    }

    fn next(&mut self, m: &Mapped, cpu: &mut Cpu) -> Next {
        let bio = m.state.held(cpu.id).taken.pop_front();
        if let Some(bio) = bio {
            return maps(self.queue, bio, BioFrom::Held, cpu);
        }
        self.at = At::Over;
        match cpu.plug.is_empty() {
            true => Next::Step,
            false => {
                let (queue, why) = (cpu.plug.queue(), Unplug::Finish);
                Next::call(cpu, Call::Unplug { queue, why })
            }
        }
    }
}

fn maps(queue: QueueId, bio: BioId, comes: BioFrom, cpu: &mut Cpu) -> Next {
    Next::call(cpu, Call::MapBio { queue, bio, comes })
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
