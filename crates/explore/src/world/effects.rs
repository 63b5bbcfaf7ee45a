//! What a label leaves behind: effects, and slots that nobody may use.

use super::{Fixed, Pending, World};
use blkmq::env::Effect;
use blkmq::request::{CpuId, HctxId, Place, RequestId};
use blkmq::time::Duration;

impl World {
    /// Makes any use of a request that was freed a panic.
    pub(super) fn poison_free_slots(&self) {
        for queue in &self.mq.queues {
            queue.with_pool(|pool| {
                for slot in 0..pool.len() as u32 {
                    if pool[RequestId(slot)].place == Place::Free {
                        pool[RequestId(slot)].hctx = HctxId(u16::MAX);
                        pool[RequestId(slot)].ctx = CpuId(u16::MAX);
                    }
                }
            });
        }
    }

    /// Carries out the effects of a label. True if there were any.
    pub(super) fn drain(&mut self, fixed: &Fixed, index: usize) -> bool {
        let mut number = 0;
        while let Some(effect) = self.contexts[index].cpu.outbox.take(number) {
            number += 1;
            match effect {
                Effect::Kick { queue, hctx, delay } => {
                    let when = match delay == Duration::ZERO {
                        true => Pending::Now,
                        false => Pending::Later,
                    };
                    self.kick(fixed, fixed.config.place(queue, hctx), when);
                }
                Effect::KickUnlessPending { queue, hctx, .. } => {
                    let place = fixed.config.place(queue, hctx);
                    if self.outside.run_work[place] == Pending::No {
                        self.kick(fixed, place, Pending::Later);
                    }
                }
                Effect::KickRequeue { .. } => self.outside.requeue_work = true,
                Effect::BioEnd { .. } => self.outside.ended += 1,
                Effect::Wake(waiter) => {
                    if !fixed.loses_wakes() {
                        self.contexts[waiter.0 as usize].woken = true;
                    }
                }
            }
        }
        number > 0
    }

    /// mod_delayed_work(): a later call replaces an earlier one, whichever is sooner.
    pub(super) fn kick(&mut self, fixed: &Fixed, place: usize, when: Pending) {
        if when == Pending::Later && !fixed.config.delayed_runs {
            return;
        }
        self.outside.run_work[place] = when;
    }
}
