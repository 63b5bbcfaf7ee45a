//! What must hold of a run between two of its labels.

use super::{At, RunPath, Source};
use crate::env::{Cpu, Env};
use crate::path::list::ListPath;
use crate::queue::BlkMq;

impl RunPath {
    pub(in crate::path) fn check<E: Env>(&self, mq: &BlkMq<E>, cpu: &Cpu) {
        let at = self.at;
        let q = mq.queue(self.queue);
        assert_eq!(
            matches!(self.source, Source::Sched(_)),
            at == At::Pass,
            "{at:?}: the scheduler is asked"
        );
        assert_eq!(
            matches!(self.source, Source::Ctx(_)),
            at == At::Ctx,
            "{at:?}: software queues are emptied"
        );
        assert!(
            self.word == 0 || matches!(at, At::HasCtx | At::HasSide),
            "{at:?} at another word"
        );
        let lists = match &self.source {
            Source::Sched(pass) => {
                pass.check(q, cpu);
                pass.in_list()
            }
            Source::Ctx(ctx) => ctx.in_list(),
            Source::None => matches!(at, At::MarkRestart | At::CountMark | At::Leftovers),
        };
        match lists {
            true => self.list.check(q, cpu),
            false => assert_eq!(self.list, ListPath::idle(), "{at:?} with a list"),
        }
    }
}
