//! Kyber's state of an hctx under khd->lock: requests flushed from the ctx queues, and the current
//! domain.
//!
//! No CPU, no token, no lock: those belong to the path (`dispatch.rs`). Kernel: struct
//! kyber_hctx_data, kyber_dispatch_request() in block/kyber-iosched.c (6.1.192, 6.12.117).

use super::domain::{DOMAINS, Domain};
use crate::list::QueueList;
use crate::request::{Place, RequestId, RequestPool};

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct HctxData {
    /// Flushed requests by domain, oldest first.
    pub rqs: [QueueList; DOMAINS],
    /// The domain of the current batch.
    pub cur_domain: Domain,
    /// Requests of the batch so far.
    pub batching: u32,
}

impl HctxData {
    /// The batch of the current domain may continue.
    pub fn may_batch(&self) -> bool {
        self.batching < self.cur_domain.batch()
    }

    /// Begins another batch: of the next domain, which may be the same after all others.
    pub fn rotate(&mut self) {
        self.batching = 0;
        self.cur_domain = self.cur_domain.next();
    }

    /// The current domain has flushed requests.
    pub fn has_flushed(&self) -> bool {
        !self.rqs[self.cur_domain.index()].is_empty()
    }

    pub fn has_any(&self) -> bool {
        self.rqs.iter().any(|list| !list.is_empty())
    }

    /// Adds requests of a ctx queue to the current domain.
    pub fn add(&mut self, pool: &mut RequestPool, mut of_ctx: QueueList) {
        self.rqs[self.cur_domain.index()].splice_back(pool, &mut of_ctx);
    }

    /// The oldest request of the current domain, with this token.
    ///
    /// # Panics
    /// If there is none: a token is taken only after a request was seen.
    pub fn take(&mut self, pool: &mut RequestPool, token: u32) -> RequestId {
        let list = &mut self.rqs[self.cur_domain.index()];
        let rq = list.pop_front(pool);
        let rq = rq.expect("khd->lock keeps others from what was seen");
        self.batching += 1;
        set_token(pool, rq, Some(token));
        pool[rq].place = Place::Path;
        rq
    }
}

/// rq_set_domain_token().
pub(super) fn set_token(pool: &mut RequestPool, rq: RequestId, token: Option<u32>) {
    pool[rq].elv_priv[0] = token.map_or(0, |number| number + 1);
}

/// rq_get_domain_token().
pub(super) fn token_of(elv_priv: [u32; 2]) -> Option<u32> {
    elv_priv[0].checked_sub(1)
}
