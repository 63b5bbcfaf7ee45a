//! Invariants of a run between two of its labels.

use super::{At, RunPath, Source};
use crate::env::Cpu;
use crate::path::list::ListPath;
use crate::queue::BlkMq;

impl RunPath {
    pub(in crate::path) fn check(&self, mq: &BlkMq, cpu: &Cpu) {
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
            Source::None => {
                matches!(at, At::MarkRestart | At::SetRestart)
                    || matches!(at, At::CountMark | At::Leftovers)
            }
        };
        match lists {
            true => self.list.check(q, cpu),
            false => assert_eq!(self.list, ListPath::idle(), "{at:?} with a list"),
        }
    }

    pub(in crate::path) fn check_over(&self) {
        assert!(matches!(self.source, Source::None), "it pulls requests");
        self.list.check_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::QueueList;
    use crate::request::{HctxId, QueueId, RequestId, RequestPool};

    #[test]
    #[should_panic(expected = "requests are left")]
    fn a_run_that_forgets_its_list_is_found() {
        let mut path = RunPath::new(QueueId(0), HctxId(0), false);
        let mut pool = RequestPool::new(1, 0);
        let mut list = QueueList::new();
        list.push_back(&mut pool, RequestId(0));
        path.list = ListPath::new(list, false);
        path.check_over();
    }
}
