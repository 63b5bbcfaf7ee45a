//! Do both sides hold the same requests? After a difference they are made to.
//!
//! Not here: the differences themselves, which `replay.rs` and `records.rs` note.

use super::Records;
use crate::desk::Decision;
use crate::layer::{Asked as _, Token};
use crate::ledger::At;

impl Records<'_> {
    /// After a difference the model goes on from what the kernel's scheduler holds.
    pub(super) fn resync(&mut self) {
        self.drop_dead();
        let now = self.desk.tick(self.desk.now);
        let decisions = &self.desk.decisions;
        let chosen = |rq| decisions.iter().any(|d| d.rq == rq);
        self.desk.replay.resync(now, chosen);
    }

    /// Decisions about requests that the kernel merged away, or that only the model had, are none.
    fn drop_dead(&mut self) {
        let ledger = &self.desk.replay.ledger;
        let dead = |d: &&Decision| !ledger.is_live(d.rq);
        let dead: Vec<Token> = self
            .desk
            .decisions
            .iter()
            .filter(dead)
            .map(|d| d.token)
            .collect();
        for token in dead {
            self.layer.cancel(token, self.desk.hctx_of(token));
            self.desk.decisions.retain(|d| d.token != token);
            self.desk.replay.has_differed();
        }
    }

    /// Panics unless both sides hold the same requests.
    pub(super) fn check(&self) {
        let desk = &self.desk;
        for (rq, entry) in desk.replay.ledger.iter() {
            let decided = desk.decisions.iter().filter(|d| d.rq == rq).count();
            let held = desk.replay.model.holds(rq);
            let queued = entry.at == At::Queued;
            assert!(decided <= 1, "{entry} decided twice");
            assert_eq!(
                held,
                queued && decided == 0,
                "{entry} {:?} {decided}",
                entry.at
            );
        }
        for rq in desk.replay.model.queued() {
            assert!(
                desk.replay.ledger.is_live(rq),
                "{rq:?} lives in the model only"
            );
        }
    }
}
