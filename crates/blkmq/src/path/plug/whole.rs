//! queue_rqs: the driver is offered a whole plug, one request after another, whatever it says to
//! each. What it does not take is issued directly after that.
//!
//! Kernel: __blk_mq_flush_plug_list() in block/blk-mq.c, null_queue_rqs() in
//! drivers/block/null_blk/main.c, nvme_queue_rqs() in drivers/nvme/host/pci.c (6.1.192, 6.12.117).

use super::{At, PlugPath};
use crate::env::{Answer, Bit, Cpu, Env, Slab};
use crate::path::Next;
use crate::queue::RequestQueue;

impl PlugPath {
    /// Labels of offering a whole plug.
    pub(super) fn whole<E: Env>(&mut self, q: &RequestQueue<E>, cpu: &mut Cpu) -> Next {
        match self.at {
            At::WholeQuiesced => match q.quiesced.test(cpu) {
                true => self.to(At::Next),
                false => self.offer_next(q, cpu),
            },
            At::WholeAnswer => {
                let rq = self.rq.take().expect("one was offered");
                if core::mem::take(&mut cpu.answer) != Answer::Ok {
                    // Nothing is noted and nothing traced: the core will offer it again.
                    self.rest.push_back(&mut q.pool.held(cpu.id), rq);
                }
                self.offer_next(q, cpu)
            }
            at => unreachable!("{at:?} does not offer a whole plug"),
        }
    }

    /// The next request; `last` (NVMe: the doorbell) where no more of its hctx follows at once.
    fn offer_next<E: Env>(&mut self, q: &RequestQueue<E>, cpu: &mut Cpu) -> Next {
        let mut pool = q.pool.held(cpu.id);
        let Some(rq) = self.group.pop_front(&mut pool) else {
            drop(pool);
            self.group = core::mem::take(&mut self.rest);
            return self.to(match self.group.is_empty() {
                true => At::Group,
                false => At::Next,
            });
        };
        let here = pool[rq].hctx;
        let next = self.group.first();
        self.rq = Some(rq);
        self.at = At::WholeAnswer;
        Next::offer(rq, next.is_none_or(|next| pool[next].hctx != here))
    }
}
