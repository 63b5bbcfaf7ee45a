//! queue_rqs: the driver is offered a whole plug, one request after another, whatever it answers to
//! each. Requests that it refuses are issued directly afterwards.
//!
//! A stack comes newest first (v6.1). The driver may reorder requests of one hctx that follow each
//! other: NVMe reverses them again before the drive sees them.
//!
//! Kernel: __blk_mq_flush_plug_list() in block/blk-mq.c, null_queue_rqs() in
//! drivers/block/null_blk/main.c, nvme_queue_rqs() in drivers/nvme/host/pci.c (6.1.192, 6.12.117).

use super::{At, PlugPath};
use crate::env::{Answer, Cpu};
use crate::queue::BlkMq;
use crate::request::{HctxId, Plugged, RequestPool};
use crate::step::{Cx, Next};

impl PlugPath {
    /// Labels of offering a whole plug.
    pub(super) fn whole(&mut self, cx: &mut Cx<'_>) -> Next {
        match self.at {
            At::WholeQuiesced => match cx.q.quiesced.test(cx.cpu) {
                true => self.to(At::Next),
                false => self.offer_next(cx),
            },
            At::WholeAnswer => {
                let rq = self.rq.take().expect("one was offered");
                if core::mem::take(&mut cx.cpu.answer) == Answer::Ok {
                    return self.offer_next(cx);
                }
                // A refusal is neither counted nor traced: the core will offer the request again.
                let mut pool = cx.pool();
                let hctx = pool[rq].hctx;
                self.group.push_back(&mut pool, rq);
                let ends = self.ends_run(&pool, hctx);
                drop(pool);
                if !cx.q.settings.driver_commit_rqs || !ends {
                    return self.offer_next(cx);
                }
                self.at = At::WholeRung;
                Next::commit(hctx)
            }
            At::WholeRung => self.offer_next(cx),
            at => unreachable!("{at:?} does not offer a whole plug"),
        }
    }

    /// The next request; `last` (NVMe: the doorbell) where no more of its hctx follows at once.
    fn offer_next(&mut self, cx: &mut Cx<'_>) -> Next {
        let Some(Plugged { rq, .. }) = self.rest.pop_front(cx.mq, cx.cpu.id) else {
            let refused = self.keep_refused(cx.mq, cx.cpu);
            return self.to(if refused { At::Next } else { At::Group });
        };
        let pool = cx.pool();
        let last = self.ends_run(&pool, pool[rq].hctx);
        self.rq = Some(rq);
        self.at = At::WholeAnswer;
        Next::offer(rq, last)
    }

    /// The next request, if there is one, is of another hctx than this.
    fn ends_run(&self, pool: &RequestPool, hctx: HctxId) -> bool {
        let next = self.rest.first();
        next.is_none_or(|next| pool[next.rq].hctx != hctx)
    }

    /// It offers a whole plug: the driver takes a request together with those that follow, up to
    /// `last`.
    pub fn offers_whole(&self) -> bool {
        self.at == At::WholeAnswer
    }

    /// Keeps the refused requests as the rest of the plug. False if there are none.
    fn keep_refused(&mut self, mq: &BlkMq, cpu: &Cpu) -> bool {
        let queue = self.queue;
        let pool = &mq.queue(queue).pool;
        while !self.group.is_empty() {
            let refused = self.group.pop_front(&mut pool.held(cpu.id));
            let rq = refused.expect("it is not empty");
            self.rest.push_back(mq, cpu.id, Plugged { queue, rq });
        }
        !self.rest.is_empty()
    }
}
